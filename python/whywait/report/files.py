"""The directory of a result: every file that a person or a tool reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from whywait.model import tables
from whywait.report.cube import write_cube
from whywait.report.html import write_html
from whywait.report.stat import write_stat
from whywait.store.staging import Staging
from whywait.store.timeline import write as write_timeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from whywait.model.result import ResultData


_STATISTICS = "report.stat"


def write_all(
    result: ResultData,
    directory: Path,
    summary: dict[str, Any],
    *,
    transfers: bool = False,
    timeline: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write everything there is to say about a result; see `whywait.Result.write`.

    Parameters
    ----------
    result, directory, transfers
        As there.
    summary
        As `whywait.analysis.summary.summarize` returns it.
    timeline
        The blocks of the timeline for an HTML report; None for no report.
    """
    stored = [metric.name for metric in result.profile.metrics if not metric.derived]
    derived = [metric.name for metric in result.profile.metrics if metric.derived]
    locations = result.places
    names = [
        "report.cubex",
        _STATISTICS,
        "severities.parquet",
        "derived.parquet",
        "wait_states.parquet",
        "summary.json",
    ]
    with Staging(directory) as staging:
        cube, stat, severities, derivatives, wait_states, summary_file = (staging.path(name) for name in names)
        summary_file.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        for path, metrics in ((severities, stored), (derivatives, derived)):
            tables.write(path, tables.SEVERITIES, tables.severity_pieces(result.profile, locations, metrics))
        pieces = tables.wait_state_pieces(result.tree, locations, result.tables.wait_states)
        tables.write(wait_states, tables.WAIT_STATES, pieces)
        write_cube(result, cube, statistics=_STATISTICS)
        write_stat(result, stat)
        if result.has_causes:
            names.append("critical_path.parquet")
            pieces = tables.critical_path_pieces(result.tree, locations, result.tables.critical_path)
            tables.write(staging.path(names[-1]), tables.CRITICAL_PATH, pieces)
        if transfers:
            names.append("transfers.parquet")
            pieces = tables.transfer_pieces(result.tree, locations, result.tables.transfers)
            tables.write(staging.path(names[-1]), tables.TRANSFERS, pieces)
        if timeline is not None:
            names.append("report.html")
            write_html(result, staging.path(names[-1]), summary, timeline)
            # With the events gone, a later page has it from here.
            if timeline:
                names.append("timeline.parquet")
                write_timeline(staging.path(names[-1]), timeline, result.facts)
    return [directory / name for name in names]
