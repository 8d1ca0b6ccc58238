"""Groups of ranks whose devices communicate: how long they wait and transfer in its operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whywait.model.result import ResultData

_TIMES = ("waiting", "hidden", "transfer", "excess")


def device_groups(result: ResultData) -> list[dict[str, Any]]:
    """Return the groups whose devices communicate in operations that begin in the focus, the longest first.

    Returns
    -------
    list of dict
        ``name``, ``ranks`` and ``nodes`` (the names of their hosts), ``operations`` in the whole run, and of the
        ``kernels`` in the focus, in seconds: ``waiting`` for other ranks, the part of it that is ``hidden`` behind
        computation, what the ``transfer`` needs, and its ``excess`` beyond the fastest 5% of its kind.
    """
    traces = result.facts.get("traces")
    times = {one["comm"]: one for one in result.facts.get("device_groups", [])}
    if not traces or not times:
        return []
    hosts = {rank["rank"]: rank["host"] for rank in traces["ranks"]}
    found = []
    for group in traces["groups"]:
        own = [times[comm] for comm in group["comms"] if comm in times]
        if not own:
            continue
        nodes = sorted({hosts[rank] for rank in group["ranks"] if hosts.get(rank)})
        known = {"name": group["name"], "ranks": group["ranks"], "nodes": nodes, "operations": group["instances"]}
        sums = {name: sum(one[name] for one in own) for name in ("kernels", *_TIMES)}
        found.append(known | sums)
    return sorted(found, key=lambda one: -(one["waiting"] + one["transfer"] + one["excess"]))
