"""Barriers that order nothing visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Proposed, Run

NAME = "unneeded_sync"
TITLE = "Barriers that order nothing visible"
DOCUMENT = """\
A remark on the finding that bears most of the waiting in barriers. At least ten times, a barrier orders nothing that
the trace shows: since the last collective operation of its group, no member has accessed a file or the memory of
others, and no message that was sent before is received after it. If the barrier is not needed for other reasons (files
of other programs, shared memory, measuring times), remove it.
"""
FIGURES = Figures(
    barrier=("name", "the call path of such barriers that take most"),
    needless=("s", "their time in the focus, of those that order nothing"),
    barriers=("count", "how often those at `barrier` order nothing, divided by the ranks of the run"),
)

_TIMES, _SHARE = 10, 0.01


def remark(run: Run, found: list[Finding]) -> None:
    """Add to the finding that bears most of the waiting in barriers that they order nothing."""
    rows = [row for row in run.reasons("needless_barriers") if row["needless"] >= _TIMES * run.ranks]
    time = sum(row["time"] for row in rows)
    if not rows or time < _SHARE * run.time:
        return
    most = max(rows, key=lambda row: row["time"])
    host = run.bears_most(found, "barrier") or next((one for one in found if one.rule in _OF_CALLS), None)
    if host is None:
        return
    times = round(most["needless"] / run.ranks)
    host.remark(
        NAME,
        FIGURES.say(
            "{barrier} takes {needless} and orders nothing visible, {barriers} times: it can go if it is not needed "
            "for other reasons.",
            barrier=run.place(most["callpath"]),
            needless=most["time"],
            barriers=times,
        ),
    )
    host.evidence[NAME] = {"barriers": rows, "callpath": most["callpath"]}


_OF_CALLS = frozenset({"few_cores", "pauses", "slow_calls", "collectives"})


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield the run without these barriers."""
    yield run.changes.cut(finding.evidence[NAME]["callpath"])
