"""The part of `whywait.Result` that tells about threads: their locks, tasks, and loops."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import whywait._native as _native
import whywait.mpi as mpi
from whywait.api.clocked import ClockedResult
from whywait.model import tables

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.analysis.efficiency import Window


class ThreadedResult(ClockedResult):
    """A result with the locks, tasks, and loops of threads."""

    def locks(self, window: Window | None = None) -> pa.Table:
        """Return the locks of threads, and the ordered constructs, of each process.

        Parameters
        ----------
        window
            Begin and end of a time window (s since the begin of the run): only what begins in it counts.

        Returns
        -------
        pyarrow.Table
            One row for each, the one that threads wait for longest first.

            * ``rank``, ``paradigm``, ``lock``: the process, the programming model, and the number of the lock; null for
              an ordered construct.
            * ``callpath``: where threads wait for it longest, or acquire it most often.
            * ``acquisitions``, ``contended``, ``waiting``, ``longest_queue``: how often it is acquired, and how often
              after a wait for another thread; the sum of these waits (s); the most threads that wait at the same time.
            * ``holding``, ``gap``: the time in which threads own it, and that from a release to the acquisition by a
              thread that waited (s).
            * ``critical``, ``critical_acquisitions``, ``critical_contended``: the part of the critical path whose
              thread owns it (s), and the number of such ownerships, and of those after a wait.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        pieces = tables.lock_pieces(self.tree, self.places, mpi.together(self._analysis("locks").locks, window))
        return tables.table(tables.LOCKS, pieces)

    def tasks(self, window: Window | None = None) -> pa.Table:
        """Return the sizes of tasks, by construct and process.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            One row for each, the one whose tasks run longest first.

            * ``rank``, ``callpath``: the process, and the call path of the tasks: below the one that created them.
            * ``tasks``, ``elsewhere``, ``migrations``: how many there are, how many began on another thread than their
              creator, and how often a suspended one went on on another thread.
            * ``execution``, ``median``, ``shortest``, ``longest``: the time in which they ran (s), in all and by task.
            * ``creation``, ``median_creation``, ``median_delay``: the time to create them (s), in all and of the median
              task, and the median time from when a task could run to its start, of those that idle threads start.
              Others wait until a thread is free.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.

        Notes
        -----
        The *parallel benefit* of a construct is ``median / (median_creation + median_delay)``; tasks with less than 1
        are too small (after Muddukrishna et al., PPoPP 2016).
        """
        return self._tasks(0, tables.TASKS, window)

    def work_span(self, window: Window | None = None) -> pa.Table:
        """Return work and span of the parallel regions in which tasks run.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            One row for each region of a process, the one with most work first.

            * ``rank``, ``callpath``, ``instances``, ``threads``: where it is, how often, and the largest team.
            * ``elapsed``, ``work``, ``span``: its time, the work of all threads without waits, and the longest chain of
              work that cannot run in parallel (s), summed over instances.
            * ``burdened_span``: the longest such chain if each task also takes the median time from when one of its
              construct could run to its start on an idle thread (He, Leiserson, Leiserson, SPAA 2010).

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.

        Notes
        -----
        ``work / span`` is the parallelism: more threads than that are of no use.
        """
        return self._tasks(1, tables.TASK_REGIONS, window)

    def task_lengths(self, window: Window | None = None) -> pa.Table:
        """Return how many tasks run how long, by construct and process.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            Rows for each construct in the order of `tasks`, from the shortest tasks on.

            * ``rank``, ``callpath``: the process, and the call path of the tasks.
            * ``from``, ``to``, ``tasks``: the number of those that run at least ``from`` and less than ``to``, which
              is twice as long (s).

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        return self._tasks(2, tables.TASK_LENGTHS, window)

    def loops(self, window: Window | None = None) -> pa.Table:
        """Return how evenly threads share the work of worksharing constructs: loops, sections, and single blocks.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            One row for each construct of a process, the one that loses most first.

            * ``rank``, ``callpath``, ``instances``, ``threads``: where it is, how often, and the most threads.
            * ``mean``, ``longest``, ``loss``: the mean time of a thread, that of the thread which takes longest, and
              the difference (s), summed over instances; without waits and the barrier at the end.
            * ``late_start``, ``uneven``: waiting in the barriers behind it because the last thread entered the
              construct later, and the rest (s).
            * ``distribution``: ``tiny`` (less than ten times as long as fork and join), ``persistent`` (``last_thread``
              is last in at least 80% of the instances), ``tail`` (the last thread is late by less than a tenth of its
              time), ``alternating``, or ``few`` (fewer than five instances).
            * ``last_thread``, ``last_count``: the thread that is last most often, and how often.
            * ``without_section``: threads without a section, summed over instances.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        table = mpi.together(self._analysis("loops").worksharing, window)
        return tables.table(tables.LOOPS, tables.task_pieces(self.tree, self.places, table, tables.LOOPS))

    def _tasks(self, part: int, schema: pa.Schema, window: Window | None) -> pa.Table:
        if window not in self._task_tables:
            self._task_tables[window] = mpi.together(self._analysis("tasks").tasks, window)
        native = self._task_tables[window][part]
        return tables.table(schema, tables.task_pieces(self.tree, self.places, native, schema))

    @cached_property
    def _task_tables(self) -> dict[Window | None, tuple[_native.Table, ...]]:
        return {}

    def _analysis(self, what: str) -> _native.Analysis:
        if (analysis := self.tables.analysis) is None:
            raise _native.UsageError(f"a result on disk has no {what}: analyze the trace again")
        return analysis
