"""A run beside a run: the same program alone and recorded, and what differs.

Whatever differs between two runs without the recorder is left out: process ids, times, what a launcher makes up.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from .mpis import PROGRAMS, Mpi, compiled, record, run

# What is compared, in the order of the table in docs/record.md.
ASPECTS = {
    "exit code": "exit code",
    "output": "output of all ranks",
    "files": "files",
    "environment": "environment of child processes",
    "signals": "dispositions and masks of signals, timers",
    "descriptors": "open descriptors, and the number of the next",
    "settings": "locale, umask, directory, limits, cores, name, threads",
    "errno": "`errno` after calls",
    "memory": "mappings after many calls, arenas of the allocator",
    "children": "exit codes of child processes",
    "results": "results of calls that fail",
}
# Every process that a recorded one starts finds these as well, and that is said in docs/record.md.
OWN = re.compile(r"\w+ (LD_PRELOAD|WHYWAIT_\w+)=|begun threads|ending threads|after threads")


@dataclass(frozen=True)
class Program:
    """A program, and how it is built and started."""

    name: str
    # Below tests/record/programs, or absolute; empty if the command is all.
    source: str = ""
    ranks: int = 2
    options: tuple[str, ...] = ()
    language: str = "c"
    arguments: tuple[str, ...] = ()
    # Words in the place of the program: {python}, or a name that is looked up.
    command: tuple[str, ...] = ()
    # Whether it is run with what looks at its surroundings.
    observed: bool = True
    recorded: tuple[str, ...] = ()
    # Files that it needs where it runs.
    files: tuple[str, ...] = ()
    # Whether it prints times: then only the words of its output are compared.
    times: bool = False
    # The MPI that it runs with, if it does not with others.
    only: str = ""

    def built(self, mpi: Mpi, directory: Path) -> list[str] | None:
        """Return the command that a rank runs; None if it is not here."""
        if self.only not in {"", mpi.name}:
            return None
        if self.command:
            words = [word.replace("{mpi}", mpi.name) for word in self.command]
            path = shutil.which(words[0])
            is_here = path is not None and all(Path(name.replace("{mpi}", mpi.name)).is_file() for name in self.files)
            return [path, *words[1:], *self.arguments] if is_here else None
        source = PROGRAMS / self.source
        if not source.is_file() or (self.language == "fortran" and shutil.which(mpi.fortran) is None):
            return None
        options = list(self.options)
        if self.observed and self.language == "c":
            options = ["-Dmain=program", str(PROGRAMS / "beside_main.c"), *options]
        try:
            program = compiled(mpi, source, directory, f"-I{source.parent}", *options, language=self.language)
        except subprocess.CalledProcessError:
            # It needs a newer MPI.
            return None
        return [str(program), *self.arguments]


def look(command: list[str], directory: Path, program: Program, *, recorded: bool) -> dict[str, Counter[str]]:
    """Run a program in a directory, and return what it showed by aspect: lines, and how often each came."""
    if recorded:
        output = directory.with_suffix(".archive")
        done = record(command, directory, *program.recorded, "--quiet", output=str(output))
    else:
        done = run(command, directory)
    seen: dict[str, Counter[str]] = {name: Counter() for name in ASPECTS}
    seen["exit code"].update([str(done.returncode)])
    for line in (done.stdout + done.stderr).splitlines():
        text = neutral(line, directory)
        seen["output"].update([re.sub(r"[\d.]+([Ee][+-]\d+)?|\s+", "#", text) if program.times else text])
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if re.fullmatch(r"facts\.\d+", path.name):
            for line in path.read_text(errors="replace").splitlines():
                aspect, _, fact = line.partition(": ")
                if aspect in seen and not OWN.match(fact):
                    seen[aspect].update([f"{path.name} {neutral(fact, directory)}"])
        else:
            seen["files"].update([f"{path.relative_to(directory)} {sha256(path.read_bytes()).hexdigest()}"])
    return seen


def neutral(line: str, directory: Path) -> str:
    """Return a line without the directory of the run, and numbers of pipes, sockets, terminals, and shared memory.

    Which process removes the name of shared memory last is chance.
    """
    line = re.sub(r"(?<=mpich_shm)(\S*) \(deleted\)", r"\1", line.replace(str(directory), "."))
    return re.sub(r"\[\d+\]|_[0-9a-f]{5,}|(?<=/dev/pts/)\d+|(?<=ompi\.)\d+|(?<=open_mpi\.)\d+", "#", line)


def subject(line: str) -> str:
    """Return what a line is about: a variable, or all but the last word."""
    name, found, _ = line.partition("=")
    return name if found else line.rpartition(" ")[0]


def differences(program: Program, mpi: Mpi, directory: Path) -> dict[str, list[str]] | None:
    """Run a program twice alone and once recorded.

    Returns
    -------
    dict
        For each aspect that it has, the lines that came alone (-) or recorded (+) only, but not those that change
        from run to run. None if the program is not here.
    """
    command = program.built(mpi, directory)
    if command is None:
        return None
    command = [*mpi.start(program.ranks), *command]
    # What a busy machine does differs each time; a fault of the recorder is there every time.
    for attempt in range(ATTEMPTS):
        place = directory / f"attempt.{attempt}"
        place.mkdir()
        found = compared(program, mpi, command, place)
        if not any(found.values()):
            break
    return found


def compared(program: Program, mpi: Mpi, command: list[str], directory: Path) -> dict[str, list[str]]:
    """Do the runs once, and return what differs by aspect."""
    runs = []
    for number in range(3):
        place = directory / f"run.{number}"
        place.mkdir()
        for name in program.files:
            shutil.copy(name.replace("{mpi}", mpi.name), place)
        runs.append(look(command, place, program, recorded=number == 2))
    found = {}
    for aspect in ASPECTS:
        first, second, recorded = (seen[aspect] for seen in runs)
        changing = {subject(line) for line in (first - second) + (second - first)}
        lines = [("-", line) for line in first - recorded] + [("+", line) for line in recorded - first]
        if first or recorded:
            found[aspect] = [f"{sign} {line}" for sign, line in lines if subject(line) not in changing]
    return found


ATTEMPTS = 3
SHARED = Path(os.environ.get("WHYWAIT_SHARED", "/nonexistent"), "cases")
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/{mpi}-tests"


def _case(name: str, ranks: int = 4, *options: str) -> Program:
    return Program(name, str(SHARED / name / f"{name}.c"), ranks, options)


def _solver(name: str, data: str) -> Program:
    """Return one of ScaLAPACK's test programs (Debian: scalapack-mpi-test)."""
    place = SCALAPACK
    return Program(f"scalapack {name}", ranks=2, command=(f"{place}/{name}",), files=(f"{place}/{data}",), times=True)


# All: those first that the table in the documentation begins with.
SUBJECTS = (
    Program("beside", "beside.c"),
    Program("threads", "threads.c", options=("-lpthread",), recorded=("--threads",), times=True),
    Program("files", "files.c", recorded=("--groups=posix",)),
    Program("ring_f08", "ring_f08.f90", language="fortran"),
    Program("ring_mpif", "ring_mpif.f90", language="fortran"),
    Program("ring_mpi", "ring_mpi.f90", language="fortran"),
    Program("polling", "polling.c"),
    Program("openmp", "openmp.c", options=("-fopenmp",), times=True),
    _case("mpi_modes"),
    _case("mpi_mprobe"),
    _case("mpi_persistent"),
    _case("mpi_misc4"),
    _case("mpi_self", 2),
    _case("mpi_large", 3),
    _case("mpi_nbc"),
    _case("rma_fence_known"),
    _case("rma_gats_known"),
    _case("silas_p2p"),
    _case("hyb_imbalance", 4, "-fopenmp"),
    _case("hyb_multiple", 4, "-fopenmp"),
    _case("hyb_worker_comm", 4, "-fopenmp"),
    _solver("xdlu", "LU.dat"),
    _solver("xdqr", "QR.dat"),
    _solver("xdsep", "SEP.dat"),
    Program("netpipe openmpi", only="openmpi", command=("NPopenmpi", "-u", "4096", "-n", "50"), times=True),
    Program("netpipe mpich", only="mpich", command=("NPmpich2", "-u", "4096", "-n", "50"), times=True),
)
