"""Write a result, or its timeline, in a format that other programs display."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_verb, refuse_file
from whywait.commands.results import RESULT, SOURCE, add_analysis, analysis_choices, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from whywait import Run
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "export",
        help="export a result to a format of another program",
        description="Export a result to a format of another program.",
    )
    formats = parser.add_subparsers(title="formats", metavar="FORMAT", required=True)
    html = add_verb(
        formats,
        "html",
        "one file to explore in a browser",
        "Write a result as one HTML file to explore in a browser: where the time went, the worst problems and who "
        "causes them, and all values by metric, call path, and process. The file needs no network.",
        "whywait export html results -o report.html",
        run,
        operands={"result": RESULT},
    )
    html.add_argument(
        "-o", "--output", metavar="FILE", help="output file (default: report.html in the result directory)"
    )
    add_analysis(html)
    html.add_argument("--source", metavar="DIR", help=SOURCE)
    tables = add_verb(
        formats,
        "tables",
        "long tables with names, for DuckDB, Polars, and pandas",
        "Write severities, wait states, the critical path, and one-sided transfers as Parquet files with the names of "
        "call paths and the ranks of locations in each row. The tables in a result directory have numbers instead, "
        "which refer to its tables callpaths and locations.",
        "whywait export tables results -o tables",
        run_tables,
        operands={"result": RESULT},
    )
    add_analysis(tables)
    tables.add_argument(
        "-o", "--output", metavar="DIR", help="output directory (default: tables in the result directory)"
    )
    perfetto = add_verb(
        formats,
        "perfetto",
        "a timeline for Perfetto",
        "Write a run as a trace for Perfetto (https://ui.perfetto.dev): processes and threads with their calls, wait "
        "states with their causes, the critical path, and arrows for messages, one-sided transfers, and causes. "
        "Filters select slices but never shorten them.",
        "whywait export perfetto scorep_run/traces.otf2 -o run.pftrace --ranks 0-3,8 --window 1.5:2",
        run_perfetto,
    )
    perfetto.add_argument("-o", "--output", metavar="FILE", help="output file (default: NAME.pftrace, after the trace)")
    _add_selection(perfetto)
    perfetto.add_argument(
        "--queues",
        action="store_true",
        help="replay the queues of messages, and write their lengths, requests, and bytes in flight by process",
    )
    add_analysis(perfetto)
    perfetto.add_argument("--no-causes", action="store_true", help="omit root causes and the critical path")
    for name, viewer, suffix in (
        ("speedscope", "speedscope (https://www.speedscope.app)", ".speedscope.json"),
        ("pprof", "pprof (go tool pprof)", ".pb.gz"),
    ):
        flames = add_verb(
            formats,
            name,
            f"a flame graph for {name}",
            f"Write the call stacks of the focus for {viewer}: their time, the part of it on the critical path, and "
            "the waiting that they cause. Samples divide the time between calls among functions.",
            f"whywait export {name} results -o run{suffix}",
            run_stacks,
            operands={"result": RESULT},
        )
        flames.set_defaults(format=name, suffix=suffix)
        flames.add_argument("-o", "--output", metavar="FILE", help=f"output file (default: NAME{suffix})")
        add_analysis(flames)
    paraver = add_verb(
        formats,
        "paraver",
        "a trace for Paraver",
        "Write a run as a trace for Paraver (https://tools.bsc.es/paraver), with the event types of Extrae, and in "
        "addition wait states with whom they wait for, how much each call delays others, and the critical path. Load "
        "the configuration that is written beside it (.cfg) to see these.",
        "whywait export paraver scorep_run/traces.otf2 -o run.prv",
        run_paraver,
    )
    paraver.add_argument(
        "-o", "--output", metavar="FILE", help="output file, .prv or .prv.gz (default: NAME.prv, after the trace)"
    )
    _add_selection(paraver)
    add_analysis(paraver)
    paraver.add_argument("--no-causes", action="store_true", help="omit root causes and the critical path")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options for the part of a run that is written."""
    parser.add_argument(
        "--ranks", type=_ranks, metavar="RANKS", help="only these ranks: numbers and ranges, such as 0-3,8"
    )
    parser.add_argument(
        "--window",
        type=_window,
        metavar="FROM:TO",
        help="only what overlaps this time window, in seconds since the start of the trace",
    )
    parser.add_argument(
        "--min-duration",
        type=_duration,
        default=0.0,
        metavar="SECONDS",
        help="omit shorter calls, waits, and transfers, and their arrows",
    )


def _ranks(text: str) -> list[int]:
    """Parse numbers and ranges."""
    ranks: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            begin, end = int(first), int(last if dash else first)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not a rank or a range of ranks such as 0-3") from None
        if end < begin:
            raise argparse.ArgumentTypeError(f"{part} ends before it begins")
        if end >= 2**24:
            raise argparse.ArgumentTypeError(f"there is no rank {end}")
        ranks.update(range(begin, end + 1))
    return sorted(ranks)


def _window(text: str) -> tuple[float, float]:
    """Parse a begin and an end."""
    try:
        begin, end = (float(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM:TO, two times in seconds, such as 1.5:2") from None
    if not begin <= end:
        raise argparse.ArgumentTypeError(f"{text} ends before it begins")
    return begin, end


def _duration(text: str) -> float:
    """Parse a nonnegative time."""
    if not (seconds := float(text)) >= 0:
        raise argparse.ArgumentTypeError(f"{text} s is no duration")
    return seconds


def _opened(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    """Return the run to write, and how it is analyzed."""
    import whywait
    from whywait.store.files import is_result

    written_with: Mapping[str, Any] = {}
    if is_result(options.trace):
        # A stored result has no events; use its trace.
        before = whywait.load(options.trace)
        run, written_with = before.run, before.options
    else:
        run = whywait.open(options.trace, memory_limit=analysis_choices(options).get("memory_limit"))
    choices = {**written_with, **analysis_choices(options)}
    if options.no_causes:
        choices["causes"] = False
    return run, choices


def run_paraver(options: argparse.Namespace) -> Answer:
    """Write the trace for Paraver."""
    import whywait
    from whywait.store.paraver import base_of

    run, choices = _opened(options)
    file = Path(options.output) if options.output else Path(f"{run.name}.prv")
    # Before the analysis, which may take long.
    base = base_of(file)
    with Progress() as progress:
        result = whywait.analyze(run, **choices, progress=progress)
        written = result.write_paraver(
            file, ranks=options.ranks, window=options.window, min_duration=options.min_duration, progress=progress
        )
    data = {"file": str(file), **written}
    return Answer(data, lambda _: _paraver_lines(data, file.with_name(f"{base}.cfg")), results=[result])


def _paraver_lines(written: dict[str, Any], views: Path) -> Iterator[Line]:
    items = ", ".join(
        f"{written[name]:,} {text}"
        for name, text in (("calls", "calls"), ("messages", "messages"), ("wait_states", "wait states"))
    )
    yield [(f"Written to {written['file']}: {items} of {written['threads']:,} threads", "")]
    yield [(f"Open it in Paraver and load {views}", "")]


def run_perfetto(options: argparse.Namespace) -> Answer:
    """Write the timeline for Perfetto."""
    import whywait

    run, choices = _opened(options)
    file = Path(options.output) if options.output else Path(f"{run.name}.pftrace")
    if file.is_dir():
        raise whywait.UsageError(f"{file} is a directory, not a file to write to")
    with Progress() as progress:
        result = whywait.analyze(run, **choices, progress=progress)
        written = result.write_timeline(
            file,
            ranks=options.ranks,
            window=options.window,
            min_duration=options.min_duration,
            queues=options.queues,
            progress=progress,
        )
    data = {"file": str(file), **written}
    return Answer(data, lambda _: _perfetto_lines(data), results=[result])


def _perfetto_lines(written: dict[str, Any]) -> Iterator[Line]:
    texts = [
        f"{written[name]:,} {text}"
        for name, text in (
            ("calls", "calls"),
            ("wait_states", "wait states"),
            ("message_flows", "messages"),
            ("cause_flows", "causes"),
            ("transfers", "one-sided transfers"),
            ("task_flows", "tasks that start elsewhere"),
            ("locks", "owners of locks"),
            ("nonblocking", "non-blocking collectives"),
            ("samples", "samples"),
            ("counters", "tracks of counters"),
        )
        if written[name] or name in ("calls", "wait_states")
    ]
    yield [(f"Written to {written['file']}: {', '.join(texts)} of {written['threads']:,} threads", "")]
    if written["backwards"]:
        yield [(f"Left out: {written['backwards']:,} arrows that would end before they begin", "")]
    yield [("Open it at https://ui.perfetto.dev, which keeps it in your browser", "")]


def run_stacks(options: argparse.Namespace) -> Answer:
    """Write the call stacks for a viewer of profiles."""
    import whywait

    result = load(options.result, choices=analysis_choices(options))
    file = Path(options.output) if options.output else Path(f"{result.tables.trace.name}{options.suffix}")
    if file.is_dir():
        raise whywait.UsageError(f"{file} is a directory, not a file to write to")
    written = result.write_stacks(file, options.format)
    return Answer({"file": str(written)}, lambda _: [[(f"Written to {written}", "")]], results=[result])


def run_tables(options: argparse.Namespace) -> Answer:
    """Write the tables with names."""
    from whywait.store.files import is_result

    place = Path(options.result) / "tables" if is_result(options.result) else Path("tables")
    directory = Path(options.output) if options.output else place
    refuse_file(directory)
    files = load(options.result, choices=analysis_choices(options)).write_tables(directory)
    names = " ".join(file.name for file in files)
    return Answer({"files": [str(file) for file in files]}, lambda _: [[(f"Written to {directory}/: {names}", "")]])


def run(options: argparse.Namespace) -> Answer:
    """Write the report as one HTML file."""
    import whywait
    from whywait.store.files import is_result

    is_written = is_result(options.result)
    if options.output:
        file = Path(options.output)
    else:
        file = Path(options.result) / "report.html" if is_written else Path("report.html")
    if file.is_dir():
        raise whywait.UsageError(f"{file} is a directory, not a file to write to")
    result, lack = load(options.result, choices=analysis_choices(options)), None
    if is_written and not result.timeline:
        # The timeline needs the events.
        try:
            result = load(options.result, events=True, choices=analysis_choices(options))
        except (whywait.Error, OSError) as error:
            lack = f"a timeline: {error}"
    result.write_html(file, source=options.source)
    data = {"file": str(file), "bytes": file.stat().st_size, **({"without": lack} if lack else {})}
    lines = [f"Written to {file}: open it in a browser", *([f"Without {lack}"] if lack else [])]
    return Answer(data, lambda _: ([(line, "")] for line in lines), results=[result])
