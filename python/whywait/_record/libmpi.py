"""Which MPI library a command will run with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from whywait._record.command import is_python
from whywait._record.elf import Elf, ElfError

# By file names: MPICH and its descendants, Open MPI, the ABI of MPI 5, the OpenSHMEM of Open MPI, and ARMCI.
_LIBRARY = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpi_mt|mvapich|oshmem|armci)\.so(\.\d+)*")
# Other libraries of communication, by which programs communicate without MPI.
_OTHERS = {
    "GASPI": re.compile(r"libGPI2\.so.*"),
    "GASNet": re.compile(r"libgasnet.*\.so.*"),
    "UPC++": re.compile(r"libupcxx.*\.so.*"),
    "NVSHMEM": re.compile(r"libnvshmem_host\.so.*"),
    "UCX": re.compile(r"libucp\.so.*"),
}
# How a Python program finds its MPI: by importing mpi4py, without initializing MPI.
_ASK_PYTHON = """
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
fields = (line.split(maxsplit=5) for line in open("/proc/self/maps"))
print(*{words[5].strip() for words in fields if len(words) > 5}, sep="\\n")
"""


def libraries_of(program: list[str]) -> list[Path]:
    """Return the MPI libraries that a program will load; none if that cannot be known before it runs.

    Parameters
    ----------
    program
        The command that starts the program, without a launcher.
    """
    found = shutil.which(program[0]) if program else None
    if found is None:
        return []
    # The dynamic linker would look for a mere name among libraries.
    path = Path(found).absolute()
    if is_python(path.name):
        return _of_python(path)
    try:
        elf = Elf(path)
    except ElfError:
        return _of_script(path)
    if not elf.interpreter:
        return []
    return _only_mpi(_loaded(elf.interpreter, path))


def others_of(program: Path) -> list[str]:
    """Return the names of other libraries of communication that a program will load.

    Parameters
    ----------
    program
        The file of the program.
    """
    try:
        interpreter = Elf(program).interpreter
    except (ElfError, OSError):
        return []
    files = [Path(path).name for path in _loaded(interpreter, program)] if interpreter else []
    return [name for name, form in _OTHERS.items() if any(map(form.fullmatch, files))]


def _loaded(interpreter: str, program: Path) -> list[str]:
    """Return the libraries that the dynamic linker, the interpreter of a program, says it would load."""
    answer = _output([interpreter, "--list", str(program.absolute())])
    return [match[1] for match in re.finditer(r"=> (\S+)", answer)]


def _of_python(interpreter: Path) -> list[Path]:
    return _only_mpi(_output([str(interpreter), "-c", _ASK_PYTHON]).splitlines())


def _of_script(path: Path) -> list[Path]:
    """Return what the interpreter of a script would load, if that is Python."""
    with path.open("rb") as file:
        words = file.readline(256).decode(errors="replace").split()
    if not words or not words[0].startswith("#!"):
        return []
    interpreter = words[0][2:] or (words[1] if len(words) > 1 else "")
    if Path(interpreter).name == "env" and len(words) > 1:
        interpreter = shutil.which(words[1]) or ""
    return _of_python(Path(interpreter)) if is_python(Path(interpreter).name) else []


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _only_mpi(paths: object) -> list[Path]:
    found = {Path(os.path.realpath(path)) for path in paths if _LIBRARY.fullmatch(Path(path).name)}  # type: ignore[attr-defined]
    return sorted(found)


def exports(libraries: list[Path]) -> set[str]:
    """Return the functions that libraries have."""
    return {name for library in libraries for name in Elf(library).exports()}


def platform_has_recorder() -> bool:
    """Whether there is a recorder for this platform."""
    return sys.platform == "linux" and os.uname().machine in {"x86_64", "aarch64"}
