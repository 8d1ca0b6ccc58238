"""Record the programs of `savings.c` with MPICH and Open MPI: ``python tests/data/savings/record.py [PROGRAM...]``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# What each program takes, in units of 20 ms.
PROGRAMS = {
    "imbalance": 50, "groups": 30, "staircase": 125, "alone": 50, "noise": 40, "faster": 50, "prepare": 40,
    "sender": 40, "tail": 50, "overlap": 50, "pipeline": 40, "master": 50,
}  # fmt: skip
MPIS = ("mpich", "openmpi")
UNIT, TOLERANCE, TRIES = 0.02, 0.1, 20
# Ranks that wait leave the cores to others, as far as the library can do that.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
}


def record(mpi: str, binary: Path, program: str, target: Path) -> float:
    """Record a program; return how many times as long as it should the run takes."""
    shutil.rmtree(target, ignore_errors=True)
    ranks = "6" if program == "staircase" else "4"
    run = [f"mpiexec.{mpi}", "-n", ranks, str(binary), program, "before"]
    command = [sys.executable, "-m", "whywait", "record", "-o", str(target), *run]
    done = subprocess.run(command, check=True, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    [seconds] = [float(line.split()[2]) for line in done.stdout.splitlines() if line.startswith(program)]
    return seconds / (PROGRAMS[program] * UNIT)


def main(programs: list[str]) -> None:
    """Record programs, those again whose runs other processes disturb, and pack the archives of each MPI."""
    with tempfile.TemporaryDirectory() as directory:
        for mpi in MPIS:
            binary = Path(directory) / "savings"
            command = [f"mpicc.{mpi}", "-g", "-O0", "-o", str(binary), str(HERE / "savings.c")]
            subprocess.run(command, check=True)
            archives, packed = Path(directory) / mpi, HERE / f"{mpi}.tar.xz"
            if packed.exists():
                shutil.unpack_archive(packed, archives)
            for program in programs:
                for _ in range(TRIES):
                    times = record(mpi, binary, program, archives / program)
                    if times < 1 + TOLERANCE:
                        break
                print(f"{mpi} {program}: {times:.3f} times as long")
            shutil.make_archive(str(HERE / mpi), "xztar", archives)


if __name__ == "__main__":
    main(sys.argv[1:] or list(PROGRAMS))
