"""Trees with bars: metrics, call paths and ranks, to explore in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.model.names import short_name
from whywait.model.profile import sum_at
from whywait.model.selection import Processes, find_callpaths
from whywait.report.terminal import percent
from whywait.report.values import group_name, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line

_SMALL = 0.001
_VALUE, _SHARE = 11, 8
# Bars make room for long names.
_BAR, _SHORTEST_BAR = 18, 10
# With more ranks than this, neighboring ranks share a row.
_ROWS = 16


def tree_data(
    result: ResultData, metric: str = "time", *, callpath: str | int | None = None, depth: int | None = None
) -> dict[str, Any]:
    """Return three trees: all metrics, and the call tree and the ranks for one of them.

    Parameters
    ----------
    result
        The result.
    metric
        The metric shown in the call tree and by rank.
    callpath
        Restricts values to these call paths and those below, in the form of `whywait.model.selection.find_callpaths`.
    depth
        Number of levels of the trees; None for all.

    Returns
    -------
    dict
        ``metric``, ``display_name``, ``unit``; ``window``: begin and end in seconds, None for the whole run;
        ``metrics`` and ``callpaths``: ``name``, ``label``, ``depth``, ``value`` and ``share`` for each, both None for
        the heading of counters; ``ranks``: ``rank`` and ``value`` for each.

    Notes
    -----
    Values are inclusive in the metric tree and in the call tree. Nodes below 0.1% of the total are left out with their
    children.
    """
    positions = None if callpath is None else find_callpaths(result.tree, callpath)
    processes = Processes(result)
    values = processes.sums(metric, positions).tolist()
    one = result.profile.metrics[metric]
    return {
        "metric": metric,
        "display_name": one.display_name,
        "unit": one.unit,
        "window": result.tables.options.window,
        "metrics": list(_metrics(result, positions, depth)),
        "callpaths": list(_callpaths(result, metric, positions, depth)),
        "ranks": [{"rank": rank, "value": value} for rank, value in zip(processes.ranks.tolist(), values, strict=True)],
    }


def _metrics(result: ResultData, positions: list[int] | None, depth: int | None) -> Iterator[dict[str, Any]]:
    profile = result.profile
    wholes: dict[str, float] = {}
    shown: dict[str, int] = {}
    headings: dict[str, dict[str, Any]] = {}
    for metric in profile.metrics:
        if metric.name in profile.void or (metric.parent is not None and metric.parent not in shown):
            continue
        level = shown[metric.parent] + 1 if metric.parent is not None else 0
        row = {"name": metric.name, "label": metric.display_name, "unit": metric.unit, "depth": level}
        if metric.kind == "heading":
            shown[metric.name] = level
            headings[metric.name] = row | {"value": None, "share": None}
            continue
        value = profile.total(metric.name) if positions is None else _below(result, metric.name, positions)
        wholes[metric.name] = whole = wholes.get(metric.parent, value) if metric.parent is not None else value
        if value == 0 or abs(value) < _SMALL * abs(whole) or (depth is not None and level >= depth):
            continue
        shown[metric.name] = level
        # A heading precedes the first visible metric below it.
        if metric.parent in headings:
            yield headings.pop(metric.parent)
        yield row | {"value": value, "share": value / whole if whole else 0.0}


def _below(result: ResultData, metric: str, positions: list[int]) -> float:
    rows = [row for _, row in result.profile.inclusive_rows(metric, positions)]
    if result.profile.metrics[metric].is_maximum:
        return float(max((row.max() for row in rows), default=0.0))
    return float(sum(row.sum() for row in rows))


def _callpaths(
    result: ResultData, metric: str, positions: list[int] | None, depth: int | None
) -> Iterator[dict[str, Any]]:
    tree, profile = result.tree, result.profile
    inclusive = profile.inclusive_by_position(metric)
    roots = [int(tree.position[root]) for root in tree.roots] if positions is None else positions
    if not (whole := float(inclusive[roots].sum())):
        return
    for root in roots:
        for position in _visible(tree, inclusive, root, _SMALL * abs(whole), depth):
            callpath = int(tree.preorder[position])
            name = tree.kinds[tree.region_rows[callpath]].name
            value = float(inclusive[position])
            yield {
                "name": name,
                "label": short_name(name),
                "callpath_id": callpath,
                "depth": int(tree.depth[position] - tree.depth[root]),
                "value": value,
                "share": value / whole,
            }


def _visible(
    tree: CallTree, inclusive: npt.NDArray[np.float64], root: int, least: float, depth: int | None
) -> Iterator[int]:
    """Yield the positions of a subtree that are large enough to show."""
    position, end = root, int(tree.end[root])
    while position < end:
        deep = depth is not None and tree.depth[position] - tree.depth[root] >= depth
        if deep or abs(inclusive[position]) < least:
            position = int(tree.end[position])
        else:
            yield position
            position += 1


class _Page:
    """Rows of one width: a label of up to `longest` characters, a value, its share of the total and a bar."""

    def __init__(self, width: int, longest: int, *, unicode: bool) -> None:
        room = width - _VALUE - _SHARE
        self._bar = min(max(room - longest - 1, _SHORTEST_BAR), _BAR)
        self._label = room - self._bar
        self._block, self._more = ("█", "…") if unicode else ("#", "~")

    def title(self, label: str, share: str) -> Line:
        return [(self._cut(label) + "value".rjust(_VALUE) + share.rjust(_SHARE), "bold")]

    def heading(self, depth: int, label: str) -> Line:
        return [(" " * 2 * depth + label, "")]

    def fits(self, depth: int, label: str) -> bool:
        return 2 * depth + len(label) < self._label

    def row(self, depth: int, label: str, value: str, share: float) -> Line:
        # Indentation takes at most half of the label, so that deep trees leave room for names.
        indent = min(2 * depth, self._label // 2)
        bar = self._block * round(min(max(share, 0), 1) * (self._bar - 2))
        return [
            (self._cut(label, indent), ""),
            (value.rjust(_VALUE) + percent(share).rjust(_SHARE), ""),
            (f"  {bar}".rstrip(), "cyan"),
        ]

    def _cut(self, label: str, indent: int = 0) -> str:
        room = self._label - 1 - indent
        if len(label) > room:
            # Long names often differ only at their ends.
            end = room // 2
            label = label[: room - end - len(self._more)] + self._more + label[-end:]
        return (" " * indent + label).ljust(self._label)


def tree_lines(data: dict[str, Any], *, width: int = 80, unicode: bool = True) -> Iterator[Line]:
    """Yield the lines of a report.

    Parameters
    ----------
    data
        What `tree_data` returned.
    width
        The number of columns.
    unicode
        Whether to draw with more than ASCII.
    """
    rows = [*data["metrics"], *data["callpaths"]]
    page = _Page(width, max((2 * row["depth"] + len(row["label"]) for row in rows), default=0), unicode=unicode)
    yield page.title("Metrics", "share")
    for row in data["metrics"]:
        depth, label = row["depth"], row["label"]
        # A name of a metric is not cut: if it is too long, its value has a line of its own.
        if row["value"] is None or not page.fits(depth, label):
            yield page.heading(depth, label)
            label = ""
        if row["value"] is not None:
            yield page.row(depth, label, quantity(row["value"], row["unit"]), row["share"])
    yield []
    yield page.title(f"Call paths: {data['display_name']}", "share")
    for row in data["callpaths"]:
        yield page.row(row["depth"], row["label"], quantity(row["value"], data["unit"]), row["share"])
    if not data["callpaths"]:
        yield [("nowhere", "")]
    yield []
    yield from _ranks(data, page)


def _ranks(data: dict[str, Any], page: _Page) -> Iterator[Line]:
    ranks = np.array([row["rank"] for row in data["ranks"]], np.int64)
    values = np.array([row["value"] for row in data["ranks"]], np.float64)
    groups = min(values.size, _ROWS)
    mean = ", mean of each group" if values.size > groups else ""
    yield page.title(f"Ranks: {data['display_name']}{mean}", "of max")
    if not values.any():
        yield [("nowhere", "")]
        return
    group = np.arange(values.size) * groups // values.size
    means = sum_at(group, values, groups) / np.bincount(group, minlength=groups)
    most = float(means.max())
    for number, value in enumerate(means.tolist()):
        share = value / most if most > 0 else 0.0
        yield page.row(0, group_name(ranks, number, groups), quantity(value, data["unit"]), share)
