"""The same program in each language under each MPI: the same records, and the same results as without the recorder."""

import subprocess
import sys

import pytest
import whywait

from . import compare
from .mpis import PROGRAMS, compiled, record, run

FORTRAN = ("ring_mpif", "ring_mpi", "ring_f08")


@pytest.fixture
def reference(mpi, tmp_path):
    """The archive of the program in C."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    plain = run([*mpi.start(4), program], tmp_path)
    recorded = record([*mpi.start(4), program], tmp_path, output="reference")
    assert plain.returncode == recorded.returncode == 0, recorded.stderr
    assert sorted(recorded.stdout.split("\n")) == sorted(plain.stdout.split("\n"))
    assert "whywait: recorded 4 ranks, 178 calls" in recorded.stderr
    return tmp_path / "reference"


def test_records_of_c(reference):
    counts = whywait.open(reference).info(events=True)["events_by_type"]
    expected = {
        "MpiIsend": 40,
        "MpiIsendComplete": 40,
        "MpiIrecvRequest": 40,
        "MpiIrecv": 40,
        "MpiCollectiveBegin": 40,
        "MpiCollectiveEnd": 40,
        "MpiSend": 1,
        "MpiRecv": 1,
        "CommCreate": 4,
        "CommDestroy": 4,
        "ProgramBegin": 4,
        "ProgramEnd": 4,
    }
    assert {name: count for name, count in counts.items() if name not in {"Enter", "Leave"}} == expected


def test_the_call_paths_of_c(reference):
    paths = whywait.analyze(reference).callpaths().to_pylist()
    names = {"/".join(path["callpath"][1:]) for path in paths}
    assert {"main/MPI_Init", "main/MPI_Waitall", "main/MPI_Allreduce", "main/MPI_Finalize"} <= names


def test_functions_of_a_program_without_symbols(mpi, reference, tmp_path):
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path, "-s")
    record([*mpi.start(4), program], tmp_path)
    paths = [path["callpath"][1:] for path in whywait.analyze(tmp_path / "out").callpaths().to_pylist()]
    # All calls are in one function, which has the name of the file and an address.
    (main,) = {path[0] for path in paths if path}
    assert main.startswith(f"{program.name}+0x")
    named = [path["callpath"][2:] for path in whywait.analyze(reference).callpaths().to_pylist()]
    assert sorted(path[1:] for path in paths) == sorted(named)


def test_functions_by_name(mpi, reference, tmp_path):
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    record([*mpi.start(4), program], tmp_path, "--only=^MPI_|^main$", "--filter=MPI_(Isend|Init)")
    paths = whywait.analyze(tmp_path / "out").callpaths().to_pylist()
    names = {"/".join(path["callpath"][1:]) for path in paths}
    assert {"main/MPI_Irecv", "main/MPI_Allreduce"} <= names
    assert not [name for name in names if "MPI_Isend" in name or "MPI_Init" in name]
    before, after = (
        whywait.open(directory).info(events=True)["events_by_type"] for directory in (reference, tmp_path / "out")
    )
    assert {name for name in before if before[name] != after[name]} == {"Enter", "Leave"}
    assert before["MpiIsend"] == after["MpiIsend"] == 40


@pytest.mark.parametrize("name", FORTRAN)
def test_fortran_leaves_the_same_records(mpi, reference, tmp_path, name):
    if not mpi.fortran:
        pytest.skip(f"{mpi.name} has no Fortran")
    program = compiled(mpi, PROGRAMS / f"{name}.f90", tmp_path, language="fortran")
    done = record([*mpi.start(4), program], tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(compare.differences(reference / "traces.otf2", tmp_path / "out" / "traces.otf2")) == []


def test_mpi4py_leaves_the_same_messages(mpi, reference, tmp_path):
    script = [sys.executable, PROGRAMS / "ring.py"]
    plain = run([*mpi.start(4), *script], tmp_path)
    if plain.returncode or len({line.split()[0] for line in plain.stdout.splitlines()}) != 4:
        pytest.skip(f"mpi4py does not run with {mpi.name}")
    done = record([*mpi.start(4), *script], tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == sorted(plain.stdout.split("\n"))
    ours, theirs = compare.read(tmp_path / "out" / "traces.otf2"), compare.read(reference / "traces.otf2")
    for location, sections in theirs.items():
        for section in ("order", "requests"):
            assert ours[location][section] == sections[section], (location, section)


def test_the_official_tools_read_it(reference):
    printed = subprocess.run(
        ["otf2-print", str(reference / "traces.otf2")], capture_output=True, text=True, check=False
    )
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.count("MPI_ISEND ") == 40


def test_it_is_a_valid_trace(reference):
    done = run([sys.executable, "-m", "whywait", "info", "--check", reference], reference)
    assert done.returncode == 0
    assert "clean" in done.stdout, done.stdout
