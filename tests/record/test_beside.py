"""The recorder changes nothing: each program does the same alone and recorded (tests/record/beside.py)."""

import re
from dataclasses import replace

import pytest

from .beside import SUBJECTS, differences

# What one process can see of itself, and threads; the others every night.
SOON = {"beside", "threads", "files"}


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.name, marks=[] if one.name in SOON else pytest.mark.nightly) for one in SUBJECTS],
)
def test_a_run_beside_a_run(mpi, program, tmp_path):
    found = differences(program, mpi, tmp_path)
    if found is None:
        pytest.skip(f"{program.name} is not here, or not for {mpi.name}")
    assert {aspect: lines for aspect, lines in found.items() if lines} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("program", SUBJECTS, ids=lambda program: program.name)
def test_a_run_with_files_beside_a_run(mpi, program, tmp_path):
    found = differences(replace(program, recorded=(*program.recorded, "--groups=posix")), mpi, tmp_path)
    if found is None:
        pytest.skip(f"{program.name} is not here, or not for {mpi.name}")
    assert {aspect: lines for aspect, lines in found.items() if lines} == {}


# The handler of its signal, a stack for that where a thread has none, and events of perf.
SAMPLER = re.compile(r"SigCgt:|23 caught|stack|\d{3,} anon_inode:\[perf_event\]")


@pytest.mark.nightly
@pytest.mark.parametrize("program", SUBJECTS, ids=lambda program: program.name)
def test_a_sampled_run_beside_a_run(mpi, program, tmp_path):
    """What a program can see of a sampler is what it must have."""
    found = differences(replace(program, recorded=(*program.recorded, "--sample=1000")), mpi, tmp_path)
    if found is None:
        pytest.skip(f"{program.name} is not here, or not for {mpi.name}")
    others = {aspect: [line for line in lines if not SAMPLER.search(line)] for aspect, lines in found.items()}
    assert {aspect: lines for aspect, lines in others.items() if lines} == {}
