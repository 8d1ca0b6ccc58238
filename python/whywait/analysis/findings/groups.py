"""Groups of ranks or threads that take longer than others, and the words for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.analysis.findings.grid import place_in_grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.analysis.findings.finding import Run

# Two groups explain at least this share of the variance, and the slower one takes so many times as long.
_EXPLAINED, _LONGER = 0.8, 1.05
# So many ranks are named one by one.
_NAMED = 4


class Groups(NamedTuple):
    """Two groups of locations: those that take long, and the others.

    Attributes
    ----------
    slow, others
        Their locations.
    factor
        How many times as long the slow ones take, on average.
    """

    slow: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    factor: float


def two_groups(times: npt.NDArray[np.float64]) -> Groups | None:
    """Return the two groups of locations that explain most of the variance of their times; None if they explain little.

    Parameters
    ----------
    times
        The times by location; those without any time belong to no group.
    """
    here = np.flatnonzero(times > 0)
    order = here[np.argsort(-times[here], kind="stable")]
    size = order.size
    if size < 2:
        return None
    known = times[order]
    number = np.arange(1, size)
    sums = np.cumsum(known)
    slow, fast = sums[:-1] / number, (sums[-1] - sums[:-1]) / (size - number)
    between = number * (size - number) / size * (slow - fast) ** 2
    first = int(between.argmax())
    variance = float(((known - known.mean()) ** 2).sum())
    factor = float(slow[first] / fast[first])
    if factor < _LONGER or between[first] < _EXPLAINED * variance:
        return None
    return Groups(np.sort(order[: first + 1]), np.sort(order[first + 1 :]), factor)


def who(run: Run, locations: npt.NDArray[np.int64]) -> str:
    """Return the words for some locations: ranks, or threads of ranks where others of the same rank are missing."""
    places = run.result.places
    rank, thread = places.rank[locations], places.thread[locations]
    if run.threads == 1:
        return place_in_grid(run, rank.tolist()) or _numbers("rank", rank.tolist(), run.ranks)
    if run.ranks == 1:
        return _numbers("thread", thread.tolist(), run.threads)
    ranks = np.unique(rank)
    whole = places.works & np.isin(places.rank, ranks)
    if locations.size == np.count_nonzero(whole) and ranks.size < run.ranks:
        return _numbers("rank", ranks.tolist(), run.ranks)
    if ranks.size == run.ranks and np.unique(thread).size == 1:
        return f"thread {thread[0]} of each rank"
    if locations.size == 1:
        return f"thread {thread[0]} of rank {rank[0]}"
    if ranks.size == 1:
        return f"{_numbers('thread', thread.tolist(), run.threads)} of rank {ranks[0]}"
    return _of_ranks(run, rank, thread) or f"{locations.size:,} threads"


def _of_ranks(run: Run, rank: npt.NDArray[np.int32], thread: npt.NDArray[np.int32]) -> str | None:
    """Return the words for whole ranks, the same threads of some ranks, or both; None if it is more than that."""
    places = run.result.places
    of_threads: dict[tuple[int, ...], list[int]] = {}
    whole: list[int] = []
    for one in np.unique(rank).tolist():
        threads = np.unique(thread[rank == one])
        if threads.size == np.count_nonzero(places.works & (places.rank == one)):
            whole.append(one)
        else:
            of_threads.setdefault(tuple(threads.tolist()), []).append(one)
    if len(of_threads) != 1:
        return None
    [(some, ranks)] = of_threads.items()
    words = f"{_numbers('thread', some, run.threads)} of {_numbers('rank', ranks, run.ranks)}"
    return f"{_numbers('rank', whole, run.ranks)} and {words}" if whole else words


def others(run: Run, groups: Groups) -> str:
    """Return the words for those that the slow ones are compared with."""
    if groups.others.size == 1 or (groups.slow.size > 1 and groups.others.size <= _NAMED):
        return who(run, groups.others)
    if groups.slow.size == 1:
        return "the others"
    words = who(run, groups.others)
    return f"the other {words}" if words[0].isdecimal() else words


def is_one(words: str) -> bool:
    """Return whether words stand for one rank or thread."""
    return re.fullmatch(r"rank \d+|thread \d+( of .*)?", words) is not None


def _numbers(what: str, numbers: Sequence[int], of_all: int) -> str:
    """Return the words for some ranks or threads: a number, a few, a range, every second one, or how many."""
    numbers = sorted(numbers)
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    if len(numbers) > 2:
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"{what}s {numbers[0]} to {numbers[-1]}"
        for first, name in enumerate(("even", "odd")):
            if numbers == list(range(first, of_all, 2)):
                return f"{name} {what}s"
    if len(numbers) <= _NAMED:
        return f"{what}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return f"{len(numbers):,} {what}s"
