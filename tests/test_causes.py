"""Root causes and the critical path are Scalasca's where it has any, the oracle's and the documents' everywhere.

What the definitions promise holds for every trace: waiting time is conserved, and the path is the run without its
waits.
"""

from __future__ import annotations

import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import whywait
from hypothesis import given, settings

from tests.compare_reference import differences, report
from tests.naive_causes import Analysis, read, table
from tests.programs import programs
from tests.results import UNRECORDED, cases, is_cause, outcome, scout
from tests.rma_programs import one_sided_programs
from tests.skewed import skewed
from tests.team_programs import team_programs
from tests.test_naive_causes import WORKED
from tests.test_patterns import BLOCK, NANOSECOND, PATTERNS
from tests.tracedsl import trace_from_text
from tests.truths import costs

CASES = cases()
DATA = sorted(path.parent for path in (Path(__file__).parent / "data").glob("*/traces.otf2"))
# Release 2.6 keeps 128 call paths in a profile and forgets the smallest of more; here none is forgotten. One case has
# more: its times over the whole run lack some, and by that what is derived from them.
FORGETFUL = {
    "hpcg": {
        "critical_imbalance_impact",
        "critical_path_activities",
        "inter_partition_imbalance",
        "non_critical_path_activities",
    }
}
# The oracle of causes matches the first messages of a channel that lacks some, and knows no inter-communicators.
INCOMPLETE = {"prk_hyb_p2p", "intercomm"}
TOLERANCE = 1e-9  # seconds


def causes(cells):
    return {metric: values for metric, values in cells.items() if is_cause(metric)}


@cache
def analysed(anchor, model="thesis", threads=None):
    return outcome(anchor, cost_model=model, threads=threads)


def anchor_of(case):
    inner = case / "archive" / "traces.otf2"
    return inner if inner.exists() else case / "traces.otf2"


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_costs_equal_scalascas(case):
    ours, theirs = causes(analysed(anchor_of(case), "scalasca").cells), causes(scout(case))
    rows = differences(theirs, ours, tuple(sorted(theirs.keys() | ours.keys())))
    assert rows
    off = {row.metric for row in rows if row.largest > TOLERANCE}
    assert off == FORGETFUL.get(case.name, set()), "\n" + report(rows)


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("name", sorted(FORGETFUL))
def test_differs_from_scalasca_by_what_that_forgets(name):
    (case,) = (case for case in CASES if case.name == name)
    ours = causes(analysed(anchor_of(case), "scalasca").cells)
    compare(causes(costs(anchor_of(case), "scalasca", limit=None).cells), ours)


# The oracle takes every thread of a process to be in every team. What is known of nested teams is in test_reference.
NESTED = {"omp_nested"}
ALL = [case for case in [*CASES, *DATA] if case.name not in INCOMPLETE | NESTED]
# It knows the costs of tasks, but not how the critical path goes through them.
TASKS = {"workers"}
OF_PATH = ("critical_", "non_critical_", "inter_partition_", "intra_partition_")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_equals_oracle(case):
    oracle, ours = causes(costs(anchor_of(case), "thesis").cells), causes(analysed(anchor_of(case)).cells)
    if case.name in TASKS:
        oracle, ours = ({name: of[name] for name in of if not name.startswith(OF_PATH)} for of in (oracle, ours))
        assert {"interval_delay_task", "interval_delay_lock", "delay_ompbarrier"} <= ours.keys()
    compare(oracle, ours)


def compare(oracle, ours):
    rows = differences(oracle, ours, tuple(sorted(oracle.keys() | ours.keys())))
    assert all(row.largest <= TOLERANCE for row in rows), "\n" + report(rows)


@pytest.mark.parametrize("model", ["thesis", "scalasca"])
@pytest.mark.parametrize("case", [*CASES, *DATA], ids=lambda case: case.name)
def test_threads_do_not_change_the_result(case, model):
    one, many = (outcome(anchor_of(case), cost_model=model, threads=threads) for threads in (1, 5))
    assert one.cells == many.cells


@pytest.mark.parametrize("case", [*CASES, *DATA], ids=lambda case: case.name)
def test_recorded_cases_keep_the_invariants(case):
    invariants(anchor_of(case))


def test_no_cost_metrics_without_causes():
    cells = outcome(DATA[0] / "traces.otf2", causes=False).cells
    assert cells
    assert not causes(cells)


# --------------------------------------------------------------------------------------------------------------------
# By hand


COMPLETE = ("delay_", "interval_delay_")
NAMED = (*COMPLETE, "critical_", "non_critical_", "mpi_wait_")


@pytest.mark.parametrize(("trace", "expected"), WORKED)
def test_costs_match_hand_worked_traces(trace, expected, tmp_path):
    anchor = trace_from_text(trace, tmp_path)
    cells = outcome(anchor).cells
    # All costs must be there; of other metrics, only the named ones.
    for metric in {m for m in cells if m.startswith(COMPLETE)} | {m for m in expected.cells if m.startswith(NAMED)}:
        found = {cell: value for cell, value in cells.get(metric, {}).items() if abs(value) > NANOSECOND}
        assert found == pytest.approx(expected.cells.get(metric, {}), rel=0, abs=NANOSECOND), metric
    invariants(anchor)


# --------------------------------------------------------------------------------------------------------------------
# Random programs


@settings(max_examples=30)
@given(trace=programs(partitions=True))
def test_messages_and_collectives(trace):
    random_program(trace)


@settings(max_examples=30)
@given(trace=one_sided_programs())
def test_random_one_sided_programs_keep_the_invariants(trace):
    random_program(trace)


@settings(max_examples=30)
@given(trace=team_programs())
def test_threads_that_communicate(trace):
    # Release 2.6 does not look before the fork, and has all threads that came last on the path.
    random_program(trace, models=("thesis",))


def random_program(trace, models=("thesis", "scalasca")):
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        for model in models:
            ours = outcome(anchor, cost_model=model)
            if any(warning["kind"] == "circular_waits" for warning in ours.warnings):
                # With clocks that disagree waits can cause each other: the oracle gives up.
                with pytest.raises(AssertionError, match="waits that cause each other"):
                    Analysis(read(anchor), model)
                return
            oracle = Analysis(read(anchor), model, limit=None)
            compare(causes(table(oracle.cells())), causes(ours.cells))
        # What a random program does inside of MPI_Finalize does not come after the end of the path.
        if not any("MPI_Finalize" in path[:-1] for path, *_ in outcome(anchor).cells["time"]):
            invariants(anchor)


def invariants(anchor):
    import pyarrow as pa
    import whywait._native as native

    analysis = native.analyze(native.Run(str(anchor)))
    length = analysis.facts()["length"]
    exact = 1e-9 * max(1, length)
    waits = [row for row in pa.table(analysis.wait_states()).to_pylist() if row["indirect"] is not None]
    for row in waits:
        assert 0 <= row["indirect"] <= row["waiting"] * (1 + 1e-12)
        assert row["direct"] == pytest.approx(row["waiting"] - row["indirect"], abs=exact)
        assert 0 <= row["propagating"] <= row["waiting"] * (1 + 1e-12)
        assert row["caused"] >= 0

    # A call can wait for a lock, then for progress: what propagates of either is booked as such.
    cells = pa.table(analysis.severities()).to_pylist()
    for metric, kind in (("lock", "lock_competition"), ("rma_progress", "wait_for_progress")):
        passed_on = sum(row["value"] for row in cells if row["metric"] == f"mpi_wait_propagating_{metric}")
        of_waits = sum(row["propagating"] for row in waits if row["kind"].endswith(kind))
        assert passed_on == pytest.approx(of_waits, abs=exact)

    # Costs are the waits, no more and no less. What master threads do alone is idleness of others on top.
    costs = pa.table(analysis.delay_costs()).to_pylist()
    assert all(row["value"] > 0 for row in costs)
    idle = any("ompidle" in row["metric"] for row in costs)
    total = sum(row["value"] for row in costs)
    waiting = sum(row["waiting"] for row in waits)
    assert total >= waiting - exact if idle else total == pytest.approx(waiting, abs=exact)

    # The path has neither gaps nor overlaps, and all of it is work; where clocks disagree it may have gaps.
    path = pa.table(analysis.critical_path()).to_pylist()
    for row in path:
        assert row["from"] <= row["to"]
        assert row["callpath_time"] <= row["to"] - row["from"] + exact
    assert all(row["hop"] is not None for row in path[1:])
    rows = pa.table(analysis.severities()).to_pylist()
    on_path = sum(row["value"] for row in rows if row["metric"] == "critical_path")
    covered = max(row["to"] for row in path) - min(row["from"] for row in path) if path else 0
    assert on_path <= covered + exact
    # What ends a wait begins within the waiting call, if clocks agree.
    facts = analysis.facts()
    agree = all(row["cause_time"] is None or row["cause_time"] <= row["leave"] + exact for row in waits)
    if agree and not facts["clock_violations_p2p"] and not facts["clock_violations_coll"]:
        assert on_path == pytest.approx(path[-1]["to"] - path[0]["from"] if path else 0, abs=exact)
        for before, after in pairwise(path):
            assert before["to"] == pytest.approx(after["from"], abs=exact)


def test_the_path_through_teams_has_no_gaps():
    result = whywait.analyze(Path(__file__).parent / "data" / "omp_nested")
    path = result.critical_path().to_pylist()
    assert len({row["location"] for row in path}) > 1
    for before, after in pairwise(path):
        assert before["to"] == pytest.approx(after["from"], abs=1e-9)
    assert path[-1]["to"] - path[0]["from"] == pytest.approx(result.metrics["critical_path"].total)


ARMCI = """
ranks 2
win mem on world
*: ARMCI_Init(mem) [0, 1]
0: f [1, 3]
0: ARMCI_Finalize(mem) [3, 6.1]
0: output [6.1, 9]
1: f [1, 6]
1: ARMCI_Finalize(mem) [6, 6.1]
"""
SHMEM = """
ranks 2
win all on world
0: shmem_init [0, 2.1]
1: setup [0, 2]
1: shmem_init [2, 2.1]
0: f [2.1, 5]
1: f [2.1, 3]
0: shmem_finalize [5, 5.1]
1: shmem_finalize [3, 5.1]
"""
BOTH = """
ranks 2
win all on world
0: MPI_Init [0, 1]
1: MPI_Init [0, 1]
0: f [1, 2]
1: f [1, 6]
0: shmem_finalize [2, 6.1]
1: shmem_finalize [6, 6.1]
0: g [6.1, 8]
0: MPI_Finalize [8, 8.1]
1: MPI_Finalize [7, 8.1]
"""


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        # Rank 1 enters last; what rank 0 does afterwards is not on the path, though it lasts longer.
        (ARMCI, {("ARMCI_Init", 1): 1, ("f", 1): 5}),
        # PE 0 enters last; it has waited for PE 1 at the begin.
        (SHMEM, {("f", 0): 2.9, ("shmem_init", 0): 0.1, ("setup", 1): 2}),
        # With two libraries, the one that is shut down last counts.
        (BOTH, {("MPI_Init", 1): 1, ("f", 1): 5, ("shmem_finalize", 0): 0.1, ("g", 0): 1.9}),
    ],
    ids=["ARMCI", "OpenSHMEM", "OpenSHMEM and MPI"],
)
def test_the_path_starts_where_the_library_is_shut_down(trace, expected, tmp_path):
    """Thesis, section 4.3.2: not only with MPI_Finalize."""
    path = outcome(trace_from_text(trace, tmp_path)).cells["critical_path"]
    assert {(names[-1], rank): value for (names, rank, _), value in path.items()} == pytest.approx(expected)


def test_the_sum_of_both_terms_is_offered(tmp_path):
    """Definition 13 of the thesis has the direct wait in the long-term costs, equation 4.12 has not."""
    text = (PATTERNS / "causes-delays.md").read_text().partition("## Definition 13")[2]
    trace = next(block[3] for block in BLOCK.finditer(text) if block[2] == "trace")
    profile = whywait.analyze(trace_from_text(trace, tmp_path)).profile
    terms = [profile.total(f"delay_latesender{ending}") for ending in ("", "_longterm", "_aggregate")]
    assert terms == pytest.approx([2, 2, 4])
    assert terms[2] == pytest.approx(profile.total("mpi_latesender"))


def violations(anchor):
    facts = analysed(anchor).facts
    return facts["clock_violations_p2p"] + facts["clock_violations_coll"]


SKEWED = [case for case in [*CASES, *DATA] if case.name not in INCOMPLETE | NESTED | TASKS | set(FORGETFUL)]


def nightly_if(costs_much):
    return pytest.mark.nightly if costs_much else ()


# Of real programs, one suffices each day: the oracle takes seconds.
SKEWS = [
    pytest.param(case, skew, id=f"{case.name}-{skew}", marks=nightly_if(skew < 0 and case.parent.name == "real"))
    for case in SKEWED
    for skew in (3, -40)
]


@pytest.mark.parametrize(("case", "microseconds"), SKEWS)
def test_equals_oracle_where_clocks_disagree(case, microseconds, tmp_path):
    """Messages arrive before they are sent: both implementations share out the same, by both models."""
    plain = anchor_of(case)
    resolution = outcome(plain, causes=False).facts["resolution"]
    anchor = skewed(plain.parent, tmp_path / "archive", round(microseconds * 1e-6 * resolution))
    for model in ("thesis", "scalasca"):
        ours = outcome(anchor, cost_model=model)
        if any(warning["kind"] == "circular_waits" for warning in ours.warnings):
            with pytest.raises(AssertionError, match="waits that cause each other"):
                Analysis(read(anchor), model)
        else:
            compare(causes(costs(anchor, model, limit=None).cells), causes(ours.cells))


def test_skewed_copies_have_violations(tmp_path):
    plain = DATA[[case.name for case in DATA].index("p2p")] / "traces.otf2"
    resolution = outcome(plain, causes=False).facts["resolution"]
    anchor = skewed(plain.parent, tmp_path / "archive", round(-40e-6 * resolution))
    assert violations(anchor) > violations(plain)
