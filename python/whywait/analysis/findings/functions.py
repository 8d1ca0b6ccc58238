"""Which function between calls takes longer, by samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, Words, joined
from whywait.analysis.functions.functions import divided, source, usage, with_source
from whywait.analysis.functions.tree import LIKELY
from whywait.model.names import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.analysis.findings.finding import Finding, Run
    from whywait.analysis.functions.functions import Division, Usage
    from whywait.analysis.functions.tree import Function

NAME = "functions"
TITLE = "Functions between calls"
DOCUMENT = """\
A remark on each finding whose call paths make others wait, if the trace has [samples](functions.md): the functions in
which the late ranks spend more time than those that wait, each with what it calls. Up to three functions are named,
each with at least a fifth of the cost that is no chance (at 99%, with 20 samples on both sides), if they have at
least half of it together; then also those with as large a part of which late ranks do less. Functions stand for their
caller if no more than a quarter of its part is elsewhere. Time in the system, and time without a core, is told from
functions where samples follow a clock that stands still then; what the late ranks used of the system says which of
the two it is, and page faults say why. Nothing is named where ranks share cores and were sampled at ticks of the
kernel: the scheduler switches at these.
"""
FIGURES = Figures(
    sampled_function=("name", "the function, with its caller"),
    function_source=("name", "file and line of the function"),
    function_cost=("s", "the waiting that the function causes, with what it calls"),
    function_error=("s", "the standard deviation of that, times 1.96"),
    function_part=("share", "its share of the waiting that the call path causes"),
    functions_samples=("count", "the samples that this rests on"),
    more_system=("s", "processor time in the system of a late rank, beyond that of the others"),
    more_faults=("count", "page faults of a late rank, beyond those of the others"),
    more_preemptions=("count", "how often another thread took the core of a late rank, beyond the others"),
    more_waits=("count", "how often a late rank gave up its core, beyond the others"),
)

# Where threads were, as the object of a preposition.
_AWAY = {
    "in the system, or without a core": "the system, or time without a core",
    "asleep, or without a core": "sleep, or time without a core",
    "without a core": "time without a core",
}
# More than this is all of it.
_ALL = 0.995
# The system has a part in it from this share on; fewer faults and switches explain nothing.
_PART, _FAULTS, _SWITCHES = 0.1, 1000, 10


def remark(run: Run, found: list[Finding]) -> None:
    """Add to findings which functions are to blame."""
    for one in found:
        if one.base != "cpu" or not one.causes:
            continue
        division = divided(run.result, one.causes, one.ranks)
        if division is None or division.cost <= 0:
            continue
        named = division.named
        used = usage(run.result, one.causes, one.ranks) if one.ranks else None
        words = _words(run, division, named, used) if named else _nothing(division)
        if division.less:
            words += Words(" They spend less time in ") + _parts(run, division, division.less, used) + "."
        if named:
            words += _why(used, is_away=any(each.callpath is None for each in named))
        one.remark(NAME, words)
        one.evidence[NAME] = {
            "samples": division.samples,
            "waiter_samples": division.waiter_samples,
            "costs": [
                {"callpath": each.callpath, "cost": each.value, "deviation": each.deviation} for each in division.listed
            ],
        }


def _words(run: Run, division: Division, named: Sequence[Function], used: Usage | None) -> Words:
    """Return the words for functions that are to blame."""
    samples = division.samples + division.waiter_samples
    words = Words("By ") + FIGURES.say("{functions_samples}", functions_samples=samples)
    words += " samples, the difference is in " if len(named) == 1 else " samples, the differences are in "
    return words + _parts(run, division, named, used) + "."


def _parts(run: Run, division: Division, functions: Sequence[Function], used: Usage | None) -> Words:
    """Return the words for functions with their parts of a cost, as amounts."""
    parts = []
    for one in functions:
        cost = FIGURES.say(
            "{function_cost} ± {function_error}", function_cost=abs(one.value), function_error=LIKELY * one.deviation
        )
        parts.append(_place(run, one, used) + ": " + _part(abs(one.value) / division.cost) + ", " + cost)
    return joined(parts)


def _part(share: float) -> Words:
    return Words("all of it") if share >= _ALL else FIGURES.say("{function_part} of it", function_part=share)


def _place(run: Run, one: Function, used: Usage | None) -> Words:
    """Return the words for a function: its name with that of its caller, file, and line."""
    if one.callpath is None:
        return Words(_AWAY[used.whereabouts] if used else "the system, or time without a core")
    words = _name(run, one.callpath)
    by = with_source(run.result, one.callpath)
    if by is None:
        return words
    at = FIGURES.say(" ({function_source})", function_source=source(run.result, by))
    return words + at if by == one.callpath else words + ", called by " + _name(run, by) + at


def _name(run: Run, callpath: int) -> Words:
    """Return the name of a function with that of its caller."""
    names = [short_name(name) for name in run.result.tree.path(callpath)[-2:]]
    return FIGURES.say("{sampled_function}", sampled_function="/".join(names))


def _why(used: Usage | None, *, is_away: bool) -> Words:
    """Return the words for why late ranks spend time in the system, or without a core if that is much of it."""
    if used is None or used.time <= 0:
        return Words("")
    if used.system >= _PART * used.time:
        words = FIGURES.say(" In the system it is {more_system} more than elsewhere", more_system=used.system)
        if (faults := round(used.faults)) < _FAULTS:
            return words + "."
        return words + FIGURES.say(", with {more_faults} more page faults.", more_faults=faults)
    if not is_away or used.away <= 0 or max(used.preemptions, used.waits) < _SWITCHES:
        return Words("")
    if used.preemptions >= used.waits:
        return FIGURES.say(
            " Another thread took its core {more_preemptions} times more often.",
            more_preemptions=round(used.preemptions),
        )
    return FIGURES.say(
        " It gave up its core {more_waits} times more often, to sleep or to read.", more_waits=round(used.waits)
    )


def _nothing(division: Division) -> Words:
    """Return the words if no function can be named."""
    if division.is_doubtful:
        return Words(
            "Functions are not named: ranks share cores, and were sampled at ticks of the kernel, at which these are "
            "switched. perf's clock does not mind (perf_event_paranoid of 2 or less)."
        )
    samples = division.samples + division.waiter_samples
    return FIGURES.say(
        "Which function takes longer cannot be told from {functions_samples} samples: record longer, or with a higher "
        "rate.",
        functions_samples=samples,
    )
