"""Call stacks with their times, for viewers of profiles: call paths of events, divided among functions by samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.causes import delay_costs
from whywait.analysis.focus import focused

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData

#: The name of what samples do not stand for.
AWAY = "[in the system, or without a core]"


@dataclass(frozen=True)
class Frame:
    """A function on a stack."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Values:
    """What a stack has on a location, in seconds, in the focus.

    Attributes
    ----------
    time
        Its own time.
    critical
        The part of that on the critical path.
    cost
        The waiting elsewhere that it causes.
    """

    time: float
    critical: float
    cost: float


def stacks(result: ResultData) -> Iterator[tuple[list[Frame], int, Values]]:
    """Yield each stack with time on a location: its frames from the root down, the location, and its values."""
    tree, places = result.tree, result.profile.locations
    size = (len(tree) + 1) * places
    away = len(tree)
    values = np.zeros((3, size))
    part = focused(result)
    for row, name in enumerate(("time", "critical_path")):
        if name in part.profile.metrics:
            key, value = part.profile.cells(name)
            position, location = np.divmod(key, places)
            values[row, tree.preorder[position] * places + location] = value
    if result.has_causes:
        costs = delay_costs(part)
        at = _keys(costs, "callpath", places)
        np.add.at(values[2], at, costs["short_term"].to_numpy() + costs["long_term"].to_numpy())
    # Rows of what samples do not stand for have no call path of their own.
    lost: dict[int, npt.NDArray[np.float64]] = {}
    if result.facts.get("samples"):
        dataset = result.tables
        of_times, of_costs = {"time": 0, "critical": 1}, {"cost": 2}
        for table, rows in ((dataset.function_times, of_times), (dataset.function_costs, of_costs)):
            whole = _keys(table, "recorded_callpath", places)
            for row in rows.values():
                values[row, whole] = 0.0
            own = table["callpath"].fill_null(away).to_numpy().astype(np.int64)
            at = own * places + table["location"].to_numpy().astype(np.int64)
            for column, row in rows.items():
                value = table[column].to_numpy()
                np.add.at(values[row], at[own != away], value[own != away])
                for cell, amount in zip(whole[own == away].tolist(), value[own == away].tolist(), strict=True):
                    lost.setdefault(cell, np.zeros(3))[row] += amount
    for cell in np.flatnonzero(values.any(axis=0)).tolist():
        yield _frames(result, cell // places), cell % places, Values(*values[:, cell].tolist())
    for cell, amounts in sorted(lost.items()):
        frames = [*_frames(result, cell // places), Frame(AWAY, "", 0)]
        yield frames, cell % places, Values(*amounts.tolist())


def _keys(table: pa.Table, callpath: str, places: int) -> npt.NDArray[np.int64]:
    """Return where the values of call paths and locations are."""
    callpaths, locations = (table[name].to_numpy().astype(np.int64) for name in (callpath, "location"))
    keys: npt.NDArray[np.int64] = callpaths * places + locations
    return keys


def _frames(result: ResultData, callpath: int) -> list[Frame]:
    """Return the functions of a call path, from the root down."""
    tree, frames = result.tree, []
    while callpath >= 0:
        region = tree.kinds[tree.region_rows[callpath]]
        row = tree.regions.slice(tree.region_rows[callpath], 1).to_pylist()[0]
        frames.append(Frame(region.name, row["file"] or "", row["begin_line"] or 0))
        callpath = tree.parents[callpath]
    return frames[::-1]
