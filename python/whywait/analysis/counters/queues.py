"""The queues of messages and requests from their replay: counts and lengths.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), chapter 3: the counters of queues.
docs/counters.md has the definitions.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
import whywait.mpi as mpi
from whywait.model import tables
from whywait.model.clocks import CLOCK_OPTIONS
from whywait.model.counters import name_of_maximum
from whywait.model.profile import sum_at
from whywait.model.selection import one_callpath, position_in_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.model.options import QueueArrival, QueueMatch
    from whywait.model.result import ResultData

#: Display names of levels.
LEVELS = {
    "mpi_unexpected_queue": "Unexpected messages in the queue",
    "mpi_unexpected_data": "Bytes in the unexpected queue",
    "mpi_posted_queue": "Posted receives in the queue",
    "mpi_send_requests": "Send requests in flight",
    "mpi_receive_requests": "Receive requests in flight",
    "mpi_requests": "Requests in flight",
    "mpi_bytes_in_flight": "Bytes in flight",
}


class Queues:
    """The counters of messages and queues of a run. Arrow takes it as the table `sums`.

    >>> queues = result.queues("send")
    >>> queues.sums.column_names
    ['metric', 'callpath', 'callpath_id', 'location', 'rank', 'thread', 'value']
    >>> max(row["maximum"] for row in queues.maxima.to_pylist() if row["metric"] == "mpi_max_requests")
    6

    Parameters
    ----------
    result
        A fresh result.
    arrival
        When a message arrives; None for the setting of the analysis, or ``"progress"`` if it had none.
    match
        Which messages share a queue; None for the setting of the analysis, or those of a pair of processes if it had
        none.
    bins
        Number of bins of equal width for levels over time, or the edges of bins, seconds since the start of the trace.

    Raises
    ------
    whywait.UsageError
        If an option has an unknown value.
    whywait.ArchiveError
        If the result is a stored one, and its trace cannot be read.
    """

    def __init__(
        self,
        result: ResultData,
        arrival: QueueArrival | None = None,
        match: QueueMatch | None = None,
        *,
        bins: int | Sequence[float] = 0,
    ) -> None:
        options = result.tables.options
        self._result = result
        self._arrival = arrival or options.queues or "progress"
        self._match = match or options.queue_match
        self._bins = bins if isinstance(bins, int) else [float(edge) for edge in bins]
        known = (options.queues, options.queue_match) == (self._arrival, self._match)
        has_bins = known and result.tables.analysis is not None and (not bins or _bins(result.tables.analysis) == bins)
        self._replayed = result.tables.analysis if has_bins else None

    def replay(self) -> _native.Analysis:
        """Replay the queues in detail: when counts grow, and what levels are when.

        Returns
        -------
        whywait._native.Analysis
            An analysis without causes. It takes a few hundred bytes per message.

        """
        return self._replay(moments=True)

    def _replay(self, *, moments: bool = False) -> _native.Analysis:
        run = self._result.run.reopen()
        chosen = (self._arrival, self._match, self._bins, moments)
        options = self._result.tables.options.as_dict()
        clocks = {name: options[name] for name in CLOCK_OPTIONS if name in options}
        return mpi.analyze(run, causes=False, queues=chosen, **clocks)

    @cached_property
    def _analysis(self) -> _native.Analysis:
        return self._replayed or self._replay()

    @cached_property
    def sums(self) -> pa.Table:
        """The counts: ``metric``, ``callpath``, ``callpath_id``, ``location``, ``rank``, ``thread``, ``value``."""
        found = pa.table(self._analysis.severities())
        known = pa.array(_native.queue_metrics())
        return self._with_names(found.filter(pc.is_in(found["metric"].cast(pa.string()), known)))

    @cached_property
    def maxima(self) -> pa.Table:
        """Maxima and means of levels, as `whywait.Result.queue_levels`, by the names of maxima (``mpi_max_...``)."""
        found = _with_ranks(self._result, pa.table(self._analysis.queue_levels()))
        names = [name_of_maximum(name) for name in found["metric"].to_pylist()]
        return found.set_column(0, "metric", pa.array(names, pa.string()))

    @cached_property
    def series(self) -> pa.Table:
        """Levels over time, as `whywait.Result.queue_series`; without rows if no bins were asked for.

        The mean of a bin is over its part within the run.
        """
        return _with_ranks(self._result, pa.table(self._analysis.queue_series()))

    @cached_property
    def moments(self) -> pa.Table:
        """Every increment: ``metric``, ``callpath`` (number), ``location``, ``time`` (s) and ``value``, by time.

        The time is the Enter of the call that posts the receive, or of the sending call for counts at senders. Replays
        the queues again, and takes a few hundred bytes per message.
        """
        return pa.table(self.replay().queue_moments())

    def window(self, begin: float, end: float) -> pa.Table:
        """Return the counts between two times (seconds since the start of the trace), in the shape of `sums`.

        Adjacent windows that cover the run add up exactly to the whole run.
        """
        time = self.moments["time"].to_numpy()
        last = math.inf if end >= self._result.facts["length"] else end
        return self._sum_moments(self.moments.filter(pa.array((time >= begin) & (time < last))))

    def over(self, name: str, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the increments of a count between times (seconds since the start of the trace), over all locations."""
        return self._sum_by_bin(self._moments_of(name), edges)

    def _sum_by_bin(self, own: pa.Table, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        number = np.searchsorted(edges, own["time"].to_numpy(), side="right") - 1
        # Events at the very end belong to the last bin.
        number[own["time"].to_numpy() == edges[-1]] = edges.size - 2
        inside = (number >= 0) & (number < edges.size - 1)
        return sum_at(number[inside], own["value"].to_numpy()[inside], edges.size - 1)

    def by_bin(self, name: str, edges: npt.NDArray[np.float64]) -> pa.Table:
        """Return the increments on each rank between times: ``rank``, ``bin``, ``begin`` (s) and ``value``."""
        own = self._moments_of(name)
        rank = self._result.places.rank[own["location"].to_numpy().astype(np.int64)]
        rows = [
            {"rank": one, "bin": number, "begin": float(edges[number]), "value": value}
            for one in np.unique(rank).tolist()
            for number, value in enumerate(self._sum_by_bin(own.filter(pa.array(rank == one)), edges).tolist())
        ]
        return pa.Table.from_pylist(rows)

    def by_iteration(self, name: str, callpath: str | int) -> pa.Table:
        """Return the increments of a count from each instance of a call path to the next one on its rank.

        Parameters
        ----------
        name
            The sum.
        callpath
            The last names of the call path, with ``/`` between them, or its number.

        Returns
        -------
        pyarrow.Table
            ``iteration`` (the k-th instance at its location, from 0), ``rank``, ``thread``, ``begin`` (s), ``value``.
        """
        tree, places = self._result.tree, self._result.places
        number = int(tree.preorder[one_callpath(tree, callpath)])
        instances = pa.table(mpi.together(self._analysis.instances, number))
        location = instances["location"].to_numpy().astype(np.int64)
        return pa.table(
            {
                "iteration": position_in_run(location).astype(np.uint32),
                "rank": places.rank[location],
                "thread": places.thread[location],
                "begin": instances["enter"],
                "value": self.over_instances(name, instances),
            }
        )

    def over_instances(self, name: str, instances: pa.Table) -> npt.NDArray[np.float64]:
        """Return the increments of a count on a process from one instance of a call path to the next.

        Parameters
        ----------
        name
            The sum.
        instances
            ``location`` and ``enter`` (s) of each, sorted by both.

        Returns
        -------
        numpy.ndarray
            One value per instance. Increments before the first instance of a process belong to none.
        """
        own, rank = self._moments_of(name), self._result.places.rank
        where = rank[instances["location"].to_numpy().astype(np.int64)]
        here = rank[own["location"].to_numpy().astype(np.int64)]
        enter, time = instances["enter"].to_numpy(), own["time"].to_numpy()
        # Sort both together, an instance before the increments at its Enter.
        order = np.lexsort((np.r_[np.zeros(enter.size), np.ones(time.size)], np.r_[enter, time], np.r_[where, here]))
        latest = np.maximum.accumulate(np.where(order < enter.size, np.arange(order.size), -1))
        owner = np.where(latest >= 0, order[latest], -1)
        moment = order >= enter.size
        owner, number = owner[moment], order[moment] - enter.size
        known = owner >= 0
        owner, number = owner[known], number[known]
        same = where[owner] == here[number]
        return sum_at(owner[same], own["value"].to_numpy()[number[same]], enter.size)

    def _moments_of(self, name: str) -> pa.Table:
        metric = self.moments["metric"]
        return self.moments.filter(pc.equal(metric.cast(pa.string()), name))

    def _sum_moments(self, moments: pa.Table) -> pa.Table:
        keys = ["metric", "callpath", "location"]
        found = moments.group_by(keys, use_threads=False).aggregate([("value", "sum")])
        found = found.rename_columns([*keys, "value"])
        order = {name: number for number, name in enumerate(_native.queue_metrics())}
        number = pa.array([order[name] for name in found["metric"].to_pylist()], pa.int32())
        found = found.append_column("order", number)
        by = [("order", "ascending"), ("callpath", "ascending"), ("location", "ascending")]
        return self._with_names(found.sort_by(by).drop_columns(["order"]))

    def _with_names(self, cells: pa.Table) -> pa.Table:
        found = tables.named(self._result.tree, self._result.places, cells, "severities")
        # Plain text, whose encoding does not depend on which metrics occur.
        return found.set_column(0, "metric", found["metric"].cast(pa.string()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Let Arrow read `sums`."""
        return self.sums.__arrow_c_stream__(requested_schema)


def _bins(analysis: _native.Analysis) -> int:
    """Return the number of bins of an analysis."""
    bins = pa.table(analysis.queue_series())["bin"].to_numpy()
    return int(bins.max()) + 1 if bins.size else 0


def levels(result: ResultData) -> pa.Table:
    """Return maxima and means; see `whywait.Result.queue_levels`."""
    if (found := result.tables.queue_levels) is None:
        raise _native.UsageError("the queues of messages were not replayed: analyze with queues=")
    return _with_ranks(result, found)


def series(result: ResultData) -> pa.Table:
    """Return maxima and means by bin; see `whywait.Result.queue_series`."""
    found = pa.table(_analysis(result).queue_series())
    if not found.num_rows and _analysis(result).queue_levels():
        raise _native.UsageError("the result has no queues over time: analyze with queue_bins=")
    return _with_ranks(result, found)


def _analysis(result: ResultData) -> _native.Analysis:
    if result.tables.queue_levels is None:
        raise _native.UsageError("the queues of messages were not replayed: analyze with queues=")
    if (analysis := result.tables.analysis) is None:
        raise _native.UsageError("a result on disk has no queues over time: analyze the trace again")
    return analysis


def _with_ranks(result: ResultData, table: pa.Table) -> pa.Table:
    """Add rank and thread after the location."""
    location = table["location"]
    for number, name in enumerate(("rank", "thread")):
        table = table.add_column(2 + number, name, result.locations[name].take(location))
    return table
