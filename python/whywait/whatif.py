"""What would the run have taken if ...: hypotheses, and runs simulated from measured ones.

>>> import whywait
>>> from whywait.whatif import Balance, Scale
>>> sim = whywait.whatif("scorep_run/", [Scale("relax", 0.8), Balance("solve/**", mode="scaled")])
>>> sim.before, sim.after, sim.saved  # seconds
"""

from __future__ import annotations

import difflib
import math
import re
import shutil
import sys
import tempfile
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from whywait import _native
from whywait._api import Result, analyze
from whywait.model.selection import every_callpath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from whywait._run import Run
    from whywait.model.calltree import CallTree
    from whywait.model.regions import Region

Mode = Literal["instance", "local", "global", "scaled"]

# Whatever belongs to another paradigm is no computation.
_LIBRARIES = frozenset({"mpi", "shmem", "armci", "openmp", "pthread", "openacc", "opencl", "cuda", "hip"})
_LAST = -1


@dataclass(frozen=True)
class Selection:
    """Which instances of which call paths a hypothesis is about.

    Attributes
    ----------
    path
        The last names of the call paths, with ``/`` between them, or the number of one.
    below
        Whether the computation in the call paths below counts as well.
    part
        Only this segment of each instance: 0 is that before the first call in it, -1 the last.
    ranks
        ``0-3,8``; ``5.1`` is thread 1 of rank 5. None for all.
    instances
        First and last number, by Enter, of each call path and location; ``(-1, -1)`` is the last one. None for all.
    """

    path: str
    below: bool = False
    part: int | None = None
    ranks: str | None = None
    instances: tuple[int, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read ``PATH[/**][~PART][@RANKS][#INSTANCES]``; each is split off where what follows it is valid."""
        path, instances, ranks, part = text, None, None, None
        if match := re.fullmatch(r"(.+)#(\d+|last)(?:-(\d+))?", path):
            path = match[1]
            first = _LAST if match[2] == "last" else int(match[2])
            instances = (first, first if match[3] is None else int(match[3]))
        if match := re.fullmatch(rf"(.+)@({_RANK}(?:,{_RANK})*)", path):
            path, ranks = match[1], match[2]
        if match := re.fullmatch(r"(.+)~(\d+|last)", path):
            path, part = match[1], _LAST if match[2] == "last" else int(match[2])
        below = path.endswith("/**") and len(path) > len("/**")
        return cls(path.removesuffix("/**") if below else path, below, part, ranks, instances)

    def __str__(self) -> str:
        text = self.path + "/**" * self.below
        if self.part is not None:
            text += f"~{'last' if self.part == _LAST else self.part}"
        if self.ranks is not None:
            text += f"@{self.ranks}"
        if self.instances is not None:
            first, last = self.instances
            text += "#last" if first == _LAST else f"#{first}" if first == last else f"#{first}-{last}"
        return text


_RANK = r"\d+(?:\.\d+|-\d+)?"


@dataclass(frozen=True)
class Hypothesis:
    """A change of a run."""

    _kind: ClassVar[str]


@dataclass(frozen=True)
class _Selective(Hypothesis):
    """A change of selected instances.

    Attributes
    ----------
    selection
        As text or as a `Selection`.
    ranks
        Ranks, if the text does not name them.
    """

    selection: Selection | str
    ranks: Sequence[int] | None = field(default=None, kw_only=True)

    @property
    def selected(self) -> Selection:
        """The selection, read if it is a text."""
        selection = Selection.parse(self.selection) if isinstance(self.selection, str) else self.selection
        if self.ranks is None:
            return selection
        ranks = ",".join(map(str, self.ranks))
        return Selection(selection.path, selection.below, selection.part, ranks, selection.instances)


@dataclass(frozen=True)
class Scale(_Selective):
    """The exclusive time of what is selected becomes `factor` times as long (Jül-4297, 3.4.1).

    Of a call that waits only what is no waiting changes. Segments shorter than `min_span` (s) stay.
    """

    factor: float
    min_span: float = 0.0
    _kind = "scale"

    def __str__(self) -> str:
        return f"scale {self.selected}={self.factor:g}"


@dataclass(frozen=True)
class Set(_Selective):
    """The exclusive time of each instance becomes `duration` seconds."""

    duration: float
    _kind = "set"

    def __str__(self) -> str:
        return f"set {self.selected}={self.duration:g}s"


@dataclass(frozen=True)
class Balance(_Selective):
    """Time moves between the instances of what is selected; its sum stays (Jül-4297, 3.4.2).

    Attributes
    ----------
    mode
        ``instance``: the n-th instances of all locations become equally long; ``local``: all instances of a location;
        ``global``: all of all; ``scaled``: all locations work equally long, and the proportions within each stay.
    by
        How much of the way to the full balance, 0..1.
    uneven
        ``average``: where locations have different numbers of instances, the mean is that of those that have an n-th.
    """

    mode: Mode = "instance"
    by: float = 1.0
    uneven: Literal["average"] | None = None
    _kind = "balance"

    def __str__(self) -> str:
        options = [self.mode, *([f"by={self.by:g}"] * (self.by != 1)), *(["uneven=average"] * bool(self.uneven))]
        return f"balance {self.selected}" + (f":{','.join(options)}" if options != ["instance"] else "")


@dataclass(frozen=True)
class Cpu(Hypothesis):
    """All computation is `ratio` times as fast, at all ranks or at those of `ranks` (``0-3,8``)."""

    ratio: float
    ranks: str | None = None
    _kind = "scale"

    def __str__(self) -> str:
        return f"cpu {self.ratio:g}" + (f"@{self.ranks}" if self.ranks else "")


@dataclass(frozen=True)
class Overhead(Hypothesis):
    """Every segment is shorter by what the measurement of an event took, seconds; 10 ns stay (Jül-4297, 4.3.3)."""

    seconds: float
    _kind = "overhead"

    def __str__(self) -> str:
        return f"overhead {self.seconds:g}s"


@dataclass(frozen=True)
class Protocol(_Selective):
    """Messages sent by what is selected go by rendezvous, or are eager, whatever they were."""

    kind: Literal["eager", "rendezvous"]
    _kind = "protocol"

    def __str__(self) -> str:
        return f"protocol {self.selected}={self.kind}"


@dataclass(frozen=True)
class EagerLimit(Hypothesis):
    """Messages of more bytes go by rendezvous, others are eager; whatever they were."""

    size: int
    _kind = "eager limit"

    def __str__(self) -> str:
        return f"eager limit {self.size}"


@dataclass(frozen=True)
class AsynchronousProgress(Hypothesis):
    """One-sided operations need nobody at their target."""

    _kind = "progress"

    def __str__(self) -> str:
        return "progress asynchronous"


@dataclass(frozen=True)
class IdealNetwork(Hypothesis):
    """Calls of communication libraries take no time but waiting; files take theirs (POP's ideal network)."""

    _kind = "set"

    def __str__(self) -> str:
        return "network ideal"


def parse(kind: str, text: str) -> Hypothesis:
    """Read what follows an option of the command line.

    Parameters
    ----------
    kind
        ``scale``, ``set``, ``balance``, ``cpu``, ``overhead``, ``protocol``, ``eager-limit``, ``progress`` or
        ``network``.
    text
        ``PATH=0.5``, ``PATH=2ms``, ``PATH:scaled,by=0.5``, ``2@0-3``, ``1us``, ``PATH=eager``, ``65536``,
        ``asynchronous``, ``ideal``.

    Raises
    ------
    whywait.UsageError
        If it cannot be read.
    """
    if kind == "scale":
        selection, value = _split(kind, text)
        return Scale(Selection.parse(selection), _number(value, text))
    if kind == "set":
        selection, value = _split(kind, text)
        return Set(Selection.parse(selection), duration(value))
    if kind == "cpu":
        ratio, _, ranks = text.partition("@")
        if ranks and not re.fullmatch(rf"{_RANK}(,{_RANK})*", ranks):
            raise _native.UsageError(f"{ranks} is not a list of ranks such as 0-3,8")
        return Cpu(_number(ratio, text), ranks or None)
    if kind == "overhead":
        return Overhead(duration(text))
    if kind == "protocol":
        selection, value = _split(kind, text)
        return Protocol(Selection.parse(selection), value)  # type: ignore[arg-type]
    if kind == "eager-limit":
        return EagerLimit(_size(text))
    if kind in _WORDS:
        word, made = _WORDS[kind]
        if text != word:
            raise _native.UsageError(f"{kind} can only be {word}, not {text!r}")
        return made()
    selection, options = _options(text)
    mode: Any = "instance"
    by, uneven = 1.0, None
    for option in options:
        name, _, value = option.partition("=")
        if name == "by":
            by = _number(value, text)
        elif name == "uneven":
            uneven = value
        else:
            mode = name
    if uneven not in (None, "average"):
        raise _native.UsageError(f"{text}: uneven can only be average")
    return Balance(Selection.parse(selection), mode, by, uneven)  # type: ignore[arg-type]


_WORDS: dict[str, tuple[str, type[AsynchronousProgress | IdealNetwork]]] = {
    "progress": ("asynchronous", AsynchronousProgress),
    "network": ("ideal", IdealNetwork),
}


def _size(text: str) -> int:
    if not text.isdecimal():
        raise _native.UsageError(f"{text!r} is not a number of bytes")
    return int(text)


_MODES = ("instance", "local", "global", "scaled")


def _options(text: str) -> tuple[str, list[str]]:
    """Split the options of a balance off, if what follows the last colon is such."""
    option = rf"(?:{'|'.join(_MODES)}|by=[^,:]*|uneven=[^,:]*)"
    match = re.fullmatch(rf"(.+):({option}(?:,{option})*)", text)
    return (match[1], match[2].split(",")) if match else (text, [])


def _split(kind: str, text: str) -> tuple[str, str]:
    selection, sign, value = text.rpartition("=")
    if not sign or not selection:
        example = {"scale": "0.5", "set": "2ms"}.get(kind, "eager")
        raise _native.UsageError(f"{text!r} is not of the form PATH={example}")
    return selection, value


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise _native.UsageError(f"{value!r} in {text!r} is not a number") from None


_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "": 1.0}


def duration(text: str) -> float:
    """Read a time such as ``2ms``; seconds without a unit."""
    match = re.fullmatch(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(s|ms|us|ns|)", text.strip())
    try:
        return float(match[1]) * _UNITS[match[2]] if match else math.nan
    except ValueError:
        return math.nan


def _check(hypothesis: Hypothesis) -> None:
    """Refuse numbers that make no sense."""
    text = str(hypothesis)
    match hypothesis:
        case Scale(factor=value, min_span=least):
            good = value >= 0 and math.isfinite(value) and least >= 0
            what = "a factor is a finite number that is not negative"
        case Set(duration=value) | Overhead(seconds=value):
            good, what = value >= 0 and math.isfinite(value), "a duration is a time such as 2ms that is not negative"
        case Cpu(ratio=value):
            good, what = value > 0 and math.isfinite(value), "a ratio is a finite number above zero"
        case Balance(by=value, mode=mode):
            good, what = 0 <= value <= 1, "by is a number from 0 to 1"
            if mode not in _MODES:
                good, what = False, f"the modes are {', '.join(_MODES)}"
        case Protocol(kind=kind):
            good, what = kind in ("eager", "rendezvous"), "a protocol is eager or rendezvous"
        case EagerLimit(size=size):
            good, what = size >= 0, "a limit is a number of bytes"
        case _:
            return
    if not good:
        raise _native.UsageError(f"{text}: {what}")


class _Compiler:
    """Turns hypotheses into numbers of call paths and locations."""

    def __init__(self, result: Result, window: tuple[float, float] | None) -> None:
        self._result = result
        self._window = window
        self._tree: CallTree = result.tree

    def compile(self, hypothesis: Hypothesis) -> dict[str, Any]:
        """Return a hypothesis as the native simulator takes it."""
        _check(hypothesis)
        common = {"kind": hypothesis._kind, "selection": None, "min_span": 0.0, "mode": None, "uneven": False}  # noqa: SLF001
        match hypothesis:
            case Scale(factor=value, min_span=least):
                return common | {"selection": self._selection(hypothesis.selected), "value": value, "min_span": least}
            case Set(duration=value):
                return common | {"selection": self._selection(hypothesis.selected), "value": value}
            case Balance(mode=mode, by=value, uneven=uneven):
                selection = self._selection(hypothesis.selected)
                return common | {"selection": selection, "value": value, "mode": mode, "uneven": bool(uneven)}
            case Cpu(ratio=value, ranks=ranks):
                selection = self._compiled(str(hypothesis), self._computation, [], ranks)
                return common | {"selection": selection, "value": 1 / value}
            case Overhead(seconds=value):
                return common | {"value": value}
            case IdealNetwork():
                kinds = self._tree.kinds
                calls = [_communicates(kinds[row]) for row in self._tree.region_rows]
                return common | {"selection": self._compiled(str(hypothesis), calls, [], None), "value": 0.0}
        raise _native.UsageError(f"{hypothesis} is no hypothesis")

    def model(self, hypotheses: Iterable[Hypothesis]) -> dict[str, Any]:
        """Return what hypotheses change of how calls wait, as arguments of the native simulator."""
        model: dict[str, Any] = {"asynchronous": False, "eager_limit": None, "protocols": []}
        for hypothesis in hypotheses:
            _check(hypothesis)
            match hypothesis:
                case AsynchronousProgress():
                    model["asynchronous"] = True
                case EagerLimit(size=size):
                    model["eager_limit"] = size
                case Protocol(kind=kind):
                    selection = hypothesis.selected
                    if selection != Selection(selection.path):
                        raise _native.UsageError(f"{hypothesis}: a protocol is that of all messages of a call path")
                    model["protocols"].append((self._selection(selection).roots, kind == "rendezvous"))
        return model

    @property
    def _computation(self) -> list[bool]:
        """Which call paths are the program's own code, by id."""
        kinds = self._tree.kinds
        return [kinds[row].paradigm not in _LIBRARIES for row in self._tree.region_rows]

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
    min_span: float
    mode: str | None
    uneven: bool


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
    """

    def __init__(self, result: Result, hypotheses: Sequence[Hypothesis], native: _native.Simulation) -> None:
        self.measured = result
        self.hypotheses = list(hypotheses)
        self._native = native

    @property
    def before(self) -> float:
        """Length of the measured run, seconds."""
        return float(self.measured.facts["length"])

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
        """What was assumed: ``assumption``, ``text`` and ``count``."""
        rows = self._native.assumptions()
        schema = pa.schema([("assumption", pa.string()), ("text", pa.string()), ("count", pa.int64())])
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
        return analyze(self.write(directory))

    def diff(self, metrics: Iterable[str] | None = None) -> pa.Table:
        """Compare the simulated run with the measured one, as `whywait.compare.diff` does."""
        from whywait.compare import diff

        return diff(self.measured, self.result, metrics)

    def events(self, location: int) -> pa.Table:
        """Return when a location enters and leaves its regions: ``measured`` and ``simulated``, ticks."""
        return pa.table(self._native.events(location))

    def __repr__(self) -> str:
        return f"<whywait.Simulation: {self.before:.6g} s -> {self.after:.6g} s>"


_ARCHIVE = "traces"


def refuse_archive(directory: Path) -> None:
    """Raise an error if a directory holds an archive already."""
    if (found := next(directory.glob("*.otf2"), None)) or (directory / _ARCHIVE).exists():
        raise _native.UsageError(f"{found or directory / _ARCHIVE} is there already: choose another directory")


def whatif(
    run: Result | Run | str | PathLike[str],
    hypotheses: Iterable[Hypothesis] = (),
    *,
    hidden: Literal["estimate", "remainder"] = "estimate",
    window: tuple[float, float] | None = None,
    threads: int | None = None,
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
    hidden
        How long a transfer takes for which no receive had to wait: as others of its class (``estimate``), or as long as
        what is left of its call (``remainder``).
    window
        Only instances that begin in this part of the measured run change, seconds since its begin.
    threads
        How many threads to use; None for as many as there are cores.
    progress
        As of `whywait.analyze`, if the run is not yet analysed.

    Returns
    -------
    Simulation

    Raises
    ------
    whywait.UsageError
        If a hypothesis makes no sense, or selects nothing.
    """
    result = run if isinstance(run, Result) else analyze(run, threads=threads, causes=False, progress=progress)
    chosen = list(hypotheses)
    if any(isinstance(hypothesis, Overhead) for hypothesis in chosen) and len(chosen) > 1:
        raise _native.UsageError("overhead changes all of the run: it must be the only hypothesis")
    if hidden not in ("estimate", "remainder"):
        raise _native.UsageError("hidden is estimate or remainder")
    compiler = _Compiler(result, window)
    # The ratio of processors and the network come last: they work on what the others left.
    of_model = (Protocol, EagerLimit, AsynchronousProgress)
    ordered = sorted(
        (hypothesis for hypothesis in chosen if not isinstance(hypothesis, of_model)),
        key=lambda hypothesis: isinstance(hypothesis, (Cpu, IdealNetwork)),
    )
    changes = [_Change(**compiler.compile(hypothesis)) for hypothesis in ordered]
    native, estimated = result.tables.analysis, hidden == "estimate"
    if not isinstance(native, _native.Analysis):
        raise _native.UsageError("a written result keeps no events to simulate: analyze the trace again")
    simulator = _native.Simulator(native, hidden=estimated, threads=threads, **compiler.model(chosen))
    return Simulation(result, chosen, simulator.simulate(changes, threads=threads))


class _Callable(ModuleType):
    """A module that can be called: `whywait.whatif` is both where hypotheses are and what simulates."""

    __call__ = staticmethod(whatif)


sys.modules[__name__].__class__ = _Callable
