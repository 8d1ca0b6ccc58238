"""The tables of a result in a directory that have been the same in all versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whywait import _native
from whywait.model import tables
from whywait.model.calltree import PATH_TYPE
from whywait.store.timeline import read as read_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class StoredTables(ABC):
    """What is read from the files of any version.

    Parameters
    ----------
    directory
        Where the result was written to.
    """

    #: A written result holds no events.
    analysis: None = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What `summary.json` holds."""

    @property
    @abstractmethod
    def locations(self) -> pa.Table:
        """The streams of events."""

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.summary["facts"])

    @property
    def warnings(self) -> list[dict[str, Any]]:
        return list(self.summary["warnings"])

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """What the definitions get wrong: kind, place and text of each finding."""
        return [(odd["kind"], odd["place"], odd["text"]) for odd in self.summary["oddities"]]

    @property
    def peak_memory(self) -> int | None:
        # The memory is that of the analysis, not of who reads the result.
        return self.summary.get("peak_memory")

    @property
    def severities(self) -> pa.Table:
        columns = ["metric", "callpath_id", "location", "value"]
        table = pq.read_table(self.directory / "severities.parquet", columns=columns)
        return table.rename_columns(["metric", "callpath", "location", "value"])

    @cached_property
    def wait_states(self) -> pa.Table:
        return self._numbered("wait_states.parquet", tables.WAIT_STATES)

    def factors(self, rows: Iterable[int]) -> tuple[pa.Table, pa.Table]:
        del rows
        raise _native.UsageError("a written result has no factors of its waits: analyze the trace again")

    @cached_property
    def critical_path(self) -> pa.Table:
        return self._numbered("critical_path.parquet", tables.CRITICAL_PATH)

    @property
    def transfers(self) -> pa.Table:
        raise _native.UsageError("a written result keeps no transfers; read transfers.parquet, if there is one")

    def _numbered(self, name: str, schema: pa.Schema) -> pa.Table:
        """Read a table with numbers of call paths instead of names, and without what follows from the location."""
        kept = [
            field.name for field in schema
            if field.type != PATH_TYPE and not field.name.endswith(("rank", "thread"))
        ]  # fmt: skip
        table = pq.read_table(self.directory / name, columns=kept)
        return table.rename_columns([column.removesuffix("_id") for column in kept])

    @cached_property
    def timeline(self) -> Mapping[str, str]:
        file = self.directory / "timeline.parquet"
        return read_timeline(file, self.facts) if file.is_file() else {}

    def window(self, begin: float, end: float) -> pa.Table:
        del begin, end
        raise _native.UsageError("a written result holds no events: ask for a window of the trace itself")
