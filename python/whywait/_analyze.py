"""Find the wait states of a trace."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

from whywait import _native, mpi
from whywait._api import Result
from whywait._run import Run
from whywait.analysis.native import NativeDataset
from whywait.model.metrics import metric_tree
from whywait.model.profile import in_window

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from whywait.model.metrics import Kind


def analyze(
    run: Run | str | PathLike[str],
    *,
    threads: int | None = None,
    wrong_order_window: int = 100,
    causes: bool = True,
    cost_model: Literal["thesis", "unified", "bounded", "scalasca"] = "thesis",
    idle_threads: bool = False,
    memory_limit: int | None = None,
    spill_directory: str | PathLike[str] | None = None,
    transfers: bool = False,
    queues: Literal["estimate", "send"] | None = None,
    queue_match: Literal["pair", "list"] = "pair",
    queue_bins: int = 0,
    window: tuple[float, float] | None = None,
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
        What distributes waiting over its causes: ``thesis`` (also ``unified``) follows the definitions for every
        paradigm, and costs are no more and no less than the waiting. With ``bounded`` nobody pays for what a wait
        exceeds all its causes by. ``scalasca`` gives the numbers of Scalasca 2.6, none for one-sided communication.
        See docs/causes.md.
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
    queues
        Whether to replay the queues of messages: ``"estimate"`` lets a message arrive after a transfer as long as those
        of its class, ``"send"`` as soon as its send begins. See docs/counters.md.
    queue_match
        Which messages share a queue: those of one ``"pair"`` of processes and one communicator, or all to one process
        with one communicator (``"list"``).
    queue_bins
        Into how many bins of equal width to cut the lengths of queues, for `Result.queue_series`.
    window
        Only what lies between two times, seconds since the begin of the run: times, wait states, the costs of these
        (wherever and whenever their causes are), and the critical path. Counts and bytes are left out, as are costs of
        idle threads; the wait states are those that begin before the end of the window and end after its begin. Such a
        result is looked at, not written. For one process.
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

    Examples
    --------
    >>> whywait.analyze("tests/data/stencil", causes=False)
    <whywait.Result of 'stencil': ... metrics, 22 call paths>
    """
    if window is not None and not window[0] < window[1]:
        raise _native.UsageError(f"the window from {window[0]:g} to {window[1]:g} s is empty")
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
            queues=None if queues is None else (queues, queue_match, queue_bins),
            window=window,
            ranks=ranks,
            progress=progress,
        )
    left_out: tuple[Kind, ...] = ("cause", "thesis") if not causes else ("thesis",) if cost_model == "scalasca" else ()
    stored = metric_tree().without(_native.stored_metrics(), *left_out)
    if queues is not None:
        stored |= set(_native.queue_metrics())
    options: dict[str, Any] = {
        "wrong_order_window": wrong_order_window,
        "causes": causes,
        "cost_model": cost_model,
        "idle_threads": idle_threads,
    }
    if queues is not None:
        options |= {"queues": queues, "queue_match": queue_match}
    if window is not None:
        stored = in_window(stored)
        options["window"] = window
    dataset = None if native is None else NativeDataset(native, opened, stored, options)
    return Result(dataset, opened, idle_threads=idle_threads)
