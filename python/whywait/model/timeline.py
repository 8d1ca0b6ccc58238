"""A run over time, small enough for a picture: shares of classes in bins of time, and what is shown singly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree

#: What a location can be doing, in the order of the picture from the bottom up: name, text, and the masks of its call
#: paths. The first mask that fits counts; waiting is part of all of them, and comes last.
CLASSES = (
    ("work", "Computation", ()),
    ("overhead", "Measurement", ("overhead",)),
    ("devices", "Accelerators", ("openacc", "opencl", "cuda", "hip")),
    ("threads", "Threads", ("omp_sync_ebarrier", "omp_sync_ibarrier", "omp_sync_critical", "omp_sync_lock_api",
                            "omp_sync_ordered", "omp_sync_taskwait", "omp_flush", "pthread_mgmt", "pthread_sync_mutex",
                            "pthread_sync_condition")),
    ("p2p", "Point to point", ("mpi_comm_p2p",)),
    ("collective", "Collective", tuple(f"{library}_{kind}_collective" for library in ("mpi", "shmem", "armci")
                                       for kind in ("sync", "comm"))),
    ("onesided", "One-sided", ("mpi_sync_rma_active", "mpi_sync_rma_passive", "mpi_comm_rma", "shmem_sync_rma",
                               "shmem_comm_rma", "armci_sync_rma", "armci_comm_rma")),
    ("library", "Other communication", ("mpi", "shmem", "armci")),
)  # fmt: skip
WAITING = ("waiting", "Waiting")
#: A share of all of a bin, on all locations of a row.
WHOLE = 255


class Level(NamedTuple):
    """Shares of classes in bins of time.

    Attributes
    ----------
    merged
        Neighbouring locations of a row.
    rows, bins
        How many there are.
    width
        Of a bin, in seconds.
    shares
        By class, row and bin; 255 is all of it.
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
        By counter, row and bin: mean of a level, or what a total grows by in a second; not a number if nobody knows.
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
        The same at several resolutions.
    calls
        Single calls: ``location``, ``callpath``, ``enter``, ``leave``; all or none.
    waits
        Those that were chosen: ``wait`` (the row among the wait states) and ``begin``.
    messages, transfers
        Those that were chosen: ``from_location``, ``to_location``, ``start``, ``end``, ``bytes``, ``waiting``.
    totals
        How many ``calls``, ``waits``, ``messages`` and ``transfers`` there are in all.
    counters
        The counters of the trace, if it has some.
    """

    levels: tuple[Level, ...]
    calls: pa.Table
    waits: pa.Table
    messages: pa.Table
    transfers: pa.Table
    totals: dict[str, int]
    counters: Courses | None = None


def made(built: dict[str, Any]) -> Timeline:
    """Return what the native module makes, under its names."""
    planes = len(CLASSES) + 1
    levels = []
    for level in built["levels"]:
        shape = planes, level["rows"], level["bins"]
        shares = np.frombuffer(level["shares"], np.uint8).reshape(shape)
        levels.append(Level(level["merged"], level["rows"], level["bins"], level["width"], shares))
    single = {name: pa.table(built[name][0]) for name in ("calls", "waits", "messages", "transfers")}
    return Timeline(tuple(levels), **single, totals={name: built[name][1] for name in single})


def classes(tree: CallTree) -> npt.NDArray[np.uint8]:
    """Return the class of each call path, by number."""
    by_position = np.zeros(len(tree), np.uint8)
    # From the last, so that the first has the last word.
    for number, (_, _, masks) in reversed(list(enumerate(CLASSES))):
        for mask in masks:
            by_position[tree.mask(mask)] = number
    found = np.zeros(len(tree), np.uint8)
    found[tree.preorder] = by_position
    return found
