"""Why threads wait for each other: their locks, and their tasks."""

from __future__ import annotations

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


def summary(result: ResultData) -> dict[str, list[dict[str, Any]]]:
    """Return the locks, the tasks and the regions of a run, with numbers of call paths; empty without its events.

    Returns
    -------
    dict
        * ``locks``: rows as those of `whywait.Result.locks`.
        * ``tasks``: rows as those of `whywait.Result.tasks`, with ``benefit``: how many times as long the median task
          runs as it takes to create and to start; None if that takes no time.
        * ``regions``: rows as those of `whywait.Result.work_span`, with ``parallelism``.
    """
    if (analysis := result.tables.analysis) is None:
        return {"locks": [], "tasks": [], "regions": []}
    locks = pa.table(mpi.together(analysis.locks)).to_pylist()
    tasks, regions = (pa.table(part).to_pylist() for part in mpi.together(analysis.tasks))
    for row in tasks:
        row["benefit"] = row["median"] / overhead(row) if overhead(row) else None
    for row in regions:
        row["parallelism"] = parallelism(row)
    return {"locks": locks, "tasks": tasks, "regions": regions}
