"""What a run does with files: sums by file, call path, rank, and I/O paradigm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData

#: Metrics of time in calls for I/O, which have no time in common.
TIMES = ("io", "mpi_io", "mpi_mgmt_file")
#: The wait state in collective reads and writes, a part of these.
WAITING = "mpi_io_wait"
_NUMBERS = ("count", "incomplete", "bytes_read", "bytes_written", "others")
_SECONDS = ("time", "in_calls")


def summary(result: ResultData) -> dict[str, Any]:
    """Return the I/O of a run.

    Returns
    -------
    dict
        * ``time``: time in calls for I/O (s, of all threads), with and without records of operations; ``share`` of all
          time; ``waiting``: the part in which ranks wait for each other in collective operations.
        * ``count``, ``incomplete``, ``bytes_read``, ``bytes_written``: reads, writes and flushes; ``others``: the
          number of other uses (open, close, ...).
        * ``files``: the same by file, with ``time`` from begin to completion and ``in_calls``, the part of it in the
          calls that begin and complete them (s).
        * ``callpaths`` and ``ranks``: ``time``, ``waiting``, and the operations.
        * ``paradigms``: by paradigm, also those whose operations belong to another one (``nested``), which the other
          sums do not count.
    """
    native = _counted(result.tables.io)
    own = native.filter(pc.invert(native["nested"]))
    callpath, location, time, waiting = _times(result)
    total = float(result.metrics["time"].total)
    spent = float(time.sum())
    return {
        "time": spent,
        "share": spent / total if total else 0.0,
        "waiting": float(waiting.sum()),
        **{name: pc.sum(own[name]).as_py() or 0 for name in _NUMBERS},
        "files": sorted(_by(own, "file"), key=lambda one: -one["in_calls"]),
        "callpaths": _callpaths(result, own, _spent(callpath, time, waiting)),
        "ranks": _ranks(result, own, _spent(result.places.rank[location], time, waiting)),
        "paradigms": sorted(_by(native, "nested", "paradigm"), key=lambda one: one["nested"]),
    }


def operations_of(result: ResultData, callpath: int) -> dict[str, int]:
    """Return the numbers of operations and bytes in a call path, as `summary` does for the run."""
    native = result.tables.io
    here = pc.and_(pc.equal(native["callpath"], callpath), pc.invert(native["nested"]))
    own = _counted(native.filter(pc.fill_null(here, False)))
    return {name: pc.sum(own[name]).as_py() or 0 for name in _NUMBERS}


def files_of(result: ResultData, callpath: int) -> list[str]:
    """Return the names of the files that are used in a call path, that with the most time in calls first."""
    native = result.tables.io
    here = native.filter(pc.fill_null(pc.equal(native["callpath"], callpath), False))
    named = here.filter(pc.is_valid(here["file"]))
    sums = named.group_by("file").aggregate([("in_calls", "sum")])
    order = sorted(sums.to_pylist(), key=lambda one: (-one["in_calls_sum"], one["file"]))
    return [one["file"] for one in order]


def _counted(native: pa.Table) -> pa.Table:
    """Return the table with a column for each sum."""
    operation = native["operation"].cast(pa.string())
    moves = pc.is_in(operation, pa.array(["read", "write", "flush"]))

    def where(mask: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        return pc.if_else(mask, native[column], pa.scalar(0, pa.uint64()))

    columns = {
        "count": where(moves, "count"),
        "incomplete": native["incomplete"],
        "bytes_read": where(pc.equal(operation, "read"), "bytes"),
        "bytes_written": where(pc.equal(operation, "write"), "bytes"),
        "others": where(pc.invert(moves), "count"),
    }
    kept = ("file", "paradigm", "nested", "callpath", "location", *_SECONDS)
    return pa.table({**{name: native[name] for name in kept}, **columns})


def _by(table: pa.Table, *columns: str) -> list[dict[str, Any]]:
    """Return the sums for each value of some columns."""
    sums = table.group_by(list(columns)).aggregate([(name, "sum") for name in (*_NUMBERS, *_SECONDS)])
    renamed = {f"{name}_sum": name for name in (*_NUMBERS, *_SECONDS)}
    rows = sums.rename_columns([renamed.get(name, name) for name in sums.column_names]).to_pylist()
    return [{name: row[name] for name in (*columns, *_NUMBERS, *_SECONDS)} for row in rows]


def _times(
    result: ResultData,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return call path, location, time and waiting of the cells of calls for I/O."""
    profile, places = result.profile, len(result.places)
    parts = [(name, *profile.cells(name)) for name in (*TIMES, WAITING) if name in result.metrics]
    key = np.concatenate([np.zeros(0, np.int64), *(key for _, key, _ in parts)])
    position, location = np.divmod(key, places)
    nothing = [np.zeros(0)]
    time = np.concatenate(nothing + [value * (name != WAITING) for name, _, value in parts])
    waiting = np.concatenate(nothing + [value * (name == WAITING) for name, _, value in parts])
    return profile.tree.preorder[position], location, time, waiting


def _spent(
    group: npt.NDArray[np.integer[Any]], time: npt.NDArray[np.float64], waiting: npt.NDArray[np.float64]
) -> dict[int | None, tuple[float, float]]:
    """Return the sums of time and waiting of each group."""
    groups, of_group = np.unique(group, return_inverse=True)
    sums = (np.bincount(of_group, value, groups.size).tolist() for value in (time, waiting))
    return dict(zip(groups.tolist(), zip(*sums, strict=True), strict=True))


def _united(
    name: str, rows: list[dict[str, Any]], spent: dict[int | None, tuple[float, float]]
) -> list[dict[str, Any]]:
    """Join the operations and the times of groups; ``time`` is then that in calls, with or without operations."""
    sums = {row.pop(name): row for row in rows}
    none = {**dict.fromkeys(_NUMBERS, 0), **dict.fromkeys(_SECONDS, 0.0)}
    united = []
    for group in {**spent, **sums}:
        time, waiting = spent.get(group, (0.0, 0.0))
        united.append({name: group, **sums.get(group, none), "time": time, "waiting": waiting})
    return united


def _callpaths(result: ResultData, own: pa.Table, spent: dict[int | None, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = _united("callpath_id", _by(own.rename_columns({"callpath": "callpath_id"}), "callpath_id"), spent)
    for row in rows:
        row["callpath"] = None if row["callpath_id"] is None else list(result.tree.path(row["callpath_id"]))
    return sorted(rows, key=lambda row: -row["time"])


def _ranks(result: ResultData, own: pa.Table, spent: dict[int | None, tuple[float, float]]) -> list[dict[str, Any]]:
    ranks = pa.array(result.places.rank[own["location"].to_numpy()], pa.int32())
    rows = _united("rank", _by(own.append_column("rank", ranks), "rank"), spent)
    return sorted(rows, key=lambda row: row["rank"])
