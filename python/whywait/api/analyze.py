"""Find the wait states of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whywait._native as _native
import whywait.mpi as mpi
from whywait.api.run import Run, directory_on_disk
from whywait.model.options import Options

# Arrow can be imported while the core works.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from whywait.api.result import Result
    from whywait.model.metrics import Kind
    from whywait.model.options import ClockCorrection, ClockDomain, CostModel, QueueArrival, QueueMatch


def analyze(
    run: Run | str | PathLike[str],
    *,
    threads: int | None = None,
    wrong_order_window: int = 100,
    causes: bool = True,
    cost_model: CostModel = "thesis",
    idle_threads: bool = False,
    memory_limit: int | None = None,
    spill_directory: str | PathLike[str] | None = None,
    queues: QueueArrival | None = None,
    queue_match: QueueMatch = "pair",
    queue_bins: int = 0,
    window: tuple[float, float] | None = None,
    counter_modes: Mapping[str, str] | None = None,
    fold_recursion: bool = False,
    clocks: ClockCorrection | None = None,
    clock_domain: ClockDomain = "auto",
    min_latency: float = 0.0,
    census: bool = False,
    progress: Callable[[str, float], object] | None = None,
) -> Result:
    """Find every wait state of a run, and where its time goes.

    Under ``mpiexec``, the ranks share the work. Rank 0 gets the result and goes on; for the others, this function does
    not return: they serve rank 0 until it ends. See docs/mpi.md.

    Parameters
    ----------
    run
        A run, or the path of a trace.
    threads
        The number of threads to use; None for one per core. The result does not depend on it.
    wrong_order_window
        The number of recent Late Senders that each location remembers in order to find messages in wrong order.
    causes
        Whether to look for root causes and the critical path.
    cost_model
        How to distribute waiting over its causes: ``thesis`` (also ``unified``) follows the definitions for every
        paradigm, and the costs add up to the waiting. With ``bounded``, nobody pays for the part of a wait that
        exceeds all of its causes. ``scalasca`` gives the numbers of Scalasca 2.6, which has none for one-sided
        communication. See docs/causes.md.
    idle_threads
        Whether to count the time of threads that are idle because the program is outside of parallel regions, or in one
        with a smaller team (``omp_idle_threads``, and part of ``time``), as Scalasca does with ``-s``.
    memory_limit
        The maximum memory of the process in bytes, as far as this package controls it; data that does not fit is
        spilled to an unnamed file. Applies to this analysis and the tables of its result, until the next call. Linux
        only.
    spill_directory
        The directory of this file, on a disk with enough space; None for that of the trace or, if nothing can be
        written there, the user's cache directory.
    queues
        Whether to replay message queues: with ``"progress"``, a message arrives when its receiver is first in a call
        that looks for messages; with ``"estimate"``, its transfer takes as long as others of its class; with
        ``"send"``, it arrives as soon as its send begins. See docs/counters.md.
    queue_match
        Which messages share a queue: those of a ``"pair"`` of processes in one communicator, or all messages to a
        process in one communicator (``"list"``).
    queue_bins
        The number of bins of equal width for `Result.queue_series`.
    window
        Analyze only the time between two points, in seconds since the start of the run: times, wait states that overlap
        the window, their costs (wherever and whenever the causes are), and the critical path. Counts, bytes, and costs
        of idle threads are omitted. Such a result cannot be written.
    counter_modes
        What the values of counters are, by name, if the trace declares it wrongly: ``"absolute"`` (levels at their
        samples), ``"accumulated"``, ``"relative"``, or a metric mode of OTF2, such as ``"ABSOLUTE_NEXT"``.
    fold_recursion
        Whether a recursive call counts as part of the outer call of the same function, so that no function is twice on
        a call path. Beyond 256 levels, it always does.
    clocks
        What to do if messages are received before they are sent, or something else contradicts the order of events:
        with ``"nodes"``, the processes of a node share one clock offset; with ``"lines"``, each clock gets an offset
        and a drift that satisfy the order; ``"clc"`` is the controlled logical clock, and ``"both"`` both; ``"auto"``
        does what is needed. Each is kept if less is contradicted then. ``"measured"`` keeps the times as they were
        measured. None is ``"nodes"``, but ``"lines"`` for traces of profilers from several nodes, or from several
        sessions of one, whose clocks nothing else compares. See docs/clocks.md.
    clock_domain
        What has a clock of its own, for the correction of clocks: each ``"process"``, each ``"node"``, or with
        ``"auto"`` a node unless its processes contradict each other. Devices have their own.
    min_latency
        The least time between cause and effect on two processes, in seconds: what is faster counts as contradiction.
    census
        Whether to count what could contradict the order of events even if nothing does: `Result.clocks` is never None.
    progress
        Called regularly with the name of the stage and the share of it that is done, 0..1. An exception it raises ends
        the analysis.

    Returns
    -------
    Result

    Raises
    ------
    whywait.ArchiveError
        If the events cannot be read on any location.
    whywait.TraceError
        If the events are too inconsistent to be analyzed.
    whywait.UsageError
        If an argument is invalid, the memory limit is too small, or ``mpiexec`` has started several processes but MPI
        is not available.
    OSError
        If the operating system reports an error, or the disk is too small for the data that does not fit into memory.

    Examples
    --------
    >>> whywait.analyze("tests/data/stencil", causes=False)
    <whywait.Result of 'stencil': ... metrics, 22 call paths>
    """
    if window is not None and not window[0] < window[1]:
        raise _native.UsageError(f"the window from {window[0]:g} to {window[1]:g} s is empty")
    mpi.serve()
    opened = run if isinstance(run, Run) else Run(run, memory_limit=memory_limit, spill_directory=spill_directory)
    usual = _correction(opened)
    options = Options(
        wrong_order_window=wrong_order_window,
        causes=causes,
        cost_model=cost_model,
        idle_threads=idle_threads,
        queues=queues,
        queue_match=queue_match,
        counter_modes=_modes(counter_modes or {}),
        fold_recursion=fold_recursion,
        window=window,
        clocks=None if clocks == usual else clocks,
        clock_domain=clock_domain,
        min_latency=min_latency,
    )
    if memory_limit is not None:
        spill_directory = spill_directory or opened.spill_directory or directory_on_disk(opened.path)
    native = mpi.analyze(
        opened._native,  # noqa: SLF001
        memory=(memory_limit, spill_directory),
        threads=threads,
        wrong_order_window=wrong_order_window,
        causes=causes,
        cost_model=cost_model,
        queues=None if queues is None else (queues, queue_match, queue_bins, False),
        window=window,
        counter_modes=list(options.counter_modes.items()),
        fold_recursion=fold_recursion,
        clocks=clocks or usual,
        clock_domain=clock_domain,
        min_latency=min_latency,
        census=census,
        progress=progress,
    )
    return _to_result(native, opened, options)


def _correction(run: Run) -> str:
    """Return how the clocks of a run are corrected by default."""
    hosts = {rank["host"] for rank in run.traces["ranks"]} - {None} if run.traces else set()
    is_apart = len(hosts) > 1 or (run.nsight is not None and run.nsight["separate_clocks"])
    return "lines" if is_apart else "nodes"


def _to_result(native: _native.Analysis, run: Run, options: Options) -> Result:
    """Return the result of a native analysis.

    Parameters
    ----------
    native
        The analysis.
    run
        The trace that was analyzed.
    options
        The options that the result depends on.
    """
    from whywait.analysis.native import NativeDataset
    from whywait.api.result import Result
    from whywait.model.metrics import metric_tree
    from whywait.model.profile import in_window

    left_out: tuple[Kind, ...] = ()
    if not options.causes:
        left_out = ("cause", "thesis")
    elif options.cost_model == "scalasca":
        left_out = ("thesis",)
    stored = metric_tree().without(_native.stored_metrics(), *left_out)
    if options.queues is not None:
        stored |= set(_native.queue_metrics())
    if options.window is not None:
        stored = in_window(stored)
    if "samples" in native.facts():
        stored |= set(_native.sampled_metrics())
    return Result(NativeDataset(native, run, stored, options), run, idle_threads=options.idle_threads)


def _modes(modes: Mapping[str, str]) -> dict[str, str]:
    """Return the modes of counters as OTF2 names them."""
    if not modes:
        return {}
    from whywait.analysis.counters.counters import mode_of

    return {name: mode_of(mode) for name, mode in modes.items()}
