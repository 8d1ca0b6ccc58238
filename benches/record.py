"""Measure what the recorder adds to an MPI call, or to one that reads a file: in ns, and in instructions.

    python benches/record.py [--mpicc MPICC] [--library LIBRARY] [--runs N] [--instructions] [--python] [--files]

One process, calls on MPI_COMM_SELF: MPI_Allreduce, and MPI_Irecv + MPI_Send + MPI_Wait, with few and with many frames
on the stack. Runs with and without the recorder take turns, and the fastest of many rounds counts. Instructions are
counted by valgrind's callgrind, and do not vary with the load of the machine. With --python, calls come from functions
of Python through mpi4py, without call paths, with those of C, and with those of Python as well. With --files, calls
read 512 bytes at a time of a file in memory, and the library is one that catches functions of files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = {"MPI_Allreduce": ("allreduce", 1), "Irecv + Send + Wait": ("message", 3)}
FILES = {"read of 512 bytes": ("read", 1), "fread of 512 bytes": ("fread", 1)}
# Frames between main and the call; beside them are three of the program's own and three of its start.
# Open MPI starts for root only if told so twice.
ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
FRAMES = {"none": 0, "13 frames": 7, "28 frames": 22}


def environment(
    library: Path, spool: Path, *, callpaths: bool, python: bool = True, groups: str = ""
) -> dict[str, str]:
    """Variables that have a program recorded."""
    shutil.rmtree(spool, ignore_errors=True)
    return {
        "LD_PRELOAD": str(library),
        "WHYWAIT_RECORD": str(spool),
        "WHYWAIT_RECORD_OPTIONS": f"callpaths={int(callpaths)};python={'auto' if python else 'off'};{groups}",
    }


def run(program: list[str], case: str, frames: int, calls: int, rounds: int, variables: dict[str, str]) -> float:
    """Time of a call in ns."""
    command = [*program, case, str(frames), str(calls), str(rounds)]
    done = subprocess.run(command, env=os.environ | ALLOWED | variables, check=True, capture_output=True, text=True)
    return float(done.stdout)


def instructions(program: list[str], case: str, frames: int, calls: int, variables: dict[str, str]) -> float:
    """Instructions of a call: what the second half of the calls needs, so that the start of both does not count.

    Of record.c, only those below `measure` are counted: how long MPI waits for its launcher depends on the load.
    """
    within = ["--collect-atstart=no", "--toggle-collect=measure"] if len(program) == 1 else []
    counts = []
    for number in (calls, 2 * calls):
        if variables:
            shutil.rmtree(variables["WHYWAIT_RECORD"], ignore_errors=True)
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            *within,
            *program,
            case,
            str(frames),
            str(number),
            "1",
        ]
        done = subprocess.run(command, env=os.environ | ALLOWED | variables, check=True, capture_output=True, text=True)
        counts.append(int(re.findall(r"Collected : (\d+)", done.stderr)[-1]))
    return (counts[1] - counts[0]) / calls


def from_python(arguments: argparse.Namespace) -> int:
    """Measure calls from functions of Python."""
    program = [sys.executable, str(ROOT / "benches" / "record_calls.py")]
    ways = {"alone": None, "no call path": (False, False), "C": (True, False), "C and Python": (True, True)}
    with tempfile.TemporaryDirectory() as name:
        print(f"{'call path':16}{'per call':>10}{'added':>10}")
        alone = 0.0
        for title, way in ways.items():
            variables = {}
            if way is not None:
                callpaths, python = way
                spool = Path(name) / "spool"
                variables = environment(arguments.library, spool, callpaths=callpaths, python=python)
            if arguments.instructions:
                cost = instructions(program, "allreduce", 10, 2_000, variables)
            else:
                cost = min(run(program, "allreduce", 10, 20_000, 15, variables) for _ in range(arguments.runs))
            alone = alone or cost
            print(f"{title:16}{cost:10.1f}{cost - alone:10.1f}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--library", type=Path, default=ROOT / "target" / "release" / "libwhywait_record.so")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--python", action="store_true")
    parser.add_argument("--files", action="store_true")
    arguments = parser.parse_args()
    if arguments.python:
        return from_python(arguments)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        program = directory / "record"
        subprocess.run([arguments.mpicc, "-O2", "-o", program, Path(__file__).with_suffix(".c")], check=True)
        print(f"{'calls':22}{'call path':12}{'alone':>10}{'recorded':>10}{'added per call':>16}")
        library, groups = arguments.library, ""
        if arguments.files:
            from whywait._record.elf import Elf

            library, groups = directory / arguments.library.name, "groups=env,coll,posix"
            library.write_bytes(Elf(arguments.library).exporting(lambda _: True))
        for title, (case, calls) in (FILES if arguments.files else CASES).items():
            for depth, frames in FRAMES.items():
                best = {False: float("inf"), True: float("inf")}
                for turn in range(2 * arguments.runs):
                    recorded = turn % 2 == 1
                    variables = (
                        environment(library, directory / "spool", callpaths=depth != "none", groups=groups)
                        if recorded
                        else {}
                    )
                    if arguments.instructions:
                        time = instructions([str(program)], case, frames, 20_000, variables)
                    else:
                        time = run([str(program)], case, frames, 20_000, 75, variables)
                    best[recorded] = min(best[recorded], time)
                added = (best[True] - best[False]) / calls
                print(f"{title:22}{depth:12}{best[False]:10.1f}{best[True]:10.1f}{added:16.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
