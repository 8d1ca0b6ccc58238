"""Explain the cause of a wait state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb, positive
from whywait.commands.results import CALLPATH, RESULT, add_clocks, add_focus, clock_choices, load

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "explain",
        "explain the longest wait state",
        "Show why a wait state waits, by default the longest: who caused it, who made that process wait, down to the "
        "work that took too long. Each line shows how much of the wait it explains; the leaves add up to the wait.",
        "whywait explain scorep_run/traces.otf2 --metric mpi_latesender --rank 3",
        run,
        operands={"trace": RESULT},
    )
    add_clocks(parser)
    parser.add_argument(
        "--metric", metavar="M", help="the longest wait of this kind (mpi_latesender) or below this metric"
    )
    parser.add_argument("--callpath", metavar="C", help=CALLPATH)
    parser.add_argument("--rank", type=int, metavar="R", help="the longest wait of this rank")
    add_focus(parser)
    parser.add_argument(
        "--depth", type=positive, default=8, metavar="N", help="follow chains of up to N waits (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Answer:
    """Return why a wait occurred."""
    from whywait.analysis.focus import find_focus
    from whywait.analysis.ranking import Choice
    from whywait.report.explanation import explanation_lines

    result = load(options.trace, clocks=clock_choices(options))
    part = find_focus(result, options.focus.name)
    window = options.focus.window(result.facts["length"]) if options.focus.window else part.window
    choice = Choice(options.metric, options.rank, options.callpath or part.callpath, window=window)
    explained = result.explain(choice, depth=options.depth)
    if explained is None:
        return Answer(None, lambda _: [[("No matching wait state has a known cause.", "")]], results=[result])
    labels = {metric.name: metric.display_name for metric in result.profile.metrics}
    return Answer(
        explained,
        lambda screen: explanation_lines(explained, labels, screen.width, unicode=screen.unicode),
        results=[result],
    )
