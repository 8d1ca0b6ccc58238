"""Write a result in a form that other programs show."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, print_json
from whywait.commands.results import RESULT, load

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "export",
        help="write a result for other programs to show",
        description="Write a result in a form that other programs show.",
    )
    formats = parser.add_subparsers(title="formats", metavar="FORMAT", required=True)
    html = add_verb(
        formats,
        "html",
        "one file to explore in a browser",
        "Write a result as one HTML file to explore in a browser: where the time went, the worst problems and who "
        "causes them, and all values by metric, call path and process. The file needs no network.",
        "whywait export html results -o report.html",
        run,
        operands={"result": RESULT},
    )
    html.add_argument(
        "-o", "--output", metavar="FILE", help="what to write (default: report.html, in the directory of the result)"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    import whywait

    result = load(options.result)
    if options.output:
        file = Path(options.output)
    elif (Path(options.result) / "summary.json").is_file():
        file = Path(options.result) / "report.html"
    else:
        file = Path("report.html")
    if file.is_dir():
        raise whywait.UsageError(f"{file} is a directory, not a file to write to")
    result.write_html(file)
    if options.json:
        print_json({"file": str(file), "bytes": file.stat().st_size})
    else:
        sys.stdout.write(f"Written to {file}: open it in a browser\n")
    return 0
