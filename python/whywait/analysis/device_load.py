"""Load imbalance of processes with accelerators, as measured and adjusted by the efficiency of kernels.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), equations 4.3 to 4.5, for any number of kernels: the load of a process is
what it computes while its devices run nothing, and the time in which each device runs kernels, times their efficiency.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from whywait import _native
from whywait.analysis.computation import computes
from whywait.analysis.counters import Counter, Counters
from whywait.analysis.load import Kernel, adjusted_load, geometry_efficiency, imbalance, share
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.model.result import ResultData

#: Counters of the geometry of launches, and properties of devices, in any spelling.
_BLOCKS, _THREADS = re.compile(r"blocks.*grid", re.IGNORECASE), re.compile(r"threads.*block", re.IGNORECASE)
_MULTIPROCESSORS = re.compile(r"multi-?processors?$", re.IGNORECASE)
_WARP = re.compile(r"warp size$", re.IGNORECASE)


class Efficiencies(NamedTuple):
    """How much of a device each kernel uses (0..1), and how that is known.

    ``source``: ``counters``; ``geometry`` of the launches, an upper bound; or ``none``, if all are taken as 1.
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
        What devices ran: ``location``, ``begin``, ``end``, and ``efficiency`` by the counters of nvprof, or null.
    names
        Counters at the locations of streams whose product it is, as shares or percentages; if there are none those of
        nvprof, else what the geometry of launches lets it be at most.

    Raises
    ------
    whywait.UsageError
        If a named counter is not recorded at each kernel, or is neither a share nor a percentage.
    """
    if not names and kernels.num_rows and not kernels["efficiency"].null_count:
        return Efficiencies(kernels["efficiency"].to_numpy(), "counters")
    means = _Means(result, kernels)
    if names:
        product = np.ones(kernels.num_rows)
        for name in names:
            product *= [share(name, value) for value in means.of(name).tolist()]
        return Efficiencies(product, "counters")
    blocks, threads = means.spelled(_BLOCKS), means.spelled(_THREADS)
    devices = _geometry(result)
    locations = kernels["location"].to_pylist()
    if kernels.num_rows and blocks is not None and threads is not None and all(one in devices for one in locations):
        counts = list(zip(means.of(blocks).tolist(), means.of(threads).tolist(), locations, strict=True))
        of_kernels = {one: geometry_efficiency(round(one[0]), round(one[1]), *devices[one[2]]) for one in set(counts)}
        return Efficiencies(np.array([of_kernels[one] for one in counts]), "geometry")
    return Efficiencies(np.ones(kernels.num_rows), "none")


class _Means:
    """The means of counters over kernels."""

    def __init__(self, result: ResultData, kernels: pa.Table) -> None:
        self.counters = Counters(result)
        self._kernels = kernels
        self._found = self.counters.during(
            {
                "location": kernels["location"].to_pylist(),
                "begin": kernels["begin"].to_pylist(),
                "end": kernels["end"].to_pylist(),
                "callpath": [None] * kernels.num_rows,
            }
        )

    def spelled(self, pattern: re.Pattern[str]) -> str | None:
        return next((name for name in self.counters if pattern.search(name)), None)

    def of(self, name: str) -> npt.NDArray[np.float64]:
        if name not in self.counters:
            raise _native.UsageError(f"there is no counter {name!r}; there are {', '.join(self.counters) or 'none'}")
        if name not in self._found.column_names:
            raise _native.UsageError(f"{name} is not recorded at the streams of devices")
        value: npt.NDArray[np.float64] = self._found[name].to_numpy()
        if np.isnan(value).any():
            raise _native.UsageError(f"{name} is not recorded at every kernel")
        counter: Counter = self.counters[name]
        length = self._kernels["end"].to_numpy() - self._kernels["begin"].to_numpy()
        if counter.kind != "level":
            return value
        mean: npt.NDArray[np.float64] = np.divide(value, length, out=np.zeros(length.size), where=length > 0)
        return mean


def _geometry(result: ResultData) -> dict[int, tuple[int, int]]:
    """Return multiprocessors and threads of a warp of the device of each location of which both are known."""
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


def loads(result: ResultData, kernels: pa.Table, known: Efficiencies) -> dict[str, Any]:
    """Return the loads of processes with devices, and their imbalance.

    Parameters
    ----------
    result
        The result, with its events.
    kernels
        What devices ran.
    known
        Their efficiencies.

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
        If the result holds no events.
    """
    if (analysis := result.tables.analysis) is None:
        raise _native.UsageError("a written result holds no events: ask the trace itself")
    if not kernels.num_rows:
        return {"processes": [], "load_imbalance_gpu": None, "load_imbalance_gpu_adjusted": None} | _source(known)
    hosts = pa.table(analysis.host_computation(computes(result).tolist()))
    rank = result.places.rank
    ranks, process = np.unique(kernels["rank"].to_numpy(), return_inverse=True)
    of_host = rank[hosts["location"].to_numpy().astype(np.int64)]
    host = sum_at(np.searchsorted(ranks, of_host), hosts["computation"].to_numpy(), ranks.size)
    time, adjusted = kernel_times(kernels, process, known.values, ranks.size)
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


def kernel_times(
    kernels: pa.Table, group: npt.NDArray[np.int64], efficiency: npt.NDArray[np.float64], groups: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Add the times of kernels up by the group of each, a process or a device, as measured and adjusted.

    Kernels of a group that overlap on a device count once, with the efficiency of the latest to start.
    """
    device, begin, end = (kernels[name].to_numpy() for name in ("device", "begin", "end"))
    order = np.lexsort((end, begin, device, group))
    key = group[order] * (int(device.max(initial=0)) + 1) + device[order]
    first, last = begin[order], end[order]
    # Kernels that overlap, directly or by others, are a cluster; nearly all are alone.
    fresh = np.ones(order.size, np.bool_)
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    for start, stop in zip(starts, [*starts[1:], order.size], strict=True):
        latest = np.maximum.accumulate(last[start:stop])
        fresh[start + 1 : stop] = first[start + 1 : stop] >= latest[:-1]
    clusters = np.flatnonzero(fresh)
    time, adjusted = last - first, (last - first) * efficiency[order]
    sizes = np.diff([*clusters, order.size])
    for start, size in zip(clusters[sizes > 1], sizes[sizes > 1], strict=True):
        members = range(start, start + size)
        own = [Kernel(first[i], last[i], efficiency[order[i]]) for i in members]
        time[start : start + size] = adjusted[start : start + size] = 0.0
        time[start], adjusted[start] = adjusted_load(0.0, own)
    return sum_at(group[order], time, groups), sum_at(group[order], adjusted, groups)
