"""Profiles (``profile.cubex`` of Score-P, and other Cube 4 files) as results, for runs without a trace.

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
from whywait.model.options import Options
from whywait.model.schema import patterns, schema_of
from whywait.model.system import LOCATION_TYPES, SYSTEM, TOPOLOGIES, table_of_rows
from whywait.model.trace import TraceIdentity
from whywait.store.cubex import Cube, CubeError
from whywait.store.files import MANIFEST
from whywait.store.stored import StoredTables

if TYPE_CHECKING:
    from os import PathLike

    import numpy.typing as npt

    from whywait.store.cubex import Metric, Region

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
    name: {"MPI": name, "SHMEM": f"shmem_{name}", "ARMCI": f"armci_{name}", "PGAS": f"pgas_{name}"}
    for name in ("bytes_put", "bytes_get")
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
    more = (place / MANIFEST).is_file() or _native.source_of(place) is not None
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
    whywait.ArchiveError
        If the file is not a profile, or is damaged.
    OSError
        If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.absolute().parent)
        self._path = path.absolute()
        try:
            self._read(Cube(path))
        except CubeError as error:
            raise _native.ArchiveError(f"{path} cannot be read as a profile: {error}") from None

    def _read(self, cube: Cube) -> None:
        """Read regions, call paths, locations and cells from the file."""
        if cube.attributes.get("Creator", "").startswith("whywait"):
            raise CubeError("it is the report of an analysis; for whywait, give its result directory")
        self._groups = cube.groups
        locations = sorted((location.number, at) for at, group in enumerate(cube.groups) for location in group.members)
        of_number = {location.number: location for group in cube.groups for location in group.members}
        self._members = [(of_number[number], at) for number, at in locations]
        # Merge children of a call path that have the same region.
        numbers: dict[tuple[int, int], int] = {}
        callpath: list[int] = []
        for above, region in zip(cube.parents.tolist(), cube.callees, strict=True):
            key = (callpath[above] if above >= 0 else -1, region)
            callpath.append(numbers.setdefault(key, len(numbers)))
        self._callpaths = list(numbers)
        self._regions = _with_terms(cube)
        self._declared: set[str] = set()
        self._metrics: dict[str, _Cells] = {}
        self._unread: list[str] = []
        names = _names(cube)
        # What accumulates during a call, but for parts of the time: Scalasca stores times of classes of calls.
        time = next((number for number, name in names.items() if name == "time"), None)
        self._accumulating = {
            metric.name for metric in cube.metrics if metric.kind == "INCLUSIVE" and not _is_part_of(time, metric)
        }
        for metric in cube.metrics:
            name = names.get(metric.number, metric.name)
            try:
                found = _cells(cube, metric, name, np.array(callpath, np.int64), len(numbers))
            except CubeError as error:
                if name == "time":
                    raise
                self._unread.append(str(error))
                continue
            self._declared.add(name)
            if found is not None:
                self._metrics[name] = found
        if "time" not in self._metrics:
            known = ", ".join(metric.name for metric in cube.metrics)
            raise CubeError(f"it has no times, only {known}" if known else "it has no times")

    @property
    def options(self) -> Options:
        return Options()

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
        texts = [_LACKS]
        if self._metrics.keys() & patterns().keys():
            texts.append("the wait states that an analysis wrote to this file are not read: analyze the trace")
        texts += [f"a metric is left out: {text}" for text in self._unread]
        warnings = [{"kind": "profile", "count": 1, "text": text, "place": None} for text in texts]
        return {"facts": facts, "warnings": warnings, "oddities": [], "peak_memory": None}

    def has(self, name: str) -> bool:
        del name
        return False

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        del columns
        raise _native.UsageError(f"{self._path} is a profile, which has no {name.replace('_', ' ')}: analyze a trace")

    @property
    def stored(self) -> frozenset[str]:
        # Score-P writes no data for a metric that is zero everywhere.
        return frozenset(self._sources)

    @cached_property
    def _sources(self) -> dict[str, tuple[str, npt.NDArray[np.bool_]]]:
        """For each metric here, the metric of the file, and the call paths whose part of it counts."""
        of_callpath = [self._regions[number] for _, number in self._callpaths]
        roles = np.array([region.role for region in of_callpath], np.str_)
        libraries = np.array([region.paradigm.upper() for region in of_callpath], np.str_)
        everywhere = np.ones(roles.size, np.bool_)
        sources = {name: (name, everywhere) for name in ("time", "visits")}
        if "bytes_rcvd" in self._declared:  # Scalasca has a metric for each kind of operation
            sources |= {name: (name, everywhere) for names in _BYTES.values() for name in names}
        else:
            for source, (p2p, collective) in _BYTES.items():
                sources[p2p] = source, roles == "point2point"
                sources[collective] = source, np.isin(roles, list(_COLLECTIVE))
        for source, by_library in _ONE_SIDED.items():
            sources |= {
                name: (source, libraries == library) for library, name in by_library.items() if library in libraries
            }
        return {name: found for name, found in sources.items() if found[0] in self._declared}

    @cached_property
    def regions(self) -> pa.Table:
        rows = [
            {
                "region": region.number, "name": region.name, "canonical_name": region.mangled_name,
                "paradigm": region.paradigm, "role": region.role, "file": region.file,
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
        # Cube 4.8 calls streams of devices by another name.
        kinds = {of_cube: kind for kind, of_cube in LOCATION_TYPES.items()} | {
            "accelerator stream": "ACCELERATOR_STREAM"
        }
        rows = [
            {
                "location": number, "id": location.number, "name": location.name,
                "type": kinds.get(location.kind, "UNKNOWN"), "group": group, "rank": self._groups[group].rank,
                "thread": location.thread, "events": 0,
            }
            for number, (location, group) in enumerate(self._members)
        ]  # fmt: skip
        whole = {"location": pa.uint32(), "id": pa.uint64(), "name": pa.string(), "type": pa.string()}
        numbers = {"group": pa.uint32(), "rank": pa.int32(), "thread": pa.int32(), "events": pa.uint64()}
        return pa.Table.from_pylist(rows, schema=pa.schema({**whole, **numbers}))

    @cached_property
    def system(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        number = {location.number: at for at, (location, _) in enumerate(self._members)}

        def row(parent: int | None, kind: str, what: str, name: str, **own: int | None) -> int:
            empty = {"rank": None, "location": None}
            rows.append({"parent": parent, "kind": kind, "class": what, "name": name, **empty, **own})
            return len(rows) - 1

        nodes: dict[int, int] = {}
        for group in self._groups:
            above: int | None = None
            for node in group.above:
                if node.number not in nodes:
                    nodes[node.number] = row(above, "node", node.kind, node.name)
                above = nodes[node.number]
            at = row(above, "group", group.kind, group.name, rank=group.rank)
            for location in group.members:
                row(at, "location", location.kind, location.name, location=number[location.number])
        return table_of_rows(rows, SYSTEM)

    @property
    def topologies(self) -> pa.Table:
        return TOPOLOGIES.empty_table()

    @cached_property
    def severities(self) -> pa.Table:
        return pa.concat_tables(
            _severities(name, self._metrics[source].values * counts[:, None])
            for name, (source, counts) in self._sources.items()
            if source in self._metrics
        )

    @property
    def wait_states(self) -> pa.Table:
        return self.read("wait_states")

    @cached_property
    def critical_path(self) -> pa.Table:
        return self.read("critical_path")

    @cached_property
    def _counted(self) -> list[_Cells]:
        """The counters: metrics that accumulate during a call, so they are inclusive in the file."""
        return [
            cells for name, cells in self._metrics.items()
            if name in self._accumulating and name not in _OTHERS and not name.startswith("bytes_")
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
        return table_of_rows(rows, schema_of("counters"))

    @cached_property
    def counter_cells(self) -> pa.Table:
        columns: dict[str, list[npt.NDArray[Any]]] = {"counter": [], "callpath": [], "location": [], "amount": []}
        for number, cells in enumerate(self._counted):
            callpath, location = np.nonzero(cells.values)
            columns["counter"].append(np.full(callpath.size, number, np.uint32))
            columns["callpath"].append(callpath.astype(np.uint32))
            columns["location"].append(location.astype(np.uint32))
            columns["amount"].append(cells.values[callpath, location])
        empty = tables.empty_numbered("counter_cells")
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

    def communication(
        self, *, whole: bool = False, inside: npt.NDArray[np.bool_] | None = None
    ) -> tuple[pa.Table, pa.Table]:
        del whole, inside
        raise _native.UsageError(f"{self._path} is a profile, which does not contain communication between ranks")


# What kinds of names tell about regions of profiles that do not say it themselves (Score-P before 1.4).
_TERMS = tuple(
    (re.compile(form), paradigm, role)
    for form, paradigm, role in (
        (r"!\$omp (?:do|for) @.*", "openmp", "loop"),
        (r"!\$omp (?P<role>.+?) @.*", "openmp", ""),
        (r"omp_\w+", "openmp", "wrapper"),
        (r"pthread_\w+", "pthread", "wrapper"),
        (r"p?shmem_\w+|start_pes|shmalloc|shfree", "shmem", "unknown"),
        (r"cu(?:da)?[A-Z]\w+", "cuda", "wrapper"),
        (r"hip[A-Z]\w+", "hip", "wrapper"),
        (r"cl[A-Z]\w+", "opencl", "wrapper"),
        (r"acc_\w+", "openacc", "wrapper"),
        (r"TRACE BUFFER FLUSH|TRACING", "measurement", "artificial"),
    )
)


def _with_terms(cube: Cube) -> dict[int, Region]:
    """Return the regions of call paths by number, with paradigm and role: their own, or what their names tell."""
    found = [_told_by_name(cube.regions[number]) for number in sorted(set(cube.callees))]
    # The core recognizes calls of libraries.
    terms = _native.region_terms([(region.name, region.paradigm, region.role) for region in found])
    return {
        region.number: region._replace(paradigm=paradigm, role=role)
        for region, (paradigm, role) in zip(found, terms, strict=True)
    }


def _told_by_name(region: Region) -> Region:
    if region.paradigm:
        return region._replace(role=region.role or "unknown")
    name = region.name.removesuffix("()")
    for form, paradigm, role in _TERMS:
        if match := form.fullmatch(name):
            return region._replace(paradigm=paradigm, role=region.role or role or match["role"])
    return region._replace(paradigm="unknown", role=region.role or "unknown")


# Seconds of a unit of time, as writers abbreviate it.
_SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6,
    "microseconds": 1e-6, "ns": 1e-9, "nsec": 1e-9,
}  # fmt: skip
# Names of the time, which TAU calls by the clock that measured it, and of the number of calls.
_TIMES = frozenset({"time", "get_time_of_day", "linux_timers", "p_wall_clock_time", "clock_get_time"})
_VISITS = frozenset({"visits", "calls", "number of calls"})


def _names(cube: Cube) -> dict[int, str]:
    """Return the metrics that have a name here: those with times and visits, by number."""
    sums = [metric for metric in cube.metrics if metric.is_sum]
    found: dict[int, str] = {}
    for name, known in (("time", _TIMES), ("visits", _VISITS)):
        # The exact name first.
        called = sorted((metric.name != name, metric.number) for metric in sums if metric.name.casefold() in known)
        found |= {number: name for _, number in called[:1]}
    return found


def _is_part_of(time: int | None, metric: Metric) -> bool:
    """Return whether a metric is a part of the time: one in seconds below it in the tree of metrics."""
    return time in metric.above and _unit(metric.unit)[1] == "s"


def _unit(text: str) -> tuple[float, str]:
    """Return the factor and the name of a unit, which may have a power of ten as a prefix: ``10^-6 s``."""
    match = re.fullmatch(r"10\^(-?\d{1,3})\s+(.+)", text)
    factor, unit = (10.0 ** int(match[1]), match[2]) if match else (1.0, text)
    seconds = _SECONDS.get(unit.casefold())
    return (factor, unit) if seconds is None else (factor * seconds, "s")


def _cells(cube: Cube, metric: Metric, name: str, callpath: npt.NDArray[np.int64], callpaths: int) -> _Cells | None:
    """Return a metric with exclusive values by call path and location; None if the file has no values of it."""
    values = cube.values(metric) if metric.is_sum else None
    if values is None:
        return None
    if metric.kind == "INCLUSIVE":
        inclusive = values.copy()
        inner = np.flatnonzero(cube.parents >= 0)
        np.subtract.at(values, cube.parents[inner], inclusive[inner])
        values[np.abs(values) <= _NOTHING * np.abs(inclusive).max(initial=0.0)] = 0.0
    total = np.zeros((callpaths, values.shape[1]))
    np.add.at(total, callpath, values)
    factor, unit = _unit(metric.unit)
    return _Cells(name, metric.display_name, unit, metric.is_integer and factor >= 1, total * factor)


def _severities(name: str, values: npt.NDArray[np.float64]) -> pa.Table:
    callpath, location = np.nonzero(values)
    code = pa.DictionaryArray.from_arrays(pa.array(np.zeros(callpath.size, np.uint16)), pa.array([name]))
    return pa.table(
        {
            "metric": code, "callpath": callpath.astype(np.uint32), "location": location.astype(np.uint32),
            "value": values[callpath, location],
        }
    )  # fmt: skip
