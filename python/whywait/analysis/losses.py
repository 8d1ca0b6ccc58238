"""Losses by bearer: who is to blame for each lost second.

Rows of the account say where time is lost; a *bearer* says why. Waits and idle threads are borne by the activities that
the cost model charges for them, all other lost time by the call path that it is spent in. So the losses of all bearers
add up to the lost time of the account.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.account import account, rows
from whywait.analysis.causes import IDLE, IDLE_THREADS, UNATTRIBUTED, cost_classes
from whywait.analysis.focus import focused
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.account import Account
    from whywait.model.profile import Profile
    from whywait.model.result import ResultData

# Classes whose waits are no rows of CPU locations that are lost.
_DEVICES = frozenset({"gpu_host", "gpu_device", "ccl"})
_MESSAGES = frozenset({"latesender", "latereceiver", "rma_late_post", "rma_early_wait"})
# Classes of waits for threads of the same process.
_OF_THREADS = frozenset({"ompbarrier", "task", "join", "signal", "pthreadbarrier", "threadlock"})
_OF_GROUP = {
    "computation": "own",
    "transfer": "library",
    "waiting": "library",
    "threads": "threads",
    "io": "io",
    "devices": "device",
    "other": "other",
}
# A call path that computes is own code, whatever else is booked there.
_FIRST = ("computation", "threads", "transfer", "io", "devices", "other", "waiting")
_THREADS = frozenset({"openmp", "pthread"})


@dataclass
class Bearer:
    """A call path and the losses that it is to blame for.

    Attributes
    ----------
    callpath
        Its number.
    kind
        ``own`` for the program's own code, ``library``, ``threads``, ``io``, ``device`` or ``other``.
    costs
        Waiting that it causes, by location of the cause, in seconds.
    of_classes
        The same by class of costs.
    long_term
        The part of it that it causes through other waits.
    idle
        Time of threads that are idle because of it.
    spent
        Lost time that is spent in the call path itself, by row.
    """

    callpath: int
    kind: str
    costs: npt.NDArray[np.float64]
    of_classes: dict[str, float] = field(default_factory=dict)
    long_term: float = 0.0
    idle: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def waiting(self) -> float:
        """All waiting that it causes."""
        return float(self.costs.sum())

    @property
    def loss(self) -> float:
        """All that it is to blame for."""
        return self.waiting + self.idle + sum(self.spent.values())

    @property
    def of_messages(self) -> float:
        """The waiting for messages that it causes."""
        return sum(time for name, time in self.of_classes.items() if name in _MESSAGES)

    def charge(self, metric: str, of_class: str, costs: npt.NDArray[np.float64]) -> None:
        """Add costs by location: values of a metric, which belongs to a class of costs."""
        if amount := float(costs.sum()):
            self.costs += costs
            self.of_classes[of_class] = self.of_classes.get(of_class, 0.0) + amount
            self.long_term += amount if metric.endswith("_longterm") else 0.0

    def take(self, row: str, time: float) -> float:
        """Take lost time of a row as explained, as far as there is any left; return how much that is."""
        taken = min(time, self.spent.get(row, 0.0))
        if taken > 0:
            self.spent[row] -= taken
        return max(taken, 0.0)

    def take_waiting(self, where: npt.NDArray[np.int64]) -> float:
        """Take the waiting that it causes at some locations as explained; return how much that is."""
        before = self.waiting
        taken = float(self.costs[where].sum())
        if taken > 0:
            self.costs[where] = 0.0
            left = 1 - taken / before
            self.of_classes = {name: time * left for name, time in self.of_classes.items()}
            self.long_term *= left
        return taken


@dataclass
class _Construct:
    """The costs that the own code of a construct can have: while it runs, each other location waits at most once.

    Its other costs are those of the runtime that creates and joins its threads.

    Attributes
    ----------
    room
        By location, the costs that it can still have, in seconds.
    team
        By location, the costs of waits of other threads of its process that it can have.
    """

    room: npt.NDArray[np.float64]
    team: npt.NDArray[np.float64]

    def divide(
        self, costs: npt.NDArray[np.float64], of_class: str
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Divide costs by location into those of the own code and those of the runtime."""
        own = np.minimum(costs, self.room)
        if of_class in _OF_THREADS:
            own = np.minimum(own, self.team)
        self.room -= own
        return own, costs - own


class Losses:
    """The lost time of the focus by bearer.

    Parameters
    ----------
    result
        The result.
    """

    def __init__(self, result: ResultData) -> None:
        self.result = result
        self.account: Account = account(result)
        self._locations = result.profile.locations
        self.bearers: dict[tuple[int, str], Bearer] = {}
        #: Waiting without a known cause, and waiting that is caused outside of the focus.
        self.unattributed = self.outside = 0.0
        self._spend()
        if result.has_causes:
            self._charge()
        else:
            self.unattributed = self.account.of_groups["waiting"]
        self._idle()

    @cached_property
    def lost(self) -> float:
        """All lost time."""
        return self.account.lost

    def sum(self) -> float:
        """Return the sum over all bearers, and of what nobody bears."""
        return sum(bearer.loss for bearer in self.bearers.values()) + self.unattributed + self.outside

    def bearer(self, callpath: int, kind: str | None = None) -> Bearer:
        """Return the bearer of a call path: of what it is, or of the runtime of threads that its time is spent in."""
        kind = kind or self._kinds.get(callpath, "own")
        if (callpath, kind) not in self.bearers:
            self.bearers[callpath, kind] = Bearer(callpath, kind, np.zeros(self._locations))
        return self.bearers[callpath, kind]

    @cached_property
    def _kinds(self) -> dict[int, str]:
        """The kind of each call path with time in the focus."""
        found: dict[int, set[str]] = {}
        for line in self._lines:
            if line["callpath_id"] is not None and line["group"] != "idle":
                found.setdefault(line["callpath_id"], set()).add(line["group"])
        tree = self.result.tree
        kinds = {}
        for callpath, names in found.items():
            group = next(name for name in _FIRST if name in names)
            kinds[callpath] = _OF_GROUP[group]
            if group == "waiting" and tree.kinds[tree.region_rows[callpath]].paradigm in _THREADS:
                kinds[callpath] = "threads"
        return kinds

    @cached_property
    def _lines(self) -> list[dict[str, Any]]:
        return list(self.account.table("callpath").to_pylist())

    def _spend(self) -> None:
        """Book lost time that is neither waiting nor idle to the call path that it is spent in."""
        for line in self._lines:
            if not rows()[line["row"]].is_lost or line["group"] in {"waiting", "idle"}:
                continue
            if line["callpath_id"] is None:
                self.unattributed += line["time"]
                continue
            # A construct computes, and its team is created and joined: the latter is no matter of its code.
            kind = "threads" if line["group"] == "threads" else None
            spent = self.bearer(line["callpath_id"], kind).spent
            spent[line["row"]] = spent.get(line["row"], 0.0) + line["time"]

    def _charge(self) -> None:
        """Book waiting to its causes."""
        part = focused(self.result)
        waiting = self.account.of_groups["waiting"]
        classes = [kind for kind in cost_classes(part.profile.metrics) if kind.name not in IDLE | _DEVICES]
        names = [name for kind in classes for name in kind.metrics]
        of_all, inside = (sum(profile.total(name) for name in names) for profile in (part.charged, part.profile))
        # With tasks in barriers, the model charges more than there is.
        scale = min(1.0, waiting / of_all) if of_all > 0 else 0.0
        constructs = self._constructs()
        self.unattributed += max(0.0, waiting - of_all * scale)
        self.outside += (of_all - inside) * scale
        for kind in classes:
            for name in kind.metrics:
                callpath, location, value = _cells(part.profile, name)
                if kind.name == UNATTRIBUTED:
                    self.unattributed += float(value.sum()) * scale
                    continue
                for number in np.unique(callpath).tolist():
                    here = callpath == number
                    costs = sum_at(location[here], value[here] * scale, self._locations)
                    if (own := constructs.get(number)) is not None:
                        costs, of_runtime = own.divide(costs, kind.name)
                        self.bearer(number, "threads").charge(name, kind.name, of_runtime)
                    self.bearer(number).charge(name, kind.name, costs)

    def _constructs(self) -> dict[int, _Construct]:
        """Return the constructs that have own code and a runtime that creates and joins their threads."""
        lines = [line for line in self._lines if line["group"] == "threads"]
        runtimes = {line["callpath_id"] for line in lines if self._kinds.get(line["callpath_id"]) == "own"}
        cells = self.account.cells
        computes = pa.array([name for name, row in rows().items() if row.group == "computation"])
        cells = cells.filter(pc.is_in(cells["row"].cast(pa.string()), computes))
        callpath, location, time = (cells[name].to_numpy() for name in ("callpath", "location", "time"))
        places = self.result.places
        working = np.unique(self.account.cells["location"].to_numpy())
        of_ranks = np.bincount(np.maximum(places.rank[working], 0), minlength=int(places.rank.max(initial=0)) + 1)
        team = of_ranks[np.maximum(places.rank, 0)] - 1.0
        found = {}
        for number in runtimes:
            here = callpath == number
            own = sum_at(location[here], time[here], self._locations)
            found[number] = _Construct(own * (working.size - 1), own * team)
        return found

    def _idle(self) -> None:
        """Book idle threads to what their master does, or to what it waits for."""
        waits = 0.0
        for line in self._lines:
            if line["group"] != "idle":
                continue
            if line["callpath_id"] is None:
                self.unattributed += line["time"]
            elif line["row"] == "idle.library":
                waits += line["time"]
                self.bearer(line["callpath_id"]).idle += line["time"]
            else:
                self.bearer(line["callpath_id"]).idle += line["time"]
        if waits and self.result.has_causes:
            self._pass_on(waits)

    def _pass_on(self, waits: float) -> None:
        """Book threads that are idle while their master waits to the cause of that wait."""
        profile = focused(self.result).profile
        name = f"delay_{IDLE_THREADS}_longterm"
        if name not in profile.metrics:
            return
        callpath, _, value = _cells(profile, name)
        passed = min(1.0, waits / float(value.sum())) if value.size else 0.0
        moved = float(value.sum()) * passed
        for line in self._lines:
            if line["row"] == "idle.library" and line["callpath_id"] is not None:
                self.bearer(line["callpath_id"]).idle -= line["time"] * moved / waits
        for number in np.unique(callpath).tolist():
            self.bearer(number).idle += float(value[callpath == number].sum()) * passed


def _cells(profile: Profile, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return call paths, locations and values of a metric."""
    key, value = profile.cells(name)
    position, location = np.divmod(key, max(profile.locations, 1))
    return profile.tree.preorder[position], location, value
