"""Cube 4 files: the complete result in the format of CubeGUI and the Cube tools.

All metrics are written with their values, including derived ones. Cube can compute these from expressions, but not
every reader supports that (pycubexr rejects such files), and stored values are the same for all readers.
"""

from __future__ import annotations

import tarfile
from functools import lru_cache
from itertools import pairwise
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

import whywait._native as _native
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
_INVALID_IN_XML = {
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
    locations = _locations_with_data(result)
    with path.open("wb") as out:
        for number, metric in enumerate(profile.metrics):
            if metric.name not in profile.void and metric.kind != "heading":
                _write_metric(out, number, metric, profile, locations)
        anchor = "".join(_anchor(result, statistics, locations)).translate(_INVALID_IN_XML).encode()
        _write_member(out, "anchor.xml", len(anchor), [anchor])
        out.write(bytes(2 * tarfile.BLOCKSIZE))


def _artificial_root(tree: CallTree) -> bool:
    """Return whether the trace has several programs: readers expect one root, so these get a common one."""
    return len(tree.roots) != 1


def _locations_with_data(result: ResultData) -> npt.NDArray[np.int64]:
    """Return the locations to write: all except metric locations without calls, unless there are no others."""
    is_metric = result.places.measures
    (locations,) = np.nonzero(~is_metric | (result.profile.by_location("time") > 0))
    return locations if locations.size else np.arange(is_metric.size)


def _write_metric(
    out: IO[bytes], number: int, metric: Metric, profile: Profile, locations: npt.NDArray[np.int64]
) -> None:
    if metric.is_maximum:
        row_numbers, rows = _rows_of_maximum(profile, metric.name)
    elif metric.name == "time":
        row_numbers, rows = _inclusive_rows(profile)
    else:
        row_numbers, rows = _exclusive_rows(profile, metric.name)
    if not row_numbers:
        # Not every reader accepts a metric without rows, so write the first one with zeros.
        row_numbers, rows = [0], iter([np.zeros(profile.locations)])
    dtype = np.dtype("<u8" if metric.integer else "<f8")
    rows = rows if locations.size == profile.locations else (row[locations] for row in rows)
    data = (row.round().astype(dtype).tobytes() if metric.integer else row.astype(dtype).tobytes() for row in rows)
    _write_values(out, number, row_numbers, data, locations.size * dtype.itemsize)


def _write_values(out: IO[bytes], number: int, row_numbers: list[int], rows: Iterable[bytes], row_size: int) -> None:
    marker = b"CUBEX.DATA"
    _write_member(out, f"{number}.data", len(marker) + len(row_numbers) * row_size, _prepend(marker, rows))
    # Byte order mark, version, sparse, number of rows.
    head = b"CUBEX.INDEX" + b"\1\0\0\0" + b"\0\0" + b"\1" + np.uint32(len(row_numbers)).tobytes()
    index = head + np.array(row_numbers, dtype="<u4").tobytes()
    _write_member(out, f"{number}.index", len(index), [index])


def _exclusive_rows(profile: Profile, name: str) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers and rows of exclusive values, in pre-order."""
    used = profile.positions(name)
    rows = (row for _, row in profile.rows(name, used.tolist()))
    return (used + _artificial_root(profile.tree)).tolist(), rows


def _rows_of_maximum(profile: Profile, name: str) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return all row numbers and rows of a maximum, with the lowest number where there is none.

    A missing row counts as zero, and not every reader corrects that for a maximum.
    """
    cells, first = profile.cells(name), _artificial_root(profile.tree)
    starts = np.searchsorted(cells.key, np.arange(len(profile.tree) + 1) * profile.locations)

    def rows() -> Iterator[npt.NDArray[np.float64]]:
        lowest = np.full(profile.locations, np.finfo(np.float64).min)
        yield from [lowest] * first
        for start, end in pairwise(starts.tolist()):
            row = lowest.copy()
            row[cells.key[start:end] % profile.locations] = cells.value[start:end]
            yield row

    return list(range(first + len(profile.tree))), rows()


def _inclusive_rows(profile: Profile) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers and rows of inclusive values, as Cube stores the time, in Cube's wide order."""
    tree = profile.tree
    order = tree.position[tree.wide]
    (used,) = np.nonzero(profile.inclusive(profile.by_position("time"))[order])
    rows = (row for _, row in profile.inclusive_rows("time", order[used].tolist()))
    if not _artificial_root(tree):
        return used.tolist(), rows
    return [0, *(used + 1).tolist()], _prepend(profile.by_location("time"), rows)


def _prepend(first: T, rest: Iterable[T]) -> Iterator[T]:
    yield first
    yield from rest


def _write_member(out: IO[bytes], name: str, size: int, parts: Iterable[bytes]) -> None:
    """Write a member of the archive piece by piece, which Python's tarfile module cannot do."""
    out.write(_header(name, size))
    for part in parts:
        out.write(part)
    out.write(bytes(-size % tarfile.BLOCKSIZE))


def _header(name: str, size: int) -> bytearray:
    """Return the header of a member: most members have the size of others, and differ in name and checksum only."""
    header = bytearray(_unnamed_header(size))
    # A size of 8 GiB or more is in blocks of its own before.
    block = memoryview(header)[-tarfile.BLOCKSIZE :]
    letters = name.encode()
    block[: len(letters)] = letters
    block[148:154] = b"%06o" % (int(bytes(block[148:154]), 8) + sum(letters))
    return header


@lru_cache(maxsize=64)
def _unnamed_header(size: int) -> bytes:
    entry = tarfile.TarInfo()
    entry.size = size
    entry.mode = 0o600
    return entry.tobuf(tarfile.PAX_FORMAT)


def _anchor(result: ResultData, statistics: str | None, locations: npt.NDArray[np.int64]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="4.4">\n'
    yield '<attr key="CubePL Version" value="1.1"/>\n<attr key="Cube Version" value="4.6"/>\n'
    yield f'<attr key="Creator" value="whywait {_native.__version__}"/>\n'
    yield f'<attr key="description" value={attribute(result.run.name)}/>\n'
    if statistics is not None:
        yield f'<attr key="statisticfile" value={attribute(statistics)}/>\n'
    yield '<doc><mirrors></mirrors></doc>\n<metrics title="Metrics">\n'
    numbers = {metric.name: number for number, metric in enumerate(result.profile.metrics)}
    for root in result.profile.metrics.children(None):
        yield from _metric(result.profile, root, numbers)
    yield '</metrics>\n<program title="Call tree">\n'
    yield from _regions(result.tree)
    yield "</program>\n"
    yield from system_xml(result.tables.system, result.tables.topologies, result.places, locations)
    yield "</cube>\n"


def _metric(profile: Profile, metric: Metric, numbers: dict[str, int]) -> Iterator[str]:
    formula = f" It is {metric.formula}." if metric.formula else ""
    yield f'<metric id="{numbers[metric.name]}" type="{"INCLUSIVE" if metric.name == "time" else "EXCLUSIVE"}">'
    yield element("disp_name", metric.display_name) + element("uniq_name", metric.name)
    dtype = "MAXDOUBLE" if metric.is_maximum else "UINT64" if metric.integer else "DOUBLE"
    yield element("dtype", dtype) + element("uom", metric.unit)
    yield element("val", "VOID") if metric.name in profile.void or metric.kind == "heading" else ""
    yield element("url", "") + element("descr", metric.description + formula) + "\n"
    for child in profile.metrics.children(metric.name):
        yield from _metric(profile, child, numbers)
    yield "</metric>\n"


def _regions(tree: CallTree) -> Iterator[str]:
    used = sorted(set(tree.region_rows))
    numbers = {row: number for number, row in enumerate(used)}
    regions = tree.regions.take(pa.array(used, pa.int64())).to_pylist()
    for number, (row, region) in enumerate(zip(used, regions, strict=True)):
        kind = tree.kinds[row]
        yield (
            f'<region id="{number}" mod={attribute(kind.file)} begin="{_cube_line(region["begin_line"])}"'
            f' end="{_cube_line(region["end_line"])}">'
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


def _cube_line(number: int | None) -> int:
    """Return a line number for Cube: -1 where OTF2 has none or an invalid one."""
    return number if number and number < 1 << 31 else -1
