"""What of the work of devices, and of the calls that wait for them, lies in a focus.

Kernels, copies and calls are cut at the bounds of the focus. What a kernel waited for before it began belongs to the
focus in which it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.focus import find_focus
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.focus import Focus
    from whywait.model.result import ResultData

#: What a kernel waited for before it began, or its device did: columns of
#: `whywait.analysis.devices.kernels.Devices.kernels`.
WAITED = ("idle", "starved", "mpi_starved", "latency", "queued", "stream_wait")


def device_focus(result: ResultData, name: str | None) -> Focus:
    """Return a focus with the window of a result of only a window: kernels and calls are those of the whole run.

    Parameters
    ----------
    result, name
        As for `whywait.analysis.focus.find_focus`.
    """
    focus, facts = find_focus(result, name), result.facts
    if facts.get("focus_rule") != "window":
        return focus
    return focus._replace(window=(float(facts["focus_begin"]), float(facts["focus_end"])))


def kernels_in(result: ResultData, kernels: pa.Table, focus: Focus) -> pa.Table:
    """Return the kernels and copies in a focus: of a call path, those launched below it or called so on their stream.

    Parameters
    ----------
    result
        The result.
    kernels
        `whywait.analysis.devices.kernels.Devices.kernels`.
    focus
        The focus.
    """
    if focus.window is not None:
        begins = pc.greater_equal(kernels["begin"], focus.window[0])
        for name in WAITED:
            kernels = _with(kernels, name, pc.if_else(begins, kernels[name], 0.0))
        kernels = _cut(kernels, ("begin", "end"), focus.window)
    if focus.callpath is not None:
        launched = (_below(result, kernels, focus.callpath, name) for name in ("callpath_id", "launch_callpath_id"))
        kernels = kernels.filter(pa.array(np.logical_or(*launched)))
    return kernels


def calls_in(result: ResultData, calls: pa.Table, focus: Focus) -> pa.Table:
    """Return the calls that wait for devices in a focus: first they wait, then they complete.

    Parameters
    ----------
    result, focus
        As for `kernels_in`.
    calls
        `whywait.analysis.devices.kernels.Devices.synchronizations`.
    """
    if focus.window is not None:
        calls = calls.append_column("until", pc.add(calls["enter"], calls["waiting"]))
        calls = _cut(calls, ("enter", "until", "leave"), focus.window)
        calls = _with(calls, "waiting", pc.subtract(calls["until"], calls["enter"]))
        calls = _with(calls, "completion", pc.subtract(calls["leave"], calls["until"])).drop_columns("until")
    return below(result, calls, focus)


def lost_in(result: ResultData, lost: pa.Table, focus: Focus) -> pa.Table:
    """Return the launches without a kernel in a focus.

    Parameters
    ----------
    result, focus
        As for `kernels_in`.
    lost
        `whywait.analysis.devices.kernels.Devices.lost`.
    """
    return below(result, lost if focus.window is None else _cut(lost, ("enter",), focus.window), focus)


def below(result: ResultData, rows: pa.Table, focus: Focus) -> pa.Table:
    """Return the rows whose call path is that of the focus, or below it; all if the focus has none."""
    if focus.callpath is None:
        return rows
    return rows.filter(pa.array(_below(result, rows, focus.callpath, "callpath_id")))


def _below(result: ResultData, rows: pa.Table, callpath: str, name: str) -> npt.NDArray[np.bool_]:
    inside = np.append(in_subtrees(result.tree, callpath), False)
    number = rows[name].fill_null(len(inside) - 1).to_numpy().astype(np.int64)
    return np.asarray(inside[number], bool)


def _cut(rows: pa.Table, times: tuple[str, ...], window: tuple[float, float]) -> pa.Table:
    """Return the rows that overlap a window, with their times moved to its bounds; the first and the last say which."""
    overlap = pc.and_(pc.less_equal(rows[times[0]], window[1]), pc.greater_equal(rows[times[-1]], window[0]))
    rows = rows.filter(overlap)
    for name in times:
        rows = _with(rows, name, pc.min_element_wise(pc.max_element_wise(rows[name], window[0]), window[1]))
    return rows


def _with(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, column)
