"""Results that were written to a directory, read back."""

from __future__ import annotations

import json
import tarfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq

from whywait import _native
from whywait._api import Result, Run
from whywait.model import tables
from whywait.model.calltree import PATH_TYPE
from whywait.model.metrics import metric_tree
from whywait.report.system import LOCATION_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from xml.etree.ElementTree import Element


def load(directory: str | PathLike[str]) -> Result:
    """Read a result that `Result.write` wrote.

    Parameters
    ----------
    directory
        Where it was written to.

    Returns
    -------
    Result
        The trace itself is needed only for its events and definitions. Inconsistencies and transfers are not kept.

    Raises
    ------
    whywait.UsageError
        If the directory holds no result.
    """
    path = Path(directory)
    missing = [name for name in ("report.cubex", "severities.parquet", "wait_states.parquet", "summary.json")
               if not (path / name).is_file()]  # fmt: skip
    if missing:
        raise _native.UsageError(f"{path} holds no result of `whywait analyze`: there is no {missing[0]}")
    analysis = _SavedAnalysis(path)
    run = object.__new__(Run)
    run._native = cast("_native.Run", _SavedRun(analysis))
    return _SavedResult(analysis, run)


class _SavedResult(Result):
    """A result whose system is that of its Cube file."""

    def __init__(self, analysis: _SavedAnalysis, run: Run) -> None:
        known = {metric.name for metric in metric_tree() if not metric.derived}
        super().__init__(cast("_native.Analysis", analysis), run, known & analysis.metrics)
        self._system = analysis.cube.find("system")
        self._timeline = analysis.directory / "timeline.parquet"
        self._written = analysis.summary

    @cached_property
    def _summary(self) -> dict[str, Any]:
        # The memory is that of the analysis, not of who reads the result.
        return super()._summary | {"peak_memory": self._written.get("peak_memory")}

    @cached_property
    def timeline_blocks(self) -> dict[str, str]:
        """What was written with the result; empty if it was not."""
        from whywait.report.html.timeline import read

        return read(self._timeline, self.facts) if self._timeline.is_file() else {}

    def system_xml(self) -> str:
        """Return what the Cube file says."""
        return ET.tostring(self._system, encoding="unicode") if self._system is not None else "<system/>"


class _SavedRun:
    """What `whywait._native.Run` is to the facade; what only the trace knows is read from it, if it is still there."""

    def __init__(self, analysis: _SavedAnalysis) -> None:
        self._analysis = analysis
        self.anchor_path = Path(analysis.summary["run"]["path"])
        self.archive_name: str = analysis.summary["run"]["name"]

    @cached_property
    def _archive(self) -> _native.Run:
        return _native.Run(self.anchor_path)

    def definitions(self, kind: str) -> _native.Table:
        return self._archive.definitions(kind)

    def definition_kinds(self) -> list[str]:
        return self._archive.definition_kinds()

    def events(self, index: int) -> _native.Table:
        return self._archive.events(index)

    def info(self, *, events: bool = False) -> dict[str, Any]:
        return self._archive.info(events=events)

    def locations(self) -> pa.Table:
        return self._analysis.locations()

    def oddities(self) -> list[tuple[str, str, str]]:
        return [(odd["kind"], odd["place"], odd["text"]) for odd in self._analysis.summary["oddities"]]


class _SavedAnalysis:
    """What `whywait._native.Analysis` is to the facade."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.summary: dict[str, Any] = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        with tarfile.open(directory / "report.cubex") as cube:
            if (anchor := cube.extractfile("anchor.xml")) is None:
                raise _native.UsageError(f"{directory / 'report.cubex'} is no Cube file")
            self.cube = ET.parse(anchor).getroot()  # noqa: S314  (expat bounds what entities may grow to)
        self.metrics = {name.text for name in self.cube.iter("uniq_name")}

    def regions(self) -> pa.Table:
        rows = [
            {
                "region": int(region.get("id", "0")),
                "name": region.findtext("name") or "",
                "canonical_name": region.findtext("mangled_name") or "",
                "paradigm": region.findtext("paradigm") or "",
                "role": region.findtext("role") or "",
                "file": region.get("mod") or "",
                "begin_line": _line(region.get("begin")),
                "end_line": _line(region.get("end")),
            }
            for region in self.cube.iterfind("program/region")
        ]
        schema = {name: pa.string() for name in ("name", "canonical_name", "paradigm", "role", "file")}
        schema |= {name: pa.uint32() for name in ("region", "begin_line", "end_line")}
        return pa.Table.from_pylist(rows, schema=pa.schema(schema))

    def callpaths(self) -> pa.Table:
        rows = sorted(self._cnodes())
        ids, parents, regions = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"callpath": ids, "parent": parents, "region": regions}
        return pa.table({name: pa.array(column, pa.uint32()) for name, column in columns.items()})

    def _cnodes(self) -> Iterator[tuple[int, int | None, int]]:
        """Yield id, parent and region of each call path; several programs have a root above them that is none."""
        artificial = {
            region.get("id") for region in self.cube.iterfind("program/region")
            if (region.findtext("name"), region.findtext("role")) == ("all programs", "artificial")
        }  # fmt: skip
        stack: list[tuple[Element, int | None]] = [(node, None) for node in self.cube.iterfind("program/cnode")]
        while stack:
            node, parent = stack.pop()
            number: int | None = int(node.get("id", "0"))
            if node.get("calleeId") in artificial:
                number = None
            else:
                yield int(node.get("id", "0")), parent, int(node.get("calleeId", "0"))
            stack.extend((child, number) for child in node.iterfind("cnode"))

    def locations(self) -> pa.Table:
        kinds = {of_cube: kind for kind, of_cube in LOCATION_TYPES.items()}
        rows: list[dict[str, Any]] = [
            {
                "location": int(location.get("Id", "0")),
                "name": location.findtext("name") or "",
                "type": kinds.get(location.findtext("type") or "", "UNKNOWN"),
                "group": int(group.get("Id", "0")),
                "rank": int(group.findtext("rank") or 0),
                "thread": int(location.findtext("rank") or 0),
            }
            for group in self.cube.iter("locationgroup")
            for location in group.iterfind("location")
        ]
        rows.sort(key=lambda row: row["location"])
        number = pa.int32()
        schema = pa.schema({"location": pa.uint32(), "name": pa.string(), "type": pa.string(), "group": pa.uint32(),
                            "rank": number, "thread": number})  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=schema)
        return self._with_true_ranks(table)

    def _with_true_ranks(self, table: pa.Table) -> pa.Table:
        """Cube knows no rank -1, which is that of what belongs to no process; the tables do."""
        known = pq.read_table(self.directory / "severities.parquet", columns=["location", "rank", "thread"])
        location = known["location"].to_numpy()
        for name in ("rank", "thread"):
            column = table[name].to_numpy().copy()
            column[location] = known[name].to_numpy()
            table = table.set_column(table.column_names.index(name), name, pa.array(column))
        return table

    def severities(self) -> pa.Table:
        table = pq.read_table(
            self.directory / "severities.parquet", columns=["metric", "callpath_id", "location", "value"]
        )
        return table.rename_columns(["metric", "callpath", "location", "value"])

    def window(self, begin: float, end: float) -> pa.Table:
        del begin, end
        raise _native.UsageError("a written result holds no events: ask for a window of the trace itself")

    def wait_states(self) -> pa.Table:
        return self._numbered("wait_states.parquet", tables.WAIT_STATES)

    def critical_path(self) -> pa.Table:
        return self._numbered("critical_path.parquet", tables.CRITICAL_PATH)

    def _numbered(self, name: str, schema: pa.Schema) -> pa.Table:
        """Read a table with numbers of call paths instead of names, and without what follows from the location."""
        kept = [
            field.name for field in schema
            if field.type != PATH_TYPE and not field.name.endswith(("rank", "thread"))
        ]  # fmt: skip
        table = pq.read_table(self.directory / name, columns=kept)
        return table.rename_columns([column.removesuffix("_id") for column in kept])

    def transfers(self) -> pa.Table:
        raise _native.UsageError("a written result keeps no transfers; read transfers.parquet, if there is one")

    def warnings(self) -> list[dict[str, Any]]:
        return list(self.summary["warnings"])

    def inconsistencies(self) -> pa.Table:
        return pa.table(
            {"kind": pa.array([], pa.string()), "location": pa.array([], pa.uint32()),
             "time": pa.array([], pa.float64()), "detail": pa.array([], pa.string())}
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        return dict(self.summary["facts"])


def _line(text: str | None) -> int | None:
    return int(text) if text and int(text) > 0 else None
