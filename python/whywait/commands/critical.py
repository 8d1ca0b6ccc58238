"""Show what determines how long the run takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import CALLPATH, RESULT, load

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
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many to list (default: %(default)s)"
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from whywait.analysis.causes import critical
    from whywait.report.terminal import show, speaks_unicode, width

    result = load(options.result)
    path = critical(result, options.top, callpath=options.callpath)
    if options.json:
        print_json(path)
    else:
        show(
            _lines(path, options.callpath, options.top, width(sys.stdout), unicode=speaks_unicode(sys.stdout)),
            sys.stdout,
        )
    return 0


def _lines(path: dict[str, Any], callpath: str | None, count: int, width: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.report.terminal import critical_lines, seconds

    if not path["callpaths"]:
        yield [("There is no critical path.", "")]
        return
    hops = f"{path['hops']:,} time{'' if path['hops'] == 1 else 's'}"
    if callpath is None:
        yield [(f"The critical path takes {seconds(path['length'])} and goes {hops} to another location.", "")]
    else:
        yield [(f"{seconds(path['length'])} of the critical path lie in {callpath}.", "")]
    yield []
    yield from critical_lines(path, count, width, unicode=unicode, bar=_BAR)
