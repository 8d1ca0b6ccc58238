"""Files of other tools: what they are, and how to get a trace that can be read."""

from __future__ import annotations

import gzip
import re
import sqlite3
import zlib
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Kind(NamedTuple):
    """A kind of file.

    Attributes
    ----------
    name
        What it is, with an article.
    remedy
        What to do.
    content
        How its content begins; None if only the name tells.
    names
        The names of such files, one of which must fit in addition if there is no `content`; otherwise either will do.
    """

    name: str
    remedy: str
    content: re.Pattern[bytes] | None = None
    names: re.Pattern[str] | None = None


_RECORD = "record the program with `whywait record`, or with Score-P and SCOREP_ENABLE_TRACING=true"
_TRACE_OF_GPU = (
    "for a trace of MPI and GPUs, run the program with Score-P and SCOREP_ENABLE_TRACING=true; `whywait record` "
    "records its MPI calls"
)
_TEXT = re.IGNORECASE | re.DOTALL
_MAGIC = b"SQLite format 3\0"
# Begins what is known of a database, followed by the names of its tables.
_TABLES = b"tables of SQLite: "


def _export(ending: str) -> str:
    """Return the command that exports reports with an ending."""
    export = f'nsys export --type=sqlite --include-blobs=true -o "${{f%.{ending}}}.sqlite" "$f"'
    return f"for f in *.{ending}; do {export}; done"


# The first that fits counts.
_KINDS = (
    _Kind(
        "a file with the labels of a Paraver trace",
        "the trace itself (.prv, .prv.gz) must be beside it",
        None,
        re.compile(r".*\.(pcf|row)"),
    ),
    _Kind(
        "an intermediate file of Extrae",
        "make a Paraver trace of it with mpi2prv of Extrae, which is read",
        None,
        re.compile(r".*\.mpits?"),
    ),
    _Kind("a SLOG-2 trace of Jumpshot", _RECORD, re.compile(rb".{0,4}SLOG.?2", _TEXT), re.compile(r".*\.slog2")),
    _Kind("a CLOG-2 trace of MPE", _RECORD, re.compile(rb"CLOG-0"), re.compile(r".*\.clog2")),
    _Kind(
        "an OTF 1 trace of VampirTrace",
        f"its successor OTF2 is read: {_RECORD}",
        None,
        re.compile(r".*\.otf|.*\.\d+\.(events|def|stats|snaps)(\.z)?"),
    ),
    _Kind("a trace of Intel Trace Collector", _RECORD, None, re.compile(r".*\.stf(\..*)?")),
    _Kind(
        "an EPILOG trace of Scalasca 1", _RECORD, re.compile(rb"EPILOG"), re.compile(r".*\.elg|epik\.(esd|elg|path)")
    ),
    _Kind(
        "a Cube 3 profile",
        "convert it to Cube 4 with cube3to4 of CubeLib, and give the new file (profile.cubex)",
        re.compile(rb"\s*(<\?xml[^>]*>)?\s*<cube\b", _TEXT),
        re.compile(r".*\.cube(\.gz)?"),
    ),
    _Kind(
        "a trace of the PyTorch profiler",
        "it has no events, or is not called .json: profile some steps of all ranks",
        re.compile(rb"\s*\{.*\"(schemaVersion|deviceProperties|distributedInfo)\"", _TEXT),
        re.compile(r".*\.pt\.trace\.json(\.gz)?"),
    ),
    _Kind(
        "a trace in Chrome's JSON format",
        f"it has no records of messages; {_RECORD}. `whywait export perfetto` writes such a trace from OTF2",
        re.compile(rb"\s*(\{.*\"traceEvents\"|\[\s*\{.*\"ph\"\s*:)", _TEXT),
    ),
    _Kind(
        "a trace of Perfetto",
        f"it has no records of messages; {_RECORD}. `whywait export perfetto` writes such a trace from OTF2",
        None,
        re.compile(r".*\.(pftrace|perfetto-trace)"),
    ),
    *(
        _Kind(
            "an older one of NVIDIA's own formats, which only nsys reads",
            f"export it, with nsys of that age or newer: {_export(ending)}",
            None,
            re.compile(rf".*\.{ending}"),
        )
        for ending in ("qdrep", "qdstrm")
    ),
    _Kind(
        "NVIDIA's own format, which only nsys reads",
        f"export it: {_export('nsys-rep')}",
        re.compile(rb"NVIDIA Tegra Profiler Report"),
        re.compile(r".*\.nsys-rep"),
    ),
    _Kind(
        "an export of Nsight Systems that is not read",
        f"export the report to SQLite: {_export('nsys-rep')}",
        None,
        re.compile(
            r"((CUPTI_ACTIVITY_KIND|TARGET_INFO|NVTX|MPI)_\w+|StringIds)\.(parquet|arrows?)"
            r"|report[\w.]*\.(arrows?|jsonl|h5|hdf5?)"
        ),
    ),
    _Kind(
        "a file of a kind that is not read, in which Nsight Systems exports, too",
        f"if it is such an export, export the report to SQLite: {_export('nsys-rep')}",
        None,
        re.compile(r".*\.(arrows?|jsonl|h5|hdf5?)"),
    ),
    _Kind("a database of ROCm's profilers", _TRACE_OF_GPU, re.compile(_TABLES + rb".*\brocpd_", re.DOTALL)),
    _Kind(
        "an SQLite database",
        f"exports of Nsight Systems are read, which have a table META_DATA_EXPORT; {_RECORD}",
        re.compile(_TABLES + rb"(?!.*(CUPTI_ACTIVITY_KIND_RUNTIME|META_DATA_EXPORT|EXPORT_META_DATA))", re.DOTALL),
    ),
    _Kind("a report of Nsight Compute", _TRACE_OF_GPU, None, re.compile(r".*\.ncu-rep")),
    _Kind(
        "a profile of TAU",
        "run the program with TAU_TRACE=1 and TAU_TRACE_FORMAT=otf2 for a trace",
        re.compile(rb"\d+ templated_functions"),
        re.compile(r"profile\.\d+\.\d+\.\d+|.*\.ppk|tauprofile\.xml"),
    ),
    _Kind(
        "a trace of TAU",
        "convert it to OTF2 (tau_treemerge.pl, then tau2otf2), or run the program with TAU_TRACE_FORMAT=otf2",
        None,
        re.compile(r"tautrace\.\d+\.\d+\.\d+\.trc|events\.\d+\.edf|tau\.(trc|edf)"),
    ),
    _Kind(
        "a file of HPCToolkit",
        _RECORD,
        re.compile(rb"HPC(RUN|PROF|TRACE|TOOLKIT)|\s*<\?xml[^>]*>.*<HPCToolkitExperiment", _TEXT),
        re.compile(r".*\.hpc(run|trace)"),
    ),
    _Kind(
        "a trace in the Common Trace Format, as LTTng writes it",
        _RECORD,
        re.compile(rb"\xc1\x1f\xfc\xc1|\xc1\xfc\x1f\xc1|\x57\x1d\xd1\x75|\x75\xd1\x1d\x57|/\* CTF "),
    ),
    _Kind("a profile of mpiP", _RECORD, re.compile(rb"@ mpiP"), re.compile(r".*\.mpiP")),
    _Kind("a profile of IPM", _RECORD, re.compile(rb"\s*<\?xml[^>]*>\s*<ipm", _TEXT), re.compile(r".*\.ipm\.xml")),
    _Kind("a file of CrayPat", _RECORD, None, re.compile(r".*\.(xf|ap2)")),
    _Kind("a result of VTune", _RECORD, None, re.compile(r".*\.(vtune|amplxe)")),
    _Kind(
        "a profile of Valgrind",
        _RECORD,
        re.compile(rb"# callgrind format|desc: .*(cmd|events): ", re.DOTALL),
        re.compile(r"(callgrind|cachegrind|massif)\.out\..*"),
    ),
    _Kind(
        "a flame graph of speedscope",
        f"{_RECORD}. `whywait export speedscope` writes such a file",
        re.compile(rb"\s*\{.*speedscope\.app/file-format", _TEXT),
        re.compile(r".*\.speedscope\.json"),
    ),
    _Kind(
        "a profile of pprof",
        f"{_RECORD}. `whywait export pprof` writes such a file",
        None,
        re.compile(r".*\.(pprof|pb(\.gz)?)"),
    ),
    _Kind("a profile of perf", _RECORD, re.compile(rb"PERFILE2")),
    _Kind("a profile of gprof", _RECORD, re.compile(rb"gmon"), re.compile(r"gmon\.out")),
    _Kind("a profile of Caliper", _RECORD, re.compile(rb"__rec="), re.compile(r".*\.cali")),
    _Kind("a log of Darshan", _RECORD, None, re.compile(r".*\.darshan")),
)
_READ = 1 << 16
# Files of a directory that are looked at.
_LOOKED_AT = 50


def foreign(path: Path) -> str | None:
    """Return what a file of another tool is, and what to do, as two sentences; None if it is not known.

    Parameters
    ----------
    path
        The file, or a directory with such files.
    """
    for file in _files(path):
        head = _head(file)
        for kind in _KINDS:
            if (kind.content is not None and kind.content.match(head)) or (
                kind.names is not None and kind.names.fullmatch(file.name)
            ):
                return f"{file} is {kind.name}. {kind.remedy[0].upper()}{kind.remedy[1:]}"
    return None


def _files(path: Path) -> Iterator[Path]:
    """Yield the files to look at."""
    if path.is_file():
        yield path
    elif path.is_dir():
        with suppress(OSError):
            yield from [file for file in sorted(path.iterdir()) if file.is_file()][:_LOOKED_AT]


def _head(file: Path) -> bytes:
    """Return the begin of a file, uncompressed, or the names of a database's tables; nothing if it cannot be read."""
    try:
        with file.open("rb") as raw:
            head = raw.read(_READ)
    except OSError:
        return b""
    if head.startswith(_MAGIC):
        # Of a damaged schema, names are no text, nor is what SQLite says of them.
        damage = (sqlite3.Error, UnicodeDecodeError)
        with suppress(*damage), closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as base:
            names = base.execute("SELECT CAST(name AS BLOB) FROM sqlite_schema WHERE name IS NOT NULL")
            return _TABLES + b" ".join(name for (name,) in names)
        return b""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        with gzip.open(file) as packed:
            return packed.read(_READ)
    except (OSError, EOFError, zlib.error):
        return head
