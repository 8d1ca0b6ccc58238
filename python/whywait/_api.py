"""The facade: a result, and all that can be asked of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait import _native
from whywait._counted import CountedResult
from whywait._structure import Structure
from whywait.analysis.counters import with_counters
from whywait.model import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from os import PathLike

    import pyarrow as pa

    from whywait._run import Run
    from whywait.analysis.efficiency import Efficiencies, Method
    from whywait.analysis.explained import Factors
    from whywait.analysis.ranking import Choice
    from whywait.model.dataset import Dataset
    from whywait.model.timeline import Timeline


class Result(Structure, CountedResult):
    """What an analysis found.

    Tables are Arrow tables; ``to_pandas()`` or ``polars.from_arrow()`` takes them further.

    Parameters
    ----------
    tables
        The dataset: None at a rank of ``mpiexec`` that is not the first.
    run
        The trace that was analyzed.
    idle_threads
        Whether to add the time of threads that had nothing to do to the times of the dataset.
    """

    def __init__(self, tables: Dataset | None, run: Run, *, idle_threads: bool = False) -> None:
        super().__init__(tables, run, idle_threads=idle_threads)
        self._opened = run

    @property
    def run(self) -> Run:
        """The trace that was analyzed."""
        return self._opened

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `analyze` that the result depends on; empty for a result that version 0.1.0 wrote."""
        return self.tables.options

    @property
    def here(self) -> bool:
        """The same as `is_root`: its name in version 0.1."""
        return self.is_root

    def inconsistencies(self) -> pa.Table:
        """Return every place of every kind of warning, at most 10,000 of a kind.

        Returns
        -------
        pyarrow.Table
            ``kind`` as in `warnings`, ``location`` (index), ``time`` (seconds since the begin of the trace) and
            ``detail`` (text or null).
        """
        return self.tables.inconsistencies

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

        Examples
        --------
        >>> late = result.severities("mpi_latesender")
        >>> late.num_rows, late.column("rank").to_pylist()[:3]
        (9, [0, 1, 2])
        """
        names = [m.name for m in self.profile.metrics if not m.derived] if metric is None else [metric]
        return self._severities(names, inclusive=inclusive)

    def derived_severities(self) -> pa.Table:
        """Return the values of all derived metrics that are not zero, with the columns of `severities`."""
        return self._severities([m.name for m in self.profile.metrics if m.derived], inclusive=False)

    def _severities(self, names: list[str], *, inclusive: bool) -> pa.Table:
        pieces = tables.severity_pieces(self.profile, self.places, names, inclusive=inclusive)
        return tables.table(tables.SEVERITIES, pieces)

    def wait_states(self, *, counters: bool = False) -> pa.Table:
        """Return the wait states, one row each.

        A wait state that is also part of another, such as a Late Sender in wrong order, has a row for each of the two:
        the rows of a kind add up to the metric of its name.

        Parameters
        ----------
        counters
            Whether to add what each strict counter of the trace came to in the call that waits, from its Enter to its
            Leave, as columns ``counter:NAME``; the trace is read once more for that.

        Returns
        -------
        pyarrow.Table
            ``kind`` (a metric), ``part_of`` (null for the rows that are waiting, each time once: these add up to the
            metric ``waiting``; else the wait state whose time it is a part of, or ``completion``), ``path`` (the call
            path as one text, to group by; ``callpath`` is a list, which pandas cannot), where (``callpath``,
            ``location``, ``rank``, ``thread``), when (``enter`` and ``leave`` of the activity, seconds since the begin
            of the trace), ``waiting`` (seconds), and the same of what caused it (``cause_callpath``, ``cause_rank``,
            ..., ``cause_time``), null where unknown. ``last`` says what a call that waited for a lock or for progress
            waited for last: ``contention`` or ``progress``. Of ``waiting``, excess work of the causing process caused
            ``direct``, its own earlier waiting ``indirect``; so much of it made others wait later (``propagating``);
            ``caused`` is the waiting that it caused elsewhere, through any number of others (seconds; null where causes
            were not looked for, or nobody is charged).

        Examples
        --------
        >>> worst = result.wait_states().sort_by([("waiting", "descending")]).slice(0, 1).to_pylist()[0]
        >>> worst["kind"], worst["rank"], worst["cause_rank"]
        ('mpi_latesender', 0, 1)
        """
        pieces = tables.wait_state_pieces(self.tree, self.places, self.tables.wait_states)
        found = tables.table(tables.WAIT_STATES, pieces)
        return with_counters(self, found, "enter", "leave") if counters else found

    def waits_between(
        self,
        *,
        metric: str | None = None,
        callpath: str | int | None = None,
        rank: int | None = None,
        count: int | None = None,
    ) -> pa.Table:
        """Return how long ranks wait for which in all.

        Parameters
        ----------
        metric
            A wait state, or a metric that has some below it; None for all that waiting is made of.
        callpath
            Where it waits: a name, the names from the root, or a number; None for everywhere.
        rank
            The rank that waits; None for all.
        count
            How many pairs at most; None for all.

        Returns
        -------
        pyarrow.Table
            ``rank`` (who waits), ``cause_rank`` (for whom; null where unknown), ``waiting`` (s), ``instances`` and
            ``longest`` (s) of each pair, most waiting first.
        """
        from whywait.analysis.ranking import Choice, between, choose

        return between(self, choose(self, Choice(metric, rank, callpath)), count)

    def statistics(self) -> pa.Table:
        """Return how long the waits of each kind are: number, sum, mean, variance, extremes and quartiles.

        >>> result.statistics().column_names[:5]
        ['metric', 'count', 'sum', 'mean', 'variance']

        Returns
        -------
        pyarrow.Table
            One row for each wait state that occurs; see `whywait.analysis.statistics.statistics`.
        """
        from whywait.analysis.statistics import statistics

        return statistics(self.profile.metrics, self.tables.wait_states)

    def explain(self, which: int | Choice | None = None, *, depth: int = 8) -> dict[str, Any] | None:
        """Return why a wait state waits: what it is shared out among, down to the work that took too long.

        >>> result.explain(whywait.Choice("mpi_latesender", rank=3))["cause_rank"]
        2

        Parameters
        ----------
        which
            Its row in `wait_states`, or of which the longest is taken; None for the longest of all.
        depth
            How many waits to follow one after the other.

        Returns
        -------
        dict or None
            See `whywait.analysis.explain.explain`. None if there is no wait state of which the cause is known.

        Raises
        ------
        whywait.UsageError
            If there is nothing of the kind, causes were not looked for, or several processes shared the analysis.
        """
        from whywait.analysis.explain import explain_longest

        return explain_longest(self, which, depth)

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
        pieces = tables.transfer_pieces(self.tree, self.places, self.tables.transfers)
        return tables.table(tables.TRANSFERS, pieces)

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

        Examples
        --------
        >>> worst = result.delay_costs().sort_by([("short_term", "descending")]).slice(0, 1).to_pylist()[0]
        >>> worst["rank"], worst["callpath"][-2:]
        (5, ['relax', 'work'])
        """
        from whywait.analysis.causes import delay_costs

        pieces = tables.delay_cost_pieces(self.tree, self.places, delay_costs(self))
        return tables.table(tables.DELAY_COSTS, pieces)

    def critical_path(self, *, counters: bool = False) -> pa.Table:
        """Return the critical path, the chain of activities without waiting that determines how long the run takes.

        Parameters
        ----------
        counters
            Whether to add what each strict counter of the trace came to in each segment, as columns ``counter:NAME``;
            the trace is read once more for that.

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

        Examples
        --------
        >>> first = result.critical_path().slice(0, 1).to_pylist()[0]
        >>> first["rank"], first["callpath"][-1]
        (3, 'MPI_Init')
        """
        self.need_causes()
        pieces = tables.critical_path_pieces(self.tree, self.places, self.tables.critical_path)
        found = tables.table(tables.CRITICAL_PATH, pieces)
        return with_counters(self, found, "from", "to") if counters else found

    def efficiencies(
        self,
        callpath: str | int | None = None,
        *,
        method: Method = "all",
        window: tuple[float, float] | None = None,
    ) -> Efficiencies:
        """Return the efficiencies of POP: parallel efficiency, load balance, serialization, transfer.

        >>> round(result.efficiencies("main/solve")["load_balance"].value, 2)
        0.72

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

    def summary(self, *, focus: str | None = None) -> dict[str, Any]:
        """Return what `summary.json` holds.

        >>> result.summary()["run"]["program"]
        'stencil'

        Parameters
        ----------
        focus
            What headlines are about: ``all`` for the whole run, a call path for that with all below it; by default the
            part of the run that matters, if there is one.
        """
        from whywait.analysis.summary import summarize

        if focus not in self._summaries:
            self._summaries[focus] = summarize(self, focus)
        return self._summaries[focus]

    @cached_property
    def _summaries(self) -> dict[str | None, dict[str, Any]]:
        return {}

    def write(
        self,
        directory: str | PathLike[str],
        *,
        transfers: bool = False,
        html: bool = False,
        factors: Factors = "longest",
        focus: str | None = None,
        counters: bool = False,
        advice: Mapping[str, Any] | None = None,
        iterations: str | int | None = None,
        source: str | PathLike[str] | None = None,
    ) -> list[Path]:
        """Write the dataset, which `load` reads, and what is made from it: report.cubex, report.stat and summary.json.

        docs/dataset.md lists the tables of the dataset; manifest.json says what there is.

        Parameters
        ----------
        directory
            Where to. It is made if need be; files of these names in it are replaced, all of them or none.
        transfers
            Whether to write transfers.parquet as well, which can be large.
        html
            Whether to write report.html as well: everything in one file, to explore in a browser. It has a timeline,
            which tables keep for a later one.
        factors
            Of which waits to write what they are shared out among (factors.parquet): ``"all"``, or ``"longest"`` for
            the longest of each kind and the waits that these go back to. A result of several processes has none.
        focus
            What the headlines of summary.json and report.html are about, as for `summary`.
        counters
            Whether to add what strict counters came to in each wait state and on the critical path to the tables of
            these, as columns ``counter:NAME``.
        advice
            What would help, for both: as ``whywait.advise(...).as_dict()`` returns it.
        iterations
            The loop whose iterations to write (iterations.parquet), as in `iterations`; None for the main loop.
        source
            The directory with the sources of the program: report.html shows the lines of regions whose files are there.

        Returns
        -------
        list of Path
            The files.
        """
        from whywait.report.files import write_all

        self.need_whole()
        return write_all(
            self,
            Path(directory),
            lambda: self.summary(focus=focus) | ({"advice": dict(advice)} if advice else {}),
            transfers=transfers,
            picture=self._picture if html else None,
            factors=factors,
            counters=counters,
            iterations=iterations,
            source=source,
        )

    def write_cube(self, path: str | PathLike[str]) -> None:
        """Write the metrics as a Cube 4 file, for CubeGUI and the Cube tools.

        Parameters
        ----------
        path
            The file; it is there when it is complete.
        """
        from whywait.report.cube import write_cube
        from whywait.store.staging import Staging

        target = Path(path)
        with Staging(target.parent) as staging:
            write_cube(self, staging.path(target.name))

    def write_html(self, path: str | PathLike[str], *, source: str | PathLike[str] | None = None) -> None:
        """Write everything as one HTML file to explore in a browser, without a network.

        Parameters
        ----------
        path
            The file; it is there when it is complete.
        source
            The directory with the sources of the program: the page shows the lines of regions whose files are there.

        Raises
        ------
        whywait.UsageError
            If there is no such directory.
        """
        from whywait.report.html import write_html
        from whywait.store.staging import Staging

        self.need_whole()
        target = Path(path)
        with Staging(target.parent) as staging:
            write_html(self, staging.path(target.name), self.summary(), self.timeline, source=source)

    def to_hatchet(self, metrics: Iterable[str] | None = None, *, rank: int | None = None) -> list[dict[str, Any]]:
        """Return the call tree with values as Hatchet and Thicket read it. Neither of them is needed here.

        >>> root = result.to_hatchet(["time"])[0]  # for `hatchet.GraphFrame.from_literal`
        >>> root["frame"]["name"], [child["frame"]["name"] for child in root["children"]]
        ('stencil', ['main'])

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

    @property
    def timeline(self) -> Mapping[str, str]:
        """The timeline of the HTML report, in packed blocks; empty where there are no events to make it from."""
        return self._picture[1]

    @cached_property
    def _picture(self) -> tuple[Timeline | None, Mapping[str, str]]:
        """The run over time, and its blocks; blocks alone if an earlier version wrote them."""
        from whywait.report.html.timeline import fit, pack

        if isinstance(self.tables.analysis, _native.Analysis):
            return fit(self, self.tables.analysis)
        stored = self.tables.timeline
        return stored, self.tables.packed_timeline if stored is None else pack(self, stored)

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
        flows; recorded counters are counter tracks. Slices have their true times, in ns since the begin of the trace,
        also where a window cuts them.

        >>> written = result.write_timeline(directory / "run.pftrace", ranks=range(4), window=(0.5, 0.6))
        >>> written["threads"]
        4

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
            ``message_flows``, ``cause_flows``, ``transfer_flows``, ``counters`` (tracks), ``backwards`` (flows that are
            left out, because they would end before they begin) and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If there is no such rank, nothing in the window, or the result was read back and has no events.
        """
        from whywait.store.staging import Staging

        if (analysis := self.tables.analysis) is None:
            raise _native.UsageError("a result on disk has no events, so it has no timeline: analyze the trace again")
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        with Staging(target.parent) as staging:
            return _native.write_perfetto(
                analysis,
                staging.path(target.name),
                labels={metric.name: metric.display_name for metric in self.profile.metrics},
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=None if progress is None else lambda share: progress("timeline", share),
            )

    def __repr__(self) -> str:
        if not self.is_root:
            return f"<whywait.Result of {self.run.name!r}, which rank 0 has>"
        return f"<whywait.Result of {self.run.name!r}: {len(self.metrics)} metrics, {len(self.tree)} call paths>"

    def _repr_html_(self) -> str:
        from whywait.report.html import metric_table

        return metric_table(self)
