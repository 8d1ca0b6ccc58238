"""Heat in a plate, solved by Jacobi iterations: rows are shared among the ranks, unevenly, so some wait for others.

whywait record mpiexec -n 4 python -m whywait.demo.heat
"""

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

Plate = NDArray[np.float64]

COLUMNS, ROWS, ITERATIONS = 2000, 240, 200

comm = MPI.COMM_WORLD
up = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
down = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL


def share_rows() -> Plate:
    """Return this rank's rows between two rows of edges; the last rank has three times the rows of the others."""
    rows = ROWS // (comm.size + 2) * (3 if comm.rank == comm.size - 1 else 1)
    plate = np.zeros((rows + 2, COLUMNS))
    if comm.rank == 0:
        plate[0] = 100.0
    return plate


def exchange_edges(plate: Plate) -> None:
    """Send the outermost rows to the neighbors, and receive theirs."""
    comm.Sendrecv(plate[1], up, 0, plate[-1], down, 0)
    comm.Sendrecv(plate[-2], down, 1, plate[0], up, 1)


def relax(plate: Plate) -> float:
    """Compute one iteration, and return the largest change."""
    inner = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
    change = np.abs(inner - plate[1:-1, 1:-1]).max()
    plate[1:-1, 1:-1] = inner
    return float(change)


def main() -> None:
    """Solve the equation."""
    plate = share_rows()
    largest = 0.0
    for iteration in range(ITERATIONS):
        exchange_edges(plate)
        change = relax(plate)
        if iteration % 10 == 0:
            largest = comm.allreduce(change, MPI.MAX)
    if comm.rank == 0:
        print(f"largest change: {largest:g}")


if __name__ == "__main__":
    main()
