"""What would the run have taken if ...: hypotheses, and runs simulated from measured ones.

>>> import whywait
>>> from whywait.whatif import Balance, Scale
>>> sim = whywait.whatif("tests/data/stencil", [Scale("relax", 0.8), Balance("solve/**", mode="scaled")])
>>> sim.after < sim.before  # seconds
True
"""

from __future__ import annotations

import difflib
import shutil
import sys
import tempfile
import weakref
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import and_
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from whywait import _native
from whywait._analyze import analyze
from whywait._api import Result
from whywait.model.hypotheses import (
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
    Protocol,
    Scale,
    Selection,
    Set,
    check,
    parse,
)
from whywait.model.hypothesis_file import read
from whywait.model.regions import LIBRARIES
from whywait.model.selection import every_callpath, subtrees

__all__ = [
    "AsynchronousProgress",
    "Balance",
    "Cpu",
    "Cut",
    "CutMessages",
    "EagerLimit",
    "Hypothesis",
    "IdealNetwork",
    "Network",
    "Overhead",
    "Protocol",
    "Scale",
    "Selection",
    "Set",
    "Simulation",
    "fit",
    "parse",
    "read",
    "whatif",
]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from whywait._run import Run
    from whywait.model.calltree import CallTree
    from whywait.model.regions import Region


# What changes who waits for whom, and no durations.
_OF_MODEL = (Protocol, EagerLimit, AsynchronousProgress, Cut, CutMessages)


class _Compiler:
    """Turns hypotheses into numbers of call paths and locations."""

    def __init__(self, result: Result, window: tuple[float, float] | None, callpath: str | int | None = None) -> None:
        self._result = result
        self._window = window
        self._tree: CallTree = result.tree
        self._inside = None if callpath is None else subtrees(self._tree, callpath).tolist()

    def changes(self, hypotheses: Iterable[Hypothesis]) -> list[_Change]:
        """Return hypotheses on durations as the native simulator takes them."""
        compiled = map(self.compile, hypotheses)
        # Another network changes nothing where nobody communicates.
        return [
            _Change(**change) for change in compiled if change["kind"] != "network" or any(change["selection"].roots)
        ]

    def compile(self, hypothesis: Hypothesis) -> dict[str, Any]:
        """Return a hypothesis as the native simulator takes it."""
        check(hypothesis)
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
                return common | change | {"among": self._among(among)}
            case Cpu(ratio=value, ranks=ranks):
                selection = self._compiled(str(hypothesis), self._computation, [], ranks)
                return common | {"selection": selection, "value": 1 / value}
            case Overhead(seconds=value, least=least):
                return common | {"value": value, "min_span": least}
            case IdealNetwork() | Network():
                kinds = self._tree.kinds
                calls = [_communicates(kinds[row]) for row in self._tree.region_rows]
                selection = self._compiled(str(hypothesis), calls, [], None)
                if isinstance(hypothesis, Network):
                    # Who waits how long for whom is that of the whole run.
                    selection = _Compiled(str(hypothesis), calls, [])
                return common | {
                    "kind": "network",
                    "selection": selection,
                    "value": float(isinstance(hypothesis, Network)),
                }
        raise _native.UsageError(f"{hypothesis} is no hypothesis")

    def model(self, hypotheses: Iterable[Hypothesis]) -> dict[str, Any]:
        """Return what hypotheses change of how calls wait, as arguments of the native simulator."""
        model: dict[str, Any] = {
            "asynchronous": False,
            "eager_limit": None,
            "protocols": [],
            "cut_regions": [],
            "cut_messages": [],
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
                    selection = hypothesis.selected
                    if selection.below or selection.part is not None:
                        raise _native.UsageError(f"{hypothesis}: whole instances are cut, with all below")
                    model["cut_regions"].append(self._selection(selection))
                case CutMessages():
                    numbers, paths = hypothesis.parsed
                    inside = [self._selection(Selection(path)).roots for path in paths]
                    model["cut_messages"].append((numbers, [all(of) for of in zip(*inside, strict=True)]))
                case Protocol(kind=kind):
                    selection = hypothesis.selected
                    if selection != Selection(selection.path):
                        raise _native.UsageError(f"{hypothesis}: a protocol is that of all messages of a call path")
                    model["protocols"].append((self._selection(selection).roots, kind == "rendezvous"))
        return model

    def _among(self, among: str | None) -> tuple[str, int, list[bool]] | None:
        """Return groups of locations as the native simulator takes them."""
        if among is None:
            return None
        if among == "node":
            return "node", 0, []
        kind, _, number = among.partition(":")
        return ("comm", int(number), []) if kind == "comm" else ("locations", 0, self._locations(among))

    @property
    def _computation(self) -> list[bool]:
        """Which call paths are the program's own code, by id."""
        kinds = self._tree.kinds
        return [kinds[row].paradigm not in LIBRARIES for row in self._tree.region_rows]

    def _selection(self, selection: Selection) -> _Compiled:
        tree = self._tree
        positions = every_callpath(tree, selection.path)
        if not positions:
            names = sorted({region.name for region in tree.kinds})
            near = difflib.get_close_matches(selection.path.rpartition("/")[2], names, n=3, cutoff=0.0)
            raise _native.UsageError(f"no call path ends in {selection.path}; near to it: {', '.join(near)}")
        if selection.below and selection.part is not None:
            raise _native.UsageError(f"{selection}: a part of an instance cannot be chosen together with /**")
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
        compiled = self._compiled(str(selection), roots, below, selection.ranks)
        compiled.part, compiled.instances = selection.part, selection.instances
        return compiled

    def _compiled(self, text: str, roots: list[bool], below: list[bool], ranks: str | None) -> _Compiled:
        if self._inside is not None:
            roots, below = (list(map(and_, chosen, self._inside)) for chosen in (roots, below))
            if not any(roots) and not any(below):
                raise _native.UsageError(f"{text} is not within the chosen call paths")
        return _Compiled(text, roots, below, locations=self._locations(ranks), window=self._window)

    def _locations(self, ranks: str | None) -> list[bool]:
        if ranks is None:
            return []
        places = self._result.places
        chosen = [False] * len(places)
        for part in ranks.split(","):
            rank, _, thread = part.partition(".")
            first, _, last = rank.partition("-")
            for location in range(len(places)):
                inside = int(first) <= places.rank[location] <= int(last or first)
                if inside and (not thread or places.thread[location] == int(thread)):
                    chosen[location] = True
        return chosen


def _communicates(region: Region) -> bool:
    """Say whether a region is a call of a communication library that an ideal network makes free."""
    file = region.paradigm == "mpi" and region.name.upper().startswith("MPI_FILE_")
    return region.paradigm in {"mpi", "shmem", "armci"} and not file


@dataclass
class _Compiled:
    """A selection as the native simulator takes it."""

    text: str
    roots: list[bool]
    below: list[bool]
    part: int | None = None
    locations: list[bool] = field(default_factory=list)
    instances: tuple[int, int] | None = None
    window: tuple[float, float] | None = None


@dataclass
class _Change:
    """A hypothesis as the native simulator takes it."""

    kind: str
    selection: _Compiled | None
    value: float
    # The least length that is scaled, or that an overhead leaves.
    min_span: float
    mode: str | None
    uneven: bool
    among: tuple[str, int, list[bool]] | None


class Simulation:
    """A run as it would have been.

    Parameters
    ----------
    result
        What was found in the measured run.
    hypotheses
        What was changed, in this order.
    native
        The native simulation.
    base
        What changes are compared with if that is not the measured run: the run on another network without more changes.
    analyze
        What finds the result of the simulated archive.
    """

    def __init__(
        self,
        result: Result,
        hypotheses: Sequence[Hypothesis],
        native: _native.Simulation,
        *,
        base: Simulation | None = None,
        analyze: Callable[[Path], Result],
    ) -> None:
        self.measured = result
        self.hypotheses = list(hypotheses)
        self.base = base
        self._native = native
        self._analyze = analyze

    @property
    def before(self) -> float:
        """Length of the run that changes are compared with, seconds: of `base`, or of the measured run."""
        return self.base.after if self.base else float(self.measured.facts["length"])

    @property
    def reference(self) -> Result:
        """What an analysis finds in the run that changes are compared with."""
        return self.base.result if self.base else self.measured

    @property
    def after(self) -> float:
        """Length of the simulated run, seconds."""
        return self._native.length()

    @property
    def saved(self) -> float:
        """How much shorter the run is, seconds."""
        return self.before - self.after

    @property
    def assumptions(self) -> pa.Table:
        """What was assumed: ``assumption``, ``text``, ``count`` and ``time``.

        The time is that of the calls it is about, seconds over all locations; null if that is not known.
        """
        rows = self._native.assumptions()
        schema = pa.schema(
            [("assumption", pa.string()), ("text", pa.string()), ("count", pa.int64()), ("time", pa.float64())]
        )
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    @property
    def notes(self) -> list[str]:
        """What is to be said of the hypotheses."""
        return self._native.notes()

    def write(self, directory: str | PathLike[str]) -> Path:
        """Write the simulated run as an archive, which any tool that knows OTF2 reads.

        Parameters
        ----------
        directory
            Where to, made if need be. It must not hold an archive.

        Returns
        -------
        pathlib.Path
            The anchor file.

        Raises
        ------
        whywait.UsageError
            If there is an archive.
        """
        target = Path(directory)
        refuse_archive(target)
        target.mkdir(parents=True, exist_ok=True)
        text = "; ".join(map(str, self.hypotheses)) or "none"
        with tempfile.TemporaryDirectory(prefix=".whatif-", dir=target) as staging:
            self._native.write(staging, _ARCHIVE, text)
            # The anchor last: who finds it finds a whole archive.
            for name in (_ARCHIVE, f"{_ARCHIVE}.def", f"{_ARCHIVE}.otf2"):
                (Path(staging) / name).rename(target / name)
        return target / f"{_ARCHIVE}.otf2"

    @cached_property
    def result(self) -> Result:
        """What an analysis finds in the simulated run."""
        # The trace lasts as long as the simulation: a result may be asked for more of it.
        directory = tempfile.mkdtemp(prefix="whatif-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        return self._analyze(self.write(directory))

    def diff(self, metrics: Iterable[str] | None = None) -> pa.Table:
        """Compare the simulated run with the one without changes, as `whywait.compare.diff` does."""
        from whywait.analysis.compare import diff

        return diff(self.reference, self.result, metrics)

    def events(self, location: int) -> pa.Table:
        """Return when a location enters and leaves its regions: ``measured`` and ``simulated``, ticks."""
        return pa.table(self._native.events(location))

    def moments(self, most: int) -> pa.Table:
        """Return when the same Enters and Leaves come in both runs.

        Parameters
        ----------
        most
            How many rows there may be about; of each location there are at least the first and the last.

        Returns
        -------
        pyarrow.Table
            ``location``, ``measured`` (of the run that changes are compared with) and ``simulated``, seconds since the
            begin of each run; by location, and in the order of its events.
        """
        found = pa.table(self._native.times(most))
        if self.base:
            found = found.set_column(1, "measured", self.base.moments(most)["simulated"])
        return found

    def write_html(self, path: str | PathLike[str]) -> None:
        """Write both runs side by side as one HTML file, with their timelines one above the other.

        Parameters
        ----------
        path
            The file. It is replaced if it exists.
        """
        from whywait.compare import write_html
        from whywait.report.html.timeline import pair

        runs = self.reference, self.result
        names = ("on the network" if self.base else "measured", "simulated")
        write_html(*runs, path, names=names, timelines=pair(runs, self.moments(_MOMENTS)))

    def __repr__(self) -> str:
        return f"<whywait.Simulation: {self.before:.6g} s -> {self.after:.6g} s>"


_ARCHIVE = "traces"
# Two moments of each call, as far as a page has single calls.
_MOMENTS = 200_000


def refuse_archive(directory: Path) -> None:
    """Raise an error if a directory holds an archive already."""
    if (found := next(directory.glob("*.otf2"), None)) or (directory / _ARCHIVE).exists():
        raise _native.UsageError(f"{found or directory / _ARCHIVE} is there already: choose another directory")


def whatif(
    run: Result | Run | str | PathLike[str],
    hypotheses: Iterable[Hypothesis] = (),
    *,
    network: Literal["measured", "ideal"] | Network = "measured",
    hidden: Literal["estimate", "remainder"] = "estimate",
    window: tuple[float, float] | None = None,
    callpath: str | int | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Simulation:
    """Simulate a run with changes.

    Everything that is no waiting takes as long as measured, unless a hypothesis says otherwise; who communicates with
    whom, and in which order, stays; every wait is found anew. Without hypotheses every time is the measured one.
    See docs/whatif.md.

    Parameters
    ----------
    run
        A result of `whywait.analyze`, a run, or the path of one.
    hypotheses
        The changes; each works on what the one before left.
    network
        ``"ideal"`` as `IdealNetwork` has it, or one of given latency and bandwidth. Other changes are compared with the
        run on this network without them.
    hidden
        How long a transfer takes for which no receive had to wait: as others of its class (``estimate``), or as long as
        what is left of its call (``remainder``).
    window
        Only instances that begin in this part of the measured run change, seconds since its begin.
    callpath
        What to find call paths by, see `whywait.model.selection.find_callpaths`: only these and what is below them
        change. How calls wait (protocols, progress) is that of the whole run.
    threads
        How many threads to use; None for as many as there are cores.
    memory_limit
        As of `whywait.analyze`, for the measured run if it is not yet analyzed, and for the simulated one.
    progress
        As of `whywait.analyze`, if the run is not yet analyzed.

    Returns
    -------
    Simulation

    Raises
    ------
    whywait.UsageError
        If a hypothesis makes no sense, or selects nothing.
    """
    if isinstance(run, Result):
        result = run
    else:
        result = analyze(run, threads=threads, causes=False, memory_limit=memory_limit, progress=progress)
    chosen = list(hypotheses)
    if network != "measured":
        chosen.append(IdealNetwork() if network == "ideal" else network)
    if any(isinstance(hypothesis, Overhead) for hypothesis in chosen) and len(chosen) > 1:
        raise _native.UsageError("overhead changes all of the run: it must be the only hypothesis")
    if hidden not in ("estimate", "remainder"):
        raise _native.UsageError("hidden is estimate or remainder")
    compiler = _Compiler(result, window, callpath)
    # The ratio of processors and the network come last: they work on what the others left.
    ordered = sorted(
        (hypothesis for hypothesis in chosen if not isinstance(hypothesis, _OF_MODEL)),
        key=lambda hypothesis: (isinstance(hypothesis, (IdealNetwork, Network)), isinstance(hypothesis, Cpu)),
    )
    changes = compiler.changes(ordered)
    native = _native.Simulator(
        _analysis(result), hidden=hidden == "estimate", threads=threads, **compiler.model(chosen)
    )
    networks = [hypothesis for hypothesis in chosen if isinstance(hypothesis, (IdealNetwork, Network))]
    base = None
    if networks and len(chosen) > len(networks):
        base = whatif(result, networks, hidden=hidden, threads=threads, memory_limit=memory_limit)
    known = result.options if result is run else {}
    options = {name: known[name] for name in _OPTIONS if name in known}
    analyzed = partial(analyze, threads=threads, memory_limit=memory_limit, **options)
    return Simulation(result, chosen, native.simulate(changes, threads=threads), base=base, analyze=analyzed)


class Lengths:
    """Finds the lengths of changed runs that wait alike, eight at a time.

    Parameters
    ----------
    result
        What was found in the run.
    waits
        What changes who waits for whom; other hypotheses are left out.
    threads
        How many threads to use; None for as many as there are cores.

    Raises
    ------
    whywait.UsageError
        If these hypotheses cannot be applied.
    """

    def __init__(self, result: Result, waits: Iterable[Hypothesis] = (), *, threads: int | None = None) -> None:
        self._compiler = _Compiler(result, None)
        self._threads = threads
        self._native = _native.Simulator(_analysis(result), threads=threads, **self._compiler.model(waits))

    @property
    def assumed(self) -> float:
        """Time of the calls of which something is assumed, seconds."""
        measured = self._native.simulate([], threads=self._threads)
        return sum(time or 0.0 for _, _, _, time in measured.assumptions())

    def of(self, candidates: Iterable[Iterable[Hypothesis]]) -> list[float | None]:
        """Return the length under each list of changes of durations, seconds; None where these cannot be applied."""
        compiled = [
            self._compiler.changes(one for one in candidate if not isinstance(one, _OF_MODEL))
            for candidate in candidates
        ]
        try:
            return list(self._native.lengths(compiled, threads=self._threads))
        except _native.UsageError:
            if len(compiled) == 1:
                return [None]
        found: list[float | None] = []
        for changes in compiled:
            try:
                found += self._native.lengths([changes], threads=self._threads)
            except _native.UsageError:
                found.append(None)
        return found


# Of the analysis of the measured run, for that of the simulated one.
_OPTIONS = ("wrong_order_window", "causes", "cost_model", "idle_threads")


def _analysis(result: Result) -> _native.Analysis:
    native = result.tables.analysis
    if not isinstance(native, _native.Analysis):
        raise _native.UsageError("a written result keeps no events to simulate: analyze the trace again")
    return native


def fit(run: Result | Run | str | PathLike[str], *, threads: int | None = None) -> dict[str, Network]:
    """Find the latency and the bandwidth that messages of a run had.

    Parameters
    ----------
    run
        A result of `whywait.analyze`, a run, or the path of one.
    threads
        How many threads to use; None for as many as there are cores.

    Returns
    -------
    dict
        By locality, ``remote`` (between nodes) and ``local`` (on one), as far as enough receives had to wait for
        their messages: the network whose transfers fit those of each class of sizes best (least squares). Where there
        is only one size, or larger messages were not slower, the bandwidth is infinite.

    Examples
    --------
    >>> network = whywait.whatif.fit("tests/data/stencil")
    """
    result = run if isinstance(run, Result) else analyze(run, threads=threads, causes=False)
    transfers = _native.Simulator(_analysis(result), threads=threads).transfers()
    fitted = {}
    for name, is_local in (("remote", False), ("local", True)):
        samples = [(size, time) for local, _, size, time in transfers if local is is_local]
        if samples:
            fitted[name] = _line(samples)
    return fitted


def _line(samples: Sequence[tuple[float, float]]) -> Network:
    """Fit latency + size / bandwidth."""
    count = len(samples)
    size = sum(size for size, _ in samples) / count
    time = sum(time for _, time in samples) / count
    spread = sum((own - size) ** 2 for own, _ in samples)
    slope = sum((own - size) * (took - time) for own, took in samples) / spread if spread else 0.0
    if slope <= 0:
        return Network(time)
    latency = time - slope * size
    if latency < 0:
        # The line through zero.
        slope = sum(own * took for own, took in samples) / sum(own**2 for own, _ in samples)
        latency = 0.0
    return Network(latency, 1 / slope)


class _Callable(ModuleType):
    """A module that can be called: `whywait.whatif` is both where hypotheses are and what simulates."""

    __call__ = staticmethod(whatif)


sys.modules[__name__].__class__ = _Callable
