"""A common form of results for comparison: of the program, the oracles, Scalasca, and Cube reports.

`{metric: {(call path as names, rank, thread): value}}`, non-zero values only, exclusive along the call tree. Call paths
that repeat (equal names below one parent) are summed: names are all that the sources have in common.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Cell = tuple[tuple[str, ...], int, int]
Table = dict[str, dict[Cell, float]]

# Recorded traces, which are not in the repository. Where they are said to be, nothing may be skipped for lack of them.
SHARED = Path(os.environ.get("WHYWAIT_SHARED") or Path(__file__).parents[2] / "shared")
UNRECORDED = f"no recorded traces: {SHARED} is not there"

# What the oracles and the program are both answerable for; the names are Scalasca's.
FAMILIES = (
    "time",
    "visits",
    "mpi_init_completion",
    "mpi_finalize_wait",
    "mpi_barrier_wait",
    "mpi_barrier_completion",
    "mpi_latesender",
    "mpi_latesender_wo",
    "mpi_lswo_different",
    "mpi_lswo_same",
    "mpi_latereceiver",
    "mpi_exchange_latereceiver",
    "mpi_earlyreduce",
    "mpi_earlyscan",
    "mpi_latebroadcast",
    "mpi_wait_nxn",
    "mpi_nxn_completion",
    "syncs_send",
    "syncs_recv",
    "syncs_coll",
    "comms_send",
    "comms_recv",
    "comms_cxch",
    "comms_csrc",
    "comms_cdst",
    "mpi_slr_count",
    "mpi_clr_count",
    "mpi_sls_count",
    "mpi_cls_count",
    "mpi_slswo_count",
    "mpi_clswo_count",
    "bytes_sent",
    "bytes_rcvd",
    "bytes_cout",
    "bytes_cin",
    "mpi_nbc_barrier_wait",
    "mpi_nbc_wait_nxn",
    "mpi_nbc_latebroadcast",
    "mpi_nbc_earlyreduce",
    "mpi_nbc_earlyscan",
    "mpi_nbc_completion",
    "omp_management",
    "omp_fork",
    "omp_ebarrier_wait",
    "omp_ibarrier_wait",
    "omp_lock_contention_critical",
    "omp_lock_contention_api",
    "omp_ordered_wait",
    "omp_ebarrier_task_wait",
    "omp_ibarrier_task_wait",
    "omp_taskwait_wait",
    "omp_taskgroup_wait",
    "mpi_alltoallv_wait",
    "mpi_tree_wait",
    "mpi_comm_create_wait",
    "mpi_file_open_wait",
    "mpi_neighbor_wait",
    "mpi_probe_latesender",
    "omp_ebarrier_starvation",
    "omp_ibarrier_starvation",
    "omp_tasks",
    "omp_tasks_elsewhere",
    "omp_task_migrations",
)


# Of one-sided communication; those of MPI have the names of Scalasca.
ONE_SIDED = (
    "mpi_rma_active_wait_for_progress",
    *(f"{prefix}{volume}"
      for prefix in ("", "shmem_", "armci_", "pgas_")
      for volume in ("bytes_put", "bytes_get", "rma_atomic_sent", "rma_atomic_received")),
    *(f"{library}_rma_{pattern}"
      for library in ("mpi", "shmem", "armci", "pgas")
      for pattern in (
          "wait_at_create", "wait_at_free", "sync_lock_competition", "comm_lock_competition",
          *(f"{kind}_wait_for_progress{part}"
            for kind in ("sync", "comm") for part in ("", "_last_call", "_served", "_away")))),
    *(f"mpi_rma_{pattern}"
      for pattern in ("wait_at_fence", "early_fence", "sync_late_post", "comm_late_post", "early_wait",
                      "late_complete")),
    *(f"{library}_rma_pairsync_{kind}"
      for library in ("mpi", "shmem", "armci", "pgas")
      for kind in ("count", "unneeded_count")),
    *(f"{library}_{pattern}"
      for library in ("shmem", "armci", "pgas")
      for pattern in ("barrier_wait", "latebroadcast", "wait_nxn")),
    "shmem_rma_wait_until",
    "armci_rma_wait_until",
    "pgas_rma_wait_until",
)  # fmt: skip

# Between hosts and devices.
DEVICES = (
    "gpu_host_wait",
    "gpu_host_completion",
    "gpu_device_idle",
    "gpu_device_starved",
    "gpu_mpi_starved",
    "gpu_launch_latency",
    "gpu_queue",
)


def judged(waits: Iterable[WaitState]) -> list[WaitState]:
    """Return the wait states that the oracles implement; a new pattern may only have the examples in its document."""
    return [wait for wait in waits if wait.kind in FAMILIES or wait.kind in ONE_SIDED]


def is_time(metric: str) -> bool:
    """Whether a metric of the families counts seconds; the others count occurrences, bytes or elements."""
    counted = ("visits", "syncs_", "comms_", "omp_tasks", "omp_task_migrations")
    return not (metric.startswith(counted) or metric.endswith("_count") or "bytes_" in metric or "_atomic_" in metric)


# Of root causes and the critical path.
_CAUSES = re.compile(
    "(delay|interval_delay|critical|non_critical_path|inter_partition)_.+|mpi_wait_(indirect|propagating)_.+|wait_unexplained"
)


def is_cause(metric: str) -> bool:
    """Whether a metric is computed by the search for causes."""
    return bool(_CAUSES.fullmatch(metric))


class WaitState(NamedTuple):
    """A row of the wait states; times in seconds since the begin of the trace."""

    kind: str
    rank: int
    thread: int
    callpath: tuple[str, ...]
    enter: float
    leave: float
    waiting: float
    cause_rank: int | None
    cause_thread: int | None
    cause_callpath: tuple[str, ...] | None
    cause_time: float | None
    last: str | None = None
    inferred: bool = False


class Outcome(NamedTuple):
    """All results of an analysis by the program."""

    cells: Table
    waits: list[WaitState]
    warnings: list[dict[str, Any]]
    facts: dict[str, Any]


def outcome(anchor: Path | str, **options: Any) -> Outcome:
    """Analyze an archive with the program itself, at the times that were measured: those that others know."""
    import pyarrow as pa
    import whywait._native as native

    analysis = native.analyze(native.Run(str(anchor)), **{"clocks": "measured", **options})
    names = pa.table(analysis.regions()).select(["region", "name"]).to_pylist()
    name = {row["region"]: row["name"] for row in names}
    paths: dict[int, tuple[str, ...]] = {}
    rows = {row["callpath"]: row for row in pa.table(analysis.callpaths()).to_pylist()}

    def path(node: int) -> tuple[str, ...]:
        if node not in paths:
            parent = rows[node]["parent"]
            paths[node] = (*(path(parent) if parent is not None else ()), name[rows[node]["region"]])
        return paths[node]

    place = {row["location"]: (row["rank"], row["thread"]) for row in pa.table(analysis.locations()).to_pylist()}
    cells: dict[str, dict[Cell, float]] = defaultdict(lambda: defaultdict(float))
    for row in pa.table(analysis.severities()).to_pylist():
        cells[row["metric"]][path(row["callpath"]), *place[row["location"]]] += row["value"]
    waits = [
        WaitState(
            row["kind"],
            *place[row["location"]],
            path(row["callpath"]),
            row["enter"],
            row["leave"],
            row["waiting"],
            *((None, None) if row["cause_location"] is None else place[row["cause_location"]]),
            None if row["cause_callpath"] is None else path(row["cause_callpath"]),
            row["cause_time"],
            row["last"],
            row["inferred"],
        )
        for row in pa.table(analysis.wait_states()).to_pylist()
    ]
    return Outcome({metric: dict(c) for metric, c in cells.items()}, waits, analysis.warnings(), analysis.facts())


def everything(path: Path) -> Any:
    """Return all that an analysis finds, in an order that does not depend on that of events."""
    import whywait

    result = whywait.analyze(path)
    tables = [result.wait_states(), result.callpaths(), result.severities(), result.account(), result.device_account()]
    return [sorted(map(repr, table.to_pylist())) for table in tables], result.findings().verdict()


def cases() -> list[Path]:
    """Return every recorded case that Scalasca could analyze."""
    archives = sorted(SHARED.glob("re*/*/archive/traces.otf2"))
    return [a.parents[1] for a in archives if any(a.parents[1].glob("scout.json*"))]


def known_cases() -> list[Path]:
    """Return every program with known delays that Scalasca could analyze."""
    return sorted(found.parent for found in SHARED.glob("cases/*/scout.json.gz"))


def scout(case: Path) -> Table:
    """Scalasca's values of a case, exclusive along the call tree."""
    plain = case / "scout.json"
    return _scalasca(plain if plain.exists() else case / "scout.json.gz")


def corrected_scout(case: Path) -> Table:
    """Scalasca's values of a case whose clocks it corrected."""
    return _scalasca(case / "scout-time-correct.json.gz")


# Where a call begins and ends is a matter of its Enter and Leave in one of Scalasca's analyses of one-sided
# communication, as it is in the thesis and here, and of the collective records in the other.
STAMPED = ("mpi_rma_wait_at_create", "mpi_rma_wait_at_free", "mpi_rma_wait_at_fence", "mpi_rma_early_fence")


def one_sided_cases() -> list[Path]:
    """Return every recorded case whose one-sided communication Scalasca could analyze."""
    return sorted(path.parent for path in SHARED.glob("re*/*/scout-rma.json.gz"))


def one_sided_scout(case: Path) -> Table:
    """Scalasca's values of the one-sided communication of a case."""
    table = _scalasca(case / "scout-rma.json.gz")
    if (other := case / "scout-rma-epik.json.gz").exists():
        table |= {metric: cells for metric, cells in _scalasca(other).items() if metric in STAMPED}
    return {metric: cells for metric, cells in table.items() if metric in ONE_SIDED}


def _scalasca(path: Path) -> Table:
    table: Table = {}
    text = path.read_bytes()
    for metric, rows in json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)["data"].items():
        cells: dict[Cell, float] = defaultdict(float)
        for row in rows:
            callpath = tuple(row["callpath"])
            # What threads do that nobody forked stands below a root of them all there; here it is a root itself.
            callpath = callpath[2:] if callpath[1:2] == ("THREADS",) else callpath
            cells[callpath, row["rank"], row["thread"]] += row["exclusive"]
        table[metric] = {cell: value for cell, value in cells.items() if value}
    return table


def cube(report: Path, metrics: tuple[str, ...]) -> Table:
    """Read metrics of a Cube4 report back with pycubexr, exclusive along the call tree."""
    from pycubexr import CubexParser
    from pycubexr.utils.exceptions import MissingMetricError

    table: Table = {}
    with CubexParser(str(report)) as parsed:

        def path(node: Any) -> tuple[str, ...]:
            return (*(path(node.parent) if node.parent else ()), parsed.get_region(node).name)

        paths = {node: path(node) for node in parsed.all_cnodes()}
        places = {
            thread.id: (int(process.rank), int(thread.rank))
            for node in parsed._anchor_result.system_tree_nodes
            for process in node.all_location_groups()
            for thread in process.all_locations()
        }
        for name in metrics:
            cells: dict[Cell, float] = defaultdict(float)
            try:
                values = parsed.get_metric_values(parsed.get_metric_by_name(name))
            except MissingMetricError:  # void: its programming model does not occur
                continue
            for node, names in paths.items():
                for location, value in enumerate(values.cnode_values(node, convert_to_exclusive=True)):
                    cells[names, *places[location]] += value
            table[name] = {cell: value for cell, value in cells.items() if value}
    return table
