"""Analyze the trace included in whywait."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_verb, refuse_file
from whywait.commands.findings import findings_data

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

#: The trace: a stencil code on eight ranks.
TRACE = Path(__file__).parents[1] / "demo/stencil"


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "demo",
        "analyze the sample trace that comes with whywait",
        "Copy the sample trace, a stencil code on eight ranks, to DIR/stencil, analyze it, and write the result with "
        "its HTML report to DIR/results.",
        "whywait demo",
        run,
        operands={},
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="whywait-demo", help="where to write (default: %(default)s)"
    )  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Copy the trace, analyze it, and suggest next steps."""
    import whywait
    from whywait.report.findings import first_screen

    directory = Path(options.output)
    refuse_file(directory)
    trace, results = directory / TRACE.name, directory / "results"
    shutil.copytree(TRACE, trace, copy_function=shutil.copyfile, dirs_exist_ok=True)
    with Progress() as progress:
        result = whywait.analyze(trace, progress=progress)
        found = result.findings(prices=True)
    files = result.write(results, html=True)
    summary = result.summary()
    return Answer(
        {**summary, **findings_data(found, result), "files": [str(file) for file in files]},
        lambda screen: [
            *first_screen(result, found, summary, None, screen.width, unicode=screen.unicode),
            *_next(trace, results),
        ],
    )


def _next(trace: Path, results: Path) -> Iterator[Line]:
    commands = (
        (f"whywait findings {results}", "what to do, and what that saves"),
        (f"whywait explain {trace}", "why the longest wait occurred"),
        (f"whywait iterations {results}", "the iterations of the main loop"),
        (f"whywait messages {results}", "who communicates with whom"),
        (f"whywait advise {trace}", "what would save most time"),
    )
    yield []
    yield [("Open in a browser: ", "bold"), (f"{results}/report.html", "")]
    yield []
    yield [("Next", "bold")]
    room = max(len(command) for command, _ in commands)
    for command, meaning in commands:
        yield [(f"   {command:<{room}}   ", ""), (meaning, "dim")]
