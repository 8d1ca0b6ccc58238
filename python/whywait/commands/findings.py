"""Show the findings: the largest losses, each with its reason."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb, positive
from whywait.commands.results import RESULT, add_clocks, clock_choices, load
from whywait.report.terminal import paragraph, percent, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.analysis.findings import Findings
    from whywait.report.terminal import Line

# The columns of the loss and its share.
_LOSS, _SHARE = 10, 7


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "findings",
        "show the largest losses, each with its reason",
        "Say how much of the CPU time is lost between start-up and shutdown, and list the reasons of most of it: each "
        "in a sentence, with the lost time and what to do about it.",
        "whywait findings results",
        run,
        operands={"result": RESULT},
    )
    add_clocks(parser)
    parser.add_argument(
        "--top", type=positive, default=5, metavar="N", help="how many to show at most (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Answer:
    """Return the findings."""
    from whywait.analysis.findings import findings

    result = load(options.result, clocks=clock_choices(options))
    found = findings(result, options.top)
    data = {
        "verdict": found.verdict(),
        "lost": found.lost,
        "cpu_time": found.time,
        "findings": found.table(result.tree).to_pylist(),
    }
    return Answer(data, lambda screen: _lines(found, screen.width))


def _lines(found: Findings, width: int) -> Iterator[Line]:
    for line in paragraph(found.verdict(), width):
        yield [(line[0][0], "bold")]
    if not found.shown:
        return
    yield []
    room = width - _LOSS - _SHARE - 4
    yield [("Findings".ljust(room + 4) + "lost".rjust(_LOSS) + "share".rjust(_SHARE), "bold")]
    for number, one in enumerate(found.shown, 1):
        first, *more = textwrap.wrap(one.sentence, room, break_on_hyphens=False)
        numbers = seconds(one.loss).rjust(_LOSS) + percent(one.share).rjust(_SHARE)
        yield [(f"{number:>2}. " + first.ljust(room), ""), (numbers, "bold")]
        yield from ([(f"    {text}", "")] for text in more)
        yield from ([(f"    {text}", "dim")] for text in textwrap.wrap(one.advice or "", room, break_on_hyphens=False))
    rest = found.lost - sum(one.loss for one in found.shown if one.base == "cpu")
    if found.time and rest > 0:
        yield []
        yield [(f"The rest: {percent(rest / found.time)} of the CPU time.", "dim")]
