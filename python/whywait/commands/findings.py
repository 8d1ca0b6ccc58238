"""Show the findings: the largest losses, each with its reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_terms, add_verb, positive
from whywait.commands.results import RESULT, Part, add_analysis, add_focus, load_focus
from whywait.report.terminal import paragraph

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait import Result
    from whywait.analysis.findings import Findings
    from whywait.commands.answers import Screen
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "findings",
        "show the largest losses, each with its reason",
        "Say how much of the CPU time is lost between start-up and shutdown, and list the reasons of most of it: each "
        "in a sentence, with the lost time and what to do about it; and what that saves, if `whywait analyze` has "
        "simulated it.",
        "whywait findings results",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    add_focus(parser)
    parser.add_argument(
        "--top", type=positive, default=5, metavar="N", help="how many to show at most (default: %(default)s)"
    )
    add_terms(parser)


def run(options: argparse.Namespace) -> Answer:
    """Return the findings."""
    from whywait.analysis.focus import focused
    from whywait.report.findings import finding_lines
    from whywait.report.terms import term_lines

    result, found = load_findings(options, options.result, options.top)

    def lines(screen: Screen) -> Iterator[Line]:
        yield from ([(line[0][0], "bold")] for line in paragraph(found.verdict(), screen.width))
        if found.shown:
            yield []
            yield from finding_lines(found, screen.width)
        if options.explain_terms:
            yield from term_lines(result, found, screen.width)

    return Answer(findings_data(found, result), lines, focus=focused(result, options.focus.name))


def load_findings(options: argparse.Namespace, path: str, limit: int) -> tuple[Result, Findings]:
    """Return a stored result or that of a trace, and its findings in the focus.

    Parameters
    ----------
    options
        With the ``focus``, and how to analyze a trace.
    path
        The result or the trace.
    limit
        How many to show at most.
    """
    from whywait.analysis.focus import ALL
    from whywait.analysis.proposals.prices import priced_findings

    if options.focus.name == ALL:
        options.focus = Part(window=lambda length: (0.0, length))
    result = load_focus(options, path)
    return result, priced_findings(result, limit, focus=options.focus.name)


def findings_data(found: Findings, result: ResultData) -> dict[str, Any]:
    """Return findings as plain data."""
    from whywait.analysis.proposals.prices import table

    rows = found.table(result.tree).to_pylist()
    return {
        "verdict": found.verdict(),
        "caveats": [words.text for words in found.caveats],
        "lost": found.lost,
        "cpu_time": found.time,
        # The table has them as text.
        "findings": [row | {name: json.loads(row[name]) for name in ("values", "evidence")} for row in rows],
        "rest": [{"label": label, "time": time} for label, time in found.rest],
        "prices": table(found).to_pylist(),
    }
