"""Unexpected messages: between which numbers they are by the replay of queues, and what the library counted itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.counters.counters import Counters
from whywait.analysis.counters.spc import bare

if TYPE_CHECKING:
    from whywait.model.result import ResultData

#: Counters of the trace that are levels of the replay, by the names of these: lengths of Open MPI's own queues.
QUEUES_OF_LIBRARY = {
    "mpi_unexpected_queue": "pml_ob1_unexpected_msgq_length",
    "mpi_posted_queue": "pml_ob1_posted_recvq_length",
}


def unexpected(result: ResultData) -> dict[str, Any] | None:
    """Return how many messages arrived before their receive was posted.

    Parameters
    ----------
    result
        The result.

    Returns
    -------
    dict or None
        ``at_least`` and ``derived`` (messages in the replay), ``arrival`` (by what rule they arrive), ``recorded``
        (messages that Open MPI counted) with ``name`` (of the counter in the trace); ``longest`` (messages in a queue
        of the replay), ``longest_recorded`` with ``longest_name``. What was not recorded is None. None if the queues
        were not replayed, or if no message was sent before its receive was posted and none is recorded.
    """
    metrics = result.profile.metrics
    if "mpi_unexpected" not in metrics or (levels := result.tables.queue_levels) is None:
        return None
    counters = Counters(result)
    counter = next((one for name, one in counters.items() if bare(name) == "UNEXPECTED"), None)
    level = "mpi_unexpected_queue"
    of_level = pa.table(levels).filter(pc.equal(pa.table(levels)["metric"].cast("string"), level))
    queue = counters.get(QUEUES_OF_LIBRARY[level])
    if counter is None and queue is None and not result.profile.total("mpi_unexpected_possible"):
        return None
    return {
        "at_least": result.profile.total("mpi_unexpected_at_least"),
        "derived": result.profile.total("mpi_unexpected"),
        "arrival": result.tables.options.queues,
        "recorded": None if counter is None else counter.total,
        "name": None if counter is None else counter.name,
        "longest": pc.max(of_level["maximum"]).as_py() or 0,
        "longest_recorded": None if queue is None else queue.maximum,
        "longest_name": None if queue is None else queue.name,
    }
