"""Many runs in one page: the efficiencies of each, where its time went, and how call paths scale."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.model.metrics import metric_tree
from whywait.model.names import short_name
from whywait.report.badge import badge
from whywait.report.html import blocks
from whywait.report.html.formulas import Formulas, combine
from whywait.report.html.page import page
from whywait.report.html.parts import all_parts
from whywait.report.html.shades import of_metric

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whywait.analysis.runs.series import Point, SeriesData
    from whywait.model.metrics import MetricTree
    from whywait.report.html.formulas import Factors

# Maximum number of call paths per metric, and the minimum share of it that some run must spend there.
_PLACES = 60
_LEAST = 0.001
_ORDER = (
    "global_efficiency parallel_efficiency load_balance communication_efficiency serialization transfer "
    "computation_scaling instruction_scaling ipc_scaling frequency_scaling speedup ipc load_imbalance"
).split()


def write_series(series: SeriesData, path: Path, *, gate: dict[str, Any] | None = None, at: int | None = None) -> None:
    """Write a series as one file for the browser.

    Parameters
    ----------
    series
        The runs.
    path
        The file; overwritten if it exists.
    gate
        The ``limits`` of the gate and which ``failed``; None for no gate.
    at
        Number of processes to predict for.
    """
    document = {
        "whywait": _native.__version__,
        "over": series.over,
        "mode": series.mode,
        "focus": [point.part.focus.phrase for point in series.points][-1],
        "runs": [_run(point, account) for point, account in zip(series.points, series.accounts(), strict=True)],
        "efficiencies": _efficiencies(series),
        "parts": parts(series),
        "waits": _waits(series),
        "counts": [
            {
                "label": metric.display_name,
                "name": metric.name,
                "unit": metric.unit,
                "part_of": metric.parent,
                "values": _values(series, metric.name),
            }
            for metric in series.occurring()
            if metric.unit != "sec"
        ],
        "places": {name: _places(series, name, at) for name in ("time", "waiting") if _occurs(series, name)},
        "badge": badge(series),
        "notes": [
            *([series.detected.sentence] if series.mode == series.detected.mode and series.detected.sentence else []),
            *(f"{point.name}: {note}." for point in series.points for note in point.result.notes),
        ],
        "gate": gate,
    }
    name = series.points[-1].result.run.name
    with path.open("w", encoding="utf-8") as out:
        out.writelines(page(f"{name}, {len(series.points)} runs", "series", [("series", blocks.document(document))]))


def _run(point: Point, account: dict[str, Any]) -> dict[str, Any]:
    date = None if point.date is None else datetime.fromtimestamp(point.date, UTC).strftime("%Y-%m-%d %H:%M")
    return {
        "name": point.name, "processes": point.processes, "threads": point.threads, "date": date,
        "length": point.result.facts.get("length"), "time": account["time"], "waiting": account["waiting"],
    }  # fmt: skip


def _efficiencies(series: SeriesData) -> list[dict[str, Any]]:
    """Return one row per efficiency, with its value in each run."""
    rows: dict[str, dict[str, Any]] = {}
    efficiencies = series.efficiencies()
    for number, run in enumerate(efficiencies):
        for one in (*run.values, *run.hybrid):
            empty = {"name": one.name, "label": one.display_name, "formula": one.formula,
                     "values": [None] * len(efficiencies)}  # fmt: skip
            rows.setdefault(one.name, empty)["values"][number] = one.value
    # The factors of an efficiency are listed below it.
    first = [name for name in _ORDER if name in rows]
    return [rows[name] for name in dict.fromkeys([*first, *rows])]


def parts(series: SeriesData) -> list[dict[str, Any]]:
    """Split the time of each run into branches of the metric tree, each with and without the waiting in it.

    Returns
    -------
    list of dict
        ``metric``, ``label``, ``family`` and ``shade`` (as in `whywait.report.html.parts`), ``waits`` (whether it is
        the waiting in the branch) and ``values`` (seconds over all locations, one per run). The parts of a run add up
        to its time.
    """
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for number, point in enumerate(series.points):
        profile = point.part.profile
        if "time" not in profile.metrics:
            continue
        formulas = Formulas(profile)
        for metric, label, family, waits, factors in _branches(profile.metrics, formulas):
            value = float(formulas.by_location(factors).sum())
            empty = {"metric": metric, "label": label, "family": family, "shade": of_metric(metric), "waits": waits,
                     "values": [0.0] * len(series.points)}  # fmt: skip
            found.setdefault((metric, waits), empty)["values"][number] += value
    return [part for part in found.values() if any(value > 0 for value in part["values"])]


def _branches(metrics: MetricTree, formulas: Formulas) -> Iterator[tuple[str, str, str, bool, Factors]]:
    """Yield the parts of the time: a branch without its waiting, then the waiting in it."""
    every = list(all_parts(metrics, formulas))
    branches = [part for part in every if part.family != "waiting"]
    for branch in branches:
        below = {
            wait.metric: wait
            for wait in every
            if wait.family == "waiting" and _is_below(metrics, wait.metric, branch.metric)
        }
        yield branch.metric, branch.label, branch.family, False, branch.factors
        # The rest of a library beside its branches excludes the waiting in these.
        if below and not branch.label.endswith(" other"):
            waiting = combine([(1, wait.factors) for wait in below.values()])
            yield branch.metric, f"Waiting in {branch.label}", branch.family, True, waiting


def _is_below(metrics: MetricTree, wait: str, branch: str) -> bool:
    return any(above.name == branch for above in metrics.path(wait))


def _occurs(series: SeriesData, name: str) -> bool:
    return any(_values(series, name))


def _values(series: SeriesData, name: str) -> list[float]:
    return [series.total(point, name) for point in series.points]


def _waits(series: SeriesData) -> list[dict[str, Any]]:
    """Return the wait states that occur, each once, largest first."""
    profiles = [point.part.profile for point in series.points]
    names = {
        metric.name: None for profile in profiles for metric in profile.metrics.waiting if profile.total(metric.name)
    }
    rows = [
        {"name": name, "label": label, "values": _values(series, name)}
        for name, label in metric_tree().labels(names).items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -max(row["values"]))


def _places(series: SeriesData, name: str, at: int | None) -> dict[str, Any]:
    """Return the call paths with most of a metric, and their scaling models if there are enough runs."""
    processes = np.array([point.processes for point in series.points], np.float64)
    whole = np.array(_values(series, name))
    values = {
        path: own
        for path, own in series.by_callpath(name).items()
        if np.any(own > _LEAST * np.where(whole > 0, whole, np.inf))
    }
    models = {row["path"]: row for row in series.models(name, at=at).to_pylist()}

    def most(path: str) -> float:
        each: list[float] = (values[path] / processes).tolist()
        return max(*each, each[0], models[path]["predicted"] if path in models else 0.0)

    order = sorted(values, key=lambda path: (-most(path), path))
    rows = [(None, whole), *((path, values[path]) for path in order[:_PLACES])]
    return {
        "at": next((row["processes"] for row in models.values()), None),
        "rows": [
            {
                "path": None if path is None else [short_name(part) for part in path.split("/")],
                "values": (own / processes).tolist(),
                "model": _model(models.get(path)),
            }
            for path, own in rows
        ],
    }


def _model(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    names = ("model", "constant", "coefficient", "power", "log_power", "error", "r2", "predicted")
    return {name: row[name] for name in names}
