"""Iterations take longer and longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import Figures
from whywait.analysis.iterations import assess, known_iterations

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "growing"
TITLE = "Growing iterations"
DOCUMENT = """\
Iterations of the main loop take longer from the first to the last: a line through their lengths changes by at least 10%
and explains at least half of the variance. Something is never freed, a list grows, or data spreads. This is no loss of
its own, because all of it may be computation; it says where time goes.
"""
FIGURES = Figures(
    factor=("times", "the median of the last tenth of the iterations, as a multiple of that of the first"),
    last=("s", "the median of the last tenth"),
    first=("s", "the median of the first tenth"),
    extra=("s", "what all iterations take beyond the median of the first tenth"),
)

_CHANGE, _TENTH = 0.1, 0.1


def detect(run: Run) -> Found:
    """Yield the trend of the main loop."""
    table = known_iterations(run.result)
    if table is None or table.num_rows < 2 / _TENTH:
        return
    trend = assess(run.result, table)["trend"]
    if trend["kind"] != "grows" or trend["change"] < _CHANGE:
        return
    duration = table["duration"].to_numpy()
    some = max(1, round(_TENTH * duration.size))
    first, last = float(np.median(duration[:some])), float(np.median(duration[-some:]))
    extra = float(np.maximum(duration - first, 0).sum())
    if last <= first or not run.length:
        return
    begin = table["begin"].to_numpy()
    finding = run.finding(
        NAME,
        FIGURES.say(
            "The last iterations take {factor} the first ({last} instead of {first}); all of them together take "
            "{extra} more than if none had grown.",
            factor=last / first,
            last=last,
            first=first,
            extra=extra,
        ),
        "Look for what grows from iteration to iteration: lists, search depths, memory that is never freed.",
        0.0,
        base="run",
        instances=table.num_rows,
        evidence={
            "trend": trend,
            "first": first,
            "last": last,
            "windows": [
                [float(begin[0]), float(begin[some])],
                [float(begin[-some]), float(table["end"].to_numpy()[-1])],
            ],
        },
    )
    finding.share = extra / run.length
    yield finding


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield the call path that grows most as long as in the first tenth."""
    yield run.changes.as_before(*finding.evidence["windows"])
