"""The lengths of wait states: for each kind the count, extremes, and quartiles, and the longest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.analysis.ranking import Kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

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
    """Compute statistics of the lengths of waits.

    Parameters
    ----------
    metrics
        The metric tree.
    native
        Wait states, as the native analysis returns them.

    Returns
    -------
    pyarrow.Table
        One row for each wait state that occurs, in the order of the metrics: ``metric``, ``count`` and, in seconds,
        ``sum``, ``mean``, ``variance`` (of all waits, in square seconds), ``minimum``, ``quartile25``, ``median``,
        ``quartile75`` and ``maximum``. A quantile between two waits lies on the line between them.
    """
    waiting = native["waiting"].to_numpy()
    rows = [{"metric": metric, **describe(waiting[waits])} for metric, waits in of_metrics(metrics, native)]
    return pa.Table.from_pylist(rows, STATISTICS)


def of_metrics(metrics: MetricTree, native: pa.Table) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
    """Yield each wait state with the numbers of its rows, or of its children's if it only sums these up."""
    kinds = Kinds(native)
    for metric in metrics:
        if metrics.wait_state(metric.name) is not None:
            own = kinds.of_metric(metrics, metric.name) & kinds.occurring
            if own:
                yield metric.name, kinds.rows(own)


def describe(waiting: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return number and statistics of the lengths of waits, by the names in `statistics`."""
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


def worst_of_callpaths(
    callpath: npt.NDArray[np.uint32], waiting: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.intp]:
    """Return the longest wait of each call path, for a number of call paths, longest first."""
    longest = np.full(int(callpath.max()) + 1, -np.inf)
    np.maximum.at(longest, callpath, waiting)
    order = np.lexsort((np.arange(longest.size), -longest))[:count]
    first = [
        np.flatnonzero((callpath == place) & (waiting == longest[place]))[0]
        for place in order[longest[order] > -np.inf]
    ]
    return np.array(first, np.intp)
