"""The traffic that an algorithm of a collective operation is expected to cause.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), section 3.9.3 and figure 3.13 (recursive doubling); table 3.6 and
appendix A have the names of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.counters.counters import Counters
from whywait.analysis.counters.spc import bare

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData

Messages = Callable[[int], "npt.NDArray[np.int64]"]


def recursive_doubling(processes: int) -> npt.NDArray[np.int64]:
    """Return how often each rank exchanges messages in one MPI_Allreduce by recursive doubling, as Open MPI does it.

    Let N' be the largest power of two up to the number of processes N. The first N - N' even ranks send their data to
    their neighbor and receive the result from it. The others exchange data log2 N' times.

    >>> recursive_doubling(6).tolist()
    [1, 3, 1, 3, 2, 2]

    Parameters
    ----------
    processes
        The number of processes, at least 1.
    """
    rounds = processes.bit_length() - 1
    rest = processes - (1 << rounds)
    found = np.full(processes, rounds, dtype=np.int64)
    found[0 : 2 * rest : 2] = 1
    found[1 : 2 * rest : 2] = rounds + 1
    return found


def binomial_tree(processes: int) -> npt.NDArray[np.int64]:
    """Return how many messages each rank sends or receives in a binomial tree with rank 0 as root.

    The same for a broadcast, in which data go down the tree, and a reduction, in which they go up: one message with the
    parent, and one with each child. Rank v has the children v + 2**k below its lowest bit.

    >>> binomial_tree(6).tolist()
    [3, 1, 2, 1, 2, 1]

    Parameters
    ----------
    processes
        The number of processes, at least 1.
    """
    ranks = np.arange(processes)
    found = (ranks > 0).astype(np.int64)
    step = 1
    while step < processes:
        parents = ranks[(ranks % (2 * step) == 0) & (ranks + step < processes)]
        found[parents] += 1
        step *= 2
    return found


def ring(processes: int) -> npt.NDArray[np.int64]:
    """Return how often each rank passes a part on in one MPI_Allreduce by a ring: N - 1 to reduce, N - 1 to gather.

    >>> ring(6).tolist()
    [10, 10, 10, 10, 10, 10]

    Parameters
    ----------
    processes
        The number of processes, at least 1.
    """
    return np.full(processes, 2 * (processes - 1), dtype=np.int64)


def rabenseifner(processes: int) -> npt.NDArray[np.int64]:
    """Return how often each rank exchanges messages in one MPI_Allreduce by Rabenseifner's algorithm.

    A reduce-scatter by recursive halving and an allgather by recursive doubling, log2 N' exchanges each, among the
    largest power of two N' up to the number of processes N. Of the first N - N' pairs, the even ranks hand their data
    to the odd ones before, and get the result after (two messages). So it is twice what recursive doubling does.

    >>> rabenseifner(6).tolist()
    [2, 6, 2, 6, 4, 4]

    Parameters
    ----------
    processes
        The number of processes, at least 1.
    """
    return 2 * recursive_doubling(processes)


#: The algorithms that are known, with the MPI call that they implement, and what they do in one operation.
ALGORITHMS: dict[str, tuple[str, Messages]] = {
    "recursive-doubling": ("MPI_Allreduce", recursive_doubling),
    "ring": ("MPI_Allreduce", ring),
    "rabenseifner": ("MPI_Allreduce", rabenseifner),
    "binomial-bcast": ("MPI_Bcast", binomial_tree),
    "binomial-reduce": ("MPI_Reduce", binomial_tree),
}


def expected_traffic(result: ResultData, algorithm: str) -> list[dict[str, Any]]:
    """Return the expected traffic of each rank if all operations of the run use one algorithm on all processes.

    Parameters
    ----------
    result
        The result.
    algorithm
        One of `ALGORITHMS`.

    Returns
    -------
    list of dict
        ``rank``, ``round_trips`` (in one operation), ``operations`` (calls of the rank), ``expected`` (round trips in
        all operations), and ``BYTES_SENT_MPI`` (bytes, as recorded by Open MPI; None if they are not).
    """
    places, tree = result.places, result.tree
    call, messages = ALGORITHMS[algorithm]
    is_call = np.array([kind.name.upper().rstrip("_") == call.upper() for kind in tree.kinds])
    visits = result.profile.cells("visits")
    position, location = np.divmod(visits.key, len(places))
    region = np.array(tree.region_rows, dtype=np.int64)[tree.preorder[position]]
    calls = is_call[region] if visits.key.size else np.zeros(0, dtype=np.bool_)
    trips = messages(max(1, int(places.rank.max()) + 1))
    operations = np.bincount(places.rank[location[calls]], visits.value[calls], minlength=trips.size)
    counter = next((one for name, one in Counters(result).items() if bare(name) == "BYTES_SENT_MPI"), None)
    sent = {} if counter is None else {row["rank"]: row["value"] for row in counter.by_rank().to_pylist()}
    return [
        {"rank": rank, "round_trips": trip, "operations": round(count), "expected": trip * round(count)}
        | {"BYTES_SENT_MPI": sent.get(rank)}
        for rank, (trip, count) in enumerate(zip(trips.tolist(), operations.tolist(), strict=True))
    ]
