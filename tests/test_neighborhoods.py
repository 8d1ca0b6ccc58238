"""Waiting in collective operations of neighbors in a Cartesian topology (tests/patterns/neighborhoods.md)."""

from __future__ import annotations

import tempfile

import whywait
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.programs import programs
from tests.test_causes import random_program
from tests.test_naive import agreeing
from tests.test_whatif import is_identical
from tests.tracedsl import trace_from_text

NEIGHBORS = st.booleans().flatmap(lambda starts: programs(neighbors=True, nonblocking=starts))


@settings(max_examples=120)
@given(trace=NEIGHBORS)
def test_program_agrees_with_oracle(trace):
    agreeing(trace)


@settings(max_examples=60)
@given(trace=NEIGHBORS)
def test_costs_and_path_agree_with_oracle(trace):
    note(trace)
    random_program(trace, models=("thesis",))


@settings(max_examples=60)
@given(trace=NEIGHBORS)
def test_simulation_without_a_change_is_the_measured_run(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        assert is_identical(whywait.whatif(trace_from_text(trace, directory)))
