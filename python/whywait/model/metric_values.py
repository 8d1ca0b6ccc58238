"""Metrics with their values, by unique name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from whywait.model import tables
from whywait.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

    from whywait.model.calltree import CallTree
    from whywait.model.metrics import Formula, Metric


class MetricValues:
    """One metric with its values.

    Attributes
    ----------
    total : float or int
        The sum over all call paths and locations, in `unit`; of a maximum, the largest value.
    """

    def __init__(self, profile: Profile, locations: tables.Locations, metric: Metric) -> None:
        self._profile = profile
        self._locations = locations
        self._metric = metric

    @property
    def name(self) -> str:
        """The unique name."""
        return self._metric.name

    @property
    def display_name(self) -> str:
        """The display name, shown below that of `parent`."""
        return self._metric.display_name

    @property
    def unit(self) -> str:
        """``sec``, ``occ`` (occurrences), ``bytes`` or ``elements`` (of atomics)."""
        return self._metric.unit

    @property
    def description(self) -> str:
        """What the metric means."""
        return self._metric.description

    @property
    def formula(self) -> Formula | None:
        """The formula of a derived metric; None if it is measured."""
        return self._metric.formula

    @property
    def parent(self) -> str | None:
        """The parent in the metric tree."""
        return self._metric.parent

    @property
    def children(self) -> list[str]:
        """The children in the metric tree."""
        return [metric.name for metric in self._profile.metrics.children(self.name)]

    @property
    def void(self) -> bool:
        """Whether the metric cannot have a value because its programming model does not occur in the run."""
        return self.name in self._profile.void

    @property
    def total(self) -> float | int:
        """The sum over all call paths and locations; of a maximum, the largest value."""
        total = self._profile.total(self.name)
        return round(total) if self._metric.integer else total

    def by_rank(self) -> pa.Table:
        """Sum over call paths and threads: ``rank``, ``value``.

        >>> result.metrics["visits"].by_rank().slice(0, 1).to_pylist()
        [{'rank': 0, 'value': 858.0}]
        """
        return tables.by_rank(self._profile, self._locations, self.name)

    def by_callpath(self) -> pa.Table:
        """Sum over locations: ``callpath``, ``callpath_id``, ``value`` (exclusive) and ``inclusive``."""
        return tables.by_callpath(self._profile, self.name)

    def __repr__(self) -> str:
        return f"<whywait.MetricValues {self.name}: {self.total} {self.unit}>"


class Metrics(Mapping[str, MetricValues]):
    """The metrics of a result in the order of the metric tree, by unique name."""

    def __init__(self, profile: Profile, locations: tables.Locations) -> None:
        self._profile = profile
        self._locations = locations

    def __getitem__(self, name: str) -> MetricValues:
        return MetricValues(self._profile, self._locations, self._profile.metrics[name])

    def nonzero(self) -> dict[str, MetricValues]:
        """Return the metrics that have a value, in the same order.

        >>> list(result.metrics.nonzero())[:3]
        ['time', 'execution', 'comp']
        """
        return {name: self[name] for name in self if len(self._profile.cells(name))}

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __iter__(self) -> Iterator[str]:
        return (metric.name for metric in self._profile.metrics)

    def __len__(self) -> int:
        return len(self._profile.metrics)


class Window(Profile):
    """The severities of a window of time, and its metrics by unique name.

    >>> round(result.window(0.5, 0.6)["mpi_latesender"].total, 4)  # seconds
    0.1479

    Parameters
    ----------
    tree
        The call tree.
    places
        The locations.
    severities
        The native table of the window.
    stored
        Names of the stored metrics that a window has.
    """

    def __init__(self, tree: CallTree, places: tables.Locations, severities: pa.Table, stored: Collection[str]) -> None:
        super().__init__(tree, len(places), severities, stored, places.works)
        self._places = places

    def __getitem__(self, name: str) -> MetricValues:
        return Metrics(self, self._places)[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(Metrics(self, self._places))

    def __repr__(self) -> str:
        return f"<a window: {len(self.metrics)} metrics, {self.total('time'):.6g} s of all threads>"
