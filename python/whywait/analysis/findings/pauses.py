"""Some calls take a millisecond or more longer than others of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.slow_calls import passed_on, slow_loss, take_slow
from whywait.analysis.findings.words import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "pauses"
TITLE = "Long pauses"
DOCUMENT = """\
At least 20 calls take a millisecond or more longer than the fastest 5% of their kind, and these make up a third
of all excess. Pauses of this length come from a lost core or the system, not from the network: a scheduler's
slice is 1 ms and more. Run with at most one rank or thread per core, check the binding, and look for other
processes on the node.
"""

_CALLS, _SHARE = 20, 1 / 3


def detect(run: Run) -> Iterator[Finding]:
    """Yield the excess of all calls, if pauses make up much of it."""
    facts = run.result.facts
    calls, time = facts.get("pauses", 0), facts.get("pause_time", 0.0)
    bearers = run.slow()
    excess = sum(time for row, time in run.losses.account.times.items() if row.endswith(".excess"))
    if calls < _CALLS or time < _SHARE * excess:
        return
    sentence = (
        f"{calls:,} calls took more than 1 ms longer than others of their kind; they make up {percent(time / excess)} "
        "of the excess. Pauses of this length come from a lost core or the system, not from the network."
    )
    if (waiting := passed_on(bearers)) > time:
        sentence += f" Others wait {seconds(waiting)} for them."
    yield run.finding(
        NAME,
        sentence,
        "Run with at most one rank or thread per core, check the binding, and look for other processes on the node.",
        slow_loss(bearers),
        evidence={"calls": calls, "time": time, "excess": excess},
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    take_slow(bearers)


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
