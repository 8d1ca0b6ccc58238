"""Put the software performance counters of Open MPI into a trace."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Help, answers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_IMPORT = """\
Write a copy of a trace with the software performance counters of Open MPI: from the data file of each process, \
snapshots of these, and the XML file that describes them."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command below `whywait counters`."""
    parser.usage = f"{parser.prog} [options] TRACE\n       {parser.prog} COMMAND ..."
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog=parser.prog)
    importing: argparse.ArgumentParser = commands.add_parser(
        "import",
        help="copy a trace and add the counters that Open MPI wrote to files",
        description=textwrap.fill(_IMPORT, 98),
        epilog="example:\n  whywait counters import /dev/shm/spc traces.otf2 -o with-counters\n",
        formatter_class=Help,
    )
    importing.add_argument(
        "directory",
        metavar="SPC_DIR",
        help="the directory where Open MPI wrote the XML file, data files, and snapshots",
    )
    importing.add_argument("trace", metavar="TRACE", help="the anchor file of an OTF2 archive, or its directory")
    importing.add_argument("-o", "--output", required=True, metavar="DIR", help="the directory to write the archive to")
    importing.add_argument(
        "--offset",
        type=float,
        metavar="SECONDS",
        help="offset that converts snapshot times to seconds since the start of the trace (default: map the snapshots "
        "to the time from MPI_Init to MPI_Finalize)",
    )
    answers(importing, _import)


def _import(options: argparse.Namespace) -> Answer | int:
    """Write a copy of a trace with the counters of Open MPI."""
    import whywait
    from whywait import _native, mpi
    from whywait.analysis.counters import spc_files

    directory, trace = Path(options.directory), Path(options.trace)
    if not directory.is_dir():
        raise whywait.UsageError(f"{directory}: no such directory")
    run = _native.Run(trace)
    analysis = mpi.analyze(run, causes=False)
    target = Path(options.output)
    done = spc_files.put_into(directory, run, analysis, target, offset=options.offset)
    file = target / f"{run.archive_name}.otf2"
    data = {
        "file": str(file),
        "counters": done.counters,
        "zero": done.zero,
        "processes": done.processes,
        "samples": done.samples,
        "snapshot_span": done.spans and done.spans[0],
        "run_span": done.spans and done.spans[1],
    }
    return Answer(data, lambda _: _lines(data))


def _lines(done: dict[str, Any]) -> Iterator[Line]:
    counters, zero = len(done["counters"]), len(done["zero"])
    what = f"{counters} counters of {done['processes']:,} processes, {done['samples']:,} samples"
    yield [(f"Written to {done['file']}: {what}", "")]
    if zero:
        number = f"{zero} more {'is' if zero == 1 else 'are'}"
        yield [(f"{number} 0 in all files and left out: turned off, or nothing to count", "")]
    if done["snapshot_span"] is not None:
        text = f"Snapshots span {done['snapshot_span']:.6g} s by their names, "
        text += f"MPI_Init to MPI_Finalize {done['run_span']:.6g} s: they are fitted; "
        yield [(f"{text}--offset takes their times as they are", "")]
