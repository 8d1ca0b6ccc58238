"""Find the wait states of a run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_terms, add_verb, positive, refuse_file
from whywait.commands.findings import findings_data
from whywait.commands.results import (
    LOOP,
    SOURCE,
    add_analysis,
    add_counter_mode,
    add_named_focus,
    add_reading,
    analysis_choices,
    reading_choices,
)
from whywait.report.terminal import summary_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from whywait import Result, Run
    from whywait.analysis.findings import Findings
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "analyze",
        "find the wait states of a run",
        "Find the wait states of a run, their causes, and where the time goes. Print a summary, and write report.cubex "
        "and report.stat (for CubeGUI), summary.json, and a dataset that the other commands read: severities.parquet, "
        "derived.parquet, wait_states.parquet, critical_path.parquet, and other tables listed in manifest.json.",
        "whywait analyze scorep_run/traces.otf2 -o results",
        run,
        modules=(
            "whywait.api.result",
            "whywait.analysis.native",
            "whywait.report.files",
            "whywait.analysis.summary",
            "pyarrow.parquet",
        ),
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="results directory (default: whywait-NAME, after the trace)"
    )
    parser.add_argument("--force", action="store_true", help="replace the result of another trace in DIR")
    parser.add_argument(
        "--wrong-order-window",
        type=positive,
        default=100,
        metavar="N",
        help="Late Sender waits that each location remembers to detect messages in wrong order (default: %(default)s)",
    )
    parser.add_argument("--no-causes", action="store_true", help="skip root causes and the critical path")
    parser.add_argument(
        "--cost-model",
        choices=("thesis", "unified", "bounded", "scalasca"),
        default="thesis",
        help="how to distribute waiting over its causes: 'thesis' (or 'unified') by the definitions of the thesis, for "
        "all programming models; 'bounded' the same, but no more than the causes explain; 'scalasca' as Scalasca 2.6 "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--idle-threads",
        action="store_true",
        help="also count the time of idle OpenMP threads outside parallel regions, as Scalasca does with -s",
    )
    parser.add_argument(
        "--spill-dir",
        metavar="DIR",
        help="directory for the temporary spill file, deleted on exit (default: the results directory)",
    )
    parser.add_argument(
        "--transfers",
        action="store_true",
        help="also write transfers.parquet: every one-sided transfer with its start and end",
    )
    parser.add_argument(
        "--queues",
        action="store_true",
        help="also replay the message queues: unexpected messages, queue lengths, requests in flight (writes "
        "queue_levels.parquet)",
    )
    parser.add_argument(
        "--html",
        action="store_true",
        help="also write report.html, one file to explore in a browser, and its timeline as timeline*.parquet",
    )
    parser.add_argument(
        "--factors",
        choices=("longest", "all"),
        default="longest",
        help="waits whose causes to write in detail (factors.parquet): the longest of each kind and the waits that "
        "they go back to, or all (default: %(default)s)",
    )
    add_named_focus(parser, "the part of the run that the headlines of the summary and the report are about")
    parser.add_argument(
        "--counters",
        metavar="NAME,...",
        help="add the values of these strict counters (PAPI, perf, ...) to the tables of wait states and the critical "
        "path; without names, or with 'all', of all",
    )
    add_counter_mode(parser)
    add_analysis(parser)
    add_reading(parser)
    parser.add_argument(
        "--fold-recursion",
        action="store_true",
        help="count a recursive call as part of the outer call of the same function, so that no function is twice on a "
        "call path (beyond 256 levels, this is always so)",
    )
    parser.add_argument(
        "--advise",
        action="store_true",
        help="add advice to summary.json and report.html: simulated changes that would save the most (see whywait "
        "advise)",
    )
    parser.add_argument(
        "--iterations",
        metavar="PATH",
        help=f"the loop whose iterations to write: {LOOP} (default: the main loop)",
    )
    parser.add_argument("--source", metavar="DIR", help=SOURCE)
    parser.add_argument(
        "--prices",
        action="store_true",
        help="simulate what the changes that findings propose would save, however long that takes (by default up to a "
        "million events; with --html, as long as it takes at most half as long as the analysis)",
    )
    add_terms(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print the summary or progress")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the files written, and the peak memory")


# Of longer runs, prices may take this share of the time of the analysis.
_SHARE = 0.5


def _counters(text: str | None) -> bool | list[str]:
    """Return the requested counters: all, none, or some by name."""
    return text == "all" if text in (None, "all") else [name.strip() for name in text.split(",")]


def run(options: argparse.Namespace) -> Answer | int:
    """Analyze the trace, write the result, and return its summary."""
    import whywait
    from whywait.report.findings import first_screen
    from whywait.report.terms import term_lines
    from whywait.store.files import refuse_other

    with Progress(quiet=options.quiet) as progress:
        if options.spill_dir and options.memory_limit is None:
            raise whywait.UsageError("--spill-dir needs --memory-limit")
        if options.source and not options.html:
            raise whywait.UsageError("--source needs --html")
        if options.source and not Path(options.source).is_dir():
            raise whywait.UsageError(f"{options.source} is not a directory")
        spill = Path(options.spill_dir) if options.spill_dir else _existing(Path(options.output or "."))
        limit = {"memory_limit": options.memory_limit, "spill_directory": spill}
        trace = whywait.open(options.trace, **reading_choices(options), **limit)
        directory = Path(options.output) if options.output else default_directory(trace)
        refuse_file(directory)
        if not options.force:
            refuse_other(directory, trace.identity)
        begin = monotonic()
        result = whywait.analyze(
            trace,
            wrong_order_window=options.wrong_order_window,
            causes=not options.no_causes,
            cost_model=options.cost_model,
            idle_threads=options.idle_threads,
            counter_modes=dict(options.counter_mode),
            fold_recursion=options.fold_recursion,
            spill_directory=spill,
            queues="progress" if options.queues else None,
            progress=progress,
            **analysis_choices(options),
        )
        found = _findings(result, options, monotonic() - begin, progress)
        advice = None
        if options.advise:
            if options.no_causes:
                raise whywait.UsageError("--advise needs causes: omit --no-causes")
            advice = whywait.advise(result, threads=options.threads, progress=progress).as_dict()
    files = result.write(
        directory,
        transfers=options.transfers,
        html=options.html,
        factors=options.factors,
        focus=options.focus,
        counters=_counters(options.counters),
        advice=advice,
        iterations=options.iterations,
        source=options.source,
        force=options.force,
    )
    summary = result.summary(focus=options.focus) | ({"advice": advice} if advice else {})

    def lines(screen: Screen) -> Iterator[Line]:
        if options.quiet:
            return
        if options.focus is None:
            yield from first_screen(result, found, summary, options.trace, screen.width, unicode=screen.unicode)
        else:
            yield from summary_lines(summary, width=screen.width, unicode=screen.unicode)
        if options.explain_terms:
            yield from term_lines(result, found, screen.width)
            yield []
        yield [(f"Written to {directory}/", "dim")]
        if not options.verbose:
            return
        for names in textwrap.wrap(" ".join(file.name for file in files), screen.width - 3):
            yield [(f"   {names}", "")]
        if peak := summary["peak_memory"]:
            yield [(f"   peak memory {peak / 2**20:,.0f} MiB", "")]

    data = {**summary, **findings_data(found, result), "files": [str(file) for file in files]}
    return Answer(data, lines)


def _findings(
    result: Result, options: argparse.Namespace, seconds: float, progress: Callable[[str, float], object]
) -> Findings:
    """Return the findings of a result whose analysis took some time, with prices if these are wanted."""
    from whywait.analysis.proposals.prices import LARGE, SMALL, priced_findings

    events = result.facts.get("events", 0)
    is_small = events <= SMALL
    return priced_findings(
        result,
        simulate=options.prices or is_small or (options.html and events <= LARGE),
        threads=options.threads,
        seconds=None if options.prices or is_small else _SHARE * seconds,
        progress=progress,
    )


def _existing(directory: Path) -> Path:
    """Return the nearest existing parent of a directory that may not exist yet."""
    return next(parent for parent in (directory.absolute(), *directory.absolute().parents) if parent.is_dir())


def default_directory(trace: Run) -> Path:
    """Return the default results directory: below the current directory, named after the trace.

    A directory with the result of another trace of the same name is not overwritten.
    """
    from whywait.store.files import trace_of

    # Recordings have names like that already.
    name = f"{trace.name}-results" if trace.name.startswith("whywait-") else f"whywait-{trace.name}"
    number, directory = 1, Path(name)
    while (other := trace_of(directory)) is not None and other.path.resolve() != trace.path.resolve():
        number += 1
        directory = Path(f"{name}-{number}")
    return directory
