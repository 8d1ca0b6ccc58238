"""How the longest waits came about, as far as the trace is there to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from whywait import _native
from whywait.analysis.explain import History

if TYPE_CHECKING:
    from whywait.model.result import ResultData

_DEPTH = 5
# Events are read again for this; of longer locations nobody would wait for it.
_EVENTS_OF_LOCATION = 500_000


def histories(result: ResultData, places: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Return the history of the longest wait at each of some places, None where it cannot be told.

    Parameters
    ----------
    result
        Where they were found.
    places
        Of each, ``metric`` and ``callpath_id``.
    """
    facts = result.facts
    if not result.has_causes or facts["events"] > _EVENTS_OF_LOCATION * max(1, facts["locations"]):
        return [None] * len(places)
    history = History(result)
    return [_tell(history, _longest(result.tables.wait_states, place)) for place in places]


def _tell(history: History, row: int | None) -> dict[str, Any] | None:
    if row is None:
        return None
    try:
        return history.explain(row, _DEPTH)
    except (_native.Error, OSError):
        # A written result may have outlived its trace.
        return None


def _longest(waits: pa.Table, place: dict[str, Any]) -> int | None:
    """Return the row of the longest wait at a place of which the cause is known."""
    conditions = (
        pc.equal(waits["kind"].cast(pa.string()), place["metric"]),
        pc.equal(waits["callpath"], place["callpath_id"]),
        pc.is_valid(waits["cause_callpath"]),
    )
    rows = pc.indices_nonzero(pc.and_(pc.and_(*conditions[:2]), conditions[2]))
    if not len(rows):
        return None
    return int(rows[pc.index(waiting := waits["waiting"].take(rows), pc.max(waiting)).as_py()].as_py())
