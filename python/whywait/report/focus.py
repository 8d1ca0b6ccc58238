"""The first line of what is said about a focus: its bounds, what decided them, and what lies outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.focus import ALL
from whywait.report.terminal import seconds

if TYPE_CHECKING:
    from whywait.analysis.focus import FocusedData

_RULES = {
    "last_finalize": "between start-up and shutdown",
    "profiler": "what all ranks recorded",
    "whole": "the whole run",
    "window": "a window",
}


def focus_data(part: FocusedData) -> dict[str, Any]:
    """Return the focus of a result as plain data.

    Returns
    -------
    dict
        ``begin`` and ``end`` (s since the start of the trace), ``rule`` (``last_finalize``: between start-up and
        shutdown; ``whole``: the whole run; ``window``: a window of time) and ``callpath`` (None for all).
    """
    facts, focus = part.facts, part.focus
    begin, end = focus.window or (0.0, facts.get("length", 0.0))
    rule = facts.get("focus_rule", "last_finalize") if focus.window else "whole"
    if facts.get("focus_rule") == "window":
        begin, end, rule = facts["focus_begin"], facts["focus_end"], "window"
    return {"begin": begin, "end": end, "rule": rule, "callpath": focus.callpath}


def focus_line(part: FocusedData) -> str:
    """Return the first line about the focus of a result; empty for a profile, which has no times of events."""
    if part.is_profile:
        return "" if part.focus.callpath is None else f"Focus: {part.focus.callpath}."
    data = focus_data(part)
    what = _RULES[data["rule"]] + (f", only {data['callpath']}" if data["callpath"] is not None else "")
    outside = part.whole.profile.total("time") - part.profile.total("time") if part.focus.name != ALL else 0.0
    more = f"; {seconds(outside)} of CPU time lie outside" if outside > 0 else ""
    length = data["end"] - data["begin"]
    return f"Focus: {seconds(data['begin'])} to {seconds(data['end'])} ({what}), {seconds(length)}{more}."
