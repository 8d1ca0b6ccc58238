"""The costs of waits for tasks, and of all that waits around them, are those of the oracle: in both cost models."""

from __future__ import annotations

import re
import tempfile

import pytest
from hypothesis import given, note, settings

from tests.naive_causes import Analysis, read, table
from tests.results import outcome
from tests.task_programs import mixed_programs, task_programs
from tests.test_patterns import NANOSECOND, examples
from tests.thread_programs import thread_programs
from tests.tracedsl import trace_from_text

COSTS = re.compile(r"(interval_)?delay_.+|mpi_wait_(indirect|propagating)_.+|wait_unexplained")
# The oracle takes all threads of a process to be in all of its teams.
WORKED = [one for one in examples("threads-tasks.md") if "begins a team" not in one.id]
assert WORKED


def costs(cells):
    return {metric: of_metric for metric, of_metric in cells.items() if COSTS.fullmatch(metric)}


def agree(anchor):
    for model in ("thesis", "bounded"):
        oracle = costs(table(Analysis(read(anchor), model).cells()))
        program = costs(outcome(anchor, cost_model=model).cells)
        for metric in oracle.keys() | program.keys():
            expected, found = oracle.get(metric, {}), program.get(metric, {})
            assert found == pytest.approx(expected, rel=0, abs=NANOSECOND), (model, metric)


@pytest.mark.parametrize(("trace", "expected"), WORKED)
def test_the_oracle_matches_hand_worked_traces(trace, expected, tmp_path):
    anchor = trace_from_text(trace, tmp_path)
    found = costs(table(Analysis(read(anchor)).cells()))
    for metric, values in costs(expected.cells).items():
        assert found.get(metric, {}) == pytest.approx(values, rel=0, abs=NANOSECOND), metric
    agree(anchor)


@settings(max_examples=100)
@given(trace=task_programs())
def test_costs_of_tasks(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        agree(trace_from_text(trace, directory))


@settings(max_examples=100)
@given(trace=mixed_programs())
def test_costs_of_tasks_with_locks_and_messages(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        agree(trace_from_text(trace, directory))


@settings(max_examples=100)
@given(trace=thread_programs())
def test_costs_of_tasks_with_posix_threads(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        agree(trace_from_text(trace, directory))
