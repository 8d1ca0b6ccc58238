"""List the delays that cause the waiting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, print_json
from whywait.commands.results import RESULT, add_part, load_part, refuse_both

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait import Result
    from whywait.report.terminal import Line

_BAR = 16


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "delay",
        "list who causes the waiting",
        "List the call paths that cause the most waiting on other ranks, by taking longer than the waiting ranks or by "
        "holding a lock that they want.",
        "whywait delay results --top 5",
        run,
        operands={"result": RESULT},
    )
    add_part(parser)


def run(options: argparse.Namespace) -> int:
    """Print the delays that cause the waiting."""
    from whywait.analysis.causes import costliest, total_costs
    from whywait.analysis.summary import headlines
    from whywait.report.terminal import show, speaks_unicode, width

    refuse_both(options)
    result = load_part(options.result, options.window)
    if options.callpath is not None:
        return _part(result, options)
    totals = total_costs(result)
    found = headlines(result, "all" if options.window else options.focus, options.top)
    if options.json:
        print_json({"costs": totals, "callpaths": costliest(result, options.top), "focus": found})
    else:
        columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
        show(_lines(found, columns, unicode=unicode), sys.stdout)
    return 0


def _part(result: Result, options: argparse.Namespace) -> int:
    """List the waiting that selected call paths cause."""
    from whywait.analysis.causes import IDLE, UNATTRIBUTED, costliest, total_costs
    from whywait.report.terminal import delay_lines, seconds, show, speaks_unicode, width

    totals = total_costs(result, callpath=options.callpath)
    places = costliest(result, options.top, paid_for="waiting", callpath=options.callpath)
    if options.json:
        print_json({"costs": totals, "callpaths": places})
        return 0
    columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
    waiting = sum(cost for kind, cost in totals.items() if kind not in {*IDLE, UNATTRIBUTED})
    show([[(f"{options.callpath} causes {seconds(waiting)} of waiting.", "")], []], sys.stdout)
    show(delay_lines(places, columns, unicode=unicode, bar=_BAR), sys.stdout)
    return 0


def _lines(found: dict[str, Any], width: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.report.terminal import causes_sentence, delay_lines, outside_lines, paragraph, unknown_lines

    if not found["causes"]:
        yield [("No causes of waiting were found.", "")]
    else:
        yield from paragraph(causes_sentence(found), width)
        yield from outside_lines(found, width)
        yield []
        yield from delay_lines(found["causes"], width, unicode=unicode, bar=_BAR)
    yield from unknown_lines(found, width, _BAR)
