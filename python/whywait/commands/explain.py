"""Explain the cause of a wait state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import CALLPATH, RESULT, load

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
    parser.add_argument(
        "--metric", metavar="M", help="the longest wait of this kind (mpi_latesender) or below this metric"
    )
    parser.add_argument("--callpath", metavar="C", help=CALLPATH)
    parser.add_argument("--rank", type=int, metavar="R", help="the longest wait of this rank")
    parser.add_argument(
        "--depth", type=positive, default=8, metavar="N", help="follow chains of up to N waits (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Print why a wait occurred."""
    from whywait.analysis.ranking import Choice
    from whywait.report.explanation import explanation_lines
    from whywait.report.terminal import show, speaks_unicode, width

    result = load(options.trace)
    explained = result.explain(Choice(options.metric, options.rank, options.callpath), depth=options.depth)
    if options.json:
        print_json(explained)
    elif explained is None:
        show([[("No matching wait state has a known cause.", "")]], sys.stdout)
    else:
        labels = {metric.name: metric.display_name for metric in result.profile.metrics}
        show(explanation_lines(explained, labels, width(sys.stdout), unicode=speaks_unicode(sys.stdout)), sys.stdout)
    return 0
