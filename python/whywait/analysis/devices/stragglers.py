"""How much slower training is than a run in which all ranks are alike."""

from __future__ import annotations

from typing import Any

import whywait._native as _native


def stragglers(analysis: _native.Analysis, traces: dict[str, Any]) -> dict[str, Any] | None:
    """Return the metrics of stragglers, from replayed runs.

    Parameters
    ----------
    analysis
        The analysis.
    traces
        What is known of its traces.

    Returns
    -------
    dict or None
        ``length`` and ``ideal``, in seconds, of the run and of an ideal one, both replayed, and for each step if
        there are any, ``per_step`` and ``ideal_per_step``; ``slowdown``, the first by the second; ``ranks``, the
        slowdown by each rank alone; ``callpaths``, the slowdown without that of each call path of kernels;
        ``slowest_ranks`` and ``M_W``, the share of the slowdown that repairing the slowest 3% of the ranks
        recovers; ``last_stage`` and ``M_S``, the same of the last stage of a pipeline (null without one);
        ``without_lags``, whether work begins at once when all that delays it has ended, because no host is
        recorded. None if devices do not communicate.
    """
    chains = [group["ranks"] for group in traces["groups"] if group["messages"] and len(group["ranks"]) > 1]
    stage = sorted({ranks[-1] for ranks in chains})
    # What all ranks are in is no stage.
    stage = stage if 0 < len(stage) < len(traces["ranks"]) else []
    found = _native.stragglers(analysis, [stage])
    if found is None or found["ideal"] <= 0:
        return None
    length, ideal = found["length"], found["ideal"]
    steps = len(traces["steps"])

    def recovered(repaired: float) -> float | None:
        return (length - repaired) / (length - ideal) if length > ideal else None

    slowest = found["slowest"]
    return {
        "length": length,
        "ideal": ideal,
        "per_step": length / steps if steps else None,
        "ideal_per_step": ideal / steps if steps else None,
        "slowdown": length / ideal,
        "ranks": [{"rank": rank, "slowdown": time / ideal} for rank, time in found["ranks"]],
        "callpaths": [{"callpath": callpath, "slowdown": time / ideal} for callpath, time in found["callpaths"]],
        "slowest_ranks": slowest[0] if slowest else [],
        "M_W": recovered(slowest[1]) if slowest else None,
        "last_stage": stage,
        "M_S": recovered(found["groups"][0]) if stage else None,
        "without_lags": found["alone"],
    }
