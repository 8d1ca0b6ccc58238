"""Several processes share the work: ``mpiexec -n K whywait ...``.

MPI is used only if ``mpiexec`` started several processes, according to the environment. The first process leads: it
runs the command, or the program of the user. The others serve: they wait until it calls a native function that needs
all of them (`analyze`, `together`), and call the same one with the same arguments. Each process reads and keeps its
part of the run; inside such a call, data for other processes is exchanged here, as bytes. All processes take part in
the same exchanges in the same order, so an error on one of them is reported in the next exchange and raised on all.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import signal
import struct
import threading
import time
import weakref
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from types import TracebackType

    from typing_extensions import Buffer

P = ParamSpec("P")
T = TypeVar("T")

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
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        text = f"{started()} processes were started, but MPI is missing ({error}): pip install 'whywait[mpi]'"
        raise _native.UsageError(text) from error
    if started() != MPI.COMM_WORLD.size:
        library = MPI.Get_library_version().split("\n", 1)[0].rstrip("\0 :")
        text = (
            f"{started()} processes were started, but mpi4py uses a different MPI and sees {MPI.COMM_WORLD.size}: "
            f"start them with the mpiexec of {library}"
        )
        raise _native.UsageError(text)
    return Ranks(MPI.COMM_WORLD.Dup())


def analyze(
    run: _native.Run,
    *,
    memory: tuple[int | None, str | PathLike[str] | None] = (None, None),
    progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> _native.Analysis:
    """Analyze a run with all processes that were started together.

    Parameters
    ----------
    run
        The run. One that is not in files is analyzed by this process alone.
    memory
        The limit of the memory of each process in bytes, and the directory for what exceeds it.
    progress, options
        Those of ``whywait._native.analyze``.

    Returns
    -------
    whywait._native.Analysis
        The analysis at the first process; the others serve it and do not return.
    """
    team = ranks()
    if team is None or not (run.is_in_files or team.shares(run)):
        return _analyze(None, run, memory, options, progress)
    found: _native.Analysis = team.lead(_analyze, (run, memory, options), progress)
    return found


def serve() -> None:
    """Serve the first of the processes that were started together until it ends; the first goes on."""
    team = ranks()
    if team is None:
        return
    if team.rank > 0:
        team.serve()
    team.dismiss_at_exit()


def together(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call a native function that needs the events of an analysis, on all processes that share them.

    Parameters
    ----------
    function
        A method of something that they share, or a function with that as its first argument.
    *arguments, **options
        Its arguments; a ``progress`` is for this process only.

    Returns
    -------
    object
        What it returns at this process. All share it if it holds a part of the events.
    """
    team = ranks()
    if team is None or not any(map(is_shared, (getattr(function, "__self__", None), *arguments[:1]))):
        return function(*arguments, **options)
    own = {"progress": options.pop("progress")} if "progress" in options else {}
    found: T = team.lead(_call, (function, arguments, options), own)
    return found


def is_shared(thing: object) -> bool:
    """Whether something holds events that are in several processes."""
    team = ranks()
    return team is not None and team.shares(thing)


def _analyze(
    team: Ranks | None, run: _native.Run, memory: tuple[Any, Any], options: dict[str, Any], progress: Any = None
) -> _native.Analysis:
    _native.limit_memory(run, *memory, threads=options.get("threads"))
    return _native.analyze(run, ranks=team, progress=progress, **options)


def _call(
    _: Ranks,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    options: dict[str, Any],
    own: Mapping[str, Any] | None = None,
) -> Any:
    return function(*arguments, **options, **(own or {}))


#: What has a part at each process, unless it was made by one alone.
_SHARED = (_native.Analysis, _native.Simulator, _native.Simulation, _native.Run)


class _Pickler(pickle.Pickler):
    """Writes what is shared as its number, and other runs as their files."""

    def __init__(self, file: io.BytesIO, numbers: Mapping[Any, int]) -> None:
        super().__init__(file)
        self._numbers = numbers

    def persistent_id(self, thing: object) -> Any:
        if isinstance(thing, _SHARED) and (number := self._numbers.get(thing)) is not None:
            return number
        return thing.anchor_path if isinstance(thing, _native.Run) else None


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote."""

    def __init__(self, parcel: Buffer, shared: Mapping[int, Any]) -> None:
        super().__init__(io.BytesIO(parcel))
        self._shared = shared

    def persistent_load(self, name: Any) -> object:
        return self._shared[name] if isinstance(name, int) else _native.Run(name)


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
        # What is shared has numbers. The first process tells which of them it no longer has.
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._forgotten: list[int] = []
        self._next = 0
        # Threads lead in turn.
        self._lock = threading.Lock()
        self._is_served = False

    def shares(self, thing: object) -> bool:
        """Whether all processes have a part of something."""
        return isinstance(thing, _SHARED) and thing in self._numbers

    def lead(self, work: Callable[..., Any], arguments: Sequence[Any], *own: Any) -> Any:
        """Call a function of this module on all processes, at the first; what it makes of the events is shared.

        Parameters
        ----------
        work
            The function, whose first argument is these processes.
        arguments
            Its other arguments.
        *own
            More of them for this process only.

        Returns
        -------
        object
            What it returns at the first process.
        """
        with self._lock:
            number, self._next = self._next, self._next + 1
            with self:
                forgotten = list(self._forgotten)
                self._send((number, forgotten, work, arguments))
                del self._forgotten[: len(forgotten)]
                found = work(self, *arguments, *own)
            if isinstance(found, _SHARED):
                self._numbers[found] = number
                weakref.finalize(found, self._forgotten.append, number).atexit = False
        return found

    def serve(self) -> NoReturn:
        """Do what the first process leads in; end when it does."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            # Ctrl-C is an error like others: the first process ends all.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        shared: dict[int, Any] = {}
        is_dismissed = False
        while not is_dismissed:
            # The first process gets the error of any, and knows what to do.
            with suppress(BaseException):
                with self:
                    is_last = self._obey(_Unpickler(self.deliver([b""] * self.size)[0], shared).load(), shared)
                is_dismissed = is_last
        raise SystemExit(0)

    def _obey(self, request: Any, shared: dict[int, Any]) -> bool:
        """Do what the first process leads in; return whether that was the last request."""
        if request is None:
            return True
        number, forgotten, work, arguments = request
        for old in forgotten:
            shared.pop(old, None)
        found = work(self, *arguments)
        if isinstance(found, _SHARED):
            shared[number] = found
        return False

    def _send(self, request: Any) -> None:
        """Send a request to all that serve."""
        parcel = io.BytesIO()
        _Pickler(parcel, self._numbers).dump(request)
        self.deliver([b""] + [parcel.getvalue()] * (self.size - 1))

    def dismiss_at_exit(self) -> None:
        """Let those that serve end when this process does."""
        if not self._is_served:
            self._is_served = True
            atexit.register(self._dismiss)

    def _dismiss(self) -> None:
        is_dismissed = False
        while not is_dismissed:
            # Those that were interrupted meanwhile tell so first.
            with suppress(BaseException):
                with self:
                    self._send(None)
                is_dismissed = True

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
