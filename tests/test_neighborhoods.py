"""Waiting in collective operations of neighbors in a Cartesian topology (tests/patterns/neighborhoods.md)."""

from __future__ import annotations

import tempfile

import pytest
import whywait
from hypothesis import given, note, settings
from hypothesis import strategies as st
from whywait.cli import main

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


@pytest.mark.parametrize(
    ("calls", "recorded"),
    [
        (("MPI_Neighbor_allgather [1, 4.2]", "MPI_Neighbor_allgather [4, 4.3]"), False),
        (("MPI_Ineighbor_allgather(req=1) [0.9, 1]\n0: MPI_Wait(1) [1, 4.2]",
          "MPI_Ineighbor_allgather(req=1) [4, 4.1]\n1: MPI_Wait(1) [4.1, 4.2]"), True),
        (("MPI_Comm_dup [1, 4.2]", "MPI_Comm_dup [4, 4.3]"), False),
        (("MPI_Alltoallv [1, 4.2]", "MPI_Alltoallv [4, 4.3]"), False),
        (("MPI_Probe [1, 4.2]\n0: MPI_Recv(1) [4.3, 4.4]", "MPI_Send(0) [4, 4.1]"), False),
        (("MPI_Allreduce [1, 4.2]", "MPI_Allreduce [4, 4.3]"), True),
    ],
    ids=lambda value: value if isinstance(value, bool) else value[0].split()[0].split("(")[0],
)  # fmt: skip
def test_what_is_inferred_is_said_to_be(calls, recorded, tmp_path, capsys):
    text = "topology world = 2\n" + "\n".join(f"{rank}: {call}" for rank, call in enumerate(calls))
    anchor = str(trace_from_text(text, tmp_path))
    for command in ("explain", "waits"):
        assert main([command, anchor]) == 0
        printed = capsys.readouterr().out
        assert "3.00 s" in printed
        assert ("inferred" not in printed) == recorded, printed
