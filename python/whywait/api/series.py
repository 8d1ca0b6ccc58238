"""Many runs of a program: a scaling study, or the history of a code.

>>> import whywait
>>> study = whywait.series(["tests/data/sor_p2p", "tests/data/sor_fence"], names=["messages", "fences"])
>>> study
<whywait.Series of 2 runs: messages, fences>
>>> [round(row["parallel_efficiency"].value, 2) for row in study.efficiencies()]
[0.69, 0.68]
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.runs.series import Over, SeriesData
from whywait.api.load import as_result, can_load
from whywait.api.result import Result
from whywait.model.names import GENERIC
from whywait.store.files import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from whywait.analysis.efficiency.efficiency import Scaling
    from whywait.analysis.runs.threshold import Threshold


class Series(SeriesData):
    """Runs in order, with their efficiencies, metrics and scaling models, as returned by `whywait.series`."""

    def exceeded(self, limits: Iterable[Threshold]) -> list[dict[str, str]]:
        """Return which limits the newest runs exceed.

        The newest run of each number of processes and threads is compared with the one before it.

        Parameters
        ----------
        limits
            The maximum growth of metrics, see `whywait.Threshold`.

        Returns
        -------
        list of dict
            ``run`` and ``baseline`` (names of runs) and ``limit`` for each exceeded limit.

        Raises
        ------
        whywait.UsageError
            If no two runs have the same number of processes and threads, or no run has the metric of a limit.
        """
        pairs = [(number, self.baseline(number)) for number in self.newest()]
        compared = [(self.points[number], self.points[before]) for number, before in pairs if before is not None]
        if not compared:
            raise _native.UsageError(
                "no two runs have the same number of processes and threads, so there is nothing to compare"
            )
        return [
            {"run": run.name, "baseline": baseline.name, "limit": limit.text}
            for limit in limits
            for run, baseline in compared
            if limit.exceeded(baseline.result, run.result)
        ]

    def summary(self) -> dict[str, Any]:
        """Return the output of ``whywait series --json``: runs, efficiencies, accounts and metrics, as plain data."""
        runs = [
            {
                "name": point.name, "processes": point.processes, "threads": point.threads, "date": point.date,
                "focus": {"name": point.part.focus.name, "window": point.part.focus.window,
                          "callpath": point.part.focus.callpath},
                "account": account, "efficiencies": row.as_dict()["efficiencies"],
            }
            for point, account, row in zip(self.points, self.accounts(), self.efficiencies(), strict=True)
        ]  # fmt: skip
        return {
            "over": self.over,
            "scaling": self.mode,
            "detected": self.detected._asdict(),
            "runs": runs,
            "metrics": self.metrics().to_pylist(),
        }

    def badge(self) -> str:
        """Return a badge (SVG) with the parallel efficiency of the last run."""
        from whywait.report.badge import badge

        return badge(self)

    def write_html(self, path: str | PathLike[str], *, limits: Iterable[Threshold] = (), at: int | None = None) -> None:
        """Write the series as one HTML file, to explore in a browser without network access.

        Parameters
        ----------
        path
            The file. It is replaced if it exists.
        limits
            Limits to check, as for `exceeded`; the page shows whether they are exceeded.
        at
            The number of processes for which scaling models predict, as for `models`.
        """
        from whywait.report.html.series import write_series
        from whywait.store.staging import Staging

        limits = list(limits)
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        gate = {"limits": [limit.text for limit in limits], "failed": self.exceeded(limits)} if limits else None
        with Staging(target.parent) as staging:
            write_series(self, staging.path(target.name), gate=gate, at=at)

    def __repr__(self) -> str:
        names = [point.name for point in self.points]
        shown = ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])
        return f"<whywait.Series of {len(names)} run{'' if len(names) == 1 else 's'}: {shown}>"


def series(
    runs: Sequence[Result | str | PathLike[str]],
    *,
    names: Sequence[str] | None = None,
    over: Over | None = None,
    focus: str | None = None,
    scaling: Scaling | None = None,
    clocks: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], object] | None = None,
    load: Callable[[Path], Result] | None = None,
) -> Series:
    """Compare many runs of a program.

    Parameters
    ----------
    runs
        Results, directories of written results, Score-P profiles, or traces, which are analyzed. Any other directory
        stands for the runs in it (`find_runs`).
    names
        The names of the runs; None for the names of their directories.
    over
        How to order the runs: by number of ``"processes"``, by ``"date"`` of the recording, or in the given
        ``"order"``. None orders by processes if their numbers differ, otherwise keeps the order. If a trace has no
        date, that of its file is used.
    focus
        The part of each run to evaluate: ``"all"`` for whole runs, or a call path, including its callees; by default
        the time between start-up and shutdown.
    scaling
        Whether the work is the same in all runs (``"strong"``) or for all processes (``"weak"``). None to find out from
        how the total computation, or the number of instructions, grows with the number of locations; if it shows
        neither, runs are compared by their speed-up only.
    clocks
        How to correct the clocks of traces: the arguments ``clocks``, ``clock_domain`` and ``min_latency`` of
        `whywait.analyze`.
    progress
        As for `whywait.analyze`.
    load
        How to read or analyze the run at a path; None for `whywait.load` or `whywait.analyze` as they are.

    Returns
    -------
    Series
        The runs in order, with their efficiencies, metrics and scaling models.

    Raises
    ------
    whywait.UsageError
        If there is no run, a name is missing, or a run has no such call path.
    whywait.Error, OSError
        As for `whywait.load` and `whywait.analyze`.
    """
    found: list[tuple[Path | None, Result]] = []
    for run in runs:
        if isinstance(run, Result):
            found.append((None, run))
            continue
        inside = find_runs(run)
        for path in inside:
            result = load(path) if load else as_result(path, clocks=clocks, progress=progress)
            found.append((path, result))
    if names is not None and len(names) != len(found):
        raise _native.UsageError(f"there are {len(found)} runs and {len(names)} names")
    called = list(names) if names is not None else _names([(path, result.run.name) for path, result in found])
    dated = [
        (name, result, _date(path, result)) for name, (path, result) in zip(called, found, strict=True)
    ]  # fmt: skip
    return Series(dated, over, focus, scaling)


def find_runs(path: str | PathLike[str]) -> list[Path]:
    """Return the runs at a path.

    This is the path itself if it is a result or a trace. For any other directory, it is the runs in that directory,
    sorted by name.

    Parameters
    ----------
    path
        The path.
    """
    place = Path(path)
    if not place.is_dir() or _is_run(place):
        return [place]
    inside = [below for below in place.iterdir() if below.is_dir() and _is_run(below)]
    return sorted(inside, key=lambda below: _natural(below.name)) or [place]


def _is_run(directory: Path) -> bool:
    return can_load(directory) or _native.source_of(directory) is not None


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which run-4 comes before run-16."""
    import re

    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def _names(runs: list[tuple[Path | None, str]]) -> list[str]:
    """Call each run by its directory; where several are called the same, with the directory above it."""
    places, everything = [], []
    for path, name in runs:
        if path is None:
            places.append([name])
            continue
        place = path.resolve()
        parts = place.parts if place.is_dir() else (*place.parent.parts, place.stem)
        places.append([part for part in parts[1:] if part not in GENERIC] or [name])
        everything.append(list(parts[1:]))
    if len({tuple(parts) for parts in places}) < len(places) == len(everything):
        places = everything
    length = 1
    longest = max((len(parts) for parts in places), default=1)
    while length < longest and len({tuple(parts[-length:]) for parts in places}) < len(places):
        length += 1
    return ["/".join(parts[-length:]) for parts in places]


def _date(path: Path | None, result: Result) -> float | None:
    """Return when a run was recorded, according to the trace or else its file."""
    try:
        clock = result.run.definitions["ClockProperties"]
        stamp = clock["realtime_timestamp"][0].as_py()
        if stamp is not None and 0 < stamp < 2**63:
            return float(stamp) / 1e9
    except (KeyError, IndexError, OSError, _native.Error):
        pass
    files = [result.run.path, *([path / MANIFEST] if path is not None else [])]
    dates = [file.stat().st_mtime for file in files if file.is_file()]
    return dates[0] if dates else None
