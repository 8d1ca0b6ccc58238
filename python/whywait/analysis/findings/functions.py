"""Which function between calls takes longer, by samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, Words, joined
from whywait.analysis.functions import divided, source
from whywait.model.names import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.analysis.findings.finding import Finding, Run
    from whywait.analysis.functions import Division, Function

NAME = "functions"
TITLE = "Functions between calls"
DOCUMENT = """\
A remark on each finding whose call paths make others wait, if the trace has [samples](functions.md): the functions in
which the late ranks spend more time than those that wait. Up to three functions are named, each with at least a tenth
of the cost that is no chance (at 99%, with 20 samples on both sides), if they have at least half of it together. Time
in the system, and time without a core, is told from functions where samples follow a clock that stands still then.
"""
FIGURES = Figures(
    function=("name", "the function, with its caller"),
    place=("name", "file and line of the function"),
    function_cost=("s", "the waiting that the function causes"),
    error=("s", "the standard deviation of that, times 1.96"),
    part=("share", "its share of the waiting that the call path causes"),
    functions_samples=("count", "the samples that this rests on"),
)

# More than this is all of it.
_ALL = 0.995
_LIKELY = 1.96


def remark(run: Run, found: list[Finding]) -> None:
    """Add to findings which functions are to blame."""
    for one in found:
        if one.base != "cpu" or not one.causes:
            continue
        division = divided(run.result, one.causes, one.ranks)
        if division is None or division.cost <= 0:
            continue
        named = division.named
        one.remark(NAME, _words(run, division, named) if named else _chance(division))
        one.evidence[NAME] = {
            "samples": division.samples,
            "waiter_samples": division.waiter_samples,
            "costs": [
                {"callpath": each.callpath, "cost": each.cost, "deviation": each.deviation}
                for each in division.functions
            ],
        }


def _words(run: Run, division: Division, named: Sequence[Function]) -> Words:
    """Return the words for functions that are to blame."""
    samples = division.samples + division.waiter_samples
    parts = []
    for one in named:
        cost = FIGURES.say("{function_cost} ± {error}", function_cost=one.cost, error=_LIKELY * one.deviation)
        parts.append(_place(run, one) + ": " + _part(one.cost / division.cost) + ", " + cost)
    words = Words("By ") + FIGURES.say("{functions_samples}", functions_samples=samples)
    words += " samples, the difference is in " if len(named) == 1 else " samples, the differences are in "
    return words + joined(parts) + "."


def _part(share: float) -> Words:
    return Words("all of it") if share >= _ALL else FIGURES.say("{part} of it", part=share)


def _place(run: Run, one: Function) -> Words:
    """Return the words for a function: its name with that of its caller, file, and line."""
    if one.callpath is None:
        return Words("the system, or time without a core")
    names = [short_name(name) for name in run.result.tree.path(one.callpath)[-2:]]
    words = FIGURES.say("{function}", function="/".join(names))
    at = source(run.result, one.callpath)
    return words if at is None else words + FIGURES.say(" ({place})", place=at)


def _chance(division: Division) -> Words:
    """Return the words if samples do not decide."""
    samples = division.samples + division.waiter_samples
    return FIGURES.say(
        "Which function takes longer cannot be told from {functions_samples} samples: record longer, or with a higher "
        "rate.",
        functions_samples=samples,
    )
