"""Lengths of the queues of messages and requests, as the replay found them.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), chapter 3: the counters of queues.
docs/counters.md has the definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from whywait import _native

if TYPE_CHECKING:
    from whywait.model.result import ResultData


def replayed(result: ResultData) -> bool:
    """Return whether the analysis replayed the queues."""
    return "eager_limit_in_node" in result.facts


def levels(result: ResultData) -> pa.Table:
    """Return maxima and means; see `whywait.Result.queue_levels`."""
    return _placed(result, pa.table(_analysis(result).queue_levels()))


def series(result: ResultData) -> pa.Table:
    """Return maxima and means by bin; see `whywait.Result.queue_series`."""
    found = pa.table(_analysis(result).queue_series())
    if not found.num_rows and _analysis(result).queue_levels():
        raise _native.UsageError("the result has no queues over time: analyze with queue_bins=")
    return _placed(result, found)


def _analysis(result: ResultData) -> _native.Analysis:
    if not replayed(result):
        raise _native.UsageError("the queues of messages were not replayed: analyze with queues=")
    if (analysis := result.tables.analysis) is None:
        raise _native.UsageError("a result on disk has only queue_levels.parquet: analyze the trace again")
    return analysis


def _placed(result: ResultData, table: pa.Table) -> pa.Table:
    """Add rank and thread behind the location."""
    location = table["location"]
    for number, name in enumerate(("rank", "thread")):
        table = table.add_column(2 + number, name, result.locations[name].take(location))
    return table
