"""Files that Open MPI writes its software performance counters to: an XML file, and data files of each process.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), sections 3.6.1, 3.8.3, 3.8.4 and appendix B. Names of files and XML
elements, and what rules contain: Open MPI's wiki, "Software-based Performance Counters".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.counters import spc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

# Modes of OTF2: a total since the start, a level until the next sample, a level since the last one.
_TOTAL, _STATE, _WATERMARK = 0x00, 0x31, 0x21

#: Counters that can also decrease.
_STATES = {"UNEXPECTED_IN_QUEUE", "OOS_IN_QUEUE", "QUEUE_ALLOCATION", "UNEXPECTED_QUEUE_DATA", "OOS_QUEUE_DATA"}

#: How the names of all files begin; the directory for shared memory also has others.
_PREFIX = "spc_data"

_KNOWN = {one.name: one for one in (*spc.definitions(), *spc.FURTHER)}

_NANOSECONDS = {"unit": "s", "exponent": -9}


@dataclass(frozen=True)
class _Value:
    """A number in a data file: a counter, or one of the bins of a counter."""

    name: str
    counter: str
    offset: int
    unit: str
    mode: int
    is_time: bool = False


@dataclass
class _Layout:
    """The layout of the data files, from an XML file."""

    values: list[_Value]
    #: For each counter with bins, its name and the positions of its rules and bins.
    bins: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class _Process:
    """The data files of a process: the final values and the snapshots."""

    rank: int
    end: Path | None = None
    snapshots: list[tuple[int, Path]] = field(default_factory=list)


@dataclass(frozen=True)
class Imported:
    """The counters written into a trace."""

    counters: list[str]
    #: Counters that are 0 in all files, and are left out.
    zero: list[str]
    processes: int
    samples: int
    #: Seconds from the first to the last snapshot by their names, and from MPI_Init to MPI_Finalize, for the process
    #: with the largest difference. None without snapshots, or with an offset.
    spans: tuple[float, float] | None


@dataclass(frozen=True)
class Counted:
    """A counter, or a bin of one, in the files of a run.

    Attributes
    ----------
    name
        As in the files; that of a bin ends in its bounds.
    kind
        ``total``, ``level`` (now) or ``watermark`` (the maximum since the start).
    unit
        ``calls``, ``messages``, ``bytes``, ``s``, ...
    meaning
        What it counts, as a continuation of the unit; empty for counters that are not known.
    values
        The value of each rank at the end, or in the last snapshot.
    snapshots
        The values of each rank in its snapshots, with the numbers in their names.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    values: dict[int, float]
    snapshots: dict[int, list[tuple[int, float]]]

    @property
    def total(self) -> float | None:
        """The sum over the ranks; maxima have none."""
        return None if self.kind == "watermark" else sum(self.values.values())


def is_directory(path: Path) -> bool:
    """Return whether a directory has such files and no trace."""
    return path.is_dir() and any(path.glob(f"{_PREFIX}*")) and _native.source_of(path) is None


def read(directory: Path) -> list[Counted]:
    """Read the counters of a run.

    Parameters
    ----------
    directory
        The directory with the XML file and the data files.

    Returns
    -------
    list of Counted
        The counters in the order of the files, each followed by its bins. Times are in seconds.

    Raises
    ------
    whywait.ArchiveError
        If a file is missing, truncated, malformed, or of another run.
    """
    layout, clocks = _layout(directory)
    processes = _processes(directory)
    if not processes:
        raise _native.ArchiveError(f"{directory}: the data files of the processes are missing ({_PREFIX}*.RANK)")
    bins: dict[str, list[_Value]] = {}
    for one in _bins(layout, processes):
        bins.setdefault(one.counter, []).append(one)
    counters = [one for value in layout.values for one in (value, *bins.get(value.name, ()))]
    layout.values = counters
    last: dict[int, list[int]] = {}
    snapshots: dict[int, list[tuple[int, list[int]]]] = {}
    for process in processes:
        clock = _clock(process, clocks)
        rows = [(stamp, _read(path, layout, clock)) for stamp, path in process.snapshots]
        snapshots[process.rank] = rows
        last[process.rank] = _read(process.end, layout, clock) if process.end else rows[-1][1]
    kinds = {_TOTAL: "total", _STATE: "level", _WATERMARK: "watermark"}
    found = []
    for at, value in enumerate(counters):
        known = _KNOWN.get(spc.bare(value.counter))
        scale = 1e9 if value.is_time else 1
        found.append(
            Counted(
                value.name,
                kinds[value.mode],
                "s" if value.is_time else value.unit,
                known.meaning if known else "",
                {rank: row[at] / scale for rank, row in last.items()},
                {rank: [(stamp, row[at] / scale) for stamp, row in rows] for rank, rows in snapshots.items()},
            )
        )
    return found


def put_into(
    directory: Path, run: _native.Run, analysis: _native.Analysis, target: Path, *, offset: float | None = None
) -> Imported:
    """Write a copy of a trace with the counters of its processes.

    Without an offset, the first snapshot of a process is placed at the Leave of MPI_Init, the last one at the Enter of
    MPI_Finalize, and the others in proportion between them. All counters are 0 at the Enter of MPI_Init, and have their
    final values at the Leave of MPI_Finalize.

    Counters that are 0 in all files are left out: Open MPI also writes 0 for those that are off.

    Parameters
    ----------
    directory
        The directory with the XML file and the data files.
    run, analysis
        The trace that belongs to them, and its analysis.
    target
        The directory for the new archive; created if needed.
    offset
        Seconds to add to the numbers in the names of snapshots (taken as seconds) to get the time since the begin of
        the trace.

    Returns
    -------
    Imported
        The counters written into the trace.

    Raises
    ------
    whywait.ArchiveError
        If a file is missing, truncated, malformed, or of another run, or if all counters are 0.
    whywait.UsageError
        If the offset puts all snapshots of a process outside of the run.
    """
    import pyarrow as pa

    layout, clocks = _layout(directory)
    processes = _processes(directory)
    calls = {row["rank"]: row for row in pa.table(mpi.together(analysis.library_calls)).to_pylist()}
    known, found = sorted(calls), sorted(process.rank for process in processes)
    if known != found:
        raise _native.ArchiveError(
            f"{directory}: files of ranks {_listed(found)}, but the trace has ranks {_listed(known)}"
        )
    layout.values.extend(_bins(layout, processes))
    facts = analysis.facts()
    samples, spans = [], []
    for process in processes:
        clock = _clock(process, clocks)
        call = calls[process.rank]
        times, span = _sample_times(process, call, facts, offset)
        rows = [[0] * len(layout.values)]
        rows += [_read(path, layout, clock) for _, path in process.snapshots]
        if process.end:
            rows.append(_read(process.end, layout, clock))
        samples.append({"group": call["group"], "times": times, "values": rows})
        spans += [span] if span else []
    columns = zip(*(row for of in samples for row in of["values"]), strict=True)
    counted = {value.counter for value, column in zip(layout.values, columns, strict=True) if any(column)}
    if not counted:
        raise _native.ArchiveError(f"{directory}: all counters are 0; mpi_spc_attach selects those to count")
    is_kept = [value.counter in counted for value in layout.values]
    for of in samples:
        of["values"] = [list(compress(row, is_kept)) for row in of["values"]]
    kept = list(compress(layout.values, is_kept))
    counters = [
        {"name": value.name, "mode": value.mode}
        | (_NANOSECONDS if value.is_time else {"unit": value.unit, "exponent": 0})
        for value in kept
    ]
    _native.import_counters(run, target, "Open MPI SPC", counters, samples)
    return Imported(
        [value.name for value in kept],
        [value.name for value in layout.values if value.counter not in counted and value.name == value.counter],
        len(processes),
        sum(len(of["times"]) for of in samples),
        max(spans, key=lambda span: abs(span[0] - span[1]), default=None),
    )


def _clock(process: _Process, clocks: dict[str, int | None]) -> int | None:
    """Return the clock rate of a process: nodes may differ, and a single XML file stands for all."""
    return clocks.get(str(process.rank), next(iter(clocks.values())))


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "") if ranks else "none"


def _sample_times(
    process: _Process, call: dict[str, Any], facts: dict[str, Any], offset: float | None
) -> tuple[list[int], tuple[float, float] | None]:
    """Return the times of a process's samples (ticks), and the spans to compare (seconds)."""
    begin, end, resolution = call["init_leave"], call["finalize_enter"], facts["resolution"]
    stamps = [stamp for stamp, _ in process.snapshots]
    span = None
    if offset is not None:
        seconds = [stamp + offset for stamp in stamps]
        if seconds and not any(0 <= time <= facts["length"] for time in seconds):
            raise _native.UsageError(
                f"with an offset of {offset:g} s, the snapshots of rank {process.rank} begin at {seconds[0]:g} s "
                f"and end at {seconds[-1]:g} s, but the run ends at {facts['length']:g} s"
            )
        times = [facts["origin"] + round(time * resolution) for time in seconds]
    elif len(stamps) > 1 and stamps[-1] > stamps[0]:
        length = stamps[-1] - stamps[0]
        times = [begin + (end - begin) * (stamp - stamps[0]) // length for stamp in stamps]
        span = (float(length), (end - begin) / resolution)
    else:
        times = [begin for _ in stamps]
    times = [call["init_enter"], *times]
    if process.end:
        times.append(call["finalize_leave"])
    # Events in a trace are ordered by time.
    for number in range(1, len(times)):
        times[number] = max(times[number], times[number - 1])
    return times, span


def _read(path: Path, layout: _Layout, clock: int | None) -> list[int]:
    """Return the values of a data file; times in nanoseconds."""
    content = path.read_bytes()
    values = []
    for value in layout.values:
        number = _number(content, value.offset, "<q", path)
        if value.is_time:
            if not clock:
                raise _native.ArchiveError(f"{path}: the XML file lacks the clock rate (freq_mhz)")
            number = number * 1000 // clock
        values.append(number)
    return values


def _number(content: bytes, offset: int, kind: str, path: Path) -> int:
    try:
        # A negative offset would count from the end.
        (number,) = struct.unpack_from(kind, content, offset if offset >= 0 else len(content))
    except struct.error:
        text = f"{path}: {len(content)} bytes, where the XML file has a value at {offset}"
        raise _native.ArchiveError(text) from None
    return int(number)


def _layout(directory: Path) -> tuple[_Layout, dict[str, int | None]]:
    """Read the XML files: the layout, which all processes share, and the clock rate for each last field of their names.

    That is the rank of a process, but a file may also stand for all processes.
    """
    files = sorted(directory.glob(f"{_PREFIX}*.xml"))
    if not files:
        text = f"{directory}: the XML file that describes the counters is missing ({_PREFIX}*.xml)"
        raise _native.ArchiveError(text)
    layouts, clocks = zip(*map(_layout_of, files), strict=True)
    for path, layout in zip(files, layouts, strict=True):
        if layout != layouts[0]:
            raise _native.ArchiveError(f"{path}: the counters differ from those in {files[0].name}")
    return layouts[0], {path.stem.rpartition(".")[2]: clock for path, clock in zip(files, clocks, strict=True)}


def _layout_of(path: Path) -> tuple[_Layout, int | None]:
    try:
        # Expat limits the expansion of entities.
        root = ET.fromstring(path.read_bytes())  # noqa: S314
    except ET.ParseError as error:
        raise _native.ArchiveError(f"{path}: {error}") from error
    counters = [element for element in root.iter() if element.find("name") is not None]
    claimed = _integer(root, "num_counters", path)
    if not counters or (claimed is not None and claimed != len(counters)):
        raise _native.ArchiveError(f"{path}: declares {claimed or 0} counters but contains {len(counters)}")
    layout = _Layout([])
    for number, element in enumerate(counters):
        name = (element.findtext("name") or "").strip()
        bare = spc.bare(name)
        one = _KNOWN.get(bare)
        offset = _integer(element, "value_offset", path)
        mode = _STATE if bare in _STATES else _WATERMARK if one and one.kind == "watermark" else _TOTAL
        is_time = one.kind == "timer" if one else "TIME" in bare
        unit = one.unit if one else "#"
        layout.values.append(_Value(name, name, 8 * number if offset is None else offset, unit, mode, is_time))
        rules, bins = (_integer(element, place, path) for place in ("rules_offset", "bin_offset"))
        # Counters without bins have offsets of -1.
        if rules is not None and bins is not None and min(rules, bins) > 0:
            layout.bins.append((name, rules, bins))
    return layout, _integer(root, "freq_mhz", path)


def _integer(element: ET.Element, name: str, path: Path) -> int | None:
    text = element.findtext(f".//{name}")
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise _native.ArchiveError(f"{path}: {name} is {text!r}") from None


def _bins(layout: _Layout, processes: Sequence[_Process]) -> Iterator[_Value]:
    """Return the bins of counters with bins; the first file determines their bounds."""
    path = next(path for path in (processes[0].end, *(path for _, path in processes[0].snapshots)) if path)
    content = path.read_bytes()
    for name, rules, bins in layout.bins:
        # The first rule is the number of bins. The others are the upper bounds of all bins but the last, or the bounds
        # of small messages and small communicators.
        count = _number(content, rules, "<i", path)
        if not 2 <= count <= (bins - rules) // 4:
            raise _native.ArchiveError(f"{path}: {name} has {count} bins, with rules at {rules} and bins at {bins}")
        one = _KNOWN.get(spc.bare(name))
        if one and one.kind == "collective bin":
            labels = ["small,small", "small,large", "large,small", "large,large"]
        else:
            bounds = [_number(content, rules + 4 * number, "<i", path) for number in range(1, count)]
            labels = [*(f"<={bound}" for bound in bounds), f">{bounds[-1]}"]
        for number, label in enumerate(labels):
            yield _Value(f"{name}[{label}]", name, bins + 8 * number, one.unit if one else "#", _TOTAL)


def _processes(directory: Path) -> list[_Process]:
    """Find the data files: their names end in the rank, those of snapshots in the rank and the time."""
    files = {path.name: path for path in directory.glob(f"{_PREFIX}*") if path.is_file()}
    names = {name: path for name, path in files.items() if path.suffix != ".xml"}
    # Host names can contain dots and numbers. The XML file of a process is named after its final file, and the name of
    # a snapshot begins with that of the final file beside it; without such files, a snapshot's name has five fields.
    described = {path.stem for path in files.values() if path.suffix == ".xml"}
    has_ends = any(name.rpartition(".")[0] in names for name in names)
    found: dict[int, _Process] = {}
    for name, path in sorted(names.items()):
        parent, _, last = name.rpartition(".")
        before = parent.rpartition(".")[2]
        if not last.isdecimal():
            continue
        has_time = parent in names if has_ends else name.count(".") >= 4 and name not in described
        is_snapshot = before.isdecimal() and has_time
        rank = int(before if is_snapshot else last)
        process = found.setdefault(rank, _Process(rank))
        if is_snapshot:
            process.snapshots.append((int(last), path))
        elif process.end:
            raise _native.ArchiveError(
                f"{path}: rank {rank} also has the file {process.end.name}: the files are from two runs"
            )
        else:
            process.end = path
    for process in found.values():
        process.snapshots.sort()
    return sorted(found.values(), key=lambda process: process.rank)
