"""Two runs side by side in one page: the data of both, their united call tree and the largest changes."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.summary import total_waiting
from whywait.model.metrics import metric_tree
from whywait.model.names import short_name
from whywait.model.united_tree import UnitedTree
from whywait.report.focus import focus_data
from whywait.report.html import blocks
from whywait.report.html.formulas import Formulas
from whywait.report.html.model import described, run_blocks
from whywait.report.html.page import ROOM, page
from whywait.report.html.parts import Part, all_parts, efficiency_rows, parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from whywait.analysis.focus import FocusedData
    from whywait.model.result import ResultData

# A part of the time that changed by a smaller share of the total is not listed separately.
_SMALL = 0.001
_CHANGES = 14


def write_comparison(
    first: FocusedData,
    second: FocusedData,
    path: Path,
    names: tuple[str, str],
    timelines: Mapping[str, str] | None = None,
    simulated: str | None = None,
) -> None:
    """Write two runs as one file for the browser.

    Parameters
    ----------
    first, second
        The parts of the runs that all numbers are of.
    path
        The file; overwritten if it exists.
    names
        The display names of the runs.
    timelines
        The blocks of their timelines from `whywait.report.html.timeline.pair`; None to show none.
    simulated
        The simulated change, if the second run is a simulation of the first.
    """
    data = chain(_blocks((first, second), names, simulated), (timelines or {}).items())
    with path.open("w", encoding="utf-8") as out:
        out.writelines(page(" and ".join(names), "compare", data))


def _blocks(
    runs: tuple[FocusedData, FocusedData], names: tuple[str, str], simulated: str | None
) -> Iterator[tuple[str, str]]:
    formulas = (Formulas(runs[0].profile), Formulas(runs[1].profile))
    calls = UnitedTree(*runs)
    yield (
        "compare",
        blocks.document(
            {
                "names": names,
                "simulated": simulated,
                "focus": runs[1].focus.phrase,
                "metrics": _metrics(runs),
                "calls": {"name": calls.names, "short": [name and short_name(name) for name in calls.names],
                          "parent": calls.parents, "nodes": calls.nodes},
                "changes": changes(runs, formulas, calls),
            }
        ),
    )  # fmt: skip
    for side, result, own in zip("ab", runs, formulas, strict=True):
        bounds = focus_data(result)
        story = {
            "length": bounds["end"] - bounds["begin"],
            "waiting": total_waiting(result),
            "parts": parts(result, own),
            "efficiencies": efficiency_rows(result.whole, result.focus._asdict()),
        }
        yield f"{side}-story", blocks.document(story)
        for name, block in run_blocks(result, own, lambda: ROOM // 2, waits=0):
            yield f"{side}-{name}", block


def _metrics(runs: tuple[ResultData, ResultData]) -> list[dict[str, Any]]:
    """Return the metrics that either run has, in the order of the metric tree, counters of the traces last."""
    trees = (metric_tree(), *(run.profile.metrics for run in runs))
    shown = []
    for name in dict.fromkeys(metric.name for tree in trees for metric in tree):
        knowing = [run for run in runs if name in run.profile.metrics and name not in run.profile.void]
        if knowing:
            shown.append(described(knowing[0].profile.metrics[name]))
    return shown


def changes(
    runs: tuple[ResultData, ResultData], formulas: tuple[Formulas, Formulas], calls: UnitedTree
) -> list[dict[str, Any]]:
    """Return the changes by part of the time, and where each is largest; they add up to the total change.

    Returns
    -------
    list of dict
        ``metric``, ``label``, ``family``, ``first``, ``second``, ``difference``, and the largest change in the same
        direction: ``call`` (its node), ``callpath`` (its names) and ``there`` (its amount). Largest changes first;
        small ones are summed up in a last entry with a label only.
    """
    both: dict[tuple[str, str], list[Part | None]] = {}
    for side, (run, own) in enumerate(zip(runs, formulas, strict=True)):
        if "time" in run.profile.metrics:
            for part in all_parts(run.profile.metrics, own):
                both.setdefault((part.metric, part.family), [None, None])[side] = part
    nothing = np.zeros(len(calls))
    found = []
    for sides in both.values():
        values = [
            calls.to_nodes(side, formulas[side].by_position(part.factors)) if part else nothing
            for side, part in enumerate(sides)
        ]  # fmt: skip
        part = next(part for part in sides if part)
        first, second = (float(value.sum()) for value in values)
        found.append(_change(part, first, second, values[1] - values[0], calls))
    found.sort(key=lambda change: -abs(change["difference"]))
    whole = max(run.profile.total("time") if "time" in run.profile.metrics else 0.0 for run in runs)
    large = [change for change in found[:_CHANGES] if abs(change["difference"]) > _SMALL * whole]
    if rest := found[len(large) :]:
        first, second = (sum(change[side] for change in rest) for side in ("first", "second"))
        large.append({"label": "All others", "first": first, "second": second, "difference": second - first})
    return large


def _change(
    part: Part, first: float, second: float, by_node: npt.NDArray[np.float64], calls: UnitedTree
) -> dict[str, Any]:
    change = {
        "metric": part.metric, "label": part.label, "family": part.family,
        "first": first, "second": second, "difference": second - first,
    }  # fmt: skip
    if not by_node.size or second == first:
        return change
    node = int(np.argmax(by_node if second > first else -by_node))
    return {**change, "call": node, "callpath": calls.path(node), "there": float(by_node[node])}
