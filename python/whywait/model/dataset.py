"""The dataset of a result: tables with numbers instead of names, returned by an analysis or read from a directory.

docs/dataset.md describes each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    import whywait._native as _native
    from whywait.model.options import Options
    from whywait.model.timeline import Timeline
    from whywait.model.trace import TraceIdentity


class Dataset(Protocol):
    """The tables of a result, each computed or read on first use."""

    # The run ----------------------------------------------------------------------------------------------------------

    @property
    def trace(self) -> TraceIdentity:
        """The trace that was analyzed."""
        ...

    @property
    def options(self) -> Options:
        """The options of the analysis that the result depends on."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """Numbers about the run."""
        ...

    @property
    def peak_memory(self) -> int | None:
        """The peak memory of the analysis so far, in bytes; None if the system does not provide it."""
        ...

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings: events that could not be analyzed or look wrong."""
        ...

    @property
    def inconsistencies(self) -> pa.Table:
        """All places of each kind of warning, at most 10,000 per kind."""
        ...

    # Definitions ------------------------------------------------------------------------------------------------------

    @property
    def regions(self) -> pa.Table:
        """The regions of the call tree."""
        ...

    @property
    def callpaths(self) -> pa.Table:
        """The call paths, each with its parent and its region."""
        ...

    @property
    def locations(self) -> pa.Table:
        """The locations."""
        ...

    @property
    def system(self) -> pa.Table:
        """The system tree: see `whywait.model.system.SYSTEM`."""
        ...

    @property
    def topologies(self) -> pa.Table:
        """The process topologies: see `whywait.model.system.TOPOLOGIES`."""
        ...

    # Values -----------------------------------------------------------------------------------------------------------

    @property
    def stored(self) -> Collection[str]:
        """The names of the stored metrics, including those without severities."""
        ...

    @property
    def severities(self) -> pa.Table:
        """The cells of the stored metrics."""
        ...

    @property
    def wait_states(self) -> pa.Table:
        """The wait states, one row per wait."""
        ...

    @property
    def critical_path(self) -> pa.Table:
        """The segments of the critical path; no rows if the analysis did not compute causes."""
        ...

    @property
    def counters(self) -> pa.Table:
        """The counters of the trace, one row per counter: docs/tables.md#counters."""
        ...

    @property
    def counter_cells(self) -> pa.Table:
        """The values of counters by call path and location: docs/tables.md#counter_cells."""
        ...

    @property
    def queue_levels(self) -> pa.Table | None:
        """Maxima and means of queues of messages and requests; None if these were not replayed."""
        ...

    # What takes events, unless it is stored ---------------------------------------------------------------------------

    @property
    def analysis(self) -> _native.Analysis | None:
        """The native analysis, which has the events; None if the dataset was read from a directory."""
        ...

    def factors(self, rows: Iterable[int] | None) -> tuple[pa.Table, pa.Table]:
        """Return the factors to which the cost model attributes wait states, with numbers instead of names.

        Parameters
        ----------
        rows
            The rows of the wait states in their table; None for all with factors in the dataset.

        Returns
        -------
        tuple of pyarrow.Table
            First the compared intervals, one row per wait with a known cause: ``wait`` (its row), ``contention``
            (whether it waited for the end of something, not for its begin), for both sides (``waiter_``, ``cause_``)
            ``location``, ``begin``, ``end``, ``sync_callpath`` and ``sync_time`` (the call in which the two last
            synchronized, null if they never did) and ``completion`` (the time that this call took afterwards),
            ``delay`` and ``cause_waiting`` (the sums of the factors) and ``unexplained`` (the excess of the wait over
            these).
            Then the factors: ``wait``, ``kind`` (``delay``, ``completion``, ``wait`` or ``unattributed``), ``location``
            and ``callpath`` that are charged, ``time`` of the cause and ``waiter_time`` there, ``earlier`` (the row of
            an earlier wait, else null) and ``share`` (the time it explains; the shares add up to the wait). In seconds.

        Raises
        ------
        whywait.UsageError
            If there is no such row, causes were not computed, or the result was stored without the factors of these
            waits.
        """
        ...

    @property
    def focus_costs(self) -> pa.Table | None:
        """The delay costs of the waits in the focus; None if these are all waits of the run."""
        ...

    @property
    def account(self) -> pa.Table:
        """The account of the focus.

        ``row``, ``callpath`` (null outside of all), ``location``, ``time``, ``excess`` and ``calls``.
        """
        ...

    @property
    def device_account(self) -> pa.Table:
        """The account of devices: ``device``, ``row``, ``callpath`` (of the host, or null), ``time``."""
        ...

    @property
    def io(self) -> pa.Table:
        """What was done with files: docs/tables.md#io, with numbers instead of names."""
        ...

    @property
    def samples(self) -> pa.Table:
        """The samples of the call path: docs/tables.md#samples, with numbers instead of names."""
        ...

    @property
    def function_times(self) -> pa.Table:
        """How long sampled call paths ran: docs/tables.md#profile, with numbers instead of names."""
        ...

    @property
    def function_costs(self) -> pa.Table:
        """What they cost others: docs/tables.md#delay_functions, with numbers instead of names."""
        ...

    @property
    def network(self) -> pa.Table:
        """What calls need, by kind: docs/tables.md#network."""
        ...

    def clock_table(self, name: str) -> pa.Table:
        """Return a table about the clocks, such as ``clock_violations``; without rows if nothing is violated."""
        ...

    @property
    def prices(self) -> pa.Table:
        """What changes would save: docs/tables.md#prices; no rows if nothing was simulated."""
        ...

    @property
    def transfers(self) -> pa.Table:
        """The transfers of one-sided communication; not cached, since they can be many."""
        ...

    def communication(
        self, *, whole: bool = False, inside: npt.NDArray[np.bool_] | None = None
    ) -> tuple[pa.Table, pa.Table]:
        """Return the communication matrix and message sizes: see `whywait.Result.communication`, ``message_sizes``.

        They are of the focus, or of the whole run, and of all call paths, or those inside (by number). Raises
        `whywait.UsageError` if there are no events and no stored tables.
        """
        ...

    def window(self, begin: float, end: float) -> pa.Table:
        """Return the severities that lie between two times, in seconds since the begin of the trace."""
        ...

    @property
    def stored_iterations(self) -> pa.Table | None:
        """The iterations that were stored with a result, as `whywait.analysis.iterations` returns them; else None."""
        ...

    @property
    def declared_loops(self) -> tuple[list[int], pa.Table]:
        """The loops that the program declares.

        The call paths of dynamic regions and phases; and the parameters that master threads record: ``parameter``,
        ``least`` and ``most`` successive values on a process, whether the value ``rises`` on each, and the
        ``share`` of the time of the processes, without ``MPI_Init`` and ``MPI_Finalize``, that they cover. Empty
        without events.
        """
        ...

    def iterations(
        self, marker: int | str, every: int, body: Sequence[int], computes: npt.NDArray[np.bool_]
    ) -> tuple[pa.Table, int]:
        """Return the iterations of a loop, from the events.

        Parameters
        ----------
        marker
            The call path that begins iterations, or the parameter whose value changes.
        every
            Number of Enters of the call path in an iteration.
        body
            The call paths whose last Leave ends the last iteration, if the marker is a call path.
        computes
            For each call path whether time in it is computation.

        Returns
        -------
        pyarrow.Table
            ``iteration``, ``begin`` and ``end`` (s since the begin of the trace), ``ranks`` (number of ranks with it),
            ``shortest`` and ``longest`` on a process, ``elapsed`` (the maximum over processes, times its threads),
            ``computation`` (total), ``most`` (of the process that computes longest) and ``slowest`` (its rank),
            ``critical_path`` and ``critical_location``, the ``value`` of the parameter, and a column for each kind of
            wait state (s, of all locations). int The call path of the marker.

        Raises
        ------
        whywait.UsageError
            If there are no events.
        """
        ...

    @property
    def timeline(self) -> Timeline | None:
        """The stored timeline; None if there is none."""
        ...

    # What reads the samples of counters again -------------------------------------------------------------------------

    def account_window(self, begin: float, end: float) -> pa.Table:
        """Return the account between two times, in seconds since the begin of the trace."""
        ...

    def counter_window(self, begin: float, end: float) -> pa.Table:
        """Return the values of counters between two times, in seconds since the begin of the trace."""
        ...

    def counter_changes(self, stretches: Mapping[str, Sequence[Any]], *, shared: bool = False) -> pa.Table:
        """Return the changes of counters that cover only their location in intervals of time.

        Parameters
        ----------
        stretches
            Columns ``location``, ``begin`` and ``end`` (seconds since the begin of the trace) and ``callpath`` (only
            while this one is the innermost; None for any).
        shared
            Whether to add counters of a process, a machine or a group, of which each of their threads has its part,
            and those of a device at its streams.

        Returns
        -------
        pyarrow.Table
            ``stretch`` (row), ``counter``, ``amount`` (growth, or the integral of a level), ``seconds`` (in which the
            call path ran), and of levels ``known`` (seconds in which it is known), ``minimum`` and ``maximum``; a
            counter without samples around a stretch has no row there.
        """
        ...
