"""Comparison of two runs by call path, metric and group of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.analysis.focus import profile_with, whole_of
from whywait.model.metric_names import metric_name
from whywait.model.selection import find_callpaths
from whywait.model.united_tree import UnitedTree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whywait.model.result import ResultData

_KEYS = ["metric", "callpath", "group"]


def default_metrics(first: ResultData, second: ResultData) -> list[str]:
    """Return the time, which shows where runs differ, and the wait states of either run, which show why."""
    trees = [whole_of(result).profile.metrics for result in (first, second)]
    names = [metric.name for tree in trees for metric in tree if tree.wait_state(metric.name) is metric]
    return ["time", *dict.fromkeys(names)]


def differences(
    first: ResultData,
    second: ResultData,
    metrics: Iterable[str] | None = None,
    *,
    groups: int = 1,
    callpath: str | None = None,
) -> pa.Table:
    """Compare two runs.

    Parameters
    ----------
    first, second
        The runs. Metrics are matched by name, call paths as in `whywait.model.united_tree.UnitedTree`.
    metrics
        The metrics to compare, by unique name or display name; None for `default_metrics`.
    groups
        Number of groups of neighboring ranks in each run. The runs may have different numbers of ranks; a group has the
        same share of them in both.
    callpath
        What to find call paths by, see `whywait.model.selection.find_callpaths`: only these and what is below them.

    Returns
    -------
    pyarrow.Table
        ``metric``, ``callpath`` (names from the root), ``group`` (0..groups-1), ``first`` and ``second`` (exclusive),
        ``difference`` (second - first) and ``relative`` (to first; null if that is zero). Largest differences first,
        times before other metrics; equal values are left out.

    Raises
    ------
    whywait.UsageError
        If neither run computes a metric, or has such a call path.
    """
    if metrics is None:
        names = [name for name in default_metrics(first, second) if is_comparable(name, first, second)]
    else:
        names = [resolve_metric(name, first, second) for name in metrics]
        for name in names:
            _require_comparable(name, first, second)
    if callpath is not None:
        _require_callpath(first, second, callpath)
    units = [unit(name, first, second) for name in names]
    order = {unit: number for number, unit in enumerate(dict.fromkeys(["sec", *units]))}
    calls = UnitedTree(first, second)
    sides = [
        _sums(result, names, groups, callpath, nodes).rename_columns([*_KEYS, side])
        for side, result, nodes in zip(("first", "second"), (first, second), calls.nodes, strict=True)
    ]
    both = sides[0].join(sides[1], keys=_KEYS, join_type="full outer")
    before, after = (pc.fill_null(both[side], 0.0) for side in ("first", "second"))
    difference = pc.subtract(after, before)
    paths = pa.array([calls.path(node) for node in range(len(calls))], pa.list_(pa.string()))
    table = pa.table(
        {
            "metric": both["metric"],
            "callpath": paths.take(both["callpath"]),
            "group": both["group"],
            "first": before,
            "second": after,
            "difference": difference,
            "relative": pc.divide(difference, pc.if_else(pc.equal(before, 0.0), None, before)),
            "effect": pc.abs(difference),
            "unit": pa.array([order[unit] for unit in units], pa.int64()).take(
                pc.index_in(both["metric"], pa.array(names))
            ),
        }
    )
    table = table.filter(pc.not_equal(table["difference"], 0.0))
    rank = [("unit", "ascending"), ("effect", "descending"), ("metric", "ascending"), ("group", "ascending")]
    return table.sort_by(rank).drop_columns(["effect", "unit"])


def resolve_metric(text: str, first: ResultData, second: ResultData) -> str:
    """Return the unique name of a metric that either run computes.

    Raises
    ------
    whywait.UsageError
        If neither does, or the name is ambiguous.
    """
    profiles = [whole_of(result).profile for result in (first, second)]

    def occurs(name: str) -> bool:
        return any(name in profile.metrics and profile.total(name) for profile in profiles)

    for profile in profiles:
        if text in profile.metrics or profile.metrics.called(text):
            return metric_name(profile.metrics, text, occurs)
    hint = next(filter(None, (profile.metrics.suggestion(text) for profile in profiles)), "")
    raise _native.UsageError(f"neither run has a metric {text}{hint}")


def is_comparable(name: str, first: ResultData, second: ResultData) -> bool:
    """Return whether a metric can be compared: a run without it must have been able to have it, unlike a profile."""
    return all(not result.is_profile or name in profile_with(result, name).metrics for result in (first, second))


def _require_comparable(name: str, first: ResultData, second: ResultData) -> None:
    if not is_comparable(name, first, second):
        raise _native.UsageError(f"one of the runs is a profile, which has no {name}")


def unit(name: str, first: ResultData, second: ResultData) -> str:
    """Return the unit of a metric that either run computes."""
    profiles = [profile_with(result, name) for result in (first, second)]
    return next(profile.metrics[name].unit for profile in profiles if name in profile.metrics)


def _positions(result: ResultData, callpath: str) -> list[int]:
    """Return the positions of the matching call paths and those below; none if there are no matches."""
    try:
        found = find_callpaths(result.tree, callpath)
    except _native.UsageError:
        return []
    return [inner for position in found for inner in range(position, int(result.tree.end[position]))]


def _require_callpath(first: ResultData, second: ResultData, callpath: str) -> None:
    if not _positions(first, callpath) and not _positions(second, callpath):
        raise _native.UsageError(f"no call path of either run ends in {callpath}")


def _sums(result: ResultData, names: list[str], groups: int, callpath: str | None, nodes: list[int]) -> pa.Table:
    """Add up metrics by node of the united call tree and group."""
    node_of = np.array(nodes, np.int64)
    rank = result.places.rank
    ranks, process = np.unique(rank, return_inverse=True)
    group_of = process * groups // max(ranks.size, 1)
    parts = []
    for name in names:
        profile = profile_with(result, name)
        if name not in profile.metrics:
            continue
        cells = profile.cells(name)
        position, location = np.divmod(cells.key, max(profile.locations, 1))
        values = cells.value
        if callpath is not None:
            inside = np.isin(position, _positions(result, callpath))
            position, location, values = position[inside], location[inside], values[inside]
        place, which = np.unique(node_of[position] * groups + group_of[location], return_inverse=True)
        parts.append(
            pa.table(
                {
                    "metric": pa.array([name] * place.size, pa.string()),
                    "callpath": place // groups,
                    "group": place % groups,
                    "value": profile.combine(name)(which, values, place.size),
                }
            )
        )
    if not parts:
        schema = pa.schema({"metric": pa.string(), "callpath": pa.int64(), "group": pa.int64(), "value": pa.float64()})
        return schema.empty_table()
    return pa.concat_tables(parts)


def total(result: ResultData, name: str, callpath: str | None = None) -> float:
    """Return a metric over all locations, and all call paths or matching ones and those below; 0 if unknown."""
    profile = profile_with(result, name)
    if name not in profile.metrics:
        return 0.0
    if callpath is None:
        return profile.total(name)
    positions = _positions(result, callpath)
    values = profile.by_position(name)[positions]
    return float(values.max() if profile.metrics[name].is_maximum else values.sum()) if positions else 0.0


def totals(first: ResultData, second: ResultData, *, callpath: str | None = None) -> list[dict[str, Any]]:
    """Compare metrics over all locations and all call paths, or over matching ones and those below.

    Returns
    -------
    list of dict
        ``metric``, ``display_name``, ``unit``, ``depth`` in the metric tree, ``first``, ``second``, ``difference`` and
        ``relative`` (None if `first` is zero) of every metric that either run has, in the order of the metric tree;
        without those that a profile does not have. ``whole_run`` tells whether the values are of the whole run: counts
        are not known by time.
    """
    rows = []
    known = [whole_of(result).profile.metrics for result in (first, second)]
    trees = {metric.name: tree for tree in reversed(known) for metric in tree}
    for name in dict.fromkeys(metric.name for tree in known for metric in tree):
        if not is_comparable(name, first, second):
            continue
        metric = trees[name][name]
        before, after = (total(result, name, callpath) for result in (first, second))
        rows.append(
            {
                "metric": name,
                "display_name": metric.display_name,
                "unit": metric.unit,
                "depth": trees[name].depth(name),
                "first": before,
                "second": after,
                "difference": after - before,
                "relative": (after - before) / before if before else None,
                "whole_run": all(name not in result.profile.metrics for result in (first, second)),
            }
        )
    return rows


def wholes(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return for each metric of `totals` the reference for shares of its differences.

    For a time it is the time of the longer run, so that differences of all times compare; for a count the larger count.
    """
    time = max((max(row["first"], row["second"]) for row in rows if row["metric"] == "time"), default=0.0)
    return {row["metric"]: time if row["unit"] == "sec" else max(row["first"], row["second"]) for row in rows}


def noticeable(places: pa.Table, rows: list[dict[str, Any]], least: float) -> pa.Table:
    """Return the places of `differences` that differ by at least a share of the reference from `wholes`."""
    whole = wholes(rows)
    names = places["metric"].to_pylist()
    floor = least * np.fromiter((whole.get(name, 0.0) for name in names), np.float64, len(names))
    return places.filter(pa.array(np.abs(places["difference"].to_numpy()) >= floor))
