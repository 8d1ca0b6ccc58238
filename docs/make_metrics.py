"""The page docs/metrics.md, made from the metric tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.model.metrics import metric_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.metrics import Metric, MetricTree

UNITS = {"sec": "seconds", "occ": "occurrences", "bytes": "bytes", "elements": "elements"}
INTRODUCTION = """\
# Metrics

This page lists all metrics as a tree, in which each metric includes those below it: the display name, the unique
name, the formula if the metric derives from others, and the meaning. `[class]` in a formula selects the call paths of
a class, as listed in `python/whywait/model/regions.py`. A metric whose programming model does not occur in a trace is
void, and a metric that an analysis does not compute is absent. **Wait** marks wait states and **Completion** marks
completion, which [does not count as waiting](glossary.md#waiting); [patterns](patterns.md) defines both.

`docs/make_metrics.py` generates this page.
"""


def page() -> str:
    """Return the text of the page."""
    tree = metric_tree()
    roots = [root for root in tree.children(None) if root.kind != "hidden"]
    sections = [f"\n## {root.display_name}\n\n" + _unit(root) + "".join(_lines(tree, root, 0)) for root in roots]
    return INTRODUCTION + "".join(sections)


def _unit(root: Metric) -> str:
    return f"{UNITS[root.unit].capitalize()}.\n\n" if root.unit else ""


def _lines(tree: MetricTree, metric: Metric, depth: int) -> Iterator[str]:
    wait = {"wait": "**Wait.** ", "completion": "**Completion.** "}.get(metric.kind, "")
    formula = f" = `{metric.formula}`" if metric.formula else ""
    yield f"{'  ' * depth}* *{metric.display_name}* `{metric.name}`{formula}: {wait}{metric.description}\n"
    for child in tree.children(metric.name):
        yield from _lines(tree, child, depth + 1)
