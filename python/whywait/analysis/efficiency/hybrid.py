"""Efficiencies of hybrid programs: losses due to processes and losses due to threads.

The hybrid metrics of the POP project, by both of its models: https://co-design.pop-coe.eu/metrics/, multiplicative
(``hm``) and additive (``ha``). Averages over processes weigh a process by its threads, as in POP's glossary.

At the level of processes, time in a parallel region is useful, whatever its threads do: communication in it is a loss
due to threads (POP, ``ha/process_efficiency``). So the time of a process is the time of its master thread without
communication outside parallel regions, but at least the computation of any of its threads.

The loss in parallel regions is split by what threads do there: six shares of the same whole, which add up to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.profile import Profile
    from whywait.model.tables import Locations

_TASKS = (
    "omp_ebarrier_task_wait",
    "omp_ibarrier_task_wait",
    "omp_taskwait_wait",
    "omp_taskgroup_wait",
    "omp_task_creation",
)
_CONTENTION = (
    "omp_lock_contention_critical",
    "omp_lock_contention_api",
    "omp_ordered_wait",
    "pthread_lock_contention_mutex_lock",
    "pthread_lock_contention_rwlock",
    "pthread_lock_contention_spin",
    "pthread_lock_contention_conditional",
)
_LIBRARIES = {"mpi": "MPI", "shmem": "OpenSHMEM", "armci": "ARMCI", "pgas": "GASPI and UPC"}


class Shares(NamedTuple):
    """Processor time (s) remaining after each kind of loss, down to computation.

    Attributes
    ----------
    whole
        All processor time: the run time of the longest process on all threads.
    longest
        The time left for threads if all processes spent as long outside communication as the longest one.
    outside
        The time left for threads: the time of processes outside communication, times their threads.
    parallel
        The part of ``outside`` in which all threads can work: without the idle time of threads while their master
        computes alone.
    busiest
        The computation if all threads computed as long as the one that computes longest.
    computation
        The computation.
    imbalance, contention, tasks, management, communication
        The time of threads in parallel regions in waits at barriers (without starvation); in waits for locks; in waits
        for tasks, starvation, and creation of tasks; in forks and joins; in communication.
    libraries
        The display names of the communication libraries that occur.
    capacity, serial, uneven, overhead
        For `TALP`: all processor time of each process, and the time of threads without computation and communication:
        outside parallel regions; in them, what a thread has more than the one that has least; and the least, on all
        threads.
    """

    whole: float
    longest: float
    outside: float
    parallel: float
    busiest: float
    computation: float
    imbalance: float
    contention: float
    tasks: float
    management: float
    communication: float
    libraries: str
    capacity: float
    serial: float
    uneven: float
    overhead: float

    @property
    def rest(self) -> float:
        """The other losses in parallel regions: completion, scheduling, threads that are not in the team."""
        known = self.imbalance + self.contention + self.tasks + self.management + self.communication
        return self.parallel - self.computation - known


def shares(profile: Profile, places: Locations, positions: Iterable[int] | None = None) -> Shares | None:
    """Compute the inputs of the hybrid efficiencies.

    Parameters
    ----------
    profile
        The severities.
    places
        The locations.
    positions
        The positions of the subtrees to include; None for all.

    Returns
    -------
    Shares or None
        None for a run without teams of threads.
    """
    tree = profile.tree
    # On an ideal network, communication may take no time.
    called = {kind.paradigm for kind in tree.kinds}
    libraries = [name for name in _LIBRARIES if name in called and name in profile.metrics]
    masters = np.flatnonzero(places.works & (places.thread == 0))
    has_teams = tree.parallel.any() and (places.works & (places.thread > 0)).any()
    if not has_teams or not masters.size:
        return None
    threads = np.array([np.count_nonzero(places.works & (places.rank == rank)) for rank in places.rank[masters]])
    kept = np.ones(len(tree), np.bool_)
    if positions is not None:
        kept[:] = False
        for position in positions:
            kept[position : tree.end[position]] = True

    def at(name: str, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        # Profiles have what Scalasca computes.
        if name not in profile.metrics:
            return np.zeros(profile.locations)
        cells = profile.cells(name)
        here = inside[cells.key // profile.locations]
        return sum_at(cells.key[here] % profile.locations, cells.value[here], profile.locations)

    alone = kept & ~tree.parallel
    elapsed = at("execution", kept)[masters]
    communication = np.sum([np.zeros(len(masters)), *(at(name, alone)[masters] for name in libraries)], axis=0)
    outside = elapsed - communication
    computation = at("comp", kept)[places.works]
    together = kept & tree.parallel

    def lost(*names: str) -> float:
        return sum(float(at(name, together)[places.works].sum()) for name in names)

    starved = lost("omp_ebarrier_starvation", "omp_ibarrier_starvation")
    missed = (threads - 1) * at("comp", alone)[masters]
    return Shares(
        whole=float(threads.sum() * elapsed.max()),
        longest=float(threads.sum() * outside.max()),
        outside=float((threads * outside).sum()),
        parallel=float((threads * outside - missed).sum()),
        busiest=float(threads.sum() * computation.max()),
        computation=float(computation.sum()),
        imbalance=lost("omp_ebarrier_wait", "omp_ibarrier_wait", "pthread_barrier_wait") - starved,
        contention=lost(*_CONTENTION),
        tasks=lost(*_TASKS) + starved,
        management=lost("omp_management"),
        communication=lost(*libraries),
        libraries=" and ".join(_LIBRARIES[name] for name in libraries),
        capacity=float((threads * elapsed).sum()),
        **_idle(tree, places, at, ("comp", *libraries), (masters, alone, together)),
    )


def _idle(
    tree: CallTree,
    places: Locations,
    at: Callable[[str, npt.NDArray[np.bool_]], npt.NDArray[np.float64]],
    busy: tuple[str, ...],
    part: tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
) -> dict[str, float]:
    """Return the time in which threads do nothing of use, by the reasons of `TALP`."""
    masters, alone, together = part
    found = {"serial": 0.0, "uneven": 0.0, "overhead": 0.0}
    inside = np.flatnonzero(together)
    # A parallel region that a call path is in, if it is not in another one.
    outermost = [position for position in inside if tree.above[position] < 0 or not together[tree.above[position]]]
    for region in (None, *outermost):
        here = alone
        if region is not None:
            here = np.zeros(len(tree), np.bool_)
            here[region : tree.end[region]] = True
            here &= together
        elapsed, useful = at("execution", here), np.sum([at(name, here) for name in busy], axis=0)
        for master in masters:
            own = np.flatnonzero(places.works & (places.rank == places.rank[master]))
            idle = np.maximum(elapsed[master] - useful[own], 0.0)
            if region is None:
                found["serial"] += float(idle.sum())
            else:
                found["overhead"] += float(idle.min() * len(own))
                found["uneven"] += float((idle - idle.min()).sum())
    return found


#: The multiplicative model: name, display name, and formula. The first is the product of the hybrid load
#: balance and communication efficiency, and of those of both paradigms.
MULTIPLICATIVE = (
    ("hybrid_parallel_efficiency", "Hybrid parallel efficiency", "computation / whole"),
    ("hybrid_load_balance", "Hybrid load balance", "computation / busiest"),
    ("hybrid_communication_efficiency", "Hybrid communication efficiency", "busiest / whole"),
    ("mpi_parallel_efficiency", "{} parallel efficiency", "outside / whole"),
    ("mpi_load_balance", "{} load balance", "outside / longest"),
    ("mpi_communication_efficiency", "{} communication efficiency", "longest / whole"),
    ("openmp_parallel_efficiency", "OpenMP parallel efficiency", "computation / outside"),
    ("openmp_load_balance", "OpenMP load balance", "computation / busiest / (outside / longest)"),
    ("openmp_communication_efficiency", "OpenMP communication efficiency", "busiest / longest"),
)
#: The additive model: each is one minus a share of the whole that is lost, and the losses of its parts add up to its
#: own.
ADDITIVE = (
    ("process_efficiency", "Process efficiency", "1 - (whole - outside) / whole"),
    ("process_load_balance", "Process load balance", "1 - (longest - outside) / whole"),
    ("process_communication_efficiency", "Process communication efficiency", "1 - (whole - longest) / whole"),
    ("thread_efficiency", "Thread efficiency", "1 - (outside - computation) / whole"),
    ("serial_region_efficiency", "Serial region efficiency", "1 - (outside - parallel) / whole"),
    ("parallel_region_efficiency", "Parallel region efficiency", "1 - (parallel - computation) / whole"),
)


#: The efficiencies of threads, which are those of a run without communication.
THREADS = ADDITIVE[3:]
#: The loss in parallel regions by its reason: shares of the whole.
LOSSES = (
    ("parallel_region_loss_imbalance", "Imbalance", "imbalance / whole"),
    ("parallel_region_loss_contention", "Contention", "contention / whole"),
    ("parallel_region_loss_tasks", "Tasks", "tasks / whole"),
    ("parallel_region_loss_management", "Management of teams", "management / whole"),
    ("parallel_region_loss_communication", "Communication", "communication / whole"),
    ("parallel_region_loss_rest", "Rest", "rest / whole"),
)


#: The OpenMP efficiencies of DLB's TALP (dlb-docs.readthedocs.io, POP metrics): the first is the product of the others.
TALP = (
    ("talp_parallel_efficiency", "OpenMP parallel efficiency", "(capacity - serial - uneven - overhead) / capacity"),
    ("talp_serialization_efficiency", "Serialization efficiency", "(capacity - serial) / capacity"),
    ("talp_load_balance", "Load balance", "(capacity - serial - uneven) / (capacity - serial)"),
    (
        "talp_scheduling_efficiency",
        "Scheduling efficiency",
        "(capacity - serial - uneven - overhead) / (capacity - serial - uneven)",
    ),
)


#: What a simulation on an ideal network adds below an efficiency. Its time is that of the longest process there, on all
#: threads, as `Shares.whole`. Products as above, or losses that add up.
SIMULATED = {
    "mpi_communication_efficiency": (
        ("mpi_serialization", "{} serialization", "longest / ideal"),
        ("mpi_transfer", "{} transfer", "ideal / whole"),
    ),
    "process_communication_efficiency": (
        ("process_serialization", "Process serialization", "1 - (ideal - longest) / whole"),
        ("process_transfer", "Process transfer", "1 - (whole - ideal) / whole"),
    ),
}


def simulated(whole: float, longest: float, ideal: float) -> dict[str, float | None]:
    """Return the efficiencies of `SIMULATED` by name; None for a division by zero."""
    return {
        "mpi_serialization": longest / ideal if ideal > 0 else None,
        "mpi_transfer": ideal / whole if whole > 0 else None,
        "process_serialization": 1 - (ideal - longest) / whole if whole > 0 else None,
        "process_transfer": 1 - (whole - ideal) / whole if whole > 0 else None,
    }


def values(found: Shares) -> dict[str, float | None]:
    """Return all efficiencies by name; None for a division by zero."""
    whole, longest, outside, parallel, busiest, computation = found[:6]

    def ratio(above: float, below: float) -> float | None:
        return above / below if below > 0 else None

    def without(loss: float) -> float | None:
        return 1 - loss / whole if whole > 0 else None

    return {
        "hybrid_parallel_efficiency": ratio(computation, whole),
        "hybrid_load_balance": ratio(computation, busiest),
        "hybrid_communication_efficiency": ratio(busiest, whole),
        "mpi_parallel_efficiency": ratio(outside, whole),
        "mpi_load_balance": ratio(outside, longest),
        "mpi_communication_efficiency": ratio(longest, whole),
        "openmp_parallel_efficiency": ratio(computation, outside),
        "openmp_load_balance": ratio(computation * longest, busiest * outside),
        "openmp_communication_efficiency": ratio(busiest, longest),
        "process_efficiency": without(whole - outside),
        "process_load_balance": without(longest - outside),
        "process_communication_efficiency": without(whole - longest),
        "thread_efficiency": without(outside - computation),
        "serial_region_efficiency": without(outside - parallel),
        "parallel_region_efficiency": without(parallel - computation),
        **{name: ratio(getattr(found, formula.split()[0]), whole) for name, _, formula in LOSSES},
        **talp(found.capacity, found.serial, found.uneven, found.overhead),
    }


def talp(capacity: float, serial: float, uneven: float, overhead: float) -> dict[str, float | None]:
    """Return the efficiencies of `TALP` by name; None for a division by zero."""
    parallel, balanced = capacity - serial, capacity - serial - uneven
    best = balanced - overhead
    return {
        "talp_parallel_efficiency": best / capacity if capacity > 0 else None,
        "talp_serialization_efficiency": parallel / capacity if capacity > 0 else None,
        "talp_load_balance": balanced / parallel if parallel > 0 else None,
        "talp_scheduling_efficiency": best / balanced if balanced > 0 else None,
    }


def inputs(found: Shares, formula: str) -> dict[str, float]:
    """Return the values of the names in a formula."""
    return {name: getattr(found, name) for name in re.findall("[a-z]+", formula)}
