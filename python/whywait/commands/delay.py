"""List who causes the waiting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import RESULT, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_BAR = 16


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "delay",
        "list who causes the waiting",
        "List the call paths that cause most waiting elsewhere, by doing more than those who wait, or by holding what "
        "they want.",
        "whywait delay results --top 5",
        run,
        operands={"result": RESULT},
    )
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many to list (default: %(default)s)"
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from whywait.analysis.causes import UNATTRIBUTED, costliest, total_costs
    from whywait.report.terminal import show, speaks_unicode, width

    result = load(options.result)
    places = costliest(result, options.top)
    totals = total_costs(result)
    if options.json:
        print_json({"costs": totals, "callpaths": places})
    else:
        unknown = totals.pop(UNATTRIBUTED, 0.0)
        columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
        show(_lines(places, sum(totals.values()), unknown, columns, unicode=unicode), sys.stdout)
    return 0


def _lines(places: list[dict[str, Any]], total: float, unknown: float, width: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.report.terminal import delay_lines, seconds

    if not places:
        yield [("Nobody causes any waiting.", "")]
        return
    yield [(f"Waiting of {seconds(total)} has known causes, {seconds(unknown)} has not.", "")]
    yield []
    yield from delay_lines(places, width, unicode=unicode, bar=_BAR)
