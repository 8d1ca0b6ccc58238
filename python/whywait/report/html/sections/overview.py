"""The front page: where the time went, the worst wait states, their causes, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.explain import explain
from whywait.analysis.focus import ALL, focused
from whywait.analysis.ranking import Kinds
from whywait.model.schema import patterns
from whywait.report.html import blocks
from whywait.report.html.formulas import Formulas
from whywait.report.html.parts import POINTS, coarse, efficiency_rows, parts
from whywait.report.html.places import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait.model.result import ResultData
    from whywait.report.html.sections import Report

# Places with a smaller share of the time are not listed among the worst.
_LEAST = 0.001
_PROBLEMS = 3
_TOP = 6
# Maximum number of waits that lead to another one in an explanation.
_DEPTH = 5
# Maximum number of events of a trace that is analyzed again for a stored result.
_ANALYZED_AGAIN = 20_000_000


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the front page, with None for whatever the result does not have."""
    yield "story", blocks.document(_story(report.result, report.summary))


def _waiting(account: dict[str, Any]) -> dict[str, float]:
    """Return the waiting, and the share that is lost: a host that waits for a busy device loses nothing."""
    busy = account["wait_states"].get("gpu_host_wait", 0.0)
    lost = account["share"] * (1 - busy / account["waiting"]) if account["waiting"] else 0.0
    return {"total": account["waiting"], "share": account["share"], "lost": lost}


def _story(result: ResultData, summary: dict[str, Any]) -> dict[str, Any]:
    focus = summary["focus"]
    part = focused(result, focus["callpath"] or (ALL if focus["name"] == ALL else None))
    # A wait state that hardly matters is not listed unless none matters more.
    worst = [place for place in focus["worst"] if place["waiting"] > 0]
    worst = [place for place in worst if place["share"] >= _LEAST][:_PROBLEMS] or worst[:1]
    problems = zip(worst, _histories(result, worst, focus["window"]), strict=True)
    return {
        "waiting": _waiting(focus["account"]),
        "account": focus["account"],
        "focus": {name: focus[name] for name in ("name", "phrase", "window", "outside")},
        "running": running(result.places).size,
        "parts": parts(part, Formulas(part.profile)),
        "problems": [_problem(part, place, history) for place, history in problems],
        "delay": (focus["causes"] or [])[:_TOP],
        "critical_path": _critical(part, focus["critical_path"]),
        "efficiencies": efficiency_rows(result, focus),
        "advice": summary.get("advice"),
        "odd": [
            {"text": finding["text"], "count": finding.get("count", 1), "place": finding["place"]}
            for finding in (*summary["warnings"], *summary["oddities"])
        ],
    }


def _histories(
    result: ResultData, places: list[dict[str, Any]], window: tuple[float, float] | None
) -> list[dict[str, Any] | None]:
    """Return the explanation of the longest wait at each place, None where it is unknown.

    Waits that cross an end of the window are used only if there are no others.
    """
    if not result.has_causes or not _is_fast(result):
        return [None] * len(places)
    waits = result.tables.wait_states
    kinds = Kinds(waits)
    longest = [_longest(waits, kinds, place, window) for place in places]
    rows = [row for row in longest if row is not None]
    try:
        explained = dict(zip(rows, explain(result, rows, _DEPTH), strict=True))
    except (_native.Error, OSError):
        # Several processes shared the analysis, or the trace of a stored result is gone.
        return [None] * len(places)
    return [None if row is None else explained[row] for row in longest]


def _is_fast(result: ResultData) -> bool:
    """Whether the causes of waits are available, or can be computed again from a small trace."""
    return result.tables.analysis is not None or result.facts["events"] <= _ANALYZED_AGAIN


def _longest(waits: pa.Table, kinds: Kinds, place: dict[str, Any], window: tuple[float, float] | None) -> int | None:
    """Return the row of the longest wait with a known cause at a place."""
    here = kinds.mask({place["metric"]}) & (waits["callpath"].to_numpy() == place["callpath_id"])
    rows = np.flatnonzero(here & waits["cause_callpath"].is_valid().to_numpy())
    if window is not None:
        enter, leave = (waits[name].to_numpy()[rows] for name in ("enter", "leave"))
        begin, end = window
        whole, part = (enter >= begin) & (leave <= end), (enter < end) & (leave > begin)
        rows = rows[whole if whole.any() else part]
    return int(rows[np.argmax(waits["waiting"].to_numpy()[rows])]) if rows.size else None


def _problem(result: ResultData, place: dict[str, Any], history: dict[str, Any] | None) -> dict[str, Any]:
    """Return the entry of one of the worst wait states."""
    position = int(result.tree.position[place["callpath_id"]])
    (_, row), *_ = result.profile.rows(place["metric"], [position])
    pattern = patterns()[place["metric"]]
    return {
        **place,
        "what": pattern.waits_for,
        "look_at": pattern.look_at,
        "by_place": coarse(row[running(result.places)]),
        "history": history,
    }


def _critical(result: ResultData, critical: dict[str, Any] | None) -> dict[str, Any] | None:
    if not critical or not critical["callpaths"]:
        return None
    return {
        **critical,
        "callpaths": critical["callpaths"][:_TOP],
        "walk": _path_locations(result.tables.critical_path, result),
    }


def _path_locations(path: pa.Table, result: ResultData) -> dict[str, Any]:
    """Return the location of the critical path at each point in time of the picture."""
    begin, end, location = (path[name].to_numpy() for name in ("from", "to", "location"))
    if begin.size > POINTS:
        bounds = np.linspace(begin[0], end[-1], POINTS + 1)
        at = np.searchsorted(begin, (bounds[1:] + bounds[:-1]) / 2, side="right") - 1
        begin, end, location = bounds[:-1], bounds[1:], location[at]
    return {
        "from": begin.tolist(),
        "to": end.tolist(),
        "location": location.tolist(),
        "locations": result.locations.num_rows,
    }
