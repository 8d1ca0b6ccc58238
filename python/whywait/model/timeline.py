"""The timeline of a run: shares of classes in bins of time, and individual items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree

#: Classes of activities, in the order of the picture from the bottom up: name, text, and the masks of their call
#: paths. The first matching mask counts; waiting is part of all of them and comes last.
CLASSES = (
    ("work", "Computation", ("opencl_kernel_executions", "cuda_kernel_executions", "hip_kernel_executions")),
    ("overhead", "Measurement", ("overhead",)),
    ("devices", "Devices", ("openacc", "opencl", "cuda", "hip")),
    ("io", "I/O", ("io", "mpi_file_individual", "mpi_file_collective")),
    ("threads", "Threads", ("omp_sync_ebarrier", "omp_sync_ibarrier", "omp_sync_critical", "omp_sync_lock_api",
                            "omp_sync_ordered", "omp_sync_taskwait", "omp_task_creation", "omp_flush", "pthread_mgmt",
                            "pthread_sync_mutex", "pthread_sync_condition", "pthread_sync_barrier")),
    ("p2p", "Point to point", ("mpi_comm_p2p",)),
    ("collective", "Collective", tuple(f"{library}_{kind}_collective" for library in ("mpi", "shmem", "armci", "pgas")
                                       for kind in ("sync", "comm"))),
    ("onesided", "One-sided", ("mpi_sync_rma_active", "mpi_sync_rma_passive", "mpi_comm_rma", "shmem_sync_rma",
                               "shmem_comm_rma", "armci_sync_rma", "armci_comm_rma", "pgas_sync_rma", "pgas_comm_rma")),
    ("library", "Other library calls", ("mpi", "shmem", "armci", "pgas", "other_communication")),
)  # fmt: skip
WAITING = ("waiting", "Waiting")
#: The class of creating and joining teams of threads.
MANAGEMENT = [name for name, *_ in CLASSES].index("threads")
#: The value that stands for a complete bin, on all locations of a row.
WHOLE = 255


class Level(NamedTuple):
    """Shares of classes in bins of time.

    Attributes
    ----------
    merged
        Number of neighboring locations per row.
    rows, bins
        How many there are.
    width
        Of a bin, in seconds.
    shares
        By class, row and bin; 255 is the complete bin.
    """

    merged: int
    rows: int
    bins: int
    width: float
    shares: npt.NDArray[np.uint8]


class Courses(NamedTuple):
    """Counters in bins of time.

    Attributes
    ----------
    merged
        Neighboring locations of a row.
    rows, bins
        How many there are.
    width
        Of a bin, in seconds.
    values
        By counter, row and bin: mean of a level, or growth of a total per second; NaN if unknown.
    """

    merged: int
    rows: int
    bins: int
    width: float
    values: npt.NDArray[np.float32]


class Timeline(NamedTuple):
    """A run over time.

    Attributes
    ----------
    levels
        The shares at several resolutions.
    calls
        Individual calls: ``location``, ``callpath``, ``enter``, ``leave``, and ``is_management``: whether it is the
        creation, or the end, of the team of a parallel region; all or none.
    waits
        Selected waits, or parts of them: ``wait`` (the row among the wait states), ``begin``, and ``end``.
    messages, transfers, tasks
        Selected ones: ``from_location``, ``to_location``, ``start``, ``end``, ``bytes``, ``waiting``; tasks are those
        that start on another thread than the one that creates them.
    locks
        Selected times in which threads own locks that others wait for: ``location``, ``lock`` (its number in the
        process), ``callpath``, ``begin``, ``end``.
    totals
        Total numbers of ``calls``, ``waits``, ``messages``, ``transfers``, ``tasks``, and ``locks``.
    counters
        The counters of the trace, if any.
    """

    levels: tuple[Level, ...]
    calls: pa.Table
    waits: pa.Table
    messages: pa.Table
    transfers: pa.Table
    tasks: pa.Table
    locks: pa.Table
    totals: dict[str, int]
    counters: Courses | None = None


def from_native(built: dict[str, Any]) -> Timeline:
    """Convert the timeline of the native module."""
    planes = len(CLASSES) + 1
    levels = []
    for level in built["levels"]:
        shape = planes, level["rows"], level["bins"]
        shares = np.frombuffer(level["shares"], np.uint8).reshape(shape)
        levels.append(Level(level["merged"], level["rows"], level["bins"], level["width"], shares))
    single = {name: pa.table(built[name][0]) for name in ("calls", "waits", "messages", "transfers", "tasks", "locks")}
    return Timeline(tuple(levels), **single, totals={name: built[name][1] for name in single})


def classes(tree: CallTree) -> npt.NDArray[np.uint8]:
    """Return the class of each call path, by number."""
    by_position = np.zeros(len(tree), np.uint8)
    # In reverse, so that the first matching class takes precedence.
    for number, (_, _, masks) in reversed(list(enumerate(CLASSES))):
        for mask in masks:
            by_position[tree.mask(mask)] = number
    found = np.zeros(len(tree), np.uint8)
    found[tree.preorder] = by_position
    return found
