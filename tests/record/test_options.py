"""Options of `whywait record`: each does what it says, in the recording of a real program."""

from collections import Counter

import pytest
import whywait

from .mpis import PROGRAMS, compiled, record


@pytest.fixture
def faults(mpi, tmp_path):
    """The program that does what it is told, with two ranks."""
    program = compiled(mpi, PROGRAMS / "faults.c", tmp_path)
    return lambda *arguments: [*mpi.start(2), program, *arguments]


def recorded(command, tmp_path, *options):
    """Return how many events of each type there are, and what was said."""
    done = record(command, tmp_path, *options)
    assert done.returncode == 0, done.stderr
    return Counter(whywait.open(tmp_path / "out").info(events=True)["events_by_type"]), done.stderr


# The program sends ten times, five times after its first call of MPI_Pcontrol, and once after its second one.
@pytest.mark.parametrize(
    ("window", "sends"), [("call:1..2", 10), ("call:1..", 12), ("call:2..", 2), (":100", 32), ("100:200", 0)]
)
def test_only_a_window_is_recorded(faults, tmp_path, window, sends):
    counts, _ = recorded(faults("pcontrol"), tmp_path, "--window", window)
    assert counts["MpiSend"] == counts["MpiRecv"] == sends
    assert counts["Enter"] == counts["Leave"]


def test_files_are_elsewhere_during_the_run(faults, tmp_path):
    counts, _ = recorded(faults(""), tmp_path, "--spool", tmp_path / "local")
    assert counts["MpiSend"] == 20
    assert [path for path in tmp_path.glob("local/**/*") if path.is_file()] == []


def test_no_thread_prepares_files(faults, tmp_path):
    """Files grow by 65,536 calls; a thread that does it itself says so."""
    counts, _ = recorded(faults("many", "70000"), tmp_path, "--no-helper")
    assert counts["MpiSend"] == counts["MpiRecv"] == 140000
    assert counts["BufferFlush"] == 2


def test_only_the_innermost_functions_count(faults, tmp_path):
    recorded(faults(""), tmp_path, "--depth", "1")
    paths = {"/".join(row["callpath"][1:]) for row in whywait.analyze(tmp_path / "out").callpaths().to_pylist()}
    assert {"main/MPI_Init", "exchange/MPI_Sendrecv"} <= paths


def test_no_call_paths(faults, tmp_path):
    recorded(faults(""), tmp_path, "--callpaths", "off")
    paths = {"/".join(row["callpath"][1:]) for row in whywait.analyze(tmp_path / "out").callpaths().to_pylist()}
    assert "MPI_Sendrecv" in paths


def test_groups_are_left_out(faults, tmp_path):
    counts, _ = recorded(faults(""), tmp_path, "--groups=-p2p")
    assert (counts["MpiSend"], counts["MpiRecv"]) == (0, 0)
    visits = {row["callpath"][-1] for row in whywait.analyze(tmp_path / "out").callpaths().to_pylist()}
    assert "MPI_Init" in visits
    assert "MPI_Sendrecv" not in visits


def test_nothing_is_said(faults, tmp_path):
    counts, said = recorded(faults(""), tmp_path, "--quiet", "--no-sync")
    assert counts["MpiSend"] == 20
    assert "whywait" not in said
