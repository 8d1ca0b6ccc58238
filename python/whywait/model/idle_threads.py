"""The allocation view: time of allocated processors that were idle because the program was not parallel enough.

The heuristic of Scalasca's remapper (option ``-s``). *Idle threads*: while a call path outside of parallel regions runs
on the master thread of a process, each of its other threads sleeps as long. *Limited parallelism*: where a thread
spends less time in an outermost parallel region than the master, because it is not in the team or left it early, it
sleeps for the difference. Both add to the time, which then is that of all processors from the begin to the end.

*Source*: specification.md#idle-threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from whywait.model.profile import Cells, add

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.profile import Profile
    from whywait.model.tables import Locations

SomeProfile = TypeVar("SomeProfile", bound="Profile")

NAMES = ("omp_idle_threads", "omp_limited_parallelism")

# Shorter differences are ignored (seconds).
_LEAST = 1e-10


def allocation(profile: SomeProfile, places: Locations) -> SomeProfile:
    """Return a profile with the time of idle threads added.

    Parameters
    ----------
    profile
        The severities, with ``time``.
    places
        The locations.

    Returns
    -------
    Profile
        The profile with ``omp_idle_threads`` and ``omp_limited_parallelism`` added, also to ``time``.
    """
    parallel = profile.tree.parallel
    masters, workers = _teams(places) if parallel.any() else (_NONE, _NONE)
    serial, limited = _serial(profile, parallel, masters, workers), _limited(profile, parallel, masters, workers)
    idle = add([(1, serial), (1, limited)])
    time = add([(1, profile.cells("time")), (1, idle)])
    return profile.extended({NAMES[0]: idle, NAMES[1]: limited, "time": time})


_NONE = np.empty(0, np.int64)


def _teams(places: Locations) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all threads except masters, and the master of each one's process."""
    (masters,) = np.nonzero(places.works & (places.thread == 0))
    (workers,) = np.nonzero(places.works & (places.thread > 0))
    ranks = places.rank[masters]
    order = np.argsort(ranks, kind="stable")
    at = np.searchsorted(ranks[order], places.rank[workers]).clip(max=max(0, ranks.size - 1))
    found = ranks[order][at] == places.rank[workers] if ranks.size else np.zeros(workers.size, np.bool_)
    return masters[order][at[found]], workers[found]


def _serial(
    profile: Profile, parallel: npt.NDArray[np.bool_], masters: npt.NDArray[np.int64], workers: npt.NDArray[np.int64]
) -> Cells:
    """Each worker sleeps while its master is outside of parallel regions."""
    cells = profile.cells("time")
    position, location = np.divmod(cells.key, max(profile.locations, 1))
    by_master = np.argsort(masters, kind="stable")
    first, end = (np.searchsorted(masters[by_master], location, side=side) for side in ("left", "right"))
    count = np.where(parallel[position], 0, end - first)
    # Worker number i of each cell's master, for all cells in turn.
    row = np.repeat(np.arange(count.size), count)
    nth = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    worker = workers[by_master][first[row] + nth]
    return _sorted_cells(position[row] * profile.locations + worker, cells.value[row])


def _limited(
    profile: Profile, parallel: npt.NDArray[np.bool_], masters: npt.NDArray[np.int64], workers: npt.NDArray[np.int64]
) -> Cells:
    """Each worker sleeps where its master is longer in a parallel region."""
    above = profile.tree.above
    (outermost,) = np.nonzero(parallel & ~np.where(above >= 0, parallel[above], False))
    keys, values = [_NONE], [np.empty(0, np.float64)]
    for position, row in profile.inclusive_rows("time", outermost.tolist()):
        missing = row[masters] - row[workers]
        short = missing >= _LEAST
        keys.append(position * profile.locations + workers[short])
        values.append(missing[short])
    return _sorted_cells(np.concatenate(keys), np.concatenate(values))


def _sorted_cells(key: npt.NDArray[np.int64], value: npt.NDArray[np.float64]) -> Cells:
    order = np.argsort(key, kind="stable")
    return Cells(key[order], value[order])
