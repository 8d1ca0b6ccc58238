"""Record the MPI calls of a program, and finish recordings. Imports neither NumPy nor Arrow."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait._record import launch, linked
from whywait._record.command import preloading, program_of
from whywait._record.nothing import why_nothing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

# Spools larger than this are finished by who reads them first.
_LARGE = 8 << 30
# The exit code of a command that ran well and recorded nothing.
NOTHING = 3
# Seconds that processes may take to end after their launcher.
_PATIENCE = 10.0


def record(
    command: Sequence[str],
    *,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    spool: str | PathLike[str] | None = None,
    mpi: Sequence[str | PathLike[str]] = (),
    keep_spool: bool = False,
    groups: str = "env,p2p,coll,cg,rma,io,spawn,shmem,armci",
    callpaths: bool = True,
    depth: int = 128,
    max_size: int = 4 << 30,
    window: str = "",
    model: str = "full",
    sync: bool = True,
    python: str = "auto",
    only: str = "",
    filter: str = "",  # noqa: A002 - named as the option
    counters: str = "",
    threads: bool = False,
    keep_tests: bool = False,
    sample: int = 0,
) -> Path:
    """Run a program and record its MPI calls.

    The program needs no preparation: a library that records MPI calls is loaded into its processes.

    Parameters
    ----------
    command
        The program with its arguments, usually with a launcher: ``["mpiexec", "-n", "4", "./solver"]``.
    output
        The directory of the archive, which must not exist; by default the first free ``whywait-NAME.N``.
    force
        Whether to replace a recording in that directory.
    spool
        A directory on each machine where processes keep their files until they end.
    mpi
        MPI libraries that the program uses, if they are not found.
    keep_spool
        Whether to keep the recorder's own files.
    groups, callpaths, depth, max_size, window, model, sync, python, only, filter, counters, threads, keep_tests, sample
        As the options of ``whywait record``; ``max_size`` in bytes, and ``sync`` is whether to compare clocks.

    Returns
    -------
    pathlib.Path
        The directory of the archive.

    Raises
    ------
    whywait.UsageError
        If the program cannot be recorded, failed, or called no MPI function.

    Examples
    --------
    >>> directory = whywait.record(["mpiexec", "-n", "4", "./solver"])  # doctest: +SKIP
    >>> whywait.analyze(directory)  # doctest: +SKIP
    """
    import whywait._native as _native

    try:
        options = launch.recorder_options(
            groups=groups,
            callpaths=callpaths,
            depth=depth,
            max_size=max_size,
            window=window,
            model=model,
            sync=sync,
            python=python,
            only=only,
            filter=filter,
            counters=counters,
            threads=threads,
            keep_tests=keep_tests,
            sample=sample,
        )
        recording = launch.Recording(
            list(command),
            None if output is None else Path(output),
            force,
            options,
            None if spool is None else Path(spool),
            [Path(library) for library in mpi],
        )
        directory, code = _run(recording)
    except (launch.LaunchError, ValueError) as error:
        raise _native.UsageError(str(error)) from error
    if code:
        raise _native.UsageError(f"{command[0]} ended with exit code {code}; what it recorded is in {directory}")
    _native.finish_recording(directory, keep_spool=keep_spool, patience=_PATIENCE)
    return directory


def finish_recording(directory: str | PathLike[str], *, keep_spool: bool = False) -> Path:
    """Make an OTF2 archive of a recording that was not finished, because its job ended or a machine failed.

    `whywait.open` and `whywait.analyze` do so by themselves.

    Parameters
    ----------
    directory
        The directory of the recording.
    keep_spool
        Whether to keep the recorder's own files, so that it can be finished again.

    Returns
    -------
    pathlib.Path
        The directory.

    Raises
    ------
    whywait.ArchiveError
        If the recording is of another version, or its processes were recorded in different ways.
    whywait.UsageError
        If there is no recording.
    OSError
        If the archive cannot be written.
    """
    import whywait._native as _native

    _native.finish_recording(directory, keep_spool=keep_spool)
    return Path(directory)


def execute(recording: launch.Recording, *, keep_spool: bool, quiet: bool) -> int:
    """Run a program as ``whywait record`` does; return its exit code.

    In a process that a launcher started, this becomes the program and does not return. Otherwise the archive is
    finished when the program ends, and a line on the standard error says what was recorded.
    """
    if launch.in_recorded_process():
        say("this already runs inside of a recording: the command runs unrecorded", quiet=quiet)
        launch.replace_process(recording.command, {})
    directory, code = _run(recording)
    if not _has_spool(directory):
        reason = why_nothing(recording.command, code, was_loaded=launch.was_loaded(directory))
        say(f"nothing was recorded: {reason}")
        _remove_empty(directory)
        return code or NOTHING
    if _size(directory) > _LARGE:
        say(f"the recording is large: whywait analyze {directory} finishes it first", quiet=quiet)
        return code
    import whywait._native as _native

    # Of processes that others started or connected to, the recordings become one.
    joined: set[Path] = set()
    for world in _worlds(directory):
        if world.resolve() in joined:
            continue
        try:
            summary = _native.finish_recording(world, keep_spool=keep_spool, patience=_PATIENCE)
        except (_native.Error, OSError) as error:
            say(f"{error}; try again with: whywait record --finish {world}")
            return code or 3
        joined.update(summary["worlds"])
        report(world, summary, quiet=quiet)
    _tell_to_link(recording, quiet=quiet)
    return code


def _tell_to_link(recording: launch.Recording, *, quiet: bool) -> None:
    """Say what the program lacks so that calls of a library inside of it are recorded."""
    program = program_of(recording.command)
    path = shutil.which(program[0]) if program else None
    if launch.records(recording, "armci") and path is not None and linked.hides_armci(Path(path)):
        say(
            "ARMCI is inside of the program; to see its operations, link before it what this prints: whywait record "
            "--link-flags armci",
            quiet=quiet,
        )


def report(directory: Path, summary: Mapping[str, Any], *, quiet: bool) -> None:
    """Say what was recorded, and what is missing."""
    for note in (*summary["notes"], *summary["damage"]):
        say(note, quiet=quiet)
    from whywait.report.values import quantity

    size = quantity(summary["bytes"], "bytes")
    ranks, calls, samples = (
        f"{quantity(summary[what], '')} {what.removesuffix('s') if summary[what] == 1 else what}"
        for what in ("ranks", "calls", "samples")
    )
    # Unless there are any, they were not asked for, or a note says why there are none.
    counts = [ranks, calls, f"{samples} ({summary['sampled']})"] if summary["samples"] else [ranks, calls]
    say(f"recorded {', '.join(counts)}, {size}: whywait analyze {directory}", quiet=quiet)


def _run(recording: launch.Recording) -> tuple[Path, int]:
    """Run a program; return the directory of the recording and the exit code."""
    program = launch.checked(recording)
    directory = launch.directory_for(recording)
    if launch.is_rank():
        announced = {**recording.options, "announce": "1"}
        # Only rank 0 makes the directory, once all ranks have begun.
        library = launch.recorder(program, recording)
        variables = launch.environment(
            launch.Recording(recording.command, options=announced, spool=recording.spool), directory.resolve(), library
        )
        launch.replace_process(preloading(recording.command, library), variables)
    absolute = launch.prepared(directory, recording)
    library = launch.recorder(program, recording, absolute / launch.SPOOL)
    code = launch.run(preloading(recording.command, library), launch.environment(recording, absolute, library))
    return directory, code


def _worlds(directory: Path) -> list[Path]:
    """Return the recordings that a command left: a second world of processes goes into a directory beside the first."""
    from whywait._native import is_unfinished_recording

    found = [directory]
    while is_unfinished_recording(further := directory.with_name(f"{directory.name}-{len(found) + 1}")):
        found.append(further)
    return found


def _has_spool(directory: Path) -> bool:
    return any((directory / launch.SPOOL).glob("*.wwd"))


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in (directory / launch.SPOOL).iterdir())


def _remove_empty(directory: Path) -> None:
    """Remove a directory in which nothing was recorded."""
    shutil.rmtree(directory / launch.SPOOL, ignore_errors=True)
    with suppress(OSError):
        directory.rmdir()


def say(text: str, *, quiet: bool = False) -> None:
    """Write a line to the standard error."""
    if not quiet:
        sys.stderr.write(f"whywait: {text}\n")
        sys.stderr.flush()


def print_environment(recording: launch.Recording) -> None:
    """Print what sets the environment of a job script so that its programs are recorded."""
    import shlex

    directory = launch.directory_for(recording)
    absolute = launch.prepared(directory, recording)
    library = launch.recorder([], recording, absolute / launch.SPOOL)
    for name, value in launch.environment(recording, absolute, library).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
