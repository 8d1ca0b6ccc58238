"""The part of `whywait.Result` that tells what samples of the call path say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.api.threaded import ThreadedResult
from whywait.model import tables

if TYPE_CHECKING:
    import pyarrow as pa


class SampledResult(ThreadedResult):
    """A result with samples of the call path."""

    def samples(self) -> pa.Table:
        """Return the samples of the call path, one row each, by location and time.

        Returns
        -------
        pyarrow.Table
            * ``time`` (s since the start of the trace), ``location``, ``rank``, ``thread``.
            * ``callpath``: the call path that the sample saw; ``recorded_callpath``: what the events say was running,
              which is that one or one above it. Null outside of all calls.
            * ``kind``: ``time``, or ``count`` if something else than time triggered it.
            * ``in_call``: whether it was in a call of a communication library.
            * ``line``: the line of source that ran; null if unknown.
            * ``system_time`` (s), ``minor_faults``, ``major_faults``, ``voluntary_switches``, ``involuntary_switches``:
              what the thread used of the system since its sample before.
        """
        pieces = tables.sample_pieces(self.tree, self.places, self.tables.samples)
        return tables.table(tables.SAMPLES, pieces)
