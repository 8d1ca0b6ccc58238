"""Correlation of counters and metrics over ranks, iterations or time: Pearson's r, without a significance test."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.counters.counters import Counters
from whywait.analysis.counters.queues import Queues
from whywait.analysis.devices.kernels import Devices
from whywait.analysis.iterations import iterations
from whywait.model.counters import name_of_maximum
from whywait.model.profile import sum_at
from whywait.model.selection import Processes, position_in_run

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.counters.counters import Counter
    from whywait.model.metric_values import Window
    from whywait.model.result import ResultData


#: Loads of processes with devices (`whywait.analysis.devices.load.loads`), as quantities: their columns.
LOADS = {
    "load_gpu": "load",
    "load_gpu_adjusted": "load_adjusted",
    "gpu_time": "gpu_time",
    "gpu_time_adjusted": "gpu_time_adjusted",
    "load_host": "host",
}


class Correlation(NamedTuple):
    """Pearson's r of two quantities over n ranks, iterations or bins; None if n < 3 or a quantity is constant."""

    x: str
    y: str
    n: int
    r: float | None


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float | None:
    """Return Pearson's r; None for fewer than 3 pairs or a constant quantity."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.size != b.size:
        raise _native.UsageError(f"{a.size} values cannot be paired with {b.size}")
    if a.size < 3:
        return None
    a, b = a - a.mean(), b - b.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm > 0 else None


def by_rank(result: ResultData, name: str) -> npt.NDArray[np.float64]:
    """Return the sum of a metric, or of a counter of the trace or of queues, over each rank.

    For levels of queues, the maxima (``mpi_max_unexpected_queue``) or the means (``mpi_unexpected_queue``). For
    processes with devices, their loads (`LOADS`).

    Raises
    ------
    whywait.UsageError
        If the result has none of these.
    """
    processes = Processes(result)
    if name in result.profile.metrics:
        return processes.sums(name)
    counters = Counters(result)
    if name not in counters and name in LOADS:
        return _of_devices(result, processes, name)
    if name not in counters and is_queue_counter(name):
        return _of_queues(Queues(result), processes, name)
    if name not in counters:
        raise _native.UsageError(f"there is no metric and no counter {name!r}")
    sums = counters[name].by_location()
    value = np.zeros(len(processes))
    known = sums["rank"].to_numpy() >= 0
    np.add.at(value, np.searchsorted(processes.ranks, sums["rank"].to_numpy()[known]), sums["value"].to_numpy()[known])
    return value


def is_queue_counter(name: str) -> bool:
    """Return whether a name is that of a sum or level of queues, or of its maximum."""
    levels = _native.queue_levels()
    return name in {*_native.queue_metrics(), *levels, *map(name_of_maximum, levels)}


def _of_queues(queues: Queues, processes: Processes, name: str) -> npt.NDArray[np.float64]:
    if name in _native.queue_metrics():
        found, column, names = queues.sums, "value", {name}
    else:
        column = "mean" if name in _native.queue_levels() else "maximum"
        found, names = queues.maxima, {name, name_of_maximum(name)}
    value = np.zeros(len(processes))
    for row in found.select(["metric", "rank", column]).to_pylist():
        if row["metric"] in names and row["rank"] is not None and row["rank"] >= 0:
            value[np.searchsorted(processes.ranks, row["rank"])] += row[column]
    return value


def _of_devices(result: ResultData, processes: Processes, name: str) -> npt.NDArray[np.float64]:
    loads = {row["rank"]: row[LOADS[name]] for row in Devices(result).loads()["processes"]}
    if not loads:
        raise _native.UsageError(f"{name} is unknown: the run has no accelerators")
    return np.array([loads.get(rank, 0.0) for rank in processes.ranks.tolist()])


class Values:
    """The values of metrics and counters that are correlated.

    Parameters
    ----------
    result
        The result.
    over
        The dimension of the values: ``"ranks"``; the ``"iterations"`` of a loop, over all ranks; or ``"bins"`` of time
        of equal width, over all ranks.
    bins
        The number of bins.
    loop
        The loop, as in `whywait.Result.iterations`; None for the main loop.

    Raises
    ------
    whywait.UsageError
        If there is no such loop, or the result lacks the required events.
    """

    def __init__(
        self,
        result: ResultData,
        over: Literal["ranks", "iterations", "bins"] = "ranks",
        *,
        bins: int = 50,
        loop: str | int | None = None,
    ) -> None:
        if over not in ("ranks", "iterations", "bins"):
            raise _native.UsageError(f"over={over!r} is none of ranks, iterations and bins")
        self._result, self._over, self._bins = result, over, bins
        self.counters = Counters(result)
        self._windows: list[Window] = []
        if over == "bins":
            edges = np.linspace(0.0, result.facts["length"], bins + 1)
            self._windows = [result.window(*pair) for pair in pairwise(edges.tolist())]
        self._loop: pa.Table | None = None
        if over == "iterations":
            self._loop = iterations(result, loop)
            if self._loop is None:
                raise _native.UsageError("there is no main loop: name one")

    def of(self, name: str) -> npt.NDArray[np.float64]:
        """Return the values of a metric or a counter.

        Raises
        ------
        whywait.UsageError
            If there is none, or its values by iteration or bin are unknown.
        """
        if self._over == "ranks":
            return by_rank(self._result, name)
        if name in self.counters:
            counter = self.counters[name]
            if self._loop is None:
                return self._sum_by_bin(counter.series(self._bins))
            return _values_by_iteration(counter, self._loop)
        if name in _native.queue_metrics():
            return self._of_queues(name)
        if name not in self._result.profile.metrics:
            raise _native.UsageError(f"there is no metric and no counter {name!r}")
        if self._loop is not None:
            # The table has no columns for wait states that never occur.
            if self._result.profile.metrics[name].kind == "wait" and name not in self._loop.column_names:
                return np.zeros(self._loop.num_rows)
            if name in self._loop.column_names:
                values: npt.NDArray[np.float64] = self._loop[name].to_numpy()
                return values
        elif name in self._result.in_window:
            return np.array([window.total(name) for window in self._windows])
        raise _native.UsageError(f"{name} is not known by {self._over}: counters and wait states are")

    @cached_property
    def _queues(self) -> Queues:
        return Queues(self._result)

    def _of_queues(self, name: str) -> npt.NDArray[np.float64]:
        """Return the growth of a sum of queues by bin or iteration, over all ranks."""
        if self._loop is None:
            return self._queues.over(name, np.linspace(0.0, self._result.facts["length"], self._bins + 1))
        analysis = self._result.tables.analysis
        if analysis is None:
            raise _native.UsageError("a result on disk has no events: analyze the trace again")
        instances = pa.table(mpi.together(analysis.instances, _marker(self._loop)))
        value = self._queues.over_instances(name, instances)
        number = position_in_run(instances["location"].to_numpy().astype(np.int64))
        known = number < self._loop.num_rows
        return sum_at(number[known], value[known], self._loop.num_rows)

    def _sum_by_bin(self, course: pa.Table) -> npt.NDArray[np.float64]:
        return sum_at(course["bin"].to_numpy().astype(np.int64), course["value"].to_numpy(), self._bins)


def _marker(loop: pa.Table) -> int:
    """Return the number of the call path whose instances mark the iterations of a loop."""
    marker: int | None = loop["callpath_id"][0].as_py() if loop.num_rows else None
    if marker is None:
        raise _native.UsageError("iterations that a parameter marks have no counters: name a call path")
    return marker


def _values_by_iteration(counter: Counter, loop: pa.Table) -> npt.NDArray[np.float64]:
    """Return the value of a counter in each iteration, over all ranks."""
    found = counter.by_iteration(_marker(loop), to_next=True)
    number, value = found["iteration"].to_numpy().astype(np.int64), np.nan_to_num(found["value"].to_numpy())
    # Some ranks may have fewer iterations.
    known = number < loop.num_rows
    return sum_at(number[known], value[known], loop.num_rows)


def correlate(
    result: ResultData, x: str, y: str, over: Literal["ranks", "iterations", "bins"], bins: int, loop: str | int | None
) -> Correlation:
    """Correlate two quantities; see `whywait.Result.correlate`."""
    values = Values(result, over, bins=bins, loop=loop)
    a, b = values.of(x), values.of(y)
    return Correlation(x, y, a.size, pearson(a, b))


def with_waits(result: ResultData, x: str | None, values: Values | None = None) -> list[Correlation]:
    """Correlate a quantity, or each counter, with all wait states and completions, strongest correlation first.

    Parameters
    ----------
    result
        The result.
    x
        The quantity; None for all counters: those of the trace, and those of queues that were replayed.
    values
        The values to use; None for those by rank.
    """
    values = values or Values(result)
    waits = [metric.name for metric in result.profile.metrics if metric.kind in {"wait", "completion"}]
    sides = {y: values.of(y) for y in waits if result.profile.total(y)}
    queues = [name for name in _native.queue_metrics() if name in result.profile.metrics]
    found = []
    for name in [*values.counters, *queues] if x is None else [x]:
        a = values.of(name)
        found += [Correlation(name, y, a.size, pearson(a, b)) for y, b in sides.items()]
    return sorted(found, key=lambda one: (-abs(one.r or 0.0), one.x, one.y))
