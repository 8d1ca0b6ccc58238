"""The facade: counters, message queues, and accelerators."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from whywait.model.result import ResultData

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from whywait.analysis.correlation import Correlation
    from whywait.analysis.counters import Counters
    from whywait.analysis.devices import Devices
    from whywait.analysis.queues import Queues


class CountedResult(ResultData):
    """The part of a result that describes counters, message queues, and accelerators."""

    @cached_property
    def counters(self) -> Counters:
        """The hardware and software counters of the trace, by name.

        >>> list(result.counters)  # this trace has none
        []
        """
        from whywait.analysis.counters import Counters

        return Counters(self)

    def gpu(self) -> Devices:
        """Return what accelerators ran, which calls waited for them, and what hosts did while their devices starved.

        >>> result.gpu().summary()["devices"]
        []

        Raises
        ------
        whywait.UsageError
            If the result has no events.
        """
        from whywait.analysis.devices import Devices

        return Devices(self)

    def correlate(
        self,
        x: str,
        y: str,
        over: Literal["ranks", "iterations", "bins"] = "ranks",
        *,
        bins: int = 50,
        loop: str | int | None = None,
    ) -> Correlation:
        """Return the correlation of two quantities, Pearson's r.

        >>> round(result.correlate("time", "mpi_latesender").r, 3)
        -0.13

        Parameters
        ----------
        x, y
            The names of metrics, counters of the trace, or counters of queues (``mpi_unexpected``,
            ``mpi_max_unexpected_queue``); over iterations and bins, of wait states or sums and counters.
        over
            What to pair: sums over ``"ranks"``, over ``"iterations"`` of a loop, or over ``"bins"`` of time of equal
            width.
        bins
            The number of bins.
        loop
            The loop, as for `Result.iterations`; None for the main loop.

        Returns
        -------
        whywait.analysis.correlation.Correlation
            ``n`` (the number of ranks, iterations or bins) and ``r`` (None if ``n`` is less than 3 or one quantity does
            not vary). There is no test of significance.

        Raises
        ------
        whywait.UsageError
            If there is no such metric, counter or loop, or if events are needed and the result has none.
        """
        from whywait.analysis.correlation import correlate

        return correlate(self, x, y, over, bins, loop)

    def queues(
        self,
        arrival: Literal["estimate", "send"] | None = None,
        match: Literal["pair", "list"] | None = None,
        *,
        bins: int | Sequence[float] = 0,
    ) -> Queues:
        """Return the counters of messages and queues, which a modified MPI library would count.

        >>> result.queues("send").maxima.column_names[:4]
        ['metric', 'location', 'rank', 'thread']

        Parameters
        ----------
        arrival
            When a message arrives: after the typical transfer time of its class (``"estimate"``), or as soon as its
            send begins (``"send"``); None for what the analysis chose, or an estimate.
        match
            Which messages share a queue: those of a ``"pair"`` of processes in one communicator, or all messages to a
            process in one communicator (``"list"``); None for what the analysis chose, or a pair.
        bins
            The number of bins of ``series``, of equal width, or their edges (seconds since the start of the trace).

        Returns
        -------
        whywait.analysis.queues.Queues
            ``sums``, ``maxima``, ``series`` and ``window(begin, end)``: Arrow tables. If the analysis did not replay
            the queues this way, this reads the trace once more.
        """
        from whywait.analysis.queues import Queues

        return Queues(self, arrival, match, bins=bins)

    def queue_levels(self) -> pa.Table:
        """Return the lengths of the queues of messages and requests.

        Returns
        -------
        pyarrow.Table
            ``metric``, ``location``, ``rank`` and ``thread`` (the master thread of a process; null for the whole run),
            ``maximum``, ``time`` (when the maximum was first reached, seconds since the start of the trace), ``mean``
            (over the run time) and ``unit``. A level that is always zero has no row.

        Raises
        ------
        whywait.UsageError
            If the queues were not replayed.
        """
        from whywait.analysis.queues import levels

        return levels(self)

    def queue_series(self) -> pa.Table:
        """Return all levels of `queue_levels` over time, in bins of equal width.

        Returns
        -------
        pyarrow.Table
            ``metric``, ``location``, ``rank``, ``thread``, ``bin``, ``begin`` (seconds since the start of the trace),
            ``mean`` and ``maximum`` of each bin, and ``unit``.

        Raises
        ------
        whywait.UsageError
            As for `queue_levels`, if the analysis ran without ``queue_bins``, or for a result on disk.
        """
        from whywait.analysis.queues import series

        return series(self)
