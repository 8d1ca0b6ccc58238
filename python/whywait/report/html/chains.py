"""Explanations of the longest waits, if the trace is available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.explain import explain
from whywait.analysis.ranking import Kinds

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.model.result import ResultData

_DEPTH = 5
# Maximum number of events of a trace that is analyzed again for a stored result.
_ANALYZED_AGAIN = 20_000_000


def histories(
    result: ResultData, places: list[dict[str, Any]], window: tuple[float, float] | None = None
) -> list[dict[str, Any] | None]:
    """Return the explanation of the longest wait at each of several places, None where it is unknown.

    Parameters
    ----------
    result
        The result.
    places
        The ``metric`` and ``callpath_id`` of each place.
    window
        Begin and end (s) of the period to search: waits that cross an end are used only if there are no others.
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
