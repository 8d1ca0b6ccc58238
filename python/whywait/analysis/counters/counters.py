"""The counters of a trace: hardware and software counters, by call path and location.

The growth of a counter between two samples belongs to the call paths that ran in between; see docs/counters.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import whywait._native as _native
import whywait.mpi as mpi
from whywait.model.counters import named
from whywait.model.profile import max_at, sum_at
from whywait.model.selection import edges_of_bins, in_subtrees, one_callpath, position_in_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from whywait.model.result import ResultData

#: Names of the counters of instructions and cycles.
INSTRUCTIONS, CYCLES = "PAPI_TOT_INS", "PAPI_TOT_CYC"

#: Names of the scopes of OTF2.
_SCOPES = {"LOCATION": "location", "LOCATION_GROUP": "process", "SYSTEM_TREE_NODE": "node"}
#: Short names of metric modes of OTF2.
_MODES = {"absolute": "ABSOLUTE_POINT", "accumulated": "ACCUMULATED_START", "relative": "RELATIVE_POINT"}


def mode_of(text: str) -> str:
    """Return the name of a metric mode in OTF2, given that or its short name."""
    return _MODES.get(text.lower(), text.upper())


class Counter:
    """One counter of a trace.

    Parameters
    ----------
    name
        Its name in the result: the name in the trace, with a number appended if several counters have it.
    definition
        Its row of the table `counters` of a dataset.
    cells
        Its rows of the table `counter_cells`.
    result
        The result that it belongs to.
    """

    def __init__(self, name: str, definition: dict[str, Any], cells: pa.Table, result: ResultData) -> None:
        self.name = name
        self._definition = definition
        self._cells = {column: cells[column].to_numpy(zero_copy_only=False) for column in cells.column_names}
        self._result = result

    @property
    def number(self) -> int:
        """Its number in the tables of a dataset."""
        return int(self._definition["counter"])

    @property
    def description(self) -> str:
        """Its description in the trace."""
        return str(self._definition["description"])

    @property
    def unit(self) -> str:
        """The unit of its values, according to the trace."""
        return str(self._definition["unit"])

    @property
    def mode(self) -> str:
        """The mode of its values, according to the trace: a name of OTF2, such as ``ACCUMULATED_START``."""
        return str(self._definition["mode"])

    @property
    def used_mode(self) -> str:
        """The mode that is used: `mode`, unless the values contradict it or the caller of the analysis set another."""
        chosen: str | None = self._result.tables.options.counter_modes.get(self._definition["name"])
        falls = self.kind == "level" and (chosen or self.mode).startswith("ACCUMULATED")
        return _MODES["absolute"] if falls else chosen or self.mode

    @property
    def occurrence(self) -> str:
        """When it is sampled: ``SYNCHRONOUS_STRICT``, ``SYNCHRONOUS`` or ``ASYNCHRONOUS``."""
        return str(self._definition["occurrence"])

    @property
    def kind(self) -> str:
        """``total`` or ``level``.

        The growth of a total counts; a level is integrated over time. A plugin's total that falls is taken as a level.
        """
        return str(self._definition["kind"])

    @property
    def is_percent(self) -> bool:
        """Whether a share is given in percent, according to its unit or because it exceeds 1."""
        return self.unit == "%" or (self.maximum or 0.0) > 1

    @cached_property
    def scopes(self) -> list[str]:
        """What its samples cover: ``location``, ``process``, ``node`` and ``group``, as far as they occur."""
        return scopes(self._result.run.definitions, self._definition)

    @property
    def notes(self) -> list[str]:
        """Remarks on its values."""
        notes = [] if self.used_mode == self.mode else [f"taken as {self.used_mode}"]
        return notes + (["never changes"] if self.samples > 1 and self.minimum == self.maximum else [])

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self._cells["samples"].sum())

    @cached_property
    def _value(self) -> npt.NDArray[np.float64]:
        """The values to sum: growth, or integrals of a level."""
        value: npt.NDArray[np.float64] = self._cells["amount"]
        return value

    @property
    def total(self) -> float:
        """The sum over all cells: growth, or integral over time (unit times seconds)."""
        return float(self._value.sum())

    @property
    def minimum(self) -> float | None:
        """The minimum; None without samples."""
        return float(self._cells["minimum"].min()) if self.samples else None

    @property
    def maximum(self) -> float | None:
        """The maximum; None without samples."""
        return float(self._cells["maximum"].max()) if self.samples else None

    @property
    def mean(self) -> float | None:
        """The mean of a level over the time in which it is known; None for a total."""
        seconds = float(self._cells["seconds"].sum())
        return self.total / seconds if self.kind == "level" and seconds else None

    @property
    def outside(self) -> float:
        """The part of `total` outside all regions, including counters that have a location of their own."""
        return float(self._value[~self._in_regions].sum())

    @cached_property
    def _in_regions(self) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = ~np.isnan(self._cells["callpath"].astype(np.float64))
        return inside

    def by_position(self) -> npt.NDArray[np.float64]:
        """Sum over all locations: an exclusive value for each position of the call tree."""
        return self._by_position("amount")

    def by_callpath(self) -> pa.Table:
        """Sum over locations: ``callpath``, ``callpath_id``, ``value``, ``inclusive`` (with all below), ``rate``, ...

        The rate is the growth of a total per second of the call path itself; null for a level. For a level, ``mean``,
        ``inclusive_mean``, ``minimum`` and ``maximum`` (while the call path itself runs) refer to the time in which it
        is known; null for a total, and where it is unknown.
        """
        tree, profile = self._result.tree, self._result.profile
        value, seconds = self.by_position(), self._by_position("seconds")
        inclusive, below = profile.inclusive(value), profile.inclusive(seconds)
        is_level = self.kind == "level"
        (shown,) = np.nonzero((value != 0) | (inclusive != 0) | ((below > 0) & is_level))
        callpath = tree.preorder[shown]
        time = self._result.profile.by_position("time")
        has_rate = (time > 0) & (self.kind == "total")
        rate = np.divide(value, time, out=np.full(value.size, np.nan), where=has_rate)
        return pa.table(
            {
                "callpath": tree.paths.take(pa.array(callpath)),
                "callpath_id": callpath.astype(np.uint32),
                "value": value[shown],
                "inclusive": inclusive[shown],
                "rate": pa.array(rate[shown], from_pandas=True),
                "mean": self._means(value[shown], seconds[shown]),
                "inclusive_mean": self._means(inclusive[shown], below[shown]),
                "minimum": self._extreme("minimum", shown),
                "maximum": self._extreme("maximum", shown),
            }
        )

    def _by_position(self, column: str) -> npt.NDArray[np.float64]:
        """Sum a column of the cells over all locations, by position of the call tree."""
        tree = self._result.tree
        callpath = self._cells["callpath"][self._in_regions].astype(np.int64)
        return sum_at(tree.position[callpath], self._cells[column][self._in_regions], len(tree))

    def _means(self, value: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> pa.Array:
        """Return the means of a level from integrals and the time in which it is known; null for a total."""
        is_known = (seconds > 0) & (self.kind == "level")
        return pa.array(np.divide(value, seconds, out=np.full(value.size, np.nan), where=is_known), from_pandas=True)

    def _extreme(self, column: str, positions: npt.NDArray[np.intp]) -> pa.Array:
        """Return the minimum or maximum of a level by position of the call tree; null for a total."""
        tree = self._result.tree
        callpath = self._cells["callpath"][self._in_regions].astype(np.int64)
        sign = -1.0 if column == "minimum" else 1.0
        values = sign * self._cells[column][self._in_regions]
        found = sign * max_at(tree.position[callpath], values, len(tree), nothing=np.nan)[positions]
        found[~np.isfinite(found) | (self.kind != "level")] = np.nan
        return pa.array(found, from_pandas=True)

    def by_location(self) -> pa.Table:
        """Sum over call paths: ``location``, ``rank``, ``thread``, ``value``, ``samples``, ``minimum``, ``maximum``.

        Also the ``mean`` of a level over the ``seconds`` in which it is known; null for a total.
        """
        locations = len(self._result.places)
        location = self._cells["location"].astype(np.int64)
        (shown,) = np.nonzero(np.bincount(location, minlength=locations))
        least, most = np.full(locations, np.inf), np.full(locations, -np.inf)
        np.minimum.at(least, location, self._cells["minimum"])
        np.maximum.at(most, location, self._cells["maximum"])
        places = self._result.places
        seconds = sum_at(location, self._cells["seconds"], locations)
        return pa.table(
            {
                "location": shown.astype(np.uint32),
                "rank": places.rank[shown],
                "thread": places.thread[shown],
                "value": sum_at(location, self._value, locations)[shown],
                "samples": sum_at(location, self._cells["samples"], locations)[shown].astype(np.uint64),
                "minimum": least[shown],
                "maximum": most[shown],
                "mean": self._means(sum_at(location, self._value, locations)[shown], seconds[shown]),
                "seconds": seconds[shown],
            }
        )

    def cells(self) -> pa.Table:
        """Return exclusive values: ``callpath``, ``callpath_id``, ``location``, ``rank``, ``thread``, ``value``, ...

        Also ``seconds`` (in which a level is known), ``sampled`` (sum of the samples), ``samples`` (their number),
        ``minimum`` and ``maximum``. Values outside all regions have no call path.
        """
        places = self._result.places
        number = pa.array(self._cells["callpath"].astype(np.float64), from_pandas=True).cast(pa.uint32())
        location = self._cells["location"].astype(np.int64)
        columns = {
            "callpath": self._result.tree.paths.take(number),
            "callpath_id": number,
            "location": self._cells["location"],
            "rank": places.rank[location],
            "thread": places.thread[location],
            "value": self._value,
        }
        return pa.table(
            columns | {name: self._cells[name] for name in ("seconds", "sampled", "samples", "minimum", "maximum")}
        )

    def by_rank(self) -> pa.Table:
        """Sum over call paths and threads: ``rank``, ``value``, ``samples``, ``minimum``, ``maximum``, ``mean``.

        The mean is that of a level over the time in which it is known; null for a total.
        """
        sums = [("value", "sum"), ("samples", "sum"), ("minimum", "min"), ("maximum", "max"), ("seconds", "sum")]
        found = self.by_location().group_by("rank", use_threads=False).aggregate(sums).sort_by("rank")
        found = found.select(["rank", *("_".join(one) for one in sums)]).rename_columns(
            ["rank", *(name for name, _ in sums)]
        )
        mean = self._means(found["value"].to_numpy(), found["seconds"].to_numpy())
        return found.drop_columns(["seconds"]).append_column("mean", mean)

    def series(self, bins: int, *, width: float | None = None, window: tuple[float, float] | None = None) -> pa.Table:
        """Return the counter over time, or the part of each location that shares it. Reads the trace again.

        Parameters
        ----------
        bins
            The number of bins of equal width.
        width
            The width of a bin in seconds, instead of the number; the last bin may be shorter.
        window
            The part of the run, in seconds since the begin of the trace; None for all of it.

        Returns
        -------
        pyarrow.Table
            ``location``, ``rank``, ``thread``, ``bin``, ``begin`` (seconds since the begin of the trace) and ``value``:
            the growth of a total in the bin, or the integral of a level. The bins of a location add up to its value.
            For levels also ``mean`` (over the time in which it is known) and ``maximum``; null for totals.

        Raises
        ------
        whywait.UsageError
            If the result is a written one, which has no events.
        """
        edges = edges_of_bins(window or (0.0, self._result.facts["length"]), bins, width)
        locations = np.unique(self._cells["location"]).astype(np.int64)
        location, number = np.repeat(locations, edges.size - 1), np.tile(np.arange(edges.size - 1), locations.size)
        begins, ends = edges.copy(), edges.copy()
        if window is None:
            # The first and the last sample may lie outside the run, but belong to it.
            begins[0], ends[-1] = -np.inf, np.inf
        found = self._changes(location, begins[number], ends[number + 1])
        row = found["stretch"].to_numpy().astype(np.int64)
        location, number = location[row], number[row]
        value, known = found["amount"].to_numpy(), found["known"].to_numpy()
        mean = np.divide(value, known, out=np.full(value.size, np.nan), where=known > 0)
        places = self._result.places
        return pa.table(
            {
                "location": location.astype(np.uint32),
                "rank": places.rank[location],
                "thread": places.thread[location],
                "bin": number.astype(np.uint32),
                "begin": edges[number],
                "value": value,
                "mean": pa.array(mean, from_pandas=True),
                "maximum": found["maximum"],
            }
        )

    def _changes(
        self, location: npt.NDArray[np.int64], begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64]
    ) -> pa.Table:
        """Return the change of the counter in intervals of time, or the parts of locations that share it."""
        columns = {"location": location.tolist(), "begin": begin.tolist(), "end": end.tolist()}
        found = self._result.tables.counter_changes(columns | {"callpath": [None] * location.size}, shared=True)
        return found.filter(pa.array(found["counter"].to_numpy() == self.number))

    def by_iteration(self, callpath: str | int, *, to_next: bool = False) -> pa.Table:
        """Return the change of the counter in each instance of a call path, or the parts of locations that share it.

        Parameters
        ----------
        callpath
            The last names of the call path, joined with ``/``, or its number.
        to_next
            Whether an iteration lasts until the next one of its location begins (the last one until the end of the
            run) instead of until its Leave.

        Returns
        -------
        pyarrow.Table
            ``iteration`` (the k-th instance at its location, from 0), ``location``, ``rank``, ``thread``, ``begin``
            (seconds since the begin of the trace), ``time`` (s) and ``value``: the growth of a total from Enter to
            Leave, or the integral of a level; null without a sample.

        Raises
        ------
        whywait.UsageError
            If no call path is named so, or several are, or if the result is a written one, which holds no events.
        """
        tree = self._result.tree
        number = int(tree.preorder[one_callpath(tree, callpath)])
        if (analysis := self._result.tables.analysis) is None:
            raise _native.UsageError("a result on disk has no events: analyze the trace again")
        instances = pa.table(mpi.together(analysis.instances, number))
        location = instances["location"].to_numpy().astype(np.int64)
        enter, leave = (instances[name].to_numpy() for name in ("enter", "leave"))
        if to_next:
            is_last = np.append(location[1:] != location[:-1], np.ones(min(location.size, 1), np.bool_))
            leave = np.where(is_last, self._result.facts["length"], np.roll(enter, -1))
        found = self._changes(location, enter, leave)
        value = np.full(location.size, np.nan)
        value[found["stretch"].to_numpy()] = found["amount"].to_numpy()
        places = self._result.places
        return pa.table(
            {
                "iteration": position_in_run(location).astype(np.uint32),
                "location": location.astype(np.uint32),
                "rank": places.rank[location],
                "thread": places.thread[location],
                "begin": enter,
                "time": leave - enter,
                "value": pa.array(value, from_pandas=True),
            }
        )

    def in_computation(self, callpath: str | int | None = None) -> float:
        """Sum over the call paths that compute: those with time outside communication and threading libraries.

        Parameters
        ----------
        callpath
            Only these call paths and those below, as in `find_callpaths`; None for all.
        """
        tree = self._result.tree
        inside = self._result.profile.by_position("comp") > 0
        if callpath is not None:
            inside &= in_subtrees(tree, callpath)[tree.preorder]
        return float(self.by_position()[inside].sum())

    def as_dict(self) -> dict[str, Any]:
        """Return a summary of the counter as data for JSON."""
        names = "name kind mode used_mode occurrence scopes unit samples total minimum maximum mean outside notes"
        return {name: getattr(self, name) for name in names.split()}

    def __repr__(self) -> str:
        return f"<whywait Counter {self.name}: {self.total:g} {self.unit}>"


def scopes(definitions: Mapping[str, Any], counter: Mapping[str, Any]) -> list[str]:
    """Return what the samples of a counter cover, according to the definitions of the trace.

    Parameters
    ----------
    definitions
        The definitions of the trace.
    counter
        Its row of the table `counters` of a dataset.
    """
    if "MetricMember" not in definitions or "MetricClass" not in definitions:
        return []
    wanted = (counter["name"], counter["unit"], counter["mode"])
    rows = definitions["MetricMember"].to_pylist()
    members = {row["id"] for row in rows if (row["name"], row["unit"], row["metric_mode"]) == wanted}
    classes = {row["id"] for row in definitions["MetricClass"].to_pylist() if members & set(row["metric_members"])}
    instances = definitions["MetricInstance"].to_pylist() if "MetricInstance" in definitions else []
    found = {_SCOPES.get(row["metric_scope"], "group") for row in instances if row["metric_class"] in classes}
    return sorted(found) or ["location"]


class Counters(Mapping[str, Counter]):
    """The counters of a trace that have values, by name.

    >>> list(result.counters)  # this trace has none
    []

    Parameters
    ----------
    result
        The result.
    cells
        The values, as the table `counter_cells` of a dataset; None for the whole run.
    """

    def __init__(self, result: ResultData, cells: pa.Table | None = None) -> None:
        self._result = result
        cells = result.tables.counter_cells if cells is None else cells
        number = cells["counter"].to_numpy()
        self._counters = {
            name: Counter(name, row, cells.filter(pa.array(number == row["counter"])), result)
            for name, row in named(result.tables.counters, cells)
        }

    def window(self, begin: float, end: float) -> Counters:
        """Return the counters between two times, in seconds since the begin of the trace.

        Adjacent windows add up: growth between two samples is divided in proportion to time.

        Raises
        ------
        whywait.UsageError
            If the result is a written one, which has no events.
        """
        # The first and the last sample may lie outside the run, but belong to it.
        begin = begin if begin > 0 else -math.inf
        end = end if end < self._result.facts["length"] else math.inf
        return Counters(self._result, self._result.tables.counter_window(begin, end))

    def during(self, stretches: Mapping[str, Sequence[Any]], *, shared: bool = False, means: bool = False) -> pa.Table:
        """Return the changes of counters that cover only their location in intervals of time.

        Parameters
        ----------
        stretches
            Columns ``location`` (index), ``begin`` and ``end`` (seconds since the begin of the trace), and ``callpath``
            (its number, to count only while it is the innermost one; None for all).
        shared
            Whether to add the parts of counters that cover a process, a machine or a group, and counters of devices
            at their streams.
        means
            Whether to divide the integral of a level by the time in which it is known.

        Returns
        -------
        pyarrow.Table
            A row for each interval, a column for each counter that is known in any: the growth of a total, or the
            integral or mean of a level; null where it is unknown.

        Raises
        ------
        whywait.UsageError
            If the result is a written one, which has no events.
        """
        found = self._result.tables.counter_changes(stretches, shared=shared)
        counter, stretch = found["counter"].to_numpy(), found["stretch"].to_numpy()
        columns = {}
        for name, of_trace in self.items():
            (rows,) = np.nonzero(counter == of_trace.number)
            if rows.size:
                value = np.full(len(stretches["location"]), np.nan)
                amount = found["amount"].to_numpy()[rows]
                if means and of_trace.kind == "level":
                    seconds = found["known"].to_numpy(zero_copy_only=False)[rows]
                    amount = np.divide(amount, seconds, out=np.full(rows.size, np.nan), where=seconds > 0)
                value[stretch[rows]] = amount
                columns[name] = pa.array(value, from_pandas=True)
        return pa.table(columns)

    def __getitem__(self, name: str) -> Counter:
        return self._counters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counters)

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def instructions_per_cycle(self) -> float | None:
        """``PAPI_TOT_INS / PAPI_TOT_CYC`` of the run; None without these counters."""
        if INSTRUCTIONS not in self or CYCLES not in self or not self[CYCLES].total:
            return None
        return self[INSTRUCTIONS].total / self[CYCLES].total

    @property
    def frequency(self) -> float | None:
        """``PAPI_TOT_CYC`` per second of the call paths that have it; None without this counter."""
        if CYCLES not in self or not (cycles := self[CYCLES].by_position()).any():
            return None
        return float(cycles.sum() / self._result.profile.by_position("time")[cycles > 0].sum())


def with_counters(
    result: ResultData, table: pa.Table, begin: str, end: str, names: bool | Sequence[str] = True
) -> pa.Table:
    """Add the changes of counters in each row of a table, as columns ``counter:NAME``.

    Parameters
    ----------
    result
        The result with the counters.
    table
        Intervals of time: a column ``location``, and columns of their begin and end.
    begin, end
        The names of these columns.
    names
        The counters; True for all.

    Raises
    ------
    whywait.UsageError
        If the result is a written one, which holds no events, or has no such counter.
    """
    counters = Counters(result)
    for name in [] if isinstance(names, bool) else names:
        if name not in counters:
            raise _native.UsageError(f"there is no counter {name!r}; there are {', '.join(counters) or 'none'}")
    rows = table.num_rows
    stretches = {"location": table["location"].to_pylist(), "begin": table[begin].to_pylist(),
                 "end": table[end].to_pylist(), "callpath": [None] * rows}  # fmt: skip
    found = counters.during(stretches)
    for name in found.column_names if isinstance(names, bool) else names:
        if name not in found.column_names:
            continue
        table = table.append_column(f"counter:{name}", found[name])
    return table
