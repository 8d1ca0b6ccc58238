"""Measure the analysis of synthetic traces: time by stage and memory, for any number of processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait._native import Error, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

#: How the work grows with the processes.
SERIES = {
    "per-rank": "the same work per process",
    "total": "the same total number of events",
}


def points(workloads: Sequence[str], ranks: Sequence[int], iterations: int) -> Iterator[dict[str, Any]]:
    """Yield what to measure.

    Parameters
    ----------
    workloads
        Names of workloads.
    ranks
        The numbers of processes.
    iterations
        Iterations of the largest run. In the series with a constant number of events, smaller runs have more.
    """
    largest = max(ranks)
    for workload in workloads:
        for series in SERIES:
            for count in sorted(ranks):
                own = iterations if series == "per-rank" else iterations * largest // count
                yield {"workload": workload, "series": series, "ranks": count, "iterations": own}


def run(
    what: Sequence[dict[str, Any]],
    *,
    seed: int,
    threads: int,
    repeat: int,
    causes: bool,
    progress: Callable[[str, float], object],
    work: float | None = None,
    imbalance: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Generate and measure everything; each trace is removed after its measurement.

    ``work`` (s) and ``imbalance`` are passed to ``whywait bench generate``; None for its defaults.

    Yields
    ------
    dict
        After each measurement, all results so far, ready for JSON: ``points``, each as in `measure`, with its
        parameters.
    """
    choices = {"cores": os.cpu_count(), "threads": threads, "seed": seed, "causes": causes}
    load = {name: value for name, value in (("work", work), ("imbalance", imbalance)) if value is not None}
    ticks = None if work is None else round(work * 1e9)
    results: list[dict[str, Any]] = []
    measured: dict[tuple[str, int, int], dict[str, Any]] = {}
    for number, point in enumerate(what):
        key = (point["workload"], point["ranks"], point["iterations"])
        if key not in measured:
            with tempfile.TemporaryDirectory(prefix="whywait-bench-") as directory:
                progress(f"{point['workload']} {point['ranks']:,}", number / len(what))
                _native.generate(
                    point["workload"],
                    directory,
                    ranks=point["ranks"],
                    iterations=point["iterations"],
                    seed=seed,
                    work=ticks,
                    imbalance=imbalance,
                )
                measured[key] = measure(directory, threads=threads, repeat=repeat, causes=causes)
        results.append({**point, **measured[key]})
        yield {"version": _native.__version__, **choices, **load, "points": results}


def measure(trace: str | Path, *, threads: int = 1, repeat: int = 3, causes: bool = True) -> dict[str, Any]:
    """Measure the analysis of a trace in separate processes, and return the run with the least processor time.

    Returns
    -------
    dict
        ``events``, ``locations``; ``stages``, the processor time of each stage (s), including opening the trace;
        ``wall``, the same in wall-clock time; ``cpu``, the processor time of everything but opening; ``peak_bytes``,
        the peak memory of the process.
    """
    command = [sys.executable, "-m", "whywait.bench.speed", str(trace), str(threads), str(int(causes))]
    runs = []
    for _ in range(repeat):
        done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
        if done.returncode:
            # The last line of a traceback names the error; a process that was killed prints nothing.
            message = done.stderr.decode(errors="replace").split("\n")[-2:][0] or f"it ended with {done.returncode}"
            raise Error(f"the analysis of {trace} failed: {message}")
        runs.append(json.loads(done.stdout))
    best: dict[str, Any] = min(runs, key=lambda run: run["cpu"])
    return best


def read(path: Path) -> dict[str, Any]:
    """Read an earlier report."""
    try:
        report: dict[str, Any] = json.loads(path.read_text())
        # A file that lacks anything that a report shows is not a report.
        markdown(report, report)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise UsageError(f"{path} is not a bench.json") from None
    return report


def _measure_here(trace: str, threads: int, *, causes: bool) -> dict[str, Any]:
    import resource

    def now() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    names, marks = ["open"], [now()]

    def entered(stage: str | None) -> None:
        marks.append(now())
        if stage:
            names.append(stage)

    run = _native.Run(trace)
    _native.measure(run, threads=threads, causes=causes, entered=entered)
    cpu, wall = (
        {name: end[clock] - begin[clock] for name, (begin, end) in zip(names, itertools.pairwise(marks), strict=True)}
        for clock in (0, 1)
    )
    info = run.info()
    return {
        "events": info["events"],
        "locations": info["locations"],
        "stages": cpu,
        "wall": wall,
        "cpu": sum(cpu.values()) - cpu["open"],
        # The fallback, in kilobytes, includes the memory of the process before it ran this program.
        "peak_bytes": _native.peak_memory() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def markdown(report: dict[str, Any], earlier: dict[str, Any] | None = None) -> str:
    """Return the report as tables, one per workload and series; with an earlier report, also the changes."""
    before = {_key(point): point for point in earlier["points"]} if earlier else {}
    lines = ["# Analysis of synthetic traces", "", f"{conditions(report)}. Processor time:"]
    lines += [
        "stages and their sum in ns per event. Small runs cost more per event: each run has a fixed cost of a few ms.",
        "",
    ]
    if earlier:
        lines += [f"Compared with an earlier run: {conditions(earlier)}.", ""]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for point in report["points"]:
        groups.setdefault((point["workload"], point["series"]), []).append(point)
    for (workload, series), group in groups.items():
        stages = list(group[-1]["stages"])
        head = ["ranks", "iterations", "events", "M events/s", *stages, "sum", "to first", "s an iteration"]
        head += ["peak MB", "B an event"]
        if before:
            head += ["sum to earlier", "peak to earlier"]
        rows = []
        for point in group:
            events = point["events"]
            row = [f"{point[name]:,}" for name in ("ranks", "iterations", "events")]
            row.append(f"{events / point['cpu'] / 1e6:.1f}")
            row += [f"{point['stages'].get(stage, 0) / events * 1e9:.1f}" for stage in stages]
            row += [f"{nanoseconds(point):.1f}", f"{nanoseconds(point) / nanoseconds(group[0]):.2f}"]
            row.append(f"{per_iteration(point):.3g}")
            row += [f"{point['peak_bytes'] / 1e6:.0f}", f"{point['peak_bytes'] / events:.1f}"]
            if old := before.get(_key(point)):
                row.append(f"{nanoseconds(point) / nanoseconds(old):.2f}")
                row.append(f"{point['peak_bytes'] / old['peak_bytes']:.2f}")
            elif before:
                row += ["", ""]
            rows.append(row)
        lines += [f"## {workload}: {SERIES[series]}", "", *_table(head, rows), ""]
    return "\n".join([*lines, *_compare_with_thesis(report)])


def conditions(report: dict[str, Any]) -> str:
    """Return the conditions of a report: version, threads, cores, and load."""
    threads = f"{report['threads']} thread{'s' if report['threads'] > 1 else ''} on {report['cores']} cores"
    load = "".join(f", {name} {report[name]:g}{unit}" for name, unit in _LOAD.items() if name in report)
    return f"whywait {report['version']}, {threads}, {'with' if report['causes'] else 'without'} causes{load}"


#: The parameters of the load in a report, and their units.
_LOAD = {"work": " s", "imbalance": ""}


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table that is also readable in a terminal."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * (width - 1) + ":" for width in widths], *rows):
        yield f"| {' | '.join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))} |"


#: Time of Scalasca's five replays per iteration (s) for 65,536 processes on as many cores: thesis, section 5.1, tables
#: A.1 to A.4, for 500 iterations.
THESIS = {"sor-p2p": 14.67 / 500, "sor-fence": 12.88 / 500, "sor-gats": 12.08 / 500, "sor-locks": 55.92 / 500}
_THESIS_RANKS = 65_536


def _compare_with_thesis(report: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the points that the thesis also measured, if any."""
    points = [p for p in report["points"] if p["ranks"] == _THESIS_RANKS and p["workload"] in THESIS]
    # The largest run is the same in both series.
    rows = [
        [name, f"{iterations:,}", f"{per_iteration(point):.3g}", f"{THESIS[name]:.3g}"]
        for (name, iterations), point in {(p["workload"], p["iterations"]): p for p in points}.items()
    ]
    if rows:
        yield from (f"## {_THESIS_RANKS:,} ranks beside the thesis", "")
        yield from _table(["workload", "iterations", "s an iteration", "thesis, on as many cores"], rows)
        yield ""


def per_iteration(point: dict[str, Any]) -> float:
    """Return the processor time per iteration of the workload, including opening the trace (s)."""
    return float(sum(point["stages"].values()) / point["iterations"])


def nanoseconds(point: dict[str, Any]) -> float:
    """Return the processor time per event, including opening the trace (ns)."""
    return float(sum(point["stages"].values()) / point["events"] * 1e9)


def _key(point: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(point[name] for name in ("workload", "series", "ranks", "iterations"))


if __name__ == "__main__":
    _trace, _threads, _causes = sys.argv[1:]
    sys.stdout.write(json.dumps(_measure_here(_trace, int(_threads), causes=_causes == "1")))
