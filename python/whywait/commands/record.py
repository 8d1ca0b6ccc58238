"""Record the MPI calls of a program."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import Any

from whywait.commands.common import BARE_SAMPLE, SAMPLE, Help, memory_size, positive

_DESCRIPTION = """\
Run a program and record its MPI calls as an OTF2 archive. The program needs no preparation: a library is loaded into
its processes. COMMAND is the program or its launcher: `whywait record mpiexec -n 4 ./solver`. Where the launcher does
not pass the environment to other machines, put it first: `mpiexec -n 4 whywait record ./solver`.
"""
_EXAMPLE = """\
examples:
  whywait record mpiexec -n 4 ./solver input            into whywait-solver.1
  whywait record -o run.1 mpiexec -n 4 python solver.py
  whywait record --groups=-p2p,misc --window 10:20 mpiexec -n 4 ./solver
  whywait record --counters rusage,core --threads mpiexec -n 4 ./solver
  whywait record --repeat 5 -o before mpiexec -n 4 ./solver       into before.1 to before.5
  mpiexec -n 64 --hostfile hosts whywait record ./solver          the launcher first
  eval "$(whywait record --print-env -o run.1)"                   in a job script
  whywait record --finish run.1                                   what was left by a job
  mpicc ga.o -lga $(whywait record --link-flags armci) -larmci    with ARMCI inside
then: whywait analyze whywait-solver.1 --html
"""


# Samples of a thread in a second of its CPU time.
_RATE = 100
_FASTEST = 10_000


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "record",
        help="record the MPI calls of a program",
        description=textwrap.fill(_DESCRIPTION, 98),
        epilog=_EXAMPLE,
        formatter_class=Help,
        usage="whywait record [OPTIONS] [--] COMMAND [ARG...]",
    )
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the program and its arguments")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="the archive to make (default: the first free whywait-NAME.N)"
    )
    parser.add_argument("--force", action="store_true", help="replace a recording in DIR")
    parser.add_argument(
        "--groups",
        type=_groups,
        metavar="LIST",
        default="env,p2p,coll,cg,rma,io,spawn,shmem,armci",
        help="functions to record: env, p2p, coll, cg, rma, io, spawn, shmem, armci, cg_query, misc, all, or -NAME "
        "(default: env,p2p,coll,cg,rma,io,spawn,shmem,armci); in addition, posix: files of POSIX and C",
    )
    parser.add_argument(
        "--callpaths", choices=("auto", "off"), default="auto", help="whether to record from where MPI is called"
    )
    parser.add_argument(
        "--depth",
        type=positive,
        metavar="N",
        default=128,
        help="functions of a call path, innermost ones (default: 128)",
    )
    parser.add_argument(
        "--python",
        choices=("auto", "off", "all"),
        default="auto",
        help="functions of Python on call paths: those of the program, none, or those of packages as well "
        "(default: auto)",
    )
    parser.add_argument(
        "--only",
        metavar="REGEX",
        default="",
        help="keep functions with a match in their names, of MPI and on call paths; messages stay in any case",
    )
    parser.add_argument("--filter", metavar="REGEX", default="", help="drop functions with a match in their names")
    parser.add_argument(
        "--threads",
        action="store_true",
        help="record Pthreads (threads that the program makes and joins, locks, condition variables, barriers) and, "
        "with LLVM's runtime, OpenMP",
    )
    parser.add_argument(
        SAMPLE,
        type=_rate,
        metavar="RATE",
        default=0,
        help="look at what threads do between calls, so many times in a second of their CPU time: --sample=RATE, or "
        f"--sample for {_RATE}",
    )
    parser.add_argument(
        "--counters",
        metavar="LIST",
        default="",
        help="counters to read at each call: rusage (times, page faults, context switches), core, events of perf such "
        "as instructions and cache-misses, mpi or mpi:PATTERN (performance variables of MPI_T)",
    )
    parser.add_argument(
        "--keep-tests",
        action="store_true",
        help="record each MPI_Test, MPI_Iprobe, ... by itself; otherwise those one after the other until one finds "
        "something are one call, which waits",
    )
    parser.add_argument(
        "--max-size",
        type=memory_size,
        metavar="SIZE",
        default=4 << 30,
        help="most that a process records, such as 500M (default: 4G)",
    )
    parser.add_argument(
        "--window",
        metavar="FROM:TO",
        default="",
        help="seconds after MPI_Init, or call:N..M of MPI_Pcontrol, to record",
    )
    parser.add_argument(
        "--spool", type=Path, metavar="DIR", help="a directory on each machine for files during the run"
    )
    parser.add_argument(
        "--model",
        choices=("full", "scorep7"),
        default="full",
        help="write all records, or only those that Score-P 7.1 writes",
    )
    parser.add_argument(
        "--mpi", type=Path, metavar="LIBRARY", action="append", default=[], help="the program's MPI library"
    )
    parser.add_argument("--keep-spool", action="store_true", help="keep the recorder's own files")
    parser.add_argument("--no-sync", action="store_true", help="do not compare the clocks of machines")
    parser.add_argument("--no-helper", action="store_true", help="do not prepare files in a thread")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "--repeat",
        type=positive,
        metavar="N",
        default=1,
        help="run and record N times, into archives of their own (with -o: DIR.1, DIR.2, ...), as for `whywait series`",
    )
    parser.add_argument("--finish", type=Path, metavar="DIR", help="finish a recording that was left, and run nothing")
    parser.add_argument(
        "--link-flags",
        choices=("armci",),
        help="print what to link to a program that has this library inside, before the library, so that its calls are "
        "recorded, and run nothing",
    )
    parser.add_argument("--print-env", action="store_true", help="print what job scripts need to set, and run nothing")
    parser.add_argument("--json", action="store_true", help="with --finish: print the result as JSON")
    parser.set_defaults(run=run, together=True, analyzes=False, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Record a program, or finish a recording."""
    from whywait import _record
    from whywait._record import launch

    parser: argparse.ArgumentParser = options.parser
    if options.finish is not None:
        return _finish(options)
    if options.link_flags is not None:
        return _link_flags(options.link_flags)
    # The command may have an option of this name.
    words = [SAMPLE if word == BARE_SAMPLE else word for word in options.command]
    command = words[1:] if words[:1] == ["--"] else words
    if not command and not options.print_env:
        parser.error("COMMAND is missing")
    if options.repeat > 1 and (options.print_env or launch.is_rank()):
        parser.error("--repeat goes before the launcher, and not with --print-env")
    try:
        code = 0
        for number in range(1, options.repeat + 1):
            output = options.output
            if output is not None and options.repeat > 1:
                output = output.with_name(f"{output.name}.{number}")
            recording = launch.Recording(
                command, output, options.force, _recorder_options(options), options.spool, options.mpi
            )
            if options.print_env:
                _record.print_environment(recording)
                return 0
            code = _record.execute(recording, keep_spool=options.keep_spool, quiet=options.quiet)
            if code:
                break
    except ValueError as error:
        parser.error(str(error))
    except launch.LaunchError as error:
        if error.code == 2:
            parser.error(str(error))
        _record.say(str(error))
        return error.code
    return code


def _recorder_options(options: argparse.Namespace) -> dict[str, str]:
    from whywait._record.launch import recorder_options

    return recorder_options(
        groups=options.groups,
        callpaths=options.callpaths == "auto",
        depth=options.depth,
        max_size=options.max_size,
        window=options.window,
        model=options.model,
        sync=not options.no_sync,
        python=options.python,
        only=options.only,
        filter=options.filter,
        counters=options.counters,
        threads=options.threads,
        keep_tests=options.keep_tests,
        sample=options.sample,
        helper=not options.no_helper,
        quiet=options.quiet,
    )


def _finish(options: argparse.Namespace) -> int:
    from whywait import _native, _record
    from whywait.commands.common import Progress

    with Progress(quiet=options.quiet) as progress:
        summary = _native.finish_recording(
            options.finish, keep_spool=options.keep_spool, progress=lambda share: progress("finishing", share)
        )
    if options.json:
        from whywait.commands.answers import Answer, tell

        return tell(Answer(summary, lambda _: ()), as_json=True)
    _record.report(options.finish, summary, quiet=options.quiet)
    return 0


def _link_flags(library: str) -> int:
    from whywait import _record
    from whywait._record import linked

    try:
        sys.stdout.write(f"{linked.flags(library)}\n")
    except linked.LinkError as error:
        _record.say(str(error))
        return 3
    return 0


def _rate(text: str) -> int:
    if f"{SAMPLE}={text}" == BARE_SAMPLE:
        return _RATE
    rate = int(text) if text.isdecimal() else -1
    if not 0 <= rate <= _FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of samples a second from 0 to {_FASTEST}")
    return rate


def _groups(text: str) -> str:
    from whywait._record.launch import chosen_groups

    try:
        chosen_groups(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
