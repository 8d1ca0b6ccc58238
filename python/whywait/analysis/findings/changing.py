"""Devices wait for another rank each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import OF_MANY as FIGURES
from whywait.analysis.findings.blame import blames, finding, without_pause

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "changing"
TITLE = "Another rank each time"
DOCUMENT = """\
A call path makes devices, or ranks where there are none, wait for at least a percent of their time, and no few ranks
bear most of that in most steps: now one rank is late, now another. Garbage collection, allocation, other processes or
the network disturb ranks at random; or each has the most work once.
"""
_KERNEL = "Compare its shapes from step to step, and look for other processes on the nodes."
_HOST = "Look for garbage collection and allocation there, and for other processes on the nodes."


def detect(run: Run) -> Found:
    """Yield the call paths in which no few ranks are late."""
    for blame in blames(run, NAME):
        words = FIGURES.say(
            f"{{place}} takes longer on another rank each time; {blame.who.words} wait {{waiting}} for it.",
            place=run.place(blame.callpaths[0]),
            waiting=blame.waiting,
        )
        yield finding(run, blame, words, _KERNEL if blame.callpaths[0] in run.kernels else _HOST)


def changes(run: Run, found: Finding) -> Proposed:
    """Yield all instances as long as their median, and balancing each; garbage need not be collected there at all."""
    yield from without_pause(run, found)
    if found.callpath is not None:
        yield run.changes.median(found.callpath)
        yield run.changes.balance(found.callpath)
        yield run.changes.faster(found.callpath, 0.0)
