"""Functions in which two runs spend different time, by their samples."""

from __future__ import annotations

from collections import defaultdict
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

from whywait.analysis.functions.functions import functions, source
from whywait.analysis.functions.tree import LIKELY, Function, largest, notable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whywait.model.result import ResultData

#: A function by the names on its call path; nothing stands for time in the system, or without a core.
Names = tuple[str, ...]
_AWAY: Names = ()


class _Run:
    """The functions of a run."""

    def __init__(self, result: ResultData) -> None:
        self._result = result
        self.values: dict[Names, float] = defaultdict(float)
        self.variances: dict[Names, float] = defaultdict(float)
        self.samples: dict[Names, int] = defaultdict(int)
        self.sources: dict[Names, str | None] = {}
        self.callers: dict[Names, Names | None] = {}
        self._add(functions(result), None)

    def _add(self, found: Sequence[Function], caller: Names | None) -> None:
        for one in found:
            names = _AWAY if one.callpath is None else tuple(self._result.tree.path(one.callpath))
            self.values[names] += one.value
            self.variances[names] += one.deviation**2
            self.samples[names] += one.samples
            self.sources[names] = None if one.callpath is None else source(self._result, one.callpath)
            # One that samples saw in several call paths of the events may be the outermost one of some.
            self.callers[names] = caller if self.callers.get(names, caller) == caller else None
            self._add(one.calls, names)


def function_changes(first: ResultData, second: ResultData, least: float) -> dict[str, Any] | None:
    """Return the functions in which one run certainly spends more or less time than another one, by samples.

    Parameters
    ----------
    first, second
        The runs.
    least
        The smallest difference to return, seconds.

    Returns
    -------
    dict
        ``samples`` (of both runs) and ``functions``, the largest differences first, each with ``callpath`` (names;
        None for time in the system or without a core), ``source``, ``first`` and ``second`` (s, on all locations, with
        what the function calls), ``difference``, and ``error`` (of that, at 95%). Differences that may be chance at 99%
        are left out. None if not both runs have samples.
    """
    if not all(one.facts.get("samples") for one in (first, second)):
        return None
    runs = _Run(first), _Run(second)
    paths = sorted(runs[0].values.keys() | runs[1].values.keys())
    numbers = {names: number for number, names in enumerate(paths)}
    below: dict[Names | None, list[Names]] = defaultdict(list)
    for names in paths:
        callers = {run.callers[names] for run in runs if names in run.callers}
        below[callers.pop() if len(callers) == 1 else None].append(names)

    def difference(names: Names) -> Function:
        calls = [difference(one) for one in below[names]] if names else []
        value = runs[1].values[names] - runs[0].values[names]
        deviation = sqrt(sum(run.variances[names] for run in runs))
        return Function(numbers[names], value, deviation, sum(run.samples[names] for run in runs), calls)

    outermost = [difference(names) for names in below[None]]
    found = largest(notable(outermost, least, certain=True), least, inf, certain=True)
    found.sort(key=lambda one: -abs(one.value))
    return {
        "samples": [one.facts["samples"] for one in (first, second)],
        "functions": list(_rows(found, paths, runs)),
    }


def _rows(found: Sequence[Function], paths: Sequence[Names], runs: tuple[_Run, _Run]) -> Iterator[dict[str, Any]]:
    for one in found:
        names = paths[one.callpath or 0]
        yield {
            "callpath": list(names) or None,
            "source": next((run.sources[names] for run in reversed(runs) if run.sources.get(names)), None),
            "first": runs[0].values[names],
            "second": runs[1].values[names],
            "difference": one.value,
            "error": LIKELY * one.deviation,
        }
