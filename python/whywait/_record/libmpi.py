"""Which MPI library a command will run with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from whywait._record.elf import Elf, ElfError

# By file names: MPICH and its descendants, Open MPI, the ABI of MPI 5, and the OpenSHMEM of Open MPI.
_LIBRARY = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpi_mt|mvapich|oshmem)\.so(\.\d+)*")
# What starts the processes of a parallel program; `whywait record` starts these, and they start the program.
LAUNCHERS = frozenset(
    """mpiexec mpirun mpiexec.hydra mpiexec.mpich mpirun.mpich mpiexec.openmpi mpirun.openmpi mpiexec.gforker
    orterun prterun prun oshrun shmemrun srun aprun jsrun flux mpiexec_abi""".split()
)
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?t?")
# How a Python program finds its MPI: by importing mpi4py, without initializing MPI.
_ASK_PYTHON = """
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
fields = (line.split(maxsplit=5) for line in open("/proc/self/maps"))
print(*{words[5].strip() for words in fields if len(words) > 5}, sep="\\n")
"""


def is_python(name: str) -> bool:
    """Whether a file name is that of a Python interpreter."""
    return _PYTHON.fullmatch(name) is not None


def is_launcher(command: str) -> bool:
    """Whether a command starts the processes of a parallel program."""
    return Path(command).name in LAUNCHERS


def program_of(command: list[str]) -> list[str]:
    """Return the part of a command that starts the program: all of it, or what follows the launcher and its options.

    Which options of a launcher have a value differs between launchers, so the program is the first word that is a file
    to execute.
    """
    if not command or not is_launcher(command[0]):
        return command
    for number, word in enumerate(command[1:], 1):
        if not word.startswith("-") and (found := shutil.which(word)) and not is_launcher(found):
            return command[number:]
    return []


def why_no_program(command: list[str]) -> str:
    """Return why a launcher's command has no program that can be executed on this machine."""
    words = [word for word in command[1:] if not word.startswith("-") and not word.isdecimal()]
    if not words:
        return f"{command[0]} was given no program"
    word = next((word for word in words if "/" in word or Path(word).is_file()), None)
    if word is None:
        # Some may be values of the launcher's options.
        return f"there is no such program on this machine: {', '.join(words)}"
    if not Path(word).is_file():
        return f"there is no program {word} on this machine"
    return f"{word} is not executable" + (f"; start it with: python {word}" if word.endswith(".py") else "")


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
    if _PYTHON.fullmatch(path.name):
        return _of_python(path)
    try:
        elf = Elf(path)
    except ElfError:
        return _of_script(path)
    if not elf.interpreter:
        return []
    # The dynamic linker itself says what it would load.
    answer = _output([elf.interpreter, "--list", str(path)])
    return _only_mpi(match[1] for match in re.finditer(r"=> (\S+)", answer))


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
    return _of_python(Path(interpreter)) if _PYTHON.fullmatch(Path(interpreter).name) else []


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
