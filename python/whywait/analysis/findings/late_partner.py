"""Others wait for a call path, and nothing more can be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.analysis.losses import Bearer

NAME = "late_partner"
TITLE = "Late partner"
DOCUMENT = """\
Others wait for what a rank does in a call path, although this takes about as long on all of them: it runs more
often, or at another time. Look at the order of the calls around it.
"""


def detect(run: Run) -> Iterator[Finding]:
    """Yield call paths of own code that others wait for."""
    for bearer in run.own():
        if bearer.waiting <= 0:
            continue
        ranks = run.culprits(bearer.costs)
        place = run.place(bearer.callpath)
        yield run.finding(
            NAME,
            _sentence(run, bearer, place, ranks),
            None,
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks,
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"of_classes": bearer.of_classes},
        )
        run.take(bearer)


def _sentence(run: Run, bearer: Bearer, place: str, ranks: list[int]) -> str:
    """Say that only one rank or thread runs the call path, or else for which ranks most of the waiting is."""
    waiting = seconds(bearer.waiting)
    here = np.flatnonzero(run.times(bearer.callpath))
    if here.size == 1 and run.locations > 1:
        return f"Only {run.location(int(here[0]))} runs {place}; others wait {waiting} for it."
    who = "" if len(ranks) == run.ranks else f", most of it for {run.who(ranks).lower()}"
    return f"Others wait {waiting} for {place}{who}."


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield making the call path faster."""
    if finding.callpath is not None:
        yield run.changes.faster(finding.callpath, 0.75)
        yield run.changes.faster(finding.callpath, 0.5)
        yield run.changes.faster(finding.callpath, 0.0)
