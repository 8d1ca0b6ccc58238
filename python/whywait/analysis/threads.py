"""Why threads wait for each other: their locks, their tasks, and their loops."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import whywait.mpi as mpi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whywait.model.result import ResultData


def overhead(row: Mapping[str, Any]) -> float:
    """Return the time to create and to start the median task of a construct, from a row of `whywait.Result.tasks`."""
    return float(row["median_creation"] + row["median_delay"])


def parallelism(row: Mapping[str, Any]) -> float:
    """Return how many threads are of use in a region: work over span, from a row of `whywait.Result.work_span`."""
    return float(row["work"] / row["span"]) if row["span"] else 1.0


#: What is known of a loop by how its work is distributed, and what to try.
_ADVICE = {
    "tiny": "the work takes less than ten times as long as to fork and join; more work in a region helps",
    "persistent": "thread {last_thread} is last in {share:.0%} of the instances, so its part takes longer; a dynamic "
    "or guided schedule, or another order of the data, saves at most {loss}",
    "tail": "the threads differ little",
    "alternating": "another thread is last each time, so no fixed partition helps; a dynamic schedule, or smaller "
    "chunks, save at most {loss}",
    "few": "there are too few instances to tell whether it is always the same thread that is last",
}


def advice(row: Mapping[str, Any], loss: str) -> str:
    """Return what to try about a loop, from a row of `whywait.Result.loops`, and its loss in words."""
    share = row["last_count"] / row["instances"]
    return _ADVICE[row["distribution"]].format(share=share, loss=loss, last_thread=row["last_thread"])


def summary(result: ResultData) -> dict[str, list[dict[str, Any]]]:
    """Return the locks, tasks, regions and loops of a run, with numbers of call paths; empty without its events.

    Returns
    -------
    dict
        * ``locks``: rows as those of `whywait.Result.locks`.
        * ``tasks``: rows as those of `whywait.Result.tasks`, with ``benefit``: how many times as long the median task
          runs as it takes to create and to start, None if that takes no time; and ``lengths``: the rows of
          `whywait.Result.task_lengths` of the construct.
        * ``regions``: rows as those of `whywait.Result.work_span`, with ``parallelism``.
        * ``loops``: rows as those of `whywait.Result.loops`.
    """
    if (analysis := result.tables.analysis) is None:
        return {"locks": [], "tasks": [], "regions": [], "loops": []}
    locks = pa.table(mpi.together(analysis.locks)).to_pylist()
    tasks, regions, lengths = (pa.table(part).to_pylist() for part in mpi.together(analysis.tasks))
    by_construct = defaultdict(list)
    for row in lengths:
        by_construct[row["rank"], row["callpath"]].append({name: row[name] for name in ("from", "to", "tasks")})
    for row in tasks:
        row["benefit"] = row["median"] / overhead(row) if overhead(row) else None
        row["lengths"] = by_construct[row["rank"], row["callpath"]]
    for row in regions:
        row["parallelism"] = parallelism(row)
    loops = pa.table(mpi.together(analysis.worksharing)).to_pylist()
    return {"locks": locks, "tasks": tasks, "regions": regions, "loops": loops}
