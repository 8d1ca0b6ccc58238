"""Profiles of Score-P (``profile.cubex``) as results, for runs without a trace.

A profile has times, visits, bytes and counters by call path and location. It has no events, hence no wait states, their
times or causes.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import whywait._native as _native
from whywait.model import tables
from whywait.model.regions import Region
from whywait.model.system import LOCATION_TYPES, SYSTEM, TOPOLOGIES, table_of_rows
from whywait.model.trace import TraceIdentity
from whywait.store.files import MANIFEST
from whywait.store.stored import StoredTables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    import numpy.typing as npt

#: File name of the profile in an experiment directory of Score-P.
NAME = "profile.cubex"
SUFFIX = ".cubex"

_LACKS = (
    "this is a profile: it has no wait states, causes, critical path or windows of time, it does not count messages, "
    "and does not tell the management of OpenMP threads from computation"
)
_COLLECTIVE = frozenset({"one2all", "all2one", "all2all", "other collective"})
# Score-P's name of a metric, and our names for its part in point-to-point and in collective calls.
_BYTES = {"bytes_sent": ("bytes_sent", "bytes_cout"), "bytes_received": ("bytes_rcvd", "bytes_cin")}
# The same for one-sided operations: our name by library.
_ONE_SIDED = {
    name: {"MPI": name, "SHMEM": f"shmem_{name}", "ARMCI": f"armci_{name}"} for name in ("bytes_put", "bytes_get")
}
# Other metrics of every Score-P profile; these are not counters.
_OTHERS = frozenset({"time", "visits", "min_time", "max_time"})
# Rounding error that a difference of sums can leave in place of zero.
_NOTHING = 1e-9


def is_profile(path: str | PathLike[str]) -> bool:
    """Return whether a path is a profile, or a Score-P experiment directory with a profile and no trace."""
    return profile_of(path) is not None


def profile_of(path: str | PathLike[str]) -> Path | None:
    """Return the profile that a path refers to, if any."""
    place = Path(path)
    if place.suffix == SUFFIX and not place.is_dir():
        return place
    inside = place / NAME
    # Prefer a trace, or a result written beside it: these have more information.
    more = (place / MANIFEST).is_file() or any(place.glob("*.otf2"))
    return inside if inside.is_file() and not more else None


class _Cells(NamedTuple):
    """A metric of the profile: an exclusive value for each call path and location."""

    name: str
    display_name: str
    unit: str
    whole: bool
    values: npt.NDArray[np.float64]


class ProfileDataset(StoredTables):
    """A profile as a `whywait.model.dataset.Dataset`.

    Call paths that differ only in parameters or iteration numbers are merged, as for a trace.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    whywait.UsageError
        If the package that reads Cube files is not installed.
    whywait.ArchiveError
        If the file is not a profile, or is damaged.
    OSError
        If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.absolute().parent)
        self._path = path.absolute()
        try:
            from pycubexr import CubexParser
        except ImportError as error:
            raise _native.UsageError(
                f"{path} is a profile; reading it needs pycubexr: pip install 'whywait[profile]'"
            ) from error
        with path.open("rb"):
            pass  # an error of the system does not mean that the file is damaged
        cube = CubexParser(str(path))
        try:
            self._read(cube.__enter__())
        except Exception as error:  # a damaged file can make the parser raise anything
            raise _native.ArchiveError(
                f"{path} cannot be read as a profile: {error or type(error).__name__}"
            ) from error
        finally:
            # Its __exit__ is not called if opening fails.
            if (opened := getattr(cube, "_cubex_file", None)) is not None:
                opened.close()

    def _read(self, cube: Any) -> None:
        """Read regions, call paths, locations and cells from the file."""
        if any(metric.name == "time" and metric.childs for metric in cube.all_metrics()):
            raise ValueError("it is the report of an analysis; for whywait, give its result directory")
        self._groups = list(_groups(cube))
        locations = sorted((location.id, location, group) for group in self._groups for location in group.members)
        self._members = [(location, group) for _, location, group in locations]
        nodes = [node for root in cube.get_root_cnodes() for node in root.get_all_children()]
        row = {node.id: number for number, node in enumerate(nodes)}
        parent = np.array([row[node.parent.id] if node.parent is not None else -1 for node in nodes], np.int64)
        region_of = [cube.get_region(node) for node in nodes]
        # Merge children of a call path that have the same region.
        numbers: dict[tuple[int, int], int] = {}
        callpath: list[int] = []
        for above, region in zip(parent.tolist(), region_of, strict=True):
            key = (callpath[above] if above >= 0 else -1, region.id)
            callpath.append(numbers.setdefault(key, len(numbers)))
        self._callpaths = list(numbers)
        self._regions = {region.id: region for region in region_of}
        cells = [
            _cells(cube, metric, row, parent, np.array(callpath, np.int64), (len(numbers), len(locations)))
            for metric in cube.all_metrics()
            if metric.data_type in _NUMBERS
        ]
        self._metrics = {found.name: found for found in cells if found is not None}
        self._declared = {metric.name for metric in cube.all_metrics()}
        self._inclusive = {metric.name for metric in cube.all_metrics() if metric.metric_type == "INCLUSIVE"}
        if "time" not in self._metrics:
            raise ValueError("it has no times")

    @property
    def options(self) -> dict[str, Any]:
        return {}

    @property
    def trace(self) -> TraceIdentity:
        directory = self._path.parent.name
        name = directory if self._path.name == NAME else self._path.stem
        return TraceIdentity(name, self._path)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        time = self._metrics["time"].values
        processes = len({group.rank for group in self._groups if group.rank >= 0})
        length = float(time.sum(axis=0).max(initial=0.0))
        facts = {
            "profile": True, "begin": 0.0, "end": length, "length": length, "processes": processes,
            "locations": len(self._members), "events": 0, "callpaths": len(self._callpaths),
        }  # fmt: skip
        warning = {"kind": "profile", "count": 1, "text": _LACKS, "place": None}
        return {"facts": facts, "warnings": [warning], "oddities": [], "peak_memory": None}

    def has(self, name: str) -> bool:
        del name
        return False

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        del columns
        raise _native.UsageError(f"{self._path} is a profile, which has no {name.replace('_', ' ')}: analyze a trace")

    @property
    def stored(self) -> frozenset[str]:
        bytes_of = {
            **_BYTES,
            **{
                name: [ours for library, ours in by_library.items() if library in self._libraries]
                for name, by_library in _ONE_SIDED.items()
            },
        }
        # Score-P writes no data for a metric that is zero everywhere.
        own_names = (ours for name, names in bytes_of.items() if name in self._declared for ours in names)
        return frozenset({"time", "visits", *own_names})

    @cached_property
    def _libraries(self) -> list[str]:
        """The library of each call path, in upper case."""
        return [self._regions[number].paradigm.upper() for _, number in self._callpaths]

    @cached_property
    def regions(self) -> pa.Table:
        rows = [
            {
                "region": region.id, "name": region.name, "canonical_name": region.mangled_name or region.name,
                "paradigm": region.paradigm, "role": region.role, "file": region.mod or "",
                "begin_line": max(region.begin, 0), "end_line": max(region.end, 0),
            }
            for region in self._regions.values()
        ]  # fmt: skip
        schema = {name: pa.string() for name in ("name", "canonical_name", "paradigm", "role", "file")}
        schema |= {name: pa.uint32() for name in ("region", "begin_line", "end_line")}
        return pa.Table.from_pylist(rows, schema=pa.schema(schema))

    @cached_property
    def callpaths(self) -> pa.Table:
        parents, regions = zip(*self._callpaths, strict=True) if self._callpaths else ((), ())
        return pa.table(
            {
                "callpath": pa.array(range(len(parents)), pa.uint32()),
                "parent": pa.array([None if parent < 0 else parent for parent in parents], pa.uint32()),
                "region": pa.array(regions, pa.uint32()),
            }
        )

    @property
    def locations(self) -> pa.Table:
        return self._locations

    @cached_property
    def _locations(self) -> pa.Table:
        kinds = {of_cube: kind for kind, of_cube in LOCATION_TYPES.items()}
        rows = [
            {
                "location": number, "id": location.id, "name": location.name,
                "type": kinds.get(str(location.type).lower(), "UNKNOWN"), "group": group.number, "rank": group.rank,
                "thread": int(location.rank), "events": 0,
            }
            for number, (location, group) in enumerate(self._members)
        ]  # fmt: skip
        whole = {"location": pa.uint32(), "id": pa.uint64(), "name": pa.string(), "type": pa.string()}
        numbers = {"group": pa.uint32(), "rank": pa.int32(), "thread": pa.int32(), "events": pa.uint64()}
        return pa.Table.from_pylist(rows, schema=pa.schema({**whole, **numbers}))

    @cached_property
    def system(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        number = {location.id: at for at, (location, _) in enumerate(self._members)}

        def row(parent: int | None, kind: str, what: str, name: str, **own: int | None) -> int:
            empty = {"rank": None, "location": None}
            rows.append({"parent": parent, "kind": kind, "class": what, "name": name, **empty, **own})
            return len(rows) - 1

        nodes: dict[int, int] = {}
        for group in self._groups:
            above: int | None = None
            for node in group.above:
                if id(node) not in nodes:
                    # Some writers prefix the name with its class: "node vm".
                    what = node.clazz or str(node.name).partition(" ")[0]
                    nodes[id(node)] = row(above, "node", what, node.name)
                above = nodes[id(node)]
            at = row(above, "group", group.kind, group.name, rank=group.rank)
            for location in group.members:
                row(at, "location", str(location.type), location.name, location=number[location.id])
        return table_of_rows(rows, SYSTEM)

    @property
    def topologies(self) -> pa.Table:
        return TOPOLOGIES.empty_table()

    @cached_property
    def severities(self) -> pa.Table:
        found: list[tuple[str, npt.NDArray[np.float64]]] = [
            (name, self._metrics[name].values) for name in ("time", "visits") if name in self._metrics
        ]
        regions = [self._regions[number] for _, number in self._callpaths]
        recorded = [(region.name, region.paradigm, region.role) for region in regions]
        roles = [region.role for region in Region.all_of(recorded)]
        for name, (p2p, collective) in _BYTES.items():
            if name in self._metrics:
                values = self._metrics[name].values
                at_p2p = np.array([role == "point2point" for role in roles], np.bool_)
                at_collective = np.array([role in _COLLECTIVE for role in roles], np.bool_)
                found += [(p2p, values * at_p2p[:, None]), (collective, values * at_collective[:, None])]
        for name, by_library in _ONE_SIDED.items():
            if name in self._metrics:
                values = self._metrics[name].values
                for library, ours in by_library.items():
                    found.append((ours, values * np.array([one == library for one in self._libraries])[:, None]))
        return pa.concat_tables([_severities(name, values) for name, values in found if name in self.stored])

    @property
    def wait_states(self) -> pa.Table:
        return self.read("wait_states")

    @property
    def critical_path(self) -> pa.Table:
        return self.read("critical_path")

    @cached_property
    def _counted(self) -> list[_Cells]:
        """The counters: metrics that accumulate during a call, so they are inclusive in the file."""
        return [
            cells for name, cells in self._metrics.items()
            if name in self._inclusive and name not in _OTHERS and not name.startswith("bytes_")
        ]  # fmt: skip

    @cached_property
    def counters(self) -> pa.Table:
        rows = [
            {
                "counter": number, "name": cells.display_name, "description": "", "unit": cells.unit, "type": "OTHER",
                "mode": "ACCUMULATED_START", "occurrence": "SYNCHRONOUS_STRICT", "kind": "total",
                "integer": cells.whole, "factor": 1.0,
            }
            for number, cells in enumerate(self._counted)
        ]  # fmt: skip
        return table_of_rows(rows, tables.COUNTERS)

    @cached_property
    def counter_cells(self) -> pa.Table:
        columns: dict[str, list[npt.NDArray[Any]]] = {"counter": [], "callpath": [], "location": [], "amount": []}
        for number, cells in enumerate(self._counted):
            callpath, location = np.nonzero(cells.values)
            columns["counter"].append(np.full(callpath.size, number, np.uint32))
            columns["callpath"].append(callpath.astype(np.uint32))
            columns["location"].append(location.astype(np.uint32))
            columns["amount"].append(cells.values[callpath, location])
        empty = tables.empty_numbered(tables.COUNTER_CELLS)
        rows = sum(part.size for part in columns["counter"])
        return pa.table(
            {
                field.name: np.concatenate(columns[field.name]) if rows and field.name in columns
                else pa.nulls(rows, field.type) if field.type != pa.float64() else np.zeros(rows)
                for field in empty.schema
            }
        ).cast(empty.schema)  # fmt: skip

    @property
    def inconsistencies(self) -> pa.Table:
        return pa.table(
            {"kind": pa.array([], pa.string()), "location": pa.array([], pa.uint32()),
             "time": pa.array([], pa.float64()), "detail": pa.array([], pa.string())}
        )  # fmt: skip

    def window(self, begin: float, end: float) -> pa.Table:
        del begin, end
        return self.read("windows of time")

    @property
    def communication(self) -> tuple[pa.Table, pa.Table]:
        raise _native.UsageError(f"{self._path} is a profile, which does not contain communication between ranks")


_NUMBERS = frozenset(
    "DOUBLE FLOAT INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 INTEGER".split()
)  # fmt: skip


class _Group(NamedTuple):
    """A group of locations, such as a process, with its nodes in the system tree, from the root down."""

    number: int
    name: str
    rank: int
    kind: str
    above: tuple[Any, ...]
    members: tuple[Any, ...]


def _groups(cube: Any) -> Iterator[_Group]:
    """Yield the groups of locations, in the order of the system tree."""
    # The package has no public access to these.
    roots = cube._anchor_result.system_tree_nodes  # noqa: SLF001
    stack: list[tuple[Any, tuple[Any, ...]]] = [(node, (node,)) for node in reversed(roots)]
    number = 0
    while stack:
        node, above = stack.pop()
        for group in node._location_group_children:  # noqa: SLF001
            kind = str(group.type).lower()
            rank = int(group.rank) if kind == "process" else -1
            yield _Group(number, group.name, rank, kind, above, tuple(group.all_locations()))
            number += 1
        stack.extend((child, (*above, child)) for child in reversed(node._system_tree_node_children))  # noqa: SLF001


def _cells(
    cube: Any,
    metric: Any,
    row: dict[int, int],
    parent: npt.NDArray[np.int64],
    callpath: npt.NDArray[np.int64],
    shape: tuple[int, int],
) -> _Cells | None:
    """Return a metric with exclusive values by call path and location; None if the file has no values of it."""
    from pycubexr.utils.exceptions import MissingMetricError

    try:
        found = cube.get_metric_values(metric, cache=False)
    except MissingMetricError:
        return None
    locations = shape[1]
    values = np.zeros((len(row), locations))
    at = np.array([row[number] for number in found.cnode_indices], np.int64)
    values[at] = np.asarray(found.values, np.float64).reshape(len(at), locations)
    if metric.metric_type == "INCLUSIVE":
        inclusive = values.copy()
        inner = np.flatnonzero(parent >= 0)
        np.subtract.at(values, parent[inner], inclusive[inner])
        values[np.abs(values) <= _NOTHING * np.abs(inclusive).max(initial=0.0)] = 0.0
    total = np.zeros(shape)
    np.add.at(total, callpath, values)
    # A unit may have a power of ten as a prefix: "10^-6 s".
    match = re.fullmatch(r"10\^(-?\d+)\s+(.+)", metric.units or "")
    factor, unit = (10.0 ** int(match[1]), match[2]) if match else (1.0, metric.units or "")
    whole = "INT" in metric.data_type and factor >= 1
    return _Cells(metric.name, metric.display_name or metric.name, unit, whole, total * factor)


def _severities(name: str, values: npt.NDArray[np.float64]) -> pa.Table:
    callpath, location = np.nonzero(values)
    code = pa.DictionaryArray.from_arrays(pa.array(np.zeros(callpath.size, np.uint16)), pa.array([name]))
    return pa.table(
        {
            "metric": code, "callpath": callpath.astype(np.uint32), "location": location.astype(np.uint32),
            "value": values[callpath, location],
        }
    )  # fmt: skip
