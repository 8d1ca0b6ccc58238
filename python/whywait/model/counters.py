"""Counters of a trace and the longest queues as metrics, below a root of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.model.metrics import Metric, metric_tree
from whywait.model.profile import Cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

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
    """Yield counters as metrics, exclusive along the call tree, without amounts outside of all regions.

    A total is one metric. A level is two: its integral over time, and its maximum (``max:NAME``).

    Parameters
    ----------
    counters, cells
        The tables of a dataset.
    tree
        The call tree.
    locations
        The number of locations.
    """
    # Totals first.
    for name, row in sorted(named(counters, cells), key=lambda one: one[1]["kind"] != "total"):
        own = cells.filter(np.equal(cells["counter"].to_numpy(), row["counter"]))
        own = own.filter(own["callpath"].is_valid())
        amount = own["amount"].to_numpy()
        key = (tree.position[own["callpath"].to_numpy()] * locations + own["location"].to_numpy()).astype(np.int64)
        if row["kind"] != "total":
            yield from _level(name, row, key, *(own[column].to_numpy() for column in ("amount", "maximum", "seconds")))
        elif amount.any():
            unit = "sec" if row["unit"] == "s" else row["unit"]
            whole = bool(row["integer"]) and float(row["factor"]).is_integer() and not (amount < 0).any()
            yield _metric(name, unit, _description(row), real=not whole), _sorted_cells(key, amount, amount != 0)


def _level(
    name: str,
    row: dict[str, Any],
    key: npt.NDArray[np.int64],
    integral: npt.NDArray[np.float64],
    maximum: npt.NDArray[np.float64],
    seconds: npt.NDArray[np.float64],
) -> Iterator[tuple[Metric, Cells]]:
    """Yield integral and maximum of a level, and the time in which it is known, unless it has no values in regions."""
    sampled = np.isfinite(maximum)
    if not sampled.any():
        return
    text = _description(row).rstrip(".") + "."
    about = f"{text} Integral over time: its quotient by the time is the mean."
    # Without a unit it would be a time.
    yield _metric(name, f"{row['unit'] or '#'} sec", about), _sorted_cells(key, integral, integral != 0)
    largest = _metric(f"max:{name}", row["unit"], f"{text} Maximum.", is_maximum=True)
    yield largest, _sorted_cells(key, maximum, sampled)
    known = Metric(seconds_of(name), name, "sec", "hidden", None, None, f"Time in which {name} is known.", None)
    yield known, _sorted_cells(key, seconds, seconds > 0)


def seconds_of(level: str) -> str:
    """Return the name of the time in which a level is known."""
    return f"seconds:{level}"


def longest_queues(levels: pa.Table) -> Iterator[tuple[Metric, Cells]]:
    """Yield the maxima of queues as metrics, each with its values at the first root of the call tree.

    Parameters
    ----------
    levels
        The table `queue_levels` of a dataset.
    """
    of_processes = levels.filter(levels["location"].is_valid())
    names = np.array(of_processes["metric"].to_pylist(), dtype=object)
    for level in dict.fromkeys(names):
        own = of_processes.filter(pa.array(names == level))
        value = own["maximum"].to_numpy().astype(np.float64)
        key = own["location"].to_numpy().astype(np.int64)
        unit = own["unit"][0].as_py()
        metric = _metric(name_of_maximum(level), unit, f"Maximum of {level} over the run.", is_maximum=True)
        yield metric, _sorted_cells(key, value, value != 0)


def name_of_maximum(level: str) -> str:
    """Return the name of the maximum of a level of queues."""
    return f"mpi_max_{level.removeprefix('mpi_')}"


def _sorted_cells(key: npt.NDArray[np.int64], value: npt.NDArray[np.float64], keep: npt.NDArray[np.bool_]) -> Cells:
    order = np.argsort(key, kind="stable")
    order = order[keep[order]]
    return Cells(key[order], value[order])


def _description(row: dict[str, Any]) -> str:
    return row["description"] or f"{row['name']}, as the trace has it."


def _metric(name: str, unit: str, description: str, *, real: bool = True, is_maximum: bool = False) -> Metric:
    return Metric(name, name, unit, "counter", None, None, description, None, real=real, is_maximum=is_maximum)


def metrics_of(found: Iterable[tuple[Metric, Cells]]) -> tuple[list[Metric], dict[str, Cells]]:
    """Split pairs of metrics and cells into a list of metrics and the cells by name."""
    pairs = list(found)
    return [metric for metric, _ in pairs], {metric.name: cells for metric, cells in pairs}
