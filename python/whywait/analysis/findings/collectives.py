"""Collective operations need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.finding import SLICE, largest_region
from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "collectives"
TITLE = "Collective operations"
DOCUMENT = """\
Collective operations need at least 2% of the CPU time, although nobody is late and they are not slow. Make fewer of
them (check for convergence every few steps), combine those that follow on each other at once, or overlap them with
work. If those of less than 8 KiB take a millisecond or more even at their fastest, a scheduler's slice, this is more
than a network needs: all of them may have been disturbed.
"""
FIGURES = Figures(
    calls=("count", "the calls of collective operations, of all members, in the whole run"),
    lost=("s", "what they need at most in the focus: their times without waiting, up to the fastest 5% of their kind"),
    region=("name", "the function with most of it"),
    region_share=("share", "the part of it in all calls of this function"),
    each=("s", "what a call of it needs on average"),
    repeated=("share", "the part of the operations at `place` that follow at once on another of their kind"),
    place=("name", "the call path with most of such operations"),
)

_LEAST, _SMALL = 0.02, 8192


def detect(run: Run) -> Iterator[Finding]:
    """Yield what collective operations need."""
    kinds = [kind for kind in run.kinds if kind["members"] and kind["needed"] > 0]
    loss = sum(kind["needed"] for kind in kinds)
    if not run.time or loss < _LEAST * run.time:
        return
    region, most = largest_region(kinds)
    calls = sum(kind["calls"] for kind in kinds)
    slow = sum(kind["needed"] for kind in kinds if (kind["floor"] or 0) >= SLICE and kind["bytes_from"] < _SMALL)
    is_disturbed = slow >= loss / 2
    sentence = FIGURES.say(
        f"{{calls}} calls of collective operations {'take' if is_disturbed else 'need'} {{lost}}, {{region_share}} of "
        "it in {region} ({each} each)",
        calls=calls,
        lost=loss,
        region_share=most / loss,
        region=region,
        each=most / sum(kind["calls"] for kind in kinds if kind["region"] == region),
    )
    sentence += ": even the fastest take longer than a network needs." if is_disturbed else "."
    yield run.finding(
        NAME,
        sentence,
        "Repeat the run with one rank per core: all of them may have been disturbed." if is_disturbed else _advice(run),
        loss,
        instances=calls,
        evidence={"kinds": kinds, "repeated": run.reasons("repeated")},
    )


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


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield the bound: an ideal network."""
    yield run.changes.ideal_network()
