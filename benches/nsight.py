"""Compare how fast an export of Nsight Systems is read with SQLite itself, and print a table.

    python benches/nsight.py [FILE.sqlite] [--repeat N] [--rows MILLIONS]

Without a file, one is made with as many rows as asked for: ranges, calls of CUDA, and kernels, a third each. SQLite
only adds up the columns that whywait keeps. Each reads the file in a process of its own, in turns; the least processor
time counts.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

# Each reads the file whose path is its argument, and prints processor seconds and peak memory in MB beyond its imports.
MEASURED = """
import resource, sys
{imports}
def now():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def memory():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) / 1e3
path, before, start = sys.argv[1], memory(), now()
{body}
print(now() - start, memory() - before)
"""

WANTED = {
    "NVTX_EVENTS": "start, end, globalTid, eventType, domainId, textId, text",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId, eventClass",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, globalPid, correlationId, deviceId, contextId, streamId, shortName",
}
SUMS = [
    f"SELECT {', '.join(f'total({column})' for column in columns.split(', '))} FROM {table}"
    for table, columns in WANTED.items()
]
TOOLS = {
    "whywait, ranks and all their events": ("from whywait import _native", "kept = _native.Run(path)"),
    "SQLite, totals": (
        "import sqlite3",
        f"base = sqlite3.connect(path)\nfor query in {SUMS!r}:\n    base.execute(query).fetchall()",
    ),
}
TABLES = {
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER, "
    "text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER, "
    "launchType INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, "
    "blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, gridId INTEGER",
}
PROCESS = 1 << 48 | 100 << 24
THREAD = PROCESS + 101


def made(target: Path, rows: int) -> None:
    """Write an export with about as many rows."""
    count = rows // 3
    names = ((number, f"name {number}") for number in range(200))
    ranges = ((i * 10_000, i * 10_000 + 8_000, THREAD, i % 100) for i in range(count))
    calls = ((i * 10_000 + 1_000, i * 10_000 + 4_000, THREAD, i + 1, 100 + i % 5) for i in range(count))
    kernels = ((i * 10_000 + 5_000, i * 10_000 + 9_000, i + 1, PROCESS, 110 + i % 80, i) for i in range(count))
    with closing(sqlite3.connect(target)) as base:
        base.execute("PRAGMA synchronous=off")
        for table, columns in TABLES.items():
            base.execute(f"CREATE TABLE {table} ({columns})")
        base.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790000000000000000, '', '')")
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 0, 0, 0, NULL, ?, NULL, ?, 0, NULL)", ranges)
        base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0, NULL)", calls)
        work = "(?1, ?2, 0, 1, 7, ?3, ?4, ?5, ?5, ?5, 1, 32, 64, 1, 1, 256, 1, 1, 0, 1024, ?6)"
        base.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {work}", kernels)
        base.commit()


def measured(name: str, path: Path) -> tuple[float, float]:
    """Return processor seconds and memory in MB of one reading."""
    imports, body = TOOLS[name]
    script = MEASURED.format(imports=imports, body=body)
    found = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
    seconds, memory = map(float, found.stdout.split()[-2:])
    return seconds, memory


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rows", type=float, default=0.3, help="millions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = given.file or Path(directory) / "report.sqlite"
        if given.file is None:
            made(path, int(given.rows * 1e6))
            print(f"{path.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
        best: dict[str, tuple[float, float]] = {}
        for _ in range(given.repeat):
            for name in TOOLS:
                found = measured(name, path)
                best[name] = min(found, best.get(name, found))
    print("| | processor time, s | memory, MB |\n| --- | ---: | ---: |")
    for name, (seconds, memory) in best.items():
        print(f"| {name} | {seconds:.3f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
