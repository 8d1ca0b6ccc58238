"""The iterations of the main loop and the communication matrix as blocks of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.communication import between_nodes, by_rank, coarsen, heaviest, nodes
from whywait.analysis.iterations import assess, kinds, known_iterations
from whywait.model.names import short_name
from whywait.report.html import blocks, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData

# Up to this number, the parts and shares of iterations are written unrounded. More of them only serve a picture.
_EXACT = 10_000
# Maximum number of rows and columns of the matrix, and of pairs in the table.
_ROWS = 256
_PAIRS = 12
# With more nodes than this, the page has no matrix of nodes.
_NODES = 1024
# Maximum number of wait states with values per iteration.
_KINDS = 6


def loop_blocks(result: ResultData, named: str | int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the blocks of the iterations, if a main loop is found in the events or the stored tables.

    Parameters
    ----------
    result
        The run.
    named
        The loop, as in `whywait.analysis.iterations.iterations`.
    """
    if (table := known_iterations(result, named)) is None:
        return
    found = assess(result, table)
    # Wait states that are part of another one are not listed beside it.
    whole = {metric.name for metric in result.profile.metrics.waiting}
    shown = [kind for kind in found["wait_states"] if kind in kinds(table) and kind in whole][:_KINDS]
    names = [short_name(name) for name in found["callpath"]]
    labels = result.profile.metrics.labels(shown)
    values = table["value"].to_pylist() if found["parameter"] else []
    # A parameter that counts from 0 repeats the iteration number.
    if values == [str(number) for number in range(len(values))]:
        values = []
    about = {"names": names, "kinds": list(labels.items()), "values": values}
    yield "iterations", blocks.document({**found, **about})
    yield "iterations-rows", blocks.columns(_rows(result, table, shown))


def _rows(result: ResultData, table: pa.Table, shown: list[str]) -> dict[str, npt.NDArray[Any]]:
    def numbers(name: str) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = table[name].fill_null(np.nan).to_numpy()
        return values

    # Mean waiting time per thread, so that it is a part of the duration.
    threads = np.count_nonzero(result.places.works) / max(1, int(np.unique(result.places.rank).size))
    each = 1 / np.maximum(table["ranks"].to_numpy() * threads, 1)
    rows: dict[str, npt.NDArray[Any]] = {name: numbers(name) for name in ("begin", "end", "duration")}
    rows["computation"] = np.nan_to_num(numbers("parallel_efficiency")) * numbers("duration")
    rows["waiting"] = numbers("waiting") * each
    rows["critical_path"] = numbers("critical_path")
    rows["slowest"] = table["slowest_rank"].to_numpy()
    rows["critical_rank"] = table["critical_rank"].fill_null(-1).to_numpy()
    for name in ("parallel_efficiency", "load_balance", "communication_efficiency"):
        rows[name] = numbers(name).astype(np.float32)
    for number, kind in enumerate(shown):
        rows[f"kind-{number}"] = (numbers(kind) * each).astype(np.float32)
    if table.num_rows <= _EXACT:
        return rows
    # The page looks for the longest iterations, and shows them where they are.
    exact = ("begin", "end", "duration")
    return {
        name: places.rounded(values) if values.dtype.kind == "f" and name not in exact else values
        for name, values in rows.items()
    }


def communication_blocks(result: ResultData) -> Iterator[tuple[str, str]]:
    """Yield the blocks of the communication matrix, if there is communication and the matrix is known."""
    try:
        pairs, sizes = result.tables.communication
    except _native.UsageError:
        return
    if not pairs.num_rows:
        return
    matrix = coarsen(pairs, _ROWS)
    block = int((matrix["last_rank"].to_numpy() - matrix["rank"].to_numpy()).max()) + 1
    ranks = int(result.places.rank.max()) + 1
    names, _ = nodes(result)
    between = _between_nodes(result) if 1 < len(names) <= _NODES else None
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


def _between_nodes(result: ResultData) -> pa.Table | None:
    try:
        return between_nodes(result)
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
