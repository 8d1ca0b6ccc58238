"""Computes in functions of Python and below them, without mpi4py or numpy, for interpreters without packages."""

import ctypes
import sys
import time
import zlib

ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)
WORLD = 0x44000000
DATA = bytes(range(256)) * 2000


def until(part, seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        part()


class Solver:
    def count(self):
        return sum(number * number % 7 for number in range(20_000))

    def squeeze(self):
        zlib.compress(DATA, 9)


def main(seconds):
    solver = Solver()
    for part in (solver.count, solver.squeeze):
        until(part, seconds)
        mpi.MPI_Barrier(WORLD)


mpi.MPI_Init(None, None)
main(float(sys.argv[2]))
mpi.MPI_Finalize()
