"""The timeline of a result as tables.

The timeline is made from the events, which a stored result does not have, so it is stored for later reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.model.schema import schema_of
from whywait.model.timeline import CLASSES, WAITING, WHOLE, Courses, Level, Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SHARES = schema_of("timeline")
_ARROWS = ("message", "transfer", "task")
_NAMES = [*(name for name, *_ in CLASSES), WAITING[0]]


def shares(timeline: Timeline, locations: int) -> Iterator[pa.RecordBatch]:
    """Yield the nonzero shares of all classes in the bins."""
    for number, level in enumerate(timeline.levels):
        cell = np.flatnonzero(level.shares).astype(np.int32)
        line, place = np.divmod(cell, level.bins)
        plane, row = np.divmod(line, level.rows)
        first = np.arange(level.rows) * level.merged
        starts = np.arange(level.bins + 1) * level.width
        # Keys and few distinct values are quicker to make, and to write, than all values.
        columns = {
            "level": (np.zeros(cell.size, np.int8), np.array([number], np.uint32)),
            "location": (row, first.astype(np.uint32)),
            "last_location": (row, (np.minimum(first + level.merged, locations) - 1).astype(np.uint32)),
            "begin": (place, starts[:-1]),
            "end": (place, starts[1:]),
            "class": (plane, _NAMES),
            "share": (level.shares.reshape(-1)[cell], np.arange(WHOLE + 1) / WHOLE),
        }
        yield pa.record_batch({name: pa.DictionaryArray.from_arrays(*columns[name]) for name in SHARES.names})


def tables(timeline: Timeline, locations: int) -> dict[str, pa.Table]:
    """Return the tables of individual items and of counters, by name."""
    arrows = dict(zip(_ARROWS, (timeline.messages, timeline.transfers, timeline.tasks), strict=True))
    kinds = [kind for kind, table in arrows.items() for _ in range(table.num_rows)]
    messages = pa.concat_tables(arrows.values())
    found = {
        "timeline_calls": timeline.calls,
        "timeline_waits": timeline.waits,
        "timeline_locks": timeline.locks,
        "timeline_messages": messages.add_column(0, "kind", pa.array(kinds, pa.string()).dictionary_encode()),
    }
    if timeline.counters is not None:
        found["timeline_counters"] = _courses(timeline.counters, locations)
    return {name: table.cast(schema_of(name)) for name, table in found.items()}


def _courses(courses: Courses, locations: int) -> pa.Table:
    counter, row, place = np.nonzero(np.isfinite(courses.values))
    first = row * courses.merged
    return pa.table(
        {
            "counter": counter.astype(np.uint32),
            "location": first.astype(np.uint32),
            "last_location": (np.minimum(first + courses.merged, locations) - 1).astype(np.uint32),
            "begin": place * courses.width,
            "end": (place + 1) * courses.width,
            "value": courses.values[counter, row, place].astype(np.float64),
        }
    )


def outline(timeline: Timeline) -> dict[str, Any]:
    """Return the timeline's entry in the manifest: its levels and the numbers of individual items."""
    levels = [level._asdict() | {"shares": None} for level in timeline.levels]
    found: dict[str, Any] = {
        "levels": [{name: value for name, value in level.items() if name != "shares"} for level in levels],
        "totals": timeline.totals,
    }
    if (courses := timeline.counters) is not None:
        shape = {name: getattr(courses, name) for name in ("merged", "rows", "bins", "width")}
        found["counters"] = shape | {"counters": len(courses.values)}
    return found


def read(entry: Mapping[str, Any], table: Callable[[str], pa.Table]) -> Timeline:
    """Return the stored timeline, given its entry in the manifest."""
    cells = table("timeline")
    number = cells["level"].to_numpy()
    plane = pc.index_in(cells["class"].cast(pa.string()), pa.array(_NAMES)).to_numpy()
    levels = []
    for i, level in enumerate(entry["levels"]):
        here = number == i
        values = np.zeros((len(_NAMES), level["rows"], level["bins"]), np.uint8)
        row = cells["location"].to_numpy()[here] // level["merged"]
        place = np.rint(cells["begin"].to_numpy()[here] / level["width"]).astype(np.int64)
        values[plane[here], row, place] = np.rint(cells["share"].to_numpy()[here] * WHOLE)
        levels.append(Level(**level, shares=values))
    arrows = table("timeline_messages")
    messages, transfers, tasks = (
        arrows.filter(pc.equal(arrows["kind"], kind)).drop_columns("kind") for kind in _ARROWS
    )
    counters = _read_courses(entry["counters"], table("timeline_counters")) if "counters" in entry else None
    return Timeline(
        tuple(levels),
        table("timeline_calls"),
        table("timeline_waits"),
        messages,
        transfers,
        tasks,
        table("timeline_locks"),
        totals=dict(entry["totals"]),
        counters=counters,
    )


def _read_courses(entry: Mapping[str, Any], cells: pa.Table) -> Courses:
    values = np.full((entry["counters"], entry["rows"], entry["bins"]), np.nan, np.float32)
    row = cells["location"].to_numpy() // entry["merged"]
    place = np.rint(cells["begin"].to_numpy() / entry["width"]).astype(np.int64)
    values[cells["counter"].to_numpy(), row, place] = cells["value"].to_numpy()
    return Courses(entry["merged"], entry["rows"], entry["bins"], entry["width"], values)
