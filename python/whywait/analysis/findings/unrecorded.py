"""Time of which nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Run

NAME = "unrecorded"
TITLE = "Time that is not recorded"
DOCUMENT = """\
At least 5% of the CPU time is unknown: outside of all regions, in the program although its functions are recorded
elsewhere, or after the last event of a damaged stream. Record more functions, or see what the trace lacks with
`whywait validate`. Or at least 5% are in library calls without a record of what they wait for or transfer: probes,
tests in a loop, completions of nonblocking collective operations, or the creation of communicators.
"""

_LEAST = 0.05


def detect(run: Run) -> Iterator[Finding]:
    """Yield the time that is unknown, and that of library calls without records."""
    if not run.time:
        return
    loss = run.losses.account.times.get("unknown", 0.0)
    if loss >= _LEAST * run.time:
        yield run.finding(
            NAME,
            f"Of {seconds(loss)}, the trace does not say what happens.",
            "Record the functions that run then, or see what the trace lacks with whywait validate.",
            loss,
            evidence={"unknown": loss},
        )
    loss = run.losses.account.times.get("library.needed", 0.0)
    if loss >= _LEAST * run.time:
        times = run.times_in("library.needed")
        callpath, most = max(times.items(), key=lambda one: (one[1], -one[0]))
        name = run.region(callpath).name
        share = percent(most / loss)
        calls = f"Calls of {name} need {seconds(loss)}"
        if share != "100%":
            calls = f"Library calls need {seconds(loss)}, {share} of it in {name}"
        yield run.finding(
            NAME,
            f"{calls}; the trace does not record what for.",
            f"See where {run.place(callpath)} is called: it may wait for messages, or be called too often.",
            loss,
            callpath=callpath,
            instances=int(run.visits(callpath).sum()),
            evidence={"library": loss, "callpath": most},
        )
