"""The timeline as blocks of a page.

The timeline is made from the events, which a stored result does not have, so its tables are stored with the result
(`whywait.store.timeline`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait import _native
from whywait.model.schema import patterns
from whywait.model.timeline import CLASSES, WAITING, Courses, Timeline, classes, from_native
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData

# Number of cells of each level of the picture, and maximum number of individual waits, messages and transfers each.
_CELLS = 1 << 19
_MOST = 10_000
# Individual calls are included if there are no more than this: enough for a few seconds on a few ranks.
_CALLS = 100_000
# Number of bins for all counters, and maximum per row.
_COUNTER_CELLS, _COUNTER_BINS = 1 << 18, 1024
# Maximum size of the timeline in a page. Beyond it, individual items are dropped first, then levels become coarser.
_ROOM = 8_000_000


def fit(result: ResultData, analysis: _native.Analysis, room: int = _ROOM) -> tuple[Timeline | None, dict[str, str]]:
    """Make the timeline of a run at the finest resolution that fits.

    Returns
    -------
    tuple
        The timeline, and the blocks of a page by name; None and no blocks if several processes share the analysis, each
        with a part of the events.
    """
    cells, calls, most = _CELLS, _CALLS, _MOST
    while True:
        if (built := _draw(result, analysis, cells, calls, most)) is None:
            return None, {}
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
        blocks_of_run = fit(result, analysis, _ROOM // 2)[1] if isinstance(analysis, _native.Analysis) else {}
        if not blocks_of_run:
            return {}
        found |= {f"{side}-{name}": block for name, block in blocks_of_run.items()}
    columns = {name: times[name].to_numpy() for name in ("location", "measured", "simulated")}
    return found | {"timeline-map": blocks.columns(columns)}


def pack(result: ResultData, timeline: Timeline) -> dict[str, str]:
    """Return the blocks of a page by name."""
    return dict(_blocks(result, timeline))


def _draw(result: ResultData, analysis: _native.Analysis, cells: int, calls: int, most: int) -> dict[str, Any] | None:
    metrics = result.profile.metrics
    return _native.timeline(
        analysis,
        class_of=classes(result.tree).tobytes(),
        classes=len(CLASSES),
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
    found = pa.table(analysis.counter_courses(merged, bins))
    values = np.full((counters, rows, bins), np.nan, np.float32)
    values[found["counter"], found["location"].to_numpy() // merged, found["bin"]] = found["value"]
    return Courses(merged, rows, bins, length / bins, values)


def _blocks(result: ResultData, timeline: Timeline) -> Iterator[tuple[str, str]]:
    tree, locations = result.tree, result.places
    waits = result.tables.wait_states.take(timeline.waits["wait"]).combine_chunks()
    kinds = sorted(set(waits["kind"].to_pylist()))
    path = result.tables.critical_path if result.has_causes else None
    chosen = _longest(path) if path is not None else None
    yield (
        "timeline",
        blocks.document(
            {
                "length": result.facts["length"],
                "classes": [*([name, text] for name, text, _ in CLASSES), list(WAITING)],
                "levels": [{name: getattr(level, name) for name in ("merged", "rows", "bins", "width")}
                           for level in timeline.levels],
                "kinds": kinds,
                "ended": [_ends_with_cause(kind) for kind in kinds],
                "totals": timeline.totals | {"path": path.num_rows if path else 0},
            }
        ),
    )  # fmt: skip
    yield (
        "timeline-places",
        blocks.columns({"rank": locations.rank.astype(np.int32), "thread": locations.thread.astype(np.int32)}),
    )
    yield (
        "timeline-shares",
        blocks.columns({str(number): level.shares.reshape(-1) for number, level in enumerate(timeline.levels)}),
    )
    calls = timeline.calls
    yield (
        "timeline-calls",
        blocks.columns(
            {
                "location": calls["location"].to_numpy(),
                "position": _positions(tree, calls["callpath"]),
                "enter": calls["enter"].to_numpy(),
                "leave": calls["leave"].to_numpy(),
                "classes": classes(tree)[tree.preorder],
            }
        ),
    )
    yield "timeline-waits", blocks.columns(_waits(tree, waits, timeline.waits, kinds))
    for name, table in (("messages", timeline.messages), ("transfers", timeline.transfers)):
        yield (
            f"timeline-{name}",
            blocks.columns(
                {column: table[column].to_numpy() for column in ("from_location", "to_location", "start", "end")}
                | {"bytes": table["bytes"].to_numpy().astype(np.float64), "waiting": table["waiting"].to_numpy()}
            ),
        )
    if (courses := timeline.counters) is not None:
        rows = result.tables.counters.to_pylist()
        names = [[row["name"], row["unit"] if row["kind"] == "level" else f"{row['unit']}/s"] for row in rows]
        shape = {name: getattr(courses, name) for name in ("merged", "rows", "bins", "width")}
        yield "timeline-courses", blocks.document({"counters": names} | shape)
        values = {str(number): values.reshape(-1) for number, values in enumerate(courses.values)}
        yield "timeline-counters", blocks.columns(values)
    if chosen is not None:
        yield (
            "timeline-path",
            blocks.columns(
                {"location": chosen["location"].to_numpy().astype(np.uint32), "from": chosen["from"].to_numpy(),
                 "to": chosen["to"].to_numpy(), "position": _positions(tree, chosen["callpath"])}
            ),
        )  # fmt: skip


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


def _ends_with_cause(kind: str) -> bool:
    """Return whether waits of a kind last until their cause ends (a lock's release, a kernel), not until it begins."""
    return patterns()[kind].cost_class in ("lock", "gpu_host") or "_lock_contention_" in kind


def _waits(tree: CallTree, waits: pa.Table, times: pa.Table, kinds: list[str]) -> dict[str, npt.NDArray[Any]]:
    number = {kind: code for code, kind in enumerate(kinds)}
    return {
        "kind": np.array([number[kind] for kind in waits["kind"].to_pylist()], np.uint8),
        "location": waits["location"].to_numpy().astype(np.uint32),
        "position": _positions(tree, waits["callpath"]),
        "begin": times["begin"].to_numpy(),
        "waiting": waits["waiting"].to_numpy(),
        "cause_location": waits["cause_location"].cast(pa.int64()).fill_null(-1).to_numpy().astype(np.int32),
        "cause_position": _positions(tree, waits["cause_callpath"]),
        "cause_time": waits["cause_time"].fill_null(np.nan).to_numpy(),
    }
