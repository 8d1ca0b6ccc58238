"""Archives whose clocks are known, read by the official reader: the truth about corrections of clocks."""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tests.skewed import CLOCK_OFFSET, HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.results import Outcome


def with_offsets(archive: Path, directory: Path, offsets: Callable[[int], Sequence[tuple[int, int]]]) -> Path:
    """Copy an archive, and return the anchor of the copy.

    The clock offsets of a location, as (time, offset) in ticks, are those that the function returns for its number.
    """
    shutil.copytree(archive, directory, dirs_exist_ok=True)
    for file in (directory / "traces").glob("*.def"):
        file.write_bytes(_replaced(file.read_bytes(), offsets(int(file.stem))))
    return directory / "traces.otf2"


def _replaced(content: bytes, offsets: Sequence[tuple[int, int]]) -> bytes:
    records = []
    for time, offset in offsets:
        payload = time.to_bytes(8, "little") + b"\x08" + offset.to_bytes(8, "little", signed=True) + bytes(8)
        records.append(bytes([CLOCK_OFFSET, len(payload)]) + payload)
    parts, position = [content[:HEADER], *records], HEADER
    while content[position] not in (2, 3):  # the end of the file, of the chunk
        length, begin = content[position + 1], position + 2
        if length == 0xFF:
            length, begin = int.from_bytes(content[begin : begin + 8], "little"), begin + 8
        if content[position] != CLOCK_OFFSET:
            parts.append(content[position : begin + length])
        position = begin + length
    return b"".join(parts) + content[position:]


def event_times(anchor: Path) -> dict[int, np.ndarray]:
    """Return the times of all events by rank, in seconds, with what the official reader makes of clock offsets."""
    import otf2

    times: dict[int, list[int]] = defaultdict(list)
    with otf2.reader.open(str(anchor)) as reader:
        resolution = reader.timer_resolution
        for location, event in reader.events:
            times[location.group.name, location.name].append(event.time)
    return {place: np.array(of, dtype=np.int64) / resolution for place, of in sorted(times.items())}


def errors(times: Mapping, truth: Mapping, *, drifts: bool = False) -> tuple[float, float]:
    """Return the root mean square and the largest error of times, in seconds, except for a common constant.

    With `drifts`, except for a common drift: of clocks that all drift, none is the truth.
    """
    found = np.concatenate([times[place] for place in truth])
    true = np.concatenate([truth[place] for place in truth])
    off = found - true
    off -= np.polyval(np.polyfit(true - true[0], off, 1), true - true[0]) if drifts else off.mean()
    return float(np.sqrt(np.mean(off**2))), float(np.abs(off).max())


def waits_differ(ours: Outcome, truth: Outcome) -> tuple[float, float]:
    """Return by how much waiting differs, over kinds, call paths and processes: the sum, and the most, in seconds.

    Completion is not waiting.
    """
    cells: dict[tuple, float] = defaultdict(float)
    for sign, outcome in ((1, ours), (-1, truth)):
        for wait in (wait for wait in outcome.waits if not wait.kind.endswith("_completion")):
            cells[wait.kind, wait.callpath, wait.rank] += sign * wait.waiting
    sizes = [abs(value) for value in cells.values()]
    return sum(sizes), max(sizes)
