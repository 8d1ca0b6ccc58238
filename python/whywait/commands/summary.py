"""Print the summary of a result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import FOCUS, RESULT, load

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "summary",
        "print the summary of a result",
        "Print the summary of `whywait analyze` again: where the time goes, the worst wait states, who causes them, "
        "and the critical path. --markdown prints it for issues and merge requests, with efficiencies and iterations.",
        "whywait summary results --markdown > summary.md",
        run,
        operands={"result": RESULT},
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--focus", metavar="PATH", help=FOCUS)
    parser.add_argument(
        "--top",
        type=positive,
        default=5,
        metavar="N",
        help="how many rows to print per table of --markdown (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the summary."""
    from whywait.report.markdown import markdown
    from whywait.report.terminal import show, speaks_unicode, summary_lines, width

    result = load(options.result)
    summary = result.summary(focus=options.focus)
    if options.json:
        print_json(summary)
    elif options.markdown:
        sys.stdout.write(markdown(result, summary, count=options.top))
    else:
        lines = summary_lines(summary, width=width(sys.stdout), unicode=speaks_unicode(sys.stdout))
        show(lines, sys.stdout)
    return 0
