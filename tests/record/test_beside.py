"""The recorder changes nothing: each program does the same alone and recorded (tests/record/beside.py)."""

import pytest

from .beside import SUBJECTS, differences

# What one process can see of itself, and threads; the others every night.
SOON = {"beside", "threads"}


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.name, marks=[] if one.name in SOON else pytest.mark.nightly) for one in SUBJECTS],
)
def test_a_run_beside_a_run(mpi, program, tmp_path):
    found = differences(program, mpi, tmp_path)
    if found is None:
        pytest.skip(f"{program.name} is not here, or not for {mpi.name}")
    assert {aspect: lines for aspect, lines in found.items() if lines} == {}
