"""A small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whywait import Result


def metric_table(result: Result) -> str:
    """Return the metrics with a value as an HTML table, indented like the metric tree."""
    tree = result.profile.metrics
    rows = "".join(
        f'<tr title="{escape(values.description)}">'
        f'<td style="text-align: left; padding-left: {0.5 + 1.2 * tree.depth(name)}em">'
        f"{escape(values.display_name)}</td>"
        f"<td>{values.total:,.6g}</td><td>{values.unit}</td></tr>"
        for name, values in result.metrics.items()
        if values.total
    )
    return (
        f"<p>{escape(repr(result)[1:-1])}</p>"
        f"<table><thead><tr><th>Metric</th><th>Total</th><th>Unit</th></tr></thead><tbody>{rows}</tbody></table>"
    )
