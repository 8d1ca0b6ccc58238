"""Compare `whywait whatif --only-time` with a replay of the same communication by SimGrid.

    python benches/simgrid.py [--ranks 64] [--iterations 100] [--repeat 3] [--directory DIR]

The trace is the workload sor-p2p: a stencil with Isend, Irecv and Waitall, and an Allreduce an iteration. SimGrid gets
it as time-independent traces (smpirun -replay, Debian's package libsimgrid-dev): what lies between two calls as a
computation of as many flops as it took nanoseconds, on hosts of 1 Gflop/s in a cluster with a backbone. Both change the
same thing, nothing; both times are processor time, of all threads. That of whywait is with reading and analyzing the
archive first, and without that; SimGrid's is with reading its traces, and without generating them.

What this does not compare is what comes out: SimGrid computes how long messages take from a model of the network,
whywait takes that from the trace.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import whywait
from whywait import _native

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{last}" speed="1Gf" bw="10GBps" lat="1us"
           bb_bw="100GBps" bb_lat="500ns"/>
</platform>
"""


def convert(run: whywait.Run, directory: Path) -> int:
    """Write a run as time-independent traces; return how many actions they have."""
    files, count = [], 0
    resolution = run.definitions["ClockProperties"]["timer_resolution"][0].as_py()
    names = dict(zip(*(run.definitions["Region"][column].to_pylist() for column in ("id", "name")), strict=True))
    for rank in range(len(run.definitions["Location"])):
        lines = actions(rank, run.events(rank).to_pylist(), names, 1e9 / resolution)
        count += len(lines)
        path = directory / f"{rank}.txt"
        path.write_text("\n".join(lines) + "\n")
        files.append(path.name)
    (directory / "index").write_text("\n".join(files) + "\n")
    return count


def actions(rank: int, events: list[dict], names: dict[int, str], nanoseconds: float) -> list[str]:
    """Return what a rank does. From whom a receive comes is only known at its end: so ends are read first."""
    sources = {event["request_id"]: event for event in events if event["type"] == "MpiIrecv"}
    lines, left, pending, depth = [f"{rank} init"], None, 0, 0
    for event in events:
        kind = event["type"]
        if kind in ("Enter", "Leave"):
            name = names[event["region"]]
            is_call = name.startswith("MPI_")
            depth += is_call * (1 if kind == "Enter" else -1)
            if kind == "Enter" and is_call:
                if left is not None and event["time"] > left:
                    lines.append(f"{rank} compute {round((event['time'] - left) * nanoseconds)}")
                if name == "MPI_Allreduce":
                    lines.append(f"{rank} allreduce 1 0")
                elif name == "MPI_Waitall":
                    lines.append(f"{rank} waitall {pending}")
                    pending = 0
            if left is None or (is_call and depth == 0):
                left = event["time"]
        elif kind == "MpiIsend":
            lines.append(f"{rank} isend {event['receiver']} {event['msg_tag']} {event['msg_length']} 6")
            pending += 1
        elif kind == "MpiIrecvRequest":
            source = sources[event["request_id"]]
            lines.append(f"{rank} irecv {source['sender']} {source['msg_tag']} {source['msg_length']} 6")
            pending += 1
    return [*lines, f"{rank} finalize"]


def processor_time(command: list[str]) -> float:
    """Run a command; return its processor time, user and system, in seconds."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def ours(trace: Path) -> tuple[float, float]:
    """Return the processor time with and without the analysis."""
    begin = time.process_time()
    result = whywait.analyze(trace, causes=False, threads=1)
    analyzed = time.process_time()
    assert whywait.whatif(result, threads=1).after > 0
    end = time.process_time()
    return end - begin, end - analyzed


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where traces lie (default: a temporary one)")
    options = parser.parse_args()
    if not shutil.which("smpirun"):
        print("there is no smpirun: install Debian's libsimgrid-dev", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        directory = Path(temporary)
        trace = directory / "trace"
        events = _native.generate("sor-p2p", trace, ranks=options.ranks, iterations=options.iterations, seed=1)
        count = convert(whywait.open(trace), directory)
        (directory / "platform.xml").write_text(PLATFORM.format(last=options.ranks - 1))
        (directory / "hosts").write_text("".join(f"node-{rank}\n" for rank in range(options.ranks)))
        command = ["smpirun", "-np", str(options.ranks), "-platform", str(directory / "platform.xml"), "-hostfile",
                   str(directory / "hosts"), "-replay", str(directory / "index"), "--log=root.thres:error"]  # fmt: skip
        os.chdir(directory)
        replayed = min(processor_time(command) for _ in range(options.repeat))
        measured = [ours(trace) for _ in range(options.repeat)]
    whole, alone = (min(times) for times in zip(*measured, strict=True))
    print(f"sor-p2p, {options.ranks:,} ranks, {events:,} events, {count:,} actions; processor time")
    print(f"   smpirun -replay             {replayed:8.3f} s")
    print(f"   whatif with the analysis    {whole:8.3f} s   {replayed / whole:6.1f} times as fast")
    print(f"   whatif alone                {alone:8.3f} s   {replayed / alone:6.1f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main())
