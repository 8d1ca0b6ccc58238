"""Translates hypotheses for the native what-if simulator, which takes numbers of call paths and locations."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.hypotheses.kinds import (
    AsynchronousProgress,
    Balance,
    Cpu,
    Cut,
    CutMessages,
    EagerLimit,
    Hypothesis,
    IdealNetwork,
    Network,
    Overhead,
    Overlap,
    Protocol,
    Scale,
    Selection,
    Set,
    Split,
    Trim,
    check,
)
from whywait.hypotheses.sampled import Functions, refuse, sampled
from whywait.model.regions import MASKS
from whywait.model.selection import NothingSelectedError, all_callpaths, in_subtrees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whywait.hypotheses.sampled import Factor
    from whywait.model.calltree import CallTree
    from whywait.model.regions import Region
    from whywait.model.result import ResultData

_PARTS = tuple(f"{library}_{part}_" for library in ("mpi", "shmem", "armci", "pgas") for part in ("sync", "comm"))
_TRANSFERS = [mask for mask in MASKS if mask.startswith(_PARTS)]
_ALL = Selection("all")
#: Hypotheses that change who waits for whom rather than durations.
OF_MODEL = (Protocol, EagerLimit, AsynchronousProgress, Cut, CutMessages, Overlap, Split)
#: Hypotheses whose simulation needs the events of all processes in one.
SELECTIVE = (Cut, CutMessages, Overlap, Split)
#: Hypotheses whose simulation needs a graph of its own.
OWN_GRAPH = (*OF_MODEL, Network)


class Compiler:
    """Turns hypotheses into numbers of call paths and locations."""

    def __init__(
        self, result: ResultData, window: tuple[float, float] | None, callpath: str | int | None = None
    ) -> None:
        self._result = result
        self._window = window
        self._tree: CallTree = result.tree
        self._inside = None if callpath is None else in_subtrees(self._tree, callpath).tolist()

    def changes(self, hypotheses: Iterable[Hypothesis]) -> list[_Change]:
        """Return the hypotheses on durations, for the native simulator."""
        functions = Functions(self._result)
        of_events = [one for one in hypotheses if not self._is_sampled(one, functions)]
        compiled = [self.compile(hypothesis) for hypothesis in of_events]
        compiled += map(self._of_functions, functions.factors())
        # Another network changes nothing in a run without communication.
        return [
            _Change(**change) for change in compiled if change["kind"] != "network" or any(change["selection"].roots)
        ]

    def sampling_deviation(self, hypotheses: Iterable[Hypothesis]) -> float:
        """Return the standard deviation that samples leave of what hypotheses save on the critical path, seconds."""
        functions = Functions(self._result)
        for hypothesis in hypotheses:
            self._is_sampled(hypothesis, functions)
        return functions.deviation()

    def is_of_functions(self, hypothesis: Hypothesis) -> bool:
        """Return whether a hypothesis scales functions that only samples have seen."""
        try:
            return isinstance(hypothesis, Scale) and bool(sampled(self._result, hypothesis.selected.path))
        except NothingSelectedError:
            return False

    def _is_sampled(self, hypothesis: Hypothesis, functions: Functions) -> bool:
        """Pass a hypothesis about functions that only samples have seen on; return whether that is all of it."""
        if not isinstance(hypothesis, (Scale, Set, Balance)):
            return False
        selection = hypothesis.selected
        found = sampled(self._result, selection.path)
        if not found:
            return False
        if not isinstance(hypothesis, Scale) or selection.part is not None or selection.instances is not None:
            refuse(hypothesis, selection.path, self._result)
            return False
        if selection.below:
            tree = self._tree
            positions = [int(tree.position[number]) for number in found]
            found = [int(inner) for at in positions for inner in tree.preorder[at : int(tree.end[at])]]
        check(hypothesis)
        functions.scale(hypothesis, found, self._locations(selection.ranks))
        return len(sampled(self._result, selection.path)) == len(all_callpaths(self._tree, selection.path))

    def _of_functions(self, factor: Factor) -> dict[str, Any]:
        """Return what functions that only samples have seen make of a call path."""
        roots = [False] * len(self._tree)
        roots[factor.callpath] = True
        text = "/".join(self._tree.path(factor.callpath))
        selection = self._compile_selection(text, roots, [], None)
        chosen = np.zeros(len(self._result.places), bool)
        chosen[factor.locations] = True
        selection.locations = chosen.tolist()
        change = {"kind": "scale", "selection": selection, "value": factor.factor, "min_span": 0.0}
        return change | {"mode": None, "uneven": False, "among": None}

    def compile(self, hypothesis: Hypothesis) -> dict[str, Any]:
        """Return a hypothesis for the native simulator."""
        check(hypothesis)
        self._refuse_calls(hypothesis)
        common = {"kind": hypothesis._kind, "selection": None, "min_span": 0.0}  # noqa: SLF001
        common |= {"mode": None, "uneven": False, "among": None}
        match hypothesis:
            case Scale(factor=value, min_span=least):
                return common | {"selection": self._selection(hypothesis.selected), "value": value, "min_span": least}
            case Set(duration=value):
                return common | {"selection": self._selection(hypothesis.selected), "value": value}
            case Balance(mode=mode, by=value, uneven=uneven, among=among):
                selection = self._selection(hypothesis.selected)
                change = {"selection": selection, "value": value, "mode": mode, "uneven": bool(uneven)}
                return common | change | {"among": self._compile_groups(among)}
            case Trim():
                selection = (
                    self._calls(hypothesis) if hypothesis.selected == _ALL else self._selection(hypothesis.selected)
                )
                return common | {"selection": selection, "value": 0.0}
            case Cpu(ratio=value, ranks=ranks):
                selection = self._compile_selection(str(hypothesis), self._computation, [], ranks)
                return common | {"selection": selection, "value": 1 / value}
            case Overhead(seconds=value, least=least):
                return common | {"value": value, "min_span": least}
            case IdealNetwork() | Network():
                kinds = self._tree.kinds
                is_linear = isinstance(hypothesis, Network)
                chosen = _transfers if is_linear else _communicates
                calls = [chosen(kinds[row]) for row in self._tree.region_rows]
                selection = self._compile_selection(str(hypothesis), calls, [], None)
                if is_linear:
                    # Waiting times are those of the whole run, not of the selection.
                    selection = _Compiled(str(hypothesis), calls, [])
                return common | {
                    "kind": "network",
                    "selection": selection,
                    "value": float(is_linear),
                }
        raise _native.UsageError(f"{hypothesis} is not a hypothesis")

    def _refuse_calls(self, hypothesis: Hypothesis) -> None:
        """Refuse to balance calls of communication libraries: their time is what the transfer needs, and no work."""
        if not isinstance(hypothesis, Balance) or hypothesis.selected.below:
            return
        tree = self._tree
        for position in all_callpaths(tree, hypothesis.selected.path):
            kind = tree.kinds[tree.region_rows[tree.preorder[position]]]
            if kind.is_communication:
                raise _native.UsageError(
                    f"{hypothesis}: time in {kind.name} is no work that could move from one rank to another; balance "
                    "the call path that its partners wait for"
                )

    def _calls(self, hypothesis: Hypothesis) -> _Compiled:
        """Select all calls that do not start or end a library; own code has no kind to compare it with."""
        kinds = self._tree.kinds
        calls = [not _starts_or_ends(kinds[row]) for row in self._tree.region_rows]
        return self._compile_selection(str(hypothesis), calls, [], None)

    def model(self, hypotheses: Iterable[Hypothesis]) -> dict[str, Any]:
        """Return the changes of how calls wait, as arguments of the native simulator."""
        model: dict[str, Any] = {
            "asynchronous": False,
            "eager_limit": None,
            "protocols": [],
            "cut_regions": [],
            "cut_messages": [],
            "overlaps": [],
            "splits": [],
            "network": None,
        }
        for hypothesis in hypotheses:
            check(hypothesis)
            match hypothesis:
                case AsynchronousProgress():
                    model["asynchronous"] = True
                case EagerLimit(size=size):
                    model["eager_limit"] = size
                case Network(eager=size):
                    model["network"] = hypothesis.numbers
                    model["eager_limit"] = size if model["eager_limit"] is None else model["eager_limit"]
                case Cut():
                    model["cut_regions"].append(self._whole(hypothesis, "cut"))
                case Overlap(after=after):
                    behind = [] if after is None else self._selection(Selection(after)).roots
                    model["overlaps"].append((self._whole(hypothesis, "overlapped"), behind))
                case Split():
                    model["splits"].append(self._whole(hypothesis, "split"))
                case CutMessages():
                    numbers, paths = hypothesis.parsed
                    inside = [self._selection(Selection(path)).roots for path in paths]
                    model["cut_messages"].append((numbers, [all(of) for of in zip(*inside, strict=True)]))
                case Protocol(kind=kind):
                    selection = hypothesis.selected
                    if selection != Selection(selection.path):
                        raise _native.UsageError(f"{hypothesis}: a protocol applies to all messages of a call path")
                    model["protocols"].append((self._senders(hypothesis), kind == "rendezvous"))
        return model

    def _senders(self, hypothesis: Protocol) -> list[bool]:
        """Select the calls that send messages in call paths and in all that they call."""
        tree, profile = self._tree, self._result.profile
        sends = np.zeros(len(tree), bool)
        for metric in _SENDS:
            if metric in profile.metrics:
                sends |= profile.by_position(metric) > 0
        chosen = np.zeros(len(tree), bool)
        for position in all_callpaths(tree, hypothesis.selected.path):
            inside = np.arange(position, int(tree.end[position]))
            chosen[tree.preorder[inside[sends[inside]]]] = True
        if not chosen.any():
            raise NothingSelectedError(f"{hypothesis.selected} sends no messages")
        return list(chosen.tolist())

    def _whole(self, hypothesis: Cut | Overlap | Split, done: str) -> _Compiled:
        """Select whole instances, with everything below."""
        selection = hypothesis.selected
        if selection.below or selection.part is not None:
            raise _native.UsageError(f"{hypothesis}: only whole instances can be {done}, with everything below")
        return self._selection(selection)

    def _compile_groups(self, among: str | None) -> tuple[str, int, list[bool]] | None:
        """Return groups of locations for the native simulator."""
        if among is None:
            return None
        if among in {"node", "process"}:
            return among, 0, []
        kind, _, number = among.partition(":")
        return ("comm", int(number), []) if kind == "comm" else ("locations", 0, self._locations(among))

    @property
    def _computation(self) -> list[bool]:
        """Return for each call path, by number, whether it is the program's own code."""
        kinds = self._tree.kinds
        return [not kinds[row].is_library for row in self._tree.region_rows]

    def _selection(self, selection: Selection) -> _Compiled:
        tree = self._tree
        positions = all_callpaths(tree, selection.path)
        if selection.below and selection.part is not None:
            raise _native.UsageError(f"{selection}: a segment (~) cannot be combined with /**")
        roots = [False] * len(tree)
        for position in positions:
            roots[tree.preorder[position]] = True
        below: list[bool] = []
        if selection.below:
            below = [False] * len(tree)
            computation = self._computation
            for position in positions:
                for inner in tree.preorder[position : int(tree.end[position])].tolist():
                    below[inner] = computation[inner]
        compiled = self._compile_selection(str(selection), roots, below, selection.ranks)
        compiled.part, compiled.instances = selection.part, selection.instances
        return compiled

    def _compile_selection(self, text: str, roots: list[bool], below: list[bool], ranks: str | None) -> _Compiled:
        if self._inside is not None:
            roots, below = (list(map(and_, chosen, self._inside)) for chosen in (roots, below))
            if not any(roots) and not any(below):
                raise NothingSelectedError(f"{text} is not in the selected call paths")
        return _Compiled(text, roots, below, locations=self._locations(ranks), window=self._window)

    def _locations(self, ranks: str | None) -> list[bool]:
        if ranks is None:
            return []
        places = self._result.places
        rank, thread = np.asarray(places.rank), np.asarray(places.thread)
        chosen = np.zeros(len(places), bool)
        order = np.argsort(rank, kind="stable")
        for part in ranks.split(","):
            number, _, of = part.partition(".")
            first, _, last = number.partition("-")
            begin, end = np.searchsorted(rank, (int(first), int(last or first) + 1), sorter=order)
            here = order[begin:end]
            chosen[here[thread[here] == int(of)] if of else here] = True
        return chosen.tolist()


def _communicates(region: Region) -> bool:
    """Return whether a region is a communication call that takes no time on an ideal network."""
    file = region.paradigm == "mpi" and region.name.upper().startswith("MPI_FILE_")
    return region.is_communication and not file


# How the names of calls begin that start or end a library other than MPI.
_STARTS = ("shmem_init", "start_pes", "shmem_finalize", "gaspi_proc_init", "gaspi_proc_term")


def _starts_or_ends(region: Region) -> bool:
    """Return whether a region starts or ends a library."""
    return region.is_in("mpi_mgmt_startup") or region.name.startswith(_STARTS)


# The metrics that count messages at the calls that send them.
_SENDS = ("comms_send", "syncs_send")


def _transfers(region: Region) -> bool:
    """Return whether a region is a communication call whose time is spent in the network."""
    return any(region.is_in(mask) for mask in _TRANSFERS)


@dataclass
class _Compiled:
    """A selection, for the native simulator."""

    text: str
    roots: list[bool]
    below: list[bool]
    part: int | None = None
    locations: list[bool] = field(default_factory=list)
    instances: tuple[int, int] | None = None
    window: tuple[float, float] | None = None


@dataclass
class _Change:
    """A hypothesis, for the native simulator."""

    kind: str
    selection: _Compiled | None
    value: float
    # The shortest length that is scaled, or that remains after an overhead.
    min_span: float
    mode: str | None
    uneven: bool
    among: tuple[str, int, list[bool]] | None
