"""Changes of call paths that a simulation can judge, in the notation of ``whywait whatif``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.focus import profile_with
from whywait.hypotheses.kinds import (
    AsynchronousProgress,
    Balance,
    Cut,
    CutMessages,
    EagerLimit,
    IdealNetwork,
    Network,
    Overlap,
    Protocol,
    Scale,
    Selection,
    Set,
    Trim,
)
from whywait.model.names import short_name
from whywait.model.profile import sum_at
from whywait.model.selection import every_callpath

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.hypotheses.kinds import Hypothesis, Mode
    from whywait.model.result import ResultData

#: The kinds of changes, by name.
KINDS = ("balance", "scale", "cut", "cut-messages", "overlap", "eager-limit", "progress", "network")
_KINDS = {
    Balance: "balance",
    Scale: "scale",
    Set: "scale",
    Cut: "cut",
    CutMessages: "cut-messages",
    Overlap: "overlap",
    EagerLimit: "eager-limit",
    Protocol: "eager-limit",
    AsynchronousProgress: "progress",
    Network: "network",
    IdealNetwork: "network",
}

# Longer lists of ranks are counted.
_READABLE = 40
# If a few locations account for this share of the costs, a change adjusts these to the others.
_SLOW_COSTS, _SLOW_SHARE = 0.8, 0.1
# A send that always waits for its receive.
_SYNCHRONOUS = "MPI_Ssend"
# Locations with a smaller share of the time of the slow ones do hardly any of the work: nobody can be as fast.
_HARDLY = 0.05
# The words for the call paths below.
_BELOW = " and what it calls"


@dataclass(frozen=True)
class Change:
    """A change of a run.

    Attributes
    ----------
    hypothesis
        The change.
    what
        A description of it.
    label
        The same in a word or two, for a column.
    then
        The same at the begin of a sentence about the changed run.
    option
        The options of ``whywait whatif`` that simulate it.
    is_bound
        Whether nobody can make this change, so that it only bounds what others can save.
    window
        The part of the run to which it is restricted, seconds since the start of the trace; None for all.
    locations
        Number of locations that change.
    base
        The network of the run to compare with; None for the measured run.
    further
        What else belongs to the change.
    bound
        Upper bound of the saving, seconds; infinite if unknown.
    """

    hypothesis: Hypothesis
    what: str
    label: str
    then: str
    option: str
    is_bound: bool = False
    window: tuple[float, float] | None = None
    locations: int = 0
    base: Network | None = None
    further: tuple[Hypothesis, ...] = ()
    bound: float = math.inf

    @property
    def kind(self) -> str | None:
        """One of `KINDS`; None if it is none that a program or its network could make."""
        return _KINDS.get(type(self.hypothesis))

    @property
    def subject(self) -> tuple[str, ...]:
        """What it changes: a plan changes nothing twice, only by another amount."""
        if isinstance(self.hypothesis, (Scale, Set)):
            return "scale", str(self.hypothesis.selected)
        return ("eager-limit",) if isinstance(self.hypothesis, EagerLimit) else (self.option,)

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """All that belongs to the change."""
        return [self.hypothesis, *self.further]

    @classmethod
    def together(cls, changes: Sequence[Change], what: str) -> Change:
        """Return several changes as one, which is a bound if one of them is."""
        first = changes[0]
        return replace(
            first,
            what=what,
            option=" ".join(one.option for one in changes),
            is_bound=any(one.is_bound for one in changes),
            locations=max(one.locations for one in changes),
            further=tuple(other for one in changes for other in one.hypotheses)[len(first.hypotheses) :],
        )


class Changes:
    """Makes changes of the call paths of a run.

    Parameters
    ----------
    result
        The result.

    Attributes
    ----------
    fitted
        The network that fits the messages of the run best; None if it is unknown.
    """

    def __init__(self, result: ResultData, fitted: Network | None = None) -> None:
        self._result, self.fitted = result, fitted
        self._profile, self._tree = result.profile, result.tree

    def balance(self, number: int, among: str | None = None, *, below: bool = False) -> Change | None:
        """Return a balance of a call path over the locations that run it; None if there is only one.

        Parameters
        ----------
        number
            The call path.
        among
            ``process`` to balance the threads of each process only.
        below
            Whether to change the computation in the call paths below, too.
        """
        visits = self.by_location("visits", number)
        visits = visits[visits > 0]
        if visits.size < 2:
            return None
        mode: Mode = "scaled"
        if not below and (visits == visits[0]).all():
            mode = "segment" if self._calls_tell(number) else "instance"
        balance = Balance(self.selection(number, below=below), mode=mode, among=among)
        threads = "" if among is None else " among the threads of each process"
        return Change(
            balance,
            f"balance {self.name(number)}{_BELOW * below}{threads}",
            "balance" if among is None else "balance threads",
            "Balanced",
            _option(balance),
            locations=int(visits.size),
        )

    def _calls_tell(self, number: int) -> bool:
        """Return whether calls tell the pieces of work in a call path apart, as visits do not.

        A recording without compiled instrumentation has several visits as one, and a program may have one that does it
        all. All locations must make the same calls.
        """
        visits = self.by_location("visits", number)
        here = visits > 0
        if self._result.facts.get("call_paths") != "unwound" and visits.max(initial=0) > 1:
            return False
        called = np.flatnonzero(self._tree.above == self._tree.position[number])
        calls = [self._profile.row("visits", int(position))[here] for position in called]
        return bool(calls) and all(bool((of == of[0]).all()) for of in calls)

    def median(self, number: int) -> Change:
        """Return a change without noise: all instances of a call path take as long as their median."""
        return Change(
            median := Balance(self.selection(number), mode="median"),
            f"{self.name(number)} always as long as its median",
            "without noise",
            "Without the differences",
            _option(median),
            locations=self.location_count(number),
        )

    def as_before(self, first: tuple[float, float], last: tuple[float, float]) -> Change | None:
        """Return a change that makes the call path that has grown most as long as before.

        Parameters
        ----------
        first, last
            Two windows, begin and end in seconds: in the second, the call path takes longer.
        """
        times = []
        for begin, end in (first, last):
            cells = self._result.tables.account_window(begin, end)
            own = pc.starts_with(cells["row"].cast("string"), "computation.")
            cells = cells.filter(own)
            times.append(sum_at(cells["callpath"].to_numpy(), cells["time"].to_numpy(), len(self._tree)))
        grown = times[1] - times[0]
        number = int(grown.argmax())
        visits = float(self.by_location("visits", number).sum())
        whole = float(self.by_location("time", number).sum())
        if grown[number] <= 0 or not visits or not whole or not times[0].any():
            return None
        # The mean of a visit, by its time in the first window against that in all of the run.
        length = self._result.facts["length"]
        before = times[0][number] / (first[1] - first[0]) * length / visits
        duration = float(f"{before:.4g}")
        return Change(
            Set(selection := self.selection(number), duration),
            f"{self.name(number)} as long as in the first tenth of the iterations",
            "as at first",
            "As at first",
            f"--set '{selection}={duration:.10g}s'",
            locations=self.location_count(number),
        )

    def eager(self, size: int) -> Change:
        """Return a change of the eager limit."""
        return Change(
            EagerLimit(size),
            f"messages up to {size:,} bytes eager",
            "eager",
            "Sent eagerly",
            f"--eager-limit {size}",
            locations=len(self._result.places),
        )

    def early_sends(self) -> Change | None:
        """Return a change that lets sends go on before they are received; None if none waits for that."""
        if "mpi_latereceiver" not in self._profile.metrics:
            return None
        most = int(self._profile.by_position("mpi_latereceiver").argmax())
        if self._tree.kinds[self._tree.region_rows[int(self._tree.preorder[most])]].name == _SYNCHRONOUS:
            protocol = Protocol(_SYNCHRONOUS, "eager")
            option = f"--protocol '{_SYNCHRONOUS}=eager'"
            what, locations = f"{_SYNCHRONOUS} as eager sends", len(self._result.places)
            return Change(protocol, what, "eager", "Sent eagerly", option, locations=locations)
        size = self._largest_message()
        return self.eager(size) if size else None

    def _largest_message(self) -> int:
        """Return the largest mean message size of a call path on a rank; 0 without messages."""
        profile = profile_with(self._result, "bytes_sent")
        count, volume = (profile.cells(name) for name in ("comms_send", "bytes_sent"))
        _, of_count, of_volume = np.intersect1d(count.key, volume.key, return_indices=True)
        if not of_count.size:
            return 0
        return math.ceil(float((volume.value[of_volume] / count.value[of_count]).max()))

    def asynchronous(self) -> Change:
        """Return the change that one-sided operations complete without their target."""
        return Change(
            AsynchronousProgress(),
            "asynchronous progress of one-sided operations",
            "progress",
            "With asynchronous progress",
            "--progress asynchronous",
            locations=len(self._result.places),
        )

    def cut(self, number: int) -> Change:
        """Return the change that a call vanishes, and with it that of all members of a collective operation."""
        selection = self.selection(number)
        return Change(
            Cut(selection),
            f"without {self.name(number)}, if it is not needed",
            "cut",
            f"Without {self.name(number)}",
            f"--cut '{selection}'",
            locations=self.location_count(number),
        )

    def unlocked(self, number: int) -> Change:
        """Return the bound of what a lock costs that a call path acquires: the call vanishes, with what it protects."""
        return replace(
            self.cut(number),
            what=f"no lock in {self.name(number)}",
            label="no lock",
            then=f"Without the lock in {self.name(number)}",
            is_bound=True,
        )

    def not_waited_for(self, number: int) -> Change:
        """Return the bound of what a call costs in which a host waits for one device before it uses another."""
        return replace(
            self.cut(number),
            what=f"devices at once: not to wait in {self.name(number)}",
            label="devices at once",
            then="With devices at once",
            is_bound=True,
        )

    def without_empty_messages(self) -> Change:
        """Return the change that messages without data vanish."""
        return Change(
            CutMessages("size==0"),
            "without empty messages",
            "no empty messages",
            "Without empty messages",
            "--cut-messages 'size==0'",
            locations=len(self._result.places),
        )

    def overlapped(self, number: int) -> Change:
        """Return the change that messages are completed only after the computation that follows."""
        selection = self.selection(number)
        return Change(
            Overlap(selection),
            f"{self.name(number)} after the computation that follows, if that needs none of its messages",
            "overlap",
            "Overlapped",
            f"--overlap '{selection}'",
            locations=self.location_count(number),
        )

    def like_others(self, number: int, costs: npt.NDArray[np.float64], *, below: bool = False) -> Change | None:
        """Return a change that makes the slow locations as fast as the others, if few have most of the costs.

        Parameters
        ----------
        number
            The call path.
        costs
            What it costs, by location.
        below
            Whether to change the computation in the call paths below, too.
        """
        here = np.flatnonzero(self.by_location("visits", number))
        return self._like_others(number, (here, self._computation(number, below=below)), costs, below=below)

    def ranks_like_others(self, number: int, ranks: Sequence[int]) -> Change | None:
        """Return a change that makes a call path of some ranks as fast as that of the others."""
        time = self._computation(number, below=False)
        here = np.flatnonzero(time)
        slow = here[np.isin(self._result.places.rank[here], ranks)]
        return self._as_fast(number, slow, np.setdiff1d(here, slow), time)

    def function_like_others(
        self, number: int, time: npt.NDArray[np.float64], costs: npt.NDArray[np.float64], *, below: bool
    ) -> Change | None:
        """Return the same for a function that only samples have seen, given its time by location."""
        return self._like_others(number, (np.flatnonzero(time), time), costs, below=below)

    def _like_others(
        self,
        number: int,
        has: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]],
        costs: npt.NDArray[np.float64],
        *,
        below: bool,
    ) -> Change | None:
        here, time = has
        slow = np.argsort(-costs, kind="stable")[: max(1, int(_SLOW_SHARE * here.size))]
        slow = slow[costs[slow] > 0]
        others = np.setdiff1d(here, slow)
        if costs[slow].sum() < _SLOW_COSTS * costs.sum():
            return None
        return self._as_fast(number, slow, others, time, below=below)

    def _as_fast(
        self,
        number: int,
        slow: npt.NDArray[np.int64],
        others: npt.NDArray[np.int64],
        time: npt.NDArray[np.float64],
        *,
        below: bool = False,
    ) -> Change | None:
        """Return a change that makes some locations as fast as others."""
        if not slow.size or not others.size:
            return None
        slow_time, other_time = (float(time[those].sum() / those.size) for those in (slow, others))
        if not _HARDLY * slow_time < other_time < slow_time:
            return None
        ranks = rank_list([self._rank_label(one) for one in sorted(slow.tolist())])
        factor = float(f"{other_time / slow_time:.4g}")
        selection = self.selection(number, ranks, below=below)
        who = f"rank{'s' * (slow.size > 1)} {ranks}" if len(ranks) <= _READABLE else f"{slow.size:,} ranks"
        return Change(
            Scale(selection, factor),
            f"{self.name(number)}{_BELOW * below} on {who} as fast as elsewhere",
            "as elsewhere",
            "As fast as elsewhere",
            f"--scale '{selection}={factor:g}'",
            locations=int(slow.size),
        )

    def faster(self, number: int, factor: float, *, below: bool = False) -> Change:
        """Return a change that multiplies the time in a call path, and in those below: a factor of 0 is a bound."""
        known = {0.75: ("a quarter faster",) * 2, 0.5: ("twice as fast",) * 2, 0.0: ("in no time", "no time")}
        words, label = known.get(factor, (f"{1 / factor if factor else 0:.2g} times as fast",) * 2)
        selection = self.selection(number, below=below)
        return Change(
            Scale(selection, factor),
            f"{self.name(number)}{_BELOW * below} {words}",
            label,
            f"{words[0].upper()}{words[1:]}",
            f"--scale '{selection}={factor:g}'",
            is_bound=factor == 0.0,
            locations=self.location_count(number),
        )

    def copied_faster(self, number: int, factor: float) -> Change:
        """Return the same for a copy to or from a device: a factor of 0 is a bound, as if kernels hid it."""
        words = "at the same time as kernels" if factor == 0.0 else f"with {1 / factor:.2g} times the bandwidth"
        what = f"{self.name(number)} {words}"
        return replace(self.faster(number, factor), what=what, then=f"{words[0].upper()}{words[1:]}")

    def distribute(self, number: int, ranks: int) -> Change:
        """Return a change that divides the work in a call path, which one rank does, among all ranks."""
        factor = float(f"{1 / ranks:.4g}")
        selection = self.selection(number)
        return Change(
            Scale(selection, factor),
            f"{self.name(number)} distributed over {ranks} ranks",
            "distribute",
            "Distributed",
            f"--scale '{selection}={factor:g}'",
            locations=self.location_count(number),
        )

    def trim(self, number: int | None = None) -> Change:
        """Return the change that makes all calls, or those of a call path, as fast as the fastest of their kind."""
        which = "every call" if number is None else f"every {self.name(number)}"
        trim = Trim() if number is None else Trim(self.selection(number))
        return Change(
            trim,
            f"{which} as fast as the fastest 5% of its kind",
            "trim",
            f"If {which} were as fast as the fastest 5%",
            "--trim all" if number is None else f"--trim '{trim.selected}'",
            locations=len(self._result.places),
        )

    def ideal_network(self) -> Change:
        """Return the bound of all changes of the network in the focus: calls only wait."""
        facts = self._result.facts
        option, window = "--network ideal", None
        if facts.get("focus_rule") == "last_finalize":
            # As the option has it: whole microseconds, outwards.
            begin, end = np.floor(facts["focus_begin"] * 1e6) / 1e6, np.ceil(facts["focus_end"] * 1e6) / 1e6
            option = f"--network ideal --window {begin:.6f}:{end:.6f}"
            window = (float(f"{begin:.6f}"), float(f"{end:.6f}"))
        return Change(
            IdealNetwork(),
            "an ideal network",
            "ideal network",
            "With an ideal network",
            option,
            is_bound=True,
            window=window,
            locations=len(self._result.places),
        )

    def half_latency(self) -> Change | None:
        """Return a network with half the latency of the one that fits; None if that is unknown."""
        if (fitted := self.fitted) is None:
            return None
        local = None if fitted.local_latency is None else fitted.local_latency / 2
        changed = replace(fitted, latency=fitted.latency / 2, local_latency=local)
        return self._network(changed, "half the latency", "half latency")

    def twice_bandwidth(self) -> Change | None:
        """Return a network with twice the bandwidth of the one that fits; None if that is unknown or infinite."""
        if (fitted := self.fitted) is None:
            return None
        local = None if fitted.local_bandwidth is None else 2 * fitted.local_bandwidth
        changed = replace(fitted, bandwidth=2 * fitted.bandwidth, local_bandwidth=local)
        return None if changed == fitted else self._network(changed, "twice the bandwidth", "twice bandwidth")

    def _network(self, changed: Network, what: str, label: str) -> Change:
        numbers = (str(network).removeprefix("network ") for network in (changed, self.fitted))
        return Change(
            changed,
            f"{what} of the network that fits",
            label,
            f"With {what}",
            "--network '{}' --base '{}'".format(*numbers),
            locations=len(self._result.places),
            base=self.fitted,
        )

    def by_location(self, metric: str, number: int) -> npt.NDArray[np.float64]:
        """Return a metric in a call path by location."""
        return self._profile.row(metric, int(self._tree.position[number]))

    def _computation(self, number: int, *, below: bool) -> npt.NDArray[np.float64]:
        """Return the time in a call path by location, with the program's own code below it if that is asked for."""
        time = self.by_location("time", number)
        if below:
            first = int(self._tree.position[number])
            for position in range(first + 1, int(self._tree.end[first])):
                if self._tree.kinds[self._tree.region_rows[int(self._tree.preorder[position])]].is_own:
                    time = time + self._profile.row("time", position)
        return time

    def location_count(self, number: int) -> int:
        """Return how many locations run a call path."""
        return int(np.count_nonzero(self.by_location("visits", number)))

    def _rank_label(self, location: int) -> str:
        places = self._result.places
        thread = int(places.thread[location])
        return f"{places.rank[location]}" + (f".{thread}" if thread else "")

    def name(self, number: int) -> str:
        """Return the shortest end of a call path that distinguishes it from others."""
        path = self.selection(number).path
        return short_name(self._tree.path(number)[-1]) if path.isdecimal() else path

    def selection(self, number: int, ranks: str | None = None, *, below: bool = False) -> Selection:
        """Return the shortest text that selects only this call path, or it and those below; its number if none does."""
        names = [short_name(name) for name in self._tree.path(number)]
        position = int(self._tree.position[number])
        for first in reversed(range(len(names))):
            text = "/".join(names[first:])
            if every_callpath(self._tree, text) == [position]:
                if not re.fullmatch(r"[\w/.:+-]+", text) or text.isdecimal():
                    break
                return Selection(text, below, ranks=ranks)
        return Selection(str(number), below, ranks=ranks)


def _option(balance: Balance) -> str:
    """Return a balance as an option of ``whywait whatif``."""
    return f"--balance '{str(balance).removeprefix('balance ')}'"


def rank_list(labels: list[str]) -> str:
    """Return labels of locations as a list of ranks; consecutive ranks become a range.

    >>> rank_list(["0", "1", "2", "5.1", "7"])
    '0-2,5.1,7'
    """
    ranges: list[list[str]] = []
    for label in labels:
        if ranges and label.isdecimal() and ranges[-1][-1].isdecimal() and int(label) == int(ranges[-1][-1]) + 1:
            ranges[-1].append(label)
        else:
            ranges.append([label])
    return ",".join(one[0] if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in ranges)
