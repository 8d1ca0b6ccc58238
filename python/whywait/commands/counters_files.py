"""Show the software performance counters that Open MPI wrote to files, without a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, number, table, zeros

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from whywait.analysis.counters.spc_files import Counted
    from whywait.report.terminal import Line

# Options that ask about events, and what they are without being given.
_OF_EVENTS: dict[str, Any] = {
    "arrival": "progress", "match": "pair", "counter_mode": [], "by": None, "window": None, "correlate": None,
    "queues": False, "spc": False, "bins": None, "bin": None, "expected_traffic": None, "iterations": None,
}  # fmt: skip
_NUMBER = 16
# With more ranks, the table has only the least and the greatest value.
_SHOWN_RANKS = 4


def answer(options: argparse.Namespace) -> Answer | None:
    """Return the counters of a directory with files of Open MPI; None if it is something else."""
    from whywait import UsageError
    from whywait.analysis.counters import spc_files

    directory = Path(options.trace)
    if not spc_files.is_directory(directory):
        return None
    for name, default in _OF_EVENTS.items():
        if getattr(options, name) != default:
            raise UsageError(
                f"{directory} has counters without a trace: --{name.replace('_', '-')} needs a trace with these "
                f"counters: whywait counters import {directory} TRACE -o DIR"
            )
    counters = spc_files.read(directory)
    ranks = sorted(counters[0].values)
    if options.metric:
        one = _named(counters, options.metric)
        rows = _by_rank(one)
        data: dict[str, Any] = {"metric": one.name, "unit": one.unit, "meaning": one.meaning, "rows": rows}
        return Answer(data, lambda _: _rank_lines(one, rows[: options.top], len(rows)))
    data = {"directory": str(directory), "ranks": ranks, "counters": [_as_dict(one) for one in counters]}
    return Answer(data, lambda _: _lines(counters, ranks))


def _named(counters: list[Counted], name: str) -> Counted:
    """Return the counter of a name, with or without the prefix that all have."""
    from whywait import UsageError
    from whywait.analysis.counters import spc

    for one in counters:
        if name == one.name or spc.bare(name) == spc.bare(one.name):
            return one
    known = ", ".join(one.name for one in counters if any(one.values.values()))
    raise UsageError(f"the files have no counter {name!r}; not zero are {known or 'none'}")


def _as_dict(one: Counted) -> dict[str, Any]:
    return {
        "name": one.name, "kind": one.kind, "unit": one.unit, "meaning": one.meaning, "total": one.total,
        "values": [one.values[rank] for rank in sorted(one.values)],
    }  # fmt: skip


def _by_rank(one: Counted) -> list[dict[str, Any]]:
    """Return the value of each rank, largest first, with those in its snapshots."""
    return [
        {"rank": rank, "value": value, "snapshots": [{"time": at, "value": then} for at, then in one.snapshots[rank]]}
        for rank, value in sorted(one.values.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _rank_lines(one: Counted, rows: list[dict[str, Any]], ranks: int) -> Iterator[Line]:
    yield [(f"{one.name}: {_meaning(one)}", "bold")]
    times = sorted({shot["time"] for row in rows for shot in row["snapshots"]})
    columns = [Column("rank", 8, "rank"), Column("value", _NUMBER, lambda row: number(row["value"]))]
    if times:
        columns.append(Column("in snapshots", 0, _snapshots))
    yield from table(rows, columns)
    if ranks > len(rows):
        yield [(f"{ranks - len(rows):,} more ranks (--top)", "dim")]


def _snapshots(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{number(shot['value'])} at {shot['time']}" for shot in row["snapshots"])


def _lines(counters: list[Counted], ranks: list[int]) -> Iterator[Line]:
    shown = [one for one in counters if any(one.values.values())]
    yield [(f"Counters of Open MPI of {len(ranks):,} ranks, without a trace", "bold")]
    missing = sorted(set(range(ranks[-1] + 1)) - set(ranks))
    if missing:
        some = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        yield [(f"no files of rank {some}", "")]
    if not shown:
        yield [("all are 0; mpi_spc_attach selects those to count", "")]
        return
    yield []
    rows = [_row(one) for one in shown]

    def column(title: str, key: str) -> Column:
        return Column(title, _NUMBER, lambda row: number(row[key]))

    if len(ranks) <= _SHOWN_RANKS:
        values = [column(f"rank {rank}", str(rank)) for rank in ranks]
    else:
        values = [column("minimum", "minimum"), column("maximum", "maximum"), Column("at rank", 9, "rank")]
    name = Column("Counter", -max(len(row["name"]) for row in rows), "name")
    yield from table(rows, [name, column("total", "total"), *values, Column("what", 0, "what")])
    yield from zeros([one.name for one in counters if one not in shown and "[" not in one.name])


def _row(one: Counted) -> dict[str, Any]:
    at = max(one.values, key=lambda rank: (one.values[rank], -rank))
    return {
        "name": one.name, "total": one.total, "minimum": min(one.values.values()), "maximum": one.values[at],
        "rank": at, "what": _meaning(one), **{str(rank): value for rank, value in one.values.items()},
    }  # fmt: skip


def _meaning(one: Counted) -> str:
    """Return the unit and what it counts, as one phrase."""
    return f"{one.unit} {one.meaning}" if one.meaning else f"{one.unit} (not known here)"
