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
    for bearers in run.families(bearer for bearer in run.own() if bearer.waiting > 0):
        ranks = run.culprits(run.sum_of_costs(bearer.callpath for bearer in bearers))
        loss = sum(bearer.loss for bearer in bearers)
        yield run.finding(NAME, _sentence(run, bearers, ranks), None, loss, ranks=ranks, **run.family(bearers))
        run.take(*bearers)


def _sentence(run: Run, bearers: list[Bearer], ranks: list[int]) -> str:
    """Say that only one rank or thread runs the call paths, or else for which ranks most of the waiting is."""
    callpaths = [bearer.callpath for bearer in bearers]
    place, waiting = run.places(callpaths), seconds(sum(bearer.waiting for bearer in bearers))
    here = np.flatnonzero(run.sum_of_times(callpaths))
    if here.size == 1 and run.locations > 1:
        return f"Only {run.location(int(here[0]))} runs {place}; others wait {waiting} for it."
    who = "" if len(ranks) == run.ranks else f", most of it for {run.who(ranks).lower()}"
    return f"Others wait {waiting} for {place}{who}."


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield making the call path faster."""
    if finding.callpath is not None:
        for factor in (0.75, 0.5, 0.0):
            yield run.changes.faster(finding.callpath, factor, below=bool(finding.merged))
