"""Tell the history of a wait state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import CALLPATH, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from whywait import Result
    from whywait.report.terminal import Line

_TIME = 10


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "explain",
        "explain the longest wait state",
        "Show the history of a wait state, by default the longest: who caused it, who made that process wait, down to "
        "the work that took too long. Each line says how much of the wait it explains.",
        "whywait explain scorep_run/traces.otf2 --metric mpi_latesender --rank 3",
        run,
    )
    parser.add_argument("--metric", metavar="M", help="the longest of this kind (mpi_latesender), or below this metric")
    parser.add_argument("--callpath", metavar="C", help=CALLPATH)
    parser.add_argument("--rank", type=int, metavar="R", help="the longest of this rank")
    parser.add_argument(
        "--depth", type=positive, default=8, metavar="N", help="follow so many waits in a row (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from whywait.analysis.explain import History
    from whywait.analysis.ranking import Choice, chosen
    from whywait.report.terminal import show, speaks_unicode, width

    result = load(options.trace)
    row = _longest(result, chosen(result, Choice(options.metric, options.rank, options.callpath)))
    history = None if row is None else History(result).explain(row, options.depth)
    if options.json:
        print_json(history)
    elif history is None:
        show([[("No wait state of which the cause is known.", "")]], sys.stdout)
    else:
        show(lines(result, history, width(sys.stdout), unicode=speaks_unicode(sys.stdout)), sys.stdout)
    return 0


def _longest(result: Result, candidates: npt.NDArray[np.bool_]) -> int | None:
    """Return the row of the longest of the candidates: of those that somebody is charged for, if there are any."""
    import numpy as np

    waits = result.tables.wait_states
    waiting = waits["waiting"].to_numpy()
    for known in ("indirect", "cause_callpath"):
        (rows,) = np.nonzero(candidates & waits[known].is_valid().to_numpy())
        if rows.size:
            return int(rows[waiting[rows].argmax()])
    return None


def lines(result: Result, history: dict[str, Any], width: int, *, unicode: bool) -> Iterator[Line]:
    """Yield the history as a tree."""
    from whywait.report.terminal import seconds

    kind = result.profile.metrics[history["kind"]].display_name
    head = f"{kind}: {_who(history)} at {history['enter']:.6f} s"
    yield [(head.ljust(width - _TIME), "bold"), (seconds(history["waiting"]).rjust(_TIME), "")]
    yield from _below(result, history, "", width, unicode=unicode)


def _who(node: dict[str, Any], prefix: str = "") -> str:
    thread = f".{node[prefix + 'thread']}" if node[prefix + "thread"] else ""
    return f"rank {node[prefix + 'rank']}{thread}"


def _below(result: Result, node: dict[str, Any], indent: str, width: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.model.names import short_name
    from whywait.report.terminal import path, seconds

    room = width - _TIME
    yield [(f"{indent}{path(node['callpath'], room - len(indent), unicode=unicode)}", "dim")]
    if node["cause_rank"] is None:
        return
    cause = _who(node, "cause_")
    if node["cause_callpath"]:
        call = f"whose {short_name(node['cause_callpath'][-1])} began at {node['cause_time']:.6f} s"
        met = f"; they had met at {node['since']:.6f} s" if node["since"] is not None else ""
        yield [(f"{indent}for {cause}, {call}{met}", "dim")]
    parts: list[tuple[float, str, dict[str, Any] | None]] = []
    for work in node["work"]:
        parts.append((work["explains"], f"{cause} worked {seconds(work['time'])}", work))
        if work["waiter_time"]:
            parts[-1] = (work["explains"], f"{parts[-1][1]}, {seconds(work['waiter_time'])} here", work)
    for wait in node["waits"]:
        kind = result.profile.metrics[wait["kind"]].display_name
        parts.append(
            (wait["explains"], f"{cause} waited {seconds(wait['waiting'])}: {kind} at {wait['enter']:.6f} s", wait)
        )
    parts.sort(key=lambda part: -part[0])
    if node["rest"] > 0:
        parts.append((node["rest"], "small parts", None))
    fork, end, bar = ("├─ ", "└─ ", "│  ") if unicode else ("+- ", "`- ", "|  ")
    for number, (explains, text, part) in enumerate(parts, 1):
        last = number == len(parts)
        label = indent + (end if last else fork) + text
        yield [(label[: room - 1].ljust(room), ""), (seconds(explains).rjust(_TIME), "")]
        below = indent + ("   " if last else bar)
        if part is not None and "waits" in part:
            yield from _below(result, part, below, width, unicode=unicode)
        elif part is not None:
            yield [(below + path(part["callpath"], room - len(below), unicode=unicode), "red")]
