"""An oracle for the protocols of messages: what names and times prove, then a limit (docs/whatif.md)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.naive import Instance, Message, Trace

RENDEZVOUS, EAGER = True, False
DEFAULT_LIMIT = 1 << 16


def proofs(receives: list[Message]) -> dict[int, bool | None]:
    """Return what is proved of the message of each receive, by its id; `receives` are all that have a send."""
    receiving = {r.done for r in receives}
    return {id(r): proof(r.partner, r, receiving) for r in receives}


def named(name: str) -> bool | None:
    """Return whether a call uses the rendezvous protocol, if its name implies it; else None."""
    if name.startswith(("MPI_Ssend", "MPI_Issend")):
        return RENDEZVOUS
    if name.startswith(("MPI_Bsend", "MPI_Ibsend", "MPI_Rsend", "MPI_Irsend")):
        return EAGER
    return None


def proof(s: Message, r: Message, receiving: set[Instance]) -> bool | None:
    """Return whether a message used the rendezvous protocol, if name and times prove it; else None."""
    name = s.start.name
    if named(name) is not None:
        return named(name)
    if s.done is None:
        return None
    if s.done.leave <= r.start.enter:
        return EAGER
    if s.done.enter < r.start.enter and s.done not in receiving and "sendrecv" not in name.lower():
        return RENDEZVOUS
    return None


def decided(trace: Trace, receives: list[Message]) -> dict[int, bool]:
    """Return the protocol of each message, by the id of its receive: as proved, else by the limit of its size."""
    proved = proofs(receives)
    free: dict[bool, list[tuple[int, bool]]] = defaultdict(list)
    for r in receives:
        protocol = proved[id(r)]
        # A call whose name says its protocol tells nothing of the others.
        if protocol is not None and named(r.partner.start.name) is None:
            free[is_local(trace, r)].append((r.partner.event.msg_length, protocol))
    limits = {where: limit(free[where]) for where in (True, False)}
    by_limit = {id(r): r.partner.event.msg_length > limits[is_local(trace, r)] for r in receives}
    return {key: by_limit[key] if protocol is None else protocol for key, protocol in proved.items()}


def is_local(trace: Trace, r: Message) -> bool:
    """Return whether both processes of a message are on one node."""
    nodes = [trace.definitions.location_groups[m.thread.process].system_tree_parent._ref for m in (r, r.partner)]
    return nodes[0] == nodes[1]


def limit(sizes: list[tuple[int, bool]]) -> int:
    """Return the smallest eager limit that contradicts the fewest proofs; the default one if none is rendezvous."""
    if not any(protocol is RENDEZVOUS for _, protocol in sizes):
        return max([DEFAULT_LIMIT, *(size for size, _ in sizes)])

    def wrong(limit: int) -> int:
        return sum((size > limit) is not protocol for size, protocol in sizes)

    limits = sorted({size for size, _ in sizes})
    best = min(limits, key=lambda limit: (wrong(limit), limit))
    if limits[0] == 0:
        return best
    # With a limit below all sizes everything goes by rendezvous.
    below = sum(protocol is EAGER for _, protocol in sizes)
    return 0 if below < wrong(best) or (below == wrong(best) and best > 0) else best
