"""Compare many runs: a scaling study or a history."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_top, add_verb, positive
from whywait.commands.diff import add_limits
from whywait.commands.efficiency import DEPTH, add_scaling, cell, judged, simulate_ideal
from whywait.commands.results import RESULT_OR_PROFILE, add_analysis, add_focus, load_focus
from whywait.report.terminal import paragraph, percent, seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from whywait import Result, Series
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line

_LABEL = 30
_COLUMN = 11
# Predictions that exceed the largest run by this factor are marked.
_GROWS = 1.5
_PARTS = {
    "computation": "Computation",
    "devices": "Devices",
    "io": "I/O",
    "communication": "Communication",
    "completion": "Completion",
    "threads": "Threads",
    "overhead": "Measurement",
    "idle_threads": "Idle threads",
    "waiting": "Waiting",
}


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "series",
        "compare many runs: a scaling study or a history",
        "Compare many runs of a program: their POP efficiencies, where each spends its time, and how call paths scale "
        "with the number of processes. The exit code is 1 if the newest run exceeds a limit set by --fail-on.",
        "whywait series run-4 run-8 run-16 run-32 run-64 --html scaling.html --badge efficiency.svg",
        run,
        operands={},
    )
    parser.add_argument(
        "runs", metavar="DIR", nargs="+", help=f"{RESULT_OR_PROFILE}, or a directory that contains several of these"
    )  # fmt: skip
    add_analysis(parser)
    parser.add_argument(
        "--over",
        choices=("processes", "date", "order"),
        help="order the runs by number of processes, by date of recording, or as given (default: by number of "
        "processes if it differs, otherwise as given)",
    )
    add_focus(parser)
    add_scaling(parser)
    parser.add_argument(
        "--metric", default="time", metavar="NAME", help="the metric to fit scaling models to (default: %(default)s)"
    )
    parser.add_argument(
        "--predict", type=positive, metavar="N", help="predict for N processes (default: 4 times the largest run)"
    )
    add_top(parser, "how many call paths to show")
    add_limits(
        parser,
        "fail if a metric of the newest run exceeds that of the previous run with the same number of processes and "
        "threads by more than a share ('mpi_latesender>5%%') or an amount ('time>0.5s')",
    )
    parser.add_argument("--html", metavar="FILE", help="write everything as one HTML file to explore in a browser")
    parser.add_argument(
        "--badge", metavar="FILE", help="write an SVG badge with the parallel efficiency of the last run"
    )  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Compare the runs and check the limits."""
    import whywait
    from whywait.analysis.clocks import clocks_differ

    def load(path: Path) -> Result:
        result = load_focus(options, str(path))
        simulate_ideal([result])
        return result

    study = whywait.series(
        options.runs,
        over=options.over,
        focus=options.focus.name,
        scaling=options.scaling,
        load=load,
    )
    failed = study.exceeded(options.fail_on) if options.fail_on else []
    models = study.models(options.metric, at=options.predict).to_pylist()
    if options.html:
        study.write_html(options.html, limits=options.fail_on, at=options.predict)
    if options.badge:
        _write(options.badge, study.badge())

    warning = clocks_differ(point.result for point in study.points)

    def lines(screen: Screen) -> Iterator[Line]:
        if warning:
            yield [(warning, "yellow")]
        if not options.scaling and study.detected.sentence:
            yield from ([*paragraph(study.detected.sentence, screen.width), []])
        yield from _tables(study, screen.width)
        yield from _models(study, models, options, screen.width)
        yield from ([(f"Written to {file}", "")] for file in (options.html, options.badge) if file)
        for one in failed:
            yield [(f"failed: {one['limit']} ({one['run']} after {one['baseline']})", "bold red")]

    shown = {"metric": study.metric(options.metric).name, "callpaths": models[: options.top + 1]}
    data = {**study.summary(), "models": shown, "failed": failed, "warnings": [warning] if warning else []}
    return Answer(data, lines, 1 if failed else 0, results=[point.result for point in study.points])


def _write(path: str, text: str) -> None:
    from pathlib import Path

    from whywait.store.staging import Staging

    target = Path(path)
    with Staging(target.parent) as staging:
        staging.path(target.name).write_text(text, encoding="utf-8")


def _tables(study: Series, width: int) -> Iterator[Line]:
    """Yield efficiencies and parts of the time, as many runs side by side as fit."""
    efficiencies, accounts = study.efficiencies(), study.accounts()
    known = list(dict.fromkeys(value.name for row in efficiencies for value in row))
    step = max(1, (width - _LABEL) // _COLUMN)
    for start in range(0, len(study.points), step):
        part = slice(start, start + step)
        points, rows, own = study.points[part], efficiencies[part], accounts[part]
        yield [("Efficiency".ljust(_LABEL) + "".join(_end(point.name) for point in points), "bold")]
        yield [("processes".ljust(_LABEL) + "".join(cell(f"{point.processes:,}") for point in points), "")]
        if any(point.threads != point.processes for point in points):
            yield [("threads, of all processes".ljust(_LABEL) + "".join(cell(f"{p.threads:,}") for p in points), "")]
        for name in known:
            found = [next((value for value in row if value.name == name), None) for row in rows]
            label = next(value.display_name for row in efficiencies for value in row if value.name == name)
            cells = [(cell("-"), "") if value is None else judged(value) for value in found]
            yield [(("  " * DEPTH.get(name, 0) + label).ljust(_LABEL), ""), *cells]
        yield []
        yield [("Average time of a process".ljust(_LABEL), "bold")]
        each = [one["time"] / max(1, point.processes) for one, point in zip(own, points, strict=True)]
        yield [("Time".ljust(_LABEL) + "".join(cell(seconds(time)) for time in each), "")]
        for key, label in _PARTS.items():
            if not any(one["parts"][key] for one in accounts):
                continue
            parts = [one["parts"][key] for one in own]
            shares = [
                "-" if part is None else percent(part / one["time"] if one["time"] else 0.0)
                for part, one in zip(parts, own, strict=True)
            ]
            style = "red" if key == "waiting" else ""
            yield [("  " + label.ljust(_LABEL - 2), ""), ("".join(map(cell, shares)), style)]
        if part.stop < len(study.points):
            yield []


def _models(
    study: Series, models: list[dict[str, Any]], options: argparse.Namespace, width: int
) -> Iterator[Line]:  # fmt: skip
    """Yield the scaling of the metric, in total and at the call paths that dominate in larger runs."""
    from whywait.analysis.runs.scaling_models import NEEDED
    from whywait.model.names import short_name

    sizes = len({point.processes for point in study.points})
    if sizes == 1:
        return
    yield []
    if not models:
        yield [(f"No scaling models: they need {NEEDED} different numbers of processes, and there are {sizes}.", "")]
        return
    metric = study.metric(options.metric)
    largest = max(point.processes for point in study.points)
    heads = (f"at {largest:,}", f"at {models[0]['processes']:,}", "error")
    room = width - 3 * _COLUMN
    title = f"{metric.display_name} of one of p processes ({metric.unit})"
    yield [(title.ljust(room) + "".join(head.rjust(_COLUMN) for head in heads), "bold")]
    for row in models[: options.top + 1]:
        cells = (quantity(row["last"], metric.unit), quantity(row["predicted"], metric.unit), f"{row['error']:.1%}")
        name = "whole program" if row["path"] is None else short_name(row["path"].rpartition("/")[2])
        style = "red" if row["predicted"] > _GROWS * row["last"] else ""
        yield [(name[: room - 1].ljust(room), ""), ("".join(cell.rjust(_COLUMN) for cell in cells), style)]
        yield [(f"   {row['model']}"[:width], "dim")]
    text = "Exclusive values; what a larger run takes most of comes first. error: how far off the model is for a run "
    for line in textwrap.wrap(text + "that it does not know (cross-validation).", width):
        yield [(line, "dim")]


def _end(name: str) -> str:
    """Return the end of a name, where names of runs differ."""
    room = _COLUMN - 1
    return cell(name if len(name) <= room else f"..{name[-room + 2 :]}")
