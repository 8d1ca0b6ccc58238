"""What a finding rests on: the parts of its loss, who causes it, and a wait as an example."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.account import rows
from whywait.analysis.causes import cost_classes
from whywait.analysis.focus import focused

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Run
    from whywait.model.result import ResultData

# What slow calls cost beside the time that they take themselves.
_OF_CALLS = {
    "runtime": "Starting, joining and synchronizing threads",
    "passed_on": "Waiting because of these calls",
    "idle": "Idle threads because of these calls",
}
# So many of the longest waits are looked at for one that a finding explains.
_TRIED = 100


def parts(run: Run, one: Finding) -> list[tuple[str, float]]:
    """Return the parts of the loss of a finding, or what is slow: each with a label and its time, the largest first."""
    result = run.result
    if isinstance(lost := one.evidence.get("lost"), dict):
        lines = list(lost.items())
    elif isinstance(regions := one.evidence.get("regions"), dict):
        lines = [(f"{region}, beyond the fastest 5%", time) for region, time in regions.items()]
        lines += [(label, one.evidence[name]) for name, label in _OF_CALLS.items()]
    elif one.causes and one.base == "cpu":
        labels = {kind.name: kind.display_name for kind in cost_classes(focused(result).profile.metrics)}
        of_labels: dict[str, float] = defaultdict(float)
        for bearer in map(run.losses.bearer, one.causes):
            for name, time in bearer.of_classes.items():
                of_labels[labels.get(name, name)] += time
            for name, time in bearer.spent.items():
                of_labels[rows()[name].label] += time
            of_labels["Idle threads"] += bearer.idle
        lines = list(of_labels.items())
    elif one.base == "device":
        evidence = one.evidence.get("idle", one.evidence)
        lines = [(str(name), float(time)) for name, time in evidence.items() if isinstance(time, float)]
    else:
        needs: dict[str, float] = defaultdict(float)
        for kind in one.evidence.get("kinds", ()):
            needs[f"{kind['region']}, without waiting"] += kind["needed"]
        lines = list(needs.items())
    return sorted(((label, time) for label, time in lines if time > 0), key=lambda line: -line[1])


def by_rank(run: Run, one: Finding) -> list[tuple[int, float]]:
    """Return the ranks whose time in the call path of a finding others wait for, with this waiting, the most first."""
    if not one.causes or one.base != "cpu":
        return []
    costs = run.sum_of_costs(one.causes)
    of_ranks = np.bincount(np.maximum(run.result.places.rank, 0), costs)
    order = np.argsort(-of_ranks, kind="stable")
    return [(int(rank), float(of_ranks[rank])) for rank in order if of_ranks[rank] > 0]


def example(result: ResultData, one: Finding) -> dict[str, Any] | None:
    """Return a long wait of which the call path of a finding explains the largest part; None if none is known."""
    if not one.causes or not result.has_causes:
        return None
    part = focused(result)
    waits, metrics = part.whole.tables.wait_states, result.profile.metrics
    begin, end = part.focus.window or (0.0, float("inf"))
    inside = (waits["enter"].to_numpy() >= begin) & (waits["enter"].to_numpy() < end)
    inside &= np.isin(
        waits["kind"].cast("string").to_numpy(zero_copy_only=False), [kind.name for kind in metrics.waiting]
    )
    order = np.flatnonzero(inside)
    order = order[np.argsort(-waits["waiting"].to_numpy()[order], kind="stable")][:_TRIED]
    try:
        _, factors = result.tables.factors(sorted(order.tolist()))
    except (_native.Error, OSError):
        return None
    sums = factors.group_by(["wait", "callpath"]).aggregate([("share", "sum")]).to_pylist()
    largest: dict[int, tuple[float, int | None]] = {}
    for line in sums:
        largest[line["wait"]] = max(largest.get(line["wait"], (0.0, None)), (line["share_sum"], line["callpath"] or 0))
    for row in order.tolist():
        if largest.get(row, (0.0, None))[1] not in one.causes:
            continue
        location = int(waits["location"][row].as_py())
        return {
            "wait": row,
            "label": metrics[str(waits["kind"][row].as_py())].display_name,
            "enter": waits["enter"][row].as_py(),
            "waiting": waits["waiting"][row].as_py(),
            "rank": int(result.places.rank[location]),
            "thread": int(result.places.thread[location]),
        }
    return None
