"""Candidate changes, derived from delay costs and the critical path.

After figure 4.4 of M.-A. Hermanns, Jül-4297 (2008), which leaves to people what is a rule here: analyze, find
imbalance, propose a change. What each change gains, only a simulation says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.causes import costliest, critical, delay_costs
from whywait.analysis.changes import Change, Changes
from whywait.analysis.findings import findings, proposals
from whywait.analysis.findings.finding import Run
from whywait.analysis.focus import FocusedData, profile_with, whole_of
from whywait.analysis.functions.functions import by_location, divided, is_of_samples, longest_functions
from whywait.hypotheses.kinds import Scale
from whywait.model.profile import sum_at
from whywait.model.regions import COMMUNICATION
from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy.typing as npt

    from whywait.hypotheses.kinds import Network
    from whywait.model.result import ResultData

_PLACES = 50
_LONGEST = 5
# Costs, and imbalance, from this share of the time on; other waiting from half of it on.
_SHARE = 0.01
_WAITING = 0.005

# Devices take turns from this share of their time on.
_TURNS = 0.1
# The number of call paths to propose of owners of locks, of calls that acquire locks, and of tasks; and constructs
# whose work is what they protect.
_OWNERS = 3
# A wait for a condition variable also waits for its mutex.
_CONDITION = "pthread_lock_contention_conditional"
_PROTECTING = ("critical", "critical sblock", "ordered sblock")

_BARRIERS = ("mpi_barrier_wait", "shmem_barrier_wait", "armci_barrier_wait", "pgas_barrier_wait")
# Waits for messages that computation could hide, and the calls that have them.
_MESSAGE_WAITS = ("mpi_latesender", "mpi_latereceiver", "mpi_exchange_latereceiver")
_OVERLAPPED = ("mpi_wait", "mpi_waitall", "mpi_recv", "mpi_send", "mpi_ssend", "mpi_sendrecv")
_EXCHANGES = ("mpi_wait_nxn", "shmem_wait_nxn", "armci_wait_nxn", "pgas_wait_nxn")


def candidates(result: ResultData, only: Collection[str] | None = None, network: Network | None = None) -> list[Change]:
    """Return candidate changes of a run, without duplicates.

    Parameters
    ----------
    result
        The result or a focus of it, with causes.
    only
        Kinds to propose, of `KINDS`; None for all.
    network
        The network that fits the run, as a base for others; None if unknown.
    """
    result.need_causes()
    found: dict[str, Change] = {}
    for candidate in _Proposer(result, network).propose():
        if only is None or candidate.kind in only:
            found.setdefault(candidate.option, candidate)
    return list(found.values())


class _Proposer:
    def __init__(self, result: ResultData, network: Network | None) -> None:
        self._result = result
        whole = whole_of(result)
        self._changes = Changes(whole, network)
        self._profile, self._tree = result.profile, result.tree
        self._time = self._profile.total("time")
        self._path = critical(result, _PLACES)
        # Changes concern the whole run, whatever suggests them.
        self._on_path = {place["callpath_id"]: place["time"] for place in critical(whole, len(whole.tree))["callpaths"]}

    def propose(self) -> Iterator[Change]:
        yield from self._from_delay_costs()
        yield from self._from_critical_path()
        yield from self._from_functions()
        yield from self._from_devices()
        yield from self._from_operations()
        yield from self._from_messages()
        yield from self._from_overlap()
        yield from self._from_libraries()
        yield from self._from_findings()

    def _from_findings(self) -> Iterator[Change]:
        """Yield what findings propose: their prices and the advice are of the same changes."""
        whole = whole_of(self._result)
        focus = self._result.focus.callpath if isinstance(self._result, FocusedData) else None
        run = Run(whole)
        run.changes.fitted = self._changes.fitted
        for _, change in proposals(run, findings(whole, focus=focus).notable):
            if isinstance(change, Change) and change.kind is not None:
                yield change

    def _from_delay_costs(self) -> Iterator[Change]:
        """Yield changes of the costliest delays: balance them; if few locations cause them, adjust these only."""
        for place in self._delays[:_PLACES]:
            number = place["callpath_id"]
            if place["costs"] < _SHARE * self._time or not self._computes(number):
                continue
            yield from self._balance(number)
            yield from self._like_others(number, self._costs_of(number))

    def _like_others(self, number: int, costs: npt.NDArray[np.float64]) -> Iterator[Change]:
        if (change := self._changes.like_others(number, costs)) is not None:
            factor = change.hypothesis.factor if isinstance(change.hypothesis, Scale) else 0.0
            yield replace(change, bound=(1 - factor) * self._on_path.get(number, 0.0))

    def _from_critical_path(self) -> Iterator[Change]:
        """Yield changes of call paths on the critical path: balance them, make them faster."""
        for place in self._path["callpaths"]:
            if place["imbalance"] >= _SHARE * self._path["length"] and self._computes(place["callpath_id"]):
                yield from self._balance(place["callpath_id"])
        longest = [place for place in self._path["callpaths"] if self._computes(place["callpath_id"])]
        for place in longest[:_LONGEST]:
            for factor in (0.75, 0.5, 0.0):
                yield self._faster(place["callpath_id"], factor)
        yield from self._from_ownership(self._owners("interval_lock"), "holds locks")
        for number in self._lock_calls():
            yield self._changes.unlocked(number)
        of_tasks = self._owners("interval_task")
        for number in of_tasks:
            if (balance := self._changes.balance(number, among="process")) is not None:
                yield replace(balance, bound=self._on_path.get(number, math.inf))
        yield from self._from_ownership(of_tasks, "in tasks that threads wait for")

    @cached_property
    def _delays(self) -> list[dict[str, Any]]:
        """All call paths whose delays cost waiting, the costliest first."""
        return costliest(self._result, len(self._tree), paid_for="waiting")

    def _from_functions(self) -> Iterator[Change]:
        """Yield faster functions that only samples have seen: on the critical path, and where they make ranks late."""
        for one in longest_functions(self._result, _LONGEST):
            if (number := one.callpath) is not None:
                locations = int(np.count_nonzero(by_location(self._result, number)))
                for factor in (0.75, 0.5, 0.0):
                    change = self._changes.faster(number, factor, below=bool(one.calls))
                    yield replace(change, bound=(1 - factor) * one.value, locations=locations)
        for place in self._delays[:_PLACES]:
            recorded = place["callpath_id"]
            division = divided(self._result, [recorded]) if place["costs"] >= _SHARE * self._time else None
            for one in division.named if division is not None else ():
                if is_of_samples(number := one.callpath, self._result):
                    time, costs = by_location(self._result, number), self._costs_of(recorded)
                    like = self._changes.function_like_others(number, time, costs, below=bool(one.calls))
                    if like is not None:
                        yield replace(like, bound=self._on_path.get(recorded, 0.0))

    def _costs_of(self, number: int) -> npt.NDArray[np.float64]:
        """Return what a call path costs, by location."""
        callpath, location, costs = self._costs
        rows = callpath == number
        return sum_at(location[rows], costs[rows], len(self._result.places))

    @cached_property
    def _costs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Call path, location, and cost of all delays."""
        table = delay_costs(self._result)
        callpath, location = (table[name].to_numpy().astype(np.int64) for name in ("callpath", "location"))
        return callpath, location, table["short_term"].to_numpy() + table["long_term"].to_numpy()

    def _owners(self, kind: str) -> list[int]:
        """Return the call paths of work that costs most while others wait for its end, as `kind` names it."""
        found = []
        for place in self._delays:
            costs = sum(one["costs"] for one in place["classes"] if one["class"] == kind)
            number = place["callpath_id"]
            if costs >= _WAITING * self._time and (self._computes(number) or self._owns(number)):
                found.append((costs, -number))
        return [-number for _, number in sorted(found, reverse=True)[:_OWNERS]]

    def _lock_calls(self) -> list[int]:
        """Return the call paths in which threads wait longest for locks."""
        of_locks = [metric.name for metric in self._profile.metrics.waiting
                    if patterns()[metric.name].cost_class == "threadlock" and metric.name != _CONDITION]  # fmt: skip
        if not of_locks:
            return []
        waiting = np.sum([self._profile.by_position(name) for name in of_locks], axis=0)
        longest = np.argsort(-waiting, kind="stable")[:_OWNERS]
        return [int(self._tree.preorder[at]) for at in longest if waiting[at] >= _WAITING * self._time]

    def _from_ownership(self, owners: list[int], what: str) -> Iterator[Change]:
        """Yield making work faster that others wait for the end of."""
        for number in owners:
            faster = self._faster(number, 0.5)
            yield replace(faster, what=f"{self._changes.name(number)} ({what}) twice as fast")

    def _from_devices(self) -> Iterator[Change]:
        """Yield faster kernels and copies, and hosts that do not wait for one device before they use another."""
        streams = self._result.places.is_stream
        if not streams.any():
            return
        on_path = [place for place in self._path["callpaths"] if self._runs_on_device(place["callpath_id"])]
        for place in on_path[:_LONGEST]:
            number = place["callpath_id"]
            if self._tree.kinds[self._tree.region_rows[number]].role == "data transfer":
                for factor in (0.5, 0.0):
                    bound = (1 - factor) * self._on_path[number]
                    yield replace(self._changes.copied_faster(number, factor), bound=bound)
            else:
                for factor in (0.75, 0.5, 0.0):
                    yield self._faster(number, factor)
        lines = self._result.tables.device_account.to_pylist()
        turns = [line for line in lines if line["row"] == "starved.other_device" and line["callpath"] is not None]
        if sum(line["time"] for line in turns) < _TURNS * sum(line["time"] for line in lines):
            return
        for number in sorted({line["callpath"] for line in turns}):
            yield self._changes.not_waited_for(number)

    def _runs_on_device(self, number: int) -> bool:
        """Return whether a call path is a kernel or a copy of a device."""
        return bool(self._changes.by_location("visits", number)[self._result.places.is_stream].any())

    def _from_operations(self) -> Iterator[Change]:
        """Yield the removal of operations with much waiting, which may be unnecessary."""
        for metric in (*_BARRIERS, *_EXCHANGES):
            if metric not in self._profile.metrics:
                continue
            waiting = self._profile.by_position(metric)
            for position in np.flatnonzero(waiting >= _WAITING * self._time).tolist():
                yield self._changes.cut(int(self._tree.preorder[position]))

    def _from_messages(self) -> Iterator[Change]:
        counts = profile_with(self._result, "syncs_send")
        empty, full = (counts.total(name) for name in ("syncs_send", "comms_send"))
        if empty and empty >= _SHARE * (empty + full):
            yield self._changes.without_empty_messages()
        is_late = self._waiting("latereceiver") >= _WAITING * self._time
        if is_late and (change := self._changes.early_sends()) is not None:
            yield change

    def _from_overlap(self) -> Iterator[Change]:
        """Yield calls that wait for messages and could do so after the computation that follows them."""
        waiting = sum(self._profile.by_position(metric) for metric in _MESSAGE_WAITS if metric in self._profile.metrics)
        for position in np.flatnonzero(waiting >= _WAITING * self._time).tolist():
            number = int(self._tree.preorder[position])
            region = self._tree.kinds[self._tree.region_rows[number]]
            if region.name.lower().rstrip("_") in _OVERLAPPED:
                yield self._changes.overlapped(number)

    def _from_libraries(self) -> Iterator[Change]:
        if self._waiting("rma_progress") >= _WAITING * self._time:
            yield self._changes.asynchronous()
        if self._tree.paradigms & COMMUNICATION:
            yield self._changes.ideal_network()
        on_path = self._path["callpaths"]
        computation = sum(place["time"] for place in on_path if self._computes(place["callpath_id"]))
        for change in (self._changes.half_latency(), self._changes.twice_bandwidth()):
            if change is not None:
                yield replace(change, bound=self._path["length"] - computation)

    def _waiting(self, cost_class: str) -> float:
        """Return the waiting whose costs belong to a class."""
        metrics = [metric.name for metric in self._profile.metrics.waiting]
        return sum(self._profile.total(name) for name in metrics if patterns()[name].cost_class == cost_class)

    def _balance(self, number: int) -> Iterator[Change]:
        if (change := self._changes.balance(number)) is not None:
            yield replace(change, bound=self._on_path.get(number, math.inf))

    def _faster(self, number: int, factor: float) -> Change:
        """Return a faster call path, which saves no more than its part of the critical path."""
        return replace(self._changes.faster(number, factor), bound=(1 - factor) * self._on_path.get(number, 0.0))

    def _owns(self, number: int) -> bool:
        """Return whether the work of a construct is what it protects."""
        return self._tree.kinds[self._tree.region_rows[number]].role in _PROTECTING

    def _computes(self, number: int) -> bool:
        return self._tree.kinds[self._tree.region_rows[number]].is_own
