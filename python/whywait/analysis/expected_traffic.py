"""The traffic that an algorithm of a collective operation is expected to cause.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), section 3.9.3 and figure 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.counters import Counters
from whywait.analysis.spc import bare

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData

#: The algorithms that are known, with the MPI call that they implement.
ALGORITHMS = {"recursive-doubling": "MPI_Allreduce"}


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
    is_call = np.array([kind.name.upper().rstrip("_") == ALGORITHMS[algorithm].upper() for kind in tree.kinds])
    visits = result.profile.cells("visits")
    position, location = np.divmod(visits.key, len(places))
    region = np.array(tree.region_rows, dtype=np.int64)[tree.preorder[position]]
    calls = is_call[region] if visits.key.size else np.zeros(0, dtype=np.bool_)
    trips = recursive_doubling(max(1, int(places.rank.max()) + 1))
    operations = np.bincount(places.rank[location[calls]], visits.value[calls], minlength=trips.size)
    counter = next((one for name, one in Counters(result).items() if bare(name) == "BYTES_SENT_MPI"), None)
    sent = {} if counter is None else {row["rank"]: row["value"] for row in counter.by_rank().to_pylist()}
    return [
        {"rank": rank, "round_trips": trip, "operations": round(count), "expected": trip * round(count)}
        | {"BYTES_SENT_MPI": sent.get(rank)}
        for rank, (trip, count) in enumerate(zip(trips.tolist(), operations.tolist(), strict=True))
    ]
