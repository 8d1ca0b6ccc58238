"""Random programs with teams: waits for locks and for turns in ordered constructs are the oracle's, and fit calls."""

from __future__ import annotations

import re
import tempfile

import pytest
import whywait
from hypothesis import given, note, settings

from tests import naive
from tests.results import outcome
from tests.team_programs import team_programs
from tests.test_naive_task_causes import agree
from tests.test_patterns import NANOSECOND
from tests.test_thread_programs import waits_fit_into_calls
from tests.tracedsl import trace_from_text

OF_TEAMS = re.compile(r"time|visits|omp_(management|fork|lock_contention_.*|ordered_wait|[ei]barrier_wait)")


@settings(max_examples=100)
@given(trace=team_programs())
def test_waits_agree_with_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle, program = naive.analyze(naive.Trace(anchor)).table(), outcome(anchor).cells
        for metric in {metric for metric in oracle.keys() | program.keys() if OF_TEAMS.fullmatch(metric)}:
            assert program.get(metric, {}) == pytest.approx(oracle.get(metric, {}), rel=0, abs=NANOSECOND), metric
        waits_fit_into_calls(whywait.analyze(anchor))


def test_an_owner_whose_wait_keeps_nobody_waiting_makes_no_circle(tmp_path):
    """Thread 1 waits for lock 0, then as its owner for lock 1, and so comes late to the barrier."""
    anchor = trace_from_text(NESTED, tmp_path)
    assert not outcome(anchor).warnings
    agree(anchor)


NESTED = """
threads 3
0: fork [0, 10]
0: !$omp parallel [0, 10]
0.1: !$omp parallel [0, 10]
0.2: !$omp parallel [0, 10]
0: !$omp critical @a:0(lock=0, order=1) [0, 3] @0, 2
0.1: !$omp critical @a:0(lock=0, order=2) [1, 6] @2, 5
0.1: !$omp critical @a:1(lock=1, order=2) [3, 5] @4, 4.5
0.2: !$omp critical @a:1(lock=1, order=1) [1, 5] @1, 4
0: !$omp implicit barrier [4, 9]
0.1: !$omp implicit barrier [8, 9]
0.2: !$omp implicit barrier [5, 9]
"""
