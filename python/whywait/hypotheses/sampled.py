"""Hypotheses about functions that only samples have seen, as changes of the call paths that the events have.

A call path whose function `f` has the share `p` of the time on a location gets the factor `1 - p (1 - F)` there if the
time of `f` is multiplied by `F`. Several functions of a call path are changed together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        self._rows = list(
            zip(*(table[name].to_pylist() for name in ("recorded_callpath", "location", "time")), strict=True)
        )
        #: The share of the time that goes away, by call path and location.
        self._less: dict[tuple[int, int], float] = defaultdict(float)

    def scale(self, hypothesis: Scale, functions: list[int], locations: list[bool]) -> None:
        """Take a hypothesis: the time of some functions is multiplied by a factor on these locations, or on all."""
        here = np.isin(self._function, functions)
        if locations:
            here &= np.array(locations)[self._location]
        whole: dict[tuple[int, int], float] = defaultdict(float)
        for recorded, location, time in self._rows:
            whole[recorded, location] += time
        for row in np.flatnonzero(here).tolist():
            recorded, location, time = self._rows[row]
            if time > 0:
                self._less[recorded, location] += time / whole[recorded, location] * (1 - hypothesis.factor)

    def factors(self) -> Iterator[Factor]:
        """Yield what call paths of the events are multiplied by."""
        of_factor: dict[tuple[int, float], list[int]] = defaultdict(list)
        for (recorded, location), less in self._less.items():
            of_factor[recorded, round(1 - less, _DIGITS)].append(location)
        for (recorded, factor), locations in sorted(of_factor.items()):
            yield Factor(recorded, locations, max(factor, 0.0))
