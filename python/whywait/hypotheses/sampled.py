"""Hypotheses about functions that only samples have seen, as changes of the call paths that the events have.

A call path whose function `f` has the share `p` of the time on a location gets the factor `1 - p (1 - F)` there if the
time of `f` is multiplied by `F`. Several functions of a call path are changed together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import whywait._native as _native
from whywait.model.selection import all_callpaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.hypotheses.kinds import Hypothesis, Scale
    from whywait.model.result import ResultData

# Locations whose factors differ by less are changed together.
_DIGITS = 3


@dataclass(frozen=True)
class Factor:
    """What the time of a call path is multiplied by on some locations."""

    callpath: int
    locations: list[int]
    factor: float


def sampled(result: ResultData, path: str) -> list[int]:
    """Return the call paths of a name that only samples have seen, by number."""
    if not result.facts.get("samples"):
        return []
    numbers = result.tree.preorder[all_callpaths(result.tree, path)].tolist()
    return [number for number in numbers if number >= result.facts["callpaths"]]


def refuse(hypothesis: Hypothesis, path: str, result: ResultData) -> None:
    """Refuse to change functions that only samples have seen in other ways: nothing says when each call of them was."""
    if (found := sampled(result, path)) and len(found) == len(all_callpaths(result.tree, path)):
        raise _native.UsageError(
            f"{hypothesis}: only samples have seen {path}, so its time can be scaled, for all of its calls"
        )


class Functions:
    """Collects what hypotheses do to functions that only samples have seen."""

    def __init__(self, result: ResultData) -> None:
        table = result.tables.function_times
        self._function = table["callpath"].fill_null(len(result.tree)).to_numpy()
        self._location = table["location"].to_numpy()
        columns = {name: table[name].to_numpy() for name in _Row._fields}
        # Samples do not say how long a thread was in the system, or without a core.
        columns["critical"] = columns["critical"] * (self._function != len(result.tree))
        self._rows = [_Row(*row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
        #: The part of the time of each row that goes away.
        self._less: dict[int, float] = defaultdict(float)

    def scale(self, hypothesis: Scale, functions: list[int], locations: list[bool]) -> None:
        """Take a hypothesis: the time of some functions is multiplied by a factor on these locations, or on all."""
        here = np.isin(self._function, functions)
        if locations:
            here &= np.array(locations)[self._location]
        for row in np.flatnonzero(here).tolist():
            self._less[row] += 1 - hypothesis.factor

    def factors(self) -> Iterator[Factor]:
        """Yield what call paths of the events are multiplied by."""
        of_factor: dict[tuple[int, float], list[int]] = defaultdict(list)
        for (recorded, location), (whole, rows) in self._changed().items():
            less = sum(self._less[row] * self._rows[row].time for row in rows) / whole.time
            of_factor[recorded, round(1 - less, _DIGITS)].append(location)
        for (recorded, factor), locations in sorted(of_factor.items()):
            yield Factor(recorded, locations, max(factor, 0.0))

    def deviation(self) -> float:
        """Return the standard deviation of the time that goes away on the critical path, seconds.

        A sample loses the part of its function, so it is drawn from parts with a known mean and variance.
        """
        variance = 0.0
        for whole, rows in self._changed().values():
            seen = whole.samples
            if not seen:
                continue
            # As for shares, one sample more is assumed to have seen these functions, and one another.
            parts = [(self._less[row], (self._rows[row].samples + 1 / len(rows)) / (seen + 2)) for row in rows]
            mean = sum(part * share for part, share in parts)
            variance += whole.critical**2 * (sum(part**2 * share for part, share in parts) - mean**2) / seen
        return sqrt(variance)

    def _changed(self) -> dict[tuple[int, int], tuple[_Row, list[int]]]:
        """Return the call paths and locations that change: the sum of their rows, and the rows that do."""
        rows: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number in self._less:
            changed = self._rows[number]
            if changed.time > 0:
                rows[changed.recorded_callpath, changed.location].append(number)
        whole: dict[tuple[int, int], _Row] = {}
        for row in self._rows:
            if (key := (row.recorded_callpath, row.location)) in rows:
                whole[key] = whole[key].plus(row) if key in whole else row
        return {key: (whole[key], of_key) for key, of_key in rows.items()}


class _Row(NamedTuple):
    """What a function has on a location."""

    recorded_callpath: int
    location: int
    time: float
    critical: float
    samples: int

    def plus(self, other: _Row) -> _Row:
        return self._replace(
            time=self.time + other.time,
            critical=self.critical + other.critical,
            samples=self.samples + other.samples,
        )
