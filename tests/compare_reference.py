"""Compare an analysis with Scalasca's of the same trace, cell by cell.

    python -m tests.compare_reference CASE [CASE ...] [--metrics NAME ...] [--oracle] [--cost-model scalasca]

CASE is a directory with `archive/traces.otf2` and `scout.json` or `scout.json.gz`; `scout-rma.json.gz` beside them has
the values for one-sided communication, which released versions leave out. Every metric of the families in
tests/results.py is compared at every (metric, call path, rank, thread): seconds within 5 ns, counts exactly. The exit
code is 1 if anything differs that DEVIATIONS does not explain. `--oracle` compares the oracles instead.
`--cost-model` compares root causes and the critical path instead, within 100 ns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from tests.results import (
    FAMILIES,
    ONE_SIDED,
    SHARED,
    STAMPED,
    Cell,
    Table,
    is_cause,
    is_time,
    one_sided_scout,
    outcome,
    scout,
)

TOLERANCE = 5e-9  # seconds: Scalasca adds floating-point numbers, we add integers
CAUSE_TOLERANCE = 1e-7  # seconds: shares of waits, in a chain of divisions

_ENTER = "measured from Enter and Leave of the calls, not from the collective records"
_PARTNERS = "the group without those with whom data was exchanged in this epoch; Scalasca remembers older epochs"
# Metrics that may differ from Scalasca on purpose: {metric: what we do instead}. docs/deviations.md has the reasons.
DEVIATIONS: dict[str, str] = {
    **dict.fromkeys(STAMPED, _ENTER),
    "mpi_rma_sync_late_post": "a post at the very end of the call counts",
    "mpi_rma_comm_late_post": "from Enter of the operation, for the post of its own target",
    "mpi_rma_early_wait": "never longer than the call",
    "mpi_rma_late_complete": "never longer than the call",
    "mpi_rma_pairsync_count": "a successful test synchronizes as a wait does",
    "mpi_rma_pairsync_unneeded_count": _PARTNERS,
    **dict.fromkeys(
        (
            "mpi_comm_create_wait",
            "mpi_file_open_wait",
            "mpi_alltoallv_wait",
            "mpi_neighbor_wait",
            "mpi_probe_latesender",
            "mpi_exchange_latereceiver",
            "mpi_tree_wait",
        ),
        "inferred from Enter and Leave; Scalasca has no such metric",
    ),
}


# The same of single cases with known delays.
_TASKS = "tasks stand where they ran, and only work before the last arrival is taken off a wait at a barrier"
_NO_METRIC = "Scalasca has no such metric"
_ALONE = "one process has the whole path: Scalasca divides 0 by 0 and stores nothing"
_PTHREADS = "threads that nobody forked are no team: nobody idles, and what they do is not critical"
_ONE_OWNER = "critical_imbalance_impact"
CASE_DEVIATIONS: dict[str, dict[str, str]] = {
    **{
        case: {_ONE_OWNER: _ALONE}
        for case in ("mpi_misc4", "mpi_nbc", "mpi_self", "rma_fence_known", "rma_gats_known", "rma_progress_known")
    },
    "pthread_mutex": {
        _ONE_OWNER: _ALONE,
        "delay_ompidle": _PTHREADS,
        "non_critical_path_activities": _PTHREADS,
    },
    "omp_locks": {"omp_ordered_wait": _NO_METRIC},
    "omp_tasks": dict.fromkeys(
        (
            "omp_ibarrier_task_wait",
            "omp_ibarrier_starvation",
            "omp_taskwait_wait",
            "omp_tasks",
            "omp_tasks_elsewhere",
        ),
        _NO_METRIC,
    )
    | dict.fromkeys(
        (
            "time",
            "visits",
            "omp_ibarrier_wait",
            "delay_ompbarrier",
            "critical_path",
            "critical_path_activities",
            "critical_imbalance_impact",
            "inter_partition_imbalance",
            "non_critical_path_activities",
        ),
        _TASKS,
    ),
}


class Difference(NamedTuple):
    """How one metric compares: cells that either side has, the largest difference, and where it is."""

    metric: str
    cells: int
    largest: float
    where: Cell | None
    reference: float
    ours: float

    @property
    def ok(self) -> bool:
        if is_cause(self.metric):
            return self.largest <= CAUSE_TOLERANCE
        return self.largest <= (TOLERANCE if is_time(self.metric) else 0)


def differences(reference: Table, ours: Table, metrics: tuple[str, ...] = FAMILIES) -> list[Difference]:
    """Compare two results in all cells of the metrics that either of them has."""
    rows = []
    for metric in metrics:
        a, b = reference.get(metric, {}), ours.get(metric, {})
        cells = a.keys() | b.keys()
        if not cells:
            continue
        where = max(cells, key=lambda c: abs(a.get(c, 0) - b.get(c, 0)))
        x, y = a.get(where, 0), b.get(where, 0)
        rows.append(Difference(metric, len(cells), abs(x - y), where if x != y else None, x, y))
    return rows


def explained(case: str, metric: str) -> str | None:
    """Why a metric of a case may differ from Scalasca's on purpose; nothing if it may not."""
    return DEVIATIONS.get(metric) or CASE_DEVIATIONS.get(case, {}).get(metric)


def report(rows: list[Difference], case: str = "") -> str:
    """Lay the differences out as a table, the worst cell below each metric that differs."""
    lines = [f"{'metric':<30} {'cells':>6} {'max difference':>15}"]
    for row in rows:
        verdict = "" if row.ok else "  DEVIATION" if explained(case, row.metric) else "  DIFFERS"
        lines.append(f"{row.metric:<30} {row.cells:>6} {row.largest:>15.3g}{verdict}")
        if not row.ok:
            callpath, rank, thread = row.where
            lines.append(f"    {'/'.join(callpath)}  rank {rank} thread {thread}")
            lines.append(f"    reference {row.reference!r}  ours {row.ours!r}")
            if reason := explained(case, row.metric):
                lines.append(f"    {reason}")
    return "\n".join(lines)


def find(case: str) -> Path:
    """Take a case by its directory, or by its bare name among the shared ones."""
    places = [Path(case), *(SHARED / kind / case for kind in ("reference", "real", "cases"))]
    found = [p for p in places if (p / "archive" / "traces.otf2").exists()]
    if not found:
        sys.exit(f"{case}: no archive/traces.otf2 there")
    if not any(found[0].glob("scout.json*")):
        sys.exit(f"{case}: has no scout.json to compare with")
    return found[0]


def wait_states(anchor: Path, *, oracle: bool) -> Table:
    if oracle:
        from tests.oracles import truth

        return truth(anchor).cells
    return outcome(anchor).cells


def causes(anchor: Path, model: str, *, oracle: bool) -> Table:
    if oracle:
        from tests.naive_causes import Analysis, read, table

        return table(Analysis(read(anchor), model).cells())
    return outcome(anchor, cost_model=model).cells


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compare_reference", description=__doc__.split("\n")[0])
    parser.add_argument("case", nargs="+", help="directory of a case, or its name below ../shared")
    parser.add_argument("--metrics", nargs="+", metavar="NAME", help="compare these only")
    parser.add_argument("--oracle", action="store_true", help="compare the plain Python oracle instead of the program")
    parser.add_argument(
        "--cost-model", choices=("thesis", "scalasca"), help="compare root causes and the critical path by this model"
    )
    arguments = parser.parse_args()
    failed = False
    for case in map(find, arguments.case):
        anchor = case / "archive" / "traces.otf2"
        reference = scout(case)
        if arguments.cost_model:
            ours = causes(anchor, arguments.cost_model, oracle=arguments.oracle)
            names = sorted(filter(is_cause, reference.keys() | ours.keys()))
        else:
            ours = wait_states(anchor, oracle=arguments.oracle)
            names = list(FAMILIES)
            if (case / "scout-rma.json.gz").exists():
                reference |= one_sided_scout(case)
                names += ONE_SIDED
        rows = differences(reference, ours, tuple(name for name in names if name in (arguments.metrics or names)))
        print(f"== {case.name}\n{report(rows, case.name)}")
        failed |= any(not row.ok and not explained(case.name, row.metric) for row in rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
