"""The dataset that a result is: tables with numbers instead of names, returned by an analysis or read from a directory.

docs/dataset.md describes each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from whywait import _native
    from whywait.model.timeline import Timeline
    from whywait.model.trace import TraceIdentity


class Dataset(Protocol):
    """The tables of a result, each made or read when it is first asked for."""

    @property
    def trace(self) -> TraceIdentity:
        """The trace that was analyzed."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `whywait.analyze` that the result depends on; those of version 0.1.0 are not known."""
        ...

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
        """The streams of events."""
        ...

    @property
    def system(self) -> pa.Table:
        """The system tree: see `whywait.model.system.SYSTEM`."""
        ...

    @property
    def topologies(self) -> pa.Table:
        """How processes are arranged: see `whywait.model.system.TOPOLOGIES`."""
        ...

    @property
    def stored(self) -> Collection[str]:
        """The names of the stored metrics that it has, whether there are severities or not."""
        ...

    @property
    def severities(self) -> pa.Table:
        """The cells of the stored metrics."""
        ...

    @property
    def wait_states(self) -> pa.Table:
        """The wait states, one row each."""
        ...

    def factors(self, rows: Iterable[int] | None) -> tuple[pa.Table, pa.Table]:
        """Return what the cost model shares out wait states among, with numbers instead of names.

        Parameters
        ----------
        rows
            The rows of the wait states in their table; None for all that the dataset has factors of.

        Returns
        -------
        tuple of pyarrow.Table
            First the intervals that are compared, one row a wait of which the cause is known: ``wait`` (its row),
            ``contention`` (whether it waited for an end, not for a begin), of both sides (``waiter_``, ``cause_``)
            ``location``, ``begin``, ``end``, ``sync_callpath`` and ``sync_time`` (the call in which the two last
            synchronized, null if they never have) and ``completion`` (how long that took afterwards), ``delay`` and
            ``cause_waiting`` (all that the wait is shared out among) and ``unexplained`` (by how much it exceeds that).
            Then the factors: ``wait``, ``kind`` (``delay``, ``completion``, ``wait`` or ``unattributed``), ``location``
            and ``callpath`` that pay, ``time`` of the cause and ``waiter_time`` there, ``earlier`` (the row of an
            earlier wait, else null) and ``share`` (what it explains; those of a wait add up to it). In seconds.

        Raises
        ------
        whywait.UsageError
            If there is no such row, causes were not looked for, several processes have shared the analysis, or a
            result was written without the factors of these waits.
        """
        ...

    @property
    def critical_path(self) -> pa.Table:
        """The segments of the critical path; without rows if the analysis did not look for causes."""
        ...

    @property
    def transfers(self) -> pa.Table:
        """The transfers of one-sided communication; not kept, since they can be many."""
        ...

    @property
    def counters(self) -> pa.Table:
        """The counters of the trace, one row each: see `whywait.model.tables.COUNTERS`."""
        ...

    @property
    def counter_cells(self) -> pa.Table:
        """What counters come to at call paths of locations: see `whywait.model.tables.COUNTER_CELLS`."""
        ...

    @property
    def inconsistencies(self) -> pa.Table:
        """Every place of every kind of warning, at most 10,000 of a kind."""
        ...

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What could not be analyzed or looks wrong."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """Numbers about the whole run."""
        ...

    @property
    def peak_memory(self) -> int | None:
        """The most memory that the analysis had so far, in bytes; None if the system does not say."""
        ...

    @property
    def timeline(self) -> Timeline | None:
        """The run over time as it was stored; None if it was not."""
        ...

    @property
    def packed_timeline(self) -> Mapping[str, str]:
        """The same as blocks of a page, which versions before 0.2.0 stored; empty if there are none."""
        ...

    @property
    def analysis(self) -> _native.Analysis | None:
        """The native analysis, which has the events; None if the dataset was read from a directory."""
        ...

    @property
    def focus_costs(self) -> pa.Table | None:
        """What delay costs pay for waits as far as they lie in the focus; None if all waits of the run do."""
        ...

    def counter_window(self, begin: float, end: float) -> pa.Table:
        """Return what counters come to between two times, in seconds since the begin of the trace."""
        ...

    def counter_changes(self, stretches: Mapping[str, Sequence[Any]], *, shared: bool = False) -> pa.Table:
        """Return what counters that speak of their location came to in stretches of time.

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

    @property
    def stored_iterations(self) -> pa.Table | None:
        """The iterations that were stored with a result, as `whywait.analysis.iterations` returns them; else None."""
        ...

    @property
    def declared_loops(self) -> tuple[list[int], pa.Table]:
        """What the program says of its loops.

        The call paths of dynamic regions and phases; and the parameters that master threads record: ``parameter``,
        ``least`` and ``most`` values one after the other on a process, whether they ``rises`` on each, and the
        ``share`` of the time of the processes, without ``MPI_Init`` and ``MPI_Finalize``, that they cover. Nothing if
        there are no events.
        """
        ...

    def iterations(
        self, marker: int | str, body: Sequence[int], computes: npt.NDArray[np.bool_]
    ) -> tuple[pa.Table, int]:
        """Return the iterations of a loop, from the events.

        Parameters
        ----------
        marker
            The call path that is entered once in each iteration, or the parameter that takes another value.
        body
            The call paths whose last Leave ends the last iteration, if the marker is a call path.
        computes
            For each call path whether time in it is computation.

        Returns
        -------
        pyarrow.Table
            ``iteration``, ``begin`` and ``end`` (s since the begin of the trace), ``ranks`` (how many have it),
            ``shortest`` and ``longest`` on a process, ``elapsed`` (the most of a process, times its threads),
            ``computation`` (of all), ``most`` (of the process that computes longest) and ``slowest`` (its rank),
            ``critical_path`` and ``critical_location``, the ``value`` of the parameter, and a column for
            each kind of wait state (s, of all locations).
        int
            The call path of the marker.

        Raises
        ------
        whywait.UsageError
            If there are no events.
        """
        ...

    @property
    def communication(self) -> tuple[pa.Table, pa.Table]:
        """Who communicates with whom, and in which sizes: see `whywait.Result.communication`, ``message_sizes``.

        Raises `whywait.UsageError` if there are no events, and they were not stored.
        """
        ...

    def window(self, begin: float, end: float) -> pa.Table:
        """Return the severities that lie between two times, in seconds since the begin of the trace."""
        ...
