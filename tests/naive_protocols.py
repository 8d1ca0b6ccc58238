"""An oracle for the protocols of messages: what names and times prove, then a limit (docs/whatif.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from otf2 import events as ev

if TYPE_CHECKING:
    from tests.naive import Message, Trace

RENDEZVOUS, EAGER = True, False
DEFAULT_LIMIT = 1 << 16
ENDS = ev.MpiIsendComplete, ev.MpiIrecv, ev.MpiSend, ev.MpiRecv


def completed(trace: Trace) -> Counter[int]:
    """Return how many sends and receives each call completes, by its id."""
    records = (record for thread in trace.threads.values() for record in thread.records)
    return Counter(id(call) for event, call in records if isinstance(event, ENDS))


def proofs(trace: Trace, receives: list[Message]) -> dict[int, bool | None]:
    """Return what is proved of the message of each receive, by its id; `receives` are all that have a send."""
    ends = completed(trace)
    return {id(r): proof(r.partner, r.start.enter, ends) for r in receives}


def named(name: str) -> bool | None:
    """Return whether a call uses the rendezvous protocol, if its name implies it; else None."""
    if name.startswith(("MPI_Ssend", "MPI_Issend")):
        return RENDEZVOUS
    if name.startswith(("MPI_Bsend", "MPI_Ibsend", "MPI_Rsend", "MPI_Irsend")):
        return EAGER
    return None


def proof(s: Message, posted: int, ends: Counter[int]) -> bool | None:
    """Return whether a message used the rendezvous protocol, if name and times prove it; else None.

    A call that ends several may have waited for any of them.
    """
    name = s.start.name
    if named(name) is not None:
        return named(name)
    if s.done is None:
        return None
    if s.done.leave <= posted:
        return EAGER
    if s.done.enter < posted and ends[id(s.done)] == 1 and "sendrecv" not in name.lower():
        return RENDEZVOUS
    return None


def decided(trace: Trace, receives: list[Message]) -> dict[int, bool]:
    """Return the protocol of each message, by the id of its receive: as proved, else by the limit of its size."""
    proved = proofs(trace, receives)
    free: dict[bool, list[tuple[int, bool]]] = defaultdict(list)
    for r in receives:
        protocol = proved[id(r)]
        # A call whose name says its protocol tells nothing of the others.
        if protocol is not None and named(r.partner.start.name) is None:
            free[is_local(trace, r)].append((r.partner.event.msg_length, protocol))
    limits = {where: limit_or_default(free[where]) for where in (True, False)}
    by_limit = {id(r): r.partner.event.msg_length > limits[is_local(trace, r)] for r in receives}
    return {key: by_limit[key] if protocol is None else protocol for key, protocol in proved.items()}


def is_local(trace: Trace, r: Message) -> bool:
    """Return whether both processes of a message are on one node."""
    nodes = [trace.definitions.location_groups[m.thread.process].system_tree_parent._ref for m in (r, r.partner)]
    return nodes[0] == nodes[1]


def limit(sizes: list[tuple[int, bool]]) -> int | None:
    """Return the smallest eager limit that contradicts the fewest proofs; None if none is of rendezvous."""
    if not any(protocol is RENDEZVOUS for _, protocol in sizes):
        return None

    def wrong(limit: int) -> int:
        return sum((size > limit) is not protocol for size, protocol in sizes)

    return min({0, *(size for size, _ in sizes)}, key=lambda limit: (wrong(limit), limit))


def limit_or_default(sizes: list[tuple[int, bool]]) -> int:
    """Return the limit, or that of common libraries, but at least the longest message that was eager."""
    found = limit(sizes)
    return max([DEFAULT_LIMIT, *(size for size, _ in sizes)]) if found is None else found
