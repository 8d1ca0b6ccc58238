"""Show the critical path, which determines the length of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb
from whywait.commands.results import RESULT, add_analysis, add_part, load_part
from whywait.report.terminal import critical_lines, paragraph, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line

_BAR = 16


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "critical",
        "show what determines how long the run takes",
        "List the call paths that make up most of the critical path, the longest chain of activities without waiting. "
        "Only work on it can shorten the run. Its imbalance is what exceeds the mean over all ranks; what balancing "
        "saves, `whywait whatif --balance` simulates.",
        "whywait critical results",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    add_part(parser)


def run(options: argparse.Namespace) -> Answer:
    """Return the critical path."""
    from whywait.analysis.causes import critical

    focus = load_part(options)
    focus.need_causes()
    path = critical(focus, options.top, callpath=options.callpath)
    return Answer(path, lambda screen: _lines(path, options, screen), focus=focus)


def _lines(path: dict[str, Any], options: argparse.Namespace, screen: Screen) -> Iterator[Line]:
    if not path["callpaths"]:
        yield [("No critical path was found.", "")]
        return
    hops = f"{path['hops']:,} time{'' if path['hops'] == 1 else 's'}"
    text = f"The critical path takes {seconds(path['length'])} and changes location {hops}."
    if options.callpath is not None:
        text = f"{seconds(path['length'])} of the critical path is in {options.callpath}."
    yield from paragraph(text, screen.width)
    yield []
    yield from critical_lines(path, options.top, screen.width, unicode=screen.unicode, bar=_BAR)
