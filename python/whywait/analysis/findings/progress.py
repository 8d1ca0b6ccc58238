"""One-sided operations wait until their target calls the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside
from whywait.analysis.findings.words import Figures
from whywait.analysis.focus import focused
from whywait.analysis.progress import progress_thread

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "progress"
TITLE = "Wait for Progress"
DOCUMENT = """\
One-sided operations wait until their target enters a call in which its library makes progress, and what the target
computes meanwhile causes most of the waiting for it. Use a library or a setting with asynchronous progress, or call the
library more often there. A progress thread pays off only if it gains more than the core that it takes.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path of the target that most of it is charged to"),
    waiting=("s", "the Wait for Progress that the cost model charges to what targets compute"),
)

_CLASS = "rma_progress"
_VERDICTS = {
    "yes": "A progress thread on each node gains more than its core.",
    "no": "A progress thread on each node would take more than it gains, unless it has a core that is free.",
}


def detect(run: Run) -> Found:
    """Yield own code at targets that operations wait for."""
    bearers = [bearer for bearer in run.own() if bearer.of_classes.get(_CLASS, 0.0) > bearer.loss / 2]
    loss = sum(bearer.loss for bearer in bearers)
    if not bearers:
        return
    verdict = progress_thread(focused(run.result))
    words = _VERDICTS.get((verdict or {}).get("verdict_node") or "")
    place = run.place(bearers[0].callpath)
    waiting = sum(bearer.of_classes[_CLASS] for bearer in bearers)
    yield run.finding(
        NAME,
        FIGURES.say(
            "One-sided operations wait {waiting} until their target, which is in {place}, calls the library",
            waiting=waiting,
            place=place,
        )
        + beside(run, bearers, waiting),
        FIGURES.say("Use asynchronous progress, or call the library in {place}.", place=place)
        + (f" {words}" if words else ""),
        loss,
        callpath=bearers[0].callpath,
        instances=int(run.visits(bearers[0].callpath).max()),
        evidence={"verdict": verdict, "of_classes": bearers[0].of_classes},
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    run.take(*bearers)


def changes(run: Run, _: Finding) -> Proposed:
    """Yield operations that complete without their target."""
    yield run.changes.asynchronous()
