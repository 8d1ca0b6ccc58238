"""Print the summary of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import RESULT, add_analysis, add_focus, load_focus

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "summary",
        "print the summary of a result",
        "Print what lies behind the findings: where the time goes in the metric tree, the worst wait states, who "
        "causes them, and the critical path. --markdown prints it for issues and merge requests, with efficiencies and "
        "iterations.",
        "whywait summary results --markdown > summary.md",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    add_focus(parser)
    add_top(parser, "how many rows to print per table of --markdown", 5)


def run(options: argparse.Namespace) -> Answer:
    """Return the summary."""
    from whywait.report.markdown import markdown
    from whywait.report.terminal import summary_lines

    result = load_focus(options)
    summary = result.summary(focus=options.focus.name)
    if options.markdown:
        text = markdown(result, summary, count=options.top)
        return Answer(summary, lambda _: ([(line, "")] for line in text.removesuffix("\n").split("\n")))
    return Answer(summary, lambda screen: summary_lines(summary, width=screen.width, unicode=screen.unicode))
