"""Random programs that mix tasks, locks, condition variables, joins, barriers, messages: invariants of their costs."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict

import pytest
import whywait
from hypothesis import given, note, settings

from tests import naive
from tests.results import outcome
from tests.test_causes import random_program
from tests.test_tasks import NANOSECOND, invariants
from tests.thread_programs import thread_programs
from tests.tracedsl import trace_from_text

OF_THREADS = re.compile(
    r"(time|visits|mpi_latesender|omp_(lock_contention|ibarrier|tasks|taskwait|taskgroup).*|"
    r"pthread_(lock_contention|cond_(mutex_wait|late_signal|timeout)|join_wait|barrier_wait).*)"
)

# They count in another wait of their call as well.
PARTS = {"pthread_cond_mutex_wait", "omp_ibarrier_starvation", "mpi_lswo_same", "mpi_lswo_different"}


@settings(max_examples=100)
@given(trace=thread_programs())
def test_program_agrees_with_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle, program = naive.analyze(naive.Trace(anchor)).table(), outcome(anchor).cells
    for metric in {metric for metric in oracle.keys() | program.keys() if OF_THREADS.fullmatch(metric)}:
        expected, found = oracle.get(metric, {}), program.get(metric, {})
        assert found == pytest.approx(expected, abs=NANOSECOND), metric


@settings(max_examples=100)
@given(trace=thread_programs(forks=False))
def test_costs_and_path_of_posix_threads_agree_with_oracle(trace):
    note(trace)
    random_program(trace, models=("thesis",))


@settings(max_examples=100)
@given(trace=thread_programs())
def test_invariants_hold(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        for model in ("thesis", "bounded"):
            result = whywait.analyze(anchor, cost_model=model)
            invariants(result, idle_time(trace))
            factors_add_up(result)
        waits_fit_into_calls(result)
        exchanged = re.sub(r"(pthread_.*lock=)([01])", lambda lock: f"{lock[1]}{1 - int(lock[2])}", trace)
        cells, other = (outcome(one).cells for one in (anchor, trace_from_text(exchanged, f"{directory}/exchanged")))
        assert cells.keys() == other.keys()
        for metric, expected in cells.items():
            assert other[metric] == pytest.approx(expected, rel=1e-9), metric


def idle_time(trace):
    """Return how long workers of teams exist outside their teams, in seconds."""
    idle = 0.0
    for rank in range(int(re.search(r"ranks (\d)", trace)[1])):
        fork, join = map(float, re.search(rf"^{rank}: fork \[(\S+), (\S+)\]", trace, re.MULTILINE).groups())
        workers = len(re.findall(rf"^{rank}\.\d: !\$omp parallel", trace, re.MULTILINE))
        end = max(map(float, re.findall(rf"^{rank}: .* (\S+)\]", trace, re.MULTILINE)))
        idle += workers * (fork + end - join)
    return idle


def factors_add_up(result):
    """Check that each wait is what it is explained with, and what is unattributed."""
    waiting = result.tables.wait_states.to_pydict()["waiting"]
    _, factors = result.tables.factors(range(len(waiting)))
    explained = [0.0] * len(waiting)
    for wait, share in zip(*(factors.to_pydict()[name] for name in ("wait", "share")), strict=True):
        explained[wait] += share
    assert explained == pytest.approx(waiting, rel=1e-9, abs=NANOSECOND)


def waits_fit_into_calls(result):
    """Check that the waits in a call fit into it, and those of a call path into its time without callees."""
    in_call, on_path = defaultdict(float), defaultdict(float)
    for row in result.wait_states().to_pylist():
        assert row["waiting"] > 0
        if row["kind"] not in PARTS:
            in_call[row["rank"], row["thread"], row["enter"], row["leave"]] += row["waiting"]
            on_path[row["rank"], row["thread"], tuple(row["callpath"])] += row["waiting"]
    for (_, _, enter, leave), waiting in in_call.items():
        assert waiting <= leave - enter + NANOSECOND
    times = {
        (row["rank"], row["thread"], tuple(row["callpath"])): row["value"]
        for row in result.severities("time").to_pylist()
    }
    for place, waiting in on_path.items():
        assert waiting <= times[place] + NANOSECOND
