"""The most important findings as plain data: for the terminal, `summary.json`, and `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import whywait._native as _native
from whywait.analysis.causes import costliest, critical, on_ranks, passed_on
from whywait.analysis.clocks import sentences
from whywait.analysis.counters.unexpected import unexpected
from whywait.analysis.focus import ALL, FocusedData, focused
from whywait.analysis.layers import layers
from whywait.analysis.progress import progress_thread
from whywait.analysis.waiting import account
from whywait.model.tables import numbered_waits

if TYPE_CHECKING:
    from whywait.model.metrics import Metric, MetricTree
    from whywait.model.result import ResultData

_WORST = 20
# The columns of wait states that the core needs to find the main causes.
_BLAMED = ("kind", "callpath", "enter", "leave", "waiting", "cause_callpath", "cause_location")


def summarize(result: ResultData, focus_name: str | None = None) -> dict[str, Any]:
    """Return the summary of a result.

    Parameters
    ----------
    result
        What to look through.
    focus_name
        The focus of the headlines, as `whywait.analysis.focus.find_focus` takes it.

    Returns
    -------
    dict
        ``run`` (name, anchor file, program if known), ``facts``, ``metrics`` (unit and total by name), ``peak_memory``
        (the most that the process had so far, in bytes; None if the system does not say), ``clocks`` (what
        must be known about corrected times, as sentences), ``recording`` (the same about call paths), ``focus`` (what
        the headlines are about, see `headlines`), of the whole run ``waiting`` (``total`` in seconds, ``share`` of all
        time, and beside it ``completion``), ``worst`` (the places with most of it), ``delay_costs`` (the call paths
        that cause most of it or of idle threads, see `whywait.analysis.causes.costliest`), ``critical_path`` (see
        `whywait.analysis.causes.critical`; both are None if causes were not looked for), ``layers`` (see
        `whywait.analysis.layers`), ``stragglers`` (see `whywait.analysis.devices.stragglers`; None without devices that
        communicate), ``unknown_libraries`` (see `whywait.model.unknown_libraries`), ``warnings``, ``oddities`` (of the
        definitions), and ``unexpected`` (see `whywait.analysis.counters.unexpected.unexpected`; only if the queues were
        replayed). All values are such that JSON can say them.
    """
    profile = result.profile
    counted = unexpected(result)
    return {
        "whywait": _native.__version__,
        "run": identity(result),
        "facts": result.facts,
        "metrics": {
            name: {
                "display_name": values.display_name,
                "parent": values.parent,
                "unit": values.unit,
                "total": values.total,
            }
            for name, values in result.metrics.items()
            if name not in profile.void
        },
        "peak_memory": result.tables.peak_memory,
        "recording": _recording(result),
        "clocks": sentences(result),
        "waiting": total_waiting(result),
        "focus": headlines(result, focus_name),
        "worst": worst_wait_states(result, metrics=result.profile.metrics.waiting),
        "delay_costs": costliest(result, _WORST) if result.has_causes else None,
        "critical_path": critical(result, _WORST) if result.has_causes else None,
        "layers": layers(result),
        "stragglers": result.facts.get("stragglers"),
        "unknown_libraries": result.unknown_libraries,
        "warnings": [*result.warnings, *_recording_notes(result)],
        "oddities": [
            {"kind": kind, "place": place, "text": text}
            for kind, place, text in result.run.oddities
            if kind != "recording"
        ],
    } | ({"unexpected": counted} if counted else {})


def _recording(result: ResultData) -> list[str]:
    """Return what readers must know of call paths that are unwound or of callers alone, and of samples."""
    found = []
    if result.facts.get("call_paths") == "unwound":
        found = ["Call paths are unwound, not instrumented: functions last from their first to their last MPI call."]
    if not (result.facts.get("paraver") or {}).get("has_functions", True):
        found = ["Functions are not recorded: the computation between calls is that of main."]
    if (share := _divided(result)) is not None:
        count = result.facts["samples"]
        found.append(f"{count:,} samples of the call path divide {share:.1%} of the computation among functions.")
    return found


def _divided(result: ResultData) -> float | None:
    """Return the part of the computation in the focus that samples divide among functions; None without samples."""
    if not result.facts.get("samples"):
        return None
    table = result.tables.function_times
    known = float(table["time"].to_numpy().sum() - table["unresolved"].to_numpy().sum())
    is_own = np.array([result.tree.kinds[row].is_own for row in result.tree.region_rows])[result.tree.preorder]
    whole = float(focused(result).profile.by_position("time")[is_own].sum())
    return min(1.0, known / whole) if whole else None


def _recording_notes(result: ResultData) -> list[dict[str, Any]]:
    """Return what is missing in the recording as warnings; a written result has them among its own."""
    texts = (text for kind, _, text in result.run.oddities if kind == "recording")
    return [{"kind": "recording", "count": 1, "text": text, "place": None} for text in texts]


def identity(result: ResultData) -> dict[str, Any]:
    """Return the identity of a run: ``name``, ``path`` (of the anchor file) and ``program`` (None if unknown)."""
    return {"name": result.run.name, "path": str(result.run.path), "program": _program(result)}


def total_waiting(result: ResultData) -> dict[str, float]:
    """Return the waiting of the run: ``total`` (s), ``share`` (of the time), and separately ``completion`` (s)."""
    profile = result.profile
    waiting = sum(profile.total(metric.name) for metric in profile.metrics.waiting)
    completion = sum(profile.total(metric.name) for metric in profile.metrics if metric.kind == "completion")
    time = profile.total("time") if "time" in profile.metrics else 0.0
    return {"total": waiting, "share": waiting / time if time else 0.0, "completion": completion}


def headlines(result: ResultData, focus_name: str | None = None, count: int = _WORST) -> dict[str, Any]:
    """Return the headlines: all refer to the focus and use one definition of waiting.

    Parameters
    ----------
    result
        What to look through.
    focus_name
        The focus, as `whywait.analysis.focus.find_focus` takes it.
    count
        How many places and causes to return at most.

    Returns
    -------
    dict
        ``name``, ``phrase``, ``window`` and ``callpath`` of the focus, ``outside`` (``time`` and ``waiting`` of the
        whole run that are not in it, s), ``account`` (where the time of the focus goes, how much of it is waiting, and
        how much of that is explained: see `whywait.analysis.waiting.account`), ``times`` (the metrics of the time:
        ``display_name``, ``parent``, ``total``), ``worst`` (see `worst_wait_states`; only waiting, so without
        completion), ``progress`` (whether a progress thread would pay: see
        `whywait.analysis.progress.progress_thread`; None without waiting for progress), ``causes`` (call paths of own
        code in the focus that cause waiting in it: see `whywait.analysis.causes.costliest`, with shares of the waiting
        in the focus, or of that in the whole run if the focus is a call path, since call paths mostly cause waiting
        elsewhere), ``passed_on`` (the waiting that calls of libraries cause, s), ``idle`` (the causes of idle threads)
        and ``critical_path`` (see `whywait.analysis.causes.critical`; these are None if causes were not looked for).
    """
    part = focused(result, focus_name)
    focus, profile = part.focus, part.profile
    found = account(profile, part.charged)
    if focus.callpath is not None:
        # Call paths mostly cause waiting elsewhere, so shares of their own waiting would make no sense.
        found |= {"elsewhere": None, "unknown": None}
    causes = idle = path = calls = None
    if result.has_causes:
        waiting = result.profile.total("waiting") if focus.callpath is not None else found["waiting"]
        base = max(waiting, found["charged"])
        causes = costliest(part, count, paid_for="waiting", whole=base, with_libraries=False)
        calls = passed_on(part)
        idle = costliest(part, count, paid_for="idle")
        path = critical(part, count)
    whole = account(result.profile) if focus.name != ALL else found
    return {
        "name": focus.name,
        "phrase": focus.phrase,
        "window": focus.window,
        "callpath": focus.callpath,
        "outside": {name: max(0.0, whole[name] - found[name]) for name in ("time", "waiting")},
        "account": found,
        "times": {
            metric.name: {
                "display_name": metric.display_name, "parent": metric.parent, "total": profile.total(metric.name),
            }
            for metric in profile.metrics
            if profile.metrics.path(metric.name)[0].name == "time"
        },
        "worst": worst_wait_states(part, count, profile.metrics.waiting),
        "progress": progress_thread(part),
        "causes": causes,
        "passed_on": calls,
        "idle": idle,
        "critical_path": path,
    }  # fmt: skip


def _program(result: ResultData) -> str | None:
    """Return the root of the call tree, if there is only one; traces of a profiler and of Paraver name no program."""
    if "traces" in result.facts or "paraver" in result.facts:
        return None
    roots = result.tree.roots
    return result.tree.path(roots[0])[0] if len(roots) == 1 else None


def _wait_states(metrics: MetricTree) -> list[Metric]:
    """Return the wait states that are not part of another."""
    return [metric for metric in metrics if metrics.wait_state(metric.name) is metric]


def worst_wait_states(
    result: ResultData, count: int = _WORST, metrics: list[Metric] | None = None
) -> list[dict[str, Any]]:
    """Return the (wait state, call path) pairs with the most waiting time.

    Parameters
    ----------
    result
        What to look through.
    count
        How many to return at most.
    metrics
        Which wait states; None for all, and completion.

    Returns
    -------
    list of dict
        ``metric``, ``display_name``, ``callpath``, ``callpath_id``, ``waiting`` (s), ``share`` (of all time),
        ``ranks`` (how many wait there), ``worst_rank``, ``worst_rank_share`` (of the waiting), ``worst_thread`` and
        ``worst_thread_share`` (None where that rank has one thread), ``instances`` and
        ``cause``: the call path and rank to blame for most of it, if known.
    """
    profile, tree = result.profile, result.tree
    time = profile.total("time") if "time" in profile.metrics else 0.0
    ranked: list[tuple[float, Metric, int]] = []
    for metric in _wait_states(profile.metrics) if metrics is None else metrics:
        totals = profile.by_position(metric.name)
        ranked.extend((totals[position], metric, position) for position in np.flatnonzero(totals > 0).tolist())
    ranked = sorted(ranked, key=lambda place: -place[0])[:count]
    causes = _causes(result, [int(tree.preorder[position]) for _, _, position in ranked])
    places = []
    for waiting, metric, position in ranked:
        row = profile.row(metric.name, position)
        (location,) = np.nonzero(row)
        callpath = int(tree.preorder[position])
        places.append(
            {
                "metric": metric.name,
                "display_name": metric.display_name,
                "callpath": tree.path(callpath),
                "callpath_id": callpath,
                "waiting": float(waiting),
                "share": float(waiting / time) if time else 0.0,
                **on_ranks(result, location, row[location]),
                **causes.get((metric.name, callpath), {"instances": 0, "cause": None}),
            }
        )
    return places


def _causes(result: ResultData, callpaths: list[int]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return for each wait state at the given call paths its number of instances and main cause."""
    # The core skips waits outside the focus, which avoids a copy of the table.
    whole, window = (result.whole, result.focus.window) if isinstance(result, FocusedData) else (result, None)
    names, waits = numbered_waits(whole.tables.wait_states, _BLAMED)
    path = result.tree.path
    return {
        (names[place["kind"]], place["callpath"]): {
            "instances": place["instances"],
            "cause": None
            if place["cause_rank"] is None
            else {
                "callpath": None if place["cause_callpath"] is None else path(place["cause_callpath"]),
                "rank": place["cause_rank"],
                "share": place["cause_waiting"] / place["waiting"] if place["waiting"] else 0.0,
            },
        }
        for place in pa.table(_native.blame(waits, result.places.rank.tolist(), callpaths, window)).to_pylist()
    }
