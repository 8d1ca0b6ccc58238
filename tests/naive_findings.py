"""A second implementation of what findings say: each figure and name again, from raw events and raw tables.

It is written from docs/findings.md, whose figures have a name and a meaning each, and shares no code with the rules.
Times, counts, groups and ranks come from the events, read with the official `otf2` package; what the account and the
cost model say comes from the tables of a written result.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from otf2 import events as ev

from tests import naive_account
from tests.naive_raw import (
    OWN_ROWS,
    Raw,
    Row,
    is_counted,
    lacks,
    locations_of,
    said_without_values,
    two_groups,
    without_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOTED = {"MPI_Bcast", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter", "MPI_Scatterv", "MPI_Reduce"}
#: The rules that can take a part of slow calls before others speak of them.
TAKE_CALLS = {
    "network_contention", "slow_place", "rendezvous", "no_overlap", "small_regions", "empty_epochs", "single_thread",
    "lock_convoy", "held_lock", "long_tasks",
}  # fmt: skip

#: What a value must be, by rule and name: None if it was checked otherwise.
CHECKS: dict[tuple[str, str], Callable[[Raw, Row], Any]] = {}


class AtMost(float):
    """A bound: a value may be smaller, because others have taken a part before."""


class AnyOf(tuple):
    """What a value must be one of, because it is said of several things."""

    __slots__ = ()

    def has(self, said: Any) -> bool:
        return any(said == one or (isinstance(one, float) and is_near(said, one)) for one in self)


def is_near(said: float, expected: float) -> bool:
    return abs(said - expected) <= 1e-6 * abs(expected) + 2e-9


def agrees(expected: Any, said: Any) -> bool:
    if isinstance(expected, AnyOf):
        return expected.has(said)
    if isinstance(expected, AtMost):
        return said <= expected * (1 + 1e-6) + 1e-9
    if isinstance(expected, (int, float)):
        return is_near(said, expected)
    return expected is None or said == expected


def check(names: str, *rules: str) -> Callable:
    def register(function: Callable[[Raw, Row], Any]) -> Callable:
        for rule in rules:
            for name in names.split():
                CHECKS[rule, name] = function
        return function

    return register


SLOW = ("slow_calls", "pauses", "few_cores")


def excesses(raw: Raw, row: Row) -> Counter[str]:
    """Return what calls take beyond their need, by function."""
    # Shared cores explain no collective operations with a root; these remain for the rules that follow.
    shares = raw.has("few_cores")
    is_left = {"few_cores": lambda rooted: not rooted, "slow_calls": lambda rooted: rooted or not shares}
    is_left["pauses"] = is_left["slow_calls"]
    sums: Counter[str] = Counter()
    for name, path, *_, time in raw.account:
        if time > 0 and name.endswith(".excess") and is_left[row.rule](path[-1] in ROOTED):
            sums[path[-1]] += time
    return sums


def is_partial(raw: Raw) -> bool:
    """Return whether another rule can have taken a part of the slow calls."""
    return any(row.rule in TAKE_CALLS for row in raw.findings)


def taken(raw: Raw, value: float) -> float:
    """Return a value, or a bound if another rule can have taken a part of it."""
    return AtMost(value) if is_partial(raw) else value


@check("excess", *SLOW)
def _(raw, row):
    return taken(raw, sum(excesses(raw, row).values()))


@check("region", *SLOW)
def _(raw, row):
    sums = excesses(raw, row)
    if is_partial(raw):
        return row.value("region") if row.value("region") in sums else max(sums, key=sums.get)
    if row.has("excess") and not row.has("region_share"):
        assert list(sums) == [row.value("region")]
    is_most = sums[row.value("region")] >= max(sums.values()) * (1 - 1e-9)
    return row.value("region") if is_most else max(sums, key=sums.get)


@check("region_share", *SLOW)
def _(raw, row):
    sums = excesses(raw, row)
    return AtMost(1) if is_partial(raw) else sums[row.value("region")] / sum(sums.values())


@check("runtime", *SLOW)
def _(raw, _):
    return taken(raw, raw.of_rows(lambda name: name.startswith("threads.")))


@check("passed_on of_threads", *SLOW)
def _(raw, _row):
    return AtMost(sum(time for of_path in raw.costs.values() for by in of_path.values() for time in by.values()))


@check("idle", *SLOW)
def _(raw, _):
    return AtMost(raw.of_rows(lambda name: name.startswith("idle.")))


@check("waits_region", *SLOW)
def _(raw, row):
    assert row.value("waits_region") in {path[-1] for path in raw.paths.values()}


@check("waits_share", *SLOW)
def _(_raw, _row):
    return AtMost(1)


@check("calls", "pauses")
def _(raw, _):
    long = raw.trace.resolution / 1000
    return AtMost(
        sum(
            call.leave - call.enter >= long and naive_account.activity(call, has_own=True) != "own"
            for thread in raw.trace.threads.values()
            for call in thread.instances
        )
    )


@check("more", "few_cores")
def _(raw, row):
    # Of samples.
    more = sum(raw.together()[row.value("most") + 1 :])
    return row.value("more") if abs(more - row.value("more")) < 0.005 else more


@check("most", "few_cores")
def _(raw, row):
    if not row.has("more"):
        return AtMost(row.value("locations") - 1)
    shares = raw.together()
    allowed = 0.05 * sum(shares[1:])
    return next(
        most
        for most in range(1, len(shares))
        if sum(shares[most + 1 :]) <= allowed + 0.003 or most == row.value("most")
    )


@check("locations", "few_cores")
def _(raw, _):
    return AtMost(len(raw.threads))


OWN = ("imbalance", "late_partner", "one_does_all", "varying", "thread_imbalance", "pipeline", "single_thread")
ANY = (
    *OWN, "serial_tail", "serial_section", "progress", "lock_convoy", "held_lock", "long_tasks", "master_worker", "io",
    "unrecorded", "set_up", "small_regions", "rendezvous", "no_overlap", "empty_epochs", "device_starved",
    "latency_bound", "collectives", "unneeded_sync", "scattered",
)  # fmt: skip


@check("waiting", "scattered")
def _(raw, row):
    return AtMost(raw.charged(row))


@check("paths", "scattered")
def _(raw, row):
    assert all(path in raw.costs for path in raw.paths_of(row))
    return len(row.merged)


@check("below", "scattered")
def _(raw, row):
    assert "/".join(map(without_parameters, row.callpath)).endswith(row.value("below"))
    losses = {path: sum(sum(by.values()) for by in raw.costs[path].values()) for path in raw.paths_of(row)}
    inside = sum(loss for path, loss in losses.items() if path[: len(row.callpath)] == row.callpath)
    # Idle threads are losses, too.
    assert inside >= 0.7 * sum(losses.values())
    return row.value("below")


@check("who", "scattered")
def _(raw, row):
    said = row.value("who")
    assert is_counted(said) or {rank for rank, _ in locations_of(said, raw)} == set(row.ranks)
    return said


@check("who_share", "scattered")
def _(raw, row):
    return raw.charged_to(row, set(row.ranks)) / raw.charged(row)


@check("ended", "ended")
def _(raw, _):
    return sum(ends(raw).values())


@check("who", "ended")
def _(raw, row):
    said, times = row.value("who"), ends(raw)
    places = locations_of(said, raw) if not is_counted(said) else set(fewest(times))
    assert len(places & set(times)) == len(fewest(times))
    return said


@check("who_share", "ended")
def _(raw, _):
    times = ends(raw)
    return sum(times[place] for place in fewest(times)) / sum(times.values())


def ends(raw: Raw) -> dict[tuple[int, int], float]:
    """Return for how long each location has ended before the focus does."""
    found: Counter[tuple[int, int]] = Counter()
    for name, _, rank, thread, time in raw.account:
        if name == "idle.ended" and time > 0:
            found[rank, thread] += time
    return found


def fewest(times: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Return the fewest locations that have at least 80% of some time."""
    found: list[tuple[int, int]] = []
    for place in sorted(times, key=lambda one: (-times[one], one)):
        if sum(times[one] for one in found) >= 0.8 * sum(times.values()) * (1 - 1e-9):
            break
        found.append(place)
    return found


@check("place", *ANY, "imbalance")
def _(raw, row):
    said = row.value("place")
    said = said.removeprefix("what runs between MPI calls of ")
    if m := re.fullmatch(r"(.*) \((.*)\)", said):
        names = re.split(r", | and ", m[2])
        paths = [tuple(map(without_parameters, path)) for path in raw.paths_of(row)]
        assert all("/".join(path[:-1]).endswith(m[1]) for path in paths)
        known = {path[-1] for path in paths}
        assert all(name in known or name.endswith(" more") for name in names)
        return row.value("place")
    if row.rule in {"latency_bound", "collectives", "unneeded_sync"}:
        assert any("/".join(map(without_parameters, path)).endswith(said) for path in raw.paths.values())
        return row.value("place")
    path = "/".join(map(without_parameters, row.callpath))
    return row.value("place") if path.endswith(said) else path


@check("who", "imbalance")
def _(raw, row):
    times = raw.times(row)
    said = row.value("who")
    if row.has("longest"):
        # The location with the longest time.
        [place] = locations_of(said, raw)
        return said if times[place] >= max(times.values()) * (1 - 1e-9) else max(times, key=times.get)
    slow, _fast, _factor = two_groups(times)
    if is_counted(said):
        return said if int(re.sub(r"\D", "", said)) == len(slow) else f"{len(slow)}"
    return said if locations_of(said, raw) & set(times) == slow else str(sorted(slow))


@check("others", "imbalance")
def _(raw, row):
    _slow, fast, _factor = two_groups(raw.times(row))
    said = row.value("others")
    if said == "the others":
        return said if len(fast) > 1 else "one"
    if is_counted(said):
        return said if int(re.sub(r"\D", "", said)) == len(fast) else f"{len(fast)}"
    return said if locations_of(said, raw) & set(raw.times(row)) == fast else str(sorted(fast))


@check("factor", "imbalance")
def _(raw, row):
    return two_groups(raw.times(row))[2]


@check("who_share", "imbalance")
def _(raw, row):
    times = raw.times(row)
    slow, _fast, factor = two_groups(times)
    assert factor >= 20
    return sum(times[place] for place in slow) / sum(times.values())


@check("longest", "imbalance")
def _(raw, row):
    times = raw.times(row)
    return max(times.values()) * len(times) / sum(times.values())


@check("waiting", "imbalance", "late_partner", "one_does_all", "varying", "serial_tail")
def _(raw, row):
    return AtMost(raw.charged(row))


@check("waiting", "single_thread")
def _(raw, row):
    return AtMost(raw.charged(row, "ompbarrier", "lock", "threadlock"))


@check("waiting", "thread_imbalance")
def _(raw, row):
    return AtMost(raw.charged(row))


SUFFERING = ("serial_tail", "progress", "lock_convoy", "held_lock", "long_tasks", "io", "serial_section")


@check("also", *OWN, *SUFFERING)
def _(raw, row):
    return AtMost(raw.charged(row) - row.value("waiting"))


@check("idle", *OWN, *SUFFERING)
def _(raw, _row):
    return AtMost(raw.of_rows(lambda name: name.startswith("idle.")))


@check("waiting", "serial_section")
def _(raw, row):
    return AtMost(raw.charged(row))


@check("running", "serial_section")
def _(raw, row):
    threads = Counter(rank for rank, _ in raw.times(row))
    return max(threads.values())


@check("waiting", "lock_convoy", "held_lock")
def _(raw, row):
    return AtMost(raw.charged(row, "lock", "threadlock"))


@check("waiting", "long_tasks")
def _(raw, row):
    return AtMost(raw.charged(row, "task"))


@check("waiting", "progress")
def _(raw, row):
    return AtMost(raw.charged(row, "rma_progress"))


@check("waiting", "io")
def _(raw, row):
    return AtMost(raw.charged(row))


@check("lock", "lock_convoy")
def _(raw, row):
    assert any("/".join(path).endswith(row.value("lock")) for path in raw.paths.values())


@check("uneven", "thread_imbalance")
def _(raw, row):
    teams = defaultdict(list)
    for (rank, _), time in raw.times(row).items():
        teams[rank].append(time)
    several = [team for team in teams.values() if len(team) > 1]
    return sum(len(team) * max(team) for team in several) / sum(map(sum, several))


@check("who", "late_partner")
def _(raw, row):
    said = row.value("who")
    ranks = set(row.ranks)
    if not is_counted(said):
        assert {rank for rank, _ in locations_of(said, raw)} == ranks
    by_rank = {rank: raw.charged_to(row, {rank}) for rank in raw.ranks}
    fewest, share = 0, 0.0
    for time in sorted(by_rank.values(), reverse=True):
        if share >= 0.8 * sum(by_rank.values()) * (1 - 1e-9):
            break
        fewest, share = fewest + 1, share + time
    # The runtime of threads has its part of the costs of a construct.
    assert len(ranks) <= fewest or raw.of_rows(lambda name: name.startswith("threads."))


@check("who_share", "late_partner")
def _(raw, row):
    share = raw.charged_to(row, set(row.ranks)) / raw.charged(row)
    return share if not raw.of_rows(lambda name: name.startswith("threads.")) else AtMost(1)


@check("explained", "late_partner")
def _(raw, row):
    return lacks(raw, raw.times(row))


@check("alone", "late_partner")
def _(raw, row):
    [place] = raw.times(row)
    assert locations_of(row.value("alone"), raw) == {place}


@check("worked", "late_partner")
def _(raw, row):
    return sum(raw.times(row).values())


@check("worked", "one_does_all")
def _(raw, row):
    [rank] = row.ranks
    if raw.of_rows(lambda name: name == "io", row.callpath):
        own = (time for name, path, of, _, time in raw.account if (name, path, of) == ("io", row.callpath, rank))
        return sum(own)
    return sum(time for (of, _), time in raw.times(row).items() if of == rank)


@check("worked_share", "one_does_all")
def _(raw, row):
    [rank] = row.ranks
    times = raw.times(row)
    return sum(time for (of, _), time in times.items() if of == rank) / sum(times.values())


@check("rank", "one_does_all", "master_worker")
def _(_raw, row):
    return f"rank {row.ranks[0]}"


@check("passed_on", "pipeline")
def _(raw, row):
    costs = raw.costs[row.callpath]
    long = sum(sum(by.values()) for metric, by in costs.items() if metric.endswith("_longterm"))
    return long / raw.charged(row)


@check("filling", "pipeline")
def _(raw, row):
    return AtMost(raw.charged(row) / raw.time)


@check("who", "serial_tail")
def _(raw, row):
    assert {rank for rank, _ in locations_of(row.value("who"), raw)} == set(row.ranks)


@check("ranks", "serial_section")
def _(raw, row):
    ranks = {rank for rank, _ in raw.times(row)}
    if len(ranks) == len({rank for rank, _ in raw.threads}):
        return "each rank"
    return f"rank {min(ranks)}" if len(ranks) == 1 else f"{len(ranks):,} ranks"


@check("threads", "serial_section")
def _(raw, _):
    return max(thread for _, thread in raw.threads) + 1


@check("regions", "small_regions")
def _(raw, row):
    if row.has("places"):
        return None
    of_ranks: Counter[int] = Counter()
    for (path, rank, _), number in raw.visits.items():
        if path == row.callpath:
            of_ranks[rank] = max(of_ranks[rank], number)
    return sum(of_ranks.values())


@check("mean", "small_regions")
def _(raw, row):
    if row.has("places"):
        return None
    inside = len(row.callpath)
    time = sum(
        time
        for name, path, *_, time in raw.account
        if name in OWN_ROWS and path is not None and path[:inside] == row.callpath
    )
    return time / sum(number for (path, *_), number in raw.visits.items() if path == row.callpath)


@check("lost", "small_regions")
def _(raw, row):
    inside = 0 if row.has("places") else len(row.callpath)
    above = row.callpath[:inside]
    rows = {"threads.fork_join", "threads.barrier"}
    return AtMost(sum(time for name, path, *_, time in raw.account if name in rows and path and path[:inside] == above))


def kinds_of(raw: Raw, row: Row) -> list[dict[str, Any]]:
    """Return the kinds of calls that a finding about what calls need is about."""
    if row.rule == "collectives":
        return [kind for kind in raw.network if kind["members"] and kind["needed"] > 0]
    if row.rule == "latency_bound":
        pairs = [kind for kind in raw.network if not kind["members"] and kind["bytes_from"] < 8192]
        return [kind for kind in pairs if kind["floor"] is not None and kind["needed"] > 0]
    if row.rule == "other_calls":
        return [kind for kind in raw.network if kind["needed"] > 0]
    pairs = [kind for kind in raw.network if not kind["members"] and kind["bytes_from"] >= 8192]
    return [kind for kind in pairs if kind["floor"] and kind["needed"] > 0]


@check("calls", "collectives", "latency_bound", "bandwidth_bound", "other_calls")
def _(raw, row):
    number = sum(kind["calls"] for kind in kinds_of(raw, row))
    return number if row.rule == "collectives" and not raw.has("no_overlap") else AtMost(number)


@check("lost", "collectives", "latency_bound", "bandwidth_bound", "other_calls")
def _(raw, row):
    time = sum(kind["needed"] for kind in kinds_of(raw, row))
    return time if row.rule == "collectives" and not raw.has("no_overlap") else AtMost(time)


@check("region", "collectives")
def _(raw, row):
    sums: Counter[str] = Counter()
    for kind in kinds_of(raw, row):
        sums[kind["region"]] += kind["needed"]
    assert row.has("region_share") == (len(sums) > 1)
    return max(sums, key=sums.get)


@check("region_share", "collectives")
def _(raw, row):
    kinds = kinds_of(raw, row)
    of_region = sum(kind["needed"] for kind in kinds if kind["region"] == row.value("region"))
    return of_region / sum(kind["needed"] for kind in kinds)


@check("each", "collectives")
def _(raw, row):
    kinds = [kind for kind in kinds_of(raw, row) if kind["region"] == row.value("region")]
    # As many calls as the events say.
    calls = sum(number for (path, *_), number in raw.visits.items() if path[-1] == row.value("region"))
    assert sum(kind["calls"] for kind in kinds) <= calls
    return sum(kind["needed"] for kind in kinds) / sum(kind["calls"] for kind in kinds)


@check("region", "latency_bound", "bandwidth_bound", "other_calls")
def _(raw, row):
    assert row.value("region") in {kind["region"] for kind in kinds_of(raw, row)}


@check("region_share", "latency_bound", "bandwidth_bound", "other_calls")
def _(raw, row):
    kinds = kinds_of(raw, row)
    of_region = sum(kind["needed"] for kind in kinds if kind["region"] == row.value("region"))
    return AtMost(min(1.0, of_region / row.value("lost")))


@check("each", "other_calls")
def _(raw, row):
    kinds = [kind for kind in kinds_of(raw, row) if kind["region"] == row.value("region")]
    return AtMost(max(kind["needed"] / kind["calls"] for kind in kinds))


@check("limit", "latency_bound", "bandwidth_bound")
def _(_raw, _row):
    return 8192


@check("size", "bandwidth_bound")
def _(raw, row):
    kinds = [kind for kind in kinds_of(raw, row) if kind["region"] == row.value("region")]
    return row.value("size") if row.value("size") in {kind["bytes_from"] for kind in kinds} else -1


@check("rate", "bandwidth_bound")
def _(raw, row):
    kinds = [kind for kind in kinds_of(raw, row) if kind["region"] == row.value("region")]
    rates = [row.value("size") / kind["floor"] for kind in kinds if kind["bytes_from"] == row.value("size")]
    return min(rates, key=lambda rate: abs(rate - row.value("rate")))


@check("combinable messages", "latency_bound")
def _(raw, _row):
    return AtMost(
        sum(
            isinstance(event, (ev.MpiSend, ev.MpiIsend)) and event.msg_length < 8192
            for thread in raw.trace.threads.values()
            for event, _call in thread.records
        )
        or float("inf")
    )


@check("lost", "measurement")
def _(raw, _):
    return raw.of_rows(lambda name: name == "measurement")


@check("unknown", "unrecorded")
def _(raw, _):
    return raw.of_rows(lambda name: name == "unknown")


@check("needed", "unrecorded", "set_up")
def _(raw, row):
    return sum(needed(raw, row).values())


@check("name", "unrecorded", "set_up")
def _(raw, row):
    times = needed(raw, row)
    is_most = times[row.callpath] >= max(times.values()) * (1 - 1e-9)
    return row.callpath[-1] if is_most else max(times, key=times.get)[-1]


@check("name_share", "unrecorded", "set_up")
def _(raw, row):
    times = needed(raw, row)
    return sum(time for path, time in times.items() if path[-1] == row.callpath[-1]) / sum(times.values())


#: Calls that make or free communicators, windows, or memory of a library.
MAKES = re.compile(
    r"mpi_(comm|cart|graph|dist_graph|topo|intercomm)(_.*)?"
    r"|mpi_win_(create|allocate|shared|attach|detach|free|get|set|delete|call)(_.*)?"
    r"|armci_(malloc|free|init|finalize|create_mutexes|destroy_mutexes|group)(_.*)?"
    r"|(p?shmem|start_pes|shm|gaspi|upc)(_.*)?(alloc|malloc|calloc|free|init|finalize|create|destroy|segment|group|team|ctx).*",
)


def needed(raw: Raw, row: Row) -> Counter[tuple[str, ...]]:
    """Return the row `library.needed` by call path: of calls that make or free something, or of all others."""
    times: Counter[tuple[str, ...]] = Counter()
    for name, path, *_, time in raw.account:
        makes = name == "library.needed" and MAKES.fullmatch(path[-1].lower().strip("_")) is not None
        if name == "library.needed" and makes == (row.rule == "set_up"):
            times[path] += time
    return times


@check("spent", "io")
def _(raw, row):
    return raw.of_rows(lambda name: name == "io", row.callpath)


@check("moved operations", "io")
def _(raw, row):
    rows = [one for one in raw.rows("io") if one["callpath_id"] == row.callpath_id]
    return None if rows else 0


@check("file files", "io", "one_does_all")
def _(raw, row):
    times = Counter()
    for one in raw.rows("io"):
        if one["callpath_id"] == row.callpath_id and one["file"] is not None:
            times[one["file"]] += one["in_calls"]
    most = max(times.values())
    assert is_near(times[row.value("file")], most)
    others = len(times) - 1
    assert (row.value("files") if others else 0) == others


@check("who", "io")
def _(raw, row):
    assert {rank for rank, _ in locations_of(row.value("who"), raw)} == set(row.ranks)


@check("who_share", "io")
def _(raw, row):
    times = [(rank, time) for name, path, rank, _, time in raw.account if name == "io" and path == row.callpath]
    return sum(time for rank, time in times if rank in row.ranks) / sum(time for _, time in times)


@check("wrong_order", *ANY, "few_cores", "slow_calls", "pauses")
def _(raw, _row):
    # Who waits for all messages at once can take none of them earlier.
    waits = (
        time for name, path, *_, time in raw.account if name == "wait.mpi_latesender" and path[-1] != "MPI_Waitall"
    )
    return AtMost(sum(waits) * (1 + 1e-9))


@check("needless", *ANY, *SLOW)
def _(raw, _row):
    return AtMost(sum(time for (path, *_), time in raw.own.items() if "arrier" in path[-1]))


@check("barriers", *ANY, *SLOW)
def _(raw, row):
    ends = [path for path in raw.paths.values() if "/".join(path).endswith(row.value("barrier"))]
    return AtMost(max(sum(number for (path, *_), number in raw.visits.items() if path == end) for end in ends))


@check("barrier", *ANY, *SLOW)
def _(raw, row):
    assert any("/".join(path).endswith(row.value("barrier")) for path in raw.paths.values())


@check("lost", "empty_epochs")
def _(raw, _row):
    one_sided = ("MPI_Win", "shmem", "ARMCI", "gaspi", "upc")
    return AtMost(sum(time for (path, *_), time in raw.own.items() if path[-1].startswith(one_sided)))


@check("workers", "master_worker")
def _(raw, _row):
    return AtMost(len(raw.ranks) - 1)


@check("rank nodes cores switches sharing allowed host", "few_cores")
@check("switches", "pauses")
@check("wait_state", *ANY, *SLOW)
@check("kernels mean launch", "small_kernels")
def _(_raw, _row):
    """Not checked by itself: nothing that the oracle reads has it."""
    return


@check("pause_share", "pauses")
@check("observed expected slow fast", "few_cores")
@check("queued", "lock_convoy")
@check("repeated", "collectives")
@check("first_share", *ANY, *SLOW)
@check("unneeded", "empty_epochs")
def _(_raw, _row):
    """A share, at least."""
    return AtMost(1)


@check("sizes", "rendezvous")
@check("during", "no_overlap")
@check("extra", "growing")
@check("longer crowded quiet", "network_contention", "file_contention", "memory_contention")
def _(_raw, _row):
    """Not checked by itself: nothing that the oracle reads has it."""


@check("place_share", "small_regions", "rendezvous")
def _(_raw, _row):
    return AtMost(1)


@check("places", "small_regions")
def _(raw, _row):
    return AtMost(sum(path[-1].startswith("!$omp parallel") for path in raw.paths.values()))


@check("calls", "rendezvous", "no_overlap")
def _(raw, _row):
    return AtMost(sum(number for (path, *_), number in raw.visits.items() if path[-1].startswith("MPI_")))


@check("lost", "rendezvous")
def _(raw, _row):
    return AtMost(raw.of_rows(lambda name: name == "transfer.excess"))


@check("lost", "no_overlap")
def _(raw, _row):
    return AtMost(raw.of_rows(lambda name: name.startswith("transfer.")))


@check("place", "network_contention", "file_contention", "memory_contention")
def _(_raw, row):
    assert "/".join(row.callpath).endswith(row.value("place"))


def of_library(raw: Raw, column: str) -> Counter[int]:
    """Return a column of the account by rank, of library calls: each once."""
    sums: Counter[int] = Counter()
    for row in raw.rows("account"):
        if row["row"].startswith(("transfer.", "library.")) and (column != "calls" or row["row"].endswith(".needed")):
            sums[raw.locations[row["location"]][0]] += row[column]
    return sums


@check("rank_share", "slow_place")
def _(raw, row):
    sums = of_library(raw, "excess")
    [rank] = row.ranks
    assert sums[rank] == max(sums.values())
    return sums[rank] / sums.total()


@check("calls_share", "slow_place")
def _(raw, row):
    sums = of_library(raw, "calls")
    return sums[row.ranks[0]] / sums.total()


@check("who", "slow_place")
def _(raw, row):
    assert {rank for rank, _ in locations_of(row.value("who"), raw)} == set(row.ranks)


@check("region", "slow_place")
def _(raw, row):
    assert row.value("region") in {path[-1] for path in raw.paths.values()}


@check("factor", "slow_place")
def _(_raw, row):
    return max(row.value("factor"), 1.2)


@check("lost", "slow_place")
def _(_raw, row):
    return row.loss


@check("rate", "master_worker")
def _(raw, row):
    [master] = row.ranks
    received = sum(
        isinstance(event, (ev.MpiRecv, ev.MpiIrecv)) and event.sender == master
        for thread in raw.trace.threads.values()
        for event, _call in thread.records
    )
    return received / raw.length


@check("waiting", "master_worker")
def _(raw, _row):
    return AtMost(sum(row["waiting"] for row in raw.rows("wait_states")))


@check("waiting_share", "master_worker")
def _(raw, row):
    return row.value("waiting") / ((len(raw.ranks) - 1) * raw.length)


@check("factor", "growing")
def _(_raw, row):
    return row.value("last") / row.value("first")


@check("first last", "growing")
def _(raw, _row):
    return AtMost(raw.length)


@check("away", "targets_away")
def _(raw, _row):
    rows = raw.rows("severities")
    return AtMost(sum(one["value"] for one in rows if one["metric"].endswith("_wait_for_progress_away")))


@check("known", "targets_away")
def _(raw, _row):
    rows = raw.rows("severities")
    return AtMost(sum(one["value"] for one in rows if one["metric"].endswith("_wait_for_progress")))


@check("away_share", "targets_away")
def _(_raw, _row):
    return AtMost(1)


@check("call", "targets_away")
def _(_raw, row):
    return row.callpath[-1]


@check("kernel", "kernel")
def _(_raw, row):
    return row.callpath[-1]


@check("time", "kernel")
def _(raw, row):
    rows = raw.rows("severities")
    return sum(one["value"] for one in rows if (one["metric"], one["callpath_id"]) == ("time", row.callpath_id))


@check("time_share", "kernel")
def _(_raw, _row):
    return AtMost(1)


def of_devices(raw: Raw, *rows: str) -> float:
    return sum(row["time"] for row in raw.rows("device_account") if row["row"] in rows)


@check("idle", "devices_take_turns")
def _(raw, _row):
    return of_devices(raw, "starved.other_device")


@check("idle there", "device_starved")
def _(raw, _row):
    return AtMost(
        of_devices(
            raw, "latency", *(row["row"] for row in raw.rows("device_account") if row["row"].startswith("starved."))
        )
    )


@check("copies", "copies")
def _(raw, _row):
    return AtMost(of_devices(raw, "busy.copy", "starved.call", "starved.sync"))


@check("blocking", "copies")
def _(raw, row):
    return (row.value("copies") - of_devices(raw, "busy.copy")) / row.value("copies")


@check("devices", "devices_take_turns", "device_starved", "copies")
def _(raw, row):
    names = sorted({one["device"] for one in raw.rows("device_account")})
    words = {1: {"the device"}, 2: {"both devices", " and ".join(names)}}.get(len(names), {f"{len(names)} devices"})
    assert row.value("devices") in words


@check("idle", "small_kernels")
def _(raw, _row):
    return of_devices(raw, "latency")


STRAGGLERS = ("straggler_loading", "straggler_host", "straggler_kernel", "uneven_work", "pipeline_stage")
WAIT_ROWS = tuple(f"comm.wait.{kind}" for kind in ("nxn", "barrier", "broadcast", "reduce", "recv", "send"))
DEVICE_WAITS = {
    "ccl_latesender", "ccl_latereceiver", "ccl_wait_nxn", "ccl_wait_barrier", "ccl_late_broadcast", "ccl_early_reduce",
}  # fmt: skip


def straggling(raw: Raw, row: Row) -> dict[int, float]:
    """Return the time of each rank in the call paths of a finding."""
    times: Counter[int] = Counter()
    for (path, rank, _), time in raw.own.items():
        if path in raw.paths_of(row):
            times[rank] += time
    return {rank: times[rank] for rank in raw.ranks}


def late_and_others(raw: Raw, row: Row) -> tuple[float, float]:
    """Return the mean time of the ranks of a finding in its call paths, and that of the others."""
    times = straggling(raw, row)
    own = [time for rank, time in times.items() if rank in row.ranks]
    others = [time for rank, time in times.items() if rank not in row.ranks]
    return sum(own) / len(own), sum(others) / len(others)


def steps_with_waits(row: Row) -> int:
    return row.value("times") if row.has("times") else row.value("steps") if row.has("steps") else 1


def waiting_for(raw: Raw, row: Row) -> int:
    """Return how many other ranks have devices that wait for more than a tenth of what the one does that waits most."""
    waits = Counter[int]()
    for one in raw.rows("wait_states"):
        if one["kind"] in DEVICE_WAITS:
            waits[raw.locations[one["location"]][0]] += one["waiting"]
    others = [time for rank, time in waits.items() if rank not in row.ranks]
    return sum(time > 0.1 * max(others) for time in others)


@check("who", *STRAGGLERS)
def _(raw, row):
    said = row.value("who")
    named = [int(number) for number in re.findall(r"\d+", said)]
    times = straggling(raw, row)
    if said.startswith("all ranks but"):
        assert sorted(named + row.ranks) == sorted(raw.ranks)
        assert min(times[rank] for rank in row.ranks) > max(times.values()) / 1.1
        return said
    assert named == row.ranks
    median = sorted(times.values())
    middle = len(median) // 2
    median = median[middle] if len(median) % 2 else (median[middle - 1] + median[middle]) / 2
    slower = {rank for rank, time in times.items() if time > 1.1 * median}
    assert set(row.ranks) <= slower or raw.charged_to(row, set(row.ranks)) >= 0.8 * raw.charged(row) * (1 - 1e-6)
    return said


@check("others", *STRAGGLERS)
def _(raw, row):
    others = len(raw.ranks) - len(row.ranks)
    words = "the other GPU" if others == 1 else f"the other {others} GPUs"
    return words if (number := waiting_for(raw, row)) == others else f"{number} of {words}"


@check("place", *STRAGGLERS, "pipeline_bubble", "changing", "compile_once", "syncs")
def _(raw, row):
    said = re.split(r", | and ", row.value("place").removeprefix("its data loader (").removesuffix(")"))
    paths = raw.paths.values() if row.callpath is None else raw.paths_of(row)
    names = ["/".join(map(without_parameters, path)) for path in paths]
    assert all(name.endswith(" more") or any(path.endswith(name) for path in names) for name in said)
    return row.value("place")


@check("waiting", "pipeline_bubble", "changing")
def _(raw, _row):
    return AtMost(of_devices(raw, *WAIT_ROWS))


@check("each", *STRAGGLERS)
def _(raw, row):
    table = raw.rows("focus") or raw.rows("severities")
    of_kernels = sum(one["value"] for one in table if one["metric"] in DEVICE_WAITS)
    shared = min(1, of_devices(raw, *WAIT_ROWS) / of_kernels)
    least = shared * raw.charged_to(row, set(row.ranks)) / waiting_for(raw, row) / steps_with_waits(row)
    # What passes the waiting on is no call path of the finding.
    assert row.value("each") >= least * (1 - 1e-6)
    return AtMost(of_devices(raw, *WAIT_ROWS) / waiting_for(raw, row) / steps_with_waits(row))


@check("step", *STRAGGLERS)
def _(raw, row):
    return AtMost(raw.length / row.value("steps") * 2)


@check("steps", *STRAGGLERS)
def _(raw, _row):
    return AtMost(len(raw.rows("iterations")))


@check("times", *STRAGGLERS)
def _(_raw, row):
    return AtMost(row.value("steps") - 1)


@check("longer", *STRAGGLERS)
def _(raw, row):
    own, others = late_and_others(raw, row)
    steps = row.value("steps") if row.has("steps") else 1
    return AnyOf(((own - others) / steps_with_waits(row), (own - others) / steps))


@check("factor", *STRAGGLERS)
def _(raw, row):
    own, others = late_and_others(raw, row)
    steps = row.value("steps") if row.has("steps") else 1
    # In the steps in which they are late, they are so by all of it.
    return AnyOf((own / others, 1 + (own / others - 1) * steps / steps_with_waits(row)))


def runs(raw: Raw, row: Row) -> dict[int, int]:
    """Return how often each rank is in the call path of a finding."""
    number = Counter[int]()
    for one in raw.rows("severities"):
        if one["metric"] == "visits" and raw.paths[one["callpath_id"]] == row.callpath:
            number[raw.locations[one["location"]][0]] += int(one["value"])
    return {rank: number[rank] for rank in raw.ranks}


@check("oftener", "uneven_work")
def _(raw, row):
    number = runs(raw, row)
    own, others = ([number[rank] for rank in raw.ranks if (rank in row.ranks) == late] for late in (True, False))
    return (sum(own) / len(own)) / (sum(others) / len(others)) - 1


@check("shapes elsewhere", "uneven_work")
def _(raw, row):
    groups = raw.facts["traces"]["shapes"][row.callpath[-1]]
    return AnyOf(usual for _, _, usual in groups)


@check("unseen", "missing_ranks")
def _(raw, _row):
    return of_devices(raw, "comm.unseen")


@check("transfers", "exposed_transfer")
def _(raw, _row):
    return of_devices(raw, "comm.transfer", "comm.excess")


@check("part", "exposed_transfer")
def _(raw, row):
    return row.value("transfers") / sum(one["time"] for one in raw.rows("device_account"))


@check("excess", "slow_network")
def _(raw, _row):
    return of_devices(raw, "comm.excess")


@check("nodes groups", "slow_network")
def _(raw, _row):
    return AtMost(len(raw.ranks) ** 2)


@check("group", "slow_network")
def _(raw, row):
    said = row.value("group")
    ranks = {int(number) for number in re.findall(r"\d+", said.partition("(ranks ")[2])}
    assert ranks <= set(raw.ranks)
    return said


@check("of_group", "slow_network")
def _(_raw, _row):
    return AtMost(1.0)


@check("idle", "compile_once")
def _(raw, _row):
    return of_devices(raw, "starved.compile")


@check("idle", "syncs")
def _(raw, _row):
    return of_devices(raw, "starved.sync")


@check("waiting", "syncs")
def _(raw, _row):
    table = raw.rows("focus") or raw.rows("severities")
    return AtMost(sum(one["value"] for one in table if one["metric"] == "gpu_host_wait"))


@check("idle", "host_bound")
def _(raw, _row):
    return of_devices(raw, "starved.host", "latency")


@check("of", "host_bound")
def _(raw, _row):
    return len({one["device"] for one in raw.rows("device_account")})


@check("devices", "host_bound")
def _(raw, _row):
    times, whole = Counter[str](), Counter[str]()
    for one in raw.rows("device_account"):
        whole[one["device"]] += one["time"]
        times[one["device"]] += one["time"] * (one["row"] in {"starved.host", "latency"})
    return sum(times[device] > 0.15 * whole[device] for device in whole)


@check("kernel", "host_bound")
def _(_raw, row):
    return AtMost(4 * row.value("launch"))


@check("launch", "host_bound")
def _(raw, _row):
    return AtMost(raw.length)


@check("before", "window_start")
def _(raw, _row):
    of = lambda table: sum(one["value"] for one in raw.rows(table) if one["metric"] in DEVICE_WAITS)  # noqa: E731
    return of("severities") - of("focus")


@check("part", "window_start")
def _(raw, row):
    return row.value("before") / sum(one["value"] for one in raw.rows("severities") if one["metric"] in DEVICE_WAITS)


def differences(raw: Raw) -> Iterator[str]:
    """Yield what findings say that is not so."""
    for number, row in enumerate(raw.findings, 1):
        where = f"finding {number} ({row.rule}): {row.sentence!r}"
        names: dict[str, set[str]] = defaultdict(set)
        for value in row.values:
            # "The work between MPI calls" is that of "what runs between MPI calls".
            names[value["name"]].add(value["words"].removeprefix("what runs "))
        of_one = {name for name in names if not isinstance(CHECKS[row.rule, name](raw, row), AnyOf)}
        if several := sorted(name for name in of_one if len(names[name]) > 1):
            yield f"{where}: {several} have several values"
        for value in row.values:
            key = row.rule, value["name"]
            if key not in CHECKS:
                yield f"{where}: nothing checks {value['name']}"
                continue
            expected, said = CHECKS[key](raw, row), value["value"]
            if not agrees(expected, said):
                yield f"{where}: {value['name']} is {said!r}, but should be {expected!r}"
            if value["words"].lower() not in row.text.lower():
                yield f"{where}: does not say {value['name']}"
        # What others wait is said with how long: `waiting`, a share of it, or the time in which devices are idle.
        waits = any("wait" in value["meaning"].lower() and value["unit"] in {"s", "share"} for value in row.values)
        if re.search(r"(?<!can )\bwaits?\b", row.sentence) and not waits:
            yield f"{where}: somebody waits, but not how long"
        if left := re.findall(r"[^\s(]*\d[^\s,.;)]*", said_without_values(row)):
            yield f"{where}: {left} are figures in words alone"
