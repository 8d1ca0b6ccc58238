"""Copies of recorded archives whose clocks disagree: what Score-P measured of a process's clock is made wrong."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLOCK_OFFSET = 6
HEADER = 18  # bytes of a chunk before its first record


def skewed(archive: Path, directory: Path, ticks: int) -> Path:
    """Copy an archive, and return the anchor of the copy.

    The clocks of processes with odd numbers are `ticks` ahead; if that is negative those of the others are, since the
    official reader knows no time before 0.
    """
    shutil.copytree(archive, directory, dirs_exist_ok=True)
    for file in (directory / "traces").glob("*.def"):
        if int(file.stem) % 2 == (ticks > 0):
            file.write_bytes(moved(file.read_bytes(), lambda _: abs(ticks)))
    return directory / "traces.otf2"


def moved(content: bytes, ticks: Callable[[int], int]) -> bytes:
    """Return local definitions with clock offsets moved by the ticks that a function returns for their times."""
    parts, position = [content[:HEADER]], HEADER
    while position + 1 < len(content):
        kind, length, begin = content[position], content[position + 1], position + 2
        if length == 0xFF:
            length, begin = int.from_bytes(content[begin : begin + 8], "little"), begin + 8
        end = begin + length
        if kind == CLOCK_OFFSET:
            # The time in 8 bytes, the offset in as many as it needs behind their number, the deviation in 8 bytes.
            time, deviation = content[begin : begin + 8], content[end - 8 : end]
            added = ticks(int.from_bytes(time, "little"))
            offset = int.from_bytes(content[begin + 9 : end - 8], "little", signed=end - begin == 25) + added
            payload = time + b"\x08" + offset.to_bytes(8, "little", signed=True) + deviation
            parts.append(bytes([kind, len(payload)]) + payload)
        else:
            parts.append(content[position:end])
        position = end
        if kind in (2, 3):  # the end of the file, of the chunk
            break
    return b"".join(parts) + content[position:]
