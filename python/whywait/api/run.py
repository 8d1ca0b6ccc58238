"""Open a trace, and read its definition records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.model.names import GENERIC, close
from whywait.model.user_cache import user_cache
from whywait.store.files import MANIFEST

# Arrow takes longer to import than a trace to open.
if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from whywait._native import Run as NativeRun
    from whywait.model.trace import TraceIdentity

# Fields that refer to a String record; fields of a single kind are prefixed with its name.
_TEXTS = frozenset(
    "name class_name description source_file canonical_name string_value unit identification "
    "SourceCodeLocation.file".split()
)


class Definitions(Mapping[str, "pa.Table"]):
    """The definition records of a trace, one Arrow table per kind.

    >>> run.definitions["Region"].column_names[:2]
    ['id', 'name']
    >>> run.definitions.kinds()[:3]
    ['ClockProperties', 'Paradigm', 'String']

    Columns are the fields of the OTF2 record: references to strings as text, other references as numbers, and
    enumerations by name. A kind that does not occur raises `KeyError`.
    """

    def __init__(self, run: _native.Run) -> None:
        self._run = run

    def kinds(self) -> list[str]:
        """Return the kinds of records in the trace."""
        return self._run.definition_kinds()

    def __getitem__(self, kind: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        if kind not in self.kinds():
            raise KeyError(f"{kind}{close(kind, self.kinds())}")
        table = pa.table(self._run.definitions(kind))
        for index, name in enumerate(table.column_names):
            if (name in _TEXTS or f"{kind}.{name}" in _TEXTS) and pa.types.is_integer(table.schema.types[index]):
                rows = pc.index_in(table[name], self._strings["id"].cast(table.schema.types[index]))
                table = table.set_column(index, name, self._strings["string"].take(rows))
        return table

    @cached_property
    def _strings(self) -> pa.Table:
        import pyarrow as pa

        return pa.table(self._run.definitions("String")).combine_chunks()

    def _ipython_key_completions_(self) -> list[str]:
        return self.kinds()

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds())

    def __len__(self) -> int:
        return len(self.kinds())


# Score-P writes one by default, and a trace only if asked to.
_PROFILE = (
    "{} a profile, not a trace: run the program with SCOREP_ENABLE_TRACING=true for a trace, or see the profile with "
    "whywait tree {}"
)


def _suggestion(path: Path) -> str:
    """Suggest what a path without an archive may mean: another file, a profile, a result, or a subdirectory."""
    # "." and "/" have no name.
    if path.name and (anchor := _native.anchor_beside(path)) is not None:
        return f"did you mean {anchor}?"
    if path.is_file():
        return _PROFILE.format("it is", path) if path.suffix == ".cubex" else "it is empty" * (not path.stat().st_size)
    if not path.is_dir() or _native.source_of(path) is not None:
        return ""
    if (path / MANIFEST).is_file():
        return "it holds a result of whywait analyze, not a trace"
    inside = sorted(below for below in path.iterdir() if below.is_dir())
    if found := next((below for below in inside if _native.source_of(below) is not None), None):
        return f"did you mean {found}?"
    profile = path / "profile.cubex"
    return _PROFILE.format("it holds", profile) if profile.is_file() else ""


def _foreign(path: Path) -> str | None:
    """Return what a path without an anchor of OTF2 is, if it is of another tool."""
    if _native.source_of(path) is not None:
        return None
    # Only errors need it.
    from whywait.store.foreign import foreign

    return foreign(path)


def directory_on_disk(path: Path) -> Path | None:
    """Return a directory for what of a trace does not fit into memory; None for the system's temporary directory."""
    beside = path if path.is_dir() else path.parent
    if os.access(beside, os.W_OK):
        return beside
    try:
        user_cache().mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return user_cache()


class Run:
    """An open trace. Its definitions have been read, its events have not.

    Parameters
    ----------
    path
        The anchor file of the archive, or the directory that contains one; or the directory of the traces of PyTorch's
        profiler, one a rank, or of the SQLite exports of Nsight Systems, one or several reports of a run; or a Paraver
        trace.
    memory_limit, spill_directory
        How much memory to take while a trace is read that has no definitions apart, as for `whywait.analyze`.
    options
        How such traces are read, as `whywait.open` takes it.

    Raises
    ------
    whywait.ArchiveError
        If the anchor or the global definitions cannot be read.
    whywait.UsageError
        If a directory contains no archive, or more than one.
    OSError
        If a file cannot be read.
    """

    #: Where data is that does not fit into memory, if anywhere.
    spill_directory: str | PathLike[str] | None = None
    _options: Mapping[str, Any] = {}

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        memory_limit: int | None = None,
        spill_directory: str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        if memory_limit is not None:
            self.spill_directory = spill_directory or directory_on_disk(Path(path))
            _native.limit_memory(None, memory_limit, self.spill_directory)
        self._options = {name: value for name, value in options.items() if value is not None}
        if _native.is_unfinished_recording(path):
            _native.finish_recording(path)
        try:
            self._opened = _native.Run(path, **self._options)
        except (_native.ArchiveError, _native.UsageError) as error:
            if hint := _suggestion(Path(path)):
                # The reader of a format can have said it.
                if hint not in str(error):
                    error.add_note(hint)
            elif (known := _foreign(Path(path))) is not None:
                raise _native.ArchiveError(known) from error
            raise

    @property
    def _native(self) -> _native.Run:
        return self._opened

    @property
    def path(self) -> Path:
        """The anchor file."""
        return Path(self._native.anchor_path)

    @property
    def name(self) -> str:
        """The name of the run: that of the archive, or, if that is generic, of a directory that contains it."""
        names = [self._native.archive_name, *(directory.name for directory in self.path.resolve().parents)]
        return next((name for name in names if name and name not in GENERIC), names[0])

    @property
    def archive_name(self) -> str:
        """The name of the archive; of other traces, the one that an archive of them has."""
        return self._native.archive_name

    @property
    def identity(self) -> TraceIdentity:
        """The current identity of the trace."""
        from whywait.model.trace import TraceIdentity

        return TraceIdentity.of(self.name, self.path)

    def reopen(self) -> NativeRun:
        """Open the trace again."""
        return _native.Run(self.path, **self._options)

    @cached_property
    def definitions(self) -> Definitions:
        """The definition records, by kind.

        >>> run.definitions["Comm"].num_rows
        2
        """
        return Definitions(self._native)

    @cached_property
    def locations(self) -> pa.Table:
        """The streams of events, one row per location.

        ``location`` (index), ``id``, ``name``, ``type``, ``group``, ``rank`` (-1 if not of a process), ``thread`` and
        ``events``.
        """
        import pyarrow as pa

        return pa.table(self._native.locations())

    def events(self, location: int | None = None) -> pa.Table:
        """Return the events of one location, or of all.

        Parameters
        ----------
        location
            Its index, 0..n-1, as in `locations`; None for all, one location after the other.

        Returns
        -------
        pyarrow.Table
            ``time`` (ticks, with clock correction), ``type``, and a nullable column for each field that occurs. Of all
            locations, ``location`` comes first.

        Examples
        --------
        >>> run.events(0).column("type").to_pylist()[:2]
        ['ProgramBegin', 'Enter']
        """
        import pyarrow as pa

        if location is not None:
            return pa.table(self._native.events(location))
        pieces = []
        for index in range(self.locations.num_rows):
            piece = pa.table(self._native.events(index))
            pieces.append(piece.add_column(0, "location", pa.array([index] * piece.num_rows, pa.uint32())))
        return pa.concat_tables(pieces, promote_options="permissive")

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """Errors in the definitions whose meaning is still clear: kind, place, and text of each."""
        return self._native.oddities()

    def _facts(self, kind: str) -> dict[str, Any] | None:
        known = self._native.facts().get(kind)
        return None if known is None else known | {"options": dict(self._options)}

    @cached_property
    def traces(self) -> dict[str, Any] | None:
        """What is known of the ranks of a profiler's traces besides events; None for other runs.

        The profiler is PyTorch's or Nsight Systems.

        ``world_size``; ``missing``: ranks without a file; ``versions``: name and version; ``recorded``: what the
        profiler was asked for besides the defaults; ``cycle`` of ``cycles``; ``left_out``: file and reason; ``ranks``
        and ``groups``, a dictionary each; ``options``: how they were read.
        """
        return self._facts("traces")

    @cached_property
    def nsight(self) -> dict[str, Any] | None:
        """What is known of reports of Nsight Systems besides events and ranks; None for other runs.

        ``reports``: ``file``, ``product``, ``schema``, ``host``, and ``ranks`` of each; ``tables``: name and number of
        rows; ``unread``: tables that say something of the program, but not what is analyzed; ``clocks``: how they were
        related; ``separate_clocks``: whether those of the reports of one node may differ; ``untested``: programming
        models whose tables were read by their published schema alone; ``untraced``: ranks that complete requests in
        calls that are not traced; ``notes``: what is inferred or left out, and how often; ``findings``: which of these
        may be a defect, by kind and place in ``notes``; ``options``: how they were read. Their ranks are in `traces`.
        """
        return self._facts("nsight")

    @cached_property
    def paraver(self) -> dict[str, Any] | None:
        """What is known of a Paraver trace besides events; None for other runs.

        ``tasks``: number in each application; ``history``: what was done to the file after it was recorded;
        ``cut``: begin and end of its window, and length of the original, in ticks; ``callers``: levels; ``counters``:
        names; ``has_functions``: whether they are recorded by themselves, and not as callers alone; ``has_mpi``;
        ``messages``; ``operations``: of collective communication; ``inferred``: calls that complete non-blocking sends
        by inference; ``records``; ``options``: how it was read.
        """
        return self._facts("paraver")

    def info(self, *, events: bool = False) -> dict[str, Any]:
        """Return the sizes of the trace and an estimate of the memory that its analysis takes.

        ``events`` is the number that the definitions declare; event files may have fewer.

        Parameters
        ----------
        events
            Whether to count the events by kind. This reads the whole trace.

        Examples
        --------
        >>> run.info()["events"]
        23624
        """
        return self._native.info(events=events)

    def __repr__(self) -> str:
        return f"<whywait.Run {self.name!r}, {self.locations.num_rows} locations>"

    def _repr_html_(self) -> str:
        from whywait.report.html import run_table

        return run_table(self)


def open(  # noqa: A001
    path: str | PathLike[str],
    *,
    paths: str | None = None,
    cycle: int | None = None,
    comm_kernels: list[str] | None = None,
    memory: bool | None = None,
    types: list[int] | None = None,
    application: int | None = None,
    truncated: bool | None = None,
    inference: bool | None = None,
    memory_limit: int | None = None,
    spill_directory: str | PathLike[str] | None = None,
) -> Run:
    """Open a trace and read its definitions, but not its events.

    Parameters
    ----------
    path
        The anchor file of an OTF2 archive (usually ``traces.otf2``), or the directory that contains one; or a directory
        with traces of PyTorch's profiler, one a rank; or SQLite exports of Nsight Systems, one or several reports of a
        run; or a Paraver trace (``.prv``, ``.prv.gz``).
    paths
        What call paths of traces of PyTorch's profiler consist of: ``op`` (annotations and operators), ``module``
        (modules and functions of the user as well; the default), ``python`` (all frames), or ``all`` (all, with names
        as they are). Of reports of Nsight Systems, only the last makes a difference: otherwise values in names are left
        out.
    cycle
        Which of several recorded windows of such traces to read, from 1; the last one by default.
    comm_kernels
        Further kernels that communicate: a regular expression and the kind of operation each, such as
        ``my_reduce.*=all_reduce``.
    memory
        Whether memory in use is read where there are more than 10,000 samples of it on a rank as well.
    types
        Further types of events of a Paraver trace that are regions.
    application
        The only application of a Paraver trace that is read, from 1; all of them by default.
    truncated
        Whether a Paraver trace that is cut off within a record is read up to there.
    inference
        Whether it is inferred which calls of a Paraver trace complete non-blocking sends; true by default.
    memory_limit
        Memory of this process in bytes while the trace is read, and until an analysis has its own limit, or none:
        traces that have no definitions apart are read as a whole. What does not fit goes to a file.
    spill_directory
        Directory of this file; by default that of the trace if it is writable, else a cache directory.

    Returns
    -------
    Run

    Raises
    ------
    whywait.ArchiveError, whywait.UsageError, OSError
        As in `Run`.

    Examples
    --------
    >>> whywait.open("tests/data/stencil")
    <whywait.Run 'stencil', 8 locations>
    """
    return Run(
        path,
        paths=paths,
        cycle=cycle,
        comm_kernels=comm_kernels,
        memory=memory,
        types=types,
        application=application,
        truncated=truncated,
        inference=inference,
        memory_limit=memory_limit,
        spill_directory=spill_directory,
    )
