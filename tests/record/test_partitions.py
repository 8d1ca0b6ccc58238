"""Messages in partitions: who waits for one waits for the call that makes its last partition ready."""

import pytest
import whywait
from whywait.hypotheses import Cpu

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record

# The delay of partitions.c, in seconds.
U = 0.02
# In which call rank 0 waits in a case and how often for U, and the function and the call of rank 1 that it waits for.
CASES = [
    ("MPI_Wait", 4, "one_by_one", "MPI_Pready"),
    ("MPI_Wait", 2, "in_ranges", "MPI_Pready_range"),
    ("MPI_Wait", 2, "in_lists", "MPI_Pready_list"),
    ("MPI_Parrived (polling)", 4, "asked", "MPI_Pready"),
    ("MPI_Wait", 2, "ready", "MPI_Pready_range"),
]


@pytest.mark.parametrize("mpi", [mpi for mpi in MPIS if mpi.name.startswith("mpich")], ids=lambda mpi: mpi.name)
def test_a_receiver_waits_for_the_last_partition(mpi, tmp_path):
    if not mpi.is_here:
        pytest.skip(f"{mpi.name} is not installed")
    program = compiled(mpi, PROGRAMS / "partitions.c", tmp_path, "-pthread")

    def check():
        done = record([*mpi.start(2), program], tmp_path, "--force", "--threads")
        assert done.returncode == 0, done.stderr
        result = whywait.analyze(tmp_path / "out")
        rows = [row for row in result.wait_states(parts=False).to_pylist() if row["rank"] == 0]
        waits = sorted((row for row in rows if row["kind"] == "mpi_latesender"), key=lambda row: row["enter"])
        found = [(row["callpath"][-1], *row["cause_callpath"][-2:]) for row in waits]
        assert found == [(call, *cause) for call, _, *cause in CASES]
        assert not result.warnings
        for row, (_, delays, *_), took in zip(waits, CASES, map(float, done.stdout.split()), strict=True):
            assert delays * U - 0.002 < row["waiting"] < took, row
        # Half of all delays, or more where the machine was busy.
        sim = whywait.whatif(result, [Cpu(2.0, ranks="1")])
        assert sum(delays for _, delays, *_ in CASES) * U / 2 - 0.01 < sim.saved < sum(row["waiting"] for row in waits)

    on_schedule(check)
