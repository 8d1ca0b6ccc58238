"""Messages take longer while others use the network of the same node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.sharing import FIGURES, evidence, shared, slower
from whywait.analysis.findings.slow_calls import Slow
from whywait.analysis.findings.words import Words

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "network_contention"
TITLE = "Contention of the network"
DOCUMENT = """\
Messages of one size take longer while others are on their way to or from the same node: by at least 20%, and the more
others, the longer (Pearson's r of at least 0.4). They share its link, or the memory that they are copied through. Send
them at other times, through fewer ranks of a node, or place ranks that talk to each other on one node. Only messages
that somebody waited for show their time. The loss is the excess over those with the fewest others, which is part of the
slow calls. Where all are always on their way together, a trace cannot tell. Only runs of up to a million events are
searched.
"""


def detect(run: Run) -> Found:
    """Yield the excess of messages that share nodes."""
    found = shared(run, "network")
    slow = Slow(run, run.slow())
    if not found or slow.loss <= 0:
        return
    worst = found[0]
    excess = sum(row["excess"] for row in found)
    where = Words("")
    if worst["callpath"] is not None:
        where = FIGURES.say(" received in {place}", place=run.place(worst["callpath"]))
    yield run.finding(
        NAME,
        Words("A message") + where + slower(worst, "messages of the same node") + ": they share its network or memory.",
        "Send at other times, through fewer ranks of a node, or place ranks that talk to each other on one node.",
        min(excess, slow.loss),
        callpath=worst["callpath"],
        instances=worst["samples"],
        evidence=evidence(worst) | {"callpaths": len(found)},
    )
    if excess >= slow.loss / 2:
        slow.take()


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
