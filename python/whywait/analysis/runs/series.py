"""Many runs of a program: a scaling study or a history."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

import whywait._native as _native
from whywait.analysis.efficiency.efficiency import scaling
from whywait.analysis.focus import FocusedData, focused
from whywait.analysis.runs.scaling_mode import detect_scaling
from whywait.analysis.runs.scaling_models import Model, fit
from whywait.analysis.waiting import account
from whywait.model.metric_names import metric_name
from whywait.model.selection import Processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from whywait.analysis.efficiency.efficiency import Efficiencies, Scaling
    from whywait.model.metrics import Metric
    from whywait.model.result import ResultData

Over = Literal["processes", "date", "order"]

# How many times as many processes as the largest run has predictions are for, if nothing else is asked for.
_AHEAD = 4


class Point(NamedTuple):
    """A run of a series.

    Attributes
    ----------
    name
        The name of the run.
    result
        The whole run.
    part
        The part of the run in the focus.
    processes, threads
        The number of processes, and their total number of threads.
    date
        The time of recording, in seconds since 1970; None if unknown.
    """

    name: str
    result: ResultData
    part: FocusedData
    processes: int
    threads: int
    date: float | None


class SeriesData:
    """Runs in order, and their comparison.

    Parameters
    ----------
    runs
        The runs, each with its name and known date.
    over
        What orders them: the number of ``processes``, the ``date``, or the ``order`` they come in; None for the
        processes if these differ, else for the order.
    focus
        What the numbers are about, as for `whywait.analysis.focus.find_focus`.
    mode
        Whether all runs have the same work (``strong``) or all processes (``weak``); None to find out.

    Raises
    ------
    whywait.UsageError
        If there is no run, none has a date, or there is no such call path.
    """

    def __init__(
        self,
        runs: Iterable[tuple[str, ResultData, float | None]],
        over: Over | None = None,
        focus: str | None = None,
        mode: Scaling | None = None,
    ) -> None:
        points = [_point(name, result, date, focus) for name, result, date in runs]
        if not points:
            raise _native.UsageError("a series needs at least one run")
        if over is None:
            over = "processes" if len({point.processes for point in points}) > 1 else "order"
        if over == "date" and (lacking := [point.name for point in points if point.date is None]):
            raise _native.UsageError(f"the date of {lacking[0]} is unknown: use another order")
        if over == "processes":
            points.sort(key=lambda point: (point.processes, point.threads))
        elif over == "date":
            points.sort(key=lambda point: point.date or 0.0)
        self.points = points
        self.over: Over = over
        self.detected = detect_scaling([point.part for point in points])
        self.mode: Scaling | None = mode or self.detected.mode
        self.focus = focus

    def efficiencies(self) -> list[Efficiencies]:
        """Return the POP efficiencies of each run; the first one is the reference of those that compare."""
        return list(self._efficiencies)

    @cached_property
    def _efficiencies(self) -> tuple[Efficiencies, ...]:
        from dataclasses import replace

        focuses = [point.part.focus for point in self.points]
        callpath = focuses[0].callpath
        windows = [focus.window for focus in focuses] if callpath is None else None
        rows = scaling([point.result for point in self.points], callpath, mode=self.mode, windows=windows)
        return tuple(replace(row, run=point.name) for row, point in zip(rows, self.points, strict=True))

    def accounts(self) -> list[dict[str, Any]]:
        """Return the account of each run's time: see `whywait.analysis.waiting.account`.

        Of a profile, ``waiting``, its ``share`` and what becomes of it are None: it is a part of the communication.
        """
        return [_account(point) for point in self.points]

    def metrics(self) -> pa.Table:
        """Return the metrics of each run that occur in any.

        Returns
        -------
        pyarrow.Table
            ``run`` (its place in the series, 0 is the first), ``name``, ``processes``, ``metric``, ``display_name``,
            ``unit``, ``value`` (of all locations), ``per_process`` (of a maximum, the maximum itself) and ``share`` (of
            the time; null for what is no time). Times are about the focus; counts and bytes, which are not kept by
            time, about the whole run.
        """
        rows = []
        for number, point in enumerate(self.points):
            time = self.total(point, "time")
            for metric in self.occurring():
                value = self.total(point, metric.name)
                rows.append(
                    {
                        "run": number, "name": point.name, "processes": point.processes, "metric": metric.name,
                        "display_name": metric.display_name, "unit": metric.unit, "value": value,
                        "per_process": value if metric.is_maximum else value / max(1, point.processes),
                        "share": value / time if metric.unit == "sec" and time else None,
                    }
                )  # fmt: skip
        schema = [("run", pa.int32()), ("name", pa.string()), ("processes", pa.int32()), ("metric", pa.string()),
                  ("display_name", pa.string()), ("unit", pa.string()), ("value", pa.float64()),
                  ("per_process", pa.float64()), ("share", pa.float64())]  # fmt: skip
        return pa.Table.from_pylist(rows, pa.schema(schema))

    def occurring(self) -> list[Metric]:
        """Return the metrics that have a value in any run, in the order of the metric tree."""
        found: dict[str, Metric] = {}
        for point in self.points:
            for metric in point.result.profile.metrics:
                if metric.name not in found and self.total(point, metric.name):
                    found[metric.name] = metric
        return list(found.values())

    def metric(self, text: str) -> Metric:
        """Return a metric by name, of those that any run computes.

        Parameters
        ----------
        text
            Its unique name or display name.

        Raises
        ------
        whywait.UsageError
            If none computes it, or the name is ambiguous.
        """
        trees = [point.result.profile.metrics for point in self.points]
        for point, tree in zip(self.points, trees, strict=True):
            if text in tree or tree.called(text):
                return tree[metric_name(tree, text, lambda name, one=point: self.total(one, name) != 0)]  # type: ignore[misc]
        hint = next(filter(None, (tree.suggestion(text) for tree in trees)), "")
        raise _native.UsageError(f"no run has a metric {text}{hint}")

    def by_callpath(self, metric: str) -> dict[str, npt.NDArray[np.float64]]:
        """Return the exclusive values of a metric at each call path, one per run, over all locations.

        Call paths belong together if their names are the same from the root down.

        Parameters
        ----------
        metric
            Its unique name.
        """
        found: dict[str, npt.NDArray[np.float64]] = {}
        for number, point in enumerate(self.points):
            profile = point.part.profile if _is_timed(point, metric) else point.result.profile
            if metric not in profile.metrics:
                continue
            values = profile.by_position(metric)
            (used,) = np.nonzero(values)
            names = profile.tree.joined.take(pa.array(profile.tree.preorder[used])).to_pylist()
            for name, value in zip(names, values[used].tolist(), strict=True):
                row = found.setdefault(name, np.zeros(len(self.points)))
                row[number] = max(row[number], value) if profile.metrics[metric].is_maximum else row[number] + value
        return found

    def models(self, metric: str = "time", *, at: int | None = None) -> pa.Table:
        """Return the scaling models of a metric, in total and for each call path.

        Parameters
        ----------
        metric
            Its name. What is modeled is its mean over the processes; of a maximum, the maximum itself.
        at
            Number of processes to predict for; None for four times that of the largest run.

        Returns
        -------
        pyarrow.Table
            ``path`` (null for the whole program; exclusive at a call path), ``model`` (as text), ``constant``,
            ``coefficient``, ``power`` and ``log_power`` (see `whywait.analysis.runs.scaling_models`), ``error`` (SMAPE
            of cross-validation), ``r2``, ``values`` (of each run, in its order), ``last`` (what the model says for the
            largest run), ``processes`` and ``predicted`` (for so many). Largest predictions first, the whole before
            them. Empty where fewer than five different numbers of processes were measured.

        Raises
        ------
        whywait.UsageError
            If no run has the metric.
        """
        name, is_maximum = self.metric(metric).name, self.metric(metric).is_maximum
        processes = np.array([point.processes for point in self.points], np.float64)
        largest = int(processes.max())
        at = at or _AHEAD * largest
        by_callpath = self.by_callpath(name)
        whole = np.array([self.total(point, name) for point in self.points])
        places = (None, *by_callpath)
        values = np.array([whole, *by_callpath.values()]) / (1.0 if is_maximum else processes)
        models = fit(processes, np.maximum(values, 0.0)) or []
        rows = [
            _row(path, model, row, largest, at) for path, model, row in zip(places, models, values, strict=False)
        ]  # fmt: skip
        rows[1:] = sorted(rows[1:], key=lambda row: (-row["predicted"], row["path"]))
        return pa.Table.from_pylist(rows, _MODELS)

    def total(self, point: Point, metric: str) -> float:
        """Return a metric of a run over all locations, in the focus as far as the metric is kept by time.

        Parameters
        ----------
        point
            The run.
        metric
            The unique name of the metric.
        """
        profile = point.part.profile if _is_timed(point, metric) else point.result.profile
        return profile.total(metric) if metric in profile.metrics else 0.0

    def baseline(self, number: int) -> int | None:
        """Return the baseline of a run: the last one before it with the same numbers of processes and threads.

        Parameters
        ----------
        number
            The place of the run in the series.
        """
        size = (self.points[number].processes, self.points[number].threads)
        before = [i for i in range(number) if (self.points[i].processes, self.points[i].threads) == size]
        return before[-1] if before else None

    def newest(self) -> Sequence[int]:
        """Return the last run of each number of processes and threads."""
        last = {(point.processes, point.threads): number for number, point in enumerate(self.points)}
        return sorted(last.values())


_MODELS = pa.schema(
    {
        "path": pa.string(), "model": pa.string(), "constant": pa.float64(), "coefficient": pa.float64(),
        "power": pa.float64(), "log_power": pa.int32(), "error": pa.float64(), "r2": pa.float64(),
        "values": pa.list_(pa.float64()), "last": pa.float64(), "processes": pa.int64(), "predicted": pa.float64(),
    }
)  # fmt: skip


def _row(
    path: str | None, model: Model, values: npt.NDArray[np.float64], largest: int, at: int
) -> dict[str, Any]:  # fmt: skip
    return {
        "path": path, "model": str(model), "constant": model.constant, "coefficient": model.coefficient,
        "power": float(model.power), "log_power": model.log_power, "error": model.error, "r2": model.r2,
        "values": values.tolist(), "last": model(largest), "processes": at, "predicted": model(at),
    }  # fmt: skip


def _point(name: str, result: ResultData, date: float | None, focus: str | None) -> Point:
    part = focused(result, focus)
    threads = int(np.count_nonzero(result.places.works))
    return Point(name, result, part, len(Processes(result, only_threads=True)), threads, date)


def _account(point: Point) -> dict[str, Any]:
    found = account(point.part.profile, point.part.charged)
    if not point.result.is_profile:
        return found
    unknown = dict.fromkeys(("waiting", "share", "wait_states"))
    return {**found, **unknown, "parts": {**found["parts"], "waiting": None, "completion": None}}


def _is_timed(point: Point, metric: str) -> bool:
    """Return whether a metric is kept by time, so that the focus has it."""
    return metric in point.part.profile.metrics
