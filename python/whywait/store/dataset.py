"""The dataset in a directory: tables as Parquet files and a manifest that describes them.

docs/dataset.md describes the format. Its version increases when readers of the previous version would misread a
dataset: when a column or table is removed or changes its meaning, but not when one is added.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import whywait._native as _native
from whywait.model import tables
from whywait.model.options import Options
from whywait.model.schema import schema_of
from whywait.model.schema import tables as declared
from whywait.model.trace import TraceIdentity
from whywait.store import timeline as store_timeline
from whywait.store.files import MANIFEST, SUMMARY, read_json, read_table
from whywait.store.stored import StoredTables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whywait.model.profile import Profile
    from whywait.model.result import ResultData
    from whywait.model.timeline import Timeline
    from whywait.store.staging import Staging

FORMAT = "whywait-result"
FORMAT_VERSION = 2

# Metadata key of a table's mark: a table belongs to the manifest with the same mark.
_MARK = b"whywait.result"

METRICS = schema_of("metrics")

# The files of a result that are no tables.
_FILES = frozenset({MANIFEST, SUMMARY, "report.cubex", "report.stat", "report.html"})


def is_own(name: str) -> bool:
    """Return whether a file of this name in the directory of a result is a part of the result."""
    stem, _, kind = name.partition(".")
    return name in _FILES or (kind == "parquet" and stem in declared() and declared()[stem].is_stored)


def metrics_table(profile: Profile) -> pa.Table:
    """Return the metrics that a result has, in the order of the metric tree."""
    rows = [
        {
            "metric": metric.name,
            "display_name": metric.display_name,
            "parent": metric.parent,
            "unit": metric.unit,
            "stored": not metric.derived,
            "formula": str(metric.formula) if metric.formula else None,
            "description": metric.description,
        }
        for metric in profile.metrics
    ]
    return pa.Table.from_pylist(rows, METRICS)


def type_name(kind: pa.DataType) -> str:
    """Return the Arrow type of a column's values, without regard to dictionary encoding."""
    if pa.types.is_dictionary(kind):
        return str(kind.value_type)
    if pa.types.is_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in kind)}>"
    return str(kind)


class Writer:
    """Writes the tables of a result, then the manifest.

    Parameters
    ----------
    staging
        The directory.
    result
        The result.
    """

    def __init__(self, staging: Staging, result: ResultData) -> None:
        self._staging = staging
        self._result = result
        dataset = result.tables
        what = [
            _native.__version__,
            dataset.trace.name,
            str(dataset.trace.path),
            dataset.trace.sha256,
            dataset.options.as_dict(),
        ]
        self._mark = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
        self._tables: dict[str, dict[str, Any]] = {}
        self._timeline: dict[str, Any] | None = None

    def table(self, name: str, table: pa.Table) -> None:
        """Write a table."""
        self.pieces(name, table.schema, table.to_batches())

    def pieces(
        self, name: str, schema: pa.Schema, pieces: Iterable[pa.RecordBatch], repeating: Iterable[str] = ()
    ) -> None:
        """Write a table piece by piece, without the columns that its file lacks.

        `repeating` is as in `whywait.model.tables.write`.
        """
        path = self._staging.path(f"{name}.parquet")
        joined = declared()[name].joined
        schema = pa.schema([field for field in schema if field.name not in joined])
        rows = tables.write(path, schema.with_metadata({_MARK: self._mark}), pieces, repeating)
        columns = {field.name: type_name(field.type) for field in schema}
        self._tables[name] = {"file": f"{name}.parquet", "rows": rows, "columns": columns}

    def timeline(self, timeline: Timeline) -> None:
        """Write the timeline."""
        locations = self._result.tables.locations.num_rows
        pieces = store_timeline.shares(timeline, locations)
        self.pieces("timeline", store_timeline.SHARES, pieces, repeating=("begin", "end", "share"))
        for name, table in store_timeline.tables(timeline, locations).items():
            self.table(name, table)
        self._timeline = store_timeline.outline(timeline)

    def definitions(self) -> None:
        """Write the definitions that numbers in other tables refer to."""
        dataset = self._result.tables
        for name in ("regions", "locations", "system", "topologies", "inconsistencies"):
            self.table(name, getattr(dataset, name))
        callpaths = dataset.callpaths.select(["callpath", "parent", "region"])
        self.table("callpaths", callpaths.append_column("path", self._result.tree.joined))
        self.table("metrics", metrics_table(self._result.profile))

    def manifest(self, directory: Path, summary: dict[str, Any]) -> None:
        """Write the manifest, after everything else.

        Parameters
        ----------
        directory
            The final directory of the result.
        summary
            The summary from `whywait.analysis.summary.summarize`.
        """
        dataset = self._result.tables
        trace, facts = dataset.trace, dataset.facts
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "whywait": _native.__version__,
            "mark": self._mark,
            "trace": {
                "name": trace.name,
                "path": str(trace.path),
                "relative_path": os.path.relpath(trace.path, directory.absolute()),
                "size": trace.size,
                "sha256": trace.sha256,
            },
            "options": dataset.options.as_dict(),
            "time": {"origin": facts.get("origin"), "resolution": facts.get("resolution")},
            **{name: summary[name] for name in ("facts", "warnings", "oddities", "peak_memory")},
            **({"timeline": self._timeline} if self._timeline else {}),
            # The order in which the two threads finish is arbitrary.
            "tables": dict(sorted(self._tables.items())),
        }
        self._staging.path(MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _kept(name: str) -> cached_property[pa.Table]:
    """Return a property of a dataset: a table that is read once."""
    return cached_property(lambda dataset: dataset.read(name))


class StoredDataset(StoredTables):
    """The dataset in a directory, as a `whywait.model.dataset.Dataset`.

    Parameters
    ----------
    directory
        The results directory.

    Raises
    ------
    whywait.UsageError
        If the manifest is damaged, or its format is not that of this version.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        manifest = read_json(directory / MANIFEST)
        version = manifest.get("format_version")
        if manifest.get("format") != FORMAT or not isinstance(version, int):
            raise _native.UsageError(f"{directory / MANIFEST} is not the manifest of a result of `whywait analyze`")
        if version != FORMAT_VERSION:
            remedy = "install the newer version" if version > FORMAT_VERSION else "analyze the trace again"
            raise _native.UsageError(
                f"{directory} was written by whywait {manifest.get('whywait')} in format {version}, and this is "
                f"whywait {_native.__version__}, which reads format {FORMAT_VERSION}: {remedy}"
            )
        if missing := {"mark", "trace", "options", "facts", "warnings", "oddities", "tables"} - manifest.keys():
            raise _native.UsageError(f"{directory / MANIFEST} is damaged: it lacks {', '.join(sorted(missing))}")
        self._manifest = manifest

    @property
    def metadata(self) -> dict[str, Any]:
        return self._manifest

    @property
    def options(self) -> Options:
        return Options.of(self._manifest["options"])

    @property
    def trace(self) -> TraceIdentity:
        trace = self._manifest["trace"]
        return TraceIdentity(trace["name"], Path(trace["path"]), trace["size"], trace["sha256"])

    @property
    def elsewhere(self) -> list[Path]:
        # The result and its trace may have been moved together.
        return [self.directory / self._manifest["trace"]["relative_path"], *super().elsewhere]

    @cached_property
    def stored(self) -> frozenset[str]:
        metrics = self.read("metrics", ["metric", "stored"])
        return frozenset(metrics.filter(metrics["stored"])["metric"].to_pylist())

    regions = _kept("regions")
    callpaths = _kept("callpaths")
    system = _kept("system")
    topologies = _kept("topologies")

    @property
    def locations(self) -> pa.Table:
        return self._locations

    @cached_property
    def _locations(self) -> pa.Table:
        return self.read("locations")

    @property
    def inconsistencies(self) -> pa.Table:
        return self.read("inconsistencies")

    def has(self, name: str) -> bool:
        return name in self._manifest["tables"]

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        known = self._manifest["tables"].get(name)
        if known is None:
            raise _native.UsageError(f"{self.directory} has no table {name}")
        path = self.directory / known["file"]
        table = read_table(path, columns)
        if (table.schema.metadata or {}).get(_MARK) != self._manifest["mark"].encode() or len(table) != known["rows"]:
            raise _native.UsageError(
                f"{path} does not belong to the same result as {MANIFEST}: analyze the trace again"
            )
        return table.replace_schema_metadata(None)
