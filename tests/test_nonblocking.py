"""Random programs with non-blocking collective operations: what they wait for, who is to blame, and what they hide."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict

import pytest
import whywait
from hypothesis import example, given, note, settings

from tests.programs import programs
from tests.test_causes import random_program
from tests.test_naive import agreeing
from tests.test_whatif import is_identical
from tests.tracedsl import COLLECTIVES, trace_from_text

START = 1e-6  # how long a call takes that starts an operation, in seconds
EXACT = 1e-9

# What a blocking operation waits for, and a non-blocking one.
SAME = {
    "mpi_barrier_wait": "mpi_nbc_barrier_wait",
    "mpi_wait_nxn": "mpi_nbc_wait_nxn",
    "mpi_latebroadcast": "mpi_nbc_latebroadcast",
    "mpi_earlyreduce": "mpi_nbc_earlyreduce",
    "mpi_earlyscan": "mpi_nbc_earlyscan",
}


# The first in the communicator is not the first in the world.
TURNED = """
ranks 2
comm turned = 1 0
1: MPI_Iscan(comm=turned, bytes=8, req=1) [0.004, 0.005]
0: MPI_Iscan(comm=turned, bytes=8, req=1) [0.007, 0.008]
0: MPI_Waitall(1) [0.009, 0.010]
1: MPI_Waitall(1) [0.005, 0.008]
"""


@settings(max_examples=100)
@given(trace=programs(nonblocking=True))
@example(TURNED)
def test_program_agrees_with_oracle(trace):
    agreeing(trace)


@settings(max_examples=60)
@given(trace=programs(nonblocking=True))
def test_costs_and_path_agree_with_oracle(trace):
    note(trace)
    random_program(trace, models=("thesis",))


@settings(max_examples=60)
@given(trace=programs(nonblocking=True))
def test_simulation_without_a_change_is_the_measured_run(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        assert is_identical(whywait.whatif(trace_from_text(trace, directory)))


@settings(max_examples=80)
@given(trace=programs(orderly=True))
def test_waiting_at_once_is_like_blocking(trace):
    """A non-blocking operation that its next call completes waits as a blocking one does, and hides nothing."""
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        before = whywait.analyze(trace_from_text(trace, f"{directory}/blocking"))
        after = whywait.analyze(trace_from_text(nonblocking(trace), f"{directory}/nonblocking"))
    assert not after.severities("mpi_nbc_hidden_wait").num_rows
    # Only the call that starts it is no longer waited in.
    blocking = {at: [SAME.get(kind, kind), waiting - START * (kind in SAME)] for at, kind, waiting in waits(before)}
    assert {at: [kind, waiting] for at, kind, waiting in waits(after)} == {
        at: [kind, pytest.approx(waiting, abs=EXACT)] for at, (kind, waiting) in blocking.items() if waiting > EXACT
    }
    for result in (before, after):
        rows = result.delay_costs().to_pylist()
        assert sum(row["short_term"] + row["long_term"] for row in rows) == pytest.approx(paid(result), abs=EXACT)
    # The same calls of the program are on the path.
    few = START * (1 + len(re.findall(r"MPI_", trace)))
    assert path(after) == {place: pytest.approx(value, abs=few) for place, value in path(before).items()}


def nonblocking(trace):
    """Return a program whose collective operations are non-blocking, and waited for at once."""
    lines = []
    for number, line in enumerate(trace.splitlines()):
        match = re.fullmatch(r"(\d+): MPI_(\w+)\((.*)\) \[(\S+), (\S+)\]", line)
        if match and f"MPI_{match[2]}" in COLLECTIVES:
            rank, name, arguments, enter, leave = match.groups()
            begun = f"{float(enter) + START:.6f}"
            lines.append(f"{rank}: MPI_I{name.lower()}({arguments}, req={1000 + number}) [{enter}, {begun}]")
            lines.append(f"{rank}: MPI_Wait({1000 + number}) [{begun}, {leave}]")
        else:
            lines.append(line)
    return "\n".join(lines)


def waits(result):
    """Return the waits: where they are, by rank and Leave of the call, of which kind, and how long."""
    rows = result.wait_states().to_pylist()
    of_waits = (row for row in rows if row["part_of"] is None and not row["kind"].endswith("completion"))
    return [((row["rank"], round(row["leave"], 6)), row["kind"], row["waiting"]) for row in of_waits]


def paid(result):
    """Return the waiting that has costs: all of it."""
    return sum(waiting for _, _, waiting in waits(result))


def path(result):
    """Return the time on the critical path by rank, of functions that are no library calls."""
    found = defaultdict(float)
    for row in result.severities("critical_path").to_pylist():
        if not row["callpath"][-1].startswith("MPI_"):
            found[row["rank"], tuple(row["callpath"])] += row["value"]
    return {place: value for place, value in found.items() if value > START}
