"""The worst wait states of every cell, as many as a page can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.analysis.ranking import Kinds

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.tables import Locations

# So many of a cell (wait state, call path, location), and of all cells together.
_OF_CELL = 20
OF_ALL = 20_000
# Of each kind only so many are looked at: those with the longest waits.
_CANDIDATES = 500_000
# So often those that wait less than the mean of their cell are left out.
_ROUNDS = 4


def worst(
    tree: CallTree, locations: Locations, native: pa.Table, merged: int, limit: int = OF_ALL
) -> tuple[list[str], dict[str, npt.NDArray[Any]]]:
    """Choose the wait states that a page shows.

    Parameters
    ----------
    tree, locations
        What the numbers in the table mean.
    native
        All wait states, as the native analysis returns them.
    merged
        How many neighboring locations make a place.
    limit
        How many to choose at most.

    Returns
    -------
    list of str, dict
        The kinds, and columns of the chosen ones, longest waits first: ``kind`` (number), ``position``, ``place``,
        ``rank``, ``thread``, ``enter``, ``leave``, ``waiting``, ``cause_position`` (-1 if unknown), ``cause_place``
        (-1), ``cause_rank`` (-1), ``cause_thread`` (-1), ``cause_time`` (NaN) and what the cost model
        says: ``direct``, ``indirect`` and ``caused`` (NaN). Besides, how many there are in all:
        ``count`` by ``count_kind`` and ``count_position``.
    """
    of_kinds = Kinds(native)
    kinds = sorted(of_kinds.occurring)
    kind = of_kinds.numbers(kinds)
    waiting = native["waiting"].to_numpy()
    callpath, location = native["callpath"].to_numpy(), native["location"].to_numpy()
    rows = np.concatenate([_longest(of_kinds.rows({name}), waiting) for name in kinds] or [kind])
    chosen = _choose(rows, (kind, callpath), (kind, callpath, location), waiting, limit)
    table = native.take(pa.array(chosen)).combine_chunks()
    return kinds, {
        **_counts(tree, kind, callpath),
        "kind": kind[chosen].astype(np.uint8),
        "position": tree.position[callpath[chosen]].astype(np.uint32),
        "place": (location[chosen] // merged).astype(np.uint32),
        "rank": locations.rank[location[chosen]].astype(np.int32),
        "thread": locations.thread[location[chosen]].astype(np.int32),
        **{name: table[name].to_numpy() for name in ("enter", "leave", "waiting")},
        **_causes(tree, locations, table, merged),
    }


def _longest(rows: npt.NDArray[np.int64], waiting: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    if rows.size <= _CANDIDATES:
        return rows
    return rows[np.argpartition(-waiting[rows], _CANDIDATES)[:_CANDIDATES]]


def _choose(
    rows: npt.NDArray[np.int64],
    place: tuple[npt.NDArray[Any], ...],
    cell: tuple[npt.NDArray[Any], ...],
    waiting: npt.NDArray[np.float64],
    limit: int,
) -> npt.NDArray[np.int64]:
    """Take the worst of each place in the program, then the worst of every cell, the second of every cell, and so on.

    Returns
    -------
    numpy.ndarray
        The chosen rows, longest waits first.
    """
    rows = _longer(rows, cell, waiting)
    in_cell = _order(rows, cell, waiting)
    within = in_cell < _OF_CELL
    rows, in_cell = rows[within], in_cell[within]
    # The worst of a place are among the worst of its cells.
    turn = np.where(_order(rows, place, waiting) < _OF_CELL, -1, in_cell)
    chosen = rows[np.lexsort((-waiting[rows], turn))][:limit]
    return chosen[np.argsort(-waiting[chosen], kind="stable")]


def _longer(
    rows: npt.NDArray[np.int64], columns: tuple[npt.NDArray[Any], ...], waiting: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Leave most rows out that are not among the longest of their cell: to sort the others takes less."""
    cell = np.zeros(rows.size, np.int64)
    for column in columns:
        cell = cell * (int(column.max(initial=0)) + 1) + column[rows]
    cell = np.unique(cell, return_inverse=True)[1]
    for _ in range(_ROUNDS):
        lengths, sizes = waiting[rows], np.bincount(cell)
        above = lengths > (np.bincount(cell, lengths) / sizes)[cell]
        # Where so many wait longer than the mean, no other is among the longest.
        kept = above | (np.bincount(cell[above], minlength=sizes.size) < _OF_CELL)[cell]
        rows, cell = rows[kept], cell[kept]
    return rows


def _order(
    rows: npt.NDArray[np.int64], columns: tuple[npt.NDArray[Any], ...], waiting: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return for each row how many of those with the same columns wait longer."""
    if not rows.size:
        return rows
    order = np.lexsort((-waiting[rows], *(column[rows] for column in reversed(columns))))
    sorted_columns = [column[rows[order]] for column in columns]
    new = np.concatenate(([True], np.any([column[1:] != column[:-1] for column in sorted_columns], axis=0)))
    starts = np.flatnonzero(new)
    nth = np.empty(rows.size, np.int64)
    nth[order] = np.arange(rows.size) - starts[np.cumsum(new) - 1]
    return nth


def _causes(tree: CallTree, locations: Locations, table: pa.Table, merged: int) -> dict[str, npt.NDArray[Any]]:
    known = table["cause_location"].is_valid().to_numpy()
    location = table["cause_location"].fill_null(0).to_numpy()
    placed = table["cause_callpath"].is_valid().to_numpy()
    callpath = table["cause_callpath"].fill_null(0).to_numpy()
    position = tree.position[callpath] if len(tree) else callpath
    return {
        "cause_position": np.where(placed, position, -1).astype(np.int32),
        "cause_place": np.where(known, location // merged, -1).astype(np.int32),
        "cause_rank": np.where(known, locations.rank[location], -1).astype(np.int32),
        "cause_thread": np.where(known, locations.thread[location], -1).astype(np.int32),
        **{
            name: table[name].fill_null(np.nan).to_numpy()
            for name in ("cause_time", "direct", "indirect", "caused")
            if name in table.column_names
        },
    }


def _counts(tree: CallTree, kind: npt.NDArray[Any], callpath: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    size = max(1, len(tree))
    key, count = np.unique(kind * np.int64(size) + callpath, return_counts=True)
    return {
        "count_kind": (key // size).astype(np.uint8),
        "count_position": tree.position[key % size].astype(np.uint32),
        "count": count.astype(np.uint32),
    }
