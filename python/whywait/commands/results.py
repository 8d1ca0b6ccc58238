"""Operands of verbs: stored results are read, traces are analyzed."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from whywait.commands.common import Progress, add_top, memory_size, positive
from whywait.model.clocks import CLOCK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from whywait import Result, Run
    from whywait.analysis.focus import FocusedData

Answer = TypeVar("Answer")

#: The help of an operand that may be a result or a trace.
RESULT = "a result directory of `whywait analyze`, or a trace to analyze first"
#: The help of an operand whose events are needed.
TRACE = (
    "the anchor file of an OTF2 archive, its directory, a directory with traces of PyTorch's profiler or SQLite "
    "exports of Nsight Systems, a Paraver trace, or a result directory, whose trace is then read"
)
#: The help of an operand that may also be a profile.
RESULT_OR_PROFILE = f"{RESULT}, or a Score-P profile (profile.cubex)"
#: The help of the option that selects a part of the run.
FOCUS = (
    "the part of the run to look at: 'all' for the whole run; the call paths that end in these names; or a time window "
    "in seconds since the start of the trace (0.5:2, 500ms:) or as shares of each run (10%%:90%%), for which the trace "
    "is analyzed again (default: the time between start-up and shutdown)"
)
#: The help of the option for the directory with source files.
SOURCE = "show source lines in the HTML report, read from the source files in this directory"
#: The help of the option that names a loop.
LOOP = (
    "the call path that each iteration enters once, by its last names (main/step) or its number, or the parameter that "
    "each iteration records"
)
#: The help of the option that names a part of the call tree.
CALLPATH = (
    "only the call paths that end in these names (main/solve), with everything below, or a call path by its number"
)


_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


class Part(NamedTuple):
    """The part of a run that ``--focus`` selects.

    Attributes
    ----------
    name
        As `whywait.analysis.focus.find_focus` takes it.
    window
        A function from the length of a run to the begin and end of a time window; None for none.
    """

    name: str | None = None
    window: Callable[[float], tuple[float, float]] | None = None


def part(text: str) -> Part:
    """Parse what ``--focus`` selects."""
    try:
        return Part(window=time_window(text))
    except argparse.ArgumentTypeError:
        # Names of C++ have colons, too.
        return Part(text)


def add_focus(parser: argparse.ArgumentParser, *, window: bool = False) -> None:
    """Add the option for the part of the run to look at.

    Parameters
    ----------
    parser
        The parser of the verb.
    window
        Whether to also add the older ``--window FROM:TO``.
    """
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--focus", type=part, default=Part(), metavar="PART", help=FOCUS)
    if window:
        parts.add_argument(
            "--window",
            type=lambda text: Part(window=time_window(text)),
            dest="focus",
            metavar="FROM:TO",
            help="the same as --focus FROM:TO",
        )


def add_named_focus(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option for the part of the run to look at, where that cannot be a time window.

    Parameters
    ----------
    parser
        The parser of the verb.
    what
        What the part is for.
    """
    parser.add_argument(
        "--focus",
        metavar="PART",
        help=f"{what}: 'all' for the whole run, or the call paths that end in these names (default: the time between "
        "start-up and shutdown)",
    )


def time_window(text: str) -> Callable[[float], tuple[float, float]]:
    """Parse a window; return a function from the length of a run to begin and end."""
    bounds = [
        re.fullmatch(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(s|ms|us|%|)|", bound.strip()) for bound in text.split(":")
    ]
    if len(bounds) != 2 or not all(bounds):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form FROM:TO, such as 0.5:2, 500ms: or 10%:90%")

    def seconds(match: re.Match[str], length: float, otherwise: float) -> float:
        if not match[1]:
            return otherwise
        return float(match[1]) * (length / 100 if match[2] == "%" else _UNITS[match[2] or "s"])

    first, last = (bound for bound in bounds if bound)
    return lambda length: (seconds(first, length, 0.0), seconds(last, length, length))


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the option for a window of time, to a verb that has no other focus than the whole run."""
    text = "only a time window, in seconds since the start of the trace (0.5:2, 500ms:) or as shares of it (10%%:90%%)"
    parser.add_argument("--window", type=time_window, metavar="FROM:TO", help=text)


def add_part(parser: argparse.ArgumentParser) -> None:
    """Add the options of verbs that list the causes of waiting in a part of a run."""
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    add_top(parser, "how many to list")
    add_focus(parser, window=True)


def add_counter_mode(parser: argparse.ArgumentParser) -> None:
    """Add the option for the mode of counters."""
    parser.add_argument(
        "--counter-mode",
        type=_named_mode,
        action="append",
        default=[],
        metavar="NAME=MODE",
        help="what the values of a counter are, if the trace declares it wrongly: absolute, accumulated, relative, or "
        "a metric mode of OTF2; can be repeated",
    )


def _named_mode(text: str) -> tuple[str, str]:
    name, _, mode = text.rpartition("=")
    if not name or not mode:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=MODE")
    return name, mode


def add_analysis(parser: argparse.ArgumentParser, title: str = "how a trace is analyzed", more: str = "") -> None:
    """Add the options for the analysis of a trace: its clocks, threads, and memory.

    Parameters
    ----------
    parser
        The parser of the verb.
    title
        The title of the group.
    more
        What the help says of clocks on top.
    """
    group = parser.add_argument_group(title)
    group.add_argument(
        "--clocks",
        choices=CLOCKS,
        help="how to correct the clocks of a trace that contradicts the order of its events: nodes (the processes of a "
        "node share one clock offset), lines (an offset and a drift for each clock, from the messages), clc (the "
        "controlled logical clock), both (lines, then clc), auto (what is needed), or measured (keep the times); "
        f"default: nodes, and lines for traces of PyTorch's profiler and Nsight Systems from several nodes{more}",
    )
    group.add_argument(
        "--clock-domain",
        choices=DOMAINS,
        help="what has a clock of its own: process, node, or auto (default): a node whose processes agree, otherwise "
        "each of them",
    )
    group.add_argument(
        "--min-latency",
        type=_latency,
        metavar="TIME",
        help="least time between cause and effect on two processes, such as 1us (default: 0)",
    )
    group.add_argument("--threads", type=positive, metavar="N", help="number of threads (default: one per core)")
    group.add_argument(
        "--memory-limit",
        type=memory_size,
        metavar="SIZE",
        help="memory for the analysis, such as 8G; data that does not fit is spilled to a file (default: no limit)",
    )


#: The ways to correct clocks, and what has a clock of its own.
CLOCKS = ("measured", "nodes", "lines", "clc", "both", "auto")
DOMAINS = ("auto", "process", "node")


def analysis_choices(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was chosen about the analysis of a trace, as arguments of `whywait.analyze`."""
    given = {name: getattr(options, name) for name in (*CLOCK_OPTIONS, "threads", "memory_limit")}
    return {name: value for name, value in given.items() if value is not None}


def _latency(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(s|ms|us|ns)", text.strip())
    if not match or (seconds := float(match[1]) * (_UNITS | {"ns": 1e-9})[match[2]]) > 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time of at most a second, such as 1us")
    return seconds


def load_part(options: argparse.Namespace) -> FocusedData:
    """Return the focus of a stored result, or of a trace: the ``result`` of the options."""
    from whywait.analysis.focus import focused

    return focused(load_focus(options), options.focus.name)


def load_focus(options: argparse.Namespace, path: str | None = None) -> Result:
    """Return a stored result, or that of a trace; if the focus is a time window, the result of an analysis of it.

    Parameters
    ----------
    options
        With the ``focus``, how to analyze a trace, and the ``result``.
    path
        Another path than that of the result.
    """
    import whywait
    from whywait.model.result import part_of_run

    path, window = path or options.result, options.focus.window
    choices = analysis_choices(options)
    result = load(path, choices=choices)
    if window is None:
        return result
    if result.is_profile:
        raise whywait.UsageError(f"{path} is a profile, which has no time windows: this needs a trace of the run")
    bounds = part_of_run(window(result.facts["length"]), result.facts["length"])
    with Progress() as progress:
        return whywait.analyze(result.run, **{**result.options, **choices}, window=bounds, progress=progress)


def load(path: str, *, events: bool = False, choices: Mapping[str, Any] | None = None) -> Result:
    """Return a stored result, or the result of a trace.

    Parameters
    ----------
    path
        The results directory, or the trace.
    events
        Whether the events are needed: if so, the trace of a stored result is analyzed again.
    choices
        How to analyze the trace, as `analysis_choices` returns it.
    """
    import whywait
    from whywait.store.files import is_result
    from whywait.store.profile import is_profile

    if not is_result(path) and not is_profile(path):
        with Progress() as progress:
            return whywait.analyze(path, progress=progress, **(choices or {}))
    if any(name in CLOCK_OPTIONS for name in choices or {}):
        raise whywait.UsageError(f"{path} is a result: its clocks were corrected, or not, when its trace was analyzed")
    result = whywait.load(path)
    if not events:
        return result
    if result.is_profile:
        raise whywait.UsageError(f"{path} is a profile, which has no events: this needs a trace of the run")
    with Progress() as progress:
        return whywait.analyze(result.run, **{**result.options, **(choices or {})}, progress=progress)


def ask(options: argparse.Namespace, question: Callable[[Result], Answer]) -> tuple[Result, Answer]:
    """Return a result and its answer; if a stored result lacks the events for it, its trace is analyzed again."""
    from whywait import UsageError

    choices = analysis_choices(options)
    result = load_focus(options) if "focus" in options else load(options.result, choices=choices)
    try:
        return result, question(result)
    except UsageError:
        if result.tables.analysis is not None:
            raise
    result = load(options.result, events=True, choices=choices)
    return result, question(result)


def asked_focus(options: argparse.Namespace, question: Callable[[Result], Answer]) -> tuple[FocusedData, Answer]:
    """Return the focus of a result, and the answer of the result as in `ask`."""
    from whywait.analysis.focus import focused

    result, answer = ask(options, question)
    return focused(result, options.focus.name), answer


def open_trace(path: str, **options: Any) -> Run:
    """Return a trace, or the trace of a stored result; options say how traces of PyTorch's profiler are read."""
    import whywait
    from whywait.store.files import is_result

    return whywait.load(path).run if is_result(path) else whywait.open(path, **options)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options for traces of other recorders: PyTorch's profiler, Nsight Systems, and Paraver's."""
    group = parser.add_argument_group("traces of PyTorch's profiler and Nsight Systems")
    group.add_argument(
        "--paths",
        choices=("op", "module", "python", "all"),
        help="what call paths consist of: annotations and operators, modules and functions of the user as well (the "
        "default), all frames of Python, or all with names as they are (the only choice for Nsight Systems)",
    )
    group.add_argument(
        "--cycle", type=positive, metavar="N", help="which of several recorded windows (default: the last)"
    )
    group.add_argument(
        "--comm-kernels",
        action="append",
        metavar="REGEX=KIND",
        help="further kernels that communicate, such as 'my_reduce.*=all_reduce'; may be repeated",
    )
    group.add_argument(
        "--memory",
        action="store_const",
        const=True,
        help="read memory in use where there are more than 10,000 samples of it on a rank as well",
    )

    group = parser.add_argument_group("Paraver traces")
    group.add_argument(
        "--application", type=positive, metavar="N", help="the only application to read, from 1 (default: all)"
    )
    group.add_argument(
        "--paraver-types",
        dest="types",
        type=_types,
        metavar="TYPES",
        help="further types of events that are regions, such as 6000050,6000051",
    )
    group.add_argument(
        "--truncated",
        action="store_const",
        const=True,
        help="read a trace that is cut off within a record up to there",
    )
    group.add_argument(
        "--no-inference",
        dest="inference",
        action="store_const",
        const=False,
        help="do not infer which calls complete non-blocking sends",
    )


def _types(text: str) -> list[int]:
    """Parse types of events."""
    try:
        types = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 6000050,6000051") from None
    if not all(0 < one < 2**32 for one in types):
        raise argparse.ArgumentTypeError(f"{text} has a number that is no type")
    return types


def reading_choices(options: argparse.Namespace) -> dict[str, Any]:
    """Return how traces of other recorders are to be read."""
    names = ("paths", "cycle", "comm_kernels", "memory", "application", "types", "truncated", "inference")
    return {name: getattr(options, name) for name in names}


def names_of(paths: Sequence[str]) -> list[str]:
    """Return the directories of runs as their names, with as much of their paths as tells them apart.

    Compared runs are often of the same program. Runs in one directory have the names of their files.
    """
    runs = [Path(path).resolve() for path in paths]
    places = [run if run.is_dir() else run.parent for run in runs]
    if len(set(places)) < len(set(runs)):
        places = [run if run.is_dir() else run.with_name(run.name.removesuffix(".gz")).with_suffix("") for run in runs]
    names = [""]
    for depth in range(1, 1 + max(len(place.parts) for place in places)):
        names = ["/".join(place.parts[-depth:]) for place in places]
        if len(set(names)) == len(set(places)):
            break
    return names
