"""Counters of a trace as metrics: each total is a metric of its own, beside the times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.model.metrics import Metric, metric_tree
from whywait.model.profile import Cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.calltree import CallTree


def named(counters: pa.Table, cells: pa.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the counters that have values, each with a unique name.

    Parameters
    ----------
    counters, cells
        The tables of a dataset.

    Yields
    ------
    tuple of str and dict
        The name in the trace, prefixed with ``counter:`` if a metric has the same name, and with a number appended if
        another counter has; and its row.
    """
    used = set(np.unique(cells["counter"].to_numpy()).tolist())
    tree = metric_tree()
    taken: set[str] = set()
    for row in counters.to_pylist():
        if row["counter"] in used:
            name = f"counter:{row['name']}" if row["name"] in tree else row["name"]
            free, number = name, 2
            while free in taken:
                free, number = f"{name} ({number})", number + 1
            taken.add(free)
            yield free, row


def as_metrics(counters: pa.Table, cells: pa.Table, tree: CallTree, locations: int) -> Iterator[tuple[Metric, Cells]]:
    """Yield the totals as metrics, exclusive along the call tree, without amounts outside of all regions.

    Parameters
    ----------
    counters, cells
        The tables of a dataset.
    tree
        The call tree.
    locations
        The number of locations.
    """
    for name, row in named(counters, cells):
        own = cells.filter(np.equal(cells["counter"].to_numpy(), row["counter"]))
        own = own.filter(own["callpath"].is_valid())
        amount = own["amount"].to_numpy()
        if row["kind"] != "total" or not amount.any():
            continue
        key = tree.position[own["callpath"].to_numpy()] * locations + own["location"].to_numpy()
        yield _metric(name, row, amount), _sorted(key.astype(np.int64), amount)


def _sorted(key: npt.NDArray[np.int64], value: npt.NDArray[np.float64]) -> Cells:
    order = np.argsort(key, kind="stable")
    order = order[value[order] != 0]
    return Cells(key[order], value[order])


def _metric(name: str, row: dict[str, Any], amount: npt.NDArray[np.float64]) -> Metric:
    description = row["description"] or f"{row['name']}, as the trace has it."
    unit = "sec" if row["unit"] == "s" else row["unit"]
    whole = bool(row["integer"]) and float(row["factor"]).is_integer() and not (amount < 0).any()
    return Metric(name, name, unit, "counter", None, None, description, None, real=not whole)


def metrics_of(found: Iterable[tuple[Metric, Cells]]) -> tuple[list[Metric], dict[str, Cells]]:
    """Split pairs of metrics and cells into a list of metrics and the cells by name."""
    pairs = list(found)
    return [metric for metric, _ in pairs], {metric.name: cells for metric, cells in pairs}
