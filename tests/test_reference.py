"""The program's results are Scalasca's, in every cell of every recorded case, in memory and in the written report."""

from __future__ import annotations

from functools import cache

import pytest

from tests.compare_reference import CASE_DEVIATIONS, DEVIATIONS, differences, explained, report
from tests.results import (
    FAMILIES,
    ONE_SIDED,
    SHARED,
    UNRECORDED,
    cases,
    cube,
    is_cause,
    known_cases,
    one_sided_scout,
    outcome,
    scout,
)

CASES = cases()
KNOWN = known_cases()
# What Scalasca calls a put is an atomic, whose bytes are not recorded; and it has no test that ends an epoch.
ATOMICS = {"bytes_put", "rma_atomic_sent", "rma_atomic_received"}
NEVER_THERE = ("lock_competition", "wait_for_progress", "last_call", "served", "away")

pytestmark = [pytest.mark.skipif(not CASES or not KNOWN, reason=UNRECORDED)]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def analysed(case):
    return outcome(case / "archive" / "traces.otf2")


@each_case
def test_wait_states_equal_scalascas(case):
    rows = differences(scout(case), analysed(case).cells)
    assert rows
    assert not [row for row in rows if not row.ok and row.metric not in DEVIATIONS], "\n" + report(rows)


@each_case
def test_threads_and_window_do_not_change_the_result(case):
    """Time is counted in whole ticks, so any number of threads gives the same bits."""
    again = outcome(case / "archive" / "traces.otf2", threads=1)
    assert again.cells == analysed(case).cells
    assert again.waits == analysed(case).waits


@each_case
def test_wait_states_add_up_to_the_severities(case):
    """The instances are the severities, one by one."""
    cells = analysed(case).cells
    totals: dict[str, dict] = {}
    for wait in analysed(case).waits:
        by_place = totals.setdefault(wait.kind, {})
        place = wait.callpath, wait.rank, wait.thread
        by_place[place] = by_place.get(place, 0) + wait.waiting
    assert totals.keys() <= cells.keys()
    for row in differences(cells, totals, tuple(totals)):
        assert row.ok, report([row])


@each_case
def test_report_holds_the_same_numbers(case, tmp_path):
    import whywait

    result = whywait.analyze(case / "archive" / "traces.otf2", clocks="measured")
    result.write_cube(tmp_path / "report.cubex")
    rows = differences(analysed(case).cells, cube(tmp_path / "report.cubex", FAMILIES))
    assert rows
    assert all(row.ok for row in rows), "\n" + report(rows)


each_known = pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)


@each_known
def test_known_case_equals_scalasca(case):
    """Programs with known delays: whatever differs is named, and differs."""
    ours = outcome(case / "archive" / "traces.otf2").cells
    rows = differences(scout(case), ours)
    if (case / "scout-rma.json.gz").exists():
        compared = tuple(metric for metric in ONE_SIDED if metric not in ATOMICS and not metric.endswith(NEVER_THERE))
        rows += differences(one_sided_scout(case), ours, compared)
    assert not [row for row in rows if not row.ok and not explained(case.name, row.metric)], report(rows, case.name)
    may_differ = CASE_DEVIATIONS.get(case.name, {}).keys() & set(FAMILIES)
    assert may_differ <= {row.metric for row in rows if not row.ok}


@each_known
def test_causes_of_known_case_equal_scalasca(case):
    ours, theirs = outcome(case / "archive" / "traces.otf2", cost_model="scalasca").cells, scout(case)
    rows = differences(theirs, ours, tuple(sorted(filter(is_cause, theirs.keys() | ours.keys()))))
    off = {row.metric for row in rows if not row.ok}
    assert off == {metric for metric in CASE_DEVIATIONS.get(case.name, {}) if is_cause(metric)}, report(rows)


def seconds(result, metric, callpath, rank, thread=0):
    return sum(
        value
        for (path, r, t), value in result.cells.get(metric, {}).items()
        if (r, t) == (rank, thread) and f"/{callpath}/" in f"/{'/'.join(path)}/"
    )


def test_waits_at_barriers_with_tasks_are_those_of_the_program():
    """Thread 0 works on tasks in the barrier [2.5, 92.7] ms, and waits until the last comes at 122.6 ms."""
    result = outcome(SHARED / "cases" / "omp_tasks" / "archive" / "traces.otf2")
    barrier = "!$omp single @omp_tasks.c:18/!$omp implicit barrier @omp_tasks.c:24"
    assert seconds(result, "omp_ibarrier_wait", barrier, 0) == pytest.approx(0.030, abs=0.001)
    assert seconds(result, "omp_ibarrier_wait", barrier, 0, 3) == pytest.approx(0.050, abs=0.001)
    # The last waits itself for tasks of thread 2, which is charged for most; the rest is a task that it worked on.
    task = "!$omp single sblock @omp_tasks.c:18/!$omp task @omp_tasks.c:20/leaf"
    assert seconds(result, "delay_ompbarrier", task, 0, 1) == pytest.approx(0.010, abs=0.001)
    assert seconds(result, "interval_delay_task_longterm", task, 0, 2) == pytest.approx(0.070, abs=0.001)


def test_waits_for_mutexes_are_those_of_the_program():
    result = outcome(SHARED / "cases" / "pthread_mutex" / "archive" / "traces.otf2")
    mutex = "pthread_lock_contention_mutex_lock"
    assert sum(seconds(result, mutex, "phase1", 0, t) for t in range(4)) == pytest.approx(0.24, abs=0.01)
    assert seconds(result, mutex, "phase2", 0, 1) == pytest.approx(0.07, abs=0.005)
    assert seconds(result, mutex, "phase2", 0, 2) == pytest.approx(0.08, abs=0.005)
    assert seconds(result, mutex, "phase3", 0, 3) == pytest.approx(0.04, abs=0.005)
