"""Who communicates with whom: pairs of ranks, merged where a picture needs it, and the heaviest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData

#: What the pairs can be ordered by: name, text, and the columns that it adds up.
MEASURES = {
    "bytes": ("Bytes", ("bytes", "transfer_bytes")),
    "messages": ("Messages", ("messages", "transfers")),
    "time": ("Time in flight", ("time", "transfer_time")),
    "waiting": ("Waiting", ("waiting",)),
}
Measure = Literal["bytes", "messages", "time", "waiting"]
_COUNTED = ("messages", "bytes", "transfers", "transfer_bytes", "time", "transfer_time", "waiting")


def measure(pairs: pa.Table, name: Measure) -> npt.NDArray[np.float64]:
    """Return what a measure is for each pair: of messages and one-sided transfers together."""
    columns = (pairs[column].to_numpy().astype(np.float64) for column in MEASURES[name][1])
    return sum(columns, start=np.zeros(pairs.num_rows))


def coarser(pairs: pa.Table, most: int) -> pa.Table:
    """Merge neighboring ranks until a matrix of the pairs has ``most`` rows and columns at most."""
    if not pairs.num_rows:
        return pairs
    ranks = 1 + max(pairs["last_rank"].to_numpy().max(), pairs["last_peer"].to_numpy().max())
    width = int((pairs["last_rank"].to_numpy() - pairs["rank"].to_numpy()).max()) + 1
    while width * most < ranks:
        width *= 2
    row, column = (pairs[name].to_numpy() // width for name in ("rank", "peer"))
    across = int(column.max()) + 1
    keys, group = np.unique(row.astype(np.int64) * across + column, return_inverse=True)
    first, peer = keys // across * width, keys % across * width
    columns = {"rank": first, "last_rank": np.minimum(first + width, ranks) - 1, "peer": peer,
               "last_peer": np.minimum(peer + width, ranks) - 1}  # fmt: skip
    for name in _COUNTED:
        columns[name] = np.bincount(group, pairs[name].to_numpy().astype(np.float64), keys.size)
    return pa.table(columns)


def heaviest(pairs: pa.Table, by: Measure, most: int) -> list[dict[str, Any]]:
    """Return the pairs with most of a measure, and which share of all of it each has."""
    values = measure(pairs, by)
    total = float(values.sum())
    order = np.argsort(-values, kind="stable")[:most]
    order = order[values[order] > 0]
    rows = pairs.take(order).to_pylist()
    return [
        row | {"share": value / total} for row, value in zip(rows, values[order].tolist(), strict=True)
    ]  # fmt: skip


def totals(result: ResultData) -> dict[str, float]:
    """Add up what all pairs have."""
    pairs = result.tables.communication[0]
    return {name: pairs[name].to_numpy().sum().item() for name in _COUNTED}
