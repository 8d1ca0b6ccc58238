"""The front page: where the time went, the findings, what makes others wait, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.devices.use import device_account
from whywait.analysis.focus import ALL, focused
from whywait.report.html import blocks
from whywait.report.html.account import account_parts, findings_story, focused_account
from whywait.report.html.formulas import Formulas
from whywait.report.html.parts import POINTS, efficiency_rows, parts
from whywait.report.html.places import computing, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait.model.result import ResultData
    from whywait.report.html.sections import Report

_TOP = 6


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
    where = focused_account(result, focus)
    columns = (running if where is None else computing)(result.places)
    return {
        "waiting": _waiting(focus["account"]),
        "account": focus["account"],
        "focus": {name: focus[name] for name in ("name", "phrase", "window", "outside")},
        "running": running(result.places).size,
        "parts": parts(part, Formulas(part.profile)) if where is None else account_parts(result, where),
        "columns": {"count": columns.size, "places": columns.tolist() if columns.size <= POINTS else []},
        "devices": None if where is None else _devices(result),
        "found": None if where is None else findings_story(result),
        "worst": next((_place(place) for place in focus["worst"] if place["waiting"] > 0), None),
        "delay": (focus["causes"] or [])[:_TOP],
        "passed_on": focus["passed_on"],
        "critical_path": _critical(part, focus["critical_path"]),
        "efficiencies": efficiency_rows(result, focus),
        "advice": summary.get("advice"),
        "recording": summary.get("recording", []),
        "odd": [
            {"text": finding["text"], "count": finding.get("count", 1), "place": finding["place"]}
            for finding in (*summary["warnings"], *summary["oddities"])
        ],
    }


def _devices(result: ResultData) -> dict[str, Any] | None:
    """Return the account of all devices in the focus; None without devices."""
    found = device_account(result)
    if found is None:
        return None
    rows = [{"name": name, "label": label, "time": time} for name, label, time in found.rows]
    return {"count": found.devices, "time": found.time, "rows": rows}


def _place(place: dict[str, Any]) -> dict[str, Any]:
    """Return a wait state and its call path, as the explorer selects them."""
    return {name: place[name] for name in ("metric", "callpath_id")}


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
