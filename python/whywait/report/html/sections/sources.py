"""The source lines of regions, if the directory with the source files is given."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.calltree import CallTree
    from whywait.report.html.sections import Report

# Number of lines shown before the first one of a region: its declaration or comments.
_BEFORE = 3
# Number of lines shown of a region without an end line, and maximum for any other.
_OPEN, _MOST = 20, 80
# Maximum number of bytes of text of all regions.
_ROOM = 2_000_000
# Longer lines are truncated: these are hardly handwritten source.
_WIDEST = 400


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the source lines by region, if any source file is found.

    Files are looked up below the directory by their recorded path, from which leading components are dropped one by
    one: for ``/home/me/src/main.c`` also ``src/main.c`` and ``main.c``. Files outside the directory are never read.

    Raises
    ------
    whywait.UsageError
        If there is no such directory.
    """
    if report.source is None:
        return
    root = Path(report.source)
    if not root.is_dir():
        raise _native.UsageError(f"{root} is not a directory")
    if found := dict(_regions(report.result.tree, root.resolve())):
        yield "sources", blocks.document(found)


def _regions(tree: CallTree, root: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    files: dict[str, list[str] | None] = {}
    room = _ROOM
    first, last = (tree.regions[name].to_pylist() for name in ("begin_line", "end_line"))
    for row in sorted(set(tree.region_rows)):
        recorded, begin, end = tree.kinds[row].file, first[row], last[row]
        if not recorded or not begin:
            continue
        if recorded not in files:
            files[recorded] = _read(root, recorded)
        if (lines := files[recorded]) is None or begin > len(lines):
            continue
        stop = min(end if end and end >= begin else begin + _OPEN, begin + _MOST - 1, len(lines))
        start = max(1, begin - _BEFORE)
        shown = [line[:_WIDEST] for line in lines[start - 1 : stop]]
        room -= sum(map(len, shown))
        if room < 0:
            return
        yield row, {"file": recorded, "begin": begin, "first": start, "lines": shown, "more": bool(end and end > stop)}


def _read(root: Path, recorded: str) -> list[str] | None:
    """Return the lines of a file below a directory; None if it is not there."""
    parts = [part for part in PurePath(recorded).parts if part not in {"/", ".", ".."}]
    for start in range(len(parts)):
        path = root.joinpath(*parts[start:])
        try:
            if path.is_file() and path.resolve().is_relative_to(root):
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
    return None
