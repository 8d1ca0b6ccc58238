"""How long single waits are: of each kind their number, extremes and quartiles, and the longest of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.analysis.ranking import Kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.metrics import MetricTree

STATISTICS = pa.schema(
    [
        ("metric", pa.string()),
        ("count", pa.int64()),
        ("sum", pa.float64()),
        ("mean", pa.float64()),
        ("variance", pa.float64()),
        ("minimum", pa.float64()),
        ("quartile25", pa.float64()),
        ("median", pa.float64()),
        ("quartile75", pa.float64()),
        ("maximum", pa.float64()),
    ]
)


def statistics(metrics: MetricTree, native: pa.Table) -> pa.Table:
    """Describe how long waits are.

    Parameters
    ----------
    metrics
        What kinds of waits there are.
    native
        Wait states, as the native analysis returns them.

    Returns
    -------
    pyarrow.Table
        One row for each wait state that occurs, in the order of the metrics: ``metric``, ``count`` and, in seconds,
        ``sum``, ``mean``, ``variance`` (of all waits, in square seconds), ``minimum``, ``quartile25``, ``median``,
        ``quartile75`` and ``maximum``. A quantile between two waits lies on the line between them.
    """
    rows = [{"metric": metric, **describe(waits)} for metric, waits in of_metrics(metrics, native)]
    return pa.Table.from_pylist(rows, STATISTICS)


def of_metrics(metrics: MetricTree, native: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Give each wait state with its rows: where, when, how long. One that only others make up has theirs."""
    kinds = Kinds(native)
    columns = native.select(["location", "callpath", "enter", "leave", "waiting"])
    for metric in metrics:
        if metrics.wait_state(metric.name) is not None:
            own = kinds.of_metric(metrics, metric.name) & kinds.occurring
            if own:
                yield metric.name, columns.filter(pa.array(kinds.rows(own)))


def describe(waits: pa.Table) -> dict[str, Any]:
    """Return the number of some waits and the statistics of their lengths, by the names that `statistics` has."""
    waiting = waits["waiting"].to_numpy()
    lower, median, upper = np.quantile(waiting, (0.25, 0.5, 0.75)).tolist()
    return {
        "count": waiting.size,
        "sum": float(waiting.sum()),
        "mean": float(waiting.mean()),
        "variance": float(waiting.var()),
        "minimum": float(waiting.min()),
        "quartile25": lower,
        "median": median,
        "quartile75": upper,
        "maximum": float(waiting.max()),
    }


def worst_of_callpaths(waits: pa.Table, count: int) -> pa.Table:
    """Return the longest wait of each call path, of so many call paths, longest first."""
    longest = waits.group_by("callpath", use_threads=False).aggregate([("waiting", "max")])
    longest = longest.sort_by([("waiting_max", "descending"), ("callpath", "ascending")]).slice(0, count)
    callpath, waiting = waits["callpath"].to_numpy(), waits["waiting"].to_numpy()
    first = [
        np.flatnonzero((callpath == place["callpath"]) & (waiting == place["waiting_max"]))[0]
        for place in longest.to_pylist()
    ]
    return waits.take(pa.array(first, pa.int64()))
