"""Findings: the largest losses of a run, each with its reason. One module a rule.

Rules are asked in order, and each takes the bearers that it explains, so that no loss is explained twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from whywait.analysis.devices.use import device_account
from whywait.analysis.findings.blame import put_first
from whywait.analysis.findings.caveats import caveats
from whywait.analysis.findings.finding import Finding, Rule, Run
from whywait.analysis.findings.rest import rest
from whywait.analysis.findings.words import percent, seconds
from whywait.model.schema import schema_of
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Price
    from whywait.analysis.findings.words import Words
    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData

# The rules, in the order in which they are asked.
_RULES = (
    "measurement",
    "missing_ranks",
    "window_start",
    "compile_once",
    "straggler_loading",
    "straggler_host",
    "straggler_kernel",
    "uneven_work",
    "pipeline_stage",
    "pipeline_bubble",
    "changing",
    "host_bound",
    "exposed_transfer",
    "slow_network",
    "syncs",
    "master_worker",
    "serial_tail",
    "pipeline",
    "progress",
    "lock_convoy",
    "single_thread",
    "held_lock",
    "long_tasks",
    "scattered",
    "one_does_all",
    "thread_imbalance",
    "imbalance",
    "varying",
    "serial_section",
    "late_partner",
    "file_contention",
    "io",
    "few_cores",
    "memory_contention",
    "network_contention",
    "pauses",
    "slow_place",
    "rendezvous",
    "no_overlap",
    "small_regions",
    "empty_epochs",
    "slow_calls",
    "latency_bound",
    "bandwidth_bound",
    "collectives",
    "other_calls",
    "set_up",
    "unrecorded",
    "ended",
    "devices_take_turns",
    "copies",
    "small_kernels",
    "device_starved",
    "unneeded_sync",
    "wrong_order",
    "start_up_artefact",
    "kernel",
    "targets_away",
    "growing",
    "functions",
    "in_calls",
)
_MODULES = [import_module(f"{__name__}.{rule}") for rule in _RULES]
# What is shown: losses of a percent and more, the first three, and others until 90% of the lost time are named.
_LEAST, _NAMED, _FIRST = 0.01, 0.9, 3
# A smaller share of the focus is nothing.
_NOTHING = 0.001
# Another finding is named, too, if it saves so many times as much as the first, and this share of the focus.
_MUCH_MORE, _MUCH = 2, 0.05
# What fails if a rule does.
_FINDING, _PRICE = "a finding", "a price"
# A shorter focus is too short for findings; below this share, little is lost.
_SECONDS, _LITTLE = 0.02, 0.05


@cache
def rules() -> dict[str, Rule]:
    """Return all rules by name, in the order in which they are asked."""
    return {rule.name: rule for rule in map(Rule.of, _MODULES)}


class Findings(list[Finding]):
    """The findings of a run, the largest loss first.

    Attributes
    ----------
    lost
        All lost CPU time of the focus, in seconds; with a `place`, what that is to blame for.
    time
        All CPU time of the focus.
    locations, length
        Number of CPU locations with time in the focus, and its length in seconds.
    computing
        The share of their time in which devices run kernels; None if there are none.
    silent
        Why no findings are shown, as a sentence; None if there are some.
    place
        The call path that these are the findings of; None for all.
    caveats
        What the trace does not say, or what spoils the measurement, so that the verdict cannot stand without it: a
        sentence each.
    unexplained
        The parts of the lost time that no finding explains, in seconds, by their names.
    together
        What the changes of the first findings save together, by simulation; None if that is not known.
    ideal
        What an ideal network would save, a bound; None if that is not known.
    """

    def __init__(
        self,
        found: list[Finding],
        lost: float,
        time: float,
        silent: str | None,
        limit: int,
        locations: int = 1,
        length: float = 0.0,
        computing: float | None = None,
        place: str | None = None,
        doubts: Sequence[Words] = (),
        unexplained: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(sorted(found, key=lambda one: (one.base == "run", one.is_remainder, -one.share)))
        self.lost, self.time, self.silent = lost, time, silent
        self.together: Price | None = None
        self.ideal: Price | None = None
        self._limit, self.locations, self.length, self.computing = limit, locations, length, computing
        self.place = place
        self.caveats, self.unexplained = list(doubts), dict(unexplained or {})

    @property
    def shown(self) -> list[Finding]:
        """The findings to show: the largest, or none if there is a reason to be silent."""
        return self.largest if self.silent is None else []

    @property
    def notable(self) -> list[Finding]:
        """The findings of a percent and more."""
        return [one for one in self if one.base != "run" and one.share >= _LEAST]

    @property
    def where(self) -> list[Finding]:
        """What is not lost, but where the time goes."""
        return [one for one in self if one.base == "run"]

    @property
    def largest(self) -> list[Finding]:
        """The findings of a percent and more, until 90% of the lost time are named, at most `limit`."""
        shown: list[Finding] = []
        named = 0.0
        for one in self.notable:
            if len(shown) == self._limit:
                continue
            if one.base == "cpu" and len(shown) >= _FIRST and named >= _NAMED * self.lost:
                continue
            shown.append(one)
            named += one.loss if one.base == "cpu" else 0.0
        return shown

    @property
    def rest(self) -> list[tuple[str, float]]:
        """What the shown findings do not name of the lost time: the names of its parts, and their times in seconds."""
        shown = self.shown
        others = [one for one in self if one.base == "cpu" and not any(one is other for other in shown)]
        parts = list(self.unexplained.items())
        if others:
            label = f"{len(others)} more findings" if len(others) > 1 else "one more finding"
            parts.append((label, sum(one.loss for one in others)))
        return sorted(((label, time) for label, time in parts if time > 0), key=lambda part: -part[1])

    @property
    def is_of_devices(self) -> bool:
        """Whether devices lose most: their time, and not that of CPUs, is what the verdict is about."""
        if self.computing is None:
            return False
        return self.shown[0].base == "device" if self.shown else self.lost < _LITTLE * self.time

    def verdict(self) -> str:
        """Return what to say first: what the trace does not say, how much is lost, and the reason of most of it."""
        first = self.shown[0].sentence if self.shown else ""
        # What the first finding says need not be said twice.
        return " ".join([*(one.text for one in self.caveats if not first.startswith(one.text)), self._verdict()])

    def _verdict(self) -> str:
        lost = f"{percent(self.lost / self.time if self.time else 0.0)} of the CPU time is lost"
        if self.silent is not None:
            return self.silent
        if self.place is not None:
            lost += f" because of {self.place}"
        elif self.computing is not None and self.is_of_devices:
            lost = f"The devices compute {percent(self.computing)} of their time"
        if not self.shown:
            return f"{lost}; no single reason has a percent of {'the rest' if self.is_of_devices else 'it'}."
        first = self.shown[0]
        saves = self._saves(first)
        if (best := self.best) is not None and best is not first:
            said = self._saves(best)
            saves += f" Finding {self.shown.index(best) + 1} saves more: {said[:1].lower()}{said[1:]}"
        return " ".join(filter(None, (f"{lost}.", first.sentence, saves.strip())))

    @property
    def best(self) -> Finding | None:
        """The finding to begin with: the first one shown, unless another saves much more."""
        if not self.shown:
            return None
        first, best = self.shown[0], max(self.shown, key=_saved)
        return best if _saved(best) >= max(_MUCH_MORE * _saved(first), _MUCH * self.length) else first

    def _saves(self, one: Finding) -> str:
        """Return what the price of a finding saves, as a sentence; nothing if it is nothing."""
        if one.price is None or not self.length or _saved(one) < _NOTHING * self.length:
            return ""
        about = "about " if one.price.is_rough else ""
        saved = f"{about}{seconds(_saved(one))} ({percent(_saved(one) / self.length)})"
        return f"{one.price.then}, the run would be {saved} shorter."

    def table(self, tree: CallTree) -> pa.Table:
        """Return the findings as rows of the table `findings`."""
        shown = {id(one) for one in self.shown}
        numbers = pa.array([one.callpath for one in self], pa.uint32())
        columns = {
            "number": range(1, len(self) + 1),
            "rule": [one.rule for one in self],
            "title": [rules()[one.rule].title for one in self],
            "sentence": [one.sentence for one in self],
            "advice": [one.advice for one in self],
            "loss": [one.loss for one in self],
            "share": [one.share for one in self],
            "base": [one.base for one in self],
            "callpath": tree.paths.take(numbers),
            "callpath_id": numbers,
            "ranks": [one.ranks for one in self],
            "values": [json.dumps([asdict(value) for value in one.values]) for one in self],
            "evidence": [json.dumps(one.evidence) for one in self],
            "merged": [one.merged for one in self],
            "remarks": [" ".join(one.remarks.values()) or None for one in self],
            "shown": [id(one) in shown for one in self],
        }
        return pa.table(columns, schema=schema_of("findings"))


def _saved(one: Finding) -> float:
    """Return what the change that a finding proposes saves; 0 if that is unknown."""
    return (one.price.saved or 0.0) if one.price is not None else 0.0


def findings(result: ResultData, limit: int = 5, focus: str | None = None) -> Findings:
    """Return the findings of the focus of a run.

    Parameters
    ----------
    result
        The result.
    limit
        How many to show at most.
    focus
        A call path: only what it, and what is below it, is to blame for. None for all.

    Raises
    ------
    whywait.UsageError
        If the result has no account, or there is no such call path.
    """
    run = Run(result)
    inside = None if focus is None else in_subtrees(result.tree, focus)
    lost = run.losses.lost
    if inside is not None:
        lost = sum(bearer.loss for bearer in run.losses.bearers.values() if inside[bearer.callpath])
    found = list(_detect(run))
    for rule in rules().values():
        with result.surviving(_FINDING, rule.name):
            rule.remark(run, found)
    put_first(run, found)
    if inside is not None:
        found = [one for one in found if one.callpath is not None and inside[one.callpath]]
    begin, end = run.losses.account.window
    silent = _silence(run)
    return Findings(
        found,
        lost,
        run.time,
        silent,
        limit,
        run.locations,
        end - begin,
        _computing(run),
        focus,
        list(caveats(run)),
        rest(run, found, inside),
    )


def proposals(run: Run, shown: Iterable[Finding]) -> Iterator[tuple[Finding, Change | Price]]:
    """Yield the changes that findings propose, and prices that need no simulation."""
    for one in shown:
        for name in (one.rule, *one.remarks):
            # A remark may be about prices, and proposes none.
            if name in rules():
                with run.result.surviving(_PRICE, name):
                    for change in rules()[name].changes(run, one):
                        if change is not None:
                            yield one, change


def _detect(run: Run) -> Iterator[Finding]:
    for rule in rules().values():
        rest, made = dict(run.rest), None
        with run.result.surviving(_FINDING, rule.name):
            made = list(rule.detect(run))
        if made is None:
            # What a rule has taken before it failed is left to the others.
            run.rest = rest
        else:
            yield from made


def _computing(run: Run) -> float | None:
    """Return the share of kernels in the time of devices, if there are any."""
    devices = device_account(run.result)
    return None if devices is None else devices.computes / devices.time


def _silence(run: Run) -> str | None:
    """Return why there is nothing to show."""
    begin, end = run.losses.account.window
    if end - begin < _SECONDS and "traces" not in run.result.facts:
        return "The run is too short for findings."
    of_devices = run.result.tables.device_account.num_rows
    if run.time and run.losses.lost < _LITTLE * run.time and not of_devices:
        if run.result.unknown_libraries:
            return "Of the rest of the time, little is lost."
        return f"Little is lost: {percent(1 - run.losses.lost / run.time)} of the CPU time is computation."
    return None
