"""Hypotheses of the what-if simulator: changes of a run, and their notation."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Sequence

Mode = Literal["instance", "segment", "local", "global", "scaled", "median"]

_LAST = -1
# The shortest segment that remains after the overhead is removed: as in Scalasca 1.x.
_LEAST = 1e-8


@dataclass(frozen=True)
class Selection:
    """The instances of call paths that a hypothesis changes.

    Attributes
    ----------
    path
        The last names of the call paths, separated by ``/``, or the number of one.
    below
        Whether to include computation in the call paths below.
    part
        Only this segment of each instance: 0 is the one before the first call in it, -1 the last.
    ranks
        ``0-3,8``; ``5.1`` is thread 1 of rank 5. None for all.
    instances
        First and last number in order of Enter, for each call path and location; ``(-1, -1)`` is the last one. None for
        all.
    """

    path: str
    below: bool = False
    part: int | None = None
    ranks: str | None = None
    instances: tuple[int, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read ``PATH[/**][~PART][@RANKS][#INSTANCES]``; a suffix is split off only if it is valid."""
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
        The selection, as a text or a `Selection`.
    ranks
        The ranks, if the text does not name them.
    """

    selection: Selection | str
    ranks: Sequence[int] | None = field(default=None, kw_only=True)

    @property
    def selected(self) -> Selection:
        """The selection, parsed if it is a text."""
        selection = Selection.parse(self.selection) if isinstance(self.selection, str) else self.selection
        if self.ranks is None:
            return selection
        ranks = ",".join(map(str, self.ranks))
        return Selection(selection.path, selection.below, selection.part, ranks, selection.instances)

    def __str__(self) -> str:
        return f"{self._kind} {self.selected}"


@dataclass(frozen=True)
class Scale(_Selective):
    """The exclusive time of the selection is multiplied by `factor` (Jül-4297, 3.4.1).

    In a call that waits, only the time outside the wait changes. Segments shorter than `min_span` (s) stay.
    """

    factor: float
    min_span: float = 0.0
    _kind = "scale"

    def __str__(self) -> str:
        least = f",min_span={self.min_span:g}s" if self.min_span else ""
        return f"scale {self.selected}={self.factor:g}{least}"


@dataclass(frozen=True)
class Set(_Selective):
    """The exclusive time of each instance becomes `duration` seconds."""

    duration: float
    _kind = "set"

    def __str__(self) -> str:
        return f"set {self.selected}={self.duration:g}s"


@dataclass(frozen=True)
class Balance(_Selective):
    """Time moves between the selected instances; their sum stays, except with ``median`` (Jül-4297, 3.4.2).

    Attributes
    ----------
    mode
        ``instance``: the n-th instances of all locations become equally long; ``segment``: the n-th segments of all
        locations, whatever instances they are of; ``local``: all instances of a location; ``global``: all instances of
        all locations; ``scaled``: all locations work equally long, with the proportions within each unchanged;
        ``median``: all instances of all locations take as long as their median.
    by
        Degree of the balance: 0 changes nothing, 1 is the full balance.
    uneven
        ``average``: if locations have different numbers of instances, the mean is over those that have an n-th one.
    among
        Time moves only within these groups: ``node``, the locations of each node; ``process``, the threads of each
        process; ``comm:3``, the members of a communicator given by its id; ``0-3,8``, these ranks. Locations outside
        all groups do not change. None for one group of all.
    """

    mode: Mode = "instance"
    by: float = 1.0
    uneven: Literal["average"] | None = None
    among: str | None = None
    _kind = "balance"

    def __str__(self) -> str:
        options = [self.mode, *([f"by={self.by:g}"] * (self.by != 1)), *(["uneven=average"] * bool(self.uneven))]
        options += [f"among={self.among}"] * bool(self.among)
        return f"balance {self.selected}" + (f":{','.join(options)}" if options != ["instance"] else "")


@dataclass(frozen=True)
class Trim(_Selective):
    """Selected calls of libraries and thread runtimes take no longer than the fastest 5% of their kind.

    The account (docs/account.md) says what calls are compared. ``all`` selects all of them, except those that start
    and end a library.
    """

    selection: Selection | str = "all"
    _kind = "trim"


@dataclass(frozen=True)
class Cpu(Hypothesis):
    """All computation is `ratio` times as fast, on all ranks or on `ranks` (``0-3,8``)."""

    ratio: float
    ranks: str | None = None
    _kind = "scale"

    def __str__(self) -> str:
        return f"cpu {self.ratio:g}" + (f"@{self.ranks}" if self.ranks else "")


@dataclass(frozen=True)
class Overhead(Hypothesis):
    """Every segment is shortened by the measurement overhead of an event, seconds (Jül-4297, 4.3.3).

    At least `least` seconds of a segment remain.
    """

    seconds: float
    least: float = _LEAST
    _kind = "overhead"

    def __str__(self) -> str:
        least = f",least={self.least:g}s" if self.least != _LEAST else ""
        return f"overhead {self.seconds:g}s{least}"


@dataclass(frozen=True)
class Protocol(_Selective):
    """Messages that the selection, or what it calls, sends use rendezvous or the eager protocol instead of theirs."""

    kind: Literal["eager", "rendezvous"]
    _kind = "protocol"

    def __str__(self) -> str:
        return f"protocol {self.selected}={self.kind}"


@dataclass(frozen=True)
class EagerLimit(Hypothesis):
    """Messages of more bytes use rendezvous, others are eager, whatever they used before."""

    size: int
    _kind = "eager limit"

    def __str__(self) -> str:
        return f"eager limit {self.size}"


@dataclass(frozen=True)
class AsynchronousProgress(Hypothesis):
    """One-sided operations complete without calls at their target."""

    _kind = "progress"

    def __str__(self) -> str:
        return "progress asynchronous"


@dataclass(frozen=True)
class IdealNetwork(Hypothesis):
    """Calls of communication libraries take no time but waiting; file I/O is unchanged (POP's ideal network)."""

    _kind = "set"

    def __str__(self) -> str:
        return "network ideal"


@dataclass(frozen=True)
class Network(Hypothesis):
    """A network of given latency and bandwidth by Dimemas' linear model: a message takes latency + size / bandwidth.

    There is no contention. Other hypotheses are compared with the unchanged run on this network.

    Attributes
    ----------
    latency, bandwidth
        Between nodes: seconds, and bytes a second.
    local_latency, local_bandwidth
        Within a node; None for the same as between nodes.
    eager
        Messages of more bytes use rendezvous; None for the protocols of the measured run.
    send, receive
        Overhead of these calls, seconds.
    """

    latency: float
    bandwidth: float = math.inf
    local_latency: float | None = None
    local_bandwidth: float | None = None
    eager: int | None = None
    send: float = 0.0
    receive: float = 0.0
    _kind = "network"

    def __str__(self) -> str:
        given = {
            "latency": f"{self.latency:g}s",
            "bandwidth": f"{self.bandwidth:g}B/s" if math.isfinite(self.bandwidth) else None,
            "local_latency": None if self.local_latency is None else f"{self.local_latency:g}s",
            "local_bandwidth": None if self.local_bandwidth is None else f"{self.local_bandwidth:g}B/s",
            "eager": self.eager, "send": f"{self.send:g}s" if self.send else None,
            "receive": f"{self.receive:g}s" if self.receive else None,
        }  # fmt: skip
        return "network " + ",".join(f"{name}={value}" for name, value in given.items() if value is not None)

    @property
    def numbers(self) -> tuple[float, float, float, float, float, float]:
        """Latency and bandwidth between nodes and within one, overhead of a send and of a receive."""
        local = self.latency if self.local_latency is None else self.local_latency
        broad = self.bandwidth if self.local_bandwidth is None else self.local_bandwidth
        return self.latency, self.bandwidth, local, broad, self.send, self.receive

    @classmethod
    def parse(cls, text: str) -> Network:
        """Read ``latency=2us,bandwidth=10GB/s,eager=65536``."""
        known: dict[str, Any] = {}
        for part in text.split(","):
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name in {"latency", "local_latency", "send", "receive"}:
                known[name] = duration(value)
            elif name in {"bandwidth", "local_bandwidth"}:
                known[name] = bandwidth(value)
            elif name == "eager":
                known[name] = _size(value)
            else:
                raise _native.UsageError(
                    f"{text!r} is not a network: use measured, ideal, fit, or latency=2us,bandwidth=10GB/s"
                )
        if "latency" not in known:
            raise _native.UsageError(f"{text!r} lacks the latency of the network (latency=2us)")
        return cls(**known)


@dataclass(frozen=True)
class Cut(_Selective):
    """The selection vanishes with everything it encloses, and its communication with other calls (Jül-4297, 3.4.3).

    Of a message in it, both sides vanish; of a collective operation, the calls of all members.
    """

    _kind = "cut"


@dataclass(frozen=True)
class CutMessages(Hypothesis):
    """Messages vanish, and the calls that serve only them (Jül-4297, 3.4.4).

    Attributes
    ----------
    conditions
        Conditions on a message: ``size==0,tag!=3,in=exchange``. Keys are ``size`` (bytes), ``tag``, ``from`` and
        ``to`` (ranks), ``comm`` (its id) and ``in`` (call paths of the sending calls, with ``=``).
    """

    conditions: str
    _kind = "cut messages"

    def __str__(self) -> str:
        return f"cut messages {self.conditions}"

    @property
    def parsed(self) -> tuple[list[tuple[str, str, int]], list[str]]:
        """Conditions on numbers (key, relation, number), and paths of sending calls."""
        numbers, paths = [], []
        # A path may contain commas.
        for condition in re.split(r",(?=\s*(?:(?:size|tag|from|to|comm)\s*[=!<>]|in\s*=))", self.conditions):
            if match := re.fullmatch(r"\s*(size|tag|from|to|comm)\s*(==?|!=|<=|>=|<|>)\s*(\d+)\s*", condition):
                numbers.append((match[1], "==" if match[2] == "=" else match[2], int(match[3])))
            elif match := re.fullmatch(r"\s*in\s*==?\s*(.+)", condition):
                paths.append(match[1])
            else:
                raise _native.UsageError(f"{condition!r} is not a condition such as size==0, tag!=3 or in=exchange")
        return numbers, paths


@dataclass(frozen=True)
class Overlap(_Selective):
    """Communication goes on while the program computes (Jül-4297, 4.7).

    Blocking sends and receives in the selection become non-blocking ones with a wait that comes later, and waits come
    later. A wait passes computation only (docs/whatif.md#overlap).

    Attributes
    ----------
    after
        The call path behind whose next instance the waits are to stand; None for as late as they may.
    """

    after: str | None = None
    _kind = "overlap"

    def __str__(self) -> str:
        return f"overlap {self.selected}" + (f":after={self.after}" if self.after else "")


@dataclass(frozen=True)
class Split(_Selective):
    """Calls of MPI_Sendrecv in the selection become a send and then a receive (Jül-4297, 4.7)."""

    _kind = "split"


def parse(kind: str, text: str) -> Hypothesis:
    """Read the value of an option of the command line.

    Parameters
    ----------
    kind
        ``cut``, ``cut-messages``, ``scale``, ``set``, ``balance``, ``trim``, ``cpu``, ``overhead``, ``protocol``,
        ``eager-limit``, ``progress``, ``network``, ``overlap`` or ``split``.
    text
        ``PATH=0.5``, ``PATH=0.5,min_span=10us``, ``PATH=2ms``, ``PATH:scaled,by=0.5``, ``2@0-3``, ``1us``,
        ``PATH:after=PATH``, ``PATH=eager``, ``65536``, ``asynchronous``, ``ideal``.

    Raises
    ------
    whywait.UsageError
        If it is malformed.
    """
    if kind == "scale":
        whole, least = _last_option(text, "min_span")
        selection, value = _split(kind, whole)
        return Scale(Selection.parse(selection), _number(value, text), 0.0 if least is None else duration(least))
    if kind == "set":
        selection, value = _split(kind, text)
        return Set(Selection.parse(selection), duration(value))
    if kind == "cpu":
        ratio, _, ranks = text.partition("@")
        if ranks and not re.fullmatch(rf"{_RANK}(,{_RANK})*", ranks):
            raise _native.UsageError(f"{ranks} is not a list of ranks such as 0-3,8")
        return Cpu(_number(ratio, text), ranks or None)
    if kind == "overhead":
        whole, least = _last_option(text, "least")
        return Overhead(duration(whole), _LEAST if least is None else duration(least))
    if kind == "protocol":
        selection, value = _split(kind, text)
        return Protocol(Selection.parse(selection), value)  # type: ignore[arg-type]
    if kind == "trim":
        return Trim(Selection.parse(text))
    if kind == "overlap":
        selection, _, after = text.partition(":after=")
        return Overlap(Selection.parse(selection), after or None)
    if kind == "split":
        return Split(Selection.parse(text))
    if kind == "cut":
        return Cut(Selection.parse(text))
    if kind == "cut-messages":
        return CutMessages(text)
    if kind == "eager-limit":
        return EagerLimit(_size(text))
    if kind == "network" and text != "ideal":
        return Network.parse(text)
    if kind in _WORDS:
        word, made = _WORDS[kind]
        if text != word:
            raise _native.UsageError(f"{kind} can only be {word}, not {text!r}")
        return made()
    selection, options = _options(text)
    mode: Any = "instance"
    by, uneven, among = 1.0, None, None
    for option in options:
        name, _, value = option.partition("=")
        if name == "by":
            by = _number(value, text)
        elif name == "uneven":
            uneven = value
        elif name == "among":
            among = value
        elif among and re.fullmatch(_RANK, name):
            among += f",{name}"
        else:
            mode = name
    if uneven not in (None, "average"):
        raise _native.UsageError(f"{text}: uneven can only be average")
    return Balance(Selection.parse(selection), mode, by, uneven, among)  # type: ignore[arg-type]


_WORDS: dict[str, tuple[str, type[AsynchronousProgress | IdealNetwork]]] = {
    "progress": ("asynchronous", AsynchronousProgress),
    "network": ("ideal", IdealNetwork),
}


def _size(text: str) -> int:
    if not text.isdecimal():
        raise _native.UsageError(f"{text!r} is not a number of bytes")
    return int(text)


_MODES = ("instance", "segment", "local", "global", "scaled", "median")


def _options(text: str) -> tuple[str, list[str]]:
    """Split off the options of a balance, if the text after the last colon is one."""
    among = rf"among=(?:comm:)?[^,:]*(?:,{_RANK})*"
    option = rf"(?:{'|'.join(_MODES)}|by=[^,:]*|uneven=[^,:]*|{among})"
    match = re.fullmatch(rf"(.+):({option}(?:,{option})*)", text)
    return (match[1], match[2].split(",")) if match else (text, [])


def _last_option(text: str, name: str) -> tuple[str, str | None]:
    """Split off ``,name=value``."""
    match = re.fullmatch(rf"(.+),{name}=([^=,]*)", text)
    return (match[1], match[2]) if match else (text, None)


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


_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def bandwidth(text: str) -> float:
    """Read a bandwidth such as ``10GB/s``; bytes a second without a unit."""
    match = re.fullmatch(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?|inf)\s*(?:([kmgt]i?|)B/s)?", text.strip(), re.IGNORECASE)
    try:
        return float(match[1]) * _BYTES[(match[2] or "").lower()] if match else math.nan
    except ValueError:
        return math.nan


_TIME = "a time such as 2ms that is not negative"


def _is_time(seconds: float) -> bool:
    return seconds >= 0 and math.isfinite(seconds)


def changes_nothing(hypothesis: Hypothesis) -> bool:
    """Return whether a hypothesis leaves every run unchanged."""
    match hypothesis:
        case Scale(factor=1) | Cpu(ratio=1) | Balance(by=0) | Overhead(seconds=0):
            return True
    return False


def check(hypothesis: Hypothesis) -> None:
    """Reject numbers out of range."""
    text = str(hypothesis)
    match hypothesis:
        case Scale(factor=value, min_span=least):
            good, what = value >= 0 and math.isfinite(value), "a factor is a finite number that is not negative"
            if good and not _is_time(least):
                good, what = False, f"min_span is {_TIME}"
        case Set(duration=value):
            good, what = _is_time(value), f"a duration is {_TIME}"
        case Overhead(seconds=value, least=least):
            good, what = _is_time(value) and _is_time(least), f"a duration is {_TIME}"
        case Cpu(ratio=value):
            good, what = value > 0 and math.isfinite(value), "a ratio is a finite number above zero"
        case Balance(by=value, mode=mode, among=among):
            good, what = 0 <= value <= 1, "by is a number from 0 to 1"
            if among is not None and not re.fullmatch(rf"node|process|comm:\d+|{_RANK}(,{_RANK})*", among):
                good, what = False, "among is node, process, comm:ID or ranks such as 0-3,8"
            if mode not in _MODES:
                good, what = False, f"the modes are {', '.join(_MODES)}"
        case Protocol(kind=kind):
            good, what = kind in ("eager", "rendezvous"), "a protocol is eager or rendezvous"
        case EagerLimit(size=size):
            good, what = size >= 0, "a limit is a number of bytes"
        case Network():
            latency, broad, local, local_broad, send, receive = hypothesis.numbers
            good = all(map(_is_time, (latency, local, send, receive)))
            good = good and broad > 0 and local_broad > 0 and (hypothesis.eager or 0) >= 0
            what = "times are not negative (2us), bandwidths above zero (10GB/s)"
        case _:
            return
    if not good:
        raise _native.UsageError(f"{text}: {what}")
