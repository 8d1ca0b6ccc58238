"""A trace and its tables as tests/naive_findings.py sees them: raw events, raw tables, and the words of findings."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq

from tests import naive, naive_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Place = tuple[tuple[str, ...], int, int]

#: What a sentence may say in figures that are the same in all runs.
FIXED = ("the fastest 5%", "1 ms or more")
OWN_ROWS = ("computation.critical", "computation.other")


class Row(NamedTuple):
    """A row of the table `findings`."""

    rule: str
    sentence: str
    text: str
    loss: float
    share: float
    base: str
    callpath: tuple[str, ...] | None
    callpath_id: int | None
    ranks: list[int]
    merged: list[int]
    values: list[dict[str, Any]]

    def value(self, name: str) -> Any:
        return next(one["value"] for one in self.values if one["name"] == name)

    def has(self, name: str) -> bool:
        return any(one["name"] == name for one in self.values)


class Raw:
    """A trace and the tables of its result.

    Parameters
    ----------
    anchor
        The archive.
    tables
        The directory of the written result.
    """

    def __init__(self, anchor: Path | str, tables: Path) -> None:
        self._tables = tables
        self.trace = naive.Trace(anchor)
        self.begin, self.end = naive_account.focus(self.trace)
        self.paths = {row["callpath"]: tuple(row["path"].split("\0")) for row in self._paths()}
        self.numbers = {path: number for number, path in self.paths.items()}
        self.locations = {row["location"]: (row["rank"], row["thread"]) for row in self.rows("locations")}

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table; none if there is no such table."""
        path = self._tables / f"{name}.parquet"
        return pq.read_table(path).to_pylist() if path.exists() else []

    def _paths(self) -> Iterator[dict[str, Any]]:
        names = {row["region"]: row["name"] for row in self.rows("regions")}
        known: dict[int, str] = {}
        for row in self.rows("callpaths"):
            name = names[row["region"]]
            parent = row["parent"]
            known[row["callpath"]] = name if parent is None else f"{known[parent]}\0{name}"
            yield {"callpath": row["callpath"], "path": known[row["callpath"]]}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known of the run as a whole."""
        return json.loads((self._tables / "manifest.json").read_text(encoding="utf-8"))["facts"]

    @cached_property
    def findings(self) -> list[Row]:
        found = []
        for row in self.rows("findings"):
            text = " ".join(filter(None, (row["sentence"], row["advice"], row["remarks"])))
            path = None if row["callpath"] is None else tuple(row["callpath"])
            found.append(
                Row(
                    row["rule"], row["sentence"], text, row["loss"], row["share"], row["base"], path,
                    row["callpath_id"], row["ranks"], row["merged"], json.loads(row["values"]),
                )
            )  # fmt: skip
        return found

    @cached_property
    def account(self) -> list[tuple[str, tuple[str, ...] | None, int, int, float]]:
        """Row, call path, rank, thread and seconds of each cell of the account."""
        return [
            (
                row["row"],
                None if row["callpath_id"] is None else self.paths[row["callpath_id"]],
                *self.locations[row["location"]],
                row["time"],
            )
            for row in self.rows("account")
        ]

    def of_rows(self, ends: Callable[[str], bool], path: tuple[str, ...] | None = None) -> float:
        """Return the time in some rows of the account, of one call path or of all."""
        return sum(time for name, where, *_, time in self.account if ends(name) and path in {None, where})

    def has(self, rule: str) -> bool:
        """Return whether there is a finding of a rule."""
        return any(row.rule == rule for row in self.findings)

    @property
    def time(self) -> float:
        return sum(time for *_, time in self.account)

    @property
    def length(self) -> float:
        return (self.end - self.begin) / self.trace.resolution

    @cached_property
    def own(self) -> Counter[Place]:
        """The time of each call path itself in the focus, in seconds, by call path, rank and thread."""
        times: Counter[Place] = Counter()
        for thread in self.trace.threads.values():
            for stretch in naive_account.stretches(thread):
                ticks = min(stretch.end, self.end) - max(stretch.begin, self.begin)
                if stretch.call is not None and ticks > 0:
                    times[stretch.call.callpath, thread.rank, thread.number] += ticks / self.trace.resolution
        return times

    @cached_property
    def visits(self) -> Counter[Place]:
        """How often each location runs a call path, in the whole run."""
        return Counter(
            (call.callpath, thread.rank, thread.number)
            for thread in self.trace.threads.values()
            for call in thread.instances
        )

    @cached_property
    def computed(self) -> Counter[Place]:
        """The computation of each call path in the focus, which leaves out the management of teams."""
        times = Counter(self.own)
        for thread in self.trace.threads.values():
            managed = defaultdict(list)
            for begin, end, during, _region in naive_account.managed(self.trace, thread):
                if during is not None:
                    managed[id(during)].append((begin, end))
            for stretch in naive_account.stretches(thread) if managed else ():
                for begin, end in managed[id(stretch.call)]:
                    first, last = max(begin, stretch.begin, self.begin), min(end, stretch.end, self.end)
                    if first < last:
                        place = stretch.call.callpath, thread.rank, thread.number
                        times[place] -= (last - first) / self.trace.resolution
        return times

    def paths_of(self, row: Row) -> list[tuple[str, ...]]:
        """Return the call paths that a finding is about."""
        return [self.paths[number] for number in row.merged] if row.merged else [row.callpath]

    def times(self, row: Row) -> dict[tuple[int, int], float]:
        """Return the computation in the call paths of a finding by rank and thread."""
        times: dict[tuple[int, int], float] = defaultdict(float)
        wanted = set(self.paths_of(row))
        for (path, rank, thread), time in self.computed.items():
            if path in wanted and time > 0:
                times[rank, thread] += time
        return dict(times)

    @cached_property
    def costs(self) -> dict[tuple[str, ...], dict[str, dict[tuple[int, int], float]]]:
        """The delay costs of the focus by call path, metric, and rank and thread of the cause."""
        costs: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
        table = self.rows("focus_costs") or self.rows("severities")
        for row in table:
            metric = row["metric"]
            if "delay_" in metric and not any(word in metric for word in ("idle", "gpu", "unattributed")):
                costs[self.paths[row["callpath_id"]]][metric][self.locations[row["location"]]] += row["value"]
        return costs

    def charged(self, row: Row, *classes: str) -> float:
        """Return the delay costs at the call paths of a finding, of some classes or of all."""
        return sum(
            sum(by_place.values())
            for path in self.paths_of(row)
            for metric, by_place in self.costs.get(path, {}).items()
            if not classes or metric.removesuffix("_longterm").partition("delay_")[2] in classes
        )

    def charged_to(self, row: Row, ranks: set[int]) -> float:
        """Return the delay costs at the call paths of a finding that some ranks cause."""
        return sum(
            time
            for path in self.paths_of(row)
            for by_place in self.costs.get(path, {}).values()
            for (rank, _), time in by_place.items()
            if rank in ranks
        )

    @cached_property
    def network(self) -> list[dict[str, Any]]:
        return self.rows("network")

    @cached_property
    def threads(self) -> list[tuple[int, int]]:
        """Rank and thread of all CPU locations with time in the focus."""
        return sorted({(rank, thread) for _, _, rank, thread, _ in self.account})

    @property
    def ranks(self) -> list[int]:
        return sorted({rank for rank, _ in self.threads})

    def together(self) -> list[float]:
        """Return the shares of the focus in which none, one, two ... locations are in own code."""
        has_own = any(
            naive_account.activity(call, has_own=True) == "own"
            for thread in self.trace.threads.values()
            for call in thread.instances
        )
        changes: list[tuple[int, int]] = []
        for thread in self.trace.threads.values():
            for stretch in naive_account.stretches(thread):
                if stretch.call is None or naive_account.activity(stretch.call, has_own=has_own) != "own":
                    continue
                if stretch.call.name.startswith(("shmem_", "ARMCI_", "gaspi_", "upc_")):
                    continue
                first, last = max(stretch.begin, self.begin), min(stretch.end, self.end)
                if first < last:
                    changes += [(first, 1), (last, -1)]
        changes.sort()
        shares = [0.0] * (len(self.trace.threads) + 1)
        number, since = 0, self.begin
        for time, change in [*changes, (self.end, 0)]:
            shares[number] += (time - since) / (self.end - self.begin)
            number, since = number + change, time
        return shares


# --- words -----------------------------------------------------------------------------------------------------------


def locations_of(words: str, raw: Raw) -> set[tuple[int, int]]:
    """Return the locations that words stand for: the inverse of how findings name them."""
    if m := re.fullmatch(r"the ranks (at the corners of|at the edges of|inside) the ([\dx ]+) grid", words):
        return in_grid(m[1], m[2], raw)
    if m := re.fullmatch(r"(ranks? .*|[a-z]+ ranks) and (threads? .*)", words):
        return locations_of(m[1], raw) | locations_of(m[2], raw)
    if m := re.fullmatch(r"(threads? .*?) of (ranks .*|[a-z]+ ranks)", words):
        return locations_of(m[1], raw) & locations_of(m[2], raw)
    what, of_rank = words, None
    if m := re.fullmatch(r"(.*) of rank (\d+)", words):
        what, of_rank = m[1], int(m[2])
    if m := re.fullmatch(r"thread (\d+) of each rank", words):
        return {place for place in raw.threads if place[1] == int(m[1])}
    is_thread = what.removeprefix("even ").removeprefix("odd ").startswith("thread")
    all_numbers = sorted({place[is_thread] for place in raw.threads})
    if what.startswith(("even ", "odd ")):
        numbers = {number for number in all_numbers if number % 2 == what.startswith("odd ")}
    elif m := re.fullmatch(r"(?:rank|thread)s (\d+) to (\d+)", what):
        numbers = set(range(int(m[1]), int(m[2]) + 1))
    else:
        assert re.fullmatch(r"(?:rank|thread)s? \d+(?:(?:, | and )\d+)*", what), words
        numbers = {int(number) for number in re.findall(r"\d+", what)}
    return {place for place in raw.threads if place[is_thread] in numbers and (of_rank is None or place[0] == of_rank)}


def in_grid(where: str, sizes: str, raw: Raw) -> set[tuple[int, int]]:
    """Return the locations at the corners, at the edges or inside a topology of these sizes."""
    found = set()
    for topology in raw.rows("topologies"):
        axes = topology["axes"]
        if " x ".join(str(axis["size"]) for axis in axes) != sizes:
            continue
        for one in topology["coordinates"]:
            places = zip(axes, one["at"], strict=True)
            ends = [place in {0, axis["size"] - 1} for axis, place in places if not axis["periodic"]]
            if {"at the corners of": all(ends), "at the edges of": any(ends), "inside": not any(ends)}[where]:
                found.add(raw.locations[one["location"]])
    return found


def without_parameters(name: str) -> str:
    """Return the name of a function of C++ without its type, template arguments and parameters."""
    for copy in (".constprop.", ".isra.", ".part.", ".cold"):
        name = name.partition(copy)[0]
    if "(" not in name or name.startswith("!$"):
        return name
    depth, text = 0, ""
    for letter in name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator"):
        depth += (letter == "<") - (letter == ">")
        text += letter if not depth and letter != ">" else ""
    return text.partition("(")[0].split()[-1]


def is_counted(words: str) -> bool:
    """Return whether words only say how many locations they stand for."""
    return bool(re.fullmatch(r"(?:the other )?[\d,]+ (?:ranks|threads)", words))


def said_without_values(row: Row) -> str:
    """Return what remains of the words of a finding without its values, and without what is always the same."""
    text = row.text
    for words in sorted({value["words"] for value in row.values}, key=len, reverse=True):
        text = text.replace(words, "", 1) if text.count(words) == 1 else text.replace(words, "")
        text = text.replace(words[:1].upper() + words[1:], "")
    for fixed in FIXED:
        text = text.replace(fixed, "")
    return text


def two_groups(times: dict[tuple[int, int], float]) -> tuple[set, set, float] | None:
    """Return two groups that explain at least 80% of the variance, and how many times as long the slow one takes."""
    order = sorted(times, key=lambda place: -times[place])
    if len(order) < 2:
        return None

    def squares(places: list) -> float:
        mean = sum(times[place] for place in places) / len(places)
        return sum((times[place] - mean) ** 2 for place in places)

    first = min(range(1, len(order)), key=lambda i: squares(order[:i]) + squares(order[i:]))
    slow, fast = order[:first], order[first:]
    factor = (sum(map(times.get, slow)) / len(slow)) / (sum(map(times.get, fast)) / len(fast))
    if factor < 1.05 or squares(slow) + squares(fast) > 0.2 * squares(order) * (1 + 1e-9):
        return None
    return set(slow), set(fast), factor


def lacks(raw: Raw, times: dict[tuple[int, int], float]) -> float:
    """Return what all lack of the longest time: who runs it, and the first thread of ranks that do not."""
    masters = {min(place for place in raw.threads if place[0] == rank) for rank in raw.ranks}
    return sum(max(times.values(), default=0.0) - times.get(place, 0.0) for place in set(times) | masters)
