"""Measure how fast a Paraver trace is read, and in how much memory, and print a table.

    python benches/paraver.py [FILE.prv] [--repeat N] [--megabytes N]

Without a file, one is made: ranks that exchange messages with their neighbors, compute, and meet in a collective call,
without counters. Each reading has a process of its own, with one thread and with two; the least processor time counts.
Use a native module that is optimized.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RANKS = 16

# Prints processor seconds, and memory beyond imports in MB: the peak, and what is kept.
MEASURED = """
import resource, sys
from whywait import _native
def now():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def memory(what):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(what))) / 1e3
before, start = memory("VmRSS"), now()
kept = _native.Run(sys.argv[1])
print(now() - start, memory("VmHWM") - before, memory("VmRSS") - before)
"""


def exchange(begin: int) -> list[tuple[int, str]]:
    """Return the records of an iteration, by time."""
    records = []
    for rank in range(RANKS):
        here, there = f"{rank + 1}:1:{rank + 1}:1", f"{(rank + 1) % RANKS + 1}:1:{(rank + 1) % RANKS + 1}:1"
        at = begin + 37 * rank
        times = [at, at + 900, at + 1100, at + 2000, at + 2400, at + 90_000, at + 99_000]
        calls = [(50000001, 4, 11), None, (50000001, 3, 10), (50000001, 6, 8), None, (50000002, 10, 13)]
        for now, after, call in zip(times, times[1:], calls, strict=False):
            kind, value, state = call or (0, 0, 1)
            records.append((now, f"1:{here}:{now}:{after}:{state}"))
            if call:
                sizes = ":50100001:8:50100002:8:50100004:1" if kind == 50000002 else ""
                records.append((now, f"2:{here}:{now}:{kind}:{value}{sizes}:70000001:{value + 2}:80000001:{value}"))
                records.append((after, f"2:{here}:{after}:{kind}:0"))
        posted = begin + 37 * ((rank + 1) % RANKS)
        ends = f"{times[2]}:{times[3]}:{there}:{posted + 900}:{posted + 2400}"
        records.append((times[3], f"3:{here}:{ends}:4096:7"))
    return sorted(records)


def made(target: Path, size: int) -> None:
    """Write a trace of about as many bytes."""
    count = max(1, size // sum(len(line) + 1 for _, line in exchange(0)))
    tasks = ",".join("1:1" for _ in range(RANKS))
    with target.open("w") as file:
        file.write(f"#Paraver (28/11/2026 at 20:00):{count * 100_000}_ns:1({RANKS}):1:{RANKS}({tasks}),1\n")
        file.write(f"c:1:1:{RANKS}:{':'.join(str(rank + 1) for rank in range(RANKS))}\n")
        for number in range(count):
            file.writelines(f"{line}\n" for _, line in exchange(number * 100_000))


def measured(path: Path, threads: int) -> tuple[float, ...]:
    """Return processor seconds, and peak and kept memory in MB, of one reading."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", MEASURED, str(path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return tuple(map(float, found.stdout.split()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = given.file or Path(directory) / "run.prv"
        if given.file is None:
            made(path, given.megabytes * 10**6)
        size = path.stat().st_size / 1e6
        print(f"| {size:.0f} MB | processor time, s | MB a second | peak, bytes a byte | kept |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for threads in (1, 2):
            time, peak, kept = min(measured(path, threads) for _ in range(given.repeat))
            print(f"| {threads} threads | {time:.2f} | {size / time:.0f} | {peak / size:.2f} | {kept / size:.2f} |")


if __name__ == "__main__":
    main()
