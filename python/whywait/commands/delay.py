"""List the delays that cause the waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb
from whywait.commands.results import RESULT, add_analysis, add_part, load_focus, load_part
from whywait.report.terminal import causes_sentence, delay_lines, paragraph, seconds, unknown_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.analysis.focus import FocusedData
    from whywait.commands.answers import Screen
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
    add_analysis(parser)
    add_part(parser)


def run(options: argparse.Namespace) -> Answer:
    """Return the delays that cause the waiting."""
    from whywait.analysis.causes import costliest, total_costs
    from whywait.analysis.focus import focused
    from whywait.analysis.summary import headlines

    if options.callpath is not None:
        return _part(load_part(options), options)
    result = load_focus(options)
    focus = focused(result, options.focus.name)
    found = headlines(result, options.focus.name, options.top)
    data = {"costs": total_costs(focus), "callpaths": costliest(focus, options.top), "focus": found}
    return Answer(data, lambda screen: _lines(found, screen), focus=focus)


def _part(focus: FocusedData, options: argparse.Namespace) -> Answer:
    """Return the waiting that selected call paths cause."""
    from whywait.analysis.causes import IDLE, UNATTRIBUTED, costliest, total_costs

    totals = total_costs(focus, callpath=options.callpath)
    places = costliest(focus, options.top, paid_for="waiting", callpath=options.callpath)
    waiting = sum(cost for kind, cost in totals.items() if kind not in {*IDLE, UNATTRIBUTED})

    def lines(screen: Screen) -> Iterator[Line]:
        yield from ([(f"{options.callpath} causes {seconds(waiting)} of waiting.", "")], [])
        yield from delay_lines(places, screen.width, unicode=screen.unicode, bar=_BAR)

    return Answer({"costs": totals, "callpaths": places}, lines, focus=focus)


def _lines(found: dict[str, Any], screen: Screen) -> Iterator[Line]:
    if not found["causes"]:
        yield [("No causes of waiting were found.", "")]
    else:
        yield from paragraph(causes_sentence(found), screen.width)
        yield []
        yield from delay_lines(found["causes"], screen.width, unicode=screen.unicode, bar=_BAR)
    yield from unknown_lines(found, screen.width, _BAR)
