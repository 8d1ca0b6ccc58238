"""The result of an analysis."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.counters.counters import with_counters
from whywait.api.documented import with_columns
from whywait.model import tables
from whywait.model.result import ResultData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from os import PathLike

    from whywait.analysis.account import By
    from whywait.analysis.counters.correlation import Correlation
    from whywait.analysis.counters.counters import Counters
    from whywait.analysis.counters.queues import Queues
    from whywait.analysis.devices.kernels import Devices
    from whywait.analysis.efficiency.efficiency import Efficiencies, Method, Window
    from whywait.analysis.findings import Findings
    from whywait.analysis.ranking import Choice
    from whywait.analysis.stored_factors import Factors
    from whywait.api.run import Run
    from whywait.model.dataset import Dataset
    from whywait.model.options import QueueArrival, QueueMatch
    from whywait.model.timeline import Timeline


@with_columns
class Result(ResultData):
    """The result of an analysis.

    All tables are Arrow tables; use ``to_pandas()`` or ``polars.from_arrow()`` to convert them.

    Parameters
    ----------
    tables
        The dataset.
    run
        The trace that was analyzed.
    idle_threads
        Whether to add the time of idle threads to the times of the dataset.
    """

    def __init__(self, tables: Dataset, run: Run, *, idle_threads: bool = False) -> None:
        super().__init__(tables, run, idle_threads=idle_threads)
        self._opened = run

    @property
    def run(self) -> Run:
        """The trace that was analyzed."""
        return self._opened

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `analyze` that affect the result."""
        return self.tables.options.as_dict()

    # The tree, its values, and warnings -------------------------------------------------------------------------------

    def callpaths(self) -> pa.Table:
        """List the call paths in the order of the call tree, each with its region.

        See docs/tables.md#callpaths_by_name.
        """
        return tables.callpaths(self.tree)

    def severities(self, metric: str | None = None, *, inclusive: bool = False) -> pa.Table:
        """Return the nonzero values of a metric.

        Parameters
        ----------
        metric
            A stored or derived metric; None for all stored metrics.
        inclusive
            Whether values include callees.

        Returns
        -------
        pyarrow.Table
            Values are always inclusive along the metric tree.

            See docs/tables.md#severities.

        Raises
        ------
        KeyError
            If there is no such metric.

        Examples
        --------
        >>> late = result.severities("mpi_latesender")
        >>> late.num_rows, late.column("rank").to_pylist()[:3]
        (9, [0, 1, 2])
        """
        names = [m.name for m in self.profile.metrics if not m.derived] if metric is None else [metric]
        return self._severities(names, inclusive=inclusive)

    def derived_severities(self) -> pa.Table:
        """Return the nonzero values of all derived metrics.

        See docs/tables.md#derived.
        """
        return self._severities([m.name for m in self.profile.metrics if m.derived], inclusive=False)

    def _severities(self, names: list[str], *, inclusive: bool) -> pa.Table:
        pieces = tables.severity_pieces(self.profile, self.places, names, inclusive=inclusive)
        return tables.table(tables.SEVERITIES, pieces)

    def inconsistencies(self) -> pa.Table:
        """Return the places of all warnings, at most 10,000 of each kind.

        The kinds are those of `warnings`; the time is null where no event could be read.

        See docs/tables.md#inconsistencies.
        """
        return self.tables.inconsistencies

    # The account, and findings ----------------------------------------------------------------------------------------

    def account(
        self,
        focus: str | None = None,
        *,
        by: By | None = "row",
        window: tuple[float, float] | None = None,
    ) -> pa.Table:
        """Return the account of all CPU time: each moment of each CPU location belongs to exactly one row.

        The rows add up to the CPU time of the focus; docs/account.md defines them.

        >>> account = result.account()
        >>> round(sum(account["share"].to_pylist()), 9)
        1.0

        Parameters
        ----------
        focus
            The part of the run: by default the time between start-up and shutdown, ``all`` for the whole run, or a call
            path, including its callees.
        by
            What to sum over: ``"row"``, ``"callpath"``, ``"location"`` or ``"iteration"`` (of the main loop); None for
            the table of call paths and locations.
        window
            Begin and end of a time window instead, seconds since the start of the trace. This needs the events.

        Returns
        -------
        pyarrow.Table
            ``row`` (such as ``transfer.needed``, or ``wait.mpi_latesender``), ``group``, the call path or the location,
            ``time`` (s), ``share`` of the CPU time (not without sums), ``excess`` (s, what calls take beyond the
            fastest 5% of such calls) and ``calls``. By iteration: ``iteration``, ``begin``, ``duration``, ``group``,
            ``time``, and ``share`` of the time of the iteration on all threads.

        Raises
        ------
        whywait.UsageError
            If there is no such call path, or the part needs events and there are none; by iteration, if there is no
            main loop.
        """
        from whywait.analysis.account import account

        return account(self, focus, window).table(by)

    def device_account(self) -> pa.Table:
        """Return the account of devices: each moment of each device in the focus belongs to exactly one row.

        See docs/tables.md#device_account.
        """
        return self._named("device_account", self.tables.device_account)

    def io(self) -> pa.Table:
        """Return what was done with files, by file, call path, and location.

        >>> result.io().num_rows  # this run has no I/O
        0

        See docs/tables.md#io.
        """
        return self._named("io", self.tables.io)

    def findings(self, limit: int = 5, *, focus: str | None = None, prices: bool = False) -> Findings:
        """Return the findings: the largest losses of the focus, each with its reason.

        >>> result.findings()[0].rule
        'imbalance'
        >>> first = result.findings(prices=True)[0].price
        >>> first.what, round(first.saved, 4)
        ('balance relax/work', 0.085)

        Parameters
        ----------
        limit
            How many to show at most: see ``Findings.shown``.
        focus
            A call path: only what it, and what is below it, is to blame for. None for all.
        prices
            Whether to simulate what changes would save, if that is not known yet. The result keeps it.

        Returns
        -------
        whywait.analysis.findings.Findings
            A list of findings, the largest loss first: ``rule``, ``sentence``, ``advice``, ``loss`` (s of CPU time),
            ``share`` (of the CPU time of the focus), ``callpath`` (its number), ``ranks``, ``values`` (the figures and
            names in the sentence, with unit and meaning), ``evidence``, and ``price`` and ``prices`` if these are known
            (``saved`` is the time by which the focus becomes shorter, in s: that of `whywait.whatif`); with ``shown``,
            ``rest``, ``caveats``, ``together``, ``verdict()``, and ``table(result.tree)``.

        Raises
        ------
        whywait.UsageError
            If the result has no account (a profile, or a result of version 0.2.0), or there is no such call path.
        """
        from whywait.analysis.proposals.prices import priced_findings

        if not isinstance(limit, int):
            raise _native.UsageError(
                f"limit is how many findings to show at most, not {limit!r}: a call path is focus="
            )
        return priced_findings(self, limit, focus=focus, simulate=prices)

    def verdict(self) -> str:
        """Return what to say first: how much of the CPU time is lost, why most of it, and what that costs.

        The last sentence needs prices: see `findings`.

        >>> result.verdict().partition(". ")[0]
        '31% of the CPU time is lost'
        """
        return self.findings().verdict()

    # Waits and what they cost -----------------------------------------------------------------------------------------

    def wait_states(self, *, counters: bool | Sequence[str] = False, parts: bool = True) -> pa.Table:
        """Return the wait states, one row each.

        A wait state that is part of another, such as a Late Sender in wrong order, has a row for each of the two, so
        the rows of each kind add up to the metric of that name.

        Parameters
        ----------
        counters
            Whether to add the growth of each strict counter of the trace between Enter and Leave of the waiting call,
            as columns ``counter:NAME``, or the names of the counters to add. This reads the trace once more.
        parts
            Whether to include rows that do not count as waiting by themselves: parts of other wait states, and
            completion. Without them, ``waiting`` adds up to the metric ``waiting``.

        Returns
        -------
        pyarrow.Table
            The last four columns are null if the analysis did not look for causes or nobody is charged. Group by
            ``path``: pandas cannot group by the lists in ``callpath``.

            See docs/tables.md#wait_states.

        Examples
        --------
        >>> worst = result.wait_states().sort_by([("waiting", "descending")]).slice(0, 1).to_pylist()[0]
        >>> worst["kind"], worst["rank"], worst["cause_rank"]
        ('mpi_latesender', 0, 1)
        """
        pieces = tables.wait_state_pieces(self.tree, self.places, self.tables.wait_states)
        found = tables.table(tables.WAIT_STATES, pieces)
        if counters:
            found = with_counters(self, found, "enter", "leave", counters)
        return found if parts else found.filter(found["part_of"].is_null())

    def waits_between(
        self,
        *,
        metric: str | None = None,
        callpath: str | int | None = None,
        rank: int | None = None,
        count: int | None = None,
    ) -> pa.Table:
        """Return the total time that ranks wait for each other, by pair.

        Parameters
        ----------
        metric
            A wait state, or a metric above wait states; None for all waiting.
        callpath
            The call path that waits: a name, the names from the root, or a number; None for all.
        rank
            The rank that waits; None for all.
        count
            The maximum number of pairs; None for all.

        Returns
        -------
        pyarrow.Table
            One row per pair, most waiting first: ``rank`` (which waits), ``cause_rank`` (the rank it waits for; null
            if unknown), ``waiting`` (s), ``instances`` and ``longest`` (s).
        """
        from whywait.analysis.ranking import Choice, between, choose

        return between(self, choose(self, Choice(metric, rank, callpath)), count)

    def statistics(self) -> pa.Table:
        """Return statistics of each kind of wait: count, sum, mean, variance, extremes, and quartiles.

        >>> result.statistics().column_names[:5]
        ['metric', 'count', 'sum', 'mean', 'variance']

        See docs/tables.md#statistics.
        """
        from whywait.analysis.statistics import statistics

        return statistics(self.profile.metrics, self.tables.wait_states)

    def explain(self, which: int | Choice | None = None, *, depth: int = 8) -> dict[str, Any] | None:
        """Explain a wait state: the factors it is distributed over, down to the work that took too long.

        >>> result.explain(whywait.Choice("mpi_latesender", rank=3))["cause_rank"]
        2

        Parameters
        ----------
        which
            The row in `wait_states`, or a `whywait.Choice` of which the longest is explained; None for the longest of
            all.
        depth
            The maximum number of earlier waits to follow.

        Returns
        -------
        dict or None
            See `whywait.analysis.explain.explain`. None if no wait state has a known cause.

        Raises
        ------
        whywait.UsageError
            If no such wait state exists, or the analysis did not look for causes.
        """
        from whywait.analysis.explain import explain_longest

        return explain_longest(self, which, depth)

    def delay_costs(self) -> pa.Table:
        """Return the delay costs: the waiting that excess time in a call path on a location caused elsewhere.

        Classes are ``latesender``, ``barrier``, ``rma_progress``, and so on; ``interval_lock`` is time that a lock
        was held, and ``unattributed`` is booked where the waiting occurs.

        See docs/tables.md#delay_costs.

        Raises
        ------
        whywait.UsageError
            If the analysis did not look for causes.

        Examples
        --------
        >>> worst = result.delay_costs().sort_by([("short_term", "descending")]).slice(0, 1).to_pylist()[0]
        >>> worst["rank"], worst["callpath"][-2:]
        (5, ['relax', 'work'])
        """
        from whywait.analysis.causes import delay_costs

        return self._named("delay_costs", delay_costs(self))

    def critical_path(self, *, counters: bool | Sequence[str] = False) -> pa.Table:
        """Return the critical path, the chain of activities without waiting that determines the run time.

        Parameters
        ----------
        counters
            Whether to add the growth of each strict counter of the trace in each segment, as columns ``counter:NAME``,
            or the names of the counters to add. This reads the trace once more.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#critical_path.

        Raises
        ------
        whywait.UsageError
            If the analysis did not look for causes.

        Examples
        --------
        >>> first = result.critical_path().slice(0, 1).to_pylist()[0]
        >>> first["rank"], first["callpath"][-1]
        (3, 'MPI_Init')
        """
        self.need_causes()
        found = self._named("critical_path", self.tables.critical_path)
        return with_counters(self, found, "from", "to", counters) if counters else found

    def transfers(self) -> pa.Table:
        """Return the transfers of one-sided communication, one row each.

        See docs/tables.md#transfers.
        """
        return self._named("transfers", self.tables.transfers)

    # Summaries, and parts of the run ----------------------------------------------------------------------------------

    def efficiencies(
        self,
        callpath: str | int | None = None,
        *,
        method: Method = "all",
        window: tuple[float, float] | None = None,
    ) -> Efficiencies:
        """Return the POP efficiencies: parallel efficiency, load balance, serialization, transfer.

        >>> round(result.efficiencies("main/solve")["load_balance"].value, 2)
        0.72

        Parameters
        ----------
        callpath
            The part of the run to evaluate: the last names of call paths, separated by ``/``, or the number of one.
            None for the whole run.
        method
            ``"all"`` to count all waits in MPI as waits, ``"cube"`` to omit one-sided ones as Cube's Advisor does.
        window
            Start and end of a time window, seconds since the start of the trace, as for `window`; None for the whole
            run.

        Returns
        -------
        whywait.analysis.efficiency.efficiency.Efficiencies
            Each efficiency with its formula and inputs.

        Raises
        ------
        whywait.UsageError
            If there is no such call path, or the window is empty.
        """
        from whywait.analysis.efficiency.efficiency import efficiencies

        return efficiencies(self, callpath, method=method, window=window)

    def summary(self, *, focus: str | None = None) -> dict[str, Any]:
        """Return the content of `summary.json`.

        >>> result.summary()["run"]["program"]
        'stencil'

        Parameters
        ----------
        focus
            The part of the run that headlines refer to: ``all`` for the whole run, or a call path, including its
            callees. By default the time between start-up and shutdown, if the trace shows it.
        """
        from whywait.analysis.summary import summarize

        if focus not in self._summaries:
            self._summaries[focus] = summarize(self, focus)
        return self._summaries[focus]

    @cached_property
    def _summaries(self) -> dict[str | None, dict[str, Any]]:
        return {}

    def iterations(self, loop: str | int | None = None) -> pa.Table | None:
        """Return the iterations of the main loop: when each took place, how long it took, and how much it waited.

        Parameters
        ----------
        loop
            The call path that is entered once in each iteration: its last names separated by ``/``, or its number. Or
            the name of a parameter that the program records (optionally with the prefix ``parameter:``). None to use
            the loop that the program declares, or else the repeated part that takes the most time.

        Returns
        -------
        pyarrow.Table or None
            None if there is no main loop.

            See docs/tables.md#iterations.

        Raises
        ------
        whywait.UsageError
            If ``loop`` matches no call path or more than one, or the result has no events.

        Examples
        --------
        >>> table = result.iterations()
        >>> table.num_rows, result.tree.path(table["callpath_id"][0].as_py())[-1]
        (100, 'exchange_halo')
        """
        from whywait.analysis.iterations import iterations

        return iterations(self, loop)

    # Who communicates with whom ---------------------------------------------------------------------------------------

    def communication(self, *, merge: Literal["node"] | int | None = None, focus: str | None = None) -> pa.Table:
        """Return who communicates with whom, and who waits for whom.

        Parameters
        ----------
        merge
            ``"node"`` to add up the ranks of each node, or a number to add up blocks of that many neighboring ranks;
            None for single ranks.
        focus
            ``"all"`` for the whole run; None for what overlaps the time between start-up and shutdown, or the window
            that was analyzed; a call path for what is sent, requested or waited for there and below, in that time.

        Returns
        -------
        pyarrow.Table
            With more than a million pairs, neighboring ranks are merged: a row stands for the ranks up to ``last_rank``
            and the peers up to ``last_peer``. Between nodes, the first columns are their names, ``node`` and
            ``peer_node``.

            See docs/tables.md#communication.

        Raises
        ------
        whywait.UsageError
            If the result has no events (an older version wrote it), or if its pairs are already merged too far to
            separate nodes or blocks of this size.

        Examples
        --------
        >>> first = result.communication().to_pylist()[0]
        >>> first["rank"], first["peer"], first["messages"]
        (0, 1, 100)
        """
        from whywait.analysis.communication import between_nodes, in_blocks

        pairs = self._communication(focus)[0]
        if merge == "node":
            return between_nodes(self, pairs)
        return pairs if merge is None else in_blocks(pairs, merge)

    def message_sizes(self, *, focus: str | None = None) -> pa.Table:
        """Return a histogram of the sizes of messages and one-sided transfers.

        Parameters
        ----------
        focus
            As for `communication`.

        Returns
        -------
        pyarrow.Table
            Ranges go from one power of two up to the next; those without messages have no row.

            See docs/tables.md#message_sizes.

        Raises
        ------
        whywait.UsageError
            As for `communication`.
        """
        return self._communication(focus)[1]

    def _communication(self, focus: str | None) -> tuple[pa.Table, pa.Table]:
        from whywait.analysis.focus import ALL, find_focus
        from whywait.model.selection import in_subtrees

        part = find_focus(self, focus)
        inside = None if part.callpath is None else in_subtrees(self.tree, part.callpath)
        return self.tables.communication(whole=focus == ALL, inside=inside)

    # Counters, queues, and devices ------------------------------------------------------------------------------------

    @cached_property
    def counters(self) -> Counters:
        """The hardware and software counters of the trace, by name.

        >>> list(result.counters)  # this trace has none
        []
        """
        from whywait.analysis.counters.counters import Counters

        return Counters(self)

    def correlate(
        self,
        x: str,
        y: str,
        over: Literal["ranks", "iterations", "bins"] = "ranks",
        *,
        bins: int = 50,
        loop: str | int | None = None,
    ) -> Correlation:
        """Return the correlation of two quantities, Pearson's r.

        >>> round(result.correlate("time", "mpi_latesender").r, 3)
        -0.13

        Parameters
        ----------
        x, y
            The names of metrics, counters of the trace, or counters of queues (``mpi_unexpected``,
            ``mpi_max_unexpected_queue``); over iterations and bins, of wait states or sums and counters.
        over
            What to pair: sums over ``"ranks"``, over ``"iterations"`` of a loop, or over ``"bins"`` of time of equal
            width.
        bins
            The number of bins.
        loop
            The loop, as for `Result.iterations`; None for the main loop.

        Returns
        -------
        whywait.analysis.counters.correlation.Correlation
            ``n`` (the number of ranks, iterations or bins) and ``r`` (None if ``n`` is less than 3 or one quantity does
            not vary). There is no test of significance.

        Raises
        ------
        whywait.UsageError
            If there is no such metric, counter or loop, or if events are needed and the result has none.
        """
        from whywait.analysis.counters.correlation import correlate

        return correlate(self, x, y, over, bins, loop)

    def queues(
        self,
        arrival: QueueArrival | None = None,
        match: QueueMatch | None = None,
        *,
        bins: int | Sequence[float] = 0,
    ) -> Queues:
        """Return the counters of messages and queues, which a modified MPI library would count.

        >>> result.queues("send").maxima.column_names[:4]
        ['metric', 'location', 'rank', 'thread']

        Parameters
        ----------
        arrival
            When a message arrives: when its receiver is first in a call that looks for messages (``"progress"``), after
            the typical transfer time of its class (``"estimate"``), or as soon as its send begins (``"send"``); None
            for what the analysis chose, or ``"progress"``.
        match
            Which messages share a queue: those of a ``"pair"`` of processes in one communicator, or all messages to a
            process in one communicator (``"list"``); None for what the analysis chose, or a pair.
        bins
            The number of bins of ``series``, of equal width, or their edges (seconds since the start of the trace).

        Returns
        -------
        whywait.analysis.counters.queues.Queues
            ``sums``, ``maxima``, ``series`` and ``window(begin, end)``: Arrow tables. If the analysis did not replay
            the queues this way, this reads the trace once more.
        """
        from whywait.analysis.counters.queues import Queues

        return Queues(self, arrival, match, bins=bins)

    def queue_levels(self) -> pa.Table:
        """Return the lengths of the queues of messages and requests.

        A level that is always zero has no row.

        See docs/tables.md#queue_levels.

        Raises
        ------
        whywait.UsageError
            If the queues were not replayed.
        """
        from whywait.analysis.counters.queues import levels

        return levels(self)

    def queue_series(self) -> pa.Table:
        """Return all levels of `queue_levels` over time, in bins of equal width.

        See docs/tables.md#queue_series.

        Raises
        ------
        whywait.UsageError
            As for `queue_levels`, if the analysis ran without ``queue_bins``, or for a result on disk.
        """
        from whywait.analysis.counters.queues import series

        return series(self)

    def gpu(self) -> Devices:
        """Return what accelerators ran, which calls waited for them, and what hosts did while their devices starved.

        >>> result.gpu().summary()["devices"]
        []

        Raises
        ------
        whywait.UsageError
            If the result has no events.
        """
        from whywait.analysis.devices.kernels import Devices

        return Devices(self)

    # Threads ----------------------------------------------------------------------------------------------------------

    def locks(self, window: Window | None = None) -> pa.Table:
        """Return the locks of threads, and the ordered constructs, of each process.

        Parameters
        ----------
        window
            Begin and end of a time window (s since the begin of the run): only what begins in it counts.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#locks.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        return self._named("locks", mpi.together(self._analysis("locks").locks, window))

    def tasks(self, window: Window | None = None) -> pa.Table:
        """Return the sizes of tasks, by construct and process.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#tasks.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.

        Notes
        -----
        The *parallel benefit* of a construct is ``median / (median_creation + median_delay)``; tasks with less than 1
        are too small (after Muddukrishna et al., PPoPP 2016).
        """
        return self._tasks(0, "tasks", window)

    def work_span(self, window: Window | None = None) -> pa.Table:
        """Return work and span of the parallel regions in which tasks run.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#task_regions.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.

        Notes
        -----
        ``work / span`` is the parallelism: more threads than that are of no use. For the burdened span, see He,
        Leiserson, Leiserson, SPAA 2010.
        """
        return self._tasks(1, "task_regions", window)

    def task_lengths(self, window: Window | None = None) -> pa.Table:
        """Return how many tasks run how long, by construct and process.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#task_lengths.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        return self._tasks(2, "task_lengths", window)

    def loops(self, window: Window | None = None) -> pa.Table:
        """Return how evenly threads share the work of worksharing constructs: loops, sections, and single blocks.

        Parameters
        ----------
        window
            As for `locks`.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md#loops.

        Raises
        ------
        whywait.UsageError
            If the result was read from a directory.
        """
        return self._named("loops", mpi.together(self._analysis("loops").worksharing, window))

    def _tasks(self, part: int, name: str, window: Window | None) -> pa.Table:
        if window not in self._task_tables:
            self._task_tables[window] = mpi.together(self._analysis("tasks").tasks, window)
        return self._named(name, self._task_tables[window][part])

    @cached_property
    def _task_tables(self) -> dict[Window | None, tuple[_native.Table, ...]]:
        return {}

    # Samples of the call path -----------------------------------------------------------------------------------------

    def samples(self) -> pa.Table:
        """Return the samples of the call path, one row each, by location and time.

        See docs/tables.md#samples.
        """
        return self._named("samples", self.tables.samples)

    def functions(self) -> pa.Table:
        """Return how long each sampled call path ran in the focus, one row for each location.

        The time of a recorded call path, which is known from the events, is divided in proportion to samples.

        See docs/tables.md#profile.
        """
        return self._named("profile", self.tables.function_times)

    def delay_functions(self) -> pa.Table:
        """Return what sampled call paths of late locations cost others, in the focus.

        The cost of a recorded call path at a location (`delay_costs`) is the sum of those of its sampled call paths.

        See docs/tables.md#delay_functions.
        """
        return self._named("delay_functions", self.tables.function_costs)

    # Clocks -----------------------------------------------------------------------------------------------------------

    @property
    def clocks(self) -> dict[str, Any] | None:
        """What contradicts the order of events, and what was done about it; None if nothing does.

        ``verdict`` (such as ``measured offsets``), ``steps`` (the times as they were read, then each correction that
        was tried: ``name``, ``kept``, and of the contradictions that were left then their number ``violated``, the
        ``worst`` and the ``sum``), ``done`` (the corrections that were kept), ``checked`` and ``violated`` (constraints
        of the times as they were read), ``left`` (violated ones in the times of this result), ``worst``, ``sum``,
        ``kinds`` (the same by kind), ``moved`` (the most that a time was corrected by), ``moved_processes`` (their
        number), ``stretch`` (the largest growth of an interval by the logical clock), ``stretched`` (the share of all
        time that is stretched by more than 1%), ``domain`` (what was asked to have a clock of its own),
        ``min_latency``, and ``contradicting`` (the number of nodes whose processes had different clock offsets, of
        these processes, and of the offsets). Times in seconds.
        """
        found: dict[str, Any] | None = self.facts.get("clocks")
        return found

    def clock_violations(self) -> pa.Table:
        """Return the contradictions in the times as they were read, by kind and pair of processes, the worst first.

        No rows if there are none.

        See docs/tables.md#clock_violations.
        """
        return self.tables.clock_table("clock_violations")

    def clock_course(self) -> pa.Table:
        """Return the contradictions in the times as they were read, by kind and hundredth of the run.

        No rows if there are none.

        See docs/tables.md#clock_course.
        """
        return self.tables.clock_table("clock_course")

    def clock_processes(self) -> pa.Table:
        """Return the clock of each process, and how it was corrected.

        No rows if nothing contradicts the order of events.

        See docs/tables.md#clock_processes.
        """
        return self.tables.clock_table("clock_processes")

    def clock_domains(self) -> pa.Table:
        """Return what has a clock of its own, devices among them, and the line that was fitted to it.

        No rows if nothing contradicts the order of events.

        See docs/tables.md#clock_domains.
        """
        return self.tables.clock_table("clock_domains")

    def clock_moves(self) -> pa.Table:
        """Return what the clocks of processes and devices that are moved most are moved by over the run.

        No rows if nothing contradicts the order of events.

        See docs/tables.md#clock_moves.
        """
        return self.tables.clock_table("clock_moves")

    def clock_pairs(self) -> pa.Table:
        """Return what the constraints say about the difference of two clocks.

        No rows if no lines were fitted.

        See docs/tables.md#clock_pairs.
        """
        return self.tables.clock_table("clock_pairs")

    # Files ------------------------------------------------------------------------------------------------------------

    def write(
        self,
        directory: str | PathLike[str],
        *,
        transfers: bool = False,
        html: bool = False,
        factors: Factors = "longest",
        focus: str | None = None,
        counters: bool | Sequence[str] = False,
        advice: Mapping[str, Any] | None = None,
        iterations: str | int | None = None,
        source: str | PathLike[str] | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write the dataset, which `load` reads, together with report.cubex, report.stat and summary.json.

        docs/dataset.md describes the tables of the dataset; manifest.json lists those that are present.

        Parameters
        ----------
        directory
            The directory to write to. It is created if necessary. A result that it has is replaced as a whole, or, if
            this fails, left as it is; other files stay.
        transfers
            Whether to also write transfers.parquet, which can be large.
        html
            Whether to also write report.html, the whole report in one file, to explore in a browser. Its timeline is
            also stored in tables, so that the report can be written again later.
        factors
            The waits whose factors to write (factors.parquet): ``"all"``, or ``"longest"`` for the longest of each kind
            and the waits that caused these.
        focus
            The part of the run that the headlines of summary.json and report.html refer to, as for `summary`.
        counters
            Whether to add the growth of strict counters to the tables of wait states and of the critical path, as
            columns ``counter:NAME``, or the names of the counters to add.
        advice
            The advice for summary.json and report.html, as returned by ``whywait.advise(...).as_dict()``.
        iterations
            The loop whose iterations to write (iterations.parquet), as for `iterations`; None for the main loop.
        source
            The directory with the source code of the program, if report.html should show the source lines of regions.
        force
            Whether to also replace the result of another trace.

        Returns
        -------
        list of Path
            The files written.

        Raises
        ------
        whywait.UsageError
            If the directory has the result of another trace.
        """
        from whywait.report.files import write_all

        self.need_whole()
        return write_all(
            self,
            Path(directory),
            lambda: self.summary(focus=focus) | ({"advice": dict(advice)} if advice else {}),
            transfers=transfers,
            picture=(lambda: self._picture) if html else None,
            factors=factors,
            counters=counters,
            iterations=iterations,
            source=source,
            force=force,
        )

    def write_tables(self, directory: str | PathLike[str]) -> list[Path]:
        """Write the long tables with names of call paths and ranks, for tools that should not have to join tables.

        Parameters
        ----------
        directory
            The directory to write to, other than that of a result. It is created if necessary.

        Returns
        -------
        list of Path
            The files written: severities.parquet, derived.parquet, wait_states.parquet, and, if the result has them,
            critical_path.parquet and transfers.parquet, each as the method of its name (`derived_severities` for
            derived.parquet) returns it.

        Raises
        ------
        whywait.UsageError
            If the directory holds a result.
        """
        from whywait.report.named import write_tables

        self.need_whole()
        return write_tables(self, Path(directory))

    def write_cube(self, path: str | PathLike[str]) -> None:
        """Write the metrics as a Cube 4 file, for CubeGUI and the Cube tools.

        Parameters
        ----------
        path
            The file; it appears once it is complete.
        """
        from whywait.report.cube import write_cube
        from whywait.store.staging import Staging

        target = Path(path)
        with Staging(target.parent) as staging:
            write_cube(self, staging.path(target.name))

    def write_html(self, path: str | PathLike[str], *, source: str | PathLike[str] | None = None) -> None:
        """Write the report as one HTML file, to explore in a browser without network access.

        Parameters
        ----------
        path
            The file; it appears once it is complete.
        source
            The directory with the source code of the program, if the report should show the source lines of regions.

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

    def write_paraver(
        self,
        path: str | PathLike[str],
        *,
        ranks: Collection[int] | None = None,
        window: tuple[float, float] | None = None,
        min_duration: float = 0.0,
        progress: Callable[[str, float], object] | None = None,
    ) -> dict[str, int]:
        """Write the run as a trace for Paraver, with its wait states, their causes, the critical path, and findings.

        Beside the trace are its labels (``.pcf``), the names of its objects (``.row``), and windows for what the
        analysis found (``.cfg``). Event types and states are those of Extrae.

        >>> written = result.write_paraver(directory / "run.prv")
        >>> written["threads"]
        8

        Parameters
        ----------
        path
            The file, ``.prv``, or ``.prv.gz`` to compress it; replaced if it exists.
        ranks, window, min_duration
            What is written, as for `write_timeline`.
        progress
            Called regularly with ``"timeline"`` and the share that is done, 0..1. An exception it raises ends the work.

        Returns
        -------
        dict
            The number of ``threads``, ``calls``, ``messages``, ``wait_states``, ``critical_path`` (stretches),
            ``records`` and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If the name has another ending, there is no such rank, the window is empty, or the result was loaded from
            disk and has no events.
        """
        from whywait.store.paraver import base_of, write_files

        analysis = self._analysis("events")
        target = Path(path)
        base_of(target)

        def write(file: Path) -> tuple[dict[str, int], dict[str, str]]:
            return mpi.together(
                _native.write_paraver,
                analysis,
                file,
                labels={metric.name: metric.display_name for metric in self.profile.metrics},
                findings=[(one.sentence, one.causes, one.ranks) for one in self.findings().shown],
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=progress,
            )

        return write_files(target, write)

    def write_timeline(
        self,
        path: str | PathLike[str],
        *,
        ranks: Collection[int] | None = None,
        window: tuple[float, float] | None = None,
        min_duration: float = 0.0,
        queues: bool = False,
        progress: Callable[[str, float], object] | None = None,
    ) -> dict[str, int]:
        """Write the run as a trace for the timeline viewer Perfetto (https://ui.perfetto.dev).

        Calls, wait states and the critical path become slices; messages, one-sided transfers and the causes of waits
        become flows; recorded counters become counter tracks. Slices keep their original times, in ns since the start
        of the trace, even if a window cuts them.

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
            Start and end in seconds since the start of the trace; everything that overlaps this window is written.
        min_duration
            The minimum length of calls, waits, transfers, and segments of the critical path, in seconds.
        queues
            Whether to replay the queues of messages, and to write their lengths, requests, and bytes in flight of each
            process as counter tracks.
        progress
            Called regularly with ``"timeline"`` and the share that is done, 0..1. An exception it raises ends the work.

        Returns
        -------
        dict
            The number of ``threads``, ``calls``, ``wait_states``, ``critical_path`` (segments), ``transfers``,
            ``message_flows``, ``cause_flows``, ``transfer_flows``, ``task_flows`` (to tasks that start on another
            thread), ``locks`` (times in which threads own locks that others wait for), ``nonblocking`` (collective
            operations), ``counters`` (tracks), ``backwards`` (flows that are omitted because they would end before they
            begin) and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If there is no such rank, the window is empty, or the result was loaded from disk and has no events.
        """
        from whywait.analysis.counters.queues import LEVELS, Queues
        from whywait.store.staging import Staging

        analysis = self._analysis("events for a timeline")
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        with Staging(target.parent) as staging:
            return mpi.together(
                _native.write_perfetto,
                analysis,
                staging.path(target.name),
                labels={**LEVELS, **{metric.name: metric.display_name for metric in self.profile.metrics}},
                queues=Queues(self).replay() if queues else None,
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=progress,
            )

    def write_stacks(self, path: str | PathLike[str], form: Literal["speedscope", "pprof"]) -> Path:
        """Write the call stacks of the focus for a viewer of profiles, as a flame graph.

        Each has its time, the part of that on the critical path, and the waiting that it causes elsewhere. Samples
        divide the time between calls among functions; without samples, stacks end with the functions that call MPI.

        Parameters
        ----------
        path
            The file.
        form
            ``speedscope`` (sums over all locations), or ``pprof`` (with ``rank`` and ``thread`` as labels).

        Returns
        -------
        pathlib.Path
            The file.
        """
        from whywait.report.pprof import pprof
        from whywait.report.speedscope import speedscope
        from whywait.store.staging import Staging

        target = Path(path)
        content = pprof(self) if form == "pprof" else json.dumps(speedscope(self)).encode()
        with Staging(target.parent) as staging:
            staging.path(target.name).write_bytes(content)
        return target

    def to_hatchet(self, metrics: Iterable[str] | None = None, *, rank: int | None = None) -> list[dict[str, Any]]:
        """Return the call tree with its values in the format of Hatchet and Thicket, which need not be installed.

        >>> root = result.to_hatchet(["time"])[0]  # for `hatchet.GraphFrame.from_literal`
        >>> root["frame"]["name"], [child["frame"]["name"] for child in root["children"]]
        ('stencil', ['main'])

        Parameters
        ----------
        metrics
            The metrics to include; None for the time and all wait states.
        rank
            The rank whose values to use; None for the sum over all locations.

        Returns
        -------
        list of dict
            One entry per root: ``frame``, ``metrics`` (exclusive, and inclusive as ``NAME (inc)``) and ``children``.

        Raises
        ------
        whywait.UsageError
            If there is no such metric, or no such rank.
        """
        from whywait.report.hatchet import literal

        return literal(self, metrics, rank=rank)

    def to_graphframe(self, metrics: Iterable[str] | None = None, *, rank: int | None = None) -> Any:
        """Return the call tree with its values as a ``GraphFrame`` of Hatchet, which Thicket reads, too.

        Parameters
        ----------
        metrics, rank
            See `Result.to_hatchet`, which has the same as nested dictionaries.

        Returns
        -------
        hatchet.GraphFrame
            The call tree, with a row for each call path.

        Raises
        ------
        whywait.UsageError
            If Hatchet is not installed, or there is no such metric or rank.
        """
        from whywait.report.hatchet import literal

        try:
            from hatchet import GraphFrame
        except ImportError as error:
            raise _native.UsageError("a GraphFrame needs Hatchet: pip install hatchet") from error
        return GraphFrame.from_literal(literal(self, metrics, rank=rank))

    def plot(self, ax: Any = None, *, focus: str | None = None) -> Any:
        """Draw where the time went: the account of all CPU time as bars, the largest groups on top.

        Parameters
        ----------
        ax
            The axes of Matplotlib to draw on; None for new ones.
        focus
            The part of the run: see `account`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, to change and to save: ``result.plot().figure.savefig("account.png")``.

        Raises
        ------
        whywait.UsageError
            If Matplotlib is not installed, or there is no such part.
        """
        from whywait.report.plot import plot_account

        return plot_account(self, ax, focus)

    @property
    def timeline(self) -> Mapping[str, str]:
        """The timeline of the HTML report, in packed blocks; empty if there are no events."""
        return self._picture[1]

    @cached_property
    def _picture(self) -> tuple[Timeline | None, Mapping[str, str]]:
        """The run over time, and its blocks."""
        from whywait.report.html.timeline import fit, pack

        if isinstance(self.tables.analysis, _native.Analysis):
            return fit(self, self.tables.analysis)
        stored = self.tables.timeline
        return stored, {} if stored is None else pack(self, stored)

    def _named(self, name: str, numbers: pa.Table | _native.Table) -> pa.Table:
        """Return a table with names of call paths, ranks and threads."""
        return tables.named(self.tree, self.places, pa.table(numbers), name)

    def _analysis(self, what: str) -> _native.Analysis:
        if (analysis := self.tables.analysis) is None:
            raise _native.UsageError(f"a result on disk has no {what}: analyze the trace again")
        return analysis

    def __repr__(self) -> str:
        return f"<whywait.Result of {self.run.name!r}: {len(self.metrics)} metrics, {len(self.tree)} call paths>"

    def _repr_html_(self) -> str:
        from whywait.report.html import metric_table

        return metric_table(self)
