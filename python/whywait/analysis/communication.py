"""The communication matrix, by pairs of ranks, blocks of ranks or nodes, and the heaviest pairs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData

#: Measures to order pairs by: name, text, and the columns that each adds up.
MEASURES = {
    "bytes": ("Bytes", ("bytes", "transfer_bytes")),
    "messages": ("Messages", ("messages", "transfers")),
    "time": ("Time in flight", ("time", "transfer_time")),
    "waiting": ("Waiting", ("waiting",)),
}
Measure = Literal["bytes", "messages", "time", "waiting"]
_COUNTED = ("messages", "bytes", "transfers", "transfer_bytes", "time", "transfer_time", "waiting")


def measure(pairs: pa.Table, name: Measure) -> npt.NDArray[np.float64]:
    """Return a measure of each pair, for messages and one-sided transfers together."""
    columns = (pairs[column].to_numpy().astype(np.float64) for column in MEASURES[name][1])
    return sum(columns, start=np.zeros(pairs.num_rows))


def coarsen(pairs: pa.Table, most: int) -> pa.Table:
    """Merge neighboring ranks until the matrix of pairs has at most ``most`` rows and columns."""
    if not pairs.num_rows:
        return pairs
    width, ranks = _ranks_per_row(pairs), _ranks(pairs)
    while width * most < ranks:
        width *= 2
    return in_blocks(pairs, width)


def in_blocks(pairs: pa.Table, width: int) -> pa.Table:
    """Merge neighboring ranks into blocks.

    Raises
    ------
    whywait.UsageError
        If the pairs are already merged into blocks that do not fit into these blocks.
    """
    if not pairs.num_rows:
        return pairs
    merged, ranks = _ranks_per_row(pairs), _ranks(pairs)
    if width % merged:
        raise _native.UsageError(f"blocks of {merged} ranks are already merged: use a multiple of {merged}")
    first, last, columns = _merge(pairs, np.arange(ranks) // width)
    start = np.arange(0, ranks, width)
    end = np.minimum(start + width, ranks) - 1
    return pa.table(
        {"rank": start[first], "last_rank": end[first], "peer": start[last], "last_peer": end[last], **columns}
    )


def between_nodes(result: ResultData, pairs: pa.Table) -> pa.Table:
    """Merge the ranks of each node.

    Parameters
    ----------
    result
        The result.
    pairs
        Its pairs of ranks.

    Returns
    -------
    pyarrow.Table
        ``node`` and ``peer_node`` (names, in the order of the system tree), and the sums over their ranks.

    Raises
    ------
    whywait.UsageError
        If neighboring ranks of different nodes are merged already.
    """
    names, node_of = nodes(result)
    for name in ("rank", "peer"):
        if pairs.num_rows and (node_of[pairs[name].to_numpy()] != node_of[pairs[f"last_{name}"].to_numpy()]).any():
            raise _native.UsageError(f"{_ranks_per_row(pairs)} neighboring ranks are merged, which span several nodes")
    first, last, columns = _merge(pairs, node_of)
    called = pa.array(names, pa.string())
    return pa.table({"node": called.take(pa.array(first)), "peer_node": called.take(pa.array(last)), **columns})


def nodes(result: ResultData) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of the nodes, and for each rank the number of its node."""
    system = result.tables.system
    has_rank = pc.greater_equal(system["rank"], 0).fill_null(False)
    processes = system.filter(pc.and_(pc.equal(system["kind"], "group"), has_rank))
    # The node of a process is its innermost one in the tree.
    places = processes["parent"].combine_chunks().dictionary_encode(null_encoding="encode")
    node_of = np.zeros(int(result.places.rank.max(initial=-1)) + 1, np.int64)
    node_of[processes["rank"].to_numpy()] = places.indices.to_numpy()
    names = system["name"].cast(pa.string()).take(places.dictionary).fill_null("").to_pylist()
    often = Counter(names)
    # Nodes with the same name are distinguished by a number.
    return [f"{name} #{at}" if often[name] > 1 else name for at, name in enumerate(names)], node_of


def by_rank(pairs: pa.Table, ranks: int) -> dict[str, npt.NDArray[np.float64]] | None:
    """Add up each measure over the pairs of each rank; None if ranks are merged.

    Names are those of `MEASURES`, with ``_from`` for the sending or waiting rank, and ``_to`` for the other one.
    """
    if _ranks_per_row(pairs) > 1:
        return None
    names: tuple[Measure, ...] = ("bytes", "messages", "time", "waiting")
    return {
        f"{name}_{end}": np.bincount(pairs[column].to_numpy(), measure(pairs, name), ranks).astype(np.float64)
        for name in names
        for end, column in (("from", "rank"), ("to", "peer"))
    }  # fmt: skip


def _ranks(pairs: pa.Table) -> int:
    """Return the number of ranks up to the last one that occurs in the pairs."""
    return 1 + max(int(pairs[name].to_numpy().max()) for name in ("last_rank", "last_peer"))


def _ranks_per_row(pairs: pa.Table) -> int:
    """Return the number of neighboring ranks per row."""
    if not pairs.num_rows:
        return 1
    return int((pairs["last_rank"].to_numpy() - pairs["rank"].to_numpy()).max()) + 1


def _merge(
    pairs: pa.Table, group_of: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Sum pairs by the groups of their ranks; return the groups of both sides, and the columns."""
    row, column = (group_of[pairs[name].to_numpy()] for name in ("rank", "peer"))
    across = int(column.max(initial=0)) + 1
    keys, group = np.unique(row * across + column, return_inverse=True)
    return keys // across, keys % across, {
        name: np.bincount(group, pairs[name].to_numpy().astype(np.float64), keys.size) for name in _COUNTED
    }  # fmt: skip


def heaviest(pairs: pa.Table, by: Measure, most: int) -> list[dict[str, Any]]:
    """Return the pairs of ranks or nodes with the largest values of a measure, and their shares."""
    values = measure(pairs, by)
    total = float(values.sum())
    least = np.partition(values, -most)[-most] if values.size > most else 0
    heavy = np.flatnonzero(values >= least)
    order = heavy[np.argsort(-values[heavy], kind="stable")][:most]
    order = order[values[order] > 0]
    rows = pairs.take(order).to_pylist()
    return [
        row | {"share": value / total} for row, value in zip(rows, values[order].tolist(), strict=True)
    ]  # fmt: skip


def totals(pairs: pa.Table) -> dict[str, float]:
    """Return the sums over all pairs."""
    return {name: pairs[name].to_numpy().sum().item() for name in _COUNTED}
