"""One-sided programs wait as long as their own clocks say: programs/truth.c."""

import pytest

from . import truth
from .mpis import on_schedule

CELLS = truth.cells()
# One for each way to wait, with MPIs that need their targets and do not mind a busy machine.
CHEAP = {
    ("mpich", "no shared memory", "flush"),
    ("mpich-wheel", "no shared memory", "lock"),
    ("openmpi", "osc pt2pt", "contention"),
    ("openmpi", "osc pt2pt", "request"),
    ("openmpi", "", "fence"),
    ("openmpi", "", "late_post"),
}


@pytest.mark.parametrize(
    ("mpi", "variant", "scenario"),
    [
        pytest.param(*cell, id="-".join(filter(None, (cell[0].name, *cell[1:]))).replace(" ", "_"),
                     marks=() if (cell[0].name, *cell[1:]) in CHEAP else pytest.mark.nightly)
        for cell in CELLS
    ],
)  # fmt: skip
def test_waits_are_as_long_as_the_program_says(mpi, variant, scenario, tmp_path):
    def check():
        measured = truth.measure(mpi, variant, scenario, tmp_path)
        assert measured.is_right, measured

    on_schedule(check)
