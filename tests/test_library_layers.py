"""Layers above MPI: calls of Global Arrays and ARMCI, from the functions around calls of MPI."""

from pathlib import Path

import pytest
import whywait
from whywait.analysis.layers import layers
from whywait.cli import main

from tests.tracedsl import trace_from_text

RECORDED = Path(__file__).parent / "data" / "models" / "ga_delays_mpi" / "traces.otf2"


def calls_of(result, library):
    return {one["call"]: one for one in layers(result) if one["library"] == library}


def test_calls_of_armci_wait_for_progress():
    """What the program's own text says: four calls wait for a process that sleeps (tests/test_models.py)."""
    found = calls_of(whywait.analyze(RECORDED), "ARMCI")
    waiting = {call: one["progress"] for call, one in found.items() if one["progress"] > 0.01}
    assert waiting == {
        "ARMCI_Wait": pytest.approx(0.1486, rel=0.01),
        "ARMCI_AccS": pytest.approx(0.1008, rel=0.01),
        "ARMCI_PutS": pytest.approx(0.1047, rel=0.01),
        "ARMCI_Rmw": pytest.approx(0.0959, rel=0.01),
    }
    assert all(found[call]["away"] >= progress for call, progress in waiting.items())
    assert (found["ARMCI_Wait"]["visits"], found["ARMCI_Wait"]["time"]) == (1, pytest.approx(0.1551, rel=0.01))


def test_the_innermost_function_of_each_library_counts(tmp_path):
    text = """
        ranks 2
        0: wnga_sync [1, 6]
        0: pnga_pgroup_sync [1.5, 5.5]
        0: PARMCI_Barrier.part.0 [2, 5]
        0: MPI_Barrier [2.5, 4.5]
        1: MPI_Barrier [4, 4.5]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    arrays, armci = calls_of(result, "Global Arrays"), calls_of(result, "ARMCI")
    assert {call: (one["visits"], one["time"]) for call, one in arrays.items()} == {
        "ga_sync": (1, pytest.approx(1)),
        "ga_pgroup_sync": (1, pytest.approx(4)),
    }
    (call,) = armci.values()
    assert (call["call"], call["time"], call["waits"]) == (
        "ARMCI_Barrier",
        pytest.approx(3),
        {"mpi_barrier_wait": pytest.approx(1.5)},
    )


def test_recorded_calls_are_no_layer():
    assert not layers(whywait.analyze(RECORDED.parents[1] / "ga_delays_comex"))


def test_the_summary_lists_the_calls(capsys):
    assert main(["summary", str(RECORDED)]) == 0
    shown = capsys.readouterr().out
    assert "Calls of libraries above MPI" in shown
    assert "ga_pgroup_sync (Global Arrays)" in shown
