"""Show why threads wait for each other: the locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import RESULT, add_clocks, ask
from whywait.report.terminal import seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "threads",
        "show the locks that threads wait for",
        "List the locks of threads (critical and ordered constructs, OpenMP locks, mutexes, read-write and spin locks) "
        "that threads wait for longest: how often they are acquired, after a wait or not, how many threads wait at the "
        "same time, how long threads own them, and how much of this is on the critical path. Only a lock on the path "
        "determines the run time.",
        "whywait threads scorep_run/traces.otf2 --top 3",
        run,
        operands={"result": RESULT},
    )
    add_clocks(parser)
    add_top(parser, "how many locks to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the locks of the run."""
    result, locks = ask(options, lambda result: result.locks())
    rows = locks.to_pylist()
    data = {"locks": rows[: options.top], "count": len(rows), "waiting": sum(row["waiting"] for row in rows)}

    def lines(screen: Screen) -> Iterator[Line]:
        if not rows:
            yield [("No locks of threads are recorded.", "")]
            return
        contended = sum(row["contended"] > 0 for row in rows)
        of_all = f"{contended} of {len(rows)} lock{'' if len(rows) == 1 else 's'}"
        yield [(f"Threads wait {seconds(data['waiting'])} for {of_all}.", "")]
        yield []
        yield from table(data["locks"], _COLUMNS)
        yield []
        arrow = " → " if screen.unicode else " > "
        for number, row in enumerate(data["locks"], 1):
            yield [(f"{number}. {_place(row, arrow)}", "")]

    return Answer(data, lines, results=[result])


def _place(row: Mapping[str, Any], arrow: str) -> str:
    path = row["callpath"]
    lock = "ordered construct" if row["lock"] is None else f"{row['paradigm']} lock {row['lock']}"
    return f"{lock} of rank {row['rank']}" + (f", in {arrow.join(path[-2:])}" if path else "")


_COLUMNS = (
    Column("waiting", 10, "waiting", "sec"),
    Column("contended", 11, "contended", "count"),
    Column("of", 9, "acquisitions", "count"),
    Column("queue", 7, "longest_queue", "count"),
    Column("held", 10, "holding", "sec"),
    Column("gaps", 10, "gap", "sec"),
    Column("on path", 10, "critical", "sec"),
    Column("times", 7, "critical_acquisitions", "count"),
    Column("waited", 8, "critical_contended", "count"),
)
