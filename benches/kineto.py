"""Compare how fast traces of PyTorch's profiler are read with other tools, and print a table.

    python benches/kineto.py [FILE.pt.trace.json[.gz]] [--repeat N] [--events MILLIONS]

Without a file, one is made of those in ``tests/data/kineto``, with as many events as asked for. The other tools are
measured where they are installed (``pip install HolisticTraceAnalysis orjson``; TraceLens is not on PyPI, and the
package of that name is another); ``--python`` names the interpreter that has them. Each reads the same file in a
process of its own, in turns; the least processor time counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "tests" / "data" / "kineto"

# Each reads the file whose path is its argument, and prints processor seconds and peak memory in MB beyond its imports.
MEASURED = """
import resource, sys, time
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

TOOLS = {
    "whywait": ("from whywait import _native", "kept = _native.Run(path)"),
    "Holistic Trace Analysis, `parse_traces`": (
        "from hta.common.trace import Trace; from pathlib import Path",
        "kept = Trace({0: path}, str(Path(path).parent)); kept.parse_traces(max_ranks=1, use_multiprocessing=False)",
    ),
    # What TraceLens' `load_data` does first.
    "orjson, objects only": (
        "import gzip, orjson",
        "kept = orjson.loads((gzip.open if path.endswith('.gz') else open)(path, 'rb').read())",
    ),
    "TraceLens, `load_data`": ("from TraceLens.util import DataLoader", "kept = DataLoader.load_data(path)"),
}


def tiled(target: Path, events: int) -> int:
    """Write a trace with about as many events, those of a small one again and again; return how many there are."""
    source = DATA / "chain" / "traces" / "rank0.pt.trace.json.gz"
    trace: dict[str, Any] = json.loads(gzip.decompress(source.read_bytes()))
    body = [event for event in trace.pop("traceEvents") if event["ph"] == "X"]
    first = min(event["ts"] for event in body)
    length = max(event["ts"] + event["dur"] for event in body) - first
    count = 0
    with gzip.open(target, "wt", compresslevel=6) as file:
        file.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        for copy in range(-(-events // len(body))):
            for event in body:
                args = dict(event["args"])
                if args.get("correlation"):
                    args["correlation"] += copy * 10_000
                if "Seq" in args:
                    args["Seq"] += copy * 1000
                    args.pop("Comms Id", None)
                moved = {**event, "ts": round(event["ts"] + copy * length, 3), "args": args}
                file.write((",\n" if count else "") + json.dumps(moved))
                count += 1
        file.write("\n]}\n")
    return count


def measured(python: str, name: str, path: Path) -> tuple[float, float] | None:
    """Return processor seconds and memory in MB of one reading; None if the tool is not installed or fails."""
    imports, body = TOOLS[name]
    script = MEASURED.format(imports=imports, body=body)
    found = subprocess.run([python, "-c", script, str(path)], check=False, capture_output=True, text=True)
    if found.returncode:
        print(f"{name}: {found.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    seconds, memory = map(float, found.stdout.split()[-2:])
    return seconds, memory


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--events", type=float, default=0.2, help="millions")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the other tools")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = given.file or Path(directory) / "rank0.pt.trace.json.gz"
        if given.file is None:
            print(
                f"{tiled(path, int(given.events * 1e6)):,} events, {path.stat().st_size / 1e6:.1f} MB", file=sys.stderr
            )
        best: dict[str, tuple[float, float]] = {}
        for _ in range(given.repeat):
            for name in TOOLS:
                python = sys.executable if name == "whywait" else given.python
                if (found := measured(python, name, path)) is not None:
                    best[name] = min(found, best.get(name, found))
    own = best["whywait"][0]
    print("| | processor time, s | times ours | memory, MB |\n| --- | ---: | ---: | ---: |")
    for name, (seconds, memory) in best.items():
        print(f"| {name} | {seconds:.3f} | {seconds / own:.1f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
