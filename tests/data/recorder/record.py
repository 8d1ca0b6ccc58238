"""Records the traces of this folder anew: `python tests/data/recorder/record.py [NAME...]`.

Needs Open MPI (mpicc, mpirun), addr2line and the `otf2` package. A run in which the machine disturbed the known delays
is thrown away and repeated.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import to_otf2

HERE = Path(__file__).resolve().parent
DATA = HERE.parent
ATTEMPTS = 30

# trace: (program, ranks, arguments, Open MPI's parameters)
TRACES = {
    "stencil": ("stencil", 8, [], {}),
    "collectives": ("collectives", 4, [], {}),
    "p2p": ("p2p", 4, [], {}),
    "intercomm": ("intercomm", 4, [], {}),
    "flood": ("flood", 2, [], {}),
    "rma_fence": ("rma_fence", 4, [], {"osc": "rdma"}),
    "rma_gats_rdma": ("rma_gats", 4, [], {"osc": "rdma"}),
    "rma_gats_pt2pt": ("rma_gats", 4, [], {"osc": "pt2pt"}),
    "rma_lock_sm": ("rma_lock", 4, [], {"osc": "sm"}),
    "rma_lock_pt2pt": ("rma_lock", 4, [], {"osc": "pt2pt"}),
    "rma_progress": ("rma_progress", 3, [], {"osc": "pt2pt"}),
    "mixed": ("mixed", 4, [], {"osc": "pt2pt"}),
    "sor_p2p": ("sor", 4, ["p2p"], {}),
    "sor_fence": ("sor", 4, ["fence"], {"osc": "pt2pt"}),
    "sor_gats": ("sor", 4, ["gats"], {"osc": "pt2pt"}),
    "sor_locks": ("sor", 4, ["locks"], {"osc": "rdma"}),
}


def record(name, work):
    program, ranks, arguments, parameters = TRACES[name]
    binary = work / program
    subprocess.run(["mpicc", "-O2", "-c", HERE / "recorder.c", "-o", work / "recorder.o"], check=True)
    subprocess.run(
        ["mpicc", "-g", "-O1", "-fno-inline", "-no-pie", "-finstrument-functions", "-Wall", "-Wextra", f"-I{HERE}",
         DATA / "programs" / f"{program}.c", work / "recorder.o", "-o", binary, "-lm"],
        check=True,
    )  # fmt: skip
    options = [word for key, value in ({"mpi_yield_when_idle": "1"} | parameters).items() for word in
               ("--mca", key, value)]  # fmt: skip
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = ["mpirun", *root, "--oversubscribe", *options, "-n", str(ranks), f"./{program}", *arguments]
    target = DATA / name
    for _ in range(ATTEMPTS):
        subprocess.run(command, cwd=work, check=True, timeout=120)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        misses = to_otf2.make(work, binary, ranks, target)
        if not misses:
            print(f"{name}: {' '.join(command)}")
            return
        print(f"{name}: again, because of {len(misses)} disturbed calls, as {misses[0]}")
    sys.exit(f"{name}: {ATTEMPTS} runs were disturbed:\n" + "\n".join(misses))


if __name__ == "__main__":
    for trace in sys.argv[1:] or TRACES:
        with tempfile.TemporaryDirectory() as directory:
            record(trace, Path(directory))
