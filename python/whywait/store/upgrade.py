"""Results of version 0.1.0. They have no manifest: regions, call paths and the system are in their Cube file."""

from __future__ import annotations

import tarfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow as pa

from whywait import _native
from whywait.model.metrics import metric_tree
from whywait.model.system import LOCATION_TYPES, SYSTEM, TOPOLOGIES, table_of_rows
from whywait.model.trace import TraceIdentity
from whywait.store.files import read_json, read_table
from whywait.store.stored import StoredTables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

#: The files of a result.
FILES = ("report.cubex", "severities.parquet", "wait_states.parquet", "summary.json")


class OldDataset(StoredTables):
    """A result of version 0.1.0, as a `whywait.model.dataset.Dataset`.

    Parameters
    ----------
    directory
        The results directory.

    Raises
    ------
    whywait.UsageError
        If its Cube file is invalid.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.options: dict[str, Any] = {}
        self._summary: dict[str, Any] = read_json(directory / "summary.json")
        try:
            with tarfile.open(directory / "report.cubex") as cube:
                anchor = cube.extractfile("anchor.xml")
                text = anchor.read() if anchor else b""
            self._cube = ET.fromstring(text)  # noqa: S314  (expat bounds what entities may grow to)
        except (KeyError, tarfile.TarError, ET.ParseError) as error:
            raise _native.UsageError(f"{directory / 'report.cubex'} is not a Cube file") from error

    @property
    def metadata(self) -> dict[str, Any]:
        return self._summary

    @property
    def trace(self) -> TraceIdentity:
        run = self._summary["run"]
        return TraceIdentity(run["name"], Path(run["path"]))

    def has(self, name: str) -> bool:
        # Tables that not every result has could be left over from another one.
        return name == "critical_path" and self._summary["critical_path"] is not None

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        return read_table(self.directory / f"{name}.parquet", columns)

    @cached_property
    def stored(self) -> frozenset[str]:
        known = {metric.name for metric in metric_tree() if not metric.derived}
        return frozenset(known & {name.text for name in self._cube.iter("uniq_name") if name.text})

    @cached_property
    def regions(self) -> pa.Table:
        rows = [
            {
                "region": int(region.get("id", "0")),
                "name": region.findtext("name") or "",
                "canonical_name": region.findtext("mangled_name") or "",
                "paradigm": region.findtext("paradigm") or "",
                "role": region.findtext("role") or "",
                "file": region.get("mod") or "",
                "begin_line": _line_number(region.get("begin")),
                "end_line": _line_number(region.get("end")),
            }
            for region in self._cube.iterfind("program/region")
        ]
        schema = {name: pa.string() for name in ("name", "canonical_name", "paradigm", "role", "file")}
        schema |= {name: pa.uint32() for name in ("region", "begin_line", "end_line")}
        return pa.Table.from_pylist(rows, schema=pa.schema(schema))

    @cached_property
    def callpaths(self) -> pa.Table:
        rows = sorted(self._cnodes())
        ids, parents, regions = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"callpath": ids, "parent": parents, "region": regions}
        return pa.table({name: pa.array(column, pa.uint32()) for name, column in columns.items()})

    def _cnodes(self) -> Iterator[tuple[int, int | None, int]]:
        """Yield id, parent and region of each call path, without the artificial root above several programs."""
        artificial = {
            region.get("id") for region in self._cube.iterfind("program/region")
            if (region.findtext("name"), region.findtext("role")) == ("all programs", "artificial")
        }  # fmt: skip
        stack: list[tuple[Element, int | None]] = [(node, None) for node in self._cube.iterfind("program/cnode")]
        while stack:
            node, parent = stack.pop()
            number: int | None = int(node.get("id", "0"))
            if node.get("calleeId") in artificial:
                number = None
            else:
                yield int(node.get("id", "0")), parent, int(node.get("calleeId", "0"))
            stack.extend((child, number) for child in node.iterfind("cnode"))

    @property
    def locations(self) -> pa.Table:
        return self._locations

    @cached_property
    def _locations(self) -> pa.Table:
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
            for group in self._cube.iter("locationgroup")
            for location in group.iterfind("location")
        ]
        rows.sort(key=lambda row: row["location"])
        number = pa.int32()
        schema = pa.schema({"location": pa.uint32(), "name": pa.string(), "type": pa.string(), "group": pa.uint32(),
                            "rank": number, "thread": number})  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=schema)
        return self._with_true_ranks(table)

    def _with_true_ranks(self, table: pa.Table) -> pa.Table:
        """Restore rank -1 of locations that belong to no process: Cube cannot represent it."""
        known = self.read("severities", ["location", "rank", "thread"])
        location = known["location"].to_numpy()
        for name in ("rank", "thread"):
            column = table[name].to_numpy().copy()
            column[location] = known[name].to_numpy()
            table = table.set_column(table.column_names.index(name), name, pa.array(column))
        return table

    @cached_property
    def system(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        stack: list[tuple[Element, int | None]] = [
            (node, None) for node in reversed(self._cube.findall("system/systemtreenode"))
        ]
        while stack:
            node, parent = stack.pop()
            kind = {"systemtreenode": "node", "locationgroup": "group"}.get(node.tag, "location")
            rank = int(node.findtext("rank") or 0) if kind == "group" else None
            location = int(node.get("Id", "0")) if kind == "location" else None
            what = node.findtext("class") or node.findtext("type") or ""
            name = node.findtext("name") or ""
            inner = [child for child in node if child.tag in {"systemtreenode", "locationgroup", "location"}]
            stack.extend((child, len(rows)) for child in reversed(inner))
            row = {"parent": parent, "kind": kind, "class": what, "name": name, "rank": rank, "location": location}
            rows.append(row)
        return table_of_rows(rows, SYSTEM)

    @cached_property
    def topologies(self) -> pa.Table:
        rows = [
            {
                "name": cart.get("name") or "",
                "axes": [
                    {"name": axis.get("name") or "", "size": int(axis.get("size", "1")),
                     "periodic": axis.get("periodic") == "true"}
                    for axis in cart.findall("dim")
                ],
                "coordinates": [
                    {"location": int(place.get("locId", "0")), "at": [int(at) for at in (place.text or "").split()]}
                    for place in cart.findall("coord")
                ],
            }
            for cart in self._cube.iterfind("system/topologies/cart")
        ]  # fmt: skip
        return table_of_rows(rows, TOPOLOGIES)

    @property
    def inconsistencies(self) -> pa.Table:
        return pa.table(
            {"kind": pa.array([], pa.string()), "location": pa.array([], pa.uint32()),
             "time": pa.array([], pa.float64()), "detail": pa.array([], pa.string())}
        )  # fmt: skip


def _line_number(text: str | None) -> int | None:
    return int(text) if text and int(text) > 0 else None
