"""The measurement itself takes time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "measurement"
TITLE = "The measurement itself"
DOCUMENT = """\
The measurement system takes at least 2% of the CPU time: it flushes its buffers, or is switched off. Give it more
memory (SCOREP_TOTAL_MEMORY), or record less with a filter.
"""
FIGURES = Figures(lost=("s", "the time of the measurement system: the row `measurement` of the account"))

_LEAST = 0.02


def detect(run: Run) -> Found:
    """Yield the time of the measurement system."""
    loss = run.losses.account.times.get("measurement", 0.0)
    if not run.time or loss < _LEAST * run.time:
        return
    bearers = [bearer for bearer in run.rest.values() if bearer.spent.get("measurement")]
    yield run.finding(
        NAME,
        FIGURES.say(
            "The measurement itself takes {lost}: flushing buffers, or time in which it is switched off.", lost=loss
        ),
        "Give the measurement more memory, or record less with a filter.",
        loss,
        evidence={"measurement": loss},
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    for bearer in bearers:
        bearer.spent.pop("measurement")
