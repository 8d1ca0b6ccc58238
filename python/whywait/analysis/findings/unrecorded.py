"""Time of which nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Run

NAME = "unrecorded"
TITLE = "Time that is not recorded"
DOCUMENT = """\
At least 5% of the CPU time is unknown: outside of all regions, in the program although its functions are recorded
elsewhere, or after the last event of a damaged stream. Record more functions, or see what the trace lacks with
`whywait validate`.
"""

_LEAST = 0.05


def detect(run: Run) -> Iterator[Finding]:
    """Yield the time that is unknown."""
    loss = run.losses.account.times.get("unknown", 0.0)
    if not run.time or loss < _LEAST * run.time:
        return
    yield run.finding(
        NAME,
        f"Of {seconds(loss)}, the trace does not say what happens.",
        "Record the functions that run then, or see what the trace lacks with whywait validate.",
        loss,
        evidence={"unknown": loss},
    )
