"""Compare two runs."""

from __future__ import annotations

import argparse
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_top, add_verb, positive, share
from whywait.commands.results import CALLPATH, RESULT_OR_PROFILE, add_analysis, add_focus, load_focus, names_of
from whywait.report.terminal import path, whole_paths
from whywait.report.values import group_name, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait import Comparison
    from whywait.analysis.focus import FocusedData
    from whywait.analysis.runs.threshold import Threshold
    from whywait.commands.answers import Screen
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line

_COLUMN = 11
# Smaller differences count as noise (share of the time, or of a count).
_LEAST = 0.001
# The most findings that are listed.
_FINDINGS = 5
# Runs of one program share this part of their own functions, without those that many programs have.
_SHARED, _OWN, _EVERYWHERE = 0.5, frozenset({"compiler", "user", "sampling"}), frozenset({"main"})
# Trees with other views of the wait states, whose sums are in the time tree.
_OTHER_VIEWS = ("waitstates_propagating", "waitstates_direct", "performance_impact")


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "diff",
        "compare two runs",
        "Show where run B spends more or less time than run A: how long both take, where their time went, which "
        "findings came, went or grew, then all metrics and call paths, largest differences first. The exit code is 1 "
        "if a metric exceeds a limit set by --fail-on.",
        "whywait diff before/ after/ --fail-on 'mpi_latesender>5%' --fail-on 'time>0.5s'",
        run,
        operands={"a": RESULT_OR_PROFILE, "b": "the same for the run to compare with A"},
    )
    add_analysis(parser)
    parser.add_argument(
        "--metric", action="append", metavar="NAME", help="compare call paths by this metric; can be repeated"
    )
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    add_focus(parser, window=True)
    parser.add_argument(
        "--rank-groups",
        type=positive,
        default=1,
        metavar="N",
        help="divide the ranks into N contiguous groups and compare each group separately (default: 1 group)",
    )
    add_top(parser, "how many call paths to show", 20)
    parser.add_argument(
        "--least",
        type=share,
        default=_LEAST,
        metavar="SHARE",
        help="hide differences below this share of the time or of a count (default: 0.1%%; 0 shows all)",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="also show direct, indirect, propagating, and terminal wait states"
    )
    add_limits(
        parser,
        "fail if a metric grows by more than a share of A ('mpi_latesender>5%%') or than an amount ('time>0.5s', "
        "'visits>1000'); run stands for the length of the whole run ('run>5%%')",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write both runs side by side as one file to explore in a browser"
    )


def length_lines(both: Comparison) -> Iterator[Line]:
    """Yield how long both runs take in the focus, and in all if that differs."""
    lengths = both.lengths()
    if both.focus is not None or "focus" not in lengths:
        return
    before, after = lengths["focus"]
    text = f"Focus: {quantity(before, 'sec')} -> {quantity(after, 'sec')}, {_pace(before, after)}."
    if lengths["run"] != lengths["focus"]:
        text += f" (Whole run: {_pace(*lengths['run'])}.)"
    yield [(text, "bold")]
    yield []


def account_lines(
    accounts: list[dict[str, Any]], findings: list[dict[str, Any]], width: int, least: float
) -> Iterator[Line]:
    """Yield the accounts of both runs side by side, and what came, went or grew."""
    whole = max((sum(line[side] for line in accounts) for side in ("first", "second")), default=0.0)
    if shown := [line for line in accounts if abs(line["difference"]) > least * whole]:
        label = width - 3 * _COLUMN
        names = "".join(name.rjust(_COLUMN) for name in ("A", "B", "B - A"))
        yield [("Where the CPU time went".ljust(label) + names, "bold")]
        for line in shown:
            values = (*(quantity(line[side], "sec") for side in ("first", "second")), _signed_time(line["difference"]))
            cells = "".join(text.rjust(_COLUMN) for text in values)
            yield [(line["label"][: label - 1].ljust(label), ""), (cells, _color(line["difference"]))]
        yield []
    if changed := [line for line in findings if line["change"] != "stayed"][:_FINDINGS]:
        yield [("Findings".ljust(width - _COLUMN) + "B - A".rjust(_COLUMN), "bold")]
        for line in changed:
            change = _signed_time(line["difference"]).rjust(_COLUMN)
            head, *rest = wrap(f"{line['change'].capitalize()}: {line['sentence']}", width - _COLUMN - 1)
            yield [(head.ljust(width - _COLUMN), ""), (change, _color(line["difference"]))]
            yield from ([(f"   {text}", "")] for text in rest)
        yield []


def _function_lines(found: dict[str, Any], top: int, screen: Screen) -> Iterator[Line]:
    """Yield the functions that differ with certainty by samples."""
    width = screen.width
    rows = found["functions"]
    if not rows:
        first, second = found["samples"]
        yield [(f"By {first:,} and {second:,} samples, no function differs with certainty.", "dim")]
        yield []
        return
    label = width - 3 * _COLUMN
    names = "".join(name.rjust(_COLUMN) for name in ("A", "B", "B - A"))
    yield [("Functions, by samples".ljust(label) + names, "bold")]
    for row in rows[:top]:
        where = "in the system, or without a core"
        if row["callpath"]:
            where = path(row["callpath"][1:] or row["callpath"], label - 1, unicode=screen.unicode)
        values = (*(quantity(row[side], "sec") for side in ("first", "second")), _signed_time(row["difference"]))
        cells = "".join(text.rjust(_COLUMN) for text in values)
        yield [(where.ljust(label), ""), (cells, _color(row["difference"]))]
        source = f"{row['source']} " if row["source"] else ""
        error = f"± {quantity(row['error'], 'sec')}"
        yield [((f"  {source}"[: width - _COLUMN].ljust(width - _COLUMN) + error.rjust(_COLUMN)), "dim")]
    yield []


def _signed_time(difference: float) -> str:
    return _signed(quantity(abs(difference), "sec"), difference)


def _pace(before: float, after: float) -> str:
    """Return whether a run takes longer or shorter, and by how much."""
    change = after / before - 1
    return "the same" if abs(change) < 0.0005 else f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"


def add_limits(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the options that make a verb fail if metrics grow by more than a limit."""
    parser.add_argument(
        "--fail-on", action="append", default=[], type=_threshold, metavar="LIMIT", help=f"{text}; can be repeated"
    )


def _threshold(text: str) -> Threshold:
    """Parse a limit of `--fail-on`."""
    from whywait.analysis.runs.threshold import Threshold

    try:
        return Threshold.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _other_program(first: ResultData, second: ResultData) -> str | None:
    """Return a remark if two runs seem to be of different programs: their names differ, and most of their functions."""
    from whywait.analysis.summary import identity

    programs = {identity(result)["program"] for result in (first, second)}
    names = [
        {kind.name for kind in result.tree.kinds if kind.paradigm in _OWN and kind.name not in _EVERYWHERE}
        for result in (first, second)
    ]
    if len(programs) == 1 or not all(names) or len(names[0] & names[1]) >= _SHARED * max(map(len, names)):
        return None
    return "These seem to be runs of different programs, which share few functions: differences of times say little."


def run(options: argparse.Namespace) -> Answer:
    """Compare two runs."""
    import whywait
    from whywait.analysis.clocks import clocks_differ
    from whywait.analysis.runs.compare import noticeable
    from whywait.report.focus import focus_data

    first, second = (load_focus(options, path) for path in (options.a, options.b))
    both = whywait.compare(first, second, names=_names(options.a, options.b), focus=options.focus.name)
    places = both.differences(options.metric, groups=options.rank_groups, callpath=options.callpath)
    failed = [limit.text for limit in both.exceeded(options.fail_on)]
    metrics = both.totals(callpath=options.callpath)
    all_places, places = places.num_rows, noticeable(places, metrics, options.least)
    if options.html:
        both.write_html(options.html)

    warning = " ".join(filter(None, (_other_program(first, second), clocks_differ((first, second))))) or None
    accounts, findings, functions = both.accounts(), both.findings(), both.functions(options.least)

    def lines(screen: Screen) -> Iterator[Line]:
        if warning:
            yield [(warning, "yellow")]
        if options.callpath is None:
            yield from length_lines(both)
            yield from account_lines(accounts or [], findings or [], screen.width, options.least)
            if functions is not None:
                yield from _function_lines(functions, options.top, screen)
        yield from metric_lines(metrics, screen.width, least=options.least, verbose=options.verbose)
        yield from place_lines(places, both.parts, screen, options.top, groups=options.rank_groups)
        if smaller := all_places - places.num_rows:
            text = f"   left out: {smaller:,} that differ by less than {100 * options.least:.3g}% (--least 0)"
            yield [(text, "dim")]
        if options.html:
            yield [(f"Written to {options.html}: open it in a browser", "")]
        yield from ([(f"failed: {text}", "bold red")] for text in failed)

    shown = places.slice(0, options.top).to_pylist()
    lengths = {name: {"first": before, "second": after} for name, (before, after) in both.lengths().items()}
    data = {
        "a": options.a,
        "b": options.b,
        "warnings": [warning] if warning else [],
        "focus": [focus_data(part) for part in both.parts],
        "lengths": lengths,
        "account": accounts,
        "findings": findings,
        "functions": functions,
        "metrics": metrics,
        "places": shown,
        "failed": failed,
    }
    return Answer(data, lines, 1 if failed else 0, results=[first, second])


def _names(first: str, second: str) -> tuple[str, str]:
    """Return the names of the runs: their directories, unless these are the same."""
    a, b = names_of([first, second])
    return (a, b) if a != b else (first, second)


def metric_lines(
    rows: list[dict[str, Any]],
    width: int,
    names: tuple[str, str] = ("A", "B"),
    *,
    least: float = _LEAST,
    verbose: bool = True,
) -> Iterator[Line]:
    """Yield the metrics that differ noticeably, with their parents."""
    from whywait.analysis.runs.compare import wholes
    from whywait.model.metrics import COUNTERS

    whole = wholes(rows)
    label = width - 4 * _COLUMN
    shown, level = [], 0
    for row in reversed(rows if verbose else list(_main_views(rows))):
        # Going upward, the next row with a smaller depth is the parent.
        if row["depth"] < level or abs(row["difference"]) > least * whole[row["metric"]]:
            level = row["depth"]
            shown.append(row)
    if not shown:
        yield [(f"No metric differs by as much as {100 * least:.3g}% of the time.", "")]
        return
    yield [
        (
            "Metric".ljust(label)
            + "".join(
                name.rjust(_COLUMN) for name in (*names, "difference" if names != ("A", "B") else "B - A", "relative")
            ),
            "bold",
        )
    ]
    for row in reversed(shown):
        name = "  " * row["depth"] + row["display_name"]
        if row["whole_run"] and not row["depth"]:
            name += " (whole run)"
        if row["metric"] == COUNTERS:
            yield [(name, "")]
            continue
        values = [quantity(row[key], row["unit"]) for key in ("first", "second")]
        difference = _signed(quantity(abs(row["difference"]), row["unit"]), row["difference"])
        cells = "".join(text.rjust(_COLUMN) for text in (*values, difference, _share(row["relative"])))
        yield [(name[: label - 1].ljust(label), ""), (cells, _color(row["difference"]))]


def _main_views(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the metrics without the trees that are other views of the wait states."""
    root = ""
    for row in rows:
        if row["depth"] == 0:
            root = row["metric"]
        if not root.startswith(_OTHER_VIEWS):
            yield row


def place_lines(
    table: pa.Table, runs: tuple[FocusedData, FocusedData], screen: Screen, top: int, *, groups: int = 1
) -> Iterator[Line]:
    """Yield the places with the largest differences."""
    import numpy as np

    from whywait.analysis.focus import profile_with

    if not table.num_rows:
        yield [("No call path differs noticeably.", "")]
        return
    ranks = [np.unique(run.places.rank) for run in runs]
    yield []
    width = screen.width
    yield [("Place".ljust(width - 2 * _COLUMN) + "B - A".rjust(_COLUMN) + "relative".rjust(_COLUMN), "bold")]
    rows = table.slice(0, top).to_pylist()
    paths = whole_paths((row["callpath"] for row in rows), width, unicode=screen.unicode)
    for number, (row, where) in enumerate(zip(rows, paths, strict=True), 1):
        profiles = [profile_with(run, row["metric"]) for run in runs]
        tree = next(profile.metrics for profile in profiles if row["metric"] in profile.metrics)
        metric = tree[row["metric"]]
        change = _signed(quantity(abs(row["difference"]), metric.unit), row["difference"])
        group = ""
        if groups > 1:
            ranges = [group_name(own, row["group"], groups) for own in ranks]
            group = ", " + " / ".join(dict.fromkeys(ranges))
        label = f"{number}. {metric.display_name}{group}"
        cells = change.rjust(_COLUMN) + _share(row["relative"]).rjust(_COLUMN)
        yield [(label.ljust(width - 2 * _COLUMN), ""), (cells, _color(row["difference"]))]
        yield from where
    if (rest := table.num_rows - top) > 0:
        yield [(f"   and {rest:,} more (--top)", "dim")]


def _signed(text: str, difference: float) -> str:
    return f"{'+' if difference > 0 else '-' if difference < 0 else ''}{text}"


def _share(relative: float | None) -> str:
    if relative is None:
        return "new"
    if 0 < abs(relative) < 0.0005:
        return "<0.1%"
    return f"{relative:+.1%}" if abs(relative) < 100 else f"{relative + 1:.0f}x"


def _color(difference: float) -> str:
    return "red" if difference > 0 else "green" if difference < 0 else ""
