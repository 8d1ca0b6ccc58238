"""What the recorder adds to a call, in instructions: these do not vary with the load of the machine."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from .mpis import MPIS

BENCH = Path(__file__).resolve().parents[2] / "benches" / "record.py"
OPEN_MPI = next(mpi for mpi in MPIS if mpi.name == "openmpi")
# Of MPI_Allreduce with a call path of 13 frames, built with `--profile ci`. Whoever makes it cheaper lowers the figure.
ADDED = 680
TOLERANCE = 0.05


def test_a_call_takes_no_more_instructions_than_it_did(recorder, tmp_path):
    if shutil.which("valgrind") is None or not OPEN_MPI.is_here:
        pytest.skip("valgrind, or Debian's Open MPI, is not installed")
    specification = importlib.util.spec_from_file_location("record_bench", BENCH)
    bench = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(bench)
    program = tmp_path / "record"
    subprocess.run([OPEN_MPI.compiler, "-O2", "-o", program, BENCH.with_suffix(".c")], check=True)
    recorded = bench.environment(recorder, tmp_path / "spool", callpaths=True)
    case, frames = bench.CASES["MPI_Allreduce"][0], bench.FRAMES["13 frames"]
    alone, added = (bench.instructions([str(program)], case, frames, 4000, variables) for variables in ({}, recorded))
    assert added - alone <= ADDED * (1 + TOLERANCE)
