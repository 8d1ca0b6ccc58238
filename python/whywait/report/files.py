"""Files that are there completely or not at all."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Self

from whywait import tables
from whywait.report.cube import write_cube
from whywait.report.html import write_html
from whywait.report.html.timeline import write as write_timeline
from whywait.report.stat import write_stat

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from whywait import Result


_STATISTICS = "report.stat"


class Staging:
    """A directory to write to under temporary names; what was written appears at the end, if nothing failed.

    >>> with Staging(directory) as staging:
    ...     staging.path("summary.json").write_text("{}")
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[Path, Path] = {}
        self._made = False

    def path(self, name: str) -> Path:
        """Return where to write the file that will have this name."""
        temporary = self._directory / f".{name}.{os.getpid()}.tmp"
        self._files[temporary] = self._directory / name
        return temporary

    def __enter__(self) -> Self:
        if not self._directory.is_dir():
            self._directory.mkdir(parents=True)
            self._made = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            for temporary, final in self._files.items():
                temporary.replace(final)
            return
        for temporary in self._files:
            temporary.unlink(missing_ok=True)
        if self._made:
            self._directory.rmdir()


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
