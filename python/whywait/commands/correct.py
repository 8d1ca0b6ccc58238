"""Write a trace again, with corrected clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_verb, refuse_file
from whywait.commands.results import add_analysis, analysis_choices

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "correct",
        "write a trace again, with corrected clocks",
        "Correct the clocks of the processes, and write the trace as a new archive: the same records, at other times.",
        "whywait correct scorep_run/traces.otf2 -o corrected",
        run,
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the directory to write to")
    add_analysis(parser, "auto")


def run(options: argparse.Namespace) -> Answer:
    """Write the archive, and return what was corrected."""
    from pathlib import Path

    import whywait
    from whywait.analysis.clocks import census_lines

    refuse_file(Path(options.output))
    with Progress() as progress:
        found = whywait.correct(
            options.trace,
            options.output,
            progress=progress,
            **analysis_choices(options),
        )

    def lines() -> Iterator[Line]:
        yield from ([(line, "")] for line in census_lines(found))
        yield [(f"Written: {found['written']}", "")]

    return Answer(found, lambda _: lines())
