"""The directory of a result: every file that a person or a tool reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from whywait.model import tables
from whywait.report.cube import write_cube
from whywait.report.html import write_html
from whywait.report.html.timeline import write as write_timeline
from whywait.report.stat import write_stat
from whywait.store.staging import Staging

if TYPE_CHECKING:
    from pathlib import Path

    from whywait import Result


_STATISTICS = "report.stat"


def write_all(result: Result, directory: Path, *, transfers: bool = False, html: bool = False) -> list[Path]:
    """Write everything there is to say about a result; see `whywait.Result.write`."""
    stored = [metric.name for metric in result.profile.metrics if not metric.derived]
    derived = [metric.name for metric in result.profile.metrics if metric.derived]
    locations = result.rows_of_locations
    names = [
        "report.cubex",
        _STATISTICS,
        "severities.parquet",
        "derived.parquet",
        "wait_states.parquet",
        "summary.json",
    ]
    with Staging(directory) as staging:
        cube, stat, severities, derivatives, wait_states, summary = (staging.path(name) for name in names)
        summary.write_text(json.dumps(result.summary(), indent=1) + "\n", encoding="utf-8")
        for path, metrics in ((severities, stored), (derivatives, derived)):
            tables.write(path, tables.SEVERITIES, tables.severity_pieces(result.profile, locations, metrics))
        pieces = tables.wait_state_pieces(result.tree, locations, result.native_wait_states)
        tables.write(wait_states, tables.WAIT_STATES, pieces)
        write_cube(result, cube, statistics=_STATISTICS)
        write_stat(result, stat)
        if result.has_causes:
            names.append("critical_path.parquet")
            pieces = tables.critical_path_pieces(result.tree, locations, result.native_critical_path)
            tables.write(staging.path(names[-1]), tables.CRITICAL_PATH, pieces)
        if transfers:
            names.append("transfers.parquet")
            pieces = tables.transfer_pieces(result.tree, locations, result.native_transfers)
            tables.write(staging.path(names[-1]), tables.TRANSFERS, pieces)
        if html:
            names.append("report.html")
            write_html(result, staging.path(names[-1]))
            # With the events gone, a later page has it from here.
            if result.timeline_blocks:
                names.append("timeline.parquet")
                write_timeline(staging.path(names[-1]), result.timeline_blocks, result.facts)
    return [directory / name for name in names]
