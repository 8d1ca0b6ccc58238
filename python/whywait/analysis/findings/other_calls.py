"""Other calls need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.needs import FIGURES as NEEDS
from whywait.analysis.findings.needs import need
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "other_calls"
TITLE = "Other library calls"
DOCUMENT = """\
Calls that no other rule speaks of need at least 2% of the CPU time, although nobody is late and they are not slow:
their messages are neither small ones that only take a latency, nor large ones whose times grow with their size. Call
them less often, or overlap them with work.
"""
FIGURES = Figures(NEEDS)

_LEAST = 0.02


def detect(run: Run) -> Found:
    """Yield what all other calls need."""
    # Time in calls without records has a sentence of its own: see the rule `unrecorded`.
    transferring, unrecorded = (
        {run.region(callpath).name for callpath in run.times_in(row)} for row in ("transfer.needed", "library.needed")
    )
    kinds = [kind for kind in run.kinds if kind["needed"] > 0 and kind["region"] in transferring - unrecorded]
    loss = sum(kind["needed"] for kind in kinds)
    if not run.time or loss < _LEAST * run.time:
        return
    # Other than those of the rules before.
    is_rest = len(run.kinds) < run.result.tables.network.num_rows
    yield run.finding(
        NAME,
        need(kinds, "other library calls" if is_rest else "library calls"),
        "Call them less often, or overlap them with work.",
        loss,
        instances=sum(kind["calls"] for kind in kinds),
        evidence={"kinds": kinds},
    )
    run.take_kinds(kinds)


def changes(run: Run, _: Finding) -> Proposed:
    """Yield the bound: an ideal network."""
    yield run.changes.ideal_network()
