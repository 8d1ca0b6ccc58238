"""Random programs with tasks: what waits for what, and the invariants of causes and of the critical path."""

from __future__ import annotations

import tempfile
from itertools import pairwise

import pytest
import whywait
from hypothesis import given, note, settings
from whywait import cli

from tests import naive
from tests.results import outcome
from tests.task_programs import mixed_programs, task_programs
from tests.tracedsl import trace_from_text

NANOSECOND = 1e-9


@settings(max_examples=100)
@given(trace=task_programs())
def test_program_agrees_with_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle, program = naive.analyze(naive.Trace(anchor)).table(), outcome(anchor).cells
    for metric in naive_metrics(oracle) | {"time", "visits"}:
        expected, found = oracle.get(metric, {}), program.get(metric, {})
        assert found.keys() == expected.keys(), (metric, found, expected)
        for cell, value in expected.items():
            assert found[cell] == pytest.approx(value, abs=NANOSECOND), (metric, cell)


def naive_metrics(oracle):
    return {metric for metric in oracle if metric.startswith("omp_")} | {
        "omp_ibarrier_wait",
        "omp_ibarrier_task_wait",
        "omp_ibarrier_starvation",
        "omp_taskwait_wait",
        "omp_taskgroup_wait",
        "omp_tasks",
        "omp_tasks_elsewhere",
    }


@settings(max_examples=100)
@given(trace=task_programs())
def test_costs_equal_waiting_and_the_path_has_no_gap(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        for model in ("thesis", "bounded"):
            invariants(whywait.analyze(anchor, cost_model=model))


def invariants(result, idle=None):
    """Check that costs equal the waiting, and that the parts of the path follow each other.

    Waits of a master outside its teams pass on what its idle threads cost, which `idle` is the time of.
    """
    waiting = result.metrics["waiting"].total
    rows = result.delay_costs().to_pylist()
    costs = sum(row["short_term"] + row["long_term"] for row in rows if idle is not None or row["class"] != "ompidle")
    assert costs == pytest.approx(waiting + (idle or 0), rel=1e-9, abs=NANOSECOND)
    path = sorted(zip(*(result.critical_path()[name].to_pylist() for name in ("from", "to")), strict=True))
    assert path[0][0] == pytest.approx(0, abs=NANOSECOND)
    for before, after in pairwise(path):
        assert after[0] == pytest.approx(before[1], abs=NANOSECOND)
    length = path[-1][1] - path[0][0]
    assert result.metrics["critical_path"].total == pytest.approx(length, abs=NANOSECOND)
    assert length == pytest.approx(result.facts["length"], abs=NANOSECOND)


@settings(max_examples=100)
@given(trace=mixed_programs())
def test_locks_tasks_and_messages_agree_with_the_oracle_and_cost_what_they_wait(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle, program = naive.analyze(naive.Trace(anchor)).table(), outcome(anchor).cells
        for metric in naive_metrics(oracle) | {"time", "visits", "mpi_latesender", "omp_lock_contention_critical"}:
            expected, found = oracle.get(metric, {}), program.get(metric, {})
            assert found.keys() == expected.keys(), (metric, found, expected)
            for cell, value in expected.items():
                assert found[cell] == pytest.approx(value, abs=NANOSECOND), (metric, cell)
        for model in ("thesis", "bounded"):
            invariants(whywait.analyze(anchor, cost_model=model))


def test_a_task_is_below_what_created_it_whoever_runs_it(tmp_path):
    """Thread 1 creates the tasks, thread 0 is read first; the inner task is that of a recursion."""
    result = whywait.analyze(trace_from_text(RECURSION, tmp_path))
    found = {
        (row["thread"], "/".join(row["callpath"][1:])): round(row["value"], 9)
        for row in result.severities("time").to_pylist()
        if "task" in row["callpath"][-1]
    }
    inside = "!$omp parallel @a:1/f/!$omp task @a:5"
    assert found == {
        (0, inside): 2.5,
        (0, f"{inside}/!$omp create task @a:5"): 0.5,
        (1, "!$omp parallel @a:1/f/!$omp create task @a:5"): 0.5,
        (1, inside): 1.0,
    }
    assert not result.warnings


def test_tasks_of_the_workers_of_a_hosted_team_are_below_its_host(tmp_path):
    """Thread 0 hosts a team in a task of thread 2 and runs a task of thread 1, before either of them is read."""
    result = whywait.analyze(trace_from_text(HOSTED, tmp_path))
    found = {
        (row["thread"], "/".join(row["callpath"][1:])): round(row["value"], 9)
        for row in result.severities("time").to_pylist()
        if "task" in row["callpath"][-1]
    }
    host = "!$omp parallel @a:1/g/!$omp task @a:5"
    assert found == {
        (0, host): 2.0,
        (0, f"{host}/!$omp parallel @a:2/f/!$omp task @a:6"): 2.0,
        (1, f"{host}/!$omp parallel @a:2/f/!$omp create task @a:6"): 0.2,
        (2, "!$omp parallel @a:1/g/!$omp create task @a:5"): 0.2,
    }


def test_work_span_and_sizes_of_tasks(tmp_path):
    result = whywait.analyze(trace_from_text(SIZES, tmp_path))
    (region,) = result.work_span().to_pylist()
    # 3 + 2 + 2 of thread 0, 0.5 + 7.8 + 2 of thread 1; the longest chain: 1 to the creation, 7.8, and 2 at the end.
    assert (region["work"], region["span"]) == pytest.approx((17.3, 10.8))
    assert (region["elapsed"], region["threads"], region["instances"]) == (pytest.approx(12), 2, 1)
    (tasks,) = result.tasks().to_pylist()
    assert (tasks["tasks"], tasks["elsewhere"], tasks["migrations"]) == (2, 1, 0)
    assert (tasks["execution"], tasks["shortest"], tasks["longest"]) == pytest.approx((9.8, 2, 7.8))
    # Task 2 could start at 1.5, and starts at 3.
    assert (tasks["creation"], tasks["median_delay"]) == pytest.approx((0.4, 0.2))


def test_tasks_that_wait_until_a_thread_is_free_are_not_too_small(tmp_path, capsys):
    """Thread 0 creates four tasks of 1 s at once and runs them one after the other, while thread 1 works."""
    creations = [f"0: !$omp create task @a:5(task={i}) [0.{i}, 0.{i}1]" for i in range(1, 5)]
    runs = [f"0: !$omp task @a:5(task={i}) [{i}, {i + 1}]" for i in range(1, 5)]
    team = ["0: fork [0, 6]", "0: !$omp parallel @a:1 [0, 6]", "0.1: !$omp parallel @a:1 [0, 6]"]
    barriers = ["0: !$omp implicit barrier @a:7 [1, 6]", "0.1: !$omp implicit barrier @a:7 [5.9, 6]"]
    anchor = trace_from_text("\n".join([*team, *barriers, *creations, *runs]), tmp_path)
    (tasks,) = whywait.analyze(anchor).tasks().to_pylist()
    assert (tasks["median"], tasks["median_delay"]) == (pytest.approx(1), 0)
    assert cli.main(["threads", str(anchor)]) == 0
    assert "too small" not in capsys.readouterr().out


def test_threads_shows_tasks(tmp_path, capsys):
    assert cli.main(["threads", str(trace_from_text(SIZES, tmp_path))]) == 0
    text = capsys.readouterr().out
    assert "2 tasks run for 9.80 s." in text
    assert "17.3 s of work" in text
    assert "more than 1.6 threads are of no use (2 run)" in text


SIZES = """
0: fork [0, 12]
0: !$omp parallel @a:1 [0, 12]
0: !$omp create task @a:5(task=1) [1, 1.2]
0: !$omp create task @a:5(task=2) [1.5, 1.7]
0: !$omp implicit barrier @a:7 [3, 10]
0: !$omp task @a:5(task=2) [3, 5]
0.1: !$omp parallel @a:1 [0, 12]
0.1: !$omp implicit barrier @a:7 [0.5, 10]
0.1: !$omp task @a:5(task=1) [1.2, 9]
"""

HOSTED = """
threads 3
0: fork [0, 12]
0: !$omp parallel @a:1 [0, 12]
0: !$omp implicit barrier @a:7 [1, 11]
0: !$omp task @a:5(task=1) [3, 10]
0: fork [4, 9]
0: !$omp parallel @a:2 [4, 9]
0: !$omp implicit barrier @a:8 [4.5, 8.5]
0: !$omp task @a:6(task=2) [6, 8]
0.1: !$omp parallel @a:1 [0, 3.9]
0.1: !$omp implicit barrier @a:7 [1, 3.8]
0.1: !$omp parallel @a:2 [4, 9]
0.1: f [4.3, 5.5]
0.1: !$omp create task @a:6(task=2) [5, 5.2]
0.1: !$omp implicit barrier @a:8 [5.6, 8.5]
0.2: !$omp parallel @a:1 [0, 12]
0.2: g [1, 2.5]
0.2: !$omp create task @a:5(task=1) [2, 2.2]
0.2: !$omp implicit barrier @a:7 [2.6, 11]
"""

RECURSION = """
0: fork [0, 10]
0: !$omp parallel @a:1 [0, 10]
0: !$omp implicit barrier @a:7 [1, 10]
0: !$omp task @a:5(task=1) [2, 5]
0: !$omp create task @a:5(task=2) [3, 3.5]
0.1: !$omp parallel @a:1 [0, 10]
0.1: f [0.5, 2]
0.1: !$omp create task @a:5(task=1) [1, 1.5]
0.1: !$omp implicit barrier @a:7 [3, 10]
0.1: !$omp task @a:5(task=2) [4, 5]
"""
