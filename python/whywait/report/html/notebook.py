"""Small tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from whywait.model.metrics import COUNTERS

if TYPE_CHECKING:
    from whywait.model.result import ResultData
    from whywait.model.trace import Trace


def run_table(run: Trace) -> str:
    """Return the properties of a run that are known without an analysis as an HTML table."""
    locations = run.locations
    ranks = len(set(locations["rank"].to_pylist()) - {-1})
    facts = {
        "Archive": str(run.path),
        "Ranks": f"{ranks:,}",
        "Locations": f"{locations.num_rows:,}",
        "Events": f"{sum(locations['events'].to_pylist()):,}",
        "Definitions": ", ".join(f"{kind} ({run.definitions[kind].num_rows:,})" for kind in run.definitions),
    }
    rows = "".join(
        f'<tr><th style="text-align: left">{name}</th><td style="text-align: left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<p>{escape(repr(run)[1:-1])}</p><table><tbody>{rows}</tbody></table>"


def metric_table(result: ResultData) -> str:
    """Return the nonzero metrics as an HTML table, indented like the metric tree."""
    tree = result.profile.metrics
    rows = "".join(
        f'<tr title="{escape(values.description)}">'
        f'<td style="text-align: left; padding-left: {0.5 + 1.2 * tree.depth(name)}em">'
        f"{escape(values.display_name)}</td>"
        + ("<td></td>" if name == COUNTERS else f"<td>{values.total:,.6g}</td>")
        + f"<td>{values.unit}</td></tr>"
        for name, values in result.metrics.items()
        if values.total or name == COUNTERS
    )
    return (
        f"<p>{escape(repr(result)[1:-1])}</p>"
        f"<table><thead><tr><th>Metric</th><th>Total</th><th>Unit</th></tr></thead><tbody>{rows}</tbody></table>"
    )
