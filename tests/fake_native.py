"""A native analysis made of plain Python data, so that tests can say exactly what it found."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

from tests.results import SHARED

# What the first version of the native module computes.
STORED = (
    "time visits mpi_init_completion mpi_finalize_wait mpi_barrier_wait mpi_barrier_completion mpi_latesender "
    "mpi_latesender_wo mpi_lswo_different mpi_lswo_same mpi_latereceiver mpi_earlyreduce mpi_earlyscan "
    "mpi_latebroadcast mpi_wait_nxn mpi_nxn_completion omp_management omp_fork syncs_send mpi_slr_count syncs_recv "
    "mpi_sls_count mpi_slswo_count syncs_coll comms_send mpi_clr_count comms_recv mpi_cls_count mpi_clswo_count "
    "comms_cxch comms_csrc comms_cdst bytes_sent bytes_rcvd bytes_cout bytes_cin"
).split()

LOCATIONS = pa.schema(
    {
        "location": pa.uint32(),
        "id": pa.uint64(),
        "name": pa.string(),
        "type": pa.string(),
        "group": pa.uint32(),
        "rank": pa.int32(),
        "thread": pa.int32(),
        "events": pa.uint64(),
    }
)
REGIONS = pa.schema(
    {
        "region": pa.uint32(),
        "name": pa.string(),
        "canonical_name": pa.string(),
        "paradigm": pa.string(),
        "role": pa.string(),
        "file": pa.string(),
        "begin_line": pa.uint32(),
        "end_line": pa.uint32(),
    }
)
CALLPATHS = pa.schema({"callpath": pa.uint32(), "parent": pa.uint32(), "region": pa.uint32()})
SEVERITIES = pa.schema(
    {
        "metric": pa.dictionary(pa.uint16(), pa.string()),
        "callpath": pa.uint32(),
        "location": pa.uint32(),
        "value": pa.float64(),
    }
)
WAIT_STATES = pa.schema(
    {
        "kind": pa.dictionary(pa.uint8(), pa.string()),
        "location": pa.uint32(),
        "callpath": pa.uint32(),
        "enter": pa.float64(),
        "leave": pa.float64(),
        "waiting": pa.float64(),
        "hidden": pa.float64(),
        "cause_location": pa.uint32(),
        "cause_callpath": pa.uint32(),
        "cause_time": pa.float64(),
        "last": pa.dictionary(pa.uint16(), pa.string()),
        "inferred": pa.bool_(),
        "direct": pa.float64(),
        "indirect": pa.float64(),
        "propagating": pa.float64(),
        "caused": pa.float64(),
    }
)
CRITICAL_PATH = pa.schema(
    {
        "location": pa.uint32(),
        "from": pa.float64(),
        "to": pa.float64(),
        "callpath": pa.uint32(),
        "callpath_time": pa.float64(),
        "hop": pa.string(),
    }
)
TRANSFERS = pa.schema(
    {
        "kind": pa.dictionary(pa.uint16(), pa.string()),
        "epoch": pa.dictionary(pa.uint16(), pa.string()),
        "window": pa.uint32(),
        "bytes": pa.uint64(),
        "origin_location": pa.uint32(),
        "origin_callpath": pa.uint32(),
        "origin": pa.float64(),
        "source_location": pa.uint32(),
        "start": pa.float64(),
        "destination_location": pa.uint32(),
        "end": pa.float64(),
    }
)


ACCOUNT = pa.schema(
    {
        "row": pa.dictionary(pa.uint16(), pa.string()),
        "callpath": pa.uint32(),
        "location": pa.uint32(),
        "time": pa.float64(),
        "excess": pa.float64(),
        "calls": pa.uint64(),
    }
)
DEVICE_ACCOUNT = pa.schema(
    {
        "device": pa.string(),
        "row": pa.dictionary(pa.uint16(), pa.string()),
        "callpath": pa.uint32(),
        "time": pa.float64(),
    }
)

COUNTERS = pa.schema({"counter": pa.uint32(), "name": pa.string()})
COUNTER_CELLS = pa.schema({"counter": pa.uint32(), "location": pa.uint32()})


def with_names(rows, schema):
    """Make a table of rows; Arrow does not read names as a dictionary by itself."""
    plain = [field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(plain)).cast(schema)


class FakeRun:
    """What `whywait._native.Run` is to the facade."""

    anchor_path = "/data/lulesh/traces.otf2"
    archive_name = "traces"

    @staticmethod
    def facts():
        return {}

    def __init__(self, locations, definitions=None, oddities=(), info=None):
        self._locations = locations
        self._definitions = definitions or {}
        self._oddities = list(oddities)
        self._info = info or {}

    def definition_kinds(self):
        return list(self._definitions)

    def definitions(self, kind):
        return pa.Table.from_pylist(self._definitions[kind])

    def locations(self):
        return self._locations

    def oddities(self):
        return self._oddities

    def info(self, *, events=False):
        return {**self._info, **({"events_by_type": {"Enter": 7}} if events else {})}


class FakeAnalysis:
    """What `whywait._native.Analysis` is to the facade.

    `parents` and `regions` give the call tree: the parent (or None) and the region of each call path; a region is
    (name, paradigm, role). `ranks` are (rank, thread) of each location. `values` maps metrics to cells
    {(callpath, location): value}.
    """

    def __init__(
        self, parents, regions, ranks, values, wait_states=(), warnings=(), facts=None, transfers=(), critical_path=()
    ):
        kinds = list(dict.fromkeys(regions))
        self._regions = pa.Table.from_pylist(
            [
                # Region numbers are whatever the trace says, not 0..n-1.
                {
                    "region": 1_000 + 7 * row,
                    "name": name,
                    "canonical_name": name,
                    "paradigm": paradigm,
                    "role": role,
                    "file": "main.c",
                    "begin_line": 10 * row,
                    "end_line": None,
                }
                for row, (name, paradigm, role) in enumerate(kinds)
            ],
            schema=REGIONS,
        )
        self._callpaths = pa.Table.from_pylist(
            [
                {"callpath": callpath, "parent": parent, "region": 1_000 + 7 * kinds.index(region)}
                for callpath, (parent, region) in enumerate(zip(parents, regions, strict=True))
            ],
            schema=CALLPATHS,
        )
        self._locations = pa.Table.from_pylist(
            [
                {
                    "location": index,
                    "id": (thread << 32) + rank,
                    "name": f"thread {thread}",
                    "type": kind[0] if kind else "CPU_THREAD",
                    "group": rank,
                    "rank": rank,
                    "thread": thread,
                    "events": 100,
                }
                for index, (rank, thread, *kind) in enumerate(ranks)
            ],
            schema=LOCATIONS,
        )
        rows = [
            (metric, callpath, location, value)
            for metric, cells in values.items()
            for (callpath, location), value in sorted(cells.items())
            if value
        ]
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        arrays = [
            pa.array(column, kind.type) if kind.name != "metric" else pa.array(column, pa.string()).cast(kind.type)
            for column, kind in zip(columns, SEVERITIES, strict=True)
        ]
        self._severities = pa.Table.from_arrays(arrays, schema=SEVERITIES)
        self._wait_states = with_names(wait_states, WAIT_STATES)
        self._transfers = with_names(transfers, TRANSFERS)
        self._critical_path = pa.Table.from_pylist(list(critical_path), schema=CRITICAL_PATH)
        self._warnings = list(warnings)
        self._facts = facts or {
            "begin": 0.0, "end": 1.5, "length": 1.5, "resolution": 1_000_000,
            "processes": len({rank for rank, *_ in ranks}), "locations": len(ranks), "events": 100 * len(ranks),
        }  # fmt: skip

    def regions(self):
        return self._regions

    def callpaths(self):
        return self._callpaths

    def locations(self):
        return self._locations

    def severities(self):
        return self._severities

    def wait_states(self):
        return self._wait_states

    def locks(self):
        return pa.table({})

    def worksharing(self):
        return pa.table({})

    def tasks(self):
        return pa.table({}), pa.table({}), pa.table({})

    def transfers(self):
        return self._transfers

    def critical_path(self):
        return self._critical_path

    def account(self):
        return ACCOUNT.empty_table()

    def device_account(self):
        return DEVICE_ACCOUNT.empty_table()

    def io(self):
        from whywait.model.tables import empty_numbered

        return empty_numbered("io")

    def clock_table(self, name):
        from whywait.model.schema import schema_of

        return schema_of(name).empty_table()

    def network(self):
        from whywait.model.schema import schema_of

        return schema_of("network").empty_table()

    def counters(self):
        return COUNTERS.empty_table()

    def counter_cells(self):
        return COUNTER_CELLS.empty_table()

    def warnings(self):
        return self._warnings

    def inconsistencies(self):
        places = [w for w in self._warnings if w["place"] is not None]
        return pa.table(
            {
                "kind": pa.array([w["kind"] for w in places], pa.string()),
                "location": pa.array([0 for _ in places], pa.uint32()),
                "time": pa.array([0.0 for _ in places], pa.float64()),
                "detail": pa.array([w["place"] for w in places], pa.string()),
            }
        )

    def facts(self):
        return self._facts


def result(analysis, *, definitions=None, stored=STORED):
    """Dress an analysis up as what `whywait.analyze` returns."""
    from whywait import Result, Run
    from whywait.analysis.native import NativeDataset
    from whywait.model.options import Options

    class Trace(Run):
        def __init__(self):
            self._opened = FakeRun(analysis.locations(), definitions)

    run = Trace()
    return Result(NativeDataset(analysis, run, stored, Options()), run)


MAIN = ("main", "COMPILER", "FUNCTION")
SOLVE = ("double solver::solve<double>(std::vector<double>&, int)", "COMPILER", "FUNCTION")
SEND = ("MPI_Send", "MPI", "POINT2POINT")
RECV = ("MPI_Recv", "MPI", "POINT2POINT")
BARRIER = ("MPI_Barrier", "MPI", "BARRIER")
FLUSH = ("TRACE BUFFER FLUSH", "MEASUREMENT_SYSTEM", "ARTIFICIAL")
OMP_BARRIER = ("!$omp implicit barrier @main.c:3", "OPENMP", "IMPLICIT_BARRIER")


def small():
    """Return three ranks that send, receive and meet; ids of call paths are not in pre-order.

    main 3 > (solve 0 > (MPI_Recv 1, MPI_Send 4), MPI_Barrier 2, TRACE BUFFER FLUSH 5)
    """
    parents = [3, 0, 3, None, 0, 3]
    regions = [SOLVE, RECV, BARRIER, MAIN, SEND, FLUSH]
    values = {
        "time": {(c, l): 0.01 * (1 + c) + 0.001 * l for c in range(6) for l in range(3)} | {(5, 1): 0.0},  # noqa: E741
        "visits": {(c, l): 10.0 + c for c in range(6) for l in range(3)},  # noqa: E741
        "mpi_barrier_wait": {(2, 0): 0.002, (2, 2): 0.001},
        "mpi_latesender": {(1, 0): 0.005, (1, 1): 0.003},
        "mpi_latesender_wo": {(1, 0): 0.004},
        "mpi_lswo_same": {(1, 0): 0.004},
        "comms_send": {(4, 0): 10.0, (4, 1): 10.0},
        "comms_recv": {(1, 1): 10.0, (1, 0): 10.0},
        "syncs_coll": {(2, 0): 1.0, (2, 1): 1.0, (2, 2): 1.0},
        "bytes_sent": {(4, 0): 2.0**40, (4, 1): 12.0},
        "bytes_rcvd": {(1, 1): 2.0**40, (1, 0): 12.0},
    }
    waits = [
        {"kind": "mpi_lswo_same", "location": 0, "callpath": 1, "enter": 0.1, "leave": 0.2, "waiting": 0.004,
         "cause_location": 1, "cause_callpath": 4, "cause_time": 0.15},
        {"kind": "mpi_latesender", "location": 0, "callpath": 1, "enter": 0.3, "leave": 0.4, "waiting": 0.001,
         "cause_location": 2, "cause_callpath": 4, "cause_time": 0.31},
        {"kind": "mpi_latesender", "location": 1, "callpath": 1, "enter": 0.3, "leave": 0.4, "waiting": 0.003,
         "cause_location": None, "cause_callpath": None, "cause_time": None},
        {"kind": "mpi_barrier_wait", "location": 0, "callpath": 2, "enter": 0.5, "leave": 0.6, "waiting": 0.002,
         "cause_location": 1, "cause_callpath": 2, "cause_time": 0.502},
        {"kind": "mpi_barrier_wait", "location": 2, "callpath": 2, "enter": 0.5, "leave": 0.6, "waiting": 0.001,
         "cause_location": 1, "cause_callpath": 2, "cause_time": 0.502},
        # Messages in wrong order have a row as such and one as a Late Sender.
        {"kind": "mpi_latesender", "location": 0, "callpath": 1, "enter": 0.1, "leave": 0.2, "waiting": 0.004,
         "cause_location": 1, "cause_callpath": 4, "cause_time": 0.15},
    ]  # fmt: skip
    warnings = [
        {"kind": "unmatched_send", "count": 3, "text": "messages were sent and never received", "place": "rank 1"}
    ]
    transfers = [
        {"kind": "put", "epoch": "fence", "window": 3, "bytes": 80, "origin_location": 0, "origin_callpath": 4,
         "origin": 0.1, "source_location": 0, "start": 0.1, "destination_location": 2, "end": 0.6},
        {"kind": "atomic", "epoch": None, "window": 3, "bytes": 1, "origin_location": 1, "origin_callpath": 4,
         "origin": 0.2, "source_location": 2, "start": 0.2, "destination_location": 1, "end": None},
    ]  # fmt: skip
    return FakeAnalysis(parents, regions, [(0, 0), (1, 0), (2, 0)], values, waits, warnings, transfers=transfers)


def shared_cases():
    """Return the recorded cases that Scalasca could analyze."""
    return sorted(file.parent for file in SHARED.glob("real/*/scout.json*"))


def from_scout(case):
    """Build an analysis from Scalasca's own values, and regions as the trace defines them."""
    (file,) = case.glob("scout.json*")
    packed = file.read_bytes()
    scout = json.loads(gzip.decompress(packed) if file.suffix == ".gz" else packed)
    otf2 = pytest.importorskip("otf2", reason="the official reader says what the regions are")
    with otf2.reader.open(str(case / "archive" / "traces.otf2")) as trace:
        kinds = {
            r.name: (r.name, str(r.paradigm).rpartition(".")[2], str(r.region_role).rpartition(".")[2])
            for r in trace.definitions.regions
        }
    paths = {entry["cnode"]: entry["callpath"] for entry in scout["data"]["time"] + scout["data"]["visits"]}
    ids = {cnode: callpath for callpath, cnode in enumerate(paths)}
    by_path = {}
    for cnode, path in paths.items():
        by_path.setdefault(tuple(path), ids[cnode])
    parents = [by_path.get(tuple(path[:-1])) if len(path) > 1 else None for path in paths.values()]
    regions = [kinds.get(path[-1], (path[-1], "USER", "FUNCTION")) for path in paths.values()]
    index = {(entry["rank"], entry["thread"]): entry["location"] for entry in scout["locations"]}
    values = {
        metric: {(ids[e["cnode"]], index[e["rank"], e["thread"]]): float(e["exclusive"]) for e in scout["data"][metric]}
        for metric in STORED
        if metric in scout["data"]
    }
    ranks = [(entry["rank"], entry["thread"]) for entry in scout["locations"]]
    return FakeAnalysis(parents, regions, ranks, values), scout


def dense(profile, name):
    """Return a metric as an array over (call path id, location)."""
    cells = profile.cells(name)
    values = np.zeros((len(profile.tree), profile.locations))
    values[profile.tree.preorder[cells.key // profile.locations], cells.key % profile.locations] = cells.value
    return values
