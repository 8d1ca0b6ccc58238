"""What a result has besides times and waits: counters, queues of messages, accelerators."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from whywait.model.result import ResultData

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.analysis.correlation import Correlation
    from whywait.analysis.counters import Counters
    from whywait.analysis.devices import Devices


class CountedResult(ResultData):
    """A result, and what is counted in it; `whywait.Result` is one."""

    @cached_property
    def counters(self) -> Counters:
        """The counters of the trace, hardware and software ones, by name.

        >>> list(result.counters)  # this trace has none
        []
        """
        from whywait.analysis.counters import Counters

        return Counters(self)

    def gpu(self) -> Devices:
        """Return what accelerators ran, which calls waited for them, and what hosts did while they starved them.

        >>> result.gpu().summary()["devices"]
        []

        Raises
        ------
        whywait.UsageError
            If the result holds no events: a written one, or one of several processes.
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
        """Return how two quantities go together: Pearson's r.

        >>> round(result.correlate("time", "mpi_latesender").r, 3)
        -0.13

        Parameters
        ----------
        x, y
            Metrics, or counters of the trace, by name. Over iterations and bins wait states and counters of the trace.
        over
            What is paired: the sums of ranks, of iterations of a loop, or of bins of time of equal width.
        bins
            How many bins.
        loop
            The loop, as for `Result.iterations`; None for the main loop.

        Returns
        -------
        whywait.analysis.correlation.Correlation
            ``n`` (ranks, iterations or bins) and ``r``: None of fewer than 3, or if a side does not vary. No test of
            significance.

        Raises
        ------
        whywait.UsageError
            If there is no such metric, counter or loop, or if events are needed and there are none.
        """
        from whywait.analysis.correlation import correlate

        return correlate(self, x, y, over, bins, loop)

    def queue_levels(self) -> pa.Table:
        """Return how long the queues of messages and requests were.

        Returns
        -------
        pyarrow.Table
            ``metric``, ``location``, ``rank`` and ``thread`` (the master thread of a process; null: the whole run),
            ``maximum``, ``time`` (when it was reached first, seconds since the begin of the trace), ``mean`` (over the
            time of the run) and ``unit``. A level that is zero all the time has no row.

        Raises
        ------
        whywait.UsageError
            If the queues were not replayed, or this is a written result, whose levels are in ``queue_levels.parquet``.
        """
        from whywait.analysis.queues import levels

        return levels(self)

    def queue_series(self) -> pa.Table:
        """Return the course of all levels of `queue_levels`, in bins of equal width.

        Returns
        -------
        pyarrow.Table
            ``metric``, ``location``, ``rank``, ``thread``, ``bin``, ``begin`` (seconds since the begin of the trace),
            ``mean`` and ``maximum`` of each bin, and ``unit``.

        Raises
        ------
        whywait.UsageError
            As for `queue_levels`, or if the analysis was not asked for bins.
        """
        from whywait.analysis.queues import series

        return series(self)
