"""Co-Array Fortran (thesis, section 3.1): OpenCoarrays runs on MPI, so its programs are recorded as programs of MPI."""

import shutil
import subprocess

import pytest
import whywait
from whywait.bench.measures import by

from .mpis import MPIS, PROGRAMS, record

OPEN_MPI = next(mpi for mpi in MPIS if mpi.name == "openmpi")
IMAGES, STEPS = 3, 5


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    if shutil.which("caf") is None or not OPEN_MPI.is_here:
        pytest.skip("OpenCoarrays is not installed (caf)")
    directory = tmp_path_factory.mktemp("coarray")
    program = directory / "coarray"
    command = ["caf", "-g", "-O1", str(PROGRAMS / "coarray.f90"), "-o", str(program)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=120)
    done = record([*OPEN_MPI.start(IMAGES), str(program)], directory)
    assert done.returncode == 0, done.stderr
    return whywait.analyze(directory / "out")


def test_synchronizations_and_accesses_are_calls_of_mpi(result):
    count = {name: value for (name,), value in by(result, "visits", "callpath").items()}
    # Of each image, twice in a step, and at the end; the first and the last image have one neighbor.
    assert count["MPI_Get"] >= STEPS * (2 * IMAGES - 2)
    assert count["MPI_Barrier"] >= IMAGES * (2 * STEPS + 1)
    assert count["MPI_Win_lock"] == count["MPI_Win_unlock"] > count["MPI_Get"]
    assert count.get("MPI_Allreduce", 0) + count.get("MPI_Reduce", 0) >= IMAGES


def test_statements_are_functions_of_the_library(result):
    names = {name for path in result.callpaths()["callpath"].to_pylist() for name in path}
    assert {"_gfortran_caf_sync_all", "_gfortran_caf_get", "_gfortran_caf_co_sum"} <= names


def test_bytes_of_remote_reads_are_counted(result):
    read = result.metrics["bytes_get"].total
    assert read >= 4 * STEPS * (2 * IMAGES - 2)
    assert result.metrics["mpi_rma_synchronization"].total > 0
