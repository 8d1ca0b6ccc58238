"""Time of which nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.needed import FIGURES as NEEDED
from whywait.analysis.findings.needed import finding, needed
from whywait.analysis.findings.set_up import is_set_up
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "unrecorded"
TITLE = "Time that is not recorded"
DOCUMENT = """\
At least 5% of the CPU time is unknown: outside of all regions, in the program although its functions are recorded
elsewhere, or after the last event of a damaged stream. Record more functions, or see what the trace lacks with
`whywait info --check`. Or at least 5% are in library calls without a record of what they wait for or transfer: probes,
tests in a loop, or completions of nonblocking collective operations.
"""
FIGURES = Figures(NEEDED, unknown=("s", "the row `unknown` of the account"))

_LEAST = 0.05


def detect(run: Run) -> Found:
    """Yield the time that is unknown, and that of library calls without records."""
    loss = run.losses.account.times.get("unknown", 0.0)
    if run.time and loss >= _LEAST * run.time:
        yield run.finding(
            NAME,
            FIGURES.say("Of {unknown}, the trace does not say what happens.", unknown=loss),
            "Record the functions that run then, or see what the trace lacks with whywait info --check.",
            loss,
            evidence={"unknown": loss},
        )
    found = needed(run, lambda region: not is_set_up(region), _LEAST)
    if found is not None:
        yield finding(
            run,
            NAME,
            found,
            "; the trace does not record what for.",
            "See where {place} is called: it may wait for others, or be called too often.",
            "See what {place} does, which no rank calls twice: it may wait for others, or set something up.",
        )
