"""Cube 4 files: the whole result in the format that CubeGUI and the Cube tools read.

Every metric is written with its values, derived ones too. Cube could compute those itself from expressions, but not
every reader does (pycubexr refuses a file that has one), and so all agree on the numbers.
"""

from __future__ import annotations

import tarfile
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from whywait import _native
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

# What XML cannot say, not even escaped.
_UNSPEAKABLE = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    if chr(code) not in "\t\n\r"
}


def write_cube(result: ResultData, path: Path, statistics: str | None = None) -> None:
    """Write a result to a file, metric by metric, so that memory is that of one metric.

    Parameters
    ----------
    result
        What to write.
    path
        The file; overwritten if it exists.
    statistics
        Name of the file beside it that has the statistics of wait states, if there is one.
    """
    profile = result.profile
    with path.open("wb") as out:
        for number, metric in enumerate(profile.metrics):
            if metric.name not in profile.void:
                _write_values(out, number, metric, profile)
        anchor = "".join(_anchor(result, statistics)).translate(_UNSPEAKABLE).encode()
        _write_member(out, "anchor.xml", len(anchor), [anchor])
        out.write(bytes(2 * tarfile.BLOCKSIZE))


def _artificial_root(tree: CallTree) -> bool:
    """Readers want one root; several programs in a trace get one above them."""
    return len(tree.roots) != 1


def _write_values(out: IO[bytes], number: int, metric: Metric, profile: Profile) -> None:
    row_numbers, rows = _inclusive_rows(profile) if metric.name == "time" else _exclusive_rows(profile, metric.name)
    if not row_numbers:
        # Not every reader takes a metric without rows, so the first says that there is nothing.
        row_numbers, rows = [0], iter([np.zeros(profile.locations)])
    dtype = np.dtype("<u8" if metric.integer else "<f8")
    data = (row.round().astype(dtype).tobytes() if metric.integer else row.astype(dtype).tobytes() for row in rows)
    marker = b"CUBEX.DATA"
    size = len(marker) + len(row_numbers) * profile.locations * dtype.itemsize
    _write_member(out, f"{number}.data", size, _after(marker, data))
    # Byte order mark, version, sparse, number of rows.
    head = b"CUBEX.INDEX" + b"\1\0\0\0" + b"\0\0" + b"\1" + np.uint32(len(row_numbers)).tobytes()
    index = head + np.array(row_numbers, dtype="<u4").tobytes()
    _write_member(out, f"{number}.index", len(index), [index])


def _exclusive_rows(profile: Profile, name: str) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers of a metric without what is below, and the rows: pre-order."""
    used = profile.positions(name)
    rows = (row for _, row in profile.rows(name, used.tolist()))
    return (used + _artificial_root(profile.tree)).tolist(), rows


def _inclusive_rows(profile: Profile) -> tuple[list[int], Iterator[npt.NDArray[np.float64]]]:
    """Return the row numbers of time, which Cube keeps with what is below, and the rows: wide order."""
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
    """Write a file of the archive piece by piece, which the tar module of Python cannot."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o600
    out.write(entry.tobuf(tarfile.PAX_FORMAT))
    for part in parts:
        out.write(part)
    out.write(bytes(-size % tarfile.BLOCKSIZE))


def _anchor(result: ResultData, statistics: str | None) -> Iterator[str]:
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
    yield from _program(result.tree)
    yield "</program>\n"
    yield from system_xml(result.tables.system, result.tables.topologies, result.places)
    yield "</cube>\n"


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
    """Return a line number as Cube has it: -1 where OTF2 has none, or one that is no line."""
    return number if number and number < 1 << 31 else -1
