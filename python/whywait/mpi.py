"""Distribute an analysis over several processes: ``mpiexec -n K whywait analyze TRACE``.

MPI is used only if ``mpiexec`` started several processes, according to the environment. Each process reads and analyzes
its part of the run; data for other processes is exchanged here, as bytes. All processes take part in the same exchanges
in the same order, so an error on one of them is reported in the next exchange and raised on all.
"""

from __future__ import annotations

import os
import pickle
import struct
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from typing_extensions import Buffer

# How launchers pass the number of processes and the rank: Open MPI, PMI (MPICH, Intel MPI, ...), Slurm's srun.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")

# Bytes of the first message: the length of the parcel and its first bytes. Most parcels fit.
_HEAD = 1024
_LENGTH = struct.Struct("=q")
_INLINE = _HEAD - _LENGTH.size
# Bytes of each further message: MPI counts are limited to 2^31 - 1.
_SLICE = 1 << 30
# Seconds of busy waiting before sleeping: other processes need the processor, too.
_PATIENCE = 2e-4


def started() -> int:
    """Return the number of processes that were started together, according to the environment; 1 without a launcher."""
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return next((int(size) for size in sizes if size.isdecimal()), 1)


def first() -> bool:
    """Whether this process is the first of those started together: the one that prints and writes."""
    ranks = (os.environ.get(name, "") for name in _RANKS)
    return started() == 1 or next((int(rank) for rank in ranks if rank.isdecimal()), 0) == 0


def leave() -> None:
    """Make this process analyze runs on its own from now on."""
    for name in _SIZES:
        os.environ.pop(name, None)


def ranks() -> Ranks | None:
    """Return the processes that were started together; None if there is only this one.

    Raises
    ------
    whywait.UsageError
        If there are several, but MPI is missing or a different MPI started them.
    """
    return _connect() if started() > 1 else None


@cache
def _connect() -> Ranks:
    from whywait._native import UsageError

    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        text = f"{started()} processes were started, but MPI is missing ({error}): pip install 'whywait[mpi]'"
        raise UsageError(text) from error
    if started() != MPI.COMM_WORLD.size:
        library = MPI.Get_library_version().split("\n", 1)[0].rstrip("\0 :")
        text = (
            f"{started()} processes were started, but mpi4py uses a different MPI and sees {MPI.COMM_WORLD.size}: "
            f"start them with the mpiexec of {library}"
        )
        raise UsageError(text)
    return Ranks(MPI.COMM_WORLD.Dup())


class Ranks:
    """The processes of an analysis.

    As a context manager, which all processes leave together, it turns an error on one process into an error on all: the
    others get it in their next exchange.

    Parameters
    ----------
    comm
        A communicator used for nothing else, as of ``mpi4py``.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.size: int = comm.size
        self.rank: int = comm.rank
        self._raised: BaseException | None = None
        self._interrupted = False

    def deliver(self, parcels: Sequence[Buffer]) -> list[Buffer]:
        """Send the i-th parcel to process i.

        Parameters
        ----------
        parcels
            One for each process.

        Returns
        -------
        list of Buffer
            What each process has sent; the parcel of this process for itself, unchanged.
        """
        from mpi4py import MPI

        outgoing = [memoryview(parcel) for parcel in parcels]
        heads = bytearray(self.size * _HEAD)
        for begin, parcel in zip(range(0, len(heads), _HEAD), outgoing, strict=True):
            heads[begin : begin + _HEAD] = _LENGTH.pack(len(parcel)) + parcel[:_INLINE].tobytes().ljust(_INLINE, b"\0")
        arrived = self._heads(heads)
        requests = []
        received = list(parcels)
        for rank in range(self.size):
            if rank == self.rank:
                continue
            begin = rank * _HEAD
            (length,) = _LENGTH.unpack_from(arrived, begin)
            # The type stub does not say that this is a buffer.
            buffer: Any = MPI.buffer.allocate(length)
            received[rank] = buffer
            begin += _LENGTH.size
            buffer[:_INLINE] = arrived[begin : begin + min(length, _INLINE)]
            requests += [self._comm.Irecv(part, rank) for part in _slices(memoryview(buffer))]
            requests += [self._comm.Isend(part, rank) for part in _slices(outgoing[rank])]
        if requests:
            self._wait(lambda: MPI.Request.Testall(requests))
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt
        return received

    def _heads(self, heads: bytearray, error: BaseException | None = None) -> bytearray:
        """Exchange the first bytes of the parcels; a process that failed sends a length of -1 instead."""
        begins = range(0, len(heads), _HEAD)
        if error is not None:
            for begin in begins:
                _LENGTH.pack_into(heads, begin, -1)
        arrived = bytearray(len(heads))
        request = self._comm.Ialltoall(heads, arrived)
        self._wait(request.Test)
        failed = [rank for rank, begin in enumerate(begins) if _LENGTH.unpack_from(arrived, begin)[0] < 0]
        if failed:
            self._fail(failed, error)
        return arrived

    def _fail(self, failed: list[int], own: BaseException | None) -> None:
        """Raise the error of the first failed process on all processes."""
        errors = self._comm.allgather(None if own is None else _pickled(own))
        error: BaseException = own if failed[0] == self.rank and own else pickle.loads(errors[failed[0]])  # noqa: S301
        if len(failed) < self.size:
            error.add_note(f"at rank {failed[0]} of the analysis")
        self._raised = error
        raise error

    def _wait(self, is_done: Callable[[], bool]) -> None:
        """Wait for messages without occupying the processor for long; Ctrl-C is deferred until they are there."""
        begin = time.perf_counter()
        while True:
            try:
                while not is_done():
                    waited = time.perf_counter() - begin
                    time.sleep(0 if waited < _PATIENCE else min(waited / 32, 1e-3))
            except KeyboardInterrupt:
                # Leaving now would leave the others behind: all learn of it in the next exchange.
                self._interrupted = True
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or error is not self._raised:
            self._heads(bytearray(self.size * _HEAD), error)


def _slices(parcel: memoryview) -> list[memoryview]:
    """Divide the part that does not fit into the first message."""
    return [parcel[begin : begin + _SLICE] for begin in range(_INLINE, len(parcel), _SLICE)]


def _pickled(error: BaseException) -> bytes:
    try:
        data = pickle.dumps(error)
        pickle.loads(data)  # noqa: S301
    except Exception:  # noqa: BLE001  (an error may hold anything that cannot be pickled)
        data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return data
