"""Collective operations need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.needs import FIGURES as NEEDS
from whywait.analysis.findings.needs import disturbed, need
from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "collectives"
TITLE = "Collective operations"
DOCUMENT = """\
Collective operations need at least 2% of the CPU time, although nobody is late and they are not slow. Make fewer of
them (check for convergence every few steps), combine those that follow on each other at once, or overlap them with
work. If those of less than 8 KiB take a millisecond or more even at their fastest, a scheduler's slice, this is more
than a network needs: all of them may have been disturbed. Of fewer than 20 calls of a kind, nothing tells what they
need.
"""
FIGURES = Figures(
    NEEDS,
    repeated=("share", "the part of the operations at `place` that follow at once on another of their kind"),
    place=("name", "the call path with most of such operations"),
)

_LEAST = 0.02


def detect(run: Run) -> Found:
    """Yield what collective operations need."""
    kinds = [kind for kind in run.kinds if kind["members"] and kind["needed"] > 0]
    loss = sum(kind["needed"] for kind in kinds)
    if not run.time or loss < _LEAST * run.time:
        return
    yield run.finding(
        NAME,
        need(kinds, "calls of collective operations"),
        "Repeat the run with one rank per core: all of them may have been disturbed."
        if disturbed(kinds)
        else _advice(run),
        loss,
        instances=sum(kind["calls"] for kind in kinds),
        evidence={"kinds": kinds, "repeated": run.reasons("repeated")},
    )
    run.take_kinds(kinds)


def _advice(run: Run) -> Words:
    """Return what to do: combine operations only where they follow on each other at once."""
    repeated = [row for row in run.reasons("repeated") if row["repeated"]]
    if not repeated:
        return Words("Make fewer of them, or overlap them with work.")
    most = max(repeated, key=lambda row: row["repeated"])
    return FIGURES.say(
        "Combine those that follow on each other at once ({repeated} of {place}), make fewer of them, or overlap them "
        "with work.",
        repeated=most["repeated"] / most["operations"],
        place=run.place(most["callpath"]),
    )


def changes(run: Run, _: Finding) -> Proposed:
    """Yield the bound: an ideal network."""
    yield run.changes.ideal_network()
