"""Show the iterations of the main loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import LOOP, RESULT, add_analysis, add_focus, ask
from whywait.report.terminal import path, percent, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait import Result
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line

_COLUMNS = (
    Column("iteration", 9, "iteration"),
    Column("begin", 13, lambda row: f"{row['begin']:.6f} s"),
    Column("duration", 11, "duration", "sec"),
    Column("waiting", 11, "waiting", "sec"),
    Column("efficiency", 11, "parallel_efficiency", "share"),
    Column("slowest", 9, lambda row: f"rank {row['slowest_rank']}"),
)
_VALUE = Column("value", 10, lambda row: ("different" if row["value"] is None else row["value"])[:9])


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "iterations",
        "show the iterations of the main loop",
        "Find the main loop and show how long its iterations take: the longest ones, outliers, and the trend, and for "
        "each iteration its waiting, its parallel efficiency, and the rank that computes longest. The main loop is a "
        "dynamic region or a parameter that the program records, or else the repeated part of the program that takes "
        "the most time; --iterations selects another loop.",
        "whywait iterations results --top 5",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument(
        "--iterations",
        metavar="PATH",
        help=LOOP,
    )
    add_focus(parser)
    add_top(parser, "how many iterations to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the iterations."""
    from whywait import UsageError
    from whywait.analysis.iterations import assess
    from whywait.model.result import part_of_run

    window, options.focus = options.focus.window, options.focus._replace(window=None)
    result, rows = ask(options, lambda result: result.iterations(options.iterations))
    if rows is None:
        raise UsageError(
            "no main loop found: no call path repeats equally often on all processes and takes most of the time; use "
            "--iterations to name the call path that each iteration enters once, or a parameter"
        )
    if window:
        begin, end = part_of_run(window(result.facts["length"]), result.facts["length"])
        rows = rows.filter((rows["begin"].to_numpy() < end) & (rows["end"].to_numpy() > begin))
        if not rows.num_rows:
            raise UsageError(f"no iteration of the main loop is between {begin:.9g} and {end:.9g} s")
    found = assess(result, rows)

    def lines(screen: Screen) -> Iterator[Line]:
        yield from _summary(result, found, screen)
        yield from _chart(rows["duration"].to_numpy(), screen)
        yield from _longest(rows, found, options.top)

    return Answer({**found, "table": rows.to_pylist()}, lines, results=[result])


def _summary(result: Result, found: dict[str, Any], screen: Screen) -> Iterator[Line]:
    text = f"{found['iterations']:,} iterations take {seconds(found['time'])}, {percent(found['share'])} of the focus"
    yield [(text, "bold")]
    if found["parameter"] is None:
        yield [
            ("   each begins with ", "dim"),
            (path(found["callpath"], screen.width - 20, unicode=screen.unicode), ""),
        ]
    else:
        yield [("   each begins with another value of ", "dim"), (found["parameter"], "")]
        yield [("   recorded in ", "dim"), (path(found["callpath"], screen.width - 15, unicode=screen.unicode), "")]
    if (common := found["common"]) < found["iterations"]:
        yield [(f"   {common:,} of them on the most ranks; the others, which some did not record, tell no trend", "")]
    times = found["duration"]
    text = f"   {seconds(times['minimum'])} to {seconds(times['maximum'])}, median {seconds(times['median'])}; "
    trend = found["trend"]
    words = {"grows": "they get longer", "shrinks": "they get shorter", "steady": "no trend"}
    change = "" if trend["kind"] == "steady" else f" by {percent(abs(trend['change']))} over the run"
    yield [(text + words[trend["kind"]] + change, "")]
    for one in found["periodic"]:
        yield [(f"   every {_ordinal(one['every'])} iteration has {one['name']}, from {one['first']} on", "")]
    if found["outliers"]:
        first = ", ".join(map(str, found["outliers"][:5])) + (", ..." if len(found["outliers"]) > 5 else "")
        number = f"{len(found['outliers']):,} outlier{'s' if len(found['outliers']) > 1 else ''}"
        text = f"   {number} longer than {seconds(found['limit'])}: {first}"
        yield [(text, "red")]
    yield [(f"   waiting on all ranks: {seconds(found['waiting'])}", "")]
    from whywait.analysis.iterations import counted

    metrics, waits = result.profile.metrics, found["wait_states"]
    kinds = counted(result, list(waits))
    largest = [(kind, value) for kind, value in waits.items() if kind in kinds and value > 0][:2]
    if largest:
        names = ", ".join(f"{metrics[kind].display_name} {seconds(value)}" for kind, value in largest)
        yield [(f"   most of it: {names}"[: screen.width], "")]
    yield []


def _ordinal(number: int) -> str:
    """Return a number as it counts: 2nd, 3rd, 5th."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"


def _chart(durations: Any, screen: Screen) -> Iterator[Line]:
    """Draw the durations; with more iterations than columns, each column shows the longest."""
    bars = " ▁▂▃▄▅▆▇█" if screen.unicode else " .:-=+*#%"
    count = len(durations)
    columns = max(1, min(count, screen.width - 6))
    most = max(durations)
    heights = [max(durations[count * i // columns : count * (i + 1) // columns]) for i in range(columns)]
    text = "".join(bars[max(1, round(height / most * 8)) if most > 0 else 0] for height in heights)
    yield [("   " + text, "green")]
    yield [(f"   0 to {count - 1}, highest: {seconds(most)}", "dim")]
    yield []


def _longest(rows: pa.Table, found: dict[str, Any], top: int) -> Iterator[Line]:
    # A parameter that counts from 0 repeats the iteration number.
    is_told = all(value == str(i) for i, value in enumerate(rows["value"].to_pylist())) if found["parameter"] else True
    longest = rows.sort_by([("duration", "descending"), ("iteration", "ascending")]).slice(0, top).to_pylist()
    outliers = set(found["outliers"])
    yield from table(
        longest,
        _COLUMNS if is_told else (*_COLUMNS, _VALUE),
        style=lambda row: "red" if row["iteration"] in outliers else "",
    )
