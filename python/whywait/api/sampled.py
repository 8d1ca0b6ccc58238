"""The part of `whywait.Result` that tells what samples of the call path say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from whywait.api.threaded import ThreadedResult
from whywait.model import tables

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa


class SampledResult(ThreadedResult):
    """A result with samples of the call path."""

    def write_stacks(self, path: str | PathLike[str], form: Literal["speedscope", "pprof"]) -> Path:
        """Write the call stacks of the focus for a viewer of profiles, as a flame graph.

        Each has its time, the part of that on the critical path, and the waiting that it causes elsewhere. Samples
        divide the time between calls among functions; without samples, stacks end with the functions that call MPI.

        Parameters
        ----------
        path
            The file.
        form
            ``speedscope`` (sums over all locations), or ``pprof`` (with ``rank`` and ``thread`` as labels).

        Returns
        -------
        pathlib.Path
            The file.
        """
        from whywait.report.pprof import pprof
        from whywait.report.speedscope import speedscope
        from whywait.store.staging import Staging

        target = Path(path)
        content = pprof(self) if form == "pprof" else json.dumps(speedscope(self)).encode()
        with Staging(target.parent) as staging:
            staging.path(target.name).write_bytes(content)
        return target

    def samples(self) -> pa.Table:
        """Return the samples of the call path, one row each, by location and time.

        Returns
        -------
        pyarrow.Table
            * ``time`` (s since the start of the trace), ``location``, ``rank``, ``thread``.
            * ``callpath``: the call path that the sample saw; ``recorded_callpath``: what the events say was running,
              which is usually that one or one above it. Null outside of all calls.
            * ``kind``: ``time``, or ``count`` if something else than time triggered it.
            * ``in_call``: whether it was in a call of a communication library.
            * ``line``: the line of source that ran; null if unknown.
            * ``system_time`` (s), ``minor_faults``, ``major_faults``, ``voluntary_switches``, ``involuntary_switches``:
              what the thread used of the system since its sample before.
        """
        pieces = tables.sample_pieces(self.tree, self.places, self.tables.samples)
        return tables.table(tables.SAMPLES, pieces)

    def functions(self) -> pa.Table:
        """Return how long each sampled call path ran in the focus, one row for each location.

        The time of a recorded call path, which is known from the events, is divided in proportion to samples.

        Returns
        -------
        pyarrow.Table
            * ``location``, ``rank``, ``thread``, ``recorded_callpath``, ``callpath`` (usually that one, or one below
              it; null for time in the system or without a core, where samples tell it from the rest).
            * ``time``, ``low`` and ``high`` (the interval at 95%), ``deviation`` (its standard deviation), ``critical``
              (its time on the critical path), ``unresolved`` (what there were too few samples to divide), in seconds.
            * ``samples``: how many there are.
            * ``system_time`` (s), ``faults``, ``voluntary_switches``, ``involuntary_switches``: what was used of the
              system from sample to sample, at the recorded call path itself.
            * ``doubtful``: whether functions may be wrong on this location, which shares its core and was sampled at
              ticks of the kernel.
        """
        pieces = tables.function_pieces(self.tree, self.places, self.tables.function_times, tables.PROFILE)
        return tables.table(tables.PROFILE, pieces)

    def delay_functions(self) -> pa.Table:
        """Return what sampled call paths of late locations cost others, in the focus.

        The cost of a recorded call path at a location (`delay_costs`) is the sum of those of its sampled call paths.

        Returns
        -------
        pyarrow.Table
            * ``location``, ``rank``, ``thread``, ``recorded_callpath``, ``callpath`` (usually that one, or one below
              it; null for time in the system or without a core, where samples tell it from the rest).
            * ``cost`` (negative if the location spends less time in it than those that wait) and ``deviation`` (its
              standard deviation), in seconds.
            * ``samples``, ``waiter_samples``: how many it rests on, at the location and at those that wait.
        """
        pieces = tables.function_pieces(self.tree, self.places, self.tables.function_costs, tables.DELAY_FUNCTIONS)
        return tables.table(tables.DELAY_FUNCTIONS, pieces)
