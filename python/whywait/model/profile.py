"""Severities: a value for each metric, call path and location, and the metrics derived from them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from whywait.model.critical_imbalance import critical_imbalance
from whywait.model.metrics import MetricTree, metric_tree, void
from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.calltree import CallTree
    from whywait.model.metrics import Formula, Metric, Term

# The stored metrics that a window of time has in addition to wait states and their bounds.
_IN_WINDOW = frozenset(
    {"time", "omp_fork", "omp_management", "critical_path", "omp_idle_threads", "omp_limited_parallelism"}
)


def is_in_window(metric: Metric) -> bool:
    """Return whether a window of time has values of a stored metric."""
    return metric.name in patterns() or metric.name in _IN_WINDOW


def in_window(stored: Collection[str]) -> set[str]:
    """Select the stored metrics of a part of the run: times, wait states, their costs, and the critical path."""
    tree = metric_tree()
    costs = {"delay", "interval_delay"}
    return {
        metric.name
        for metric in tree
        if metric.name in stored and (is_in_window(metric) or tree.path(metric.name)[0].name in costs)
    }


class Cells(NamedTuple):
    """The nonzero cells of one metric, sorted by call path and location.

    ``key`` is position * number of locations + location, so that a cell is one number, and the rows of a call path, and
    of its whole subtree, are a slice.
    """

    key: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:  # a named tuple would count its two columns
        return self.key.size


#: Combines values by index.
Combine = Callable[["npt.NDArray[np.int64]", "npt.NDArray[np.float64]", int], "npt.NDArray[np.float64]"]

#: No cells.
NOTHING = Cells(np.empty(0, np.int64), np.empty(0, np.float64))


def sum_at(index: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Sum values by index, like `numpy.bincount`, which returns integers for empty input."""
    return np.bincount(index, values, size).astype(np.float64, copy=False)


def max_at(
    index: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int, nothing: float = 0.0
) -> npt.NDArray[np.float64]:
    """Return the largest value by index, and `nothing` where there is none."""
    found = np.full(size, -np.inf)
    np.maximum.at(found, index, values)
    found[np.isneginf(found)] = nothing
    return found


def add(operands: list[tuple[int, Cells]]) -> Cells:
    """Add cells with their signs; cells that cancel out are removed."""
    operands = [(sign, cells) for sign, cells in operands if cells.key.size]
    if not operands:
        return NOTHING
    if len(operands) == 1 and operands[0][0] > 0:
        return operands[0][1]
    first, last = min(cells.key[0] for _, cells in operands), max(cells.key[-1] for _, cells in operands)
    # Of more than two values, the sum could depend on the order.
    if len(operands) <= 2 and last - first < 2 * sum(len(cells) for _, cells in operands):
        return _add_densely(operands, first, last)
    key = np.concatenate([cells.key for _, cells in operands])
    value = np.concatenate([sign * cells.value for sign, cells in operands])
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    key, value = key[starts], np.add.reduceat(value, starts)
    return Cells(key[value != 0], value[value != 0])


def _add_densely(operands: list[tuple[int, Cells]], first: int, last: int) -> Cells:
    """Add cells whose keys fill much of a range, which takes no sorting."""
    total = np.zeros(last - first + 1)
    for sign, cells in operands:
        total[cells.key - first] += sign * cells.value
    key = np.flatnonzero(total)
    return Cells(key + first, total[key])


class Profile:
    """All severities of a run, stored and derived, exclusive along the call tree and inclusive along the metric tree.

    Parameters
    ----------
    tree
        The call tree.
    locations
        The number of locations.
    severities
        The table of this name from the native analysis.
    stored
        Names of the stored metrics that the analysis computes, whether they occur or not.
    works
        For each location, whether it shares the work of the program.
    """

    def __init__(
        self,
        tree: CallTree,
        locations: int,
        severities: pa.Table,
        stored: Collection[str],
        works: npt.NDArray[np.bool_],
    ) -> None:
        self.tree = tree
        self.locations = locations
        self._works = works
        self._cells = dict(split(tree, locations, severities))
        self._stored = frozenset(stored)
        self._counters: tuple[Metric, ...] = ()
        self._find_metrics()

    def extended(self, cells: Mapping[str, Cells], counters: Iterable[Metric] = ()) -> Self:
        """Return a profile with additional stored metrics, which replace those of the same name.

        Parameters
        ----------
        cells
            The cells of the metrics, by name.
        counters
            The metrics among them that are counters of the trace and not in the metric tree.
        """
        # Derived metrics may have other values now. Another thread may be adding some of this profile.
        own = {name: found for name, found in self._cells.copy().items() if name in self._stored}
        return copy(self)._set_cells(  # noqa: SLF001  (its own)
            {**own, **cells}, self._stored | cells.keys(), (*self._counters, *counters)
        )

    def _set_cells(self, cells: dict[str, Cells], stored: frozenset[str], counters: tuple[Metric, ...]) -> Self:
        self._cells, self._stored, self._counters = cells, stored, counters
        self._find_metrics()
        return self

    def _find_metrics(self) -> None:
        """Find the metrics derived from the stored ones, and the void ones."""
        self.metrics: MetricTree = metric_tree().computed(self._stored).with_counters(self._counters)
        occurring = {name: bool(cells.key.size) for name, cells in self._cells.items()}
        #: Metrics whose programming model does not occur in the run.
        self.void = void(self.metrics, self.tree.paradigms, occurring)

    def cells(self, name: str) -> Cells:
        """Return the cells of a metric; derived ones are computed once and cached."""
        if name not in self._cells:
            formula = self.metrics[name].formula
            self._cells[name] = self._evaluate(formula) if formula and name not in self.void else NOTHING
        return self._cells[name]

    def _evaluate(self, formula: Formula) -> Cells:
        return add([(term.sign, self._masked(term)) for term in formula.terms])

    def _masked(self, term: Term) -> Cells:
        cells = self.cells(term.metric)
        if term.mask is None:
            return cells
        if term.mask == "critical_imbalance":
            value = cells.value * self.critical_imbalance()[cells.key // self.locations]
            return Cells(cells.key[value != 0], value[value != 0])
        return _rows(cells, self.tree.mask(term.mask), self.locations)

    def critical_imbalance(self) -> npt.NDArray[np.float64]:
        """Return the imbalance of each call path on the critical path, as a share of its time there."""
        path = self.inclusive(self.by_position("critical_path"))
        work = self.inclusive(self._by_position_of_workers("time"))
        waits = {pattern.kind for pattern in patterns().values() if pattern.is_balanced_away}
        for metric in self.metrics:
            if metric.name in waits or metric.is_balanced_away:
                work = work - self.inclusive(self._by_position_of_workers(metric.name))
        workers = np.full(work.size, np.count_nonzero(self._works))
        # Work on streams of devices is not that of threads.
        time = self.cells("time")
        on_streams = ~self._works[time.key % self.locations]
        of_streams = sum_at(time.key[on_streams] // self.locations, time.value[on_streams], len(self.tree))
        of_streams = self.inclusive(of_streams)
        is_kernel = (of_streams > 0) & (self.inclusive(self._by_position_of_workers("time")) == 0)
        work[is_kernel] = of_streams[is_kernel]
        workers[is_kernel] = np.unique(time.key[on_streams] % self.locations).size
        return critical_imbalance(path, work, workers)

    def by_position(self, name: str) -> npt.NDArray[np.float64]:
        """Sum a metric over all locations: one exclusive value for each position of the call tree.

        Of a maximum, this and the other methods return the largest value instead of a sum.
        """
        cells = self.cells(name)
        return self.combine(name)(cells.key // self.locations, cells.value, len(self.tree))

    def combine(self, name: str) -> Combine:
        """Return how values of a metric combine: `sum_at` or `max_at`."""
        return max_at if self._is_maximum(name) else sum_at

    def _is_maximum(self, name: str) -> bool:
        return name in self.metrics and self.metrics[name].is_maximum

    def inclusive_by_position(self, name: str) -> npt.NDArray[np.float64]:
        """Combine a metric over all locations: one inclusive value for each position of the call tree."""
        if not self._is_maximum(name):
            return self.inclusive(self.by_position(name))
        cells = self.cells(name)
        largest = max_at(cells.key // self.locations, cells.value, len(self.tree), nothing=-np.inf)
        for position in range(largest.size - 1, -1, -1):
            if (above := self.tree.above[position]) >= 0:
                largest[above] = max(largest[above], largest[position])
        return np.where(np.isneginf(largest), 0.0, largest)

    def positions(self, name: str) -> npt.NDArray[np.intp]:
        """Return the positions of the call tree at which a metric has cells."""
        return np.flatnonzero(np.diff(self._first(name)))

    def _first(self, name: str) -> npt.NDArray[np.intp]:
        """Return the index of the first cell of each position of the call tree, and the number of cells."""
        return np.searchsorted(self.cells(name).key, np.arange(len(self.tree) + 1) * self.locations)

    def _by_position_of_workers(self, name: str) -> npt.NDArray[np.float64]:
        cells = self.cells(name)
        value = cells.value * self._works[cells.key % self.locations]
        return sum_at(cells.key // self.locations, value, len(self.tree))

    def by_location(self, name: str) -> npt.NDArray[np.float64]:
        """Sum a metric over the call tree: one value for each location."""
        cells = self.cells(name)
        return self.combine(name)(cells.key % self.locations, cells.value, self.locations)

    def total(self, name: str) -> float:
        """Sum a metric over all call paths and locations."""
        value = self.cells(name).value
        return float(value.max() if value.size and self._is_maximum(name) else value.sum())

    def inclusive(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert exclusive values by position to inclusive values.

        Sums from the leaves up, not differences of running sums, which would leave rounding errors in place of zeros.
        """
        total = values.copy()
        for position in range(len(total) - 1, -1, -1):
            if (above := self.tree.above[position]) >= 0:
                total[above] += total[position]
        return total

    def inclusive_cells(self, name: str) -> Cells:
        """Return the cells of a metric with inclusive values."""
        keys, values = [], []
        for position, row in self.inclusive_rows(name, range(len(self.tree))):
            (locations,) = np.nonzero(row)
            keys.append(position * self.locations + locations)
            values.append(row[locations])
        return Cells(np.concatenate(keys), np.concatenate(values)) if keys else NOTHING

    def rows(self, name: str, positions: Iterable[int]) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield the exclusive values of call paths at all locations, without call paths that have none."""
        return self._rows(name, positions, np.arange(1, len(self.tree) + 1))

    def row(self, name: str, position: int) -> npt.NDArray[np.float64]:
        """Return the exclusive values of a call path at all locations."""
        return next((values for _, values in self.rows(name, [position])), np.zeros(self.locations))

    def inclusive_rows(self, name: str, positions: Iterable[int]) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield the inclusive values of call paths at all locations, without call paths that have none."""
        return self._rows(name, positions, self.tree.end)

    def _rows(
        self, name: str, positions: Iterable[int], end: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        cells, combine = self.cells(name), self.combine(name)
        first = self._first(name)
        for position in positions:
            part = slice(first[position], first[end[position]])
            if part.start < part.stop:
                yield position, combine(cells.key[part] % self.locations, cells.value[part], self.locations)


def _rows(cells: Cells, inside: npt.NDArray[np.bool_], locations: int) -> Cells:
    """Keep the cells of call paths in a mask: these are few, and the cells of each are a slice."""
    (positions,) = np.nonzero(inside)
    starts = np.searchsorted(cells.key, positions * locations)
    ends = np.searchsorted(cells.key, (positions + 1) * locations)
    parts = [slice(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    if not parts:
        return NOTHING
    return Cells(
        np.concatenate([cells.key[part] for part in parts]), np.concatenate([cells.value[part] for part in parts])
    )


def split(tree: CallTree, locations: int, severities: pa.Table) -> Iterator[tuple[str, Cells]]:
    """Split the table by metric, with call paths in pre-order."""
    if not severities.num_rows:
        return
    table = severities.unify_dictionaries().combine_chunks()
    metric = table["metric"].chunk(0)
    codes, labels = metric.indices.to_numpy(), metric.dictionary.to_pylist()
    callpath, location, value = (table[name].to_numpy() for name in ("callpath", "location", "value"))
    # The rows of a metric are contiguous, so a metric is a slice.
    bounds = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1], [True])))
    for start, end in pairwise(bounds.tolist()):
        key, own = tree.position[callpath[start:end]] * locations + location[start:end], value[start:end]
        # Call paths are often in pre-order already.
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key, own = key[order], own[order]
        yield labels[codes[start]], Cells(key, own)
