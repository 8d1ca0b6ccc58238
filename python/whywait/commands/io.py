"""Show what a run does with files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import RESULT, add_analysis, ask
from whywait.report.terminal import percent, seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from whywait.report.terminal import Line

_NUMBER = 11


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "io",
        "show what the run does with files",
        "Show the time in calls for I/O, and what they do: operations, bytes, and time by file, call path, and rank, "
        "and how long ranks wait for each other in collective operations. What one I/O paradigm does for another, such "
        "as the writes of POSIX in those of MPI-IO, is counted once.",
        "whywait io results --top 20",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    add_top(parser, "how many files, call paths, and ranks to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the I/O of a result."""
    from whywait.analysis.io import summary

    result, found = ask(options, summary)
    return Answer(found, lambda _: _lines(found, options.top), results=[result])


def _rate(one: Mapping[str, Any], time: str = "in_calls") -> str | None:
    moved = one["bytes_read"] + one["bytes_written"]
    return f"{quantity(moved / one[time], 'bytes')}/s" if moved and one[time] else None


_OPERATIONS = (
    Column("operations", _NUMBER, "count", "count"),
    Column("read", _NUMBER, "bytes_read", "bytes"),
    Column("written", _NUMBER, "bytes_written", "bytes"),
)
_FILES = (
    *_OPERATIONS,
    Column("time", _NUMBER, "in_calls", "sec"),
    Column("rate", _NUMBER + 2, _rate),
    Column("File", 0, lambda one: one["file"] or "(not defined)"),
)
_TIMES = (
    Column("time", _NUMBER, "time", "sec"),
    Column("waiting", _NUMBER, "waiting", "sec"),
    *_OPERATIONS,
)
_CALLPATHS = (
    *_TIMES,
    Column("Call path", 0, lambda one: "/".join(one["callpath"][-2:]) if one["callpath"] else "(outside)"),
)
_RANKS = (*_TIMES, Column("Rank", 0, "rank"))


def _lines(found: dict[str, Any], count: int) -> Iterator[Line]:
    if not found["time"] and not found["paradigms"]:
        yield [("This run has no calls for I/O, and no records of it.", "")]
        return
    waiting = f", {seconds(found['waiting'])} of it waiting for other ranks" if found["waiting"] else ""
    yield [(f"{seconds(found['time'])} in I/O", "bold"), (f" ({percent(found['share'])} of all time){waiting}", "")]
    if found["paradigms"]:
        what = f"{found['count']:,} operations: {quantity(found['bytes_read'], 'bytes')} read"
        yield [(f"{what}, {quantity(found['bytes_written'], 'bytes')} written", "")]
        if found["incomplete"]:
            yield [(f"{found['incomplete']:,} of them were canceled or never completed", "red")]
    else:
        yield [("The trace does not record which files the calls use.", "dim")]
    for one in found["paradigms"]:
        if one["nested"]:
            what = f"{one['count']:,} operations, {seconds(one['in_calls'])}"
            yield [(f"Inside these: {one['paradigm'] or 'unknown paradigm'}, {what}", "dim")]
    for rows, columns, what in (
        (found["files"], _FILES, "files"),
        (found["callpaths"], _CALLPATHS, "call paths"),
        (sorted(found["ranks"], key=lambda one: -one["time"]), _RANKS, "ranks"),
    ):
        if rows:
            yield []
            yield from table(rows[:count], columns)
            if left := len(rows) - count if len(rows) > count else 0:
                yield [(f"and {left:,} more {what}", "dim")]
