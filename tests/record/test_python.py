"""Functions of Python on call paths, with each interpreter that is here."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import whywait
from whywait._record import libmpi

from .mpis import MPIS, PROGRAMS, compiled, record

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
MPICH = [mpi for mpi in MPIS if mpi.name in {"mpich", "mpich-wheel"}]


def interpreter(version):
    """Return a Python of this version, if there is one."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    installed = sorted(Path(os.environ.get("PYENV_ROOT", "/nowhere"), "versions").glob(f"{version}.*/bin/python3"))
    return str(installed[-1]) if installed else shutil.which(f"python{version}")


@pytest.fixture(params=VERSIONS)
def recorded(request, tmp_path):
    """Return what records the program of nested functions, with options."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"Python {request.param} is not installed")
    mpi = next((mpi for mpi in MPICH if mpi.is_here), None)
    if mpi is None:
        pytest.skip("there is no MPICH")
    (library,) = libmpi.libraries_of([str(compiled(mpi, PROGRAMS / "ring.c", tmp_path))])

    def paths(*options):
        # The tests' own packages are another Python's.
        command = [*mpi.start(2), "env", "-u", "PYTHONPATH", python, PROGRAMS / "nested.py", library]
        done = record(command, tmp_path, "--mpi", library, "--force", *options)
        assert done.returncode == 0, done.stderr
        rows = whywait.analyze(tmp_path / "out").callpaths().to_pylist()
        # Only of the first thread is the program the root. It has the name of the script, not that of the interpreter.
        assert rows[0]["callpath"][0] == "nested"
        return {"/".join(row["callpath"]).removeprefix(f"{rows[0]['callpath'][0]}/") for row in rows}

    return paths


MAIN = "nested.py/main"


def test_functions_of_the_program(recorded):
    paths = recorded()
    barrier = "barrier/MPI_Barrier"
    assert {
        "nested.py/MPI_Init_thread",
        f"{MAIN}/Solver.step/{barrier}",
        f"{MAIN}/größe/größe.<locals>.<lambda>/{barrier}",
        f"{MAIN}/steps/{barrier}",
        f"{MAIN}/<string>/second/{barrier}",
        f"{MAIN}/<string>/third/{barrier}",
        f"{MAIN}/" + 8 * "deeper/" + barrier,
        # Of a thread.
        barrier,
        "nested.py/MPI_Finalize",
    } <= paths
    assert not [path for path in paths if "Thread" in path.split("/")[0] or "frozen" in path]


def test_functions_of_all_packages(recorded):
    assert "Thread._bootstrap/Thread._bootstrap_inner/Thread.run/barrier/MPI_Barrier" in recorded("--python=all")


def test_no_functions_of_python(recorded):
    assert "MPI_Barrier" in recorded("--python=off")
    assert not [path for path in recorded("--python=off") if "main" in path]
