"""Functions between events: what samples of the call path say, and when that is enough to name one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from whywait.analysis.functions.tree import LIKELY, largest, notable, trees
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.analysis.functions.tree import Function
    from whywait.model.result import ResultData

# Functions are named if they have this share of a cost, by this many samples at the late locations, and at the others.
_MOST, _ENOUGH = 0.5, 20
# So many are named, with at least this share each.
_TOGETHER, _PART = 3, 0.2
# Smaller shares of a call path are not listed.
_SMALL = 0.05
# Below this share of a time, the system has no part in it; from so many switches on, these are recorded and explain it.
_LITTLE, _SWITCHES = 0.1, 10
# A thread that gave up its core more often than this share of the times that it was taken may have slept for long.
_RARE = 0.05


@dataclass(frozen=True)
class Division:
    """The cost of call paths by function.

    Attributes
    ----------
    functions
        The outermost functions, each with what it calls.
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
        return sum(one.value for one in self.functions)

    @property
    def named(self) -> Sequence[Function]:
        """The functions to blame, which have most of the cost together; none if that is chance."""
        few = self.waiter_samples and self.waiter_samples < _ENOUGH
        if self.samples < _ENOUGH or few or self.cost <= 0 or self.is_doubtful:
            return []
        least = _PART * self.cost
        large = [one for one in notable(self.functions, least, certain=True) if one.value > 0][:_TOGETHER]
        if sum(one.value for one in large) < _MOST * self.cost:
            return []
        return largest(large, least, _TOGETHER, certain=True)

    @property
    def less(self) -> Sequence[Function]:
        """The functions of which late locations certainly do less than the others, if there is one to blame."""
        if not self.named:
            return []
        least = _PART * self.cost
        small = [one for one in notable(self.functions, least, certain=True) if one.value < 0]
        return largest(small, least, len(small), certain=True)

    @property
    def listed(self) -> Sequence[Function]:
        """The functions with some part in the cost, the costliest first."""
        least = _SMALL * self.cost
        return largest(notable(self.functions, least), least, inf)


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
    samples = table["samples"].to_numpy() + table["waiter_samples"].to_numpy()
    return Division(
        trees(result.tree, _rows(result, table), table["cost"].to_numpy(), _variances(table), samples),
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
    """What late ranks used of the system in some call paths more than the others, a location; or what all used.

    Attributes
    ----------
    time, away
        All time, and that in the system or without a core but for page faults, in seconds.
    system
        Processor time in the system, in seconds.
    faults
        Page faults.
    waits, preemptions
        How often the thread gave up its core, and how often another one took it.
    own_waits, own_preemptions
        The same of the late ranks alone, all of them together.
    """

    time: float
    away: float
    system: float
    faults: float
    waits: float
    preemptions: float

    own_waits: float
    own_preemptions: float

    @property
    def whereabouts(self) -> str:
        """Where the threads were in the time in the system or without a core, as far as that is known.

        Processor time in the system is counted from sample to sample, so that some of it may be that of calls: little
        is evidence, much is not. How long a thread slept is not counted, only how often.
        """
        if self.own_waits + self.own_preemptions < _SWITCHES or self.system >= _LITTLE * self.away:
            return "in the system, or without a core"
        return "without a core" if self.own_waits <= _RARE * self.own_preemptions else "asleep, or without a core"


def usage(result: ResultData, callpaths: Collection[int], ranks: Collection[int] = ()) -> Usage | None:
    """Return what late ranks used of the system more than the others, or what all used together if none are named.

    None if there are no others.
    """
    table = result.tables.function_times
    table = table.filter(np.isin(table["recorded_callpath"].to_numpy(), list(callpaths)))
    location = table["location"].to_numpy().astype(np.int64)
    is_late = np.isin(result.places.rank[location], list(ranks))
    late, others = (np.unique(location[rows]).size for rows in (is_late, ~is_late))
    if ranks and not (late and others):
        return None
    sign = np.where(is_late, 1 / late, -1 / others) if ranks else np.ones(len(location))
    is_away = _numbers(result, table) == len(result.tree)

    def more(column: str, rows: npt.NDArray[np.bool_] | bool = True) -> float:
        return float((table[column].to_numpy() * sign * rows).sum())

    def own(column: str) -> float:
        return float((table[column].to_numpy() * (sign > 0)).sum())

    return Usage(
        more("time"),
        more("time", is_away),
        more("system_time"),
        more("faults"),
        more("voluntary_switches"),
        more("involuntary_switches"),
        own("voluntary_switches"),
        own("involuntary_switches"),
    )


def _rows(result: ResultData, table: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the recorded and the sampled call path of rows."""
    return table["recorded_callpath"].to_numpy().astype(np.int64), _numbers(result, table)


def _variances(table: pa.Table, column: str = "inclusive_deviation") -> npt.NDArray[np.float64]:
    variances: npt.NDArray[np.float64] = table[column].to_numpy() ** 2
    return variances


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
        ``callpath`` (names; None in the system or without a core, and then ``away`` says which of these, if that is
        known), ``callpath_id``, ``source``, ``time`` (s), ``share``
        (of the call path), ``error`` (of the share, at 95%), ``samples`` and ``doubtful`` (whether ranks share cores
        and were sampled at ticks of the kernel), each with what the function calls; nothing if the call path itself is
        all.
    """
    if not result.facts.get("samples"):
        return []
    table = result.tables.function_times
    table = table.filter(table["recorded_callpath"].to_numpy() == callpath)
    if not table.num_rows:
        return []
    name = "critical" if critical else "time"
    total = float(table[name].to_numpy().sum())
    if not total or int(table["samples"].to_numpy().sum()) < _ENOUGH:
        return []
    least = _SMALL * total
    found = [
        {
            **_place(result, one, callpath),
            "time": one.value,
            "share": one.value / total,
            "error": LIKELY * one.deviation / total,
            "samples": one.samples,
            "doubtful": _is_doubtful(result, [callpath]),
        }
        for one in largest(notable(_timed(result, table, name), least), least, inf)
    ]
    return [] if [one["callpath_id"] for one in found] == [callpath] else found


def functions(result: ResultData) -> list[Function]:
    """Return the outermost functions in the time of all call paths, on all locations, each with what it calls."""
    return _timed(result, result.tables.function_times, "time")


def _timed(result: ResultData, table: pa.Table, name: str) -> list[Function]:
    """Return the outermost functions in some rows of `function_times`, by their time, or that on the critical path."""
    values, variances = table[name].to_numpy(), _variances(table, _DEVIATIONS[name])
    return trees(result.tree, _rows(result, table), values, variances, table["samples"].to_numpy())


def longest_functions(result: ResultData, count: int) -> list[Function]:
    """Return the functions that only samples have seen with the largest parts of the critical path, the longest first.

    Each is taken with what it calls; none with less than a twentieth of the path is returned.
    """
    if not result.facts.get("samples"):
        return []
    table = result.tables.function_times
    least = _SMALL * float(table["critical"].to_numpy().sum())
    found = largest(notable(_timed(result, table, "critical"), least), least, inf) if least > 0 else []
    return [one for one in found if is_of_samples(one.callpath, result)][:count]


def is_of_samples(callpath: int | None, result: ResultData) -> TypeGuard[int]:
    """Return whether only samples have seen a call path."""
    return callpath is not None and callpath >= result.facts["callpaths"]


def by_location(result: ResultData, callpath: int) -> npt.NDArray[np.float64]:
    """Return how long a sampled call path ran on each location, with what it calls, in seconds."""
    table, tree = result.tables.function_times, result.tree
    begin = int(tree.position[callpath])
    position = np.append(tree.position, -1)[_numbers(result, table)]
    here = (position >= begin) & (position < int(tree.end[begin]))
    return sum_at(
        table["location"].to_numpy().astype(np.int64)[here], table["time"].to_numpy()[here], len(result.places)
    )


# The standard deviations of times with what functions call.
_DEVIATIONS = {"time": "inclusive_deviation", "critical": "inclusive_critical_deviation"}


def _place(result: ResultData, one: Function, callpath: int, late: Collection[int] = ()) -> dict[str, Any]:
    """Return where a function is; of time that is none of a function, where late ranks were, or all."""
    number = one.callpath
    used = usage(result, [callpath], late) if number is None else None
    return {
        "callpath": None if number is None else result.tree.path(number),
        "callpath_id": number,
        "source": None if number is None else source(result, number),
        "away": None if used is None else used.whereabouts,
    }


def costs(result: ResultData, callpath: int) -> list[dict[str, Any]]:
    """Return the functions in the delay cost of a call path, the costliest first.

    Returns
    -------
    list of dict
        ``callpath`` (names; None in the system or without a core, and then ``away`` says which of these, if that is
        known), ``callpath_id``, ``source``, ``cost`` (s; negative
        if late locations spend less time in it), ``deviation`` (its standard deviation, s), ``share`` (of the cost),
        ``certain`` (whether it is no chance) and ``doubtful`` (whether ranks share cores and were sampled at ticks of
        the kernel), each with what the function calls; nothing if the call path itself is all.
    """
    division = divided(result, [callpath])
    if division is None or division.cost <= 0:
        return []
    table = result.tables.function_costs
    causes = (table["recorded_callpath"].to_numpy() == callpath) & (table["cost"].to_numpy() > 0)
    late = set(result.places.rank[table["location"].to_numpy()[causes]].tolist())
    found = [
        {
            **_place(result, one, callpath, late),
            "cost": one.value,
            "deviation": one.deviation,
            "share": one.value / division.cost,
            "certain": one.is_certain,
            "doubtful": division.is_doubtful,
        }
        for one in division.listed
    ]
    return [] if [one["callpath_id"] for one in found] == [callpath] else found


def with_source(result: ResultData, callpath: int) -> int | None:
    """Return the innermost function of a sampled call path whose source is known: it, or what it was called by.

    None if there is none, or it is one of the recorded call path.
    """
    at: int = callpath
    while at >= 0 and source(result, at) is None:
        at = int(result.tree.parents[at])
    return at if at == callpath or (at >= 0 and is_of_samples(at, result)) else None


def source(result: ResultData, callpath: int) -> str | None:
    """Return file and first line of the function of a call path; None if they are not recorded."""
    row = result.tree.regions.slice(result.tree.region_rows[callpath], 1).to_pylist()[0]
    if not row["file"]:
        return None
    return f"{row['file']}:{row['begin_line']}" if row["begin_line"] else str(row["file"])
