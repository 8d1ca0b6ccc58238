"""Functions between events: what samples of the call path say, and when that is enough to name one."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData

#: Standard deviations of what holds at 95%, and at 99%.
LIKELY, CERTAIN = 1.96, 2.58
# Functions are named if they have this share of a cost, by this many samples at the late locations, and at the others.
_MOST, _ENOUGH = 0.5, 20
# So many are named, with at least this share each.
_TOGETHER, _PART = 3, 0.2
# Smaller shares of a call path are not listed.
_SMALL = 0.05


@dataclass(frozen=True)
class Function:
    """A sampled call path, and its part in a cost.

    Attributes
    ----------
    callpath
        Its number; None for time in the system, or without a core.
    cost, deviation
        Its part of the cost, and the standard deviation of that, in seconds.
    """

    callpath: int | None
    cost: float
    deviation: float

    @property
    def is_certain(self) -> bool:
        """Whether it costs something with certainty, not by chance."""
        return self.cost - CERTAIN * self.deviation > 0


@dataclass(frozen=True)
class Division:
    """The cost of call paths by function.

    Attributes
    ----------
    functions
        The functions, the costliest first.
    samples, waiter_samples
        How many samples it rests on, at the locations that cost, and at those that wait.
    is_doubtful
        Whether samples may be wrong about the functions of these locations, which share cores and were sampled at ticks
        of the kernel.
    """

    functions: Sequence[Function]
    samples: int
    waiter_samples: int
    is_doubtful: bool = False

    @property
    def cost(self) -> float:
        """The cost of all functions."""
        return sum(one.cost for one in self.functions)

    @property
    def named(self) -> Sequence[Function]:
        """The functions to blame, which have most of the cost together; none if that is chance."""
        few = self.waiter_samples and self.waiter_samples < _ENOUGH
        if self.samples < _ENOUGH or few or self.cost <= 0 or self.is_doubtful:
            return []
        large = [one for one in self.functions[:_TOGETHER] if one.is_certain and one.cost >= _PART * self.cost]
        return large if sum(one.cost for one in large) >= _MOST * self.cost else []

    @property
    def less(self) -> Sequence[Function]:
        """The functions of which the late locations certainly do less than the others."""
        return [one for one in self.functions if one.cost + CERTAIN * one.deviation < 0]


def divided(result: ResultData, callpaths: Collection[int], ranks: Collection[int] = ()) -> Division | None:
    """Return the cost of call paths by function; None if samples say nothing about them.

    Parameters
    ----------
    result
        The result.
    callpaths
        The call paths that have the cost, by their numbers.
    ranks
        The ranks that cause waiting; all if there are none.
    """
    if not result.facts.get("samples"):
        return None
    table = result.tables.function_costs
    location = table["location"].to_numpy()
    here = np.isin(table["recorded_callpath"].to_numpy(), list(callpaths))
    if ranks:
        here &= np.isin(result.places.rank[location], list(ranks))
    table = table.filter(here)
    if not table.num_rows:
        return None
    function = _numbers(result, table)
    costs, variances = (
        sum_at(function, values, len(result.tree) + 1)
        for values in (table["cost"].to_numpy(), table["deviation"].to_numpy() ** 2)
    )
    order = np.unique(function)
    order = order[np.argsort(-costs[order], kind="stable")]
    return Division(
        [
            Function(None if number == len(result.tree) else number, float(costs[number]), sqrt(variances[number]))
            for number in order.tolist()
        ],
        int(table["samples"].to_numpy().sum()),
        int(table["waiter_samples"].to_numpy().sum()),
        _is_doubtful(result, callpaths),
    )


def _is_doubtful(result: ResultData, callpaths: Collection[int]) -> bool:
    table = result.tables.function_times
    here = np.isin(table["recorded_callpath"].to_numpy(), list(callpaths))
    return bool((table["doubtful"].to_numpy() & here).any())


@dataclass(frozen=True)
class Usage:
    """What late ranks used of the system in some call paths more than the others, a location.

    Attributes
    ----------
    away
        Time in the system or without a core, in seconds.
    system
        Processor time in the system, in seconds.
    faults
        Page faults.
    waits, preemptions
        How often the thread gave up its core, and how often another one took it.
    """

    away: float
    system: float
    faults: float
    waits: float
    preemptions: float


def usage(result: ResultData, callpaths: Collection[int], ranks: Collection[int]) -> Usage | None:
    """Return what late ranks used of the system more than the others; None if there are no others."""
    table = result.tables.function_times
    table = table.filter(np.isin(table["recorded_callpath"].to_numpy(), list(callpaths)))
    location = table["location"].to_numpy().astype(np.int64)
    is_late = np.isin(result.places.rank[location], list(ranks))
    late, others = (np.unique(location[rows]).size for rows in (is_late, ~is_late))
    if not late or not others:
        return None
    sign = np.where(is_late, 1 / late, -1 / others)
    is_away = _numbers(result, table) == len(result.tree)

    def more(column: str, rows: npt.NDArray[np.bool_] | bool = True) -> float:
        return float((table[column].to_numpy() * sign * rows).sum())

    return Usage(
        more("time", is_away),
        more("system_time"),
        more("faults"),
        more("voluntary_switches"),
        more("involuntary_switches"),
    )


def _numbers(result: ResultData, table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the call paths of rows; for those without one, a number after all others."""
    numbers: npt.NDArray[np.int64] = table["callpath"].fill_null(len(result.tree)).to_numpy().astype(np.int64)
    return numbers


def times(result: ResultData, callpath: int, *, critical: bool = False) -> list[dict[str, Any]]:
    """Return the functions in the time of a call path, over all locations, the longest first.

    Parameters
    ----------
    result
        The result.
    callpath
        The call path by its number.
    critical
        Whether to take only the time on the critical path.

    Returns
    -------
    list of dict
        ``callpath`` (names; None in the system or without a core), ``callpath_id``, ``source``, ``time`` (s), ``share``
        (of the call path), ``error`` (of the share, at 95%) and ``samples``; nothing if the call path itself is all.
    """
    if not result.facts.get("samples"):
        return []
    table = result.tables.function_times
    table = table.filter(table["recorded_callpath"].to_numpy() == callpath)
    if not table.num_rows:
        return []
    function, size = _numbers(result, table), len(result.tree) + 1
    whole, on_path, samples = (
        sum_at(function, values, size)
        for values in (
            table["time"].to_numpy(),
            table["critical"].to_numpy(),
            table["samples"].to_numpy().astype(float),
        )
    )
    chosen = on_path if critical else whole
    total, seen = float(chosen.sum()), float(samples.sum())
    order = np.argsort(-chosen, kind="stable")
    found = []
    for number in order[chosen[order] >= _SMALL * total].tolist():
        if not chosen[number]:
            continue
        named = None if number == size - 1 else number
        share = float(chosen[number]) / total
        found.append(
            {
                "callpath": None if named is None else result.tree.path(named),
                "callpath_id": named,
                "source": None if named is None else source(result, named),
                "time": float(chosen[number]),
                "share": share,
                "error": LIKELY * sqrt(max(share * (1 - share), 1 / seen) / seen) if seen else 0.0,
                "samples": int(samples[number]),
            }
        )
    return [] if [one["callpath_id"] for one in found] == [callpath] else found


def costs(result: ResultData, callpath: int) -> list[dict[str, Any]]:
    """Return the functions in the delay cost of a call path, the costliest first.

    Returns
    -------
    list of dict
        ``callpath`` (names; None in the system or without a core), ``callpath_id``, ``source``, ``cost`` (s; negative
        if late locations spend less time in it), ``deviation`` (its standard deviation, s), ``share`` (of the cost) and
        ``certain`` (whether it is no chance); nothing if the call path itself is all.
    """
    division = divided(result, [callpath])
    if division is None or division.cost <= 0:
        return []
    found = [
        {
            "callpath": None if one.callpath is None else result.tree.path(one.callpath),
            "callpath_id": one.callpath,
            "source": None if one.callpath is None else source(result, one.callpath),
            "cost": one.cost,
            "deviation": one.deviation,
            "share": one.cost / division.cost,
            "certain": abs(one.cost) > CERTAIN * one.deviation,
        }
        for one in division.functions
        if abs(one.cost) >= _SMALL * division.cost
    ]
    return [] if [one["callpath_id"] for one in found] == [callpath] else found


def source(result: ResultData, callpath: int) -> str | None:
    """Return file and first line of the function of a call path; None if they are not recorded."""
    row = result.tree.regions.slice(result.tree.region_rows[callpath], 1).to_pylist()[0]
    if not row["file"]:
        return None
    return f"{row['file']}:{row['begin_line']}" if row["begin_line"] else str(row["file"])
