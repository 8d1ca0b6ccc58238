"""The worst wait states of every cell, as many as fit in a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.analysis.ranking import Kinds

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.tables import Locations

# Maximum number for a cell (wait state, call path, location), and for all cells.
_OF_CELL = 20
OF_ALL = 20_000
# Maximum number of candidates of each kind: those with the longest waits.
_CANDIDATES = 500_000
# How many times to remove the waits below the mean of their cell.
_ROUNDS = 4


def worst(
    tree: CallTree, locations: Locations, native: pa.Table, merged: int, limit: int = OF_ALL
) -> tuple[list[str], dict[str, npt.NDArray[Any]]]:
    """Select the wait states for a page.

    Parameters
    ----------
    tree, locations
        The call tree and locations that the table refers to.
    native
        All wait states from the native analysis.
    merged
        Number of neighboring locations per place.
    limit
        Maximum number of wait states.

    Returns
    -------
    list of str, dict
        The kinds, and columns of the chosen ones, longest waits first: ``kind`` (number), ``position``, ``place``,
        ``rank``, ``thread``, ``enter``, ``leave``, ``waiting``, ``cause_position`` (-1 if unknown), ``cause_place``
        (-1), ``cause_rank`` (-1), ``cause_thread`` (-1), ``cause_time`` (NaN) and the results of the cost model:
        ``direct``, ``indirect`` and ``caused`` (NaN). In addition, the total number of waits: ``count`` by
        ``count_kind`` and ``count_position``.
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
    """Select the worst wait of each place in the program, then the worst of every cell, the second worst, and so on.

    Returns
    -------
    numpy.ndarray
        The chosen rows, longest waits first.
    """
    rows = _drop_short(rows, cell, waiting)
    in_cell = _order(rows, cell, waiting)
    within = in_cell < _OF_CELL
    rows, in_cell = rows[within], in_cell[within]
    # The worst wait of a place is the worst of one of its cells.
    turn = np.where(_order(rows, place, waiting) < _OF_CELL, -1, in_cell)
    chosen = rows[np.lexsort((-waiting[rows], turn))][:limit]
    return chosen[np.argsort(-waiting[chosen], kind="stable")]


def _drop_short(
    rows: npt.NDArray[np.int64], columns: tuple[npt.NDArray[Any], ...], waiting: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Remove most rows that are not among the longest of their cell, to sort fewer."""
    cell = np.zeros(rows.size, np.int64)
    for column in columns:
        cell = cell * (int(column.max(initial=0)) + 1) + column[rows]
    cell = pa.array(cell).dictionary_encode().indices.to_numpy()
    for _ in range(_ROUNDS):
        lengths, sizes = waiting[rows], np.bincount(cell)
        above = lengths > (np.bincount(cell, lengths) / sizes)[cell]
        # If at least that many waits exceed the mean, all of the longest do.
        kept = above | (np.bincount(cell[above], minlength=sizes.size) < _OF_CELL)[cell]
        rows, cell = rows[kept], cell[kept]
    return rows


def _order(
    rows: npt.NDArray[np.int64], columns: tuple[npt.NDArray[Any], ...], waiting: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return for each row its rank by length among the rows with the same columns."""
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
