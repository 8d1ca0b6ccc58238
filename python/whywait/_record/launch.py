"""Start a program so that its MPI calls are recorded."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from whywait._record import command as commands
from whywait._record import fitted, libmpi
from whywait._record.elf import MACHINES, Elf, ElfError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Names of the environment that the recorder reads; see rust/spool/src/lib.rs.
ARCHIVE, OPTIONS, SPOOL_DIRECTORY, ACTIVE = (
    "WHYWAIT_RECORD",
    "WHYWAIT_RECORD_OPTIONS",
    "WHYWAIT_RECORD_SPOOL",
    "WHYWAIT_RECORD_ACTIVE",
)
SPOOL = ".spool"
# In the spool, if the recorder was loaded into a program with MPI.
_LOADED = "loaded"
# What `mpiexec` sets in each process that it starts.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
GROUPS = ("env", "p2p", "coll", "cg", "rma", "io", "spawn", "shmem", "armci", "cg_query", "misc")
DEFAULT_GROUPS = GROUPS[:9]
# Functions of the C library for files, in addition to groups of communication libraries.
POSIX = "posix"

# Counters by name, beside `mpi` and `mpi:PATTERN`; see rust/record/src/counters.rs.
COUNTERS = (
    *("rusage", "core", "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"),
    *("cpu-clock", "task-clock", "page-faults", "major-faults", "context-switches", "cpu-migrations"),
)
# Which of its software performance counters Open MPI counts: none unless told so.
_OPEN_MPI_COUNTERS = "OMPI_MCA_mpi_spc_attach"
# Where the sanitizer of addresses looks for its options, and names of its library with GCC and with clang.
_ASAN_OPTIONS, _ASAN = "ASAN_OPTIONS", ("libasan.so", "libclang_rt.asan")
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# From when to when in seconds, or from which call of MPI_Pcontrol to which.
_WINDOW = re.compile(r"((?:\d+(?:\.\d*)?)?):((?:\d+(?:\.\d*)?)?)|call:(\d+)\.\.(\d*)")


class LaunchError(Exception):
    """The program cannot be recorded.

    Parameters
    ----------
    text
        Why.
    code
        The exit code that says so.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Recording:
    """What is to be recorded, and how.

    Parameters
    ----------
    command
        The program with its arguments, with or without a launcher before it.
    directory
        Where the archive goes; None for the first free ``whywait-NAME.N``.
    force
        Whether to replace an archive that exists.
    options
        Options of the recorder, by name.
    spool
        A directory on each machine for the files until the processes end; None for the archive.
    libraries
        MPI libraries to make the recorder fit; none to find them.
    """

    command: Sequence[str]
    directory: Path | None = None
    force: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    spool: Path | None = None
    libraries: Sequence[Path] = ()


def chosen_groups(text: str) -> list[str]:
    """Return the groups that a list such as ``p2p,coll`` or ``all,-io`` names.

    Without another group before it, ``posix`` or ``-io`` changes the groups that are chosen by default.

    Raises
    ------
    ValueError
        If there is no such group.
    """
    words = [word for word in text.split(",") if word]
    known = (*GROUPS, POSIX)
    others = [word for word in words if word != POSIX]
    starts_with_others = bool(others) and not others[0].startswith("-")
    chosen = set(() if starts_with_others or not words else DEFAULT_GROUPS)
    for word in words:
        name = word.removeprefix("-")
        if name not in {*known, "all"}:
            raise ValueError(f"there is no group {name!r} (choose from {', '.join(known)}, all)")
        named = GROUPS if name == "all" else (name,)
        chosen = chosen.difference(named) if word.startswith("-") else chosen.union(named)
    return [group for group in known if group in chosen]


def chosen_counters(text: str) -> str:
    """Return a list of counters such as ``rusage,core,mpi:*queue*``, if there are such.

    Raises
    ------
    ValueError
        If there is none of a name.
    """
    for name in text.split(","):
        if name not in {*COUNTERS, "mpi", ""} and not re.fullmatch(r"mpi:[\w*.-]+", name):
            raise ValueError(f"there is no counter {name!r} (choose from {', '.join(COUNTERS)}, mpi, mpi:PATTERN)")
    return text


def recorder_options(
    *,
    groups: str,
    callpaths: bool,
    depth: int,
    max_size: int,
    window: str,
    model: str,
    sync: bool,
    python: str = "auto",
    only: str = "",
    filter: str = "",  # noqa: A002 - named as the option
    counters: str = "",
    threads: bool = False,
    keep_tests: bool = False,
    sample: int = 0,
    helper: bool = True,
    quiet: bool = False,
) -> dict[str, str]:
    """Return the options of a recording as the recorder and the finishing read them.

    Raises
    ------
    ValueError
        If there is no such group or counter, or a window is none, or an expression is wrong.
    """
    if window and not _is_window(window):
        raise ValueError(f"{window!r} is no window such as 1.5:3 (seconds) or call:2..5 (of MPI_Pcontrol)")
    for expression in (only, filter):
        try:
            re.compile(expression)
        except re.error as error:
            raise ValueError(f"{expression!r} is no regular expression: {error}") from error
        if ";" in expression:
            raise ValueError(f"{expression!r} has a semicolon, which no function has in its name")
    options = {
        "groups": ",".join(chosen_groups(groups) + ["threads"] * threads),
        "callpaths": str(int(callpaths)),
        "depth": str(depth),
        "python": python,
        "max_size": str(max_size),
        "sync": str(int(sync)),
        "helper": str(int(helper)),
        "quiet": str(int(quiet)),
    }
    if window:
        options["window"] = window
    if model != "full":
        options["model"] = model
    if keep_tests:
        options["keep_tests"] = "1"
    if sample:
        options["sample"] = str(sample)
    if only:
        options["only"] = only
    if filter:
        options["filter"] = filter
    if chosen_counters(counters):
        options["counters"] = counters
    return options


def directory_for(recording: Recording) -> Path:
    """Return where the archive goes.

    Raises
    ------
    LaunchError
        If something is there already.
    """
    if recording.directory is None:
        name = commands.program_name(recording.command)
        number = 1
        while (found := Path(f"whywait-{name}.{number}")).exists():
            number += 1
        return found
    if recording.directory.exists():
        if not recording.force:
            raise LaunchError(f"{recording.directory} exists; choose another with -o, or use --force", 2)
        if not recording.directory.is_dir():
            raise LaunchError(f"{recording.directory} is a file", 2)
        held = {entry.name for entry in recording.directory.iterdir()}
        if held and not held & {SPOOL, "traces", "traces.otf2"}:
            # What --force may replace is a recording, and nothing else.
            raise LaunchError(f"{recording.directory} holds no recording: remove it yourself", 2)
    return recording.directory


def prepared(directory: Path, recording: Recording) -> Path:
    """Make the directory of a recording and return its absolute path."""
    if recording.force and directory.exists():
        for name in (SPOOL, "traces", "traces.part"):
            shutil.rmtree(directory / name, ignore_errors=True)
        for name in ("traces.otf2", "traces.def"):
            with suppress(FileNotFoundError):
                (directory / name).unlink()
    try:
        (directory / SPOOL).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"{directory}: {error.strerror}; -o chooses another directory", 3) from error
    return directory.resolve()


def checked(recording: Recording) -> list[str]:
    """Return the program of a command with its arguments, if it can be recorded.

    Raises
    ------
    LaunchError
        If the command or its program does not exist, cannot be executed, or is for another machine.
    """
    command = recording.command[0]
    found = shutil.which(command)
    if found is None:
        if Path(command).is_file():
            raise LaunchError(f"{command}: not executable", NOT_EXECUTABLE)
        raise LaunchError(f"{command}: not found", NOT_FOUND)
    if not libmpi.platform_has_recorder():
        raise LaunchError("programs can be recorded on Linux (x86-64 and aarch64) only", 3)
    if not fitted.LIBRARY.is_file():
        raise LaunchError(f"{fitted.LIBRARY} is missing: this installation was built without the recorder", 3)
    program = commands.program_of(recording.command)
    path = shutil.which(program[0]) if program else None
    if path is not None:
        with suppress(ElfError):
            if (elf := Elf(Path(path))).machine != MACHINES[os.uname().machine]:
                raise LaunchError(f"{elf.path} is a program for another machine", 3)
        with Path(path).open("rb") as file:
            if (magic := file.read(5)).startswith(b"\x7fELF") and magic[4] == 1:
                raise LaunchError(f"{path} is a 32-bit program, which cannot be recorded", 3)
    return program


def _has_address_sanitizer(command: Sequence[str]) -> bool:
    """Whether the program of a command is linked to the library of the sanitizer of addresses."""
    program = commands.program_of(command)
    path = shutil.which(program[0]) if program else None
    try:
        return path is not None and any(name.startswith(_ASAN) for name in Elf(Path(path)).needed())
    except (ElfError, OSError):
        return False


def recorder(program: Sequence[str], recording: Recording, spare: Path | None = None) -> Path:
    """Return the recorder's library for a program; without a cache of the user it goes to the spare directory.

    Raises
    ------
    LaunchError
        If there is no directory for it.
    """
    try:
        return fitted.recorder(
            program,
            recording.libraries,
            threads=records(recording, "threads"),
            samples=samples(recording),
            files=records(recording, POSIX),
            spare=spare,
        )
    except fitted.PlaceError as error:
        raise LaunchError(str(error), 3) from error


def _is_window(text: str) -> bool:
    match = _WINDOW.fullmatch(text)
    if match is None:
        return False
    begin, end, first, last = match.groups()
    if first is not None:
        return not last or int(first) < int(last)
    return not end or float(begin or 0) < float(end)


def records(recording: Recording, group: str) -> bool:
    """Whether a recording is to have the functions of a group."""
    return group in recording.options.get("groups", "").split(",")


def samples(recording: Recording) -> bool:
    """Whether a recording is to have samples of what threads do between calls."""
    return "sample" in recording.options


def environment(recording: Recording, directory: Path, library: Path) -> dict[str, str]:
    """Return the variables that make a program record into a directory."""
    # A program may have been given other libraries already: the recorder comes first.
    others = os.environ.get("LD_PRELOAD", "")
    variables = {
        ARCHIVE: str(directory),
        OPTIONS: ";".join(f"{name}={value}" for name, value in recording.options.items()),
        "LD_PRELOAD": f"{library}:{others}" if others else str(library),
    }
    if "mpi" in recording.options.get("counters", ""):
        variables[_OPEN_MPI_COUNTERS] = os.environ.get(_OPEN_MPI_COUNTERS, "all")
    if _has_address_sanitizer(recording.command):
        # It refuses to run if it is not the first library, and believes the last one who says whether to look.
        options = os.environ.get(_ASAN_OPTIONS, "")
        variables[_ASAN_OPTIONS] = f"{options}:verify_asan_link_order=0".lstrip(":")
    if recording.spool is not None:
        variables[SPOOL_DIRECTORY] = str(recording.spool.resolve())
    return variables


def was_loaded(directory: Path) -> bool:
    """Whether the recorder was loaded into a program with MPI, on this machine or one that shares the directory."""
    return (directory / SPOOL / _LOADED).exists()


def in_recorded_process() -> bool:
    """Whether this process runs inside of a recording."""
    return ACTIVE in os.environ or ARCHIVE in os.environ


def is_rank() -> bool:
    """Whether a launcher of parallel programs started this process as one of several."""
    return any(name in os.environ for name in RANK_VARIABLES)


def replace_process(command: Sequence[str], variables: Mapping[str, str]) -> None:
    """Become the program."""
    sys.stdout.flush()
    # Python ignores these, and the program would inherit it.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), {**os.environ, **variables})  # noqa: S606
    except OSError as error:
        raise LaunchError(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command, pass signals on to it, and return its exit code as a shell does."""
    # The preloaded library is for the program: the launcher itself is no MPI program, so it does no harm there.
    try:
        child = subprocess.Popen(list(command), env={**os.environ, **variables})  # noqa: S603
    except OSError as error:
        raise LaunchError(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error
    passed = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
    # From a terminal, Ctrl-C reaches the child as well.
    kept = {
        number: signal.signal(
            number,
            signal.SIG_IGN if number == signal.SIGINT and os.isatty(0) else lambda got, _: child.send_signal(got),
        )
        for number in passed
    }
    try:
        code = child.wait()
    finally:
        for number, handler in kept.items():
            # None: it was not Python that had set it, but a library.
            if handler is not None:
                signal.signal(number, handler)
    return 128 - code if code < 0 else code
