"""Threads without recorded calls, as those of GCC's OpenMP and of libraries: what samples say of them.

Nothing says when such a thread had work. Its samples stand for the processor time that it used, and tell in which
functions, and whether one thread of a team had more to do than the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from whywait.analysis.functions.tree import CERTAIN, LIKELY, deviation_of_share

if TYPE_CHECKING:
    from whywait.model.result import ResultData

# Smaller shares are not listed, and smaller differences are none.
_SMALL, _LATE = 0.05, 0.1
# A function stands for what calls it if it has this share of its difference.
_NEARLY = 0.75


@dataclass
class _Thread:
    """The samples of a thread: in how many each function was innermost, or anywhere."""

    weight: float
    has_calls: bool
    own: Counter[str]
    inclusive: Counter[str]
    depths: Counter[str]


def sampled_threads(result: ResultData) -> list[dict[str, Any]]:
    """Return what threads without recorded calls do, for each rank that has some.

    Returns
    -------
    list of dict
        ``rank``; ``threads`` (how many), ``time`` (s, the processor time of all of them), ``samples``; ``functions``:
        the largest shares of that, each with ``function``, ``share`` and ``error`` (at 95%); and ``late``: the thread
        with certainly more to do than the others in the same function, with ``thread``, ``function``, ``time`` (s),
        ``others`` (s, the mean of the others that run it), ``error`` (s, of the difference, at 95%), or None.
    """
    if not result.facts.get("samples"):
        return []
    ranks: dict[int, dict[int, _Thread]] = defaultdict(dict)
    table = result.tables.samples
    table = table.filter(pc.and_(pc.equal(table["kind"], "time"), pc.is_valid(table["callpath"])))
    keys = ["location", "callpath", "recorded_callpath"]
    counts = table.group_by(keys).aggregate([("weight", "max"), ("time", "count")])
    for row in counts.sort_by([(key, "ascending") for key in keys]).to_pylist():
        rank, number = (int(of[row["location"]]) for of in (result.places.rank, result.places.thread))
        thread = ranks[rank].setdefault(number, _Thread(0.0, False, Counter(), Counter(), Counter()))
        thread.weight = row["weight_max"] or 0.0
        thread.has_calls |= row["recorded_callpath"] is not None
        names = result.tree.path(row["callpath"])
        thread.own[names[-1]] += row["time_count"]
        for depth, name in enumerate(dict.fromkeys(names)):
            thread.inclusive[name] += row["time_count"]
            thread.depths[name] = max(thread.depths[name], depth)
    return [found for rank in sorted(ranks) if (found := _of_rank(rank, ranks[rank])) is not None]


def _of_rank(rank: int, threads: dict[int, _Thread]) -> dict[str, Any] | None:
    without = [thread for thread in threads.values() if not thread.has_calls]
    if not without:
        return None
    own: Counter[str] = Counter()
    for thread in without:
        own.update(thread.own)
    samples = own.total()
    functions = []
    for name, count in own.most_common():
        if (share := count / samples) >= _SMALL:
            error = LIKELY * deviation_of_share(share, samples)
            functions.append({"function": name, "share": share, "error": error})
    return {
        "rank": rank,
        "threads": len(without),
        "time": sum(thread.weight * thread.own.total() for thread in without),
        "samples": samples,
        "functions": functions,
        "late": _late(threads, {name for thread in without for name in thread.inclusive}),
    }


def _late(threads: dict[int, _Thread], names: set[str]) -> dict[str, Any] | None:
    """Return the thread that has certainly more to do in a function than the others that run it."""
    found = []
    for name in sorted(names):
        team = {number: thread for number, thread in threads.items() if thread.inclusive[name]}
        if len(team) < 2:
            continue
        times = {number: thread.weight * thread.inclusive[name] for number, thread in team.items()}
        last = max(times, key=lambda number: (times[number], -number))
        others = [number for number in team if number != last]
        mean = sum(times[number] for number in others) / len(others)
        variance = team[last].weight ** 2 * team[last].inclusive[name]
        variance += sum(team[one].weight ** 2 * team[one].inclusive[name] for one in others) / len(others) ** 2
        more = times[last] - mean
        if more > CERTAIN * sqrt(variance) and more > _LATE * mean:
            depth = max(thread.depths[name] for thread in team.values())
            error = LIKELY * sqrt(variance)
            late = {"thread": last, "function": name, "time": times[last], "others": mean, "error": error}
            found.append((more, depth, late))
    most = max((more for more, _, _ in found), default=0.0)
    largest = [one for one in found if one[0] >= _NEARLY * most]
    return max(largest, key=lambda one: (one[1], one[0]))[2] if largest else None
