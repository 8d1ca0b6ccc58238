"""The timeline as blocks of a page.

The timeline is made from the events, which a stored result does not have, so its tables are stored with the result
(`whywait.store.timeline`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
import whywait.mpi as mpi
from whywait.model.schema import patterns
from whywait.model.timeline import CLASSES, MANAGEMENT, WAITING, Courses, Timeline, classes, from_native
from whywait.report.html import blocks
from whywait.report.html.places import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData
    from whywait.model.tables import Locations
    from whywait.model.timeline import Level

# Number of cells of each level of the picture, and maximum number of individual waits, messages and so on, each.
_CELLS = 1 << 19
_MOST = 10_000
# Individual calls are included if there are no more than this: enough for a few seconds on a few ranks.
_CALLS = 100_000
# Of more samples, only each so many-th is in a page.
_SAMPLES = 200_000
# Times closer than this are the same.
_ROUNDING = 1e-9
# Number of bins for all counters, and maximum per row.
_COUNTER_CELLS, _COUNTER_BINS = 1 << 18, 1024
# Maximum size of the timeline in a page. Beyond it, individual items are dropped first, then levels become coarser.
_ROOM = 8_000_000


def fit(result: ResultData, analysis: _native.Analysis, room: int = _ROOM) -> tuple[Timeline, dict[str, str]]:
    """Make the timeline of a run at the finest resolution that fits.

    Returns
    -------
    tuple
        The timeline, and the blocks of a page by name.
    """
    cells, calls, most = _CELLS, _CALLS, _MOST
    while True:
        built = _draw(result, analysis, cells, calls, most)
        timeline = from_native(built)._replace(counters=_courses(result, analysis, _COUNTER_CELLS * cells // _CELLS))
        packed = pack(result, timeline)
        if sum(len(block) for block in packed.values()) <= room or cells <= 1 << 12:
            return timeline, packed
        cells, calls, most = cells // 2, calls // 4, max(1000, most // 2)


def pair(runs: Sequence[ResultData], times: pa.Table) -> dict[str, str]:
    """Make the timelines of a run and its simulation, for a page that shows both.

    Parameters
    ----------
    runs
        The results of both.
    times
        ``location``, ``measured`` and ``simulated``: corresponding times (seconds since the begin of each run).

    Returns
    -------
    dict
        The blocks of a page by name; none if a result has no events to make a timeline from.
    """
    found: dict[str, str] = {}
    for side, result in zip("ab", runs, strict=True):
        analysis = result.tables.analysis
        if not isinstance(analysis, _native.Analysis):
            return {}
        timeline, blocks_of_run = fit(result, analysis, _ROOM // 2)
        found |= {f"{side}-{name}": block for name, block in blocks_of_run.items()}
        row = _Rows(result.places, timeline).of(times["location"])
    by_row = np.argsort(row, kind="stable")
    columns = {name: times[name].to_numpy()[by_row] for name in ("measured", "simulated")}
    return found | {"timeline-map": blocks.columns({"location": row[by_row]} | columns)}


def pack(result: ResultData, timeline: Timeline) -> dict[str, str]:
    """Return the blocks of a page by name."""
    return dict(_blocks(result, timeline))


def _draw(result: ResultData, analysis: _native.Analysis, cells: int, calls: int, most: int) -> dict[str, Any]:
    metrics = result.profile.metrics
    return mpi.together(
        _native.timeline,
        analysis,
        class_of=classes(result.tree).tobytes(),
        classes=len(CLASSES),
        management=MANAGEMENT,
        waiting=[metric.name for metric in metrics.waiting],
        cells=cells,
        calls=calls,
        most=most,
    )


def _courses(result: ResultData, analysis: _native.Analysis, cells: int) -> Courses | None:
    """Return the values of all counters over time, in at most ``cells`` cells."""
    counters, locations = result.tables.counters.num_rows, result.tables.locations.num_rows
    length = result.facts["length"]
    if not counters or not length:
        return None
    of_counter = max(1, cells // counters)
    ticks = max(1, round(length * result.facts["resolution"]))
    bins = min(_COUNTER_BINS, ticks, max(1, of_counter // min(locations, 64)))
    merged = -(-locations // max(1, of_counter // bins))
    rows = -(-locations // merged)
    found = pa.table(mpi.together(analysis.counter_courses, merged, bins))
    values = np.full((counters, rows, bins), np.nan, np.float32)
    values[found["counter"], found["location"].to_numpy() // merged, found["bin"]] = found["value"]
    return Courses(merged, rows, bins, length / bins, values)


class _Rows:
    """The rows of the timeline, from top to bottom.

    Locations that only record metrics, or whose events are gone, have no row, unless rows merge neighbors. They come
    after the rows, so that their counters can be shown.
    """

    def __init__(self, locations: Locations, timeline: Timeline) -> None:
        merged = [level.merged for level in timeline.levels]
        if timeline.counters is not None:
            merged.append(timeline.counters.merged)
        kept = running(locations) if max(merged) == 1 else np.arange(len(locations))
        #: The number of rows.
        self.count = int(kept.size)
        #: The locations in the order of the rows, then all others.
        self.order = np.concatenate([kept, np.setdiff1d(np.arange(len(locations)), kept)])
        self._row_of = np.argsort(self.order).astype(np.int32)

    def of(self, locations: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Return the rows of locations, -1 where the location is null."""
        row = pa.array(self._row_of).take(locations.combine_chunks())
        return np.asarray(row.fill_null(-1), np.int32)

    def drawn(self, level: Level) -> Level:
        """Return a level with these rows only."""
        if level.merged > 1 or level.rows == self.count:
            return level
        return level._replace(rows=self.count, shares=level.shares[:, self.order[: self.count]])

    def ordered(self, courses: Courses) -> Courses:
        """Return counters in the order of the rows, and of the locations after them."""
        return courses if courses.merged > 1 else courses._replace(values=courses.values[:, self.order])


def _blocks(result: ResultData, timeline: Timeline) -> Iterator[tuple[str, str]]:
    tree, locations = result.tree, result.places
    rows = _Rows(locations, timeline)
    levels = [rows.drawn(level) for level in timeline.levels]
    waits = result.tables.wait_states.take(timeline.waits["wait"]).combine_chunks()
    kinds = _kinds(result)
    path = result.tables.critical_path if result.has_causes else None
    chosen = _longest(path) if path is not None else None
    yield (
        "timeline",
        blocks.document(
            {
                "length": result.facts["length"],
                "rows": rows.count,
                "classes": [*([name, text] for name, text, _ in CLASSES), list(WAITING)],
                "levels": [{name: getattr(level, name) for name in ("merged", "rows", "bins", "width")}
                           for level in levels],
                "kinds": kinds,
                "ended": [patterns()[kind].ends_with_cause for kind in kinds],
                "totals": timeline.totals | {"path": path.num_rows if path else 0},
            }
        ),
    )  # fmt: skip
    yield (
        "timeline-places",
        blocks.columns(
            {
                "rank": locations.rank[rows.order].astype(np.int32),
                "thread": locations.thread[rows.order].astype(np.int32),
            }
            | ({"location": rows.order.astype(np.uint32)} if rows.count < len(locations) else {})
        ),
    )
    yield (
        "timeline-shares",
        blocks.columns({str(number): level.shares.reshape(-1) for number, level in enumerate(levels)}),
    )
    calls = timeline.calls
    yield (
        "timeline-calls",
        blocks.columns(
            {
                "location": rows.of(calls["location"]),
                "position": _positions_of_calls(tree, calls),
                "enter": calls["enter"].to_numpy(),
                "leave": calls["leave"].to_numpy(),
                "classes": np.append(classes(tree)[tree.preorder], np.full(len(tree), MANAGEMENT, np.uint8)),
            }
        ),
    )
    yield "timeline-waits", blocks.columns(_waits(tree, rows, waits, timeline.waits, kinds))
    for name, table in (
        ("messages", timeline.messages),
        ("transfers", timeline.transfers),
        ("tasks", timeline.tasks),
    ):
        yield (
            f"timeline-{name}",
            blocks.columns(
                {column: rows.of(table[column]) for column in ("from_location", "to_location")}
                | {column: table[column].to_numpy() for column in ("start", "end", "waiting")}
                | {"bytes": table["bytes"].to_numpy().astype(np.float64)}
            ),
        )
    if result.facts.get("samples"):
        yield "timeline-samples", blocks.columns(_samples(result, rows))
    locks = timeline.locks
    yield (
        "timeline-locks",
        blocks.columns(
            {
                "location": rows.of(locks["location"]),
                "lock": locks["lock"].to_numpy(),
                "position": _positions(tree, locks["callpath"]),
                "begin": locks["begin"].to_numpy(),
                "end": locks["end"].to_numpy(),
            }
        ),
    )
    if timeline.counters is not None:
        courses = rows.ordered(timeline.counters)
        counters = result.tables.counters.to_pylist()
        names = [[row["name"], row["unit"] if row["kind"] == "level" else f"{row['unit']}/s"] for row in counters]
        shape = {name: getattr(courses, name) for name in ("merged", "rows", "bins", "width")}
        yield "timeline-courses", blocks.document({"counters": names} | shape)
        values = {str(number): values.reshape(-1) for number, values in enumerate(courses.values)}
        yield "timeline-counters", blocks.columns(values)
    if chosen is not None:
        yield (
            "timeline-path",
            blocks.columns(
                {"location": rows.of(chosen["location"]), "from": chosen["from"].to_numpy(),
                 "to": chosen["to"].to_numpy(), "position": _positions(tree, chosen["callpath"])}
            ),
        )  # fmt: skip


def calls_block(
    result: ResultData, analysis: _native.Analysis, window: tuple[float, float], shown: range, rows: int, most: int
) -> str:
    """Return the block of the calls and waits in a window of time.

    Calls are left out if there are more than `most`; of more waits, the longest are kept.

    Parameters
    ----------
    result
        The result.
    analysis
        An analysis of its trace, with the events.
    window
        Begin and end, seconds since the start of the trace.
    shown
        The rows of the timeline whose calls to return.
    rows
        The number of all rows.
    most
        The maximum number of calls.
    """
    everywhere = np.arange(len(result.places))
    kept = everywhere if rows == len(everywhere) else running(result.places)
    wanted = kept[shown.start : shown.stop].tolist()
    found, _ = mpi.together(
        _native.timeline_calls, analysis, locations=wanted, begin=window[0], end=window[1], most=most
    )
    calls = pa.table(found)
    row_of = np.zeros(len(result.places), np.int32)
    row_of[kept] = np.arange(kept.size, dtype=np.int32)
    return blocks.columns(
        {
            "location": row_of[calls["location"].to_numpy()],
            "position": _positions_of_calls(result.tree, calls),
            "enter": calls["enter"].to_numpy(),
            "leave": calls["leave"].to_numpy(),
        }
        | _waits_within(result, window, wanted, row_of, most)
    )


def _kinds(result: ResultData) -> list[str]:
    """Return the kinds of waits that a timeline shows."""
    occurring = set(result.tables.wait_states["kind"].unique().to_pylist())
    return sorted(metric.name for metric in result.profile.metrics.waiting if metric.name in occurring)


def _waits_within(
    result: ResultData, window: tuple[float, float], locations: list[int], row_of: npt.NDArray[np.int32], most: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the waits in a window as columns, the longest first: as those of the whole run, with ``wait_`` before."""
    table, kinds = result.tables.wait_states, _kinds(result)
    begin, end = table["enter"].to_numpy(), table["leave"].to_numpy()
    inside = (begin < window[1]) & (end > window[0])
    inside &= np.isin(np.arange(len(result.places)), locations)[table["location"].to_numpy()]
    waits = table.filter(pa.array(inside))
    waits = waits.filter(pc.is_in(waits["kind"].cast(pa.string()), pa.array(kinds)))
    longest = np.argsort(-waits["waiting"].to_numpy(), kind="stable")[:most]
    waits = waits.take(longest)
    known = waits["cause_location"].is_valid().to_numpy()
    number = {kind: code for code, kind in enumerate(kinds)}
    enter, leave, waiting = (waits[name].to_numpy() for name in ("enter", "leave", "waiting"))
    # A wait begins with its call, unless those of its kind in the picture of the whole run end with it.
    late = np.isin(waits["kind"].to_pylist(), _late_kinds(result))
    begin = np.where(late, leave - waiting, enter)
    columns = {
        "kind": np.array([number[kind] for kind in waits["kind"].to_pylist()], np.uint8),
        "location": row_of[waits["location"].to_numpy()],
        "position": _positions(result.tree, waits["callpath"]),
        "begin": begin,
        "end": begin + waiting,
        "waiting": waiting,
        "cause_location": np.where(known, row_of[waits["cause_location"].fill_null(0).to_numpy()], -1).astype(np.int32),
        "cause_position": _positions(result.tree, waits["cause_callpath"]),
        "cause_time": waits["cause_time"].fill_null(np.nan).to_numpy(),
    }
    return {f"wait_{name}": column for name, column in columns.items()}


def _late_kinds(result: ResultData) -> list[str]:
    """Return the kinds of waits that end with their call."""
    if (timeline := result.tables.timeline) is None:
        return []
    chosen = result.tables.wait_states.take(timeline.waits["wait"])
    at_end = timeline.waits["end"].to_numpy() >= chosen["leave"].to_numpy() - _ROUNDING
    at_begin = timeline.waits["begin"].to_numpy() <= chosen["enter"].to_numpy() + _ROUNDING
    kinds = np.array(chosen["kind"].to_pylist(), np.str_)
    return sorted(set(kinds[at_end & ~at_begin].tolist()) - set(kinds[at_begin & ~at_end].tolist()))


def _longest(path: pa.Table) -> pa.Table:
    """Select the longest segments of the critical path, in their original order."""
    if path.num_rows <= _MOST:
        return path
    lengths = path["to"].to_numpy() - path["from"].to_numpy()
    return path.take(np.sort(np.argpartition(-lengths, _MOST)[:_MOST]))


def _positions(tree: CallTree, callpaths: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Return the positions of call paths in the call tree, -1 for none."""
    known = callpaths.is_valid().to_numpy()
    number = callpaths.fill_null(0).to_numpy().astype(np.int64)
    position = tree.position[number] if len(tree) else number
    return np.where(known, position, -1).astype(np.int32)


def _positions_of_calls(tree: CallTree, calls: pa.Table) -> npt.NDArray[np.int32]:
    """Return the positions of calls, those that manage the team of a parallel region after all call paths."""
    shift = np.where(calls["is_management"].to_numpy(), len(tree), 0)
    return (_positions(tree, calls["callpath"]) + shift).astype(np.int32)


def _samples(result: ResultData, rows: _Rows) -> dict[str, npt.NDArray[Any]]:
    """Return samples of time, each so many-th if there are too many for a page, by location and time."""
    table = result.tables.samples
    table = table.filter(pc.and_(pc.equal(table["kind"], "time"), pc.is_valid(table["callpath"])))
    every = -(-table.num_rows // _SAMPLES) or 1
    table = table.take(np.arange(0, table.num_rows, every))
    return {
        "location": rows.of(table["location"]),
        "position": _positions(result.tree, table["callpath"]),
        "time": table["time"].to_numpy(),
        "every": np.array([every], np.uint32),
    }


def _waits(
    tree: CallTree, rows: _Rows, waits: pa.Table, times: pa.Table, kinds: list[str]
) -> dict[str, npt.NDArray[Any]]:
    number = {kind: code for code, kind in enumerate(kinds)}
    return {
        "kind": np.array([number[kind] for kind in waits["kind"].to_pylist()], np.uint8),
        "location": rows.of(waits["location"]),
        "position": _positions(tree, waits["callpath"]),
        "begin": times["begin"].to_numpy(),
        "end": times["end"].to_numpy(),
        "waiting": waits["waiting"].to_numpy(),
        "cause_location": rows.of(waits["cause_location"]),
        "cause_position": _positions(tree, waits["cause_callpath"]),
        "cause_time": waits["cause_time"].fill_null(np.nan).to_numpy(),
    }
