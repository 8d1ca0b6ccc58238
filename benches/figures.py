"""Measure what is promised of speed and memory, on synthetic traces, and print a table.

    python benches/figures.py [--events MILLIONS] [--repeat N] [--traces DIR]

All figures are ratios, or processor time and memory for a unit of work; what is compared is measured in turns, and the
best of several runs counts. Without otf2-print, the otf2 package, or mpiexec and mpi4py the comparison with it is left
out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from whywait import _native
from whywait.bench.speed import measure, nanoseconds

# Reads all events as the official documentation says one should.
OFFICIAL = """
import sys, time, otf2
begin = time.process_time()
with otf2.reader.open(sys.argv[1]) as trace:
    count = sum(1 for _ in trace.events)
print(count / (time.process_time() - begin))
"""


class Figures:
    """The traces, and what was measured on them."""

    def __init__(self, directory: Path, events: int, repeat: int) -> None:
        self.directory, self.events, self.repeat = directory, events, repeat
        self.rows: list[tuple[str, str, str, bool]] = []
        self.data: dict[str, Any] = {}

    def trace(self, workload: str, ranks: int, iterations: int, **team: int) -> Path:
        """Return a trace, which is generated unless it is there; `team` are `threads` and `window`."""
        path = self.directory / "-".join(map(str, (workload, ranks, iterations, *team.values())))
        if not (path / "traces.otf2").exists():
            self.say(f"generate {path.name}")
            shutil.rmtree(path, ignore_errors=True)
            _native.generate(workload, path, ranks=ranks, iterations=iterations, seed=1, **team)
        return path

    def large(self, workload: str, ranks: int) -> Path:
        """Return a trace with about as many events as asked for."""
        # A rank of the smallest workload writes that many in an iteration.
        return self.trace(workload, ranks, max(1, self.events // (34 * ranks)))

    def measure(
        self, trace: Path, *, threads: int = 1, causes: bool = False, repeat: int | None = None
    ) -> dict[str, Any]:
        """Measure the analysis of a trace."""
        self.say(f"analyze {trace.name} on {threads} thread(s)")
        found = measure(trace, threads=threads, causes=causes, repeat=repeat or self.repeat)
        self.data.setdefault(trace.name, []).append({"threads": threads, "causes": causes, **found})
        return found

    def row(self, what: str, value: float, unit: str, goal: str, *, met: bool) -> None:
        """Add a row to the table."""
        self.rows.append((what, f"{value:.3g} {unit}".strip(), goal, met))
        self.say(f"{what}: {value:.3g} {unit}")

    @staticmethod
    def say(text: str) -> None:
        """Tell the person who waits."""
        print(text, file=sys.stderr, flush=True)

    def markdown(self) -> str:
        """Return the table."""
        lines = ["| figure | measured | promised | |", "| --- | ---: | ---: | --- |"]
        lines += [
            f"| {what} | {value} | {goal} | {'met' if met else 'missed'} |" for what, value, goal, met in self.rows
        ]
        return "\n".join(lines)


def processor_time(command: list[str]) -> float:
    """Run a command and return the processor time it takes, user and system, in seconds."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def decoding(figures: Figures) -> None:
    """Compare the reader with the official ones, and one thread with two."""
    trace = figures.large("sor-p2p", 64)
    ours, theirs = [], []
    for _ in range(figures.repeat):
        found = figures.measure(trace, repeat=1)
        ours.append(found["events"] / found["stages"]["decode"])
        if shutil.which("otf2-print"):
            theirs.append(found["events"] / processor_time(["otf2-print", "--silent", str(trace / "traces.otf2")]))
    figures.row("decode to columns, one core", max(ours) / 1e6, "M events/s", ">= 80", met=max(ours) >= 80e6)
    if theirs:
        ratio = max(ours) / max(theirs)
        figures.row("decode, over otf2-print --silent", ratio, "times", ">= 3.5", met=ratio >= 3.5)
    small = figures.trace("sor-p2p", 16, 200)
    command = [sys.executable, "-c", OFFICIAL, str(small / "traces.otf2")]
    official = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if official.returncode == 0:
        ratio = max(ours) / float(official.stdout)
        figures.row("decode, over the otf2 package", ratio, "times", ">= 300", met=ratio >= 300)
    if (os.cpu_count() or 1) > 1:
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(figures.repeat):
            for threads, times in seconds.items():
                times.append(figures.measure(trace, threads=threads, repeat=1)["wall"]["decode"])
        ratio = min(seconds[1]) / min(seconds[2])
        figures.row("decode, two threads over one (by the clock)", ratio, "times", ">= 1.8", met=ratio >= 1.8)


def speed(figures: Figures) -> None:
    """Measure whole analyses: speed, memory, and how much dearer one-sided communication is."""
    p2p = figures.measure(figures.large("sor-p2p", 64))
    rate = p2p["events"] / p2p["cpu"] / 1e6
    figures.row("analysis without causes, sor-p2p", rate, "M events/s", ">= 20", met=rate >= 20)
    for workload, goal in (("sor-p2p", 10), ("sor-gats", 10), ("sor-fence", 10), ("sor-locks", 5)):
        trace = figures.large(workload, 64)
        found = figures.measure(trace)
        size = (found["peak_bytes"] - 200e6) / found["events"]
        figures.row(f"memory beyond 200 MB, {workload}", size, "B an event", "<= 24", met=size <= 24)
        if workload != "sor-p2p":
            ratio = nanoseconds(found) / nanoseconds(p2p)
            figures.row(f"an event of {workload} over one of sor-p2p", ratio, "times", "<= 2", met=ratio <= 2)
        found = figures.measure(trace, causes=True)
        rate = found["events"] / found["cpu"] / 1e6
        figures.row(f"analysis with causes, {workload}", rate, "M events/s", f">= {goal}", met=rate >= goal)
        size = (found["peak_bytes"] - 200e6) / found["events"]
        figures.row(f"the same, memory beyond 200 MB, {workload}", size, "B an event", "<= 24", met=size <= 24)


def locations(figures: Figures) -> None:
    """Measure what a location costs beyond its events."""
    many, few = (figures.measure(figures.trace("sor-p2p", ranks, 65_536 // ranks)) for ranks in (65_536, 64))

    def beyond(*stages: str) -> float:
        cost = {id(run): sum(run["stages"].get(stage, 0) for stage in stages) for run in (many, few)}
        return (cost[id(many)] - cost[id(few)] * many["events"] / few["events"]) / 65_536 * 1e6

    cost = beyond("open", "decode")
    figures.row("open, read and set up a location", cost, "us", "<= 40", met=cost <= 40)
    cost = beyond("messages", "collectives", "one-sided", "profile")
    figures.row("the same, later stages", cost, "us", "", met=True)
    few, many = (figures.measure(figures.trace("sor-p2p", ranks, 500_000 // ranks)) for ranks in (10, 10_000))
    after = [
        sum(time for stage, time in run["stages"].items() if stage not in {"open", "decode"}) / run["events"]
        for run in (few, many)
    ]
    ratio = after[1] / after[0]
    figures.row("analysis after decoding, 10,000 locations over 10", ratio, "times", "~ 1", met=ratio <= 1.15)


def contention(figures: Figures) -> None:
    """Measure how one contended target grows."""
    some, all_ = (figures.measure(figures.trace("contention", 1_001, epochs)) for epochs in (100, 1_000))
    ratio = nanoseconds(all_) / nanoseconds(some)
    figures.row("1,000 x 1,000 lock epochs over 1,000 x 100, an event", ratio, "times", "<= 1.3", met=ratio <= 1.3)
    size = (all_["peak_bytes"] - 200e6) / all_["events"]
    figures.row("memory beyond 200 MB of these", size, "B an event", "linear", met=size <= 100)


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description="Measure what is promised of speed and memory.")
    parser.add_argument("--events", type=int, default=20, metavar="MILLIONS", help="size of the large traces")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of which the best counts")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="where to keep the traces (default: nowhere)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write everything that was measured")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whywait-figures-") as scratch:
        figures = Figures(options.traces or Path(scratch), options.events * 1_000_000, options.repeat)
        for part in options.only:
            PARTS[part](figures)
    print(figures.markdown())
    if options.json:
        options.json.write_text(json.dumps(figures.data, indent=1) + "\n")


# Analyses a run with all processes of mpiexec; the first says how long it took by the clock.
TOGETHER = """
import sys, time, whywait
run = whywait.open(sys.argv[1])
begin = time.perf_counter()
if whywait.analyze(run, threads=1).is_root:
    print(time.perf_counter() - begin)
"""


def threads(figures: Figures) -> None:
    """Measure traces in which every second record is one of a lock, and every third one of a task."""
    for workload, events in (("omp-locks", 4), ("omp-tasks", 9)):
        few, many = (
            figures.measure(
                figures.trace(
                    workload, 2, max(1, figures.events // (2 * events * 2048)), threads=team, window=2048 // team
                ),
                causes=True,
            )
            for team in (8, 256)
        )
        rate = few["events"] / few["cpu"] / 1e6
        figures.row(f"analysis with causes, {workload}", rate, "M events/s", ">= 5", met=rate >= 5)
        ratio = nanoseconds(many) / nanoseconds(few)
        figures.row("the same, 256 threads over 8, an event", ratio, "times", "<= 1.15", met=ratio <= 1.15)


def processes(figures: Figures) -> None:
    """Compare two processes under mpiexec with one."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None or importlib.util.find_spec("mpi4py") is None:
        figures.say("no mpiexec or no mpi4py: nothing to compare processes with")
        return
    for workload in ("sor-p2p", "sor-gats"):
        trace = figures.large(workload, 4096)
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(figures.repeat):
            for count, taken in times.items():
                figures.say(f"analyze {trace.name} in {count} process(es)")
                command = [mpiexec, "-n", str(count), sys.executable, "-c", TOGETHER, str(trace)]
                taken.append(float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
        one, two = (min(taken) for taken in times.values())
        figures.data.setdefault(trace.name, []).append({"processes": {"1": one, "2": two}})
        figures.row(f"{workload}, one process (by the clock)", one, "s", ">= 10 to judge", met=one >= 10)
        figures.row("the same, one process over two", one / two, "times", ">= 1.7", met=one / two >= 1.7)


PARTS = {
    "decoding": decoding,
    "speed": speed,
    "locations": locations,
    "contention": contention,
    "threads": threads,
    "processes": processes,
}

if __name__ == "__main__":
    main()
