"""Load imbalance of processes with accelerators, as measured and adjusted by the efficiency of kernels.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), equations 4.3 to 4.5, for any number of kernels: the load of a process is
its computation while its devices are idle, plus the kernel time of each device times the efficiency of the kernels.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.computation import computes
from whywait.analysis.counters.counters import Counter, Counters
from whywait.analysis.efficiency.load_balance import Kernel, counted, geometry_efficiency, imbalance, share
from whywait.model.profile import sum_at
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.model.result import ResultData

#: Counters of streams that say how much of a device a kernel uses (Eberius, equation 4.3).
EFFICIENCIES = ("sm_efficiency", "warp_execution_efficiency")
#: Counters of the geometry of launches, and properties of devices, in any spelling.
_BLOCKS, _THREADS = re.compile(r"blocks.*grid", re.IGNORECASE), re.compile(r"threads.*block", re.IGNORECASE)
_MULTIPROCESSORS = re.compile(r"multi-?processors?$", re.IGNORECASE)
_WARP = re.compile(r"warp size$", re.IGNORECASE)
#: Counters of the share of time in which a device runs anything but copies, and their names for single devices.
_BUSY = re.compile(r"^(?!.*mem).*busy.?percent", re.IGNORECASE)
_OF_DEVICE = re.compile(r"(.+):device=(.+)")


class Efficiencies(NamedTuple):
    """The share of a device that each kernel uses (0..1), and its source.

    ``source``: ``counters``; ``geometry`` of the launches, an upper bound; ``busy``, the share of time in which the
    device does anything; or ``none``, if all are taken as 1.
    """

    values: npt.NDArray[np.float64]
    source: str


def efficiencies(result: ResultData, kernels: pa.Table, names: Sequence[str] = ()) -> Efficiencies:
    """Find the efficiency of kernels.

    Parameters
    ----------
    result
        The result.
    kernels
        The kernels: ``location``, ``begin``, ``end``, and ``efficiency`` by the counters of nvprof, or null.
    names
        Counters of streams, contexts, devices or nodes (shares or percentages) whose product is the efficiency; a name
        includes all counters ``NAME:device=N`` of single devices. If empty, the counters of nvprof; without those, an
        upper bound from the geometry of launches; without that, the share of time in which the device is busy.

    Raises
    ------
    whywait.UsageError
        If a named counter is not recorded at each kernel, or is neither a share nor a percentage.
    """
    if not names and kernels.num_rows and not kernels["efficiency"].null_count:
        return Efficiencies(kernels["efficiency"].to_numpy(), "counters")
    means = Means(result, kernels)
    # Beside the streams: those of their context, device or machine.
    if not names and kernels.num_rows and all(means.is_known(name) for name in EFFICIENCIES):
        names = EFFICIENCIES
    if names:
        return Efficiencies(np.prod([means.share(name) for name in names], axis=0), "counters")
    blocks, threads = means.spelled(_BLOCKS), means.spelled(_THREADS)
    devices = _geometry(result)
    locations = kernels["location"].to_pylist()
    if kernels.num_rows and blocks is not None and threads is not None and all(one in devices for one in locations):
        counts = list(zip(means.of(blocks).tolist(), means.of(threads).tolist(), locations, strict=True))
        of_kernels = {one: geometry_efficiency(round(one[0]), round(one[1]), *devices[one[2]]) for one in set(counts)}
        return Efficiencies(np.array([of_kernels[one] for one in counts]), "geometry")
    busy = means.spelled(_BUSY)
    if kernels.num_rows and busy is not None and not np.isnan(values := means.known(busy)).any():
        return Efficiencies(means.as_share(busy, values), "busy")
    return Efficiencies(np.ones(kernels.num_rows), "none")


def with_efficiency(result: ResultData, kernels: pa.Table) -> pa.Table:
    """Add a column ``efficiency``: how much of its device each kernel uses (Eberius, equation 4.3), or null.

    The mean over the runs of its call path on its stream, by the counters ``sm_efficiency`` and
    ``warp_execution_efficiency`` of the stream.
    """
    counters = Counters(result)
    if not all(name in counters for name in EFFICIENCIES):
        return kernels.append_column("efficiency", pa.nulls(kernels.num_rows, pa.float64()))
    means = [
        {
            (row["callpath_id"], row["location"]): share(
                name, float(_bounded(row["value"] / row["seconds"], counter)), percent=counter.is_percent
            )
            for row in counter.cells().to_pylist()
            if row["callpath_id"] is not None and row["seconds"]
        }
        for name, counter in ((name, counters[name]) for name in EFFICIENCIES)
    ]
    known = {place: means[0][place] * means[1][place] for place in means[0].keys() & means[1].keys()}
    # Number the distinct pairs of call path and location.
    size = len(result.places.rank)
    pairs = kernels["callpath_id"].to_numpy().astype(np.int64) * size + kernels["location"].to_numpy()
    places, where = np.unique(pairs, return_inverse=True)
    of_place = pa.array([known.get(divmod(place, size)) for place in places.tolist()], pa.float64())
    return kernels.append_column("efficiency", of_place.take(pa.array(where)))


def _bounded(means: npt.ArrayLike, counter: Counter) -> npt.NDArray[np.float64]:
    """Return means of a level, which rounding may put outside its values: 100% must not exceed 100%."""
    return np.clip(np.asarray(means, np.float64), counter.minimum, counter.maximum)


class Means:
    """The means of counters over kernels."""

    def __init__(self, result: ResultData, kernels: pa.Table) -> None:
        self._result, self._kernels = result, kernels
        self.counters = Counters(result)
        columns = {name: kernels[name].to_pylist() for name in ("location", "begin", "end")}
        stretches = columns | {"callpath": [None] * kernels.num_rows}
        self._found = self.counters.during(stretches, shared=True)
        # Counters of single devices, by their names without the device.
        self._of_devices: dict[str, dict[str, str]] = {}
        for name in self.counters:
            if match := _OF_DEVICE.fullmatch(name):
                self._of_devices.setdefault(match[1], {})[match[2]] = name

    def spelled(self, pattern: re.Pattern[str]) -> str | None:
        """Return the first counter with a name of a pattern."""
        single = (name for name in self.counters if not _OF_DEVICE.fullmatch(name))
        return next((name for name in [*self._of_devices, *single] if pattern.search(name)), None)

    def known(self, name: str) -> npt.NDArray[np.float64]:
        """Return the mean of a counter over each kernel, or NaN."""
        if name not in self._of_devices:
            return self._mean(name)
        devices = np.array(_device_names(self._result))[self._kernels["location"].to_numpy()]
        found = np.full(self._kernels.num_rows, np.nan)
        for device, counter in self._of_devices[name].items():
            found = np.where(devices == device, self._mean(counter), found)
        return found

    def _mean(self, name: str) -> npt.NDArray[np.float64]:
        if name not in self._found.column_names:
            return np.full(self._kernels.num_rows, np.nan)
        value: npt.NDArray[np.float64] = self._found[name].to_numpy()
        length = self._kernels["end"].to_numpy() - self._kernels["begin"].to_numpy()
        if self.counters[name].kind != "level":
            return value
        mean: npt.NDArray[np.float64] = np.divide(value, length, out=np.zeros(length.size), where=length > 0)
        return _bounded(mean, self.counters[name])

    def is_known(self, name: str) -> bool:
        """Return whether a counter is known at every kernel."""
        return (name in self.counters or name in self._of_devices) and not np.isnan(self.known(name)).any()

    def of(self, name: str) -> npt.NDArray[np.float64]:
        """Return the mean of a counter over each kernel, which must be known."""
        if name not in self.counters and name not in self._of_devices:
            raise _native.UsageError(f"there is no counter {name!r}; there are {', '.join(self.counters) or 'none'}")
        value = self.known(name)
        if np.isnan(value).all() and value.size:
            raise _native.UsageError(f"{name} is not recorded at the streams of devices")
        if np.isnan(value).any():
            raise _native.UsageError(f"{name} is not recorded at every kernel")
        return value

    def share(self, name: str) -> npt.NDArray[np.float64]:
        """Return the mean of a counter over each kernel as a share."""
        return self.as_share(name, self.of(name))

    def as_share(self, name: str, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return values of a counter as shares."""
        named = [name] if name in self.counters else list(self._of_devices[name].values())
        percent = any(self.counters[one].is_percent for one in named)
        return np.array([share(name, value, percent=percent) for value in values.tolist()])


def _device_names(result: ResultData) -> list[str]:
    """Return the name of the device of each location: of the node that its group belongs to."""
    definitions = result.run.definitions
    nodes = {row["id"]: row["name"] for row in definitions["SystemTreeNode"].to_pylist()}
    groups = {row["id"]: nodes.get(row["system_tree_parent"]) for row in definitions["LocationGroup"].to_pylist()}
    return [groups.get(group) or "" for group in result.locations["group"].to_pylist()]


def _geometry(result: ResultData) -> dict[int, tuple[int, int]]:
    """Return the numbers of multiprocessors and threads per warp of each location's device, if both are known."""
    definitions = result.run.definitions
    if "SystemTreeNodeProperty" not in definitions:
        return {}
    known: dict[int, dict[str, int]] = {}
    for row in definitions["SystemTreeNodeProperty"].to_pylist():
        for what, pattern in (("multiprocessors", _MULTIPROCESSORS), ("warp", _WARP)):
            text = row["string_value"] or str(row["value"][0]["bits"])
            if pattern.search(row["name"]) and text.isdecimal() and int(text):
                known.setdefault(row["system_tree_node"], {})[what] = int(text)
    nodes = {row["id"]: known.get(row["system_tree_parent"], {}) for row in definitions["LocationGroup"].to_pylist()}
    of_locations = {}
    for location, group in enumerate(result.locations["group"].to_pylist()):
        if len(node := nodes.get(group, {})) == 2:
            of_locations[location] = (node["multiprocessors"], node["warp"])
    return of_locations


def loads(
    result: ResultData,
    kernels: pa.Table,
    known: Efficiencies,
    *,
    callpath: str | int | None = None,
    window: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return the loads of processes with devices, and their imbalance.

    Parameters
    ----------
    result
        The result, with its events.
    kernels
        The kernels and copies of devices.
    known
        Their efficiencies.
    callpath
        Restricts computation and kernels to these call paths and those below, given as for `find_callpaths`; kernels
        count if they are launched there or have such a call path on their stream. None for all.
    window
        Restricts all times to a window, seconds since the begin of the trace. None for the whole run.

    Returns
    -------
    dict
        ``processes``: of each its ``rank``, ``host`` (seconds of computation while its devices run nothing),
        ``gpu_time`` and ``gpu_time_adjusted`` (kernels that overlap on a device count once, with the efficiency of the
        latest to start), ``load`` and ``load_adjusted``. ``load_imbalance_gpu`` and ``load_imbalance_gpu_adjusted``
        (equation 4.5), shares, or None. ``efficiency_source``, as `Efficiencies` has it.

    Raises
    ------
    whywait.UsageError
        If the result holds no events, or has no such call path.
    """
    if (analysis := result.tables.analysis) is None:
        raise _native.UsageError("a written result holds no events: ask the trace itself")
    if not kernels.num_rows:
        return {"processes": [], "load_imbalance_gpu": None, "load_imbalance_gpu_adjusted": None} | _source(known)
    works = computes(result)
    values = known.values
    rank = result.places.rank
    ranks = np.unique(kernels["rank"].to_numpy())
    if callpath is not None:
        inside = in_subtrees(result.tree, callpath)
        works &= inside
        launched = kernels["launch_callpath_id"].fill_null(len(inside)).to_numpy().astype(np.int64)
        kept = inside[kernels["callpath_id"].to_numpy()] | np.append(inside, False)[launched]
        kernels, values = kernels.filter(pa.array(kept)), values[kept]
    begin, end = window or (-math.inf, math.inf)
    if window is not None:
        first, last = np.maximum(kernels["begin"].to_numpy(), begin), np.minimum(kernels["end"].to_numpy(), end)
        kernels = kernels.set_column(kernels.column_names.index("begin"), "begin", pa.array(first))
        kernels = kernels.set_column(kernels.column_names.index("end"), "end", pa.array(last))
        kernels, values = kernels.filter(pa.array(first < last)), values[first < last]
    hosts = pa.table(mpi.together(analysis.host_computation, works.tolist(), begin, end))
    of_host = rank[hosts["location"].to_numpy().astype(np.int64)]
    host = sum_at(np.searchsorted(ranks, of_host), hosts["computation"].to_numpy(), ranks.size)
    process = np.searchsorted(ranks, kernels["rank"].to_numpy())
    time, adjusted = kernel_times(kernels, process, values, ranks.size)
    rows = [
        {"rank": int(ranks[i]), "host": host[i], "gpu_time": time[i], "gpu_time_adjusted": adjusted[i],
         "load": host[i] + time[i], "load_adjusted": host[i] + adjusted[i]}
        for i in range(ranks.size)
    ]  # fmt: skip
    rows = [{name: value if name == "rank" else float(value) for name, value in row.items()} for row in rows]
    return {
        "processes": rows,
        "load_imbalance_gpu": imbalance(host + time),
        "load_imbalance_gpu_adjusted": imbalance(host + adjusted),
    } | _source(known)


def _source(known: Efficiencies) -> dict[str, str]:
    return {"efficiency_source": known.source}


def counted_times(kernels: pa.Table, group: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return for how long each kernel counts (seconds).

    Of kernels of a group, a process or a device, that overlap on a device, the latest to start counts.
    """
    device, begin, end = (kernels[name].to_numpy() for name in ("device", "begin", "end"))
    order = np.lexsort((end, begin, device, group))
    key = group[order] * (int(device.max(initial=0)) + 1) + device[order]
    first, last = begin[order], end[order]
    # Kernels that overlap, directly or through others, form a cluster; most clusters have one kernel.
    fresh = np.ones(order.size, np.bool_)
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    for start, stop in zip(starts, [*starts[1:], order.size], strict=True):
        latest = np.maximum.accumulate(last[start:stop])
        fresh[start + 1 : stop] = first[start + 1 : stop] >= latest[:-1]
    clusters = np.flatnonzero(fresh)
    time = last - first
    sizes = np.diff([*clusters, order.size])
    for start, size in zip(clusters[sizes > 1], sizes[sizes > 1], strict=True):
        own = slice(start, start + size)
        time[own] = counted([Kernel(*times) for times in zip(first[own], last[own], strict=True)])
    found = np.empty(order.size)
    found[order] = time
    return found


def kernel_times(
    kernels: pa.Table, group: npt.NDArray[np.int64], efficiency: npt.NDArray[np.float64], groups: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Add up the times of kernels by group, a process or a device, as measured and adjusted.

    Kernels of a group that overlap on a device count once, with the efficiency of the latest to start.
    """
    time = counted_times(kernels, group)
    return sum_at(group, time, groups), sum_at(group, time * efficiency, groups)


def by_callpath(result: ResultData, kernels: pa.Table, efficiency: npt.NDArray[np.float64]) -> pa.Table:
    """Add up the times of kernels by call path and location, as measured and adjusted.

    Returns
    -------
    pyarrow.Table
        ``callpath``, ``callpath_id``, ``location``, ``rank``, ``device``, ``kernels`` (their number), ``gpu_time`` and
        ``gpu_time_adjusted`` (seconds). Of kernels of a process that overlap on a device, the latest to start counts,
        so that the sums of a process are those of its load.
    """
    _, process = np.unique(kernels["rank"].to_numpy(), return_inverse=True)
    time = counted_times(kernels, process)
    table = kernels.select(["callpath_id", "location", "rank", "device"])
    table = table.append_column("gpu_time", pa.array(time))
    table = table.append_column("gpu_time_adjusted", pa.array(time * efficiency))
    keys = ["callpath_id", "location", "rank", "device"]
    asked = [("gpu_time", "count"), ("gpu_time", "sum"), ("gpu_time_adjusted", "sum")]
    found = table.group_by(keys, use_threads=False).aggregate(asked)
    found = found.rename_columns([*keys, "kernels", "gpu_time", "gpu_time_adjusted"])
    found = found.sort_by([("location", "ascending"), ("callpath_id", "ascending")])
    return found.add_column(0, "callpath", result.tree.paths.take(found["callpath_id"].combine_chunks()))
