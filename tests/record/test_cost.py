"""What the recorder adds to a call, in instructions: these do not vary with the load of the machine."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import whywait._native as native

from .mpis import MPIS, PROGRAMS, compiled

BENCH = Path(__file__).resolve().parents[2] / "benches" / "record.py"
OPEN_MPI = next(mpi for mpi in MPIS if mpi.name == "openmpi")
# Of MPI_Allreduce with a call path of 13 frames, built with `--profile ci`. Whoever makes it cheaper lowers the figure.
ADDED = 700
# Of the signal handler that takes a sample, with 15 frames on the stack.
SAMPLE = 3650
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


def test_a_sample_takes_no_more_instructions_than_it_did(recorder, tmp_path):
    if shutil.which("valgrind") is None or not OPEN_MPI.is_here:
        pytest.skip("valgrind, or Debian's Open MPI, is not installed")
    options = ("-DOMPI_SKIP_MPICXX", "-lstdc++", "-ldl")
    program = compiled(OPEN_MPI, PROGRAMS / "sampled.cc", tmp_path, *options)
    variables = {
        "LD_PRELOAD": str(recorder),
        "WHYWAIT_RECORD": str(tmp_path / "out"),
        "WHYWAIT_RECORD_OPTIONS": "sample=1000",
        **{f"OMPI_ALLOW_RUN_AS_ROOT{suffix}": "1" for suffix in ("", "_CONFIRM")},
    }
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"]
    command += ["--toggle-collect=*sampler::handler::take*", program, "frames", "500"]
    done = subprocess.run(command, env=os.environ | variables, check=True, capture_output=True, text=True)
    collected = int(re.findall(r"Collected : (\d+)", done.stderr)[-1])
    samples = native.finish_recording(tmp_path / "out", patience=10.0)["samples"]
    assert samples > 100
    assert SAMPLE / 2 < collected / samples <= SAMPLE * (1 + TOLERANCE)
