"""Say whether a change makes the analysis slower, and which stage: compare with an earlier commit, in turns.

    python benches/guard.py [COMMIT] [--events MILLIONS] [--pairs N] [--limit PERCENT] [--json]

Builds COMMIT (default: the one before) and the working tree, both optimized, below target/guard. Then each analyzes the
same synthetic trace, in turns and in new processes, so that a noisy machine is as unfair to the one as to the other.
Stages are measured in processor time, commands by the clock. What counts is the median of the ratios of neighbors;
beside it stands the range that half of them lie in. A row is marked if all of that range is above the limit, and the
exit code is then 1; stages of less than a twentieth of the analysis are not judged. otf2-print --silent, which only
reads, is measured in the same turns where there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "target" / "guard"


def say(text: str) -> None:
    """Tell the person who waits."""
    print(text, file=sys.stderr, flush=True)


def built(name: str, source: Path) -> Path:
    """Build the native module of a source tree; return a directory to import the package from."""
    say(f"build {name}")
    target = BUILT / "build"
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "whywait-python"]
    subprocess.run(command, cwd=source, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    package = BUILT / name / "whywait"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(source / "python" / "whywait", package, ignore=shutil.ignore_patterns("_native*.so"))
    (library,) = (target / "release").glob("*_native.so")
    shutil.copy(library, package / "_native.abi3.so")
    return package.parent


def checked_out(commit: str) -> Path:
    """Return a source tree of a commit."""
    tree = BUILT / "source"
    if not tree.exists():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        command = ["git", "worktree", "add", "--quiet", "--detach", str(tree), commit]
        subprocess.run(command, cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=tree, check=True)
    return tree


def stages(package: Path, trace: Path, threads: int) -> dict[str, float]:
    """Measure one analysis: seconds of each stage, of all, and MiB."""
    # Earlier commits have it under its old name.
    module = "whywait.bench.speed" if (package / "whywait/bench/speed.py").exists() else "whywait.benchmark"
    command = [sys.executable, "-m", module, str(trace), str(threads), "1"]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    found = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    return {**found["stages"], "analysis": found["cpu"], "memory, MiB": found["peak_bytes"] / 2**20}


def clock(command: list[str], package: Path | None = None) -> float:
    """Run a command; return how long it takes by the clock, in seconds."""
    environment = {**os.environ, "PYTHONPATH": str(package)} if package else None
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begin


def measured(package: Path, trace: Path, threads: int, output: Path) -> dict[str, float]:
    """Measure the analysis, and the command with all that it writes."""
    found = stages(package, trace, threads)
    shutil.rmtree(output, ignore_errors=True)
    analyze = [sys.executable, "-m", "whywait", "analyze", str(trace), "-o", str(output), "--threads", str(threads)]
    return {**found, "whywait analyze": clock(analyze, package)}


def compared(before: list[dict[str, float]], now: list[dict[str, float]], limit: float) -> list[dict[str, Any]]:
    """Compare what was measured in turns, one row for each thing."""
    rows = []
    whole = statistics.median(new["analysis"] for new in now)
    for name in (name for name in now[0] if name in before[0]):
        ratios = [new[name] / old[name] for old, new in zip(before, now, strict=True) if old[name] > 0]
        if not ratios:
            continue
        takes = statistics.median(new[name] for new in now)
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        rows.append(
            {
                "what": name,
                "before": statistics.median(old[name] for old in before),
                "now": takes,
                "ratio": middle,
                "range": [low, high],
                "slower": low > 1 + limit and takes > whole / 20,
            }
        )
    return rows


def main() -> int:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="what to compare with (default: %(default)s)")
    parser.add_argument("--workload", default="sor-gats", help="of `whywait bench generate` (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=8, help="its processes (default: %(default)s)")
    parser.add_argument("--events", type=float, default=5, metavar="MILLIONS", help="its size (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of the analysis (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=9, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=3, metavar="PERCENT", help="what may be (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()

    commit = subprocess.run(
        ["git", "rev-parse", "--short", options.commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    packages = {"before": built("before", checked_out(commit)), "now": built("now", ROOT)}

    # A rank of the smallest workload writes 34 events in an iteration.
    iterations = max(1, round(options.events * 1e6 / (34 * options.ranks)))
    directory = BUILT / f"{options.workload}-{options.ranks}-{iterations}"
    if not (directory / "traces.otf2").exists():
        say(f"generate {directory.name}")
        shutil.rmtree(directory, ignore_errors=True)
        generate = [sys.executable, "-m", "whywait", "bench", "generate", options.workload, "-o", str(directory)]
        generate += ["--ranks", str(options.ranks), "--iterations", str(iterations)]
        clock(generate, packages["now"])
    trace = directory / "traces.otf2"

    found: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    official: list[float] = []
    for turn in range(options.pairs):
        say(f"pair {turn + 1} of {options.pairs}")
        # Who comes first changes: what the one leaves in the caches is the gain of the other.
        for name in list(found)[:: -1 if turn % 2 else 1]:
            found[name].append(measured(packages[name], trace, options.threads, BUILT / "results"))
        if shutil.which("otf2-print"):
            official.append(clock(["otf2-print", "--silent", str(trace)]))
    shutil.rmtree(BUILT / "results", ignore_errors=True)

    rows = compared(found["before"], found["now"], options.limit / 100)
    reading = statistics.median(official) if official else None
    if options.json:
        print(json.dumps({"commit": commit, "trace": directory.name, "otf2_print": reading, "rows": rows}, indent=1))
    else:
        print(f"{directory.name}, {options.threads} thread(s): {commit} -> working tree")
        for row in rows:
            low, high = row["range"]
            mark = "  slower" if row["slower"] else ""
            print(f"  {row['what']:<16} {row['before']:9.3f} -> {row['now']:9.3f}  x{row['ratio']:.3f}"
                  f"  ({low:.3f} to {high:.3f}){mark}")  # fmt: skip
        if reading:
            command = next(row["now"] for row in rows if row["what"] == "whywait analyze")
            print(
                f"  otf2-print --silent takes {reading:.3f} s: whywait analyze takes {command / reading:.2f} times that"
            )
    return int(any(row["slower"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
