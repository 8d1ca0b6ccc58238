"""Accelerators: their kernels, the calls that wait for them, and the activities of hosts while devices are idle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.devices.focus import WAITED, below, calls_in, device_focus, kernels_in, lost_in
from whywait.analysis.devices.layers import layers
from whywait.analysis.devices.load import Efficiencies, by_callpath, efficiencies, kernel_times, loads, with_efficiency
from whywait.analysis.devices.use import by_copy, by_kernel, device_efficiencies, idle_times, overlaps
from whywait.analysis.efficiency.load_balance import imbalance
from whywait.analysis.focus import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from whywait.model.result import ResultData


class Devices:
    """The work of accelerators, and the waiting between hosts and devices.

    Parameters
    ----------
    result
        A fresh result.

    Attributes
    ----------
    kernels : pyarrow.Table
        One row per kernel or copy: its place (``callpath``, ``callpath_id``, ``location``, ``rank``, and the number of
        the ``device``), its time (``begin`` and ``end``), and the call that launched it (``launch_callpath``,
        ``launch_location``, ``launch_enter``, ...; null if unknown). ``idle`` is the time for which its device was idle
        before it; ``starved`` is the part before the launch, and ``mpi_starved`` the part of that in which the host
        waited in MPI. ``latency`` is the time from the launch to the start on an idle device, ``queued`` on a busy one;
        ``stream_wait`` is the part of ``queued`` in which it waited for another stream of its device. ``copy`` is the
        direction of a copy (``to host``, ``to device``, ``on device``, ``between devices``, ``unknown``) and null for
        kernels; ``bytes`` is null unless recorded.
        ``communicates`` says whether it is a kernel that communicates with other devices.
        ``efficiency`` is the share of the device that it uses: the mean over the runs of its call path on its stream,
        from the counters ``sm_efficiency`` and ``warp_execution_efficiency`` of the stream; null without them.
    synchronizations : pyarrow.Table
        Calls that waited for devices: place, ``enter``, ``leave``, ``waiting`` (until the last kernel launched before
        ended), ``completion`` (the rest) and ``kernel`` (the row of that kernel, or null).
    lost : pyarrow.Table
        Launches without a kernel: place and ``enter``.
    names : dict
        The name of each device by its number.
    counts : dict
        ``launches``, ``unmatched_launches``, ``unmatched_kernels``, and ``clock_violations``: kernels that, by their
        clock, end after the call that awaits them.

    Times are seconds, since the begin of the trace.

    Raises
    ------
    whywait.UsageError
        If the result is a stored one, which has no events.
    """

    def __init__(self, result: ResultData) -> None:
        if (analysis := result.tables.analysis) is None:
            raise _native.UsageError("a result on disk has no kernels: analyze the trace again")
        kernels, synchronizations, lost, counts = analysis.devices()
        self._result, self._analysis = result, analysis
        self.kernels = with_efficiency(result, self._named(pa.table(kernels)))
        self.synchronizations = self._named(pa.table(synchronizations))
        self.lost = self._named(pa.table(lost))
        self.names: dict[int, str] = counts.pop("names")
        self.counts = counts

    def _named(self, table: pa.Table) -> pa.Table:
        """Add the names of call paths, and ranks."""
        columns = {}
        for name in table.column_names:
            column = table[name].combine_chunks()
            if name.endswith("callpath"):
                columns[name] = self._result.tree.paths.take(column)
                columns[f"{name}_id"] = column
            else:
                columns[name] = column
            if name == "location":
                columns["rank"] = pa.array(self._result.places.rank).take(column)
        return pa.table(columns)

    def starving(self, focus: str | None = ALL) -> pa.Table:
        """Return what hosts did while they starved devices.

        Parameters
        ----------
        focus
            The part of the run, as `whywait.analysis.focus.find_focus` takes it.

        Returns
        -------
        pyarrow.Table
            ``callpath``, ``callpath_id``, ``location``, ``rank`` and ``starving`` (seconds).
        """
        part = device_focus(self._result, focus)
        begin, end = part.window or (-math.inf, math.inf)
        table = self._named(pa.table(mpi.together(self._analysis.starving, begin, end)))
        return below(self._result, table, part)

    def loads(
        self,
        efficiency: Sequence[str] = (),
        *,
        callpath: str | int | None = None,
        window: tuple[float, float] | None = None,
    ) -> dict[str, Any]:
        """Return the loads of processes with devices, and their imbalance.

        Parameters
        ----------
        efficiency
            Counters of streams, contexts, devices or nodes whose product is the efficiency of a kernel. If empty,
            ``efficiency`` of `kernels`; without that, an upper bound from the geometry of launches; without that, the
            share of time in which the device is busy.
        callpath
            Restricts the loads to these call paths and those below, and to kernels launched there; None for all.
        window
            Restricts the loads to a window, seconds since the begin of the trace; None for the whole run.

        Returns
        -------
        dict
            As `whywait.analysis.devices.load.loads`.

        Raises
        ------
        whywait.UsageError
            If a counter is missing, or is neither a share nor a percentage.
        """
        known = efficiencies(self._result, self.kernels, efficiency)
        return loads(self._result, self.kernels, known, callpath=callpath, window=window)

    def times(self, efficiency: Sequence[str] = ()) -> pa.Table:
        """Return the times of kernels by their call path and location, as measured and adjusted by efficiency.

        Parameters
        ----------
        efficiency
            As for `loads`.

        Returns
        -------
        pyarrow.Table
            ``callpath``, ``callpath_id``, ``location``, ``rank``, ``device``, ``kernels`` (their number), ``gpu_time``
            and ``gpu_time_adjusted`` (Eberius, equation 4.4; seconds). Of kernels of a process that overlap on a
            device, the latest to start counts, so that the sums of a process are those of its `loads`.
        """
        known = efficiencies(self._result, self.kernels, efficiency)
        return by_callpath(self._result, self.kernels, known.values)

    def summary(self, efficiency: Sequence[str] = (), *, focus: str | None = None) -> dict[str, Any]:
        """Return a summary of devices, kernels and hosts in the focus, as data for JSON.

        Parameters
        ----------
        efficiency
            As for `loads`.
        focus
            As `whywait.analysis.focus.find_focus` takes it. Of a call path, what is launched there, or is called so on
            its stream. Kernels and calls are cut at the bounds of the focus; what a kernel waited for counts if it
            begins in the focus.

        Returns
        -------
        dict
            ``devices``: of each its ``name`` (or that of its first stream), ``rank`` (of several the first of its
            ``ranks``), number of ``kernels`` and ``copies``, ``busy`` (seconds in which it ran any), ``share`` (of the
            focus), sums of ``idle``, ``starved``, ``mpi_starved``, ``latency``, ``queued`` and ``stream_wait``,
            ``adjusted`` (``busy`` times the efficiency of what ran; None if ``efficiency_source`` of `loads` is
            ``none``), ``account`` (what it did, seconds by row of `Result.device_account`; empty if the focus is not
            the default one), ``streams_overlap`` and ``copies_overlap`` (seconds in which several of its streams ran,
            and in which it copied beside a kernel), ``communication`` and ``communication_hidden`` (seconds in which
            kernels ran that communicate, and in which others ran beside these). ``imbalance``: by which share the
            busiest device exceeds the mean, as `whywait.analysis.efficiency.load_balance.imbalance`;
            ``imbalance_adjusted``: the same of ``adjusted`` (Eberius, equation 4.5), or None. ``kernels``: ``kernel``,
            ``device``, ``count``, ``total``, ``mean``, ``longest`` and the sums of what they waited. ``copies``: the
            same by ``direction``, with ``bytes`` and ``rate`` (bytes per second). ``efficiencies``: as
            `whywait.analysis.devices.use.device_efficiencies`; None if the focus is not the default one. ``layers``: as
            `whywait.analysis.devices.layers.layers`. ``lost``: launches without a kernel, with ``callpath``, ``rank``
            and ``enter``; ``unlaunched``: kernels without a launch, with ``kernel``, ``device`` and ``begin``.
            ``synchronizations``: ``callpath``, ``rank``, ``count``, ``waiting``, ``completion``. ``starving``:
            ``callpath``, ``rank``, ``starving``. Each longest first. And `counts`, which are those of the whole run,
            and what `loads` returns.
        """
        part = device_focus(self._result, focus)
        is_default = part == device_focus(self._result, None)
        kernels = kernels_in(self._result, self.kernels, part)
        known = efficiencies(self._result, kernels, efficiency)
        length = part.length(self._result)
        of_devices = self.names
        devices = _devices(of_devices, self.kernels, kernels, known, length)
        account = idle_times(self._result) if is_default else {}
        for device in devices:
            device["account"] = account.get(device["name"], {})
        names = np.array([of_devices[device] for device in kernels["device"].to_pylist()], object)
        busy = [device["busy"] for device in devices]
        adjusted = [device["adjusted"] for device in devices]
        return {
            "devices": devices,
            "imbalance": imbalance(busy),
            "imbalance_adjusted": None if None in adjusted else imbalance(adjusted),
            "kernels": by_kernel(kernels, names),
            "copies": by_copy(kernels, names),
            "efficiencies": device_efficiencies(self._result) if is_default else None,
            "layers": layers(self._result, kernels, len(devices), efficiency, length=length),
            "lost": lost_in(self._result, self.lost, part).select(["callpath", "rank", "enter"]).to_pylist(),
            "unlaunched": _unlaunched(kernels, names),
            "synchronizations": _sums(
                calls_in(self._result, self.synchronizations, part), ("waiting", "completion"), "waiting"
            ),
            "starving": _sums(self.starving(focus), ("starving",), "starving", count=False),
            **self.counts,
            **loads(self._result, kernels, known, callpath=part.callpath, window=part.window),
        }


def _devices(
    names: Mapping[int, str], whole: pa.Table, kernels: pa.Table, known: Efficiencies, length: float
) -> list[dict[str, Any]]:
    """Return what each device of the run did: `kernels` are those of the `whole` in a focus of `length` seconds."""
    numbers = whole["device"].to_numpy()
    devices = np.unique(numbers)
    number = np.searchsorted(devices, kernels["device"].to_numpy())
    busy, adjusted = kernel_times(kernels, number, known.values, devices.size)
    both = overlaps(kernels, number, devices.size)
    found = []
    for one, device in enumerate(devices.tolist()):
        own = kernels.filter(pa.array(number == one))
        ranks = np.unique(whole["rank"].to_numpy()[numbers == device]).tolist()
        copies = int(own["copy"].is_valid().to_numpy().sum())
        found.append(
            {
                "name": names[device],
                "rank": ranks[0],
                "ranks": ranks,
                "kernels": own.num_rows - copies,
                "copies": copies,
                "busy": float(busy[one]),
                "share": float(busy[one] / length) if length else 0.0,
                "adjusted": None if known.source == "none" else float(adjusted[one]),
                "streams_overlap": float(both["streams"][one]),
                "copies_overlap": float(both["copies"][one]),
                "communication": float(both["communication"][one]),
                "communication_hidden": float(both["hidden"][one]),
                **{column: float(own[column].to_numpy().sum()) for column in WAITED},
            }
        )
    return found


def _unlaunched(kernels: pa.Table, names: npt.NDArray[np.object_]) -> list[dict[str, Any]]:
    """Return the kernels without a launch."""
    alone = pc.and_(pc.is_null(kernels["launch_enter"]), pc.is_null(kernels["copy"])).to_numpy()
    rows = kernels.select(["callpath", "begin"]).filter(pa.array(alone)).to_pylist()
    return [
        {"kernel": row["callpath"][-1], "device": name, "begin": row["begin"]}
        for row, name in zip(rows, names[alone], strict=True)
    ]


def _sums(table: pa.Table, columns: tuple[str, ...], order: str, *, count: bool = True) -> list[dict[str, Any]]:
    """Add up columns by call path and rank, largest first."""
    first = table.to_pydict()
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    asked = [(column, "sum") for column in columns] + [(columns[0], "count")]
    names = dict(zip(first["callpath_id"], first["callpath"], strict=True))
    for row in table.group_by(["callpath_id", "rank"], use_threads=False).aggregate(asked).to_pylist():
        key = (row["callpath_id"], row["rank"])
        rows[key] = {"callpath": names[row["callpath_id"]], "rank": row["rank"]}
        if count:
            rows[key]["count"] = row[f"{columns[0]}_count"]
        rows[key] |= {column: row[f"{column}_sum"] for column in columns}
    return sorted(rows.values(), key=lambda row: -row[order])
