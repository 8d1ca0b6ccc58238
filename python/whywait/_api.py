"""The facade: open a trace, analyse it, look at what came out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from whywait import _native, mpi
from whywait.model import tables
from whywait.model.calltree import CallTree
from whywait.model.idle_threads import allocation
from whywait.model.imbalance import NAMES as IMBALANCE
from whywait.model.imbalance import imbalance
from whywait.model.metrics import metric_tree
from whywait.model.profile import IN_WINDOW, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from os import PathLike

    from whywait.analysis.efficiency import Efficiencies, Method
    from whywait.model.metrics import Formula, Kind, Metric


# Fields that refer to a String record; those of one kind only come with its name.
_TEXTS = frozenset(
    "name class_name description source_file canonical_name string_value unit identification "
    "SourceCodeLocation.file".split()
)


class Definitions(Mapping[str, pa.Table]):
    """The definition records of a trace, one Arrow table a kind.

    >>> run.definitions["Region"]
    >>> run.definitions.kinds()

    Columns are the fields of the OTF2 record. References to strings are their text, other references are numbers, and
    named numbers are their names. A kind that does not occur raises `KeyError`.
    """

    def __init__(self, run: _native.Run) -> None:
        self._run = run

    def kinds(self) -> list[str]:
        """Return the kinds of record that occur."""
        return self._run.definition_kinds()

    def __getitem__(self, kind: str) -> pa.Table:
        if kind not in self.kinds():
            raise KeyError(kind)
        table = pa.table(self._run.definitions(kind))
        for index, name in enumerate(table.column_names):
            if (name in _TEXTS or f"{kind}.{name}" in _TEXTS) and pa.types.is_integer(table.schema.types[index]):
                rows = pc.index_in(table[name], self._strings["id"].cast(table.schema.types[index]))
                table = table.set_column(index, name, self._strings["string"].take(rows))
        return table

    @cached_property
    def _strings(self) -> pa.Table:
        return pa.table(self._run.definitions("String")).combine_chunks()

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds())

    def __len__(self) -> int:
        return len(self.kinds())


class Run:
    """A trace that has been opened: its definitions are read, its events are not.

    Parameters
    ----------
    path
        The anchor file of the archive, whatever its name, or the directory that holds one.

    Raises
    ------
    whywait.ArchiveError
        If the anchor or the global definitions cannot be read.
    whywait.UsageError
        If a directory holds no archive, or more than one.
    OSError
        If the system refuses.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._native = _native.Run(path)

    @property
    def path(self) -> Path:
        """The anchor file."""
        return Path(self._native.anchor_path)

    @property
    def name(self) -> str:
        """A name for the run: that of the archive, or of its directory where all archives are called the same."""
        name = self._native.archive_name
        return self.path.resolve().parent.name if name == "traces" else name

    @cached_property
    def definitions(self) -> Definitions:
        """The definition records, by kind."""
        return Definitions(self._native)

    @cached_property
    def locations(self) -> pa.Table:
        """The streams of events.

        ``location`` (index), ``id``, ``name``, ``type``, ``group``, ``rank`` (-1 if not of a process), ``thread`` and
        ``events``.
        """
        return pa.table(self._native.locations())

    def events(self, location: int) -> pa.Table:
        """Return the events of one location.

        Parameters
        ----------
        location
            Its index, 0..n-1, as in `locations`.

        Returns
        -------
        pyarrow.Table
            ``time`` (ticks, corrected), ``type`` and a nullable column for each field that occurs.
        """
        return pa.table(self._native.events(location))

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """What the definitions get wrong without leaving a doubt: kind, place and text of each finding."""
        return self._native.oddities()

    def info(self, *, events: bool = False) -> dict[str, Any]:
        """Return sizes and an estimate of the memory an analysis takes.

        Parameters
        ----------
        events
            Whether to count the events by kind, which reads the whole trace.
        """
        return self._native.info(events=events)

    def __repr__(self) -> str:
        return f"<whywait.Run {self.name!r}, {self.locations.num_rows} locations>"

    def _repr_html_(self) -> str:
        from whywait.report.html import run_table

        return run_table(self)


class MetricValues:
    """One metric with its values.

    Attributes
    ----------
    total : float or int
        The sum over all call paths and locations, in `unit`.
    """

    def __init__(self, result: Result, metric: Metric) -> None:
        self._result = result
        self._metric = metric

    @property
    def name(self) -> str:
        """The unique name."""
        return self._metric.name

    @property
    def display_name(self) -> str:
        """The name a person reads below that of `parent`."""
        return self._metric.display_name

    @property
    def unit(self) -> str:
        """``sec``, ``occ`` (occurrences), ``bytes`` or ``elements`` (of atomics)."""
        return self._metric.unit

    @property
    def description(self) -> str:
        """What the metric means."""
        return self._metric.description

    @property
    def formula(self) -> Formula | None:
        """How the metric follows from others; None if it is measured."""
        return self._metric.formula

    @property
    def parent(self) -> str | None:
        """The metric it is a part of."""
        return self._metric.parent

    @property
    def children(self) -> list[str]:
        """The metrics that are direct parts of it."""
        return [metric.name for metric in self._result.profile.metrics.children(self.name)]

    @property
    def void(self) -> bool:
        """Whether the metric cannot have a value, because its programming model does not occur in the run."""
        return self.name in self._result.profile.void

    @property
    def total(self) -> float | int:
        """The sum over all call paths and locations."""
        total = self._result.profile.total(self.name)
        return round(total) if self._metric.integer else total

    def by_rank(self) -> pa.Table:
        """Sum over call paths and threads: ``rank``, ``value``."""
        return tables.by_rank(self._result.profile, self._result.rows_of_locations, self.name)

    def by_callpath(self) -> pa.Table:
        """Sum over locations: ``callpath``, ``callpath_id``, ``value`` and ``inclusive`` (with all below)."""
        return tables.by_callpath(self._result.profile, self.name)

    def __repr__(self) -> str:
        return f"<whywait.MetricValues {self.name}: {self.total} {self.unit}>"


class Metrics(Mapping[str, MetricValues]):
    """The metrics of a result in the order of the metric tree, by unique name."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def __getitem__(self, name: str) -> MetricValues:
        return MetricValues(self._result, self._result.profile.metrics[name])

    def __iter__(self) -> Iterator[str]:
        return (metric.name for metric in self._result.profile.metrics)

    def __len__(self) -> int:
        return len(self._result.profile.metrics)


class Result:
    """What an analysis found.

    Tables are Arrow tables; ``to_pandas()`` or ``polars.from_arrow()`` takes them further.

    Parameters
    ----------
    analysis
        What the native analysis returned: None at a rank of ``mpiexec`` that is not the first.
    run
        The run that was analysed.
    stored
        The stored metrics that the analysis computes.
    idle_threads
        Whether times include those of threads that had nothing to do.
    """

    def __init__(
        self, analysis: _native.Analysis | None, run: Run, stored: Collection[str], *, idle_threads: bool = False
    ) -> None:
        self._found = analysis
        self._stored = stored
        self._idle_threads = idle_threads
        self.run = run

    @property
    def here(self) -> bool:
        """Whether this process has the result: under ``mpiexec`` only rank 0, and all else raises at the others."""
        return self._found is not None

    @property
    def _analysis(self) -> _native.Analysis:
        if self._found is None:
            raise _native.UsageError("only rank 0 of mpiexec has the result: ask for `result.here` first")
        return self._found

    @cached_property
    def rows_of_locations(self) -> tables.Locations:
        """Rank and thread of each location as arrays."""
        return tables.Locations(self.locations)

    @cached_property
    def tree(self) -> CallTree:
        """The call tree."""
        return CallTree(pa.table(self._analysis.regions()), pa.table(self._analysis.callpaths()))

    @cached_property
    def profile(self) -> Profile:
        """All severities, as arrays."""
        profile = self._profile(pa.table(self._analysis.severities()), self._stored)
        if not set(IMBALANCE) & set(self._stored):
            profile = profile.extended(imbalance(profile, self.rows_of_locations))
        return allocation(profile, self.rows_of_locations) if self._idle_threads else profile

    def _profile(self, severities: pa.Table, stored: Collection[str]) -> Profile:
        places = self.rows_of_locations
        return Profile(self.tree, len(places), severities, stored, places.works)

    @cached_property
    def locations(self) -> pa.Table:
        """The streams of events, as in `Run.locations`."""
        return pa.table(self._analysis.locations())

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics that this version computes, by unique name.

        >>> result.metrics["mpi_latesender"].total
        """
        return Metrics(self)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Length of the run in seconds, numbers of processes, locations, events and clock violations."""
        return self._analysis.facts()

    def inconsistencies(self) -> pa.Table:
        """Return every place of every kind of warning, at most 10,000 of a kind.

        Returns
        -------
        pyarrow.Table
            ``kind`` as in `warnings`, ``location`` (index), ``time`` (seconds since the begin of the trace) and
            ``detail`` (text or null).
        """
        return pa.table(self._analysis.inconsistencies())

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What could not be analysed or looks wrong: ``kind``, ``count``, ``text`` and ``place`` of each."""
        return self._analysis.warnings()

    def callpaths(self) -> pa.Table:
        """List the call paths in the order of the call tree, each with its region."""
        return tables.callpaths(self.tree)

    def severities(self, metric: str | None = None, *, inclusive: bool = False) -> pa.Table:
        """Return the values of a metric that are not zero.

        Parameters
        ----------
        metric
            A stored or derived metric. None stands for all stored ones.
        inclusive
            Whether values include the call paths below.

        Returns
        -------
        pyarrow.Table
            ``metric``, ``callpath`` (names from the root), ``callpath_id``, ``location``, ``rank``, ``thread`` and
            ``value`` (seconds, occurrences or bytes; along the metric tree always inclusive).

        Raises
        ------
        KeyError
            If this version does not compute the metric.
        """
        names = [m.name for m in self.profile.metrics if not m.derived] if metric is None else [metric]
        return self._severities(names, inclusive=inclusive)

    def derived_severities(self) -> pa.Table:
        """Return the values of all derived metrics that are not zero, with the columns of `severities`."""
        return self._severities([m.name for m in self.profile.metrics if m.derived], inclusive=False)

    def _severities(self, names: list[str], *, inclusive: bool) -> pa.Table:
        pieces = tables.severity_pieces(self.profile, self.rows_of_locations, names, inclusive=inclusive)
        return tables.table(tables.SEVERITIES, pieces)

    def wait_states(self) -> pa.Table:
        """Return the wait states, one row each.

        A wait state that is also part of another, such as a Late Sender in wrong order, has a row for each of the two:
        the rows of a kind add up to the metric of its name.

        Returns
        -------
        pyarrow.Table
            ``kind`` (a metric), where (``callpath``, ``location``, ``rank``, ``thread``), when (``enter`` and ``leave``
            of the activity, seconds since the begin of the trace), ``waiting`` (seconds), and the same of what caused
            it (``cause_callpath``, ``cause_rank``, ..., ``cause_time``), null where unknown. ``last`` says what a call
            that waited for a lock or for progress waited for last: ``contention`` or ``progress``. Of ``waiting``,
            excess work of the causing process caused ``direct``, its own earlier waiting ``indirect``; so much of it
            made others wait later (``propagating``); ``caused`` is the waiting that it caused elsewhere, through any
            number of others (seconds; null where causes were not looked for, or nobody is charged).
        """
        pieces = tables.wait_state_pieces(self.tree, self.rows_of_locations, self.native_wait_states)
        return tables.table(tables.WAIT_STATES, pieces)

    def statistics(self) -> pa.Table:
        """Return how long the waits of each kind are: number, sum, mean, variance, extremes and quartiles.

        >>> result.statistics().to_pandas().set_index("metric")["median"]

        Returns
        -------
        pyarrow.Table
            One row for each wait state that occurs; see `whywait.analysis.statistics.statistics`.
        """
        from whywait.analysis.statistics import statistics

        return statistics(self.profile.metrics, self.native_wait_states)

    @cached_property
    def native_wait_states(self) -> pa.Table:
        """Wait states with numbers instead of names."""
        return pa.table(self._analysis.wait_states())

    def native_factors(self, rows: Iterable[int]) -> tuple[pa.Table, pa.Table]:
        """Return what the cost model shares out wait states among, with numbers instead of names.

        Parameters
        ----------
        rows
            The rows of the wait states in their table.

        Returns
        -------
        tuple of pyarrow.Table
            First the intervals that are compared, one row a wait of which the cause is known: ``wait`` (its row),
            ``contention`` (whether it waited for an end, not for a begin), of both sides (``waiter_``, ``cause_``)
            ``location``, ``begin``, ``end``, ``sync_callpath`` and ``sync_time`` (the call in which the two last
            synchronized, null if they never have) and ``completion`` (how long that took afterwards), ``delay`` and
            ``cause_waiting`` (all that the wait is shared out among) and ``unexplained`` (by how much it exceeds that).
            Then the factors: ``wait``, ``kind`` (``delay``, ``completion``, ``wait`` or ``unattributed``), ``location``
            and ``callpath`` that pay, ``time`` of the cause and ``waiter_time`` there, ``earlier`` (the row of an
            earlier wait, else null) and ``share`` (what it explains; those of a wait add up to it). In seconds.

        Raises
        ------
        whywait.UsageError
            If there is no such row, causes were not looked for, or several processes have shared the analysis.
        """
        intervals, factors = self._analysis.factors(list(rows))
        return pa.table(intervals), pa.table(factors)

    def transfers(self) -> pa.Table:
        """Return the transfers of one-sided communication, one row each.

        Returns
        -------
        pyarrow.Table
            ``kind`` (``put``, ``get`` or ``atomic``), ``epoch`` (``fence``, ``access`` or ``lock``; null if none
            completes it), ``window`` (id), ``bytes``, who asked for it (``origin_callpath``, ``origin_location``,
            ``origin_rank``) and when (``origin``), where the data come from (``source_location``, ``source_rank``,
            ``start``) and where they arrive (``destination_location``, ``destination_rank``, ``end``; null if no call
            completes it). Times are seconds since the begin of the trace.
        """
        pieces = tables.transfer_pieces(self.tree, self.rows_of_locations, self.native_transfers)
        return tables.table(tables.TRANSFERS, pieces)

    @property
    def native_transfers(self) -> pa.Table:
        """Transfers with numbers instead of names; not kept, since they can be many."""
        return pa.table(self._analysis.transfers())

    @property
    def has_causes(self) -> bool:
        """Whether the analysis looked for causes: only then are there delay costs and a critical path."""
        return "critical_path" in self.profile.metrics

    def delay_costs(self) -> pa.Table:
        """Return who pays for the waiting: what a call path did on a location longer than others made them wait.

        Returns
        -------
        pyarrow.Table
            ``class`` (what the waiting is: ``latesender``, ``barrier``, ``rma_progress``, ...; ``interval_lock`` is
            holding a lock; ``unattributed`` is waiting that nobody can be blamed for, at its own place), ``callpath``,
            ``callpath_id``, ``location``, ``rank``, ``thread``, ``short_term`` (waiting caused directly, seconds) and
            ``long_term`` (through other waiting in between).

        Raises
        ------
        whywait.UsageError
            If causes were not looked for.
        """
        pieces = tables.delay_cost_pieces(self.tree, self.rows_of_locations, self.native_delay_costs)
        return tables.table(tables.DELAY_COSTS, pieces)

    @cached_property
    def native_delay_costs(self) -> pa.Table:
        """Delay costs with numbers instead of names."""
        from whywait.analysis.causes import delay_costs

        self._need_causes()
        return delay_costs(self.profile)

    def critical_path(self) -> pa.Table:
        """Return the critical path, the chain of activities without waiting that determines how long the run takes.

        Returns
        -------
        pyarrow.Table
            Its segments in the order of time: where (``location``, ``rank``, ``thread``), when (``from`` and ``to``,
            seconds since the begin of the trace), ``callpath`` (the one with most of it), ``callpath_id``,
            ``callpath_time`` (how much of it) and ``hop``: the class of the wait by which the path came here from
            another location, null at its begin.

        Raises
        ------
        whywait.UsageError
            If causes were not looked for.
        """
        pieces = tables.critical_path_pieces(self.tree, self.rows_of_locations, self.native_critical_path)
        return tables.table(tables.CRITICAL_PATH, pieces)

    @cached_property
    def native_critical_path(self) -> pa.Table:
        """The critical path with numbers instead of names."""
        self._need_causes()
        return pa.table(self._analysis.critical_path())

    def _need_causes(self) -> None:
        if not self.has_causes:
            raise _native.UsageError("this analysis did not look for causes")

    def window(self, begin: float, end: float) -> Profile:
        """Return what lies in a window of time: times, wait states and what derives from them.

        Parameters
        ----------
        begin, end
            Seconds since the begin of the trace. What is outside of the run is left out.

        Returns
        -------
        whywait.model.profile.Profile
            Windows that tile the run add up to `profile`. A wait lies in its call where the timeline shows it: mostly
            at the begin; a completion, which is what a call takes after all others have come, at the end.

        Raises
        ------
        whywait.UsageError
            If nothing of the run is in the window, or if this is a written result, which holds no events.
        """
        last = self.facts["length"]
        begin, end = max(begin, 0.0), min(end, last)
        if not begin < end:
            raise _native.UsageError(f"the window has no part of the run, which lasts from 0 to {last:.9g} s")
        names = {m.name for m in self.profile.metrics if m.kind in {"wait", "completion"} or m.name in IN_WINDOW}
        profile = self._profile(pa.table(self._analysis.window(begin, end)), names)
        return allocation(profile, self.rows_of_locations) if self._idle_threads else profile

    def efficiencies(
        self,
        callpath: str | int | None = None,
        *,
        method: Method = "all",
        window: tuple[float, float] | None = None,
    ) -> Efficiencies:
        """Return the efficiencies of POP: parallel efficiency, load balance, serialization, transfer.

        >>> result.efficiencies("main/solve")["load_balance"].value

        Parameters
        ----------
        callpath
            The part of the run that they are about: the last names of call paths, with ``/`` between them, or the
            number of one. None for all of it.
        method
            ``"all"`` to count all waits in MPI as waits, ``"cube"`` to leave one-sided ones out as Cube's Advisor does.
        window
            From when to when, seconds since the begin of the trace, as for `window`; None for the whole run.

        Returns
        -------
        whywait.analysis.efficiency.Efficiencies
            Each number with its formula and the inputs.

        Raises
        ------
        whywait.UsageError
            If there is no such call path, or nothing in the window.
        """
        from whywait.analysis.efficiency import efficiencies

        return efficiencies(self, callpath, method=method, window=window)

    def summary(self) -> dict[str, Any]:
        """Return what `summary.json` holds: facts, totals, the worst wait states and warnings."""
        return self._summary

    @cached_property
    def _summary(self) -> dict[str, Any]:
        from whywait.analysis.summary import summarize

        return summarize(self)

    def write(self, directory: str | PathLike[str], *, transfers: bool = False, html: bool = False) -> list[Path]:
        """Write report.cubex, report.stat, severities.parquet, derived.parquet, wait_states.parquet and summary.json.

        With causes also critical_path.parquet.

        Parameters
        ----------
        directory
            Where to. It is made if need be; files of these names in it are replaced, all of them or none.
        transfers
            Whether to write transfers.parquet as well, which can be large.
        html
            Whether to write report.html as well: everything in one file, to explore in a browser. It has a timeline,
            which timeline.parquet keeps for a later one.

        Returns
        -------
        list of Path
            The files.
        """
        from whywait.report.files import write_all

        return write_all(self, Path(directory), transfers=transfers, html=html)

    def write_cube(self, path: str | PathLike[str]) -> None:
        """Write the metrics as a Cube 4 file, for CubeGUI and the Cube tools."""
        from whywait.report.cube import write_cube
        from whywait.store.staging import Staging

        target = Path(path)
        with Staging(target.parent) as staging:
            write_cube(self, staging.path(target.name))

    def write_html(self, path: str | PathLike[str]) -> None:
        """Write everything as one HTML file to explore in a browser, without a network."""
        from whywait.report.html import write_html
        from whywait.store.staging import Staging

        target = Path(path)
        with Staging(target.parent) as staging:
            write_html(self, staging.path(target.name))

    def to_hatchet(self, metrics: Iterable[str] | None = None, *, rank: int | None = None) -> list[dict[str, Any]]:
        """Return the call tree with values as Hatchet and Thicket read it. Neither of them is needed here.

        >>> hatchet.GraphFrame.from_literal(result.to_hatchet(["time", "mpi_latesender"]))

        Parameters
        ----------
        metrics
            What to take along; None for the time and all wait states.
        rank
            The rank whose values are meant; None for the sum over all locations.

        Returns
        -------
        list of dict
            One entry a root: ``frame``, ``metrics`` (each exclusive, and inclusive as ``NAME (inc)``) and ``children``.

        Raises
        ------
        whywait.UsageError
            If there is no such metric, or no such rank.
        """
        from whywait.report.hatchet import literal

        return literal(self, metrics, rank=rank)

    @cached_property
    def timeline_blocks(self) -> dict[str, str]:
        """The timeline of the HTML report, packed; empty where there are no events to make it from."""
        from whywait.report.html.timeline import pack

        return pack(self, self._analysis) if isinstance(self._analysis, _native.Analysis) else {}

    def write_timeline(
        self,
        path: str | PathLike[str],
        *,
        ranks: Collection[int] | None = None,
        window: tuple[float, float] | None = None,
        min_duration: float = 0.0,
        progress: Callable[[str, float], object] | None = None,
    ) -> dict[str, int]:
        """Write the run as a trace for Perfetto, a browser of timelines (https://ui.perfetto.dev).

        Calls, wait states and the critical path are slices; messages, one-sided transfers and the causes of waits are
        flows. Slices have their true times, in ns since the begin of the trace, also where a window cuts them.

        >>> result.write_timeline("run.pftrace", ranks=range(4), window=(1.0, 1.5))

        Parameters
        ----------
        path
            The file; replaced if it exists.
        ranks
            The ranks to write; None for all.
        window
            Begin and end in seconds since the begin of the trace: only what lies between them at least in part.
        min_duration
            How long calls, waits, transfers and stretches of the critical path have to be, in seconds.
        progress
            Called now and then with ``"timeline"`` and the share that is done, 0..1. What it raises ends the work.

        Returns
        -------
        dict
            How many there are of ``threads``, ``calls``, ``wait_states``, ``critical_path`` (stretches), ``transfers``,
            ``message_flows``, ``cause_flows``, ``transfer_flows``, ``backwards`` (flows that are left out, because they
            would end before they begin) and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If there is no such rank, nothing in the window, or the result was read back and has no events.
        """
        from whywait.store.staging import Staging

        if not isinstance(self._analysis, _native.Analysis):
            raise _native.UsageError("a written result keeps no events, so it has no timeline: analyse the trace again")
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        with Staging(target.parent) as staging:
            return _native.write_perfetto(
                self._analysis,
                staging.path(target.name),
                labels={metric.name: metric.display_name for metric in self.profile.metrics},
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=None if progress is None else lambda share: progress("timeline", share),
            )

    def system_xml(self) -> str:
        """Return machines, nodes, processes and threads, and how processes are arranged, as in a Cube file."""
        from whywait.report.system import system_xml

        content = "".join(system_xml(self.locations, self.run.definitions))
        return f'<system title="System tree">\n{content}</system>\n'

    def __repr__(self) -> str:
        if not self.here:
            return f"<whywait.Result of {self.run.name!r}, which rank 0 has>"
        return f"<whywait.Result of {self.run.name!r}: {len(self.metrics)} metrics, {len(self.tree)} call paths>"

    def _repr_html_(self) -> str:
        from whywait.report.html import metric_table

        return metric_table(self)


def open(path: str | PathLike[str]) -> Run:  # noqa: A001
    """Open a trace and read its definitions, which is cheap.

    Parameters
    ----------
    path
        The anchor file of an OTF2 archive, whatever its name, or the directory that holds one.

    Returns
    -------
    Run

    Raises
    ------
    whywait.ArchiveError, whywait.UsageError, OSError
        As in `Run`.
    """
    return Run(path)


def analyze(
    run: Run | str | PathLike[str],
    *,
    threads: int | None = None,
    wrong_order_window: int = 100,
    causes: bool = True,
    cost_model: Literal["thesis", "scalasca"] = "thesis",
    idle_threads: bool = False,
    memory_limit: int | None = None,
    spill_directory: str | PathLike[str] | None = None,
    transfers: bool = False,
    progress: Callable[[str, float], object] | None = None,
) -> Result:
    """Find every wait state of a run, and where its time goes.

    Under ``mpiexec`` all ranks must call it; they share the work, and rank 0 gets the result. See docs/mpi.md.

    Parameters
    ----------
    run
        A run, or the path of one.
    threads
        How many threads to use; None for as many as there are cores. Results do not depend on it.
    wrong_order_window
        How many of its latest Late Senders each location remembers: so far back it is noticed that another message
        should have been received first.
    causes
        Whether to look for root causes and the critical path.
    cost_model
        What distributes waiting over its causes: ``thesis`` follows the definitions for every paradigm, and costs are
        no more and no less than the waiting. ``scalasca`` gives the numbers of Scalasca 2.6, which has none for
        one-sided communication. See docs/causes.md.
    idle_threads
        Whether to count the time of threads that have nothing to do because the program is not in a parallel region, or
        in one with a smaller team (``omp_idle_threads``, and part of ``time``), as Scalasca does with ``-s``.
    memory_limit
        How many bytes of memory the process may take, as far as this package decides: what does not fit goes to a file
        without a name. It holds for this analysis and the tables of its result, until the next call. Linux only.
    spill_directory
        The directory of that file, on a disk with room for it; None for the system's temporary directory.
    transfers
        Whether to have `Result.transfers` ready. Otherwise they are found when they are asked for, for which it is too
        late under ``mpiexec``.
    progress
        Called now and then with the name of the stage and the share of it that is done, 0..1. What it raises ends the
        analysis.

    Returns
    -------
    Result

    Raises
    ------
    whywait.ArchiveError
        If the events of no location can be read.
    whywait.TraceError
        If the events contradict each other beyond what can be left out.
    whywait.UsageError
        If an argument makes no sense, the memory limit is too small to begin with, or ``mpiexec`` has started several
        processes but there is no MPI.
    OSError
        If the system refuses, or what does not fit into memory does not fit the disk either.
    """
    ranks = mpi.ranks()
    with ranks or nullcontext():
        opened = run if isinstance(run, Run) else Run(run)
        directory = spill_directory or tempfile.gettempdir()
        _native.limit_memory(opened._native, memory_limit, directory, threads=threads)  # noqa: SLF001
        native = _native.analyze(
            opened._native,  # noqa: SLF001
            threads=threads,
            wrong_order_window=wrong_order_window,
            causes=causes,
            cost_model=cost_model,
            transfers=transfers,
            ranks=ranks,
            progress=progress,
        )
    left_out: tuple[Kind, ...] = ("cause", "thesis") if not causes else ("thesis",) if cost_model == "scalasca" else ()
    stored = metric_tree().without(_native.stored_metrics(), *left_out)
    return Result(native, opened, stored, idle_threads=idle_threads)
