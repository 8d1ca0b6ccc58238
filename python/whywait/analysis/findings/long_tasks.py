"""Threads wait for tasks that others run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "long_tasks"
TITLE = "Long tasks"
DOCUMENT = """\
At least half of what others wait for a call path is for a task that runs it: in a taskwait construct, or at a barrier
that all threads have reached, with no other task to run. Divide the tasks into smaller ones, or create the longest
first. `whywait threads` lists how long the tasks of each construct run.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path that tasks run"),
    waiting=("s", "the waiting for tasks that the cost model charges to it"),
)


def detect(run: Run) -> Found:
    """Yield what tasks do while threads wait for them."""
    for bearer, of_tasks in run.mostly("interval_task"):
        place = run.place(bearer.callpath)
        yield run.finding(
            NAME,
            FIGURES.say(
                "Threads have nothing else to do and wait {waiting} because of tasks in {place}",
                waiting=of_tasks,
                place=place,
            )
            + beside(run, [bearer], of_tasks),
            "Divide these tasks into smaller ones, or create the longest first.",
            bearer.loss,
            callpath=bearer.callpath,
            ranks=run.culprits(bearer.costs),
            instances=int(run.visits(bearer.callpath).sum()),
            evidence={"of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing the tasks, and making them faster."""
    if finding.callpath is not None:
        yield run.changes.balance(finding.callpath, among="process")
    yield from run.faster(finding, 0.5, 0.0)
