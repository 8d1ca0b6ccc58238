"""What a finding is, and what a rule that makes findings can ask."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.changes import Changes
from whywait.analysis.findings.words import UNSEEN, Words
from whywait.analysis.focus import focused
from whywait.analysis.iterations import known_iterations
from whywait.analysis.losses import Losses
from whywait.model.names import short_name
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    import numpy.typing as npt

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.words import Value
    from whywait.analysis.losses import Bearer
    from whywait.model.regions import Region
    from whywait.model.result import ResultData

    #: What a rule finds, and what it proposes to change: prices that are known at once, too. None is a change that
    #: cannot be made in this run.
    Found = Iterator["Finding"]
    Proposed = Iterator[Change | "Price" | None]

_COPY = re.compile("copy|memset|transfer", re.IGNORECASE)
_T = TypeVar("_T")

#: A call path is evenly loaded if the mean of its times is at least this share of the longest.
BALANCED = 0.9
#: Its differences are steady if they explain this share of the waiting for it.
STEADY = 0.5
# Ranks alternate if what they lack of the longest computation of an iteration, or of a piece of it, is this share of
# what they compute.
_ALTERNATES = 0.25
#: Ranks are the culprits if they have this share of the costs.
CULPRIT = 0.8
# So many call paths with one reason are named; smaller shares of the largest loss are no part of it.
_NAMED, _SIBLING = 3, 0.1
# Bearers of this share of the CPU time have names that tell them apart.
_COSTLY = 0.01
# Collective operations with a root, the metrics that count receives, and how many of these may lack a send.
_ROOTED = frozenset({"bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"})
_RECEIVES = ("comms_recv", "syncs_recv")
_UNMATCHED = 0.1
#: What a scheduler gives to another thread, in seconds: no small message needs as long.
SLICE = 1e-3
#: Fewer instances are no pattern.
INSTANCES = 3


def fewest(values: npt.NDArray[Any]) -> list[int]:
    """Return the places of the fewest values that have most of their sum."""
    order = np.argsort(-values, kind="stable")
    enough = int(np.searchsorted(np.cumsum(values[order]), CULPRIT * values.sum() * (1 - 1e-9))) + 1
    return sorted(order[:enough].tolist())


@dataclass(frozen=True)
class Price:
    """What a change saves of the focus.

    Attributes
    ----------
    what
        The change.
    label, then
        The same in a word or two, and at the begin of a sentence.
    option
        The options of ``whywait whatif`` that simulate it; None if there are none.
    saved
        The time by which the focus becomes shorter, in seconds, negative if it becomes longer; None if not simulated.
    is_bound
        Whether nobody can make this change, so that it only bounds what others save.
    is_rough
        Whether assumptions of the simulation concern more than a fifth of the time.
    reason
        Why it was not simulated.
    """

    what: str
    label: str
    then: str
    option: str | None
    saved: float | None
    is_bound: bool = False
    is_rough: bool = False
    reason: str | None = None


@dataclass
class Finding:
    """A reason why time is lost.

    Attributes
    ----------
    rule
        The name of the rule that made it.
    sentence
        What happens, where, and what follows, in one or two sentences.
    advice
        What to do about it; None if that is not known.
    loss
        The lost time that it explains, in seconds of CPU time.
    share
        The same as a share of the CPU time of the focus, or of the time of all devices (see `base`).
    base
        ``cpu``; ``device`` for time of devices; ``run`` for what is not lost, but where the time goes: its loss is 0,
        and its share is one of the run.
    callpath
        The call path that is to blame, by its number; None if it is none.
    ranks
        The ranks that are to blame; empty if these are all.
    evidence
        The numbers that the sentence rests on.
    instances
        How often the call path runs: a pattern needs some.
    merged
        The call paths whose losses are part of it.
    prices
        What changes save, by simulation: those that can be made, in the order in which to try them, and bounds.
    unpriced
        Why there is no price, as a sentence; None if there is one, or nobody has asked.
    remarks
        What other rules add to it: a sentence by the name of each.
    values
        The figures and names in the sentence, the advice and the remarks.
    is_remainder
        Whether it is what other findings leave, so that they come first.
    detected
        The rule that found it, if another one speaks of it since its prices are known.
    """

    rule: str
    sentence: str
    advice: str | None
    loss: float
    share: float
    callpath: int | None = None
    ranks: list[int] = field(default_factory=list)
    base: str = "cpu"
    evidence: dict[str, Any] = field(default_factory=dict)
    instances: int = INSTANCES
    merged: list[int] = field(default_factory=list)
    prices: list[Price] = field(default_factory=list)
    unpriced: str | None = None
    remarks: dict[str, str] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    is_remainder: bool = False
    detected: str | None = None

    def remark(self, rule: str, words: Words) -> None:
        """Add what another rule says."""
        self.remarks[rule] = words.text
        self.values.extend(words.values)

    @property
    def causes(self) -> list[int]:
        """The call paths of own code whose losses it explains; none if it is no matter of one."""
        return [] if self.callpath is None else self.merged or [self.callpath]

    @property
    def price(self) -> Price | None:
        """The price: what the first change saves that somebody can make; None if none is known."""
        return next((one for one in self.prices if not one.is_bound and one.saved is not None), None)


def _nothing(*_: Any) -> Any:
    return ()


@dataclass(frozen=True)
class Rule:
    """A rule: it finds one kind of reason. Each is a module of `whywait.analysis.findings`.

    Attributes
    ----------
    name
        Its name, by which findings name it.
    title
        What it finds, in a few words.
    document
        When it holds, what it says, and what to do, for the documentation.
    detect
        Yields what the rule finds, and takes the bearers that it explains.
    changes
        Yields changes that may help, in the order in which to try them, None for those that cannot be made; bounds, and
        prices that are known at once.
    remark
        Adds what the rule knows to the findings of others.
    figures
        Unit and meaning of each figure and name in its sentences.
    """

    name: str
    title: str
    document: str
    detect: Callable[[Run], Iterable[Finding]]
    changes: Callable[[Run, Finding], Proposed]
    remark: Callable[[Run, list[Finding]], None]
    figures: Mapping[str, tuple[str, str]]

    @property
    def finds(self) -> bool:
        """Whether it makes findings of its own, and not only remarks."""
        return self.detect is not _nothing

    @classmethod
    def of(cls, module: ModuleType) -> Rule:
        """Return the rule that a module declares: `NAME`, `TITLE`, `DOCUMENT`, and those functions that it needs."""
        detect, changes, remark = (getattr(module, name, _nothing) for name in ("detect", "changes", "remark"))
        return cls(module.NAME, module.TITLE, module.DOCUMENT, detect, changes, remark, module.FIGURES.known)


class Run:
    """The focus of a run, as rules ask about it.

    Parameters
    ----------
    result
        The result.

    Attributes
    ----------
    losses
        The lost time by bearer.
    rest
        The bearers that no rule has explained so far.
    shared
        What takes longer while others use the same resource, once a rule has asked.
    """

    def __init__(self, result: ResultData) -> None:
        self.result = result
        self._known: dict[Callable[[Run], Any], Any] = {}
        self.shared: list[dict[str, Any]] | None = None
        self.losses = Losses(result)
        self.rest: dict[tuple[int, str], Bearer] = dict(self.losses.bearers)
        self.time = self.losses.account.time
        cells = self.losses.account.cells
        own = cells.filter(pc.starts_with(cells["row"].cast("string"), "computation."))
        self._callpath, self._location, self._ticks = (
            own[name].to_numpy() for name in ("callpath", "location", "time")
        )
        self._row = own["row"].cast("string").to_numpy(zero_copy_only=False)

    def once(self, of: Callable[[Run], _T]) -> _T:
        """Return what a function says about the run; it is asked once."""
        if of not in self._known:
            self._known[of] = of(self)
        return cast("_T", self._known[of])

    def own(self) -> list[Bearer]:
        """Return the bearers among the program's own code that no rule has explained, the largest first."""
        found = [bearer for bearer in self.rest.values() if bearer.kind == "own" and bearer.loss > 0]
        return sorted(found, key=lambda bearer: (-bearer.loss, bearer.callpath))

    def families(self, bearers: Iterable[Bearer]) -> Iterator[list[Bearer]]:
        """Yield bearers in groups: those below one call path that the same rank delays; each other is alone."""
        bearers = list(bearers)
        # A call path has one finding of a kind.
        taken = {-1, *(bearer.callpath for bearer in bearers)}
        groups: dict[tuple[int, int], list[Bearer]] = {}
        for bearer in bearers:
            ranks = self.culprits(bearer.costs)
            parent = self.result.tree.parents[bearer.callpath]
            is_alone = parent in taken or len(ranks) > 1 or self.ranks == 1 or bearer.callpath in self.kernels
            groups.setdefault((-1, bearer.callpath) if is_alone else (parent, ranks[0]), []).append(bearer)
        for (parent, _), group in groups.items():
            least = _SIBLING * max(bearer.loss for bearer in group)
            large = [bearer for bearer in group if bearer.loss >= least]
            if len(large) > 1 and parent not in taken:
                taken.add(parent)
                yield large
                yield from ([bearer] for bearer in group if bearer.loss < least)
            else:
                yield from ([bearer] for bearer in group)

    def mostly(self, of_class: str) -> Iterator[tuple[Bearer, float]]:
        """Yield the bearers that no rule has explained and whose loss is at least half waiting of a class, with it."""
        for bearer in sorted(self.rest.values(), key=lambda bearer: (-bearer.loss, bearer.callpath)):
            waiting = bearer.of_classes.get(of_class, 0.0)
            if bearer.waiting > 0 and waiting >= bearer.loss / 2:
                yield bearer, waiting

    def sum_of_times(self, callpaths: Iterable[int]) -> npt.NDArray[np.float64]:
        """Return the time in some call paths of own code by location, in the focus."""
        times = np.zeros(self.result.profile.locations)
        for callpath in callpaths:
            times += self.times(callpath)
        return times

    def sum_of_costs(self, callpaths: Iterable[int]) -> npt.NDArray[np.float64]:
        """Return the waiting that some call paths of own code cause, by location of the cause."""
        costs = np.zeros(self.result.profile.locations)
        for callpath in callpaths:
            costs += self.losses.bearer(callpath).costs
        return costs

    def family(self, bearers: list[Bearer]) -> dict[str, Any]:
        """Return what a finding has of a group of bearers: its call path, that of their parent if these are several."""
        of_classes: dict[str, float] = {}
        for bearer in bearers:
            for name, time in bearer.of_classes.items():
                of_classes[name] = of_classes.get(name, 0.0) + time
        callpaths = [bearer.callpath for bearer in bearers]
        several = len(callpaths) > 1
        return {
            "callpath": self.result.tree.parents[callpaths[0]] if several else callpaths[0],
            "merged": callpaths if several else [],
            "instances": max(int(self.visits(callpath).max()) for callpath in callpaths),
            "evidence": {"of_classes": of_classes},
        }

    def places(self, callpaths: list[int]) -> str:
        """Return a short name of call paths: that of one, or that of the parent of several with their functions."""
        if len(callpaths) == 1:
            return self.place(callpaths[0])
        names = [short_name(self.region(callpath).name) for callpath in callpaths]
        if len(names) > _NAMED:
            names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1} more"]
        parent = self.place(self.result.tree.parents[callpaths[0]])
        return f"{parent} ({', '.join(names[:-1])} and {names[-1]})"

    def take(self, *bearers: Bearer) -> None:
        """Take bearers as explained."""
        for bearer in bearers:
            self.rest.pop((bearer.callpath, bearer.kind), None)

    def finding(self, rule: str, sentence: Words, advice: Words | str | None, loss: float, **more: Any) -> Finding:
        """Return a finding with its share of the CPU time, or of the time of devices if that is its `base`."""
        callpath = more.get("callpath")
        is_blind = self.is_unwound and not self.result.facts.get("samples")
        if is_blind and callpath is not None and self.region(callpath).is_own:
            sentence = sentence.capitalized() + " (Functions without MPI calls are not recorded.)"
        values = list(sentence.values)
        if isinstance(advice, Words):
            values += advice.values
            advice = advice.text
        if callpath is not None and (source := self.source(callpath)) is not None:
            more["evidence"] = {"source": source} | more.get("evidence", {})
        whole = self.device_time if more.get("base") == "device" else self.time
        share = loss / whole if whole else 0.0
        return Finding(rule, sentence.text, advice, loss, share, values=values, **more)

    @cached_property
    def device_lines(self) -> list[dict[str, Any]]:
        """The lines of the account of devices in the focus."""
        return list(self.result.tables.device_account.to_pylist())

    @cached_property
    def device_time(self) -> float:
        """The time of all devices in the focus."""
        return float(sum(line["time"] for line in self.device_lines))

    @staticmethod
    def is_rooted(name: str) -> bool:
        """Return whether a function is a collective operation with a root: inside, ranks can wait for others."""
        return name.lower().strip("_").removesuffix("_c").removeprefix("mpi_") in _ROOTED

    @cached_property
    def unmatched(self) -> float:
        """The share of the receives that have no send in the trace, if they are many; otherwise 0."""
        number = sum(one["count"] for one in self.result.warnings if one["kind"] == "unmatched_receive")
        receives = sum(self.result.profile.total(name) for name in _RECEIVES if name in self.result.profile.metrics)
        share = number / receives if receives else 0.0
        return share if share >= _UNMATCHED else 0.0

    @property
    def inferred(self) -> float:
        """The share of the time that is waiting of which it is inferred which sends a call completes."""
        if all(one["kind"] != "inferred_completion" for one in self.result.warnings):
            return 0.0
        part = focused(self.result)
        waits = part.whole.tables.wait_states.filter(pc.field("inferred") & (pc.field("kind") == "mpi_latereceiver"))
        begin, end = part.focus.window or (0.0, float("inf"))
        enter = waits["enter"].to_numpy()
        waiting = waits["waiting"].to_numpy()[(enter >= begin) & (enter < end)].sum()
        return float(waiting) / self.time if self.time else 0.0

    @property
    def lacks_members(self) -> bool:
        """Whether collective operations lack members in the trace, so that waiting in them is unknown."""
        return any(one["kind"] == "incomplete_collective" for one in self.result.warnings)

    def slow(self) -> list[Bearer]:
        """Return the library calls and thread runtimes that no rule has explained."""
        return [bearer for bearer in self.rest.values() if bearer.kind in {"library", "threads"}]

    def reasons(self, name: str) -> list[dict[str, Any]]:
        """Return what the core has found that speaks for a reason, if anything."""
        found: list[dict[str, Any]] = self.result.facts.get("reasons", {}).get(name, [])
        return found

    def bears_most(self, found: list[Finding], of_class: str) -> Finding | None:
        """Return the finding that bears most of a class of waiting, if any does."""
        costs = {id(one): one.evidence.get("of_classes", {}).get(of_class, 0.0) for one in found}
        host = max(found, key=lambda one: costs[id(one)], default=None)
        return host if host is not None and costs[id(host)] > 0 else None

    def total(self, metric: str, callpath: int) -> float:
        """Return a metric of a call path over all locations, in the whole run."""
        return float(self.result.profile.row(metric, int(self.result.tree.position[callpath])).sum())

    @cached_property
    def kernels(self) -> list[int]:
        """The call paths of kernels that compute: what streams of devices run, but for copies and communication."""
        kinds = self.result.locations["type"].to_numpy(zero_copy_only=False)
        key, value = self.result.profile.cells("time")
        position, location = np.divmod(key, max(self.result.profile.locations, 1))
        on_streams = (kinds[location] == "ACCELERATOR_STREAM") & (value > 0)
        found = np.unique(self.result.profile.tree.preorder[position[on_streams]]).tolist()
        regions = {number: self.region(number) for number in found}
        return [
            number for number, region in regions.items() if region.paradigm != "ccl" and not _COPY.search(region.name)
        ]

    def computation(self, inside: npt.NDArray[np.bool_]) -> float:
        """Return the computation in some call paths, in the focus."""
        return float(self._ticks[inside[self._callpath]].sum())

    @cached_property
    def kinds(self) -> list[dict[str, Any]]:
        """The kinds of calls that are compared, from the table `network`; a rule that names their time reduces it."""
        return list(self.result.tables.network.to_pylist())

    def take_kinds(self, kinds: Iterable[dict[str, Any]]) -> None:
        """Take what calls of some kinds need as explained."""
        taken = {id(kind) for kind in kinds}
        self.kinds = [kind for kind in self.kinds if id(kind) not in taken]

    def times_in(self, row: str) -> dict[int, float]:
        """Return the time in a row of the account by call path."""
        cells = self.losses.account.cells
        cells = cells.filter(pc.equal(cells["row"].cast("string"), row))
        sums = cells.group_by("callpath").aggregate([("time", "sum")])
        return dict(zip(sums["callpath"].to_pylist(), sums["time_sum"].to_pylist(), strict=True))

    @cached_property
    def threads(self) -> int:
        """The largest number of threads of a process."""
        places = self.result.places
        return int(places.thread[places.works].max(initial=0)) + 1

    @cached_property
    def length(self) -> float:
        """The length of the focus, in seconds."""
        begin, end = self.losses.account.window
        return float(end - begin)

    def times(self, callpath: int, row: str | None = None) -> npt.NDArray[np.float64]:
        """Return the time of own code or a kernel by location, in the focus: all, or that of one row of the account."""
        if row is None and callpath in self.kernels:
            return focused(self.result).profile.row("time", int(self.result.tree.position[callpath]))
        here = self._callpath == callpath
        if row is not None:
            here &= self._row == row
        return sum_at(self._location[here], self._ticks[here], self.result.profile.locations)

    def times_of(self, callpath: int, row: str | None) -> npt.NDArray[np.float64]:
        """Return the time in a call path by location, in the focus: of own code, or in a row of the account."""
        if row is None:
            return self.times(callpath)
        cells = self.losses.account.cells
        of_path = pc.and_(pc.equal(cells["callpath"], callpath), pc.equal(cells["row"].cast("string"), row))
        here = cells.filter(pc.fill_null(of_path, False))
        return sum_at(here["location"].to_numpy(), here["time"].to_numpy(), self.result.profile.locations)

    def visits(self, callpath: int) -> npt.NDArray[np.float64]:
        """Return how often each location runs a call path, in the whole run; of a time window, that is not known."""
        tree, profile = self.result.tree, self.result.profile
        if "visits" not in profile.metrics:
            return np.where(self.times(callpath) > 0, float(INSTANCES), 0.0)
        key, value = profile.cells("visits")
        first = int(tree.position[callpath]) * profile.locations
        here = slice(*np.searchsorted(key, [first, first + profile.locations]))
        return sum_at(key[here] - first, value[here], profile.locations)

    def balance(self, callpath: int) -> float:
        """Return the mean of the times of the locations that run a call path, as a share of the longest."""
        times = self.times(callpath)
        times = times[times > 0]
        return float(times.mean() / times.max()) if times.size else 1.0

    def steady(self, bearer: Bearer) -> float:
        """Return the share of a bearer's waiting that its total times explain.

        If each location spent its time in one piece, all would wait for the one with the longest: by the sum of what
        the others lack. What varies from time to time, or is passed on from rank to rank, exceeds that.
        """
        return self.lacks(self.times(bearer.callpath)) / bearer.waiting if bearer.waiting > 0 else 0.0

    def lacks(self, times: npt.NDArray[np.float64]) -> float:
        """Return what all locations that run a call path lack of the longest time in it, and masters that do not."""
        here = (times > 0) | self.masters()
        return float((times.max(initial=0.0) - times[here]).sum())

    @cached_property
    def differences(self) -> float | None:
        """What ranks lack of the longest computation of each iteration, in all; None without iterations."""
        return None if self._iterated is None else self._iterated[0]

    @cached_property
    def alternates(self) -> bool:
        """Whether ranks compute for different times in single iterations, and that explains most of the waiting."""
        if self._iterated is None:
            return False
        lacks, computation = self._iterated
        waiting = sum(bearer.waiting for bearer in self.own())
        return lacks >= STEADY * waiting and lacks >= _ALTERNATES * computation

    def takes_turns(self, bearer: Bearer) -> bool:
        """Return whether the longest rank of a call path changes, and that explains most of the waiting for it.

        What the n-th pieces of its locations lack of the longest of them is known where all have as many; else the
        iterations tell.
        """
        turns = self._turns.get(bearer.callpath)
        if turns is None:
            return self.alternates
        return bool(turns["lacks"] >= max(STEADY * bearer.waiting, _ALTERNATES * turns["time"]))

    def differences_in(self, callpath: int) -> float | None:
        """Return what ranks lack of the longest of each piece of a call path, or else of each iteration, if known."""
        turns = self._turns.get(callpath)
        return self.differences if turns is None else float(turns["lacks"])

    @cached_property
    def _turns(self) -> dict[int, dict[str, Any]]:
        """What locations lack of the longest of each piece between calls, by call path."""
        return {one["callpath"]: one for one in self.reasons("turns")}

    @cached_property
    def _iterated(self) -> tuple[float, float] | None:
        """What ranks lack of the longest computation of each iteration, and what they compute, if there are any."""
        table = known_iterations(self.result)
        if table is None:
            return None
        ranks, mean, most = (table[name].to_numpy() for name in ("ranks", "computation", "slowest_computation"))
        return float((ranks * (most - mean)).sum()), float((ranks * mean).sum())

    def masters(self) -> npt.NDArray[np.bool_]:
        """Return which locations are the first of a rank with time in the focus."""
        with_time = np.unique(self.losses.account.cells["location"].to_numpy())
        masters = np.zeros(self.result.profile.locations, bool)
        masters[with_time[self.result.places.thread[with_time] == 0]] = True
        return masters

    @cached_property
    def changes(self) -> Changes:
        """Makes changes of call paths."""
        return Changes(self.result)

    def faster(self, finding: Finding, *factors: float) -> Proposed:
        """Yield making the call path of a finding faster, to each of these parts of its time, if it has one."""
        if finding.callpath is not None:
            for factor in factors:
                yield self.changes.faster(finding.callpath, factor)

    @cached_property
    def locations(self) -> int:
        """Number of CPU locations with time in the focus."""
        return int(np.unique(self.losses.account.cells["location"].to_numpy()).size)

    @cached_property
    def ranks(self) -> int:
        """Number of ranks with time in the focus."""
        rank = self.result.places.rank[np.unique(self.losses.account.cells["location"].to_numpy())]
        return int(np.unique(rank).size)

    def culprits(self, costs: npt.NDArray[np.float64]) -> list[int]:
        """Return the fewest ranks that have most of some costs."""
        return fewest(np.bincount(np.maximum(self.result.places.rank, 0), costs))

    def few(self) -> int:
        """Return how many ranks are few: a tenth, but at least one."""
        return max(1, self.ranks // 10)

    def region(self, callpath: int) -> Region:
        """Return the region of a call path."""
        tree = self.result.tree
        return tree.kinds[tree.region_rows[callpath]]

    def source(self, callpath: int) -> str | None:
        """Return file and line of the function of own code that a call path is in; None if they are not recorded."""
        tree = self.result.tree
        while callpath >= 0 and not self.region(callpath).is_own:
            callpath = int(tree.parents[callpath])
        if callpath < 0:
            return None
        row = tree.regions.slice(tree.region_rows[callpath], 1).to_pylist()[0]
        if not row["file"]:
            return None
        return f"{row['file']}:{row['begin_line']}" if row["begin_line"] else str(row["file"])

    def place(self, callpath: int) -> str:
        """Return a short name of a call path: its function, its caller, and what tells it from other bearers."""
        names = self._names(callpath)
        length = 2 if len(names) > 2 else 1
        while any(other[-length:] == names[-length:] for other in self._costly - {names}) and length < len(names):
            length += 1
        name = "/".join(names[-length:])
        # Functions without MPI calls are not recorded: their time is that of the function whose call came before.
        is_unknown = self.is_unwound and self.region(callpath).is_own
        return f"{UNSEEN}{name}" if is_unknown else name

    @property
    def is_unwound(self) -> bool:
        """Whether only functions with MPI calls are recorded, from the first to the last of these."""
        return bool(self.result.facts.get("call_paths") == "unwound")

    @cached_property
    def _costly(self) -> frozenset[tuple[str, ...]]:
        """The call paths of bearers that findings may name."""
        costly = (bearer for bearer in self.losses.bearers.values() if bearer.loss >= _COSTLY * self.time)
        return frozenset(self._names(bearer.callpath) for bearer in costly)

    def _names(self, callpath: int) -> tuple[str, ...]:
        return tuple(map(short_name, self.result.tree.path(callpath)))

    def location(self, location: int) -> str:
        """Return the words for a location: its rank, and its thread where others of the rank have time."""
        places = self.result.places
        rank, thread = int(places.rank[location]), int(places.thread[location])
        if self.threads == 1:
            return f"rank {rank}"
        return f"thread {thread}" if self.ranks == 1 else f"thread {thread} of rank {rank}"
