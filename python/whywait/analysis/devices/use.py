"""What devices did: kernels, copies, streams that overlap, why they were idle, and how efficient host and devices are.

Efficiencies of devices are those of TALP: A. Rahimi et al., *Hardware-Agnostic and Insightful Efficiency Metrics for
Accelerated Systems*, arXiv:2603.26576 (2026). docs/accelerators.md has the formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.analysis import account

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from whywait.model.result import ResultData

_BUSY = ("busy.kernel", "busy.copy")


def idle_times(result: ResultData) -> dict[str, dict[str, float]]:
    """Return the account of each device in the focus: seconds of each row that has any, by the name of the device."""
    found: dict[str, dict[str, float]] = {}
    for line in result.tables.device_account.to_pylist():
        rows = found.setdefault(line["device"], {})
        rows[line["row"]] = rows.get(line["row"], 0.0) + line["time"]
    return found


class DeviceAccount(NamedTuple):
    """What all devices did in the focus.

    Attributes
    ----------
    devices
        Their number.
    time
        Their time: its length times their number, in seconds.
    rows
        Name, name on screen, and time (s) of each row that has any, the longest first.
    """

    devices: int
    time: float
    rows: list[tuple[str, str, float]]

    @property
    def computes(self) -> float:
        """The time in kernels, in seconds."""
        return sum(time for name, _, time in self.rows if name == "busy.kernel")


def device_account(result: ResultData) -> DeviceAccount | None:
    """Return what all devices did in the focus; None without devices."""
    devices = list(idle_times(result).values())
    if not devices:
        return None
    sums = [(name, label, sum(rows.get(name, 0.0) for rows in devices)) for name, label, _ in _native.device_rows()]
    found = sorted((row for row in sums if row[2] > 0), key=lambda row: -row[2])
    return DeviceAccount(len(devices), sum(time for _, _, time in found), found)


def device_efficiencies(result: ResultData) -> dict[str, float] | None:
    """Return the efficiencies of the devices and of their hosts in the focus; None without devices.

    Returns
    -------
    dict
        ``device_parallel_efficiency`` = ``device_load_balance`` x ``device_communication_efficiency`` x
        ``device_orchestration_efficiency``, and ``device_offload_efficiency`` of the hosts.
    """
    devices = list(idle_times(result).values())
    length = max((sum(rows.values()) for rows in devices), default=0.0)
    kernels = [rows.get("busy.kernel", 0.0) for rows in devices]
    busy = [sum(rows.get(name, 0.0) for name in _BUSY) for rows in devices]
    if not length or not max(kernels):
        return None
    found = {
        "device_parallel_efficiency": sum(kernels) / (len(devices) * length),
        "device_load_balance": sum(kernels) / (len(devices) * max(kernels)),
        "device_communication_efficiency": max(kernels) / max(busy),
        "device_orchestration_efficiency": max(busy) / length,
    }
    groups: dict[str, float] = {}
    table = result.tables.account.group_by("row", use_threads=False).aggregate([("time", "sum")])
    for name, time in zip(table["row"].to_pylist(), table["time_sum"].to_pylist(), strict=True):
        group = account.rows()[name].group
        groups[group] = groups.get(group, 0.0) + time
    own = sum(groups.get(name, 0.0) for name in ("computation", "threads", "idle"))
    if offloading := groups.get("devices", 0.0):
        found["device_offload_efficiency"] = own / (own + offloading)
    return found


def by_kernel(kernels: pa.Table, names: npt.NDArray[np.object_]) -> list[dict[str, Any]]:
    """Return the kernels of each name on each device: how often and how long they ran, and what they waited for.

    Parameters
    ----------
    kernels
        `Devices.kernels`.
    names
        The name of the device of each.
    """
    return _by_name(kernels, names, pc.invert(pc.is_valid(kernels["copy"])), "kernel")


def by_copy(kernels: pa.Table, names: npt.NDArray[np.object_]) -> list[dict[str, Any]]:
    """Return the copies of each direction on each device: number, bytes, time, and bytes per second while they run."""
    return _by_name(kernels, names, pc.is_valid(kernels["copy"]), "direction")


def _by_name(kernels: pa.Table, names: npt.NDArray[np.object_], which: pa.Array, key: str) -> list[dict[str, Any]]:
    is_copy = key == "direction"
    called = pa.array([path[-1] for path in kernels["callpath"].to_pylist()], pa.string())
    label = kernels["copy"] if is_copy else called
    columns = ["starved", "mpi_starved", "latency", "queued", "stream_wait"]
    table = pa.table(
        {
            key: label,
            "device": pa.array(names, pa.string()),
            "total": pc.subtract(kernels["end"], kernels["begin"]),
            "bytes": kernels["bytes"],
            **{name: kernels[name] for name in columns},
        }
    ).filter(which)
    sums = [("total", "sum"), ("total", "count"), ("total", "max"), *((name, "sum") for name in columns)]
    sums += [("bytes", "sum"), ("bytes", "count")]
    found = []
    for row in table.group_by([key, "device"], use_threads=False).aggregate(sums).to_pylist():
        count, total = row["total_count"], row["total_sum"]
        one = {key: row[key], "device": row["device"], "count": count, "total": total, "mean": total / count,
               "longest": row["total_max"]} | {name: row[f"{name}_sum"] for name in columns}  # fmt: skip
        if is_copy:
            # Bytes are known of all copies of a run, or of none.
            one["bytes"] = row["bytes_sum"] if row["bytes_count"] else None
            one["rate"] = one["bytes"] / total if one["bytes"] is not None and total else None
        found.append(one)
    return sorted(found, key=lambda row: -row["total"])


def overlaps(kernels: pa.Table, number: npt.NDArray[np.int64], devices: int) -> dict[str, npt.NDArray[np.float64]]:
    """Return for how long devices did several things at once, seconds.

    Parameters
    ----------
    kernels
        `Devices.kernels`.
    number
        The device of each, from 0.
    devices
        The number of devices.

    Returns
    -------
    dict
        By device: ``streams`` (at least two of its streams ran something), ``copies`` (a copy ran beside a kernel),
        ``communication`` (kernels ran that communicate), ``hidden`` (another kernel ran beside such a one).
    """
    found = {name: np.zeros(devices) for name in ("streams", "copies", "communication", "hidden")}
    begin, end = kernels["begin"].to_numpy(), kernels["end"].to_numpy()
    is_copy, stream = kernels["copy"].is_valid().to_numpy(), kernels["location"].to_numpy()
    communicates = kernels["communicates"].to_numpy()
    for device in range(devices):
        own = number == device
        by_stream = [own & (stream == one) for one in np.unique(stream[own])]
        for name, parts in (("streams", by_stream), ("copies", [own & is_copy, own & ~is_copy])):
            found[name][device] = _at_once(_union(begin[part], end[part]) for part in parts)
        both = [_union(begin[part], end[part]) for part in (own & communicates, own & ~communicates & ~is_copy)]
        found["communication"][device] = float(np.diff(both[0]).sum())
        found["hidden"][device] = _at_once(both)
    return found


def _union(begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the union of intervals, as rows of begin and end."""
    if not begin.size:
        return np.zeros((0, 2))
    order = np.argsort(begin, kind="stable")
    begin, latest = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.r_[True, begin[1:] > latest[:-1]])
    union: npt.NDArray[np.float64] = np.c_[begin[first], latest[np.r_[first[1:] - 1, latest.size - 1]]]
    return union


def _at_once(sets: Iterable[npt.NDArray[np.float64]]) -> float:
    """Return for how long at least two sets of disjoint intervals overlap."""
    edges = np.concatenate([*sets, np.zeros((0, 2))])
    times = np.r_[edges[:, 0], edges[:, 1]]
    change = np.r_[np.ones(len(edges)), -np.ones(len(edges))]
    order = np.lexsort((change, times))
    times, level = times[order], np.cumsum(change[order])
    return float(np.diff(times)[level[:-1] >= 2].sum()) if times.size else 0.0
