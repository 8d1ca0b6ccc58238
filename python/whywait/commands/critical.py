"""Show the critical path, which determines the length of the run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, print_json
from whywait.commands.results import RESULT, add_part, load_part, refuse_both

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_BAR = 16


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "critical",
        "show what determines how long the run takes",
        "List the call paths that make up most of the critical path, the longest chain of activities without waiting. "
        "Only work on it can shorten the run; balancing can save up to its imbalance.",
        "whywait critical results",
        run,
        operands={"result": RESULT},
    )
    add_part(parser)


def run(options: argparse.Namespace) -> int:
    """Print the critical path."""
    from whywait.analysis.causes import critical
    from whywait.analysis.focus import focused
    from whywait.report.terminal import show, speaks_unicode, width

    refuse_both(options)
    result = load_part(options.result, options.window)
    result.need_causes()
    part = focused(result, "all" if options.callpath is not None or options.window else options.focus)
    path = critical(part, options.top, callpath=options.callpath)
    if options.json:
        print_json({**path, "focus": part.focus.name})
    else:
        show(
            _lines(path, options, part.focus.phrase, width(sys.stdout), unicode=speaks_unicode(sys.stdout)),
            sys.stdout,
        )
    return 0


def _lines(
    path: dict[str, Any], options: argparse.Namespace, phrase: str, width: int, *, unicode: bool
) -> Iterator[Line]:
    from whywait.report.terminal import critical_lines, paragraph, seconds

    if not path["callpaths"]:
        yield [("No critical path was found.", "")]
        return
    hops = f"{path['hops']:,} time{'' if path['hops'] == 1 else 's'}"
    text = f"The critical path of {phrase} takes {seconds(path['length'])} and changes location {hops}."
    if options.callpath is not None:
        text = f"{seconds(path['length'])} of the critical path is in {options.callpath}."
    yield from paragraph(text.replace(" of all time", "").replace(" of the time", ""), width)
    yield []
    yield from critical_lines(path, options.top, width, unicode=unicode, bar=_BAR)
