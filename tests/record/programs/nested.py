"""Calls of MPI from functions of Python, through ctypes: for interpreters without mpi4py, and MPICH's handles."""

import ctypes
import functools
import sys
import threading

ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)
WORLD = 0x44000000


def barrier():
    mpi.MPI_Barrier(WORLD)


class Solver:
    def step(self):
        barrier()


def deeper(levels):
    if levels:
        return deeper(levels - 1)
    return barrier()


def größe():  # noqa: PLC2401 - a name that is not ASCII
    functools.reduce(lambda *_: barrier(), [1, 2, 3])


def steps():
    for _ in range(2):
        yield barrier()


def main():
    solver = Solver()
    for _ in range(3):
        solver.step()
    deeper(20)
    größe()
    list(steps())
    thread = threading.Thread(target=barrier)
    thread.start()
    thread.join()
    # Other code at the addresses of code that is gone.
    for name in ("first", "second", "third"):
        exec(f"def {name}(): barrier()\n{name}()", {"barrier": barrier})  # noqa: S102


level = ctypes.c_int()
mpi.MPI_Init_thread(None, None, 3, ctypes.byref(level))
main()
mpi.MPI_Finalize()
