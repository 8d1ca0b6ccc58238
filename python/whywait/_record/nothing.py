"""Why a command left no recording."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from whywait._record import command as commands
from whywait._record import libmpi
from whywait._record.elf import Elf, ElfError

if TYPE_CHECKING:
    from collections.abc import Sequence


def why_nothing(command: Sequence[str], code: int, *, was_loaded: bool) -> str:
    """Return why nothing was recorded.

    Parameters
    ----------
    command
        The command with its launcher.
    code
        Its exit code.
    was_loaded
        Whether the recorder was loaded into a program with MPI.
    """
    program = commands.program_of(command)
    if not program:
        return commands.why_no_program(command)
    name = program[0]
    path = _file_of(name)
    if path is not None and _is_static(path):
        return f"{name} is linked statically, so no library can be loaded into it"
    if was_loaded and code:
        return f"the command ended with exit code {code} before a process of {name} had called MPI_Init"
    if was_loaded:
        return f"no process of {name} called MPI_Init by way of the dynamic linker, though MPI was loaded"
    if path is not None and _is_privileged(path):
        return (
            f"{name} runs with rights of its own (set-user-ID or capabilities), with which the dynamic linker loads no "
            "library that a user names"
        )
    if reason := commands.why_unloaded(command):
        return reason
    if path is not None and (others := libmpi.others_of(path)):
        known = " and ".join(others)
        return f"{name} communicates by {known}, which whywait does not record: waiting in its calls is not seen"
    if code:
        return f"the command ended with exit code {code}, and no process of {name} called MPI_Init"
    if path is not None and not path.suffix and _is_program(path) and not libmpi.libraries_of(program):
        return f"{name} is not linked to MPI, and no process called MPI_Init by way of the dynamic linker"
    reason = f"no process of {name} called MPI_Init by way of the dynamic linker"
    launcher = list(command)[: len(command) - len(program)]
    if any(map(commands.is_launcher, launcher)) and [*launcher, *program] == list(command):
        direct = shlex.join([*launcher, "whywait", "record", *program])
        reason += f"; if the launcher does not pass the environment on: {direct}"
    return reason


def _file_of(name: str) -> Path | None:
    found = shutil.which(name)
    return None if found is None else Path(found)


def _is_static(path: Path) -> bool:
    try:
        return Elf(path).is_static
    except (ElfError, OSError):
        return False


def _is_program(path: Path) -> bool:
    try:
        return bool(Elf(path).interpreter)
    except (ElfError, OSError):
        return False


def _is_privileged(path: Path) -> bool:
    """Whether a program runs with other rights than whoever starts it."""
    status = path.stat()
    sets_user = status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()
    sets_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    try:
        has_capabilities = bool(os.getxattr(path, "security.capability"))
    except OSError:
        has_capabilities = False
    return bool(sets_user or sets_group or has_capabilities)
