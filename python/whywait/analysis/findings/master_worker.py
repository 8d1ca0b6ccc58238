"""One rank serves all others, and they wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import whywait._native as _native
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "master_worker"
TITLE = "A master that cannot keep up"
DOCUMENT = """\
One rank exchanges messages with at least 80% of the others, they wait for it in at least 20% of their time, and what
it computes between its messages is the reason. Give out larger pieces of work, let several ranks serve, or let workers
ask for the next piece before they need it.
"""
FIGURES = Figures(
    rank=("name", "the rank that all others exchange messages with"),
    workers=("count", "the ranks that exchange messages with it in both directions"),
    rate=("1/s", "the messages that they receive from it in the whole run, divided by the length of the focus"),
    place=("name", "the call path of the rank that most of the waiting is charged to"),
    waiting=("s", "the waiting of others for messages of the rank, in the whole run"),
    waiting_share=("share", "the same as a part of the time of all others in the focus"),
)

_PARTNERS, _WAITING, _RANKS = 0.8, 0.2, 4
# Pairs of more ranks come in blocks.
_MOST = 4096


def detect(run: Run) -> Found:
    """Yield the own code of a rank that all others wait for in messages."""
    if run.ranks < _RANKS or not run.result.has_causes:
        return
    try:
        pairs = run.result.tables.communication()[0]
    except _native.UsageError:
        # Several processes share the events.
        return
    first, last, peer, last_peer = (pairs[name].to_numpy() for name in ("rank", "last_rank", "peer", "last_peer"))
    if not pairs.num_rows or (first != last).any() or (peer != last_peer).any():
        return
    waiting, messages = pairs["waiting"].to_numpy(), pairs["messages"].to_numpy()
    size = int(max(first.max(), peer.max())) + 1
    if size > _MOST:
        return
    partners = np.zeros((size, size), bool)
    partners[first[messages > 0], peer[messages > 0]] = True
    for_rank = np.bincount(np.maximum(peer, 0), waiting, size)
    master = int(for_rank.argmax())
    of_master = np.logical_and(partners[master], partners[:, master])
    of_master[master] = False
    others = run.ranks - 1
    if of_master.sum() < _PARTNERS * others or partners.sum() > 3 * of_master.sum():
        return
    if for_rank[master] < _WAITING * others * run.length:
        return
    bearers = [bearer for bearer in run.own() if bearer.waiting > 0 and run.culprits(bearer.costs) == [master]]
    bearers = [bearer for bearer in bearers if bearer.of_messages >= bearer.waiting / 2]
    loss = sum(bearer.loss for bearer in bearers)
    if not bearers or sum(bearer.waiting for bearer in bearers) < for_rank[master] / 2:
        return
    served = float(messages[peer == master].sum())
    place = run.place(bearers[0].callpath)
    yield run.finding(
        NAME,
        FIGURES.say(
            "{rank} cannot serve {workers} ranks: it takes {rate} messages per second, works in {place} between them, "
            "and the others wait {waiting} for it ({waiting_share} of their time).",
            rank=f"rank {master}",
            workers=int(of_master.sum()),
            rate=served / run.length,
            place=place,
            waiting=float(for_rank[master]),
            waiting_share=float(for_rank[master]) / (others * run.length),
        ).capitalized(),
        "Give out larger pieces of work, let several ranks serve, or let workers ask before they need the next piece.",
        loss,
        callpath=bearers[0].callpath,
        ranks=[master],
        instances=int(served),
        evidence={"waiting": float(for_rank[master]), "messages": served, "partners": int(of_master.sum())},
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    run.take(*bearers)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the master faster."""
    yield from run.faster(finding, 0.75, 0.5, 0.0)
