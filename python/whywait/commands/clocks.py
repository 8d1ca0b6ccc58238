"""Show what contradicts the order of events, and what correcting the clocks changes; write the corrected trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import Progress, add_top, add_verb, refuse_file
from whywait.commands.results import TRACE, add_analysis, analysis_choices, open_trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from whywait.report.terminal import Line


def _ppm(row: Mapping[str, Any]) -> str | None:
    """Return a drift as text."""
    return None if row["drift"] is None else f"{row['drift']:,.1f}"


_PAIRS = [
    Column("kind", -10, "kind"),
    Column("from", 8, lambda row: f"rank {row['from_rank']}"),
    Column("to", 10, lambda row: f"rank {row['to_rank']}"),
    Column("violated", 11, "violated", "count"),
    Column("of", 10, "checked", "count"),
    Column("worst", 12, "worst", "sec"),
    Column("at", 12, "worst_time", "sec"),
]
_PROCESSES = [
    Column("rank", 6, "rank", "count"),
    Column("node", 12, "node"),
    Column("violations", 12, "violated", "count"),
    Column("moved at begin", 16, "moved_begin", "sec"),
    Column("at end", 12, "moved_end", "sec"),
    Column("drift, ppm", 12, _ppm),
    Column("uncertain by", 14, "uncertainty", "sec"),
]
_DEVICES = [
    Column("device of", 12, lambda row: f"rank {row['rank']}"),
    Column("streams", 9, "locations", "count"),
    Column("moved at begin", 16, "offset_begin", "sec"),
    Column("at end", 12, "offset_end", "sec"),
    Column("drift, ppm", 12, _ppm),
    Column("uncertain by", 14, "uncertainty", "sec"),
]


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "clocks",
        "show how well the clocks of the processes agree",
        "Count the constraints of time that the run violates, such as messages that are received before they are sent; "
        "say between which ranks and what the clocks have to do with it, and how far a correction moves each process. "
        "With -o, write the trace as a new archive: the same records, at corrected times.",
        "whywait clocks scorep_run/traces.otf2 -o corrected",
        run,
        operands={"trace": TRACE},
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write the corrected trace to this directory")
    add_analysis(parser, more="; auto with -o")
    add_top(parser, "how many pairs and processes to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the census, or what was corrected."""
    if options.output is not None:
        return _write(options)
    import whywait
    from whywait.analysis.clocks import census_lines

    with Progress() as progress:
        result = whywait.analyze(
            open_trace(options.trace, memory_limit=options.memory_limit),
            causes=False,
            census=True,
            progress=progress,
            **analysis_choices(options),
        )
    found = result.clocks or {}
    pairs = result.clock_violations().to_pylist()
    processes = result.clock_processes().to_pylist()
    domains = result.clock_domains().to_pylist()
    data = {**found, "pairs": pairs, "processes": processes, "domains": domains}

    def lines() -> Iterator[Line]:
        yield from ([(line, "")] for line in census_lines(found))
        if result.run.paraver is not None:
            yield [("Times are as Extrae merged them; the trace does not say how it related the clocks of nodes.", "")]
        if pairs:
            yield []
            yield from table(pairs[: options.top], _PAIRS)
        moved = [row for row in processes if row["violated"] or row["moved_max"]]
        if moved:
            yield []
            moved.sort(key=lambda row: -abs(row["moved_max"]))
            yield from table(moved[: options.top], _PROCESSES)
        devices = [row for row in domains if row["device"] and (row["offset_begin"] or row["offset_end"])]
        if devices:
            yield []
            yield from table(devices[: options.top], _DEVICES)

    return Answer(data, lambda _: lines())


def _write(options: argparse.Namespace) -> Answer:
    """Write the corrected trace, and return what was corrected."""
    import whywait
    from whywait.analysis.clocks import census_lines

    refuse_file(Path(options.output))
    with Progress() as progress:
        found = whywait.correct(options.trace, options.output, progress=progress, **analysis_choices(options))

    def lines() -> Iterator[Line]:
        yield from ([(line, "")] for line in census_lines(found))
        yield [(f"Written: {found['written']}", "")]

    return Answer(found, lambda _: lines())
