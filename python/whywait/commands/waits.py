"""List the wait states that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import CALLPATH, RESULT, add_analysis, add_focus, load_part
from whywait.report.terminal import path, percent, seconds, whole_paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from whywait.commands.answers import Screen
    from whywait.model.metrics import MetricTree
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "waits",
        "list the longest wait states",
        "List wait states, longest first: who waits, where, when, for how long, and for whom. --groups lists the "
        "places with the most waiting, --statistics the distribution of each kind.",
        "whywait waits results --metric mpi_latesender --rank 3 --top 10",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument(
        "--metric", metavar="NAME", help="only this wait state or those below this metric (mpi_latesender, mpi)"
    )
    parser.add_argument("--rank", type=int, metavar="R", help="only where this rank waits")
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    add_focus(parser, window=True)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--groups", action="store_true", help="group wait states by kind, place, and cause")
    form.add_argument(
        "--statistics", action="store_true", help="for each kind its count, extremes, and quartiles, with a box plot"
    )
    add_top(parser, "how many waits or groups to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the longest waits."""
    from whywait.analysis.ranking import Choice, choose, groups, longest
    from whywait.analysis.statistics import statistics

    focus = load_part(options)
    metrics = focus.profile.metrics
    chosen = choose(focus, Choice(options.metric, options.rank, options.callpath, options.statistics))
    if options.statistics:
        kinds = statistics(metrics, chosen).to_pylist()
        data = {"instances": chosen.num_rows, "statistics": kinds}
        return Answer(data, lambda screen: _statistics(kinds, metrics, screen), focus=focus)
    rows = (
        groups(focus, chosen, options.top)
        if options.groups
        else longest(focus, chosen, options.top).to_pylist()
    )  # fmt: skip
    data = {"instances": chosen.num_rows, "waiting": sum(chosen["waiting"].to_numpy().tolist()), "waits": rows}
    shown = _group if options.groups else _instance
    return Answer(data, lambda screen: _lines(data, metrics, shown, screen), focus=focus)


def _lines(
    found: dict[str, Any], metrics: MetricTree, form: Callable[[dict[str, Any], Screen], Iterator[Line]], screen: Screen
) -> Iterator[Line]:
    rows, instances, total = found["waits"], found["instances"], found["waiting"]
    if not rows:
        yield [("No wait states.", "")]
        return
    text = f"{instances:,} wait state{'' if instances == 1 else 's'}, {seconds(total)}"
    yield [(text.ljust(screen.width - 19) + "waiting".rjust(11) + "share".rjust(8), "bold")]
    paths = whole_paths((row["callpath"] for row in rows), screen.width, unicode=screen.unicode)
    for number, (row, where) in enumerate(zip(rows, paths, strict=True), 1):
        yield _head(number, row, metrics, total, screen.width)
        yield from where
        yield from form(row, screen)


def _head(number: int, row: dict[str, Any], metrics: MetricTree, total: float, width: int) -> Line:
    label = f"{number}. {metrics[row['kind']].display_name}"
    if "rank" in row:
        thread = f".{row['thread']}" if row["thread"] else ""
        label += f", rank {row['rank']}{thread} at {row['enter']:.6f} s"
    share = percent(row["waiting"] / total) if total else ""
    return [(label[: width - 20].ljust(width - 19), "red"), (seconds(row["waiting"]).rjust(11) + share.rjust(8), "")]


def _instance(row: dict[str, Any], screen: Screen) -> Iterator[Line]:
    from whywait.model.metrics import JOINS, is_inferred
    from whywait.model.schema import patterns

    if row["cause_rank"] is not None:
        who = f"   for rank {row['cause_rank']}" + (f".{row['cause_thread']}" if row["cause_thread"] else "")
        if row["kind"] in JOINS:
            who += f", which ended at {row['enter'] + row['waiting']:.6f} s"
        elif row["cause_time"] is not None:
            arrived = "whose call began" if patterns()[row["kind"]].ends_with_cause else "which arrived"
            who += f", {arrived} at {row['cause_time']:.6f} s"
        if is_inferred(row):
            who += " (inferred)"
        yield [(who, "dim")]
        # In a collective operation, the cause is in the same call path.
        if row["cause_callpath"] and row["cause_callpath"] != row["callpath"]:
            yield [("   in " + path(row["cause_callpath"], screen.width - 6, unicode=screen.unicode), "dim")]


def _group(row: dict[str, Any], screen: Screen) -> Iterator[Line]:
    waits = f"{row['instances']:,} wait{'' if row['instances'] == 1 else 's'}"
    text = f"   {waits} on {_ranks(row['ranks'])}, up to {seconds(row['longest'])}"
    yield [(f"{text}; for {_ranks(row['cause_ranks'])}" if row["cause_ranks"] else text, "dim")]
    if row["cause_callpath"]:
        yield [("   in " + path(row["cause_callpath"], screen.width - 6, unicode=screen.unicode), "dim")]


def _statistics(kinds: list[dict[str, Any]], metrics: MetricTree, screen: Screen) -> Iterator[Line]:
    if not kinds:
        yield [("No wait states.", "")]
        return
    width = screen.width
    low, high = min(row["minimum"] for row in kinds), max(row["maximum"] for row in kinds)
    yield [("wait state".ljust(width - 22) + "waits".rjust(11) + "waiting".rjust(11), "bold")]
    for row in kinds:
        name = metrics[row["metric"]].display_name[: width - 23].ljust(width - 22)
        yield [(name, "red"), (f"{row['count']:>11,}" + seconds(row["sum"]).rjust(11), "")]
        yield [("   " + _box(row, low, high, width - 3, unicode=screen.unicode), "")]
        text = f"   {seconds(row['minimum'])} to {seconds(row['maximum'])}, median {seconds(row['median'])}"
        half = f", half of them {seconds(row['quartile25'])} to {seconds(row['quartile75'])}"
        yield [(text + half * (row["count"] > 1), "dim")]
    yield [(f"   from {seconds(low)} to {seconds(high)}, logarithmic scale", "dim")]


def _box(row: dict[str, Any], low: float, high: float, width: int, *, unicode: bool) -> str:
    """Draw a box plot: whiskers from the shortest to the longest, a box between the quartiles, a mark at the median."""
    from math import log

    def at(value: float) -> int:
        return round(log(value / low) / log(high / low) * (width - 1)) if high > low else 0

    whisker, box, mark = "─█│" if unicode else "-=|"
    first, lower, middle, upper, last = (
        at(row[name]) for name in ("minimum", "quartile25", "median", "quartile75", "maximum")
    )
    drawn = [" "] * first + [whisker] * (last + 1 - first)
    drawn[lower : upper + 1] = [box] * (upper + 1 - lower)
    drawn[middle] = mark
    return "".join(drawn)


def _ranks(count: int) -> str:
    return f"{count:,} rank{'' if count == 1 else 's'}"
