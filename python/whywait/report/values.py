"""Values of any unit as readable text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.report.terminal import digits, seconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def quantity(value: float, unit: str) -> str:
    """Return a value of a metric in at most ten characters."""
    if unit == "sec":
        return seconds(value)
    if unit == "bytes":
        return _scaled(value, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"), 1024)
    if value != round(value) and abs(value) < 100:
        return digits(value)
    return f"{value:,.0f}" if abs(value) < 1e8 else _scaled(value, ("", "k", "M", "G", "T", "P"), 1000)


def _scaled(value: float, units: tuple[str, ...], step: int) -> str:
    for unit in units[:-1]:
        if abs(value) < step:
            # There are no parts of a byte.
            return f"{f'{value:,.0f}' if unit == units[0] else digits(value)} {unit}".rstrip()
        value /= step
    return f"{digits(value)} {units[-1]}"


def group_name(ranks: npt.NDArray[np.integer[Any]], group: int, groups: int) -> str:
    """Return the name of a group of neighboring ranks, given all ranks in order and the number of groups."""
    first, last = -(-group * ranks.size // groups), -(-(group + 1) * ranks.size // groups) - 1
    if first > last:
        return "no rank"
    return f"rank {ranks[first]}" if first == last else f"ranks {ranks[first]}-{ranks[last]}"
