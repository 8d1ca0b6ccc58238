"""The communication matrix, if it is known and not empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.communication import between_nodes, by_rank, coarsen, heaviest, nodes
from whywait.report.html import blocks, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData
    from whywait.report.html.sections import Report

# Maximum number of rows and columns of the matrix, and of pairs in the table.
_ROWS = 256
_PAIRS = 12
# With more nodes than this, the page has no matrix of nodes.
_NODES = 1024


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the pairs of ranks, those of nodes if there are several, and the sums by rank."""
    result = report.result
    try:
        pairs, sizes = result.tables.communication()
    except _native.UsageError:
        return
    if not pairs.num_rows:
        return
    matrix = coarsen(pairs, _ROWS)
    block = int((matrix["last_rank"].to_numpy() - matrix["rank"].to_numpy()).max()) + 1
    ranks = int(result.places.rank.max()) + 1
    names, _ = nodes(result)
    between = _between_nodes(result, pairs) if 1 < len(names) <= _NODES else None
    facts = {"block": block, "ranks": ranks, "top": _top(pairs), "sizes": sizes.to_pylist()}
    each = by_rank(pairs, ranks)
    yield (
        "communication",
        blocks.document(
            facts
            | {"topologies": _topologies(result) if each else []}
            | ({"nodes": names, "top_nodes": _top(between)} if between else {})
        ),
    )
    yield "communication-pairs", _pairs(matrix, {name: matrix[name].to_numpy() // block for name in ("rank", "peer")})
    if between:
        number = {name: at for at, name in enumerate(names)}
        ends = {"rank": "node", "peer": "peer_node"}
        at = {end: np.array([number[name] for name in between[column].to_pylist()]) for end, column in ends.items()}
        yield "communication-nodes", _pairs(between, at)
    if each:
        yield "communication-ranks", blocks.columns({name: column.astype(np.float32) for name, column in each.items()})


def _between_nodes(result: ResultData, pairs: pa.Table) -> pa.Table | None:
    try:
        return between_nodes(result, pairs)
    except _native.UsageError:
        return None


def _top(pairs: pa.Table) -> dict[str, list[dict[str, Any]]]:
    return {by: heaviest(pairs, by, _PAIRS) for by in ("bytes", "messages", "time", "waiting")}


def _pairs(pairs: pa.Table, ends: dict[str, npt.NDArray[np.int64]]) -> str:
    counted = ("messages", "bytes", "transfers", "transfer_bytes", "time", "transfer_time", "waiting")
    return blocks.columns(
        {name: at.astype(np.uint32) for name, at in ends.items()}
        | {name: pairs[name].to_numpy().astype(np.float64) for name in counted}
    )


def _topologies(result: ResultData) -> list[dict[str, Any]]:
    """Return the Cartesian topologies, with ranks instead of locations at the coordinates."""
    rank = result.places.rank
    return [
        topology | {"places": [int(rank[location]) for location in topology["places"]]}
        for topology in places.topologies(result.tables.topologies)
    ]
