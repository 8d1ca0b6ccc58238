"""Show the account of all time: each moment of each CPU location belongs to one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb, positive
from whywait.commands.results import RESULT, add_analysis, add_focus, ask

if TYPE_CHECKING:
    import argparse

    from whywait import Result


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "account",
        "show where all CPU time went",
        "Each moment of each CPU location in the focus belongs to one row: computation, a wait state, transfer, the "
        "runtime of threads, idle threads, I/O, device calls, measurement, or unknown. The rows add up to 100%.",
        "whywait account results --by callpath",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument(
        "--by",
        choices=("row", "callpath", "location", "iteration"),
        default="row",
        help="what to list: the rows, the largest losses by call path or location, or the groups in each iteration of "
        "the main loop (default: %(default)s)",
    )
    add_focus(parser)
    parser.add_argument(
        "--top", type=positive, default=20, metavar="N", help="how many losses to list (default: %(default)s)"
    )


def _inside(result: Result, line: dict[str, Any]) -> dict[str, Any] | None:
    """Return what threads did in the calls of a line, by samples, if it is about what calls take beyond others."""
    from whywait.analysis.functions.inside_calls import inside

    is_excess = line["row"].endswith(".excess") and line["callpath_id"] is not None
    return inside(result, [line["callpath_id"]]) if is_excess else None


def run(options: argparse.Namespace) -> Answer:
    """Return the account."""
    from whywait.analysis.account import account
    from whywait.report.account import account_lines, iteration_lines, table_lines

    result, found = ask(options, lambda result: account(result, options.focus.name))
    if options.by == "row":
        return Answer(
            found.as_dict(), lambda screen: account_lines(found, result, screen.width, unicode=screen.unicode)
        )
    lines = found.table(options.by).to_pylist()
    if options.by == "iteration":
        return Answer(
            found.as_dict() | {"by_iteration": lines},
            lambda screen: iteration_lines(lines, options.top, screen.width),
        )
    if options.by == "callpath":
        lines = [line | {"inside": _inside(result, line)} for line in lines]
    return Answer(
        found.as_dict() | {f"by_{options.by}": lines},
        lambda screen: table_lines(found, result, options.by, options.top, screen.width, unicode=screen.unicode),
    )
