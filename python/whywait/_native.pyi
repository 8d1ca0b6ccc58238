"""The compiled part, which only `whywait` itself uses.

Tables are Arrow tables without their library. Times in s are f64 and count from the start of the trace. Locations are
numbered by index, call paths by number.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, final

from typing_extensions import Buffer

__version__: str

class Error(Exception):
    """Base of all errors of this package."""

class ArchiveError(Error):
    """The file is at fault: missing, cut off, or not what it says it is."""

class TraceError(Error):
    """The content of the trace is at fault: unmatched or inconsistent."""

class UsageError(Error):
    """The caller is at fault."""

@final
class Table:
    """A table that any Arrow library can take over without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Ranks(Protocol):
    """Processes that analyze a run together: `whywait.mpi.Ranks`."""

    size: int
    rank: int

    def deliver(self, parcels: Sequence[Buffer]) -> list[Buffer]:
        """Send one parcel to each process; return those received, by sender."""

@final
class Run:
    """A run whose definitions have been read."""

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        paths: str | None = None,
        cycle: int | None = None,
        comm_kernels: list[str] | None = None,
        memory: bool = False,
        types: list[int] | None = None,
        application: int | None = None,
        truncated: bool = False,
        inference: bool = True,
    ) -> Run: ...
    def facts(self) -> dict[str, dict[str, Any]]:
        """Return what is known of the source besides definitions and events, by kind; nothing of an archive.

        ``traces``, of a profiler (PyTorch's or Nsight Systems): ``world_size``, ``missing`` (ranks without a file),
        ``steps`` (numbers of those that all ranks have), ``versions`` (name and version), ``recorded`` (``stacks``,
        ``shapes``, ...), ``cycle`` of ``cycles``, ``left_out`` (file and reason), ``ranks`` and ``groups`` (a
        dictionary each).

        ``nsight``: ``reports`` (``file``, ``product``, ``schema``, ``host``, and ``ranks`` of each), ``tables`` (name
        and rows), ``unread`` (tables that say something of the program, but not what is analyzed), ``clocks`` (how they
        were related), ``separate_clocks``, ``untested`` (programming models read by their published schema alone), and
        ``notes`` (what is inferred or left out, and how often).

        ``paraver``: ``tasks`` (number of each application), ``history`` (what was done to the file), ``cut`` (begin and
        end of the window, and length of the original, ticks), ``callers`` (levels), ``counters`` (names), ``has_mpi``,
        ``has_functions`` (by themselves, and not as callers alone), ``messages``, ``operations``, ``inferred``
        (completions of non-blocking sends), and ``records``.
        """
    @property
    def anchor_path(self) -> PathLike[str]:
        """The anchor file."""
    @property
    def is_in_files(self) -> bool:
        """Whether other processes read the same from its path, rather than what is in the memory of this one."""
    @property
    def archive_name(self) -> str:
        """The name of the archive."""
    def definitions(self, kind: str) -> Table:
        """Return the definition records of one kind, such as ``Region`` or ``Comm``.

        The columns are the fields of the record. References are numbers, enumerators are names.
        """
    def definition_kinds(self) -> list[str]:
        """Return the kinds of definition records that occur."""
    def locations(self) -> Table:
        """Return the locations.

        ``location`` (u32 index), ``id`` (u64), ``name``, ``type``, ``group`` (u32), ``rank`` (i32, -1 if not of
        a process), ``thread`` (i32), ``events`` (u64).
        """
    def events(self, index: int) -> Table:
        """Return the events of a location.

        ``time`` (i64 ticks), ``type`` (dictionary), one nullable column per field that occurs, ``attributes``.
        """
    def oddities(self) -> list[tuple[str, str, str]]:
        """Return kind, place, and text of each oddity in the definitions."""
    def info(self, *, events: bool = False) -> dict[str, Any]:
        """Return sizes, an estimate of the memory, and with `events` the number of events by type."""

@final
class Analysis:
    """The result of an analysis.

    docs/tables.md describes the tables that are named here. They have numbers alone: ``callpath`` is the column
    ``callpath_id`` there, and ranks and threads of a ``location``, ``part_of``, ``path`` and ``group`` are missing.
    """

    def regions(self) -> Table:
        """Return the regions.

        ``region`` (u32), ``name``, ``canonical_name``, ``paradigm`` and ``role`` (OTF2's names, in capitals),
        ``file``, ``begin_line``, ``end_line``.
        """
    def callpaths(self) -> Table:
        """Return the call tree: ``callpath`` (u32, the number of the row), ``parent`` (null at a root), ``region``."""
    def locations(self) -> Table:
        """Return the locations, as `Run.locations`."""
    def severities(self) -> Table:
        """Return the nonzero cells of all stored metrics, sorted by metric, call path, location: table `severities`."""
    def window(self, begin: float, end: float) -> Table:
        """Return the severities of times, waits, and thread management between two times (s), as `severities`."""
    def account(self) -> Table:
        """Return the account of the CPU time in the focus, by row, call path, location: table `account`."""
    def account_window(self, begin: float, end: float) -> Table:
        """Return the account between two times (s), as `account`. Needs the events."""
    def sharing(self, begin: float, end: float) -> Table:
        """Return what takes longer between two times (s) while others use the same resource. Needs the events.

        ``resource`` (dictionary: network, files, memory), ``callpath`` (nullable u32), ``location`` (u32), ``samples``
        (u64), ``others_quiet``, ``others_crowded``, ``ratio``, ``r``, ``excess`` (s); the largest excess first.
        """
    def io(self) -> Table:
        """Return what was done with files: table `io`."""
    def device_account(self) -> Table:
        """Return the account of devices in the focus: table `device_account`, with the names of their first streams."""
    def clock_table(self, name: str) -> Table:
        """Return a table about the clocks, `clock_violations` and so on; without rows if nothing is violated."""
    def write_run(
        self,
        directory: str | PathLike[str],
        *,
        source: str = ...,
        progress: Callable[[str, float], object] | None = None,
    ) -> None:
        """Write the run as an archive of the same name, at the times of this analysis.

        ``source`` is what its anchor file says that it was made from. Each process that shares the analysis writes the
        events of its locations.
        """
    def network(self) -> Table:
        """Return what calls need, by kind: table `network`."""
    def counters(self) -> Table:
        """Return the counters of the trace: table `counters`."""
    def counter_cells(self) -> Table:
        """Return the values of the counters: table `counter_cells`."""
    def devices(self) -> tuple[Table, Table, Table, dict[str, Any]]:
        """Return what accelerators did: three tables and a dict.

        Kernels (``location``, ``callpath``, ``begin``, ``end``, nullable ``launch_location``,
        ``launch_callpath``, ``launch_enter``, ``launch_leave``; ``idle``, ``starved``, ``mpi_starved``,
        ``latency``, ``queued``, ``stream_wait``; nullable ``copy``, the direction of a copy, and ``bytes``);
        synchronizations (``location``, ``callpath``, ``enter``, ``leave``,
        ``waiting``, ``completion``, nullable ``kernel``: the row); launches without a kernel (``location``,
        ``callpath``, ``enter``); and counts (``launches``, ``unmatched_launches``,
        ``unmatched_kernels``, ``clock_violations``) and the ``names`` of the devices by number. Times in s.
        """
    def starving(self, begin: float, end: float) -> Table:
        """Return what threads did between two times while they starved devices.

        ``location``, nullable ``callpath`` (the innermost), ``starving`` (s).
        """
    def host_computation(self, computes: Sequence[bool], begin: float, end: float) -> Table:
        """Return how long the threads of processes with devices compute while the devices run no kernel.

        ``location``, ``computation`` (s), between two times (s). `computes` tells for each call path whether
        its time is computation.
        """
    def counter_window(self, begin: float, end: float) -> Table:
        """Return the values of the counters between two times (s), as `counter_cells`; reads the samples once more."""
    def counter_courses(self, merged: int, bins: int) -> Table:
        """Return all counters over time, in bins of equal width, for groups of `merged` neighboring locations.

        ``counter``, ``location`` (the first of the group), ``bin``, ``value`` (f64: mean of a level, or growth
        per second, over the locations that have it); unknown bins have no row. Needs the events.
        """
    def counter_changes(self, intervals: dict[str, Sequence[Any]], shared: bool = False) -> Table:
        """Return how much the counters of a location changed in periods of time.

        With `shared` also its part of counters of processes, machines, and devices. `intervals` has columns
        ``location``, ``begin``, ``end`` (s), ``callpath`` (nullable). ``stretch`` (u32, the row), ``counter``,
        ``amount``, ``seconds`` (in which the call path ran), and of levels ``known`` (in which it is known),
        ``minimum``, ``maximum``.
        """
    def queue_levels(self) -> Table:
        """Return the levels of the replayed queues, whose sums are severities: table `queue_levels`."""
    def queue_moments(self) -> Table:
        """Return when sums of the replayed queues grow, if asked for.

        ``metric``, ``callpath``, ``location``, ``time`` (s), ``value``.
        """
    def queue_series(self) -> Table:
        """Return the levels of the replayed queues over time: table `queue_series`."""
    def delay_costs(self) -> Table:
        """Return the severities that are delay costs, as `severities`."""
    def focus_costs(self) -> Table | None:
        """Return the delay costs of the parts of waits in the focus, and the unexplained part of these.

        As `severities`; None if all waits lie in the focus. Needs the events.
        """
    def critical_path(self) -> Table:
        """Return the critical path, by time: table `critical_path`."""
    def wait_states(self) -> Table:
        """Return the wait states: table `wait_states`.

        One that is also part of another, such as a Late Sender in wrong order, has a row for each.
        """
    def longest_waits(self, count: int) -> list[int]:
        """Return the rows in `wait_states` of the longest waits: at most `count` of each kind, in ascending order."""
    def factors(self, rows: Sequence[int]) -> tuple[Table, Table]:
        """Return the factors that the cost model distributes wait states over: tables `intervals` and `factors`.

        Needs the events, so it is not available when several processes share the analysis.
        """
    def locks(self, window: tuple[float, float] | None = None) -> Table:
        """Return the locks of threads, those that threads wait for longest first: table `locks`.

        With a ``window`` (s since the begin of the run), only acquisitions that begin in it. Needs the events.
        """
    def tasks(self, window: tuple[float, float] | None = None) -> tuple[Table, Table, Table]:
        """Return the tables `tasks`, `task_regions` and `task_lengths`.

        With a ``window`` (s since the begin of the run), only tasks and regions that begin in it. Needs the events.
        """
    def worksharing(self, window: tuple[float, float] | None = None) -> Table:
        """Return the worksharing constructs, those that lose most first: table `loops`.

        With a ``window`` (s since the begin of the run), only instances that begin in it. Needs the events.
        """
    def profile(self) -> Table:
        """Return how long each sampled call path ran in the focus, by location: table `profile`."""
    def delay_functions(self) -> Table:
        """Return what sampled call paths cost others, by location: table `delay_functions`."""
    def samples(self) -> Table:
        """Return samples of the call path, by location and time: table `samples`."""
    def transfers(self) -> Table:
        """Return one-sided transfers, by location of the origin and time: table `transfers`."""
    def warnings(self) -> list[dict[str, Any]]:
        """Return the warnings: ``kind``, ``count``, ``text``, ``place`` (text or None).

        The kinds ``truncated`` and ``unreadable`` mean that part of the trace could not be read.
        """
    def inconsistencies(self) -> Table:
        """Return each place of a warning, at most 10,000 of a kind: table `inconsistencies`."""
    def instances(self, callpath: int) -> Table:
        """Return the instances of a call path, by location and Enter.

        ``location``, ``enter``, ``leave`` (s). Needs the events.
        """
    def library_calls(self) -> Table:
        """Return when processes begin and end to communicate, one row per process with events.

        ``rank``, ``group`` (OTF2's id of its location group), ``init_enter``, ``init_leave``,
        ``finalize_enter``, ``finalize_leave`` (i64 ticks; where there is no such call, the first and the last
        event). Collective; at the first process.
        """
    def facts(self) -> dict[str, Any]:
        """Return numbers about the run.

        ``origin`` (the tick that times in seconds are relative to), ``begin``, ``end``, ``length`` (s),
        ``resolution`` (ticks per second), ``processes``, ``locations``, ``events``, ``clock_violations_p2p``,
        ``clock_violations_coll``, of what ``whywait record`` recorded ``recorder``, ``mpi``, and ``call_paths``
        (``unwound`` or ``none``), ...
        """

@final
class Simulator:
    """The graph of who waits for whom in an analyzed run, see docs/whatif.md; the arguments change the graph.

    Collective, as are its methods: all processes that share the analysis share it. `progress` as for `analyze`, with
    the stage ``arcs``.
    """

    def __new__(
        cls,
        analysis: Analysis,
        *,
        hidden: bool = True,
        asynchronous: bool = False,
        eager_limit: int | None = None,
        protocols: Sequence[tuple[list[bool], bool]] = ...,
        cut_regions: Sequence[object] = ...,
        cut_messages: Sequence[tuple[list[tuple[str, str, int]], list[bool]]] = ...,
        overlaps: Sequence[tuple[Any, list[bool]]] = ...,
        splits: Sequence[Any] = ...,
        network: tuple[float, float, float, float, float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> Simulator: ...
    def transfers(self) -> list[tuple[bool, bool, float, float]]:
        """Return what messages took, if enough receives waited: local, rendezvous, mean size (bytes), time (s)."""
    def simulate(
        self,
        changes: Sequence[object],
        *,
        threads: int | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> Simulation:
        """Simulate a list of changes, which `whywait.hypotheses.compiler` compiles to numbers."""
    def lengths(
        self, candidates: Sequence[Sequence[object]], *, threads: int | None = None
    ) -> list[tuple[float, float] | None]:
        """Return the lengths (s) of the run and its focus under lists of changes, eight at a time; None if impossible.

        The focus lasts from its measured begin to its simulated end.
        """

@final
class Simulation:
    """A simulated run."""

    def length(self) -> float:
        """Return the length of the simulated run (s)."""
    def focus_length(self) -> float:
        """Return the time from the begin of the measured focus to the end of the simulated one (s)."""
    def assumptions(self) -> list[tuple[str, str, int, float | None]]:
        """Return name, text, count, and time (s or None) of each assumption."""
    def write(
        self,
        directory: str | PathLike[str],
        name: str,
        hypotheses: str,
        *,
        progress: Callable[[str, float], object] | None = None,
    ) -> None:
        """Write the simulated run as an archive; each process writes the events of its locations."""
    def run(self, hypotheses: str) -> Run:
        """Return the simulated run, to analyze it without writing it: the records of the run before, at new times."""
    def notes(self) -> list[str]:
        """Return remarks on the hypotheses."""
    def events(self, location: int) -> Table:
        """Return ``measured`` and ``simulated`` (i64 ticks) of the Enters and Leaves of a location."""
    def times(self, most: int) -> Table:
        """Return the times of Enters and Leaves in order: of all, or of about `most` at even distances.

        ``location``, ``measured`` and ``simulated`` (s since the start of each run).
        """

def analyze(
    run: Run,
    *,
    threads: int | None = None,
    wrong_order_window: int = 100,
    causes: bool = True,
    cost_model: str = "thesis",
    queues: tuple[str, str, int | Sequence[float], bool] | None = None,
    window: tuple[float, float] | None = None,
    counter_modes: Sequence[tuple[str, str]] = ...,
    fold_recursion: bool = False,
    clocks: str = "nodes",
    clock_domain: str = "auto",
    min_latency: float = 0.0,
    census: bool = False,
    shard_events: int = ...,
    ranks: Ranks | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Analysis:
    """Analyze a run.

    Calls `progress` with the stage and its completed share regularly, and stops if it raises an exception. With
    `ranks`, several processes share the analysis, each with its events; that of the first has the results of all.
    """

def copy_archive(source: str | PathLike[str], destination: str | PathLike[str]) -> None:
    """Write an archive again, for tests."""

def import_counters(
    run: Run,
    destination: str | PathLike[str],
    label: str,
    counters: Sequence[dict[str, Any]],
    samples: Sequence[dict[str, Any]],
) -> None:
    """Write the archive with counters of its processes to the directory `destination`.

    `counters` have ``name``, ``unit``, ``mode`` (OTF2's number) and decimal ``exponent``; `samples` have ``group``
    (id of a location group), ``times`` (ticks) and ``values`` (a row of integers for each time).
    """

def limit_memory(
    run: Run | None, size: int | None, directory: str | PathLike[str] | None, *, threads: int | None = None
) -> None:
    """Keep large blocks in a file in `directory`, and the memory of the process below `size` bytes, from now on.

    No `size` removes the limit. Without a `run`, which is not open yet, a limit that is too small is ignored.
    """

def peak_memory() -> int | None:
    """Return the peak memory of the process in bytes; None if the system does not provide it."""

def stored_metrics() -> list[str]:
    """Return the names of all metrics that the analysis computes; others are derived from them."""

def region_terms(regions: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Return paradigms and roles of regions in the terms of Cube.

    A region is its name, paradigm, and role, in the terms of OTF2 or of Cube. Library calls that a tool recorded as
    plain functions are recognized by their names.
    """

def unknown_libraries() -> list[str]:
    """Return the communication libraries whose waiting is not known: `region_terms` gives these names as paradigms."""

def sampled_metrics() -> list[str]:
    """Return the names of the metrics that samples give: their severities are of the focus."""

def queue_metrics() -> list[str]:
    """Return the names of the sums of the replayed queues."""

def queue_levels() -> list[str]:
    """Return the names of the levels of the replayed queues."""

def patterns() -> list[dict[str, Any]]:
    """Return the wait states of the schema: `whywait.model.schema.Pattern`."""

def cost_classes() -> list[dict[str, Any]]:
    """Return the cost classes of the schema: `whywait.model.schema.CostClass`."""

def account_rows() -> list[dict[str, Any]]:
    """Return the rows of the account: ``name``, ``label``, ``description``, ``group``, ``is_lost``."""

def account_groups() -> list[tuple[str, str, str]]:
    """Return the groups of these rows: name, label, description."""

def device_rows() -> list[tuple[str, str, str]]:
    """Return the rows of the account of devices: name, label, description."""

def tables() -> list[dict[str, Any]]:
    """Return the tables of the schema: `whywait.model.schema.Table`."""

def write_paraver(
    analysis: Analysis,
    path: str | PathLike[str],
    *,
    labels: dict[str, str],
    findings: Sequence[tuple[str, Sequence[int], Sequence[int]]],
    ranks: Sequence[int] | None = None,
    window: tuple[float, float] | None = None,
    min_duration: float = 0.0,
    progress: Callable[[str, float], object] | None = None,
) -> tuple[dict[str, int], dict[str, str]]:
    """Write a trace for Paraver.

    Parameters
    ----------
    findings
        Of each finding, from the first on: its sentence, the call paths to blame, and the ranks (none for all).

    Returns
    -------
    tuple of dict
        The number of ``threads``, ``calls``, ``messages``, ``wait_states``, ``critical_path`` (stretches) and
        ``records``; and the texts of the files beside it by their endings. Both are empty at all processes but the
        first.
    """

def write_perfetto(
    analysis: Analysis,
    path: str | PathLike[str],
    *,
    labels: dict[str, str],
    queues: Analysis | None = None,
    ranks: list[int] | None = None,
    window: tuple[float, float] | None = None,
    min_duration: float = 0.0,
    progress: Callable[[str, float], object] | None = None,
) -> dict[str, int]:
    """Write a trace for Perfetto; return the number of written elements by kind.

    Collective: the first process writes. `labels` maps wait states and levels to display names; `queues` is an analysis
    with replayed queues in detail. `progress` as for `analyze`, with the stage ``timeline``.
    """

def timeline_calls(
    analysis: Analysis, *, locations: list[int], begin: float, end: float, most: int
) -> tuple[Table, int]:
    """Return the calls of some locations that overlap a window (s), and about how many there are.

    ``location``, ``callpath``, ``enter``, ``leave`` (s), ``is_management`` (of the team of a parallel region: creating
    and joining it), by location in the order given, then by Enter; none if there are more than `most`.
    """

def timeline(
    analysis: Analysis,
    *,
    class_of: bytes,
    classes: int,
    management: int,
    waiting: list[str],
    cells: int,
    calls: int,
    most: int,
) -> dict[str, Any]:
    """Return the run over time, of an analysis with all events.

    ``levels``, each with ``merged`` (locations per row), ``rows``, ``bins``, ``width`` (s) and ``shares`` (bytes by
    class, row and bin; 255 stands for the whole bin); ``calls``, ``waits``, ``messages``, ``transfers``, each a
    table of the selected elements and the total number. `class_of` is the class of each call path, less than
    `classes`; waiting, given by the metrics `waiting`, is an additional class.
    """

def iterations(
    analysis: Analysis, marker: int | str, *, every: int = 1, body: list[int], computes: list[bool]
) -> tuple[Table, int]:
    """Return the iterations of a loop, one row each, and the call path at which they begin.

    There is a column for each kind of wait state that occurs. `marker` is the call path whose Enters begin
    iterations, or a parameter; `every` how many Enters belong to one; the last Leave of the call paths `body` ends
    the last iteration; `computes` tells for each call path whether its time is computation. Needs the events.
    """

def declared_loops(analysis: Analysis) -> tuple[list[int], Table]:
    """Return what the program itself declares as iterations.

    The call paths of dynamic regions and phases, and a table of parameters.
    """

def stragglers(analysis: Analysis, groups: list[list[int]]) -> dict[str, Any] | None:
    """Return how long the run of devices takes if all or some of it were as in an ideal run, in seconds.

    ``length`` as it is, and ``ideal`` if all is repaired, both replayed; ``ranks``, pairs of a rank and the length if
    all is repaired but this one; ``slowest``, the slowest 3% of the ranks by this and the length if only these are
    repaired, or None; ``groups``, the lengths if only the ranks of each are; ``callpaths``, pairs of a call path of
    kernels and the length if only this one is; ``alone``, whether nothing but devices is recorded. None if devices do
    not communicate.
    """

def communication(
    analysis: Analysis,
    *,
    waiting: list[str],
    most: int,
    window: tuple[float, float] | None = None,
    callpaths: Sequence[bool] | None = None,
) -> tuple[Table, int, Table]:
    """Return who communicates with whom: pairs, ranks per block, and a histogram of message sizes.

    At most `most` pairs, of ranks or of blocks of ranks. `waiting` are the metrics whose wait states count.
    `callpaths` tells for each call path whether what it starts counts, and its waits; None for all. Needs the events.
    """

def blame(
    waits: object,
    ranks: Sequence[int],
    callpaths: Sequence[int],
    window: tuple[float, float] | None = None,
) -> Table:
    """Return the waits at some call paths, by kind and call path, with whom and what they wait for longest.

    With a window, only of calls that overlap it.
    """

def worst_waits(waits: object, limit: int) -> tuple[Table, Table]:
    """Return the longest waits of each kind, call path, and location, the longest first, as many as a report shows.

    The rows, and the number of waits by kind and call path.
    """

def finish_recording(
    directory: str | PathLike[str],
    *,
    model: str | None = None,
    keep_spool: bool = False,
    patience: float = 0.0,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Make an archive of what the recorder left in a directory.

    ``ranks`` (of which there is anything), ``size`` (of the run), ``calls``, ``samples``, ``sampled`` (by what, and
    how often), ``bytes`` (of the archive), ``notes`` (of what is missing), ``damage`` (what could not be used), and
    ``worlds`` (recordings beside it that became part of it).
    """

def is_unfinished_recording(directory: str | PathLike[str]) -> bool:
    """Return whether a directory holds a recording without an archive."""

def source_of(path: str | PathLike[str]) -> Literal["otf2", "paraver", "nsight", "pytorch"] | None:
    """Return what a path is read as, None if it holds no run. It may still be unreadable."""

def anchor_beside(path: str | PathLike[str]) -> Path | None:
    """Return the anchor file that a path without one may mean."""

def identity_files(path: str | PathLike[str]) -> tuple[list[Path], bool]:
    """Return the files that tell a run from others, and whether all of their bytes count.

    Of an archive, the anchor and the global definitions do, which have the time of the run.
    """

def workloads() -> list[str]:
    """Return the names of the synthetic workloads."""

def generate(
    workload: str,
    directory: str | PathLike[str],
    *,
    ranks: int,
    iterations: int,
    seed: int,
    work: int | None = None,
    imbalance: float | None = None,
    balanced: bool = False,
    barriers: bool = False,
    machine: str | None = None,
    threads: int | None = None,
    window: int | None = None,
    size: int | None = None,
    overlap: float | None = None,
    progress: Callable[[float], object] | None = None,
) -> int:
    """Write the archive of a workload, with ``truth.csv`` and ``truth.json``; return its number of events.

    Workloads about queues also have ``queues.csv``.
    """

def measure(run: Run, *, threads: int, causes: bool, entered: Callable[[str | None], object]) -> None:
    """Analyze a run, and drop the result; calls `entered` at the start of each stage, and with None at the end."""
