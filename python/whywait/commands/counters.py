"""Show the counters of a trace, and derive those of a modified MPI library: message queues and requests."""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import TYPE_CHECKING, Any

from whywait.commands import counters_files, counters_import
from whywait.commands.answers import Answer, Column, number, table, zeros
from whywait.commands.common import Progress, add_top, add_verb, positive
from whywait.commands.results import TRACE, add_analysis, add_counter_mode, add_window, analysis_choices, open_trace
from whywait.report.terminal import seconds, unexpected_sentence
from whywait.report.values import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from whywait import Result
    from whywait.analysis.counters.counters import Counter
    from whywait.report.terminal import Line

_NAME, _NUMBER, _LABEL = 32, 14, 58
#: Algorithms of collective operations whose traffic is known: those of `whywait.analysis.counters.expected_traffic`.
ALGORITHMS = ("recursive-doubling", "ring", "rabenseifner", "binomial-bcast", "binomial-reduce")
#: Options that select a part of the run, or the dimension to sum up by.
_PARTS = ("iterations", "by", "window")
#: The counters part of a summary.
_OF_TRACE = ("counters", "instructions_per_cycle", "frequency")


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "counters",
        "show the counters of a trace, and replay its message queues",
        "Show the hardware and software counters of a trace, in total or by call path. Replay the message queues: "
        "count unexpected messages and match attempts, and show queue lengths over time, the protocols of messages, "
        "and the requests in flight or leaked.",
        "whywait counters traces.otf2 --metric mpi_unexpected",
        run,
        {"trace": f"{TRACE}; or a directory with the counter files of Open MPI, which are then shown as they are"},
    )
    add_analysis(parser)
    counters_import.add(parser)
    parser.add_argument(
        "--arrival",
        choices=("progress", "estimate", "send"),
        default="progress",
        help="when a message arrives: when its receiver first looks for messages, after the typical transfer time of "
        "its class, or as soon as its send begins "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--match",
        choices=("pair", "list"),
        default="pair",
        help="which messages share a queue: those of a pair of processes on a communicator, or all messages to one "
        "process on a communicator (default: %(default)s)",
    )
    add_counter_mode(parser)
    parser.add_argument("--metric", metavar="NAME", help="show where this counter or queue is largest")
    parser.add_argument(
        "--by",
        type=_axis,
        metavar="AXIS",
        help="with --metric, sum a counter up by callpath, rank, iteration=PATH (the instances of a call path), time=N "
        "(N bins of equal width) or time=0.5s (bins of this width); a queue by rank or time",
    )
    add_window(parser)
    parser.add_argument(
        "--correlate",
        nargs="?",
        const="",
        metavar="NAME",
        help="correlate this counter or metric with the wait states; without a name, every counter",
    )
    parser.add_argument(
        "--over",
        choices=("ranks", "iterations", "bins"),
        default="ranks",
        help="what --correlate pairs: ranks, the iterations of a loop (--iterations; default: the main loop), or bins "
        "of time (--bins; default: 50) (default: %(default)s)",
    )
    parser.add_argument(
        "--queues", action="store_true", help="show only the message queues, not the counters of the trace"
    )
    parser.add_argument(
        "--spc",
        action="store_true",
        help="list the software performance counters of Open MPI, and which of them the trace contains or implies",
    )
    parser.add_argument(
        "--bins",
        type=positive,
        metavar="N",
        help="show a counter or queue over time, in N bins of equal width",
    )
    parser.add_argument(
        "--bin",
        type=_width,
        metavar="WIDTH",
        help="show a counter or queue over time, in bins of this width (0.5s, 20ms, 100us)",
    )
    parser.add_argument(
        "--expected-traffic",
        choices=sorted(ALGORITHMS),
        help="show how often each rank exchanges messages if all MPI_Allreduce use this algorithm on all processes, "
        "beside BYTES_SENT_MPI of Open MPI if the trace has it",
    )
    parser.add_argument("--iterations", metavar="PATH", help="show the counter in each instance of this call path")
    add_top(parser, "how many rows to show")


def run(options: argparse.Namespace) -> Answer:
    """Return the counters."""
    import whywait

    _check(options)
    if (answer := counters_files.answer(options)) is not None:
        return answer
    with Progress() as progress:
        result = whywait.analyze(
            open_trace(options.trace),
            causes=False,
            queues=options.arrival,
            queue_match=options.match,
            queue_bins=options.bins or 0,
            counter_modes=dict(options.counter_mode),
            progress=progress,
            **analysis_choices(options),
        )
    found: dict[str, Any]
    if options.expected_traffic:
        from whywait.analysis.counters.expected_traffic import expected_traffic

        found = {"algorithm": options.expected_traffic, "rows": expected_traffic(result, options.expected_traffic)}
        lines = _traffic_lines(found["rows"])
    elif options.spc:
        from whywait.analysis.counters.spc import available

        found = {"spc": available(result)}
        lines = _spc_lines(found["spc"])
    elif options.correlate is not None:
        from whywait.analysis.counters.correlation import Values, with_waits

        over = options.over
        values = Values(result, over, bins=options.bins or 50, loop=options.iterations)
        pairs = [one._asdict() for one in with_waits(result, options.correlate or None, values)[: options.top]]
        found = {"metric": options.correlate or None, "over": over, "correlations": pairs}
        lines = _correlations(pairs, over)
    elif options.metric:
        name, rows = _metric(result, options)
        found = {"metric": name, "rows": rows}
        lines = _rows(rows)
    else:
        found = summary(result, options.window and options.window(result.facts["length"]))
        if options.queues:
            found = {name: value for name, value in found.items() if name not in _OF_TRACE}
        lines = _lines(found)
    return Answer(found, lambda _: lines, results=[result])


def _check(options: argparse.Namespace) -> None:
    """Raise an error if options are incompatible."""
    from whywait import UsageError

    correlates = options.correlate is not None
    if options.expected_traffic and (correlates or options.metric or options.spc or options.queues or options.window):
        raise UsageError(
            "--expected-traffic cannot be combined with --metric, --correlate, --spc, --queues or --window"
        )
    if options.bin:
        if not options.metric:
            raise UsageError("--bin needs --metric, the counter to show over time")
        if options.by or options.bins or options.iterations:
            raise UsageError("--bin cannot be combined with --by, --bins or --iterations")
        options.by = ("time", (1, options.bin))
    if options.spc and (correlates or options.metric):
        raise UsageError("--spc cannot be combined with --metric or --correlate")
    if correlates and options.metric:
        raise UsageError("--correlate and --metric cannot be combined")
    if options.over != "ranks" and not correlates:
        raise UsageError("--over needs --correlate, whose pairs it chooses")
    if options.by and not options.metric:
        raise UsageError("--by needs --metric, the counter to sum up")
    if options.by and (options.bins or options.iterations):
        raise UsageError("--by cannot be combined with --bins or --iterations")
    if options.queues and (options.spc or options.metric or correlates):
        raise UsageError("--queues cannot be combined with --metric, --correlate or --spc")
    if options.window and (options.spc or correlates):
        raise UsageError("--window cannot be combined with --correlate or --spc")
    if options.bins and not options.metric and options.over != "bins":
        raise UsageError("--bins needs --metric, the counter or queue to show over time")
    if options.iterations and options.over != "iterations" and (options.bins or not options.metric):
        raise UsageError("--iterations needs --metric, the counter to show")


def _metric(result: Result, options: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return the unique name of a counter or queue, and its rows."""
    from whywait import UsageError, _native
    from whywait.model.result import part_of_run

    if options.metric not in result.counters:
        name = _unique_name(result, options.metric)
        if name in _native.queue_levels():
            return name, _level(result, name, options)
        if any(getattr(options, option) for option in _PARTS) or (options.bins and name in _native.queue_metrics()):
            return name, _part_of_sum(result, name, options)
        return name, _table(result, name, count=options.top)
    counter = result.counters[options.metric]
    length = result.facts["length"]
    window = options.window and part_of_run(options.window(length), length)
    axis, value = options.by or ("", None)
    if axis == "iteration" or options.iterations:
        if window:
            raise UsageError("--window cannot be combined with iterations")
        table = counter.by_iteration(value or options.iterations)
        return counter.name, table.drop_columns(["location"]).to_pylist()
    if axis == "time" or options.bins:
        bins, width = value or (options.bins, None)
        table = counter.series(bins, width=width, window=window)
        return counter.name, table.drop_columns(["location"]).to_pylist()
    if window:
        in_window = result.counters.window(*window)
        if counter.name not in in_window:
            return counter.name, []
        counter = in_window[counter.name]
    if axis == "callpath":
        table = counter.by_callpath().sort_by([("value", "descending")]).slice(0, options.top)
        rows = table.drop_columns(["callpath_id"]).to_pylist()
        return counter.name, [row | {"callpath": "/".join(row["callpath"])} for row in rows]
    if axis == "rank":
        table = counter.by_rank().sort_by([("value", "descending")]).slice(0, options.top)
        return counter.name, table.to_pylist()
    return counter.name, _recorded(counter, options.top)


def _level(result: Result, name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of a level of queues: by rank, or over time."""
    from whywait import UsageError
    from whywait.model.result import part_of_run
    from whywait.model.selection import edges_of_bins

    axis, value = options.by or ("", None)
    if options.iterations or axis in {"iteration", "callpath"}:
        raise UsageError(
            f"{name} is the length of a queue of a process: it has no call paths and no iterations; "
            "show it by rank, with --by time=N or --bin over time, or with --window in a part of the run"
        )
    length = result.facts["length"]
    window = part_of_run(options.window(length), length) if options.window else (0.0, length)
    if axis == "time" or options.bins:
        edges = edges_of_bins(window, *(value or (options.bins, None)))
        series = result.queues(bins=edges.tolist()).series
        return _select(series, name, ("rank", "bin", "begin", "mean", "maximum"))
    if options.window:
        rows = _select(result.queues(bins=list(window)).series, name, ("rank", "maximum", "mean"))
    else:
        rows = _select(result.queue_levels(), name, ("rank", "maximum", "time", "mean"))
    return sorted(rows, key=lambda row: -row["maximum"])[: options.top]


def _part_of_sum(result: Result, name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of a sum of queues in a part of the run, or by call path, rank, iteration or time."""
    from whywait import UsageError, _native
    from whywait.model.result import part_of_run
    from whywait.model.selection import edges_of_bins

    if name not in _native.queue_metrics():
        option = next((one for one in _PARTS if getattr(options, one)), "bins")
        raise UsageError(f"--{option} needs a counter of the trace or of queues, and {name} is neither")
    queues, length = result.queues(), result.facts["length"]
    begin, end = part_of_run(options.window(length), length) if options.window else (0.0, length)
    axis, value = options.by or ("", None)
    if axis == "iteration" or options.iterations:
        if options.window:
            raise UsageError("--window cannot be combined with iterations")
        return queues.by_iteration(name, value or options.iterations).to_pylist()  # type: ignore[no-any-return]
    if axis == "time" or options.bins:
        edges = edges_of_bins((begin, end), *(value or (options.bins, None)))
        return queues.by_bin(name, edges).to_pylist()  # type: ignore[no-any-return]
    table = queues.window(begin, end) if options.window else queues.sums
    rows = [row | {"callpath": "/".join(row["callpath"])} for row in table.to_pylist() if row["metric"] == name]
    keys = {"callpath": ("callpath",), "rank": ("rank",)}.get(axis, ("callpath", "rank", "thread"))
    sums: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = tuple(row[one] for one in keys)
        sums[key] = sums.get(key, 0.0) + row["value"]
    largest = sorted(sums.items(), key=lambda one: -one[1])[: options.top]
    return [dict(zip(keys, key, strict=True)) | {"value": total} for key, total in largest]


def _axis(text: str) -> tuple[str, Any]:
    """Parse the dimension to sum up by: its name, and the path, or the number and width of bins."""
    axis, _, value = text.partition("=")
    if (axis in ("callpath", "rank") and not value) or (axis == "iteration" and value):
        return axis, value
    if axis == "time":
        if value.isdecimal() and int(value):
            return axis, (int(value), None)
        if width := _time(value):
            return axis, (1, width)
    raise argparse.ArgumentTypeError(f"{text!r} is not callpath, rank, iteration=PATH, time=50 or time=0.5s")


def _width(text: str) -> float:
    """Read the width of bins."""
    if width := _time(text):
        return width
    raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 0.5s, 20ms or 100us")


def _time(text: str) -> float | None:
    """Read a time with its unit; None if the text is none."""
    match = re.fullmatch(r"(\d+\.?\d*)(s|ms|us)", text)
    return float(match[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[match[2]] if match else None


def summary(result: Result, window: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return the counters of the trace, the sums over the run, and the maximum of each level with its place.

    Levels of queues that Open MPI recorded as well have ``recorded``, the maximum, and ``recorded_as``.
    """
    from whywait import _native
    from whywait.analysis.counters.unexpected import QUEUES_OF_LIBRARY, unexpected
    from whywait.model.result import part_of_run

    names = [name for name in _native.queue_metrics() if name in result.metrics]
    totals = {name: {"total": result.metrics[name].total, "unit": result.metrics[name].unit} for name in names}
    counters, rows = result.counters, result.queue_levels()
    limits = {name: result.facts[name] for name in ("eager_limit_in_node", "eager_limit_between_nodes")}
    if window:
        window = part_of_run(window, result.facts["length"])
        counters, queues = counters.window(*window), result.queues(bins=list(window))
        found, rows = queues.window(*window), queues.series
        value, metric = found["value"].to_numpy(), found["metric"].to_numpy(zero_copy_only=False)
        totals = {name: row | {"total": float(value[metric == name].sum())} for name, row in totals.items()}
    levels: dict[str, dict[str, Any]] = {}
    # The time of a maximum is known only for the whole run.
    kept = [name for name in ("maximum", "time", "rank", "mean", "unit") if name in rows.column_names]
    for row in rows.to_pylist():
        key = row["metric"] + (" (run)" if row["location"] is None else "")
        if key not in levels or row["maximum"] > levels[key]["maximum"]:
            levels[key] = {name: row[name] for name in kept}
    for level, name in QUEUES_OF_LIBRARY.items():
        if level in levels and name in counters:
            levels[level] |= {"recorded": counters[name].maximum, "recorded_as": name}
    return {
        "window": window,
        "counters": [counter.as_dict() for counter in counters.values()],
        "instructions_per_cycle": counters.instructions_per_cycle,
        "frequency": counters.frequency,
        "sums": totals,
        "levels": levels,
        **({} if window else limits | {"unexpected": unexpected(result)}),
    }


def _recorded(counter: Counter, count: int) -> list[dict[str, Any]]:
    """Return the largest cells of a counter."""
    cells = counter.cells().sort_by([("value", "descending")]).slice(0, count).to_pylist()
    kept = ("rank", "thread", "value", "samples", "minimum", "maximum")
    return [
        {"callpath": "/".join(cell["callpath"]) if cell["callpath"] else "(outside)"}
        | {name: cell[name] for name in kept}
        for cell in cells
    ]


def _unique_name(result: Result, text: str) -> str:
    """Return the unique name of a counter from a display name; levels have one name only."""
    from whywait import _native

    counters = [name for name in result.profile.metrics.called(text) if name in _native.queue_metrics()]
    return counters[0] if len(counters) == 1 else text


def _table(result: Result, name: str, *, count: int) -> list[dict[str, Any]]:
    """Return the largest rows of a sum of queues."""
    from whywait import UsageError, _native

    if name in _native.queue_metrics():
        cells = result.severities(name).sort_by([("value", "descending")]).slice(0, count).to_pylist()
        return [
            {
                "callpath": "/".join(cell["callpath"]),
                "rank": cell["rank"],
                "thread": cell["thread"],
                "value": cell["value"],
            }
            for cell in cells
        ]
    known = ", ".join([*result.counters, *_native.queue_metrics(), *_native.queue_levels()])
    raise UsageError(f"there is no counter {name!r}; there are {known}")


def _select(table: pa.Table, name: str, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{key: row[key] for key in wanted} for row in table.to_pylist() if row["metric"] == name]


def _lines(found: dict[str, Any]) -> Iterator[Line]:
    if found.get("counters"):
        columns = " ".join(f"{name:>{_NUMBER}}" for name in ("total", "mean", "minimum", "maximum"))
        yield [(f"{'Counter':{_NAME}}{columns} {'samples':>{_NUMBER}}  unit", "bold")]
        changing = [row for row in found["counters"] if row["minimum"] or row["maximum"]]
        for row in changing:
            numbers = " ".join(
                f"{number(row[name]):>{_NUMBER}}" for name in ("total", "mean", "minimum", "maximum", "samples")
            )
            unit = row["unit"] + (" s" if row["kind"] == "level" else "")
            said = "; ".join([", ".join([row["kind"], row["mode"], *row["scopes"]]), *row["notes"]])
            if len(row["name"]) >= _NAME:
                # Long names of counters often differ only at their ends.
                yield [(row["name"], "")]
            name = row["name"] if len(row["name"]) < _NAME else ""
            yield [(f"{name:{_NAME}}{numbers}  {unit} ({said})", "")]
        yield from zeros([row["name"] for row in found["counters"] if row not in changing])
        if found["instructions_per_cycle"] is not None:
            yield [(f"Instructions per cycle: {found['instructions_per_cycle']:.3g}", "")]
        if found["frequency"] is not None:
            yield [(f"Cycles per second: {found['frequency']:.3g}", "")]
        yield []
    occurring = {name: row for name, row in found["sums"].items() if row["total"]}
    window = found["window"]
    if not window and not found.get("counters", True):
        derived = "These are derived from its messages:" if occurring else ""
        yield [(f"The trace has no recorded counters. {derived}".rstrip(), "")]
        yield from [[]] if occurring else []
    if not occurring and not found["levels"]:
        yield [("Nothing is derived in this window." if window else "The run has no messages.", "")]
        return
    title = "Sum in the window" if window else "Sum over the run"
    yield [(f"{title:{_LABEL}}{'total':>{_NUMBER}}  name", "bold")]
    for name, row in occurring.items():
        yield [(f"{_label(name):{_LABEL}}{quantity(row['total'], row['unit']):>{_NUMBER}}", ""), (f"  {name}", "dim")]
    yield from zeros([name for name in found["sums"] if name not in occurring])
    yield from _level_lines(found["levels"], has_times=not window)
    if counted := found.get("unexpected"):
        yield []
        yield from ([(line, "")] for line in textwrap.wrap(unexpected_sentence(counted), 100))
    if window or not any(name.startswith(("mpi_eager", "mpi_rendezvous", "mpi_protocol")) for name in occurring):
        return
    yield []
    for name, where in (("eager_limit_in_node", "within a node"), ("eager_limit_between_nodes", "between nodes")):
        limit = found[name]
        text = "not known: no message is proved to have gone by rendezvous" if limit is None else f"{limit:,} bytes"
        yield [(f"Eager limit {where}: {text}", "")]


def _level_lines(levels: dict[str, dict[str, Any]], *, has_times: bool) -> Iterator[Line]:
    from whywait.analysis.counters.queues import LEVELS

    if not levels:
        return
    at = f"{'at':>12}" if has_times else ""
    yield []
    yield [(f"{'Level':{_LABEL}}{'maximum':>{_NUMBER}}{at}{'rank':>8}{'mean':>12}  name", "bold")]
    for name, row in levels.items():
        metric, _, whole = name.partition(" ")
        rank = "all" if row["rank"] is None else str(row["rank"])
        mean = quantity(row["mean"], "bytes") if row["unit"] == "bytes" else f"{row['mean']:,.3g}"
        at = f"{seconds(row['time']):>12}" if "time" in row else ""
        numbers = f"{quantity(row['maximum'], row['unit']):>{_NUMBER}}{at}{rank:>8}{mean:>12}"
        label = LEVELS.get(metric, metric) + (f" {whole}" if whole else "")
        yield [(f"{label:{_LABEL}}{numbers}", ""), (f"  {metric}", "dim")]
        if "recorded" in row:
            label = f"  {row['recorded_as']}, recorded"
            yield [(f"{label:{_LABEL}}{quantity(row['recorded'], row['unit']):>{_NUMBER}}", "")]


def _label(name: str) -> str:
    """Return the display name of a metric, with that of its parent if the name alone is ambiguous."""
    from whywait.model.metrics import metric_tree

    metric = metric_tree()[name]
    if metric.parent is None or not metric_tree()[metric.parent].derived:
        return metric.display_name
    return f"{metric_tree()[metric.parent].display_name}: {metric.display_name}"


def _traffic_lines(rows: list[dict[str, Any]]) -> Iterator[Line]:
    names = {
        "round_trips": "round trips",
        "operations": "operations",
        "expected": "in all",
        "BYTES_SENT_MPI": "BYTES_SENT_MPI",
    }
    shown = [name for name in names if any(row[name] is not None for row in rows)]
    return table(rows, [Column("rank", 8, "rank"), *(_numbers(name, names[name], _NUMBER + 2) for name in shown)])


def _spc_lines(found: list[dict[str, Any]]) -> Iterator[Line]:
    # Leave out the many calls and algorithms that never occur.
    shown = [row for row in found if row["value"] or row["derived"]]
    missing = [row["name"] for row in found if row["state"] == "not available"]
    width = max([_NAME, *(len(row["name"]) for row in shown)])
    name = Column("Counter of Open MPI", -width, "name")
    yield from table(shown, [name, _numbers("value"), Column("unit, source", 0, _source)])
    yield from zeros([row["name"] for row in found if row not in shown and row["name"] not in missing])
    if missing:
        yield []
        yield [(f"{len(missing)} counters are neither recorded nor derived:", "dim")]
        yield from ([(f"   {line}", "dim")] for line in textwrap.wrap(" ".join(missing), 100))


def _source(row: Mapping[str, Any]) -> str:
    """Return the unit of a counter of Open MPI, and where its value comes from."""
    also = "" if row["derived"] is None else f"; {row['derived_from']}: {number(row['derived'])}"
    if row["quotient"]:
        also += f", {row['quotient']:.3g} times the value"
    return f"{row['unit']} ({row['state']}: {row['source']}{also})"


def _correlations(found: list[dict[str, Any]], over: str) -> Iterator[Line]:
    if not found:
        yield [("nothing to correlate: no counters, or no wait states", "")]
        return
    counter = Column("Counter", -_NAME, lambda one: one["x"][: _NAME - 1])
    columns = (
        Column("Wait state", -_NAME, "y"),
        Column("r", _NUMBER, lambda one: "undefined" if one["r"] is None else f"{one['r']:.4f}"),
        Column(over, _NUMBER, "n"),
    )
    yield from table(found, (counter, *columns) if len({one["x"] for one in found}) > 1 else columns)


def _rows(rows: list[dict[str, Any]]) -> Iterator[Line]:
    if not rows:
        yield [("nothing", "")]
        return
    # A total has no mean and no maximum over time. A level without a rank is that of the run.
    names = [name for name in rows[0] if name in {"rank", "callpath"} or any(row[name] is not None for row in rows)]
    # Keep a space between long numbers.
    columns = [_numbers(name, f" {name}", gap=" ") for name in names if name != "callpath"]
    yield from table(rows, [*columns, Column("callpath", 0, "callpath")] if "callpath" in names else columns)


def _numbers(name: str, title: str | None = None, width: int = _NUMBER, gap: str = "") -> Column:
    """Return a column of numbers; a level of all ranks has no rank."""
    missing = "all" if name == "rank" else "-"
    return Column(title or name, width, lambda row: gap + (missing if row[name] is None else number(row[name])))
