"""Efficiencies of hybrid programs: which part processes lose, and which their threads.

The hybrid metrics of the POP project (https://co-design.pop-coe.eu/metrics/), in both models. With N threads of a
process, the run time R of the longest process, o its time outside of communication on the master thread, U the
computation of all its threads and S what of it the master computes outside of parallel regions, where its other threads
have nothing to do::

    parallel  = sum U / sum N R        process = sum N o / sum N R        thread = sum U / sum N o

*Multiplicative*: an efficiency is the product of its parts; each is a share of what the one before left. *Additive*:
what each part loses is a share of the same whole, ``sum N R``, and the losses of the parts add up to that of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from whywait.model.profile import Profile
    from whywait.model.tables import Locations

Model = Literal["multiplicative", "additive"]

_LIBRARIES = ("mpi", "shmem", "armci")


class Shares(NamedTuple):
    """What there is and what is lost on the way from all processor time to computation, in seconds.

    Attributes
    ----------
    whole
        All processor time, ``sum N R``.
    balanced
        What would be left if all processes were outside of communication as long as the one that is so longest.
    outside
        What is left outside of communication, ``sum N o``.
    parallel
        What is left where all threads have something to do.
    computation
        What is left of that, ``sum U``.
    """

    whole: float
    balanced: float
    outside: float
    parallel: float
    computation: float


def shares(profile: Profile, places: Locations, positions: Iterable[int] | None = None) -> Shares | None:
    """Add up what hybrid efficiencies follow from.

    Parameters
    ----------
    profile
        The severities.
    places
        The locations.
    positions
        The call paths that count, with all below them; None for all.

    Returns
    -------
    Shares or None
        None for a run without communication or without teams of threads.
    """
    tree = profile.tree
    communicates = any(name in profile.metrics and profile.total(name) > 0 for name in _LIBRARIES)
    if not tree.parallel.any() or not communicates:
        return None
    masters = np.flatnonzero(places.works & (places.thread == 0))
    if not (places.works & (places.thread > 0)).any() or not masters.size:
        return None
    ranks = places.rank[masters]
    threads = np.array([np.count_nonzero(places.works & (places.rank == rank)) for rank in ranks.tolist()])
    kept = np.ones(len(tree), np.bool_)
    if positions is not None:
        kept[:] = False
        for position in positions:
            kept[position : tree.end[position]] = True

    def at(name: str, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        if name not in profile.metrics:
            return np.zeros(profile.locations)
        cells = profile.cells(name)
        here = inside[cells.key // profile.locations]
        return sum_at(cells.key[here] % profile.locations, cells.value[here], profile.locations)

    elapsed = at("execution", kept)[masters]
    outside = elapsed - sum(at(name, kept)[masters] for name in _LIBRARIES)
    serial = at("comp", kept & ~tree.parallel)[masters]
    run = float(elapsed.max())
    return Shares(
        whole=float(threads.sum()) * run,
        balanced=float(threads.sum()) * float(outside.max()),
        outside=float((threads * outside).sum()),
        parallel=float((threads * outside - (threads - 1) * serial).sum()),
        computation=float(at("comp", kept)[places.works].sum()),
    )


#: Name, what it is called, and the fields of `Shares` that it compares: what is left, and of what.
EFFICIENCIES = (
    ("hybrid_parallel_efficiency", "Hybrid parallel efficiency", "computation", "whole"),
    ("process_efficiency", "Process efficiency", "outside", "whole"),
    ("process_load_balance", "Process load balance", "outside", "balanced"),
    ("process_communication_efficiency", "Process communication efficiency", "balanced", "whole"),
    ("thread_efficiency", "Thread efficiency", "computation", "outside"),
    ("serial_region_efficiency", "Serial region efficiency", "parallel", "outside"),
    ("parallel_region_efficiency", "Parallel region efficiency", "computation", "parallel"),
)


def value(found: Shares, left: str, of: str, model: Model) -> float | None:
    """Return an efficiency by one of the models; None where it would be a division by nothing."""
    first, second = getattr(found, of), getattr(found, left)
    if model == "multiplicative":
        return second / first if first > 0 else None
    return 1 - (first - second) / found.whole if found.whole > 0 else None
