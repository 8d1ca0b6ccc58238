"""Sampled call paths as trees: what each has with all that it calls, and which of them to speak of.

Samples lie in the innermost functions, often below many small ones: inlined functions, or those of a library. So a
value is told of the function that has most of it, together with what that calls, and of no smaller part.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.model.calltree import CallTree

#: Standard deviations of what holds at 95%, and at 99%.
LIKELY, CERTAIN = 1.96, 2.58
# Functions stand for what calls them unless more than this share of it is elsewhere.
_ELSEWHERE = 0.25


@dataclass(frozen=True)
class Function:
    """A sampled call path, with what it calls.

    Attributes
    ----------
    callpath
        Its number; None for time in the system, or without a core.
    value, deviation
        What it has, with what it calls, and the standard deviation of that, in seconds.
    samples
        The number of samples in it, and in what it calls.
    calls
        What it calls.
    """

    callpath: int | None
    value: float
    deviation: float
    samples: int
    calls: Sequence[Function] = field(repr=False)

    @property
    def is_certain(self) -> bool:
        """Whether its value is no chance."""
        return abs(self.value) > CERTAIN * self.deviation


def deviation_of_share(share: float, samples: int) -> float:
    """Return the standard deviation of a share that samples tell; none is certain, be it nothing or all."""
    return sqrt(max(share * (1 - share), 1 / samples) / samples)


def largest(functions: Sequence[Function], least: float, slots: float, *, certain: bool = False) -> list[Function]:
    """Return the functions to speak of, the largest first: instead of one those that it calls and that have nearly all.

    Parameters
    ----------
    functions
        The functions to choose from.
    least
        The smallest value to speak of.
    slots
        How many functions may be returned, if there are not as many already.
    certain
        Whether to leave out what may be chance.
    """
    found: list[Function] = []
    for number, one in enumerate(functions):
        free = slots - len(found) - (len(functions) - number - 1)
        # A chain of callers can be too long for recursion.
        while len(parts := _standing_for(one, least, free, certain=certain)) == 1:
            [one] = parts  # noqa: PLW2901
        found += largest(parts, least, free, certain=certain) if parts else [one]
    return sorted(found, key=lambda one: -one.value)


def _standing_for(one: Function, least: float, free: float, *, certain: bool) -> list[Function]:
    """Return the functions to speak of instead of their caller, if they have nearly all of it and are few enough."""
    parts = notable(one.calls, least, certain=certain)
    is_nearly_all = bool(parts) and abs(1 - sum(part.value for part in parts) / one.value) <= _ELSEWHERE
    return parts if is_nearly_all and len(parts) <= free else []


def notable(functions: Sequence[Function], least: float, *, certain: bool = False) -> list[Function]:
    """Return the functions with at least so large a value, the largest first."""
    found = [one for one in functions if abs(one.value) >= least and (one.is_certain or not certain)]
    return sorted(found, key=lambda one: -one.value)


def trees(
    tree: CallTree,
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: npt.NDArray[np.float64],
    variances: npt.NDArray[np.float64],
    samples: npt.NDArray[np.int64],
) -> list[Function]:
    """Return the functions that samples saw below recorded call paths, the outermost ones, each with what it calls.

    Parameters
    ----------
    tree
        The call tree.
    rows
        The recorded and the sampled call path of each row; the number of call paths for none.
    values, variances, samples
        For each row what the call path has itself, the variance of that with what it calls, and its samples.
    """
    size = len(tree) + 1
    keys, inverse = np.unique(rows[0] * size + rows[1], return_inverse=True)
    sums = [np.bincount(inverse, column, minlength=keys.size) for column in (values, variances, samples)]
    has: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    folded = _Folded(tree)
    for key, value, variance, count in zip(keys.tolist(), *(column.tolist() for column in sums), strict=True):
        recorded, callpath = divmod(key, size)
        within = folded.function(callpath, recorded)
        if not folded.recurs(callpath):
            has[within][1] += variance
        while within >= 0:
            has[within][0] += value
            has[within][2] += count
            within = folded.around.get(within, -1)
    # What is called before its callers. Call paths can be too deep for recursion.
    below: dict[int, list[Function]] = defaultdict(list)
    for callpath in sorted(has, key=lambda callpath: (folded.depth.get(callpath, 0), callpath), reverse=True):
        value, variance, count = has[callpath]
        calls = below.pop(callpath, [])[::-1]
        one = Function(None if callpath == len(tree) else callpath, value, sqrt(variance), int(count), calls)
        below[folded.around.get(callpath, -1)].append(one)
    return below[-1][::-1]


class _Folded:
    """Sampled call paths without recursion: a function that is called again within itself goes on.

    Attributes
    ----------
    around
        What calls a function, if it is not the outermost one below the recorded call path.
    depth
        How many functions are around it.
    """

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self.around: dict[int, int] = {}
        self.depth: dict[int, int] = {}
        # The call path that stands for another one; and for a function below one that stands for others.
        self._of: dict[int, int] = {}
        self._below: dict[tuple[int, int], int] = {}
        self._recurring: set[int] = set()

    def function(self, callpath: int, recorded: int) -> int:
        """Return the call path that stands for one below a recorded call path."""
        tree, chain = self._tree, []
        if callpath == len(tree) or _contains(tree, callpath, recorded):
            return callpath
        while callpath not in self._of:
            chain.append(callpath)
            caller = tree.parents[callpath]
            if caller < 0 or _contains(tree, caller, recorded):
                break
            callpath = caller
        else:
            chain.append(callpath)
        for one, caller in zip(reversed(chain), [None, *reversed(chain)], strict=False):
            if one not in self._of:
                self._of[one] = one if caller is None else self._fold(one, self._of[caller])
        return self._of[chain[0]]

    def recurs(self, callpath: int) -> bool:
        """Whether a call path is one of a function within itself."""
        return callpath in self._recurring

    def _fold(self, callpath: int, caller: int) -> int:
        regions = self._tree.region_rows
        within = caller
        while within >= 0 and regions[within] != regions[callpath]:
            within = self.around.get(within, -1)
        if within >= 0:
            self._recurring.add(callpath)
            return within
        one = self._below.setdefault((caller, int(regions[callpath])), callpath)
        if one == callpath:
            self.around[one] = caller
            self.depth[one] = self.depth.get(caller, 0) + 1
        return one


def _contains(tree: CallTree, callpath: int, recorded: int) -> bool:
    """Return whether a recorded call path is another one, or below it."""
    begin = int(tree.position[callpath])
    return begin <= int(tree.position[recorded]) < int(tree.end[begin])
