"""Others wait for a lock while its owner works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside, who_waits
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "held_lock"
TITLE = "Work while a lock is owned"
DOCUMENT = """\
At least half of what others wait for a call path is for a lock that its thread owns meanwhile. Do only what the lock
protects while it is owned, or divide what it protects among several locks. Balancing the work of threads does not help.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "what the owner of the lock is in"),
    waiting=("s", "the waiting for locks that the cost model charges to it"),
)


def detect(run: Run) -> Found:
    """Yield what owners of locks do while others wait for them."""
    for bearer, of_locks in run.mostly("interval_lock"):
        place = run.place(bearer.callpath)
        yield run.finding(
            NAME,
            FIGURES.say(
                f"{who_waits(run)} {{waiting}} because the owner of a lock is in {{place}}",
                waiting=of_locks,
                place=place,
            ).capitalized()
            + beside(run, [bearer], of_locks),
            FIGURES.say(
                "Do less of {place} while the lock is owned, or divide what it protects among several locks.",
                place=place,
            ),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=run.culprits(bearer.costs),
            instances=int(run.visits(bearer.callpath).sum()),
            evidence={"of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the work faster."""
    yield from run.faster(finding, 0.5, 0.0)
