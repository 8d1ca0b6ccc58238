"""Collective operations need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "collectives"
TITLE = "Collective operations"
DOCUMENT = """\
Collective operations need at least 5% of the CPU time, although nobody is late and they are not slow. Make fewer of
them (check for convergence every few steps, reduce several values at once), or overlap them with work.
"""

_LEAST = 0.05


def detect(run: Run) -> Iterator[Finding]:
    """Yield what collective operations need."""
    kinds = [kind for kind in run.result.tables.network.to_pylist() if kind["members"] and kind["needed"] > 0]
    loss = sum(kind["needed"] for kind in kinds)
    if not run.time or loss < _LEAST * run.time:
        return
    most = max(kinds, key=lambda kind: kind["needed"])
    calls = sum(kind["calls"] for kind in kinds)
    yield run.finding(
        NAME,
        f"{calls:,} calls of collective operations need {seconds(loss)}, {percent(most['needed'] / loss)} of it in "
        f"{most['region']} ({seconds(most['needed'] / most['calls'])} each).",
        "Make fewer of them, reduce several values at once, or overlap them with work.",
        loss,
        instances=calls,
        evidence={"kinds": kinds},
    )


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield the bound: an ideal network."""
    yield run.changes.ideal_network()
