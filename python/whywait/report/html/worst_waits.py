"""The worst wait states of every cell, as many as fit in a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import whywait._native as _native
from whywait.model import tables

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData
    from whywait.model.tables import Locations

#: Maximum number for all cells.
OF_ALL = 20_000


class WorstWaits(NamedTuple):
    """The wait states that a page shows one by one.

    Attributes
    ----------
    kinds
        Their kinds.
    columns
        Columns, longest waits first: ``kind`` (number), ``position``, ``place``, ``rank``, ``thread``, ``enter``,
        ``leave``, ``waiting``, ``cause_position`` (-1 if unknown), ``cause_place`` (-1), ``cause_rank`` (-1),
        ``cause_thread`` (-1), ``cause_time`` (NaN) and the results of the cost model: ``direct``, ``indirect`` and
        ``caused`` (NaN). In addition, the total number of waits: ``count`` by ``count_kind`` and ``count_position``.
    """

    kinds: list[str]
    columns: dict[str, npt.NDArray[Any]]

    def merged(self, locations: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns with this number of neighboring locations per place."""
        return self.columns | {name: self.columns[name] // locations for name in ("place", "cause_place")}


def worst(result: ResultData, limit: int = OF_ALL) -> WorstWaits:
    """Select at most ``limit`` wait states for a page; each location is a place."""
    tree, locations = result.tree, result.places
    native = tables.empty_numbered("wait_states") if result.is_profile else result.tables.wait_states
    names, waits = tables.numbered_waits(native, ("kind", "callpath", "location", "waiting"))
    chosen, places = map(pa.table, _native.worst_waits(waits, limit))
    kinds = sorted({names[number] for number in places["kind"].to_pylist()})
    number = np.array([kinds.index(name) if name in kinds else 0 for name in names], np.uint8)
    table = native.take(chosen["row"]).combine_chunks()
    location = table["location"].to_numpy()
    columns = {
        "count_kind": number[places["kind"]],
        "count_position": tree.position[places["callpath"]].astype(np.uint32),
        "count": places["count"].to_numpy().astype(np.uint32),
        "kind": np.array([kinds.index(name) for name in table["kind"].to_pylist()], np.uint8),
        "position": tree.position[table["callpath"]].astype(np.uint32),
        "place": location.astype(np.uint32),
        "rank": locations.rank[location].astype(np.int32),
        "thread": locations.thread[location].astype(np.int32),
        **{name: table[name].to_numpy() for name in ("enter", "leave", "waiting")},
        **_causes(tree, locations, table),
    }
    return WorstWaits(kinds, columns)


def _causes(tree: CallTree, locations: Locations, table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    known = table["cause_location"].is_valid().to_numpy()
    location = table["cause_location"].fill_null(0).to_numpy()
    placed = table["cause_callpath"].is_valid().to_numpy()
    callpath = table["cause_callpath"].fill_null(0).to_numpy()
    position = tree.position[callpath] if len(tree) else callpath
    return {
        "cause_position": np.where(placed, position, -1).astype(np.int32),
        "cause_place": np.where(known, location, -1).astype(np.int32),
        "cause_rank": np.where(known, locations.rank[location], -1).astype(np.int32),
        "cause_thread": np.where(known, locations.thread[location], -1).astype(np.int32),
        **{
            name: table[name].fill_null(np.nan).to_numpy()
            for name in ("cause_time", "direct", "indirect", "caused")
            if name in table.column_names
        },
    }
