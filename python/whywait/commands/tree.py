"""Show a result as trees with bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb, positive
from whywait.commands.results import CALLPATH, RESULT_OR_PROFILE, add_analysis, add_focus, load_part

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "tree",
        "show a result as trees with bars",
        "Show a result as trees with bars: the metric tree, the call tree for one metric, and its distribution over "
        "ranks. Values are inclusive.",
        "whywait tree results --metric mpi_latesender --callpath solve",
        run,
        operands={"result": RESULT_OR_PROFILE},
    )
    add_analysis(parser)
    parser.add_argument(
        "--metric", default="time", metavar="NAME", help="the metric to show in the call tree (default: %(default)s)"
    )
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    add_focus(parser, window=True)
    parser.add_argument(
        "--depth", type=positive, metavar="N", help="how many levels of each tree to show (default: all)"
    )


def run(options: argparse.Namespace) -> Answer:
    """Return the trees."""
    from whywait.model.metric_names import metric_name
    from whywait.report.trees import tree_data, tree_lines

    focus = load_part(options)
    profile = focus.profile
    metric = metric_name(profile.metrics, options.metric, lambda name: profile.total(name) != 0)
    data = tree_data(focus, metric, callpath=options.callpath, depth=options.depth)
    return Answer(
        data,
        lambda screen: tree_lines(data, width=screen.width, unicode=screen.unicode),
        focus=focus,
    )
