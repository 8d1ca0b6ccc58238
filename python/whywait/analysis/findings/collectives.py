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
them (check for convergence every few steps), combine those that follow on each other at once, or overlap them with
work.
"""

_LEAST = 0.05


def detect(run: Run) -> Iterator[Finding]:
    """Yield what collective operations need."""
    kinds = [kind for kind in run.kinds if kind["members"] and kind["needed"] > 0]
    loss = sum(kind["needed"] for kind in kinds)
    if not run.time or loss < _LEAST * run.time:
        return
    most = max(kinds, key=lambda kind: kind["needed"])
    calls = sum(kind["calls"] for kind in kinds)
    yield run.finding(
        NAME,
        f"{calls:,} calls of collective operations need {seconds(loss)}, {percent(most['needed'] / loss)} of it in "
        f"{most['region']} ({seconds(most['needed'] / most['calls'])} each).",
        _advice(run),
        loss,
        instances=calls,
        evidence={"kinds": kinds, "repeated": run.reasons("repeated")},
    )


def _advice(run: Run) -> str:
    """Return what to do: combine operations only where they follow on each other at once."""
    repeated = [row for row in run.reasons("repeated") if row["repeated"]]
    if not repeated:
        return "Make fewer of them, or overlap them with work."
    most = max(repeated, key=lambda row: row["repeated"])
    share = percent(most["repeated"] / most["operations"])
    return (
        f"Combine those that follow on each other at once ({share} of {run.place(most['callpath'])}), make fewer of "
        "them, or overlap them with work."
    )


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield the bound: an ideal network."""
    yield run.changes.ideal_network()
