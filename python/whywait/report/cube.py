"""Cube 4 files: the complete result in the format of CubeGUI and the Cube tools.

All metrics are written with their values, including derived ones. Cube can compute these from expressions, but not
every reader supports that (pycubexr rejects such files), and stored values are the same for all readers.
"""

from __future__ import annotations

import tarfile
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from whywait import _native
from whywait.analysis.counters import Counters
from whywait.analysis.queues import name_of_maximum, replayed
from whywait.report.system import system_xml
from whywait.report.xml import attribute, element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.metrics import Metric
    from whywait.model.profile import Profile
    from whywait.model.result import ResultData

T = TypeVar("T")

# Characters that XML 1.0 does not allow, not even escaped.
_UNSPEAKABLE = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    if chr(code) not in "\t\n\r"
}


def write_cube(result: ResultData, path: Path, statistics: str | None = None) -> None:
    """Write a result to a file, one metric at a time, to need memory for one metric only.

    Parameters
    ----------
    result
        The result.
    path
        The file; overwritten if it exists.
    statistics
        Name of the file with the statistics of wait states beside it, if any.
    """
    profile = result.profile
    kept = _kept_locations(result)
    levels = list(_levels(result))
    with path.open("wb") as out:
        for number, metric in enumerate(profile.metrics):
            if metric.name not in profile.void:
                _write_metric(out, number, metric, profile, kept)
        for number, level in enumerate(levels, len(profile.metrics) + 1):
            size = len(profile.tree) + _artificial_root(profile.tree)
            row_numbers, rows = _level_rows(level, profile.locations, size)
            _write_values(out, number, row_numbers, (row[kept].astype("<f8").tobytes() for row in rows), kept.size * 8)
        anchor = "".join(_anchor(result, statistics, levels, kept)).translate(_UNSPEAKABLE).encode()
        _write_member(out, "anchor.xml", len(anchor), [anchor])
        out.write(bytes(2 * tarfile.BLOCKSIZE))


def _artificial_root(tree: CallTree) -> bool:
    """Return whether the trace has several programs: readers expect one root, so these get a common one."""
    return len(tree.roots) != 1


def _kept_locations(result: ResultData) -> npt.NDArray[np.int64]:
    """Return the locations to write: all except metric locations without calls, unless there are no others."""
    is_metric = np.array([kind == "METRIC" for kind in result.places.table["type"].to_pylist()], dtype=np.bool_)
    (kept,) = np.nonzero(~is_metric | (result.profile.by_location("time") > 0))
    return kept if kept.size else np.arange(is_metric.size)


class _Level(NamedTuple):
    """A level in the layout of Cube: values by location and the call path's number in the file."""

    name: str
    unit: str
    dtype: str
    description: str
    row: npt.NDArray[np.int64]
    location: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


def _levels(result: ResultData) -> Iterator[_Level]:
    """Yield integral and maximum of each level of the trace, and the maximum of each queue, booked at the root."""
    tree = result.tree
    for counter in Counters(result).values():
        if counter.kind != "level":
            continue
        cells = counter.cells()
        cells = cells.filter(cells["callpath_id"].is_valid())
        if not cells.num_rows:
            continue
        row = tree.position[cells["callpath_id"].to_numpy()].astype(np.int64) + _artificial_root(tree)
        location = cells["location"].to_numpy().astype(np.int64)
        text = counter.description or f"{counter.name}, as the trace has it."
        unit = f"{counter.unit} sec"
        integral = f"{text} Integral over time: its quotient by time is the mean."
        value = cells["value"].to_numpy()
        yield _Level(counter.name, unit, "DOUBLE", integral, row, location, value)
        maximum = cells["maximum"].to_numpy()
        sampled = np.isfinite(maximum)
        name = f"max:{counter.name}"
        text = f"{text} Maximum."
        yield _Level(name, counter.unit, "MAXDOUBLE", text, row[sampled], location[sampled], maximum[sampled])
    if not replayed(result) or (analysis := result.tables.analysis) is None:
        return
    found = pa.table(analysis.queue_levels())
    found = found.filter(found["location"].is_valid())
    names = np.array(found["metric"].to_pylist(), dtype=object)
    for level in dict.fromkeys(names):
        own = found.filter(pa.array(names == level))
        location = own["location"].to_numpy().astype(np.int64)
        name = name_of_maximum(level)
        text = f"Maximum of {level} over the run."
        value = own["maximum"].to_numpy().astype(np.float64)
        yield _Level(name, own["unit"][0].as_py(), "MAXDOUBLE", text, np.zeros_like(location), location, value)


def _level_rows(level: _Level, locations: int, size: int) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers and rows of a level; a missing value is the lowest number, as in an empty maximum.

    A maximum has all `size` rows, since a missing row counts as zero, and not every reader corrects that for a maximum.
    """
    is_maximum = level.dtype == "MAXDOUBLE"
    used = np.arange(size) if is_maximum else np.unique(level.row)
    place = np.searchsorted(used, level.row)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=used.size))
    nothing = np.finfo(np.float64).min if is_maximum else 0.0

    def rows() -> Iterator[npt.NDArray[np.float64]]:
        for own in np.split(order, ends[:-1]):
            row = np.full(locations, nothing)
            row[level.location[own]] = level.value[own]
            yield row

    return used.tolist(), rows()


def _write_metric(out: IO[bytes], number: int, metric: Metric, profile: Profile, kept: npt.NDArray[np.int64]) -> None:
    row_numbers, rows = _inclusive_rows(profile) if metric.name == "time" else _exclusive_rows(profile, metric.name)
    if not row_numbers:
        # Not every reader accepts a metric without rows, so write the first one with zeros.
        row_numbers, rows = [0], iter([np.zeros(profile.locations)])
    dtype = np.dtype("<u8" if metric.integer else "<f8")
    rows = rows if kept.size == profile.locations else (row[kept] for row in rows)
    data = (row.round().astype(dtype).tobytes() if metric.integer else row.astype(dtype).tobytes() for row in rows)
    _write_values(out, number, row_numbers, data, kept.size * dtype.itemsize)


def _write_values(out: IO[bytes], number: int, row_numbers: list[int], rows: Iterable[bytes], row_size: int) -> None:
    marker = b"CUBEX.DATA"
    _write_member(out, f"{number}.data", len(marker) + len(row_numbers) * row_size, _after(marker, rows))
    # Byte order mark, version, sparse, number of rows.
    head = b"CUBEX.INDEX" + b"\1\0\0\0" + b"\0\0" + b"\1" + np.uint32(len(row_numbers)).tobytes()
    index = head + np.array(row_numbers, dtype="<u4").tobytes()
    _write_member(out, f"{number}.index", len(index), [index])


def _exclusive_rows(profile: Profile, name: str) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers and rows of exclusive values, in pre-order."""
    used = profile.positions(name)
    rows = (row for _, row in profile.rows(name, used.tolist()))
    return (used + _artificial_root(profile.tree)).tolist(), rows


def _inclusive_rows(profile: Profile) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers and rows of inclusive values, as Cube stores the time, in Cube's wide order."""
    tree = profile.tree
    order = tree.position[tree.wide]
    (used,) = np.nonzero(profile.inclusive(profile.by_position("time"))[order])
    rows = (row for _, row in profile.inclusive_rows("time", order[used].tolist()))
    if not _artificial_root(tree):
        return used.tolist(), rows
    return [0, *(used + 1).tolist()], _after(profile.by_location("time"), rows)


def _after(first: T, rest: Iterable[T]) -> Iterator[T]:
    yield first
    yield from rest


def _write_member(out: IO[bytes], name: str, size: int, parts: Iterable[bytes]) -> None:
    """Write a member of the archive piece by piece, which Python's tarfile module cannot do."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o600
    out.write(entry.tobuf(tarfile.PAX_FORMAT))
    for part in parts:
        out.write(part)
    out.write(bytes(-size % tarfile.BLOCKSIZE))


def _anchor(
    result: ResultData, statistics: str | None, levels: list[_Level], kept: npt.NDArray[np.int64]
) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="4.4">\n'
    yield '<attr key="CubePL Version" value="1.1"/>\n<attr key="Cube Version" value="4.6"/>\n'
    yield f'<attr key="Creator" value="whywait {_native.__version__}"/>\n'
    yield f'<attr key="description" value={attribute(result.run.name)}/>\n'
    if statistics is not None:
        yield f'<attr key="statisticfile" value={attribute(statistics)}/>\n'
    yield '<doc><mirrors></mirrors></doc>\n<metrics title="Metrics">\n'
    numbers = {metric.name: number for number, metric in enumerate(result.profile.metrics)}
    roots = result.profile.metrics.children(None)
    for root in roots:
        if root.kind != "counter":
            yield from _metric(result.profile, root, numbers)
    counters = [root for root in roots if root.kind == "counter"]
    if counters or levels:
        yield from _counters(result.profile, counters, numbers, levels)
    yield '</metrics>\n<program title="Call tree">\n'
    yield from _program(result.tree)
    yield "</program>\n"
    yield from system_xml(result.tables.system, result.tables.topologies, result.places, kept)
    yield "</cube>\n"


def _counters(profile: Profile, counters: list[Metric], numbers: dict[str, int], levels: list[_Level]) -> Iterator[str]:
    """Yield a root without values, and below it the counters and levels of the trace."""
    yield f'<metric id="{len(numbers)}" type="EXCLUSIVE">' + element("disp_name", "Counters")
    yield element("uniq_name", "whywait_counters") + element("dtype", "DOUBLE") + element("uom", "")
    yield element("val", "VOID") + element("url", "") + element("descr", "Counters of the trace and of queues.") + "\n"
    for counter in counters:
        yield from _metric(profile, counter, numbers)
    for number, level in enumerate(levels, len(numbers) + 1):
        yield f'<metric id="{number}" type="EXCLUSIVE">' + element("disp_name", level.name)
        yield element("uniq_name", level.name) + element("dtype", level.dtype) + element("uom", level.unit)
        yield element("url", "") + element("descr", level.description) + "</metric>\n"
    yield "</metric>\n"


def _metric(profile: Profile, metric: Metric, numbers: dict[str, int]) -> Iterator[str]:
    formula = f" It is {metric.formula}." if metric.formula else ""
    yield f'<metric id="{numbers[metric.name]}" type="{"INCLUSIVE" if metric.name == "time" else "EXCLUSIVE"}">'
    yield element("disp_name", metric.display_name) + element("uniq_name", metric.name)
    yield element("dtype", "UINT64" if metric.integer else "DOUBLE") + element("uom", metric.unit)
    yield element("val", "VOID") if metric.name in profile.void else ""
    yield element("url", "") + element("descr", metric.description + formula) + "\n"
    for child in profile.metrics.children(metric.name):
        yield from _metric(profile, child, numbers)
    yield "</metric>\n"


def _program(tree: CallTree) -> Iterator[str]:
    used = sorted(set(tree.region_rows))
    numbers = {row: number for number, row in enumerate(used)}
    regions = tree.regions.take(pa.array(used, pa.int64())).to_pylist()
    for number, (row, region) in enumerate(zip(used, regions, strict=True)):
        kind = tree.kinds[row]
        yield (
            f'<region id="{number}" mod={attribute(kind.file)} begin="{_line(region["begin_line"])}"'
            f' end="{_line(region["end_line"])}">'
        )
        yield element("name", kind.name) + element("mangled_name", region["canonical_name"] or kind.name)
        yield element("paradigm", kind.paradigm) + element("role", kind.role)
        yield element("url", "") + element("descr", "") + "</region>\n"
    if _artificial_root(tree):
        yield f'<region id="{len(used)}" mod="" begin="-1" end="-1"><name>all programs</name>'
        yield "<mangled_name>all programs</mangled_name><paradigm>unknown</paradigm><role>artificial</role>"
        yield f'<url></url><descr></descr></region>\n<cnode id="{len(tree)}" calleeId="{len(used)}">\n'
    # No recursion: call paths can be deeper than Python allows.
    depth = 0
    for callpath, level in zip(tree.preorder.tolist(), tree.depth.tolist(), strict=True):
        yield "</cnode>\n" * (depth - level)
        yield f'<cnode id="{callpath}" calleeId="{numbers[tree.region_rows[callpath]]}">\n'
        depth = level + 1
    yield "</cnode>\n" * depth
    yield "</cnode>\n" if _artificial_root(tree) else ""


def _line(number: int | None) -> int:
    """Return a line number for Cube: -1 where OTF2 has none or an invalid one."""
    return number if number and number < 1 << 31 else -1
