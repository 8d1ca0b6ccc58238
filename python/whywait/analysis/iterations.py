"""The iterations of the main loop: duration and waiting of each, the worst ones, and the trend.

A loop is identified by its *marker*, a call path that every process enters once in each iteration, or a fixed number of
times. On a process, an iteration lasts from its first Enter of the marker to that of the next iteration; the last one
ends with the last Leave of the loop's *body*: the marker, and those of its siblings whose number of visits is a
multiple or a divisor of the number of iterations.

The marker may also be a parameter that the program records (``SCOREP_USER_PARAMETER_INT64("step", i)``): an iteration
begins where its value changes.

The marker is named by the user or found: first from the program's declarations, then from visits and times alone. A
loop has at least three iterations, the same number on every process, and half of the time outside ``MPI_Init`` and
``MPI_Finalize``. The main loop is a dynamic region or a phase; otherwise a parameter with increasing values;
otherwise siblings that every process enters equally often and that have this much time together with what their
caller computes between them; otherwise siblings that it enters at least six times, with all that happens between
them. Among these siblings, the group with the same number of visits and the most time gives the number of iterations,
and its first member is the marker; calls that begin and complete non-blocking messages count as one group with the
visits of the rarest. In traces of PyTorch's profiler, an iteration is a step, however many there are; it has the same
number on all ranks, whose records may begin at different ones. A call path has more time than those below it, so the
outer of nested loops is found if its body is a call path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import whywait._native as _native
from whywait.analysis.computation import computes
from whywait.analysis.native import PART
from whywait.model.schema import schema_of
from whywait.model.selection import one_callpath

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from whywait.model.result import ResultData

#: The columns of every table of iterations; one more for each kind of wait state follows.
ITERATIONS = schema_of("iterations")

#: The columns with the time of each group of the account.
GROUPS = {
    "computation": "computing_time",
    "waiting": "waiting_time",
    "transfer": "transfer_time",
    "threads": "thread_time",
    "idle": "idle_time",
    "io": "io_time",
    "devices": "device_time",
    "other": "other_time",
}

_PARAMETER = "parameter:"
# What PyTorch's profiler counts.
_STEP = "step"
_FEWEST = 3
# How the names of wait states of devices for each other begin.
_OF_DEVICES = "ccl_"
# A last iteration that is shorter than this part of the median is cut.
_CUT = 0.5
# Calls that take little of the time themselves mark iterations from this number on.
_MANY = 6
_BEGINS = frozenset({"mpi_isend", "mpi_ibsend", "mpi_issend", "mpi_irsend", "mpi_irecv", "mpi_start", "mpi_startall"})
_COMPLETES = frozenset({"mpi_wait", "mpi_waitall", "mpi_waitany", "mpi_waitsome"})
_LEAST_SHARE = 0.5
# All iterations but the longest take at least this share of a loop that the program does not declare.
_OTHERS = 0.1
# Outliers are at least this multiple of the median.
_ODD = 1.2
# A trend needs at least this change over the run, and a line that explains at least this share of the variance.
_TREND, _FIT = 0.05, 0.5


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a program.

    Attributes
    ----------
    marker
        Number of the call path whose Enters begin iterations.
    count
        Number of iterations on the process with the most.
    every
        Number of Enters of the marker in an iteration; the first begins it.
    body
        The call paths whose last Leave ends the last iteration.
    parameter
        The parameter whose values mark iterations instead; None if the call path does.
    """

    marker: int
    count: int
    every: int
    body: tuple[int, ...]
    parameter: str | None = None


def find_loop(result: ResultData, named: str | int | None = None) -> Loop | None:
    """Find the main loop, or a named one.

    Parameters
    ----------
    result
        What was found in the run.
    named
        The marker: the last names of its call path, separated by ``/``, or its number; or the name of a parameter
        (with the prefix ``parameter:`` if there is also a call path of that name). None to find it.

    Returns
    -------
    Loop or None
        None if no loop has enough of the time.

    Raises
    ------
    whywait.UsageError
        If the name does not exist, matches several call paths, or no process enters it.
    """
    if "visits" not in result.profile.metrics:
        # Part of a run, or a result without visits.
        return None
    if named is not None:
        return _find_named_loop(result, named)
    dynamic, parameters = result.tables.declared_loops
    if result.facts.get("traces") and _STEP in parameters["parameter"].to_pylist():
        return Loop(0, 0, 1, (), _STEP)
    visits = _Visits(result)
    if (loop := visits.main_loop(dynamic)) is not None:
        return loop
    counted = [row for row in parameters.to_pylist() if row["rises"] and row["least"] == row["most"] >= _FEWEST]
    # Of several loops with the same time, the outer one has fewer iterations.
    best = max(counted, key=lambda row: (round(row["share"], 2), -row["most"]), default=None)
    if best is not None and best["share"] >= _LEAST_SHARE:
        return Loop(0, 0, 1, (), best["parameter"])
    return visits.main_loop()


def _find_named_loop(result: ResultData, named: str | int) -> Loop:
    parameters = result.tables.declared_loops[1]["parameter"].to_pylist()
    own = named.removeprefix(_PARAMETER) if isinstance(named, str) else None
    if own is not None and own != named:
        if own not in parameters:
            known = f": there are {', '.join(parameters)}" if parameters else ""
            raise _native.UsageError(f"no process records a parameter {own}{known}")
        return Loop(0, 0, 1, (), own)
    try:
        position = one_callpath(result.tree, named)
    except _native.UsageError as error:
        if own in parameters:
            return Loop(0, 0, 1, (), own)
        if not parameters:
            raise
        raise _native.UsageError(f"{error}; the trace has the parameters {', '.join(parameters)}") from None
    return _Visits(result).loop(position)


class _Visits:
    """Visits of each process's master thread to each call path."""

    def __init__(self, result: ResultData) -> None:
        self._result = result
        self._tree = result.tree
        places = result.places
        master = places.works & (places.thread == 0)
        cells = result.profile.cells("visits")
        kept = master[cells.key % len(places)]
        position, value = (cells.key // len(places))[kept], cells.value[kept]
        starts = np.flatnonzero(np.concatenate(([True], position[1:] != position[:-1]))) if position.size else position
        size = len(self._tree)
        self._most, on_all = np.zeros(size), np.zeros(size, np.bool_)
        if position.size:
            most, least = np.maximum.reduceat(value, starts), np.minimum.reduceat(value, starts)
            ranks = np.diff(np.append(starts, position.size))
            self._most[position[starts]] = most
            on_all[position[starts]] = (most == least) & (ranks == np.count_nonzero(master))
        #: Visits per process by position; zero where processes differ.
        self._per_process = np.where(on_all, self._most, 0).astype(np.int64)

    def loop(self, position: int) -> Loop:
        """Return the loop whose iterations begin with each Enter of a marker."""
        if not self._most[position]:
            raise _native.UsageError(f"no process enters {self._tree.path(int(self._tree.preorder[position]))[-1]}")
        return self._loop(position, int(self._most[position]))

    def _loop(self, marker: int, count: int) -> Loop:
        each = int(self._per_process[marker])
        body = self._body(marker, count) if each else np.array([marker])
        every = each // count if each else 1
        return Loop(int(self._tree.preorder[marker]), count, every, tuple(self._tree.preorder[body].tolist()))

    def _body(self, marker: int, count: int) -> npt.NDArray[np.int64]:
        siblings = np.flatnonzero(self._tree.above == self._tree.above[marker])
        each = self._per_process[siblings]
        several = (each > 0) & (each % count == 0)
        body: npt.NDArray[np.int64] = siblings[several | ((each >= _FEWEST) & (count % np.maximum(each, 1) == 0))]
        return body

    def main_loop(self, among: Sequence[int] | None = None) -> Loop | None:
        """Return the loop with the most time, if it has enough, among the given call paths."""
        if among is not None and not among:
            return None
        profile = self._result.profile
        own = profile.by_position("time")
        time = profile.inclusive(own)
        ends = self._tree.mask("mpi_mgmt_startup")
        enough = _LEAST_SHARE * float(own[~ends].sum())
        chosen = np.ones(len(self._tree), np.bool_) if among is None else np.isin(self._tree.preorder, among)
        # Between its calls, a function may compute itself; else ranks may call different functions there.
        found = self._longest(chosen, time, own, enough) or self._longest(chosen, time, time, enough, _MANY)
        return None if found is None else self._loop(*found)

    def _longest(
        self,
        chosen: npt.NDArray[np.bool_],
        time: npt.NDArray[np.float64],
        between: npt.NDArray[np.float64],
        enough: float,
        fewest: int = _FEWEST,
    ) -> tuple[int, int] | None:
        """Return the marker and the number of iterations of the loop with the most time.

        Parameters
        ----------
        chosen
            The call paths that can be its body.
        time
            The time of each call path with all that it calls.
        between
            The part of it that a caller has between the calls of the body.
        enough
            What a loop must have, with `between`.
        fewest
            The least number of visits.
        """
        above = self._tree.above
        best: tuple[float, int, int] | None = None
        for parent in np.unique(above).tolist():
            siblings = np.flatnonzero((above == parent) & chosen)
            siblings = siblings[self._per_process[siblings] >= fewest]
            around = float(between[parent]) if parent >= 0 else 0.0
            if not siblings.size or around + time[siblings].sum() < enough:
                continue
            counts = self._suggested_counts(siblings)
            for count in np.unique(counts).tolist():
                inside = siblings[counts == count]
                # Siblings are numbered in order of their first Enter.
                marker = min(inside.tolist(), key=lambda p: int(self._tree.preorder[p]))
                covered = around + float(time[inside].sum())
                if best is None or covered > best[0]:
                    best = covered, marker, count
        return None if best is None else best[1:]

    def _suggested_counts(self, siblings: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of iterations that each call path suggests.

        Calls that begin and complete non-blocking messages are parts of one exchange, so the rarest of them counts for
        all: eight ``MPI_Irecv`` and one ``MPI_Waitall`` are one iteration; so are one ``MPI_Irecv`` and two waits.
        """
        each = self._per_process[siblings]
        names = [self._tree.path(int(self._tree.preorder[position]))[-1].lower() for position in siblings]
        begins, completes = np.isin(names, list(_BEGINS)), np.isin(names, list(_COMPLETES))
        if begins.any() and completes.any():
            exchange = begins | completes
            rarest = each[exchange].min()
            if not (each[exchange] % rarest).any():
                return np.where(exchange, rarest, each)
        return each


def iterations(result: ResultData, named: str | int | None = None) -> pa.Table | None:
    """Return the iterations of the main loop, or of a named one.

    Parameters
    ----------
    result
        The result. A stored result has the iterations of one loop only.
    named
        As for `find_loop`.

    Returns
    -------
    pyarrow.Table or None
        See `whywait.Result.iterations`. None if there is no main loop.

    Raises
    ------
    whywait.UsageError
        As `find_loop`, and if the iterations of this loop would need events that are not available.

    Notes
    -----
    With M the latest begin of an iteration on any rank, its duration is the time until M of the next one, so durations
    add up to the loop. For each process, let U be its computation, summed over threads; T is the duration times the
    number of threads, or max U if that is more. Then ``PE = avg U / T = LB * CommE``, ``LB = avg U / max U``,
    ``CommE = max U / T``.
    """
    dataset = result.tables
    if dataset.options.window is not None:
        raise _native.UsageError(PART)
    stored = dataset.stored_iterations
    if stored is not None and (named is None or _matches_parameter(stored, named)):
        return stored
    if (loop := find_loop(result, named)) is None:
        return None
    if stored is not None and marking_parameter(stored) is None and _matches_loop(loop, stored):
        return stored
    marker = loop.marker if loop.parameter is None else loop.parameter
    found, callpath = dataset.iterations(marker, loop.every, loop.body, computes(result))
    if not found.num_rows:
        raise _native.UsageError(f"no process records {loop.parameter} on its master thread")
    table = _to_table(result, replace(loop, marker=callpath), found)
    is_given = named is not None or loop.parameter is not None or loop.marker in dataset.declared_loops[0]
    return table if is_given or (_repeats(table) and _share(result, table) >= _LEAST_SHARE) else None


def _repeats(table: pa.Table) -> bool:
    """Return whether more than one of the iterations takes much of their time."""
    duration = table["duration"].to_numpy()
    return bool(duration.sum() - duration.max(initial=0.0) >= _OTHERS * duration.sum())


def _share(result: ResultData, table: pa.Table) -> float:
    """Return the share of the focus from the begin of the first iteration to the end of the last."""
    length = result.facts["length"]
    first, last = (result.facts.get(f"focus_{bound}", at) for bound, at in (("begin", 0.0), ("end", length)))
    begin, end = float(table["begin"].to_numpy().min()), float(table["end"].to_numpy().max())
    return max(0.0, min(end, last) - max(begin, first)) / (last - first) if last > first else 0.0


def _matches_loop(loop: Loop, table: pa.Table) -> bool:
    return bool(table["callpath_id"][0].as_py() == loop.marker and table.num_rows == loop.count)


def marking_parameter(table: pa.Table) -> str | None:
    """Return the parameter whose values mark the iterations of a table; None if a call path does."""
    if "parameter" not in table.column_names or not table.num_rows:
        return None
    name: str | None = table["parameter"][0].as_py()
    return name


def _matches_parameter(table: pa.Table, named: str | int) -> bool:
    return isinstance(named, str) and marking_parameter(table) == named.removeprefix(_PARAMETER)


def known_iterations(result: ResultData, named: str | int | None = None) -> pa.Table | None:
    """Return the iterations; None if those of the main loop are unknown, as in part of a run."""
    try:
        return iterations(result, named)
    except _native.UsageError:
        if named is not None:
            raise
        return None


def _to_table(result: ResultData, loop: Loop, found: pa.Table) -> pa.Table:
    kinds = found.column_names[found.column_names.index("periodic") + 1 :]
    ranks = found["ranks"].to_numpy()
    computation = found["computation"].to_numpy() / ranks
    most, elapsed = found["most"].to_numpy(), found["elapsed"].to_numpy()
    # The sum is rounded: without the bound, equal loads could yield an efficiency above 1.
    computation = np.minimum(computation, most)
    # A rank that runs ahead makes no iteration longer: what counts is when the last one begins.
    end, longest = found["end"].to_numpy(), found["longest"].to_numpy()
    latest = np.maximum.accumulate(found["latest"].to_numpy())
    duration = np.diff(latest, append=max(float(end.max()), float(latest[-1])))
    threads = np.divide(elapsed, longest, out=np.ones_like(longest), where=longest > 0)
    # Each rank computes in a window of its own, which may be longer.
    allocated = np.maximum(duration * threads, most)
    waiting = np.zeros(found.num_rows)
    for name in counted(result, kinds):
        waiting += found[name].to_numpy()
    critical = found["critical_location"].cast(pa.int64())
    critical_rank = pa.array(result.places.rank).take(critical.combine_chunks())
    columns: dict[str, Any] = {
        "iteration": found["iteration"],
        "begin": found["begin"],
        "end": found["end"],
        "ranks": found["ranks"],
        "duration": duration,
        "pace_rank": found["pace"],
        "lead": found["lead"],
        "longest": found["longest"],
        "shortest": found["shortest"],
        "computation": computation,
        "slowest_rank": found["slowest"],
        "slowest_computation": most,
        "waiting": waiting,
        "critical_path": found["critical_path"],
        "critical_rank": critical_rank,
        "parallel_efficiency": _ratio(computation, allocated),
        "load_balance": _ratio(computation, most),
        "communication_efficiency": _ratio(most, allocated),
        **{name: found[name] for name in GROUPS.values()},
        "periodic": found["periodic"],
        "callpath_id": np.full(found.num_rows, loop.marker, np.uint32),
        "parameter": pa.array([loop.parameter] * found.num_rows, pa.string()),
        "value": found["value"],
    }
    fixed = pa.table(columns).cast(ITERATIONS)
    for kind in kinds:
        if found[kind].to_numpy().any():
            fixed = fixed.append_column(kind, found[kind])
    return fixed


def _ratio(above: npt.NDArray[np.float64], below: npt.NDArray[np.float64]) -> pa.Array:
    value = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return pa.array(value, mask=below <= 0)


def kinds(table: pa.Table) -> list[str]:
    """Return the kinds of wait states with columns in a table of iterations."""
    return [name for name in table.column_names if name not in ITERATIONS.names]


def counted(result: ResultData, kinds: Sequence[str]) -> list[str]:
    """Return the kinds of wait states whose sum is the waiting: of parts of others none.

    Where devices wait for each other, the waits of hosts do not count: they wait for their own devices.
    """
    whole = [metric.name for metric in result.profile.metrics.waiting if metric.name in kinds]
    return [name for name in whole if name.startswith(_OF_DEVICES)] or whole


def assess(result: ResultData, table: pa.Table) -> dict[str, Any]:
    """Assess the iterations of a loop.

    Parameters
    ----------
    result
        What was found in the run.
    table
        What `iterations` returned.

    Returns
    -------
    dict
        ``callpath``, ``callpath_id``
            The marker, or where its ``parameter`` is recorded (None if a call path marks the iterations).
        ``iterations``, ``common``
            Their number, and that of those on the most ranks: mostly all of them.
        ``time``, ``share``
            From the begin of the first to the end of the last (s), and the share of the focus in which they run.
        ``duration``
            ``mean``, ``median``, ``minimum``, ``maximum`` (s).
        ``waiting``, ``wait_states``
            Waiting over all locations (s), in total and by kind, largest first.
        ``worst``
            The longest iteration.
        ``outliers``, ``limit``
            The iterations in common longer than the limit; of those with and without periodic operations, each has its
            own.
        ``periodic``
            What every k-th iteration has only: ``name`` of the collective operations, ``every``, and the ``first``.
        ``trend``
            A straight line through the durations of those in common, but a last iteration that is cut: its growth from
            one iteration to the next (``slope``, s) and over all of them (``change``, a share of the mean), its
            coefficient of determination (``fit``), and whether it ``grows``, ``shrinks`` or is ``steady``.

    Notes
    -----
    Outliers lie beyond Tukey's outer fence, ``Q3 + 3 (Q3 - Q1)``, and at least 20% above the median. A trend changes by
    at least 5% of the mean and explains at least half of the variance.
    """
    duration = table["duration"].to_numpy()
    ranks = table["ranks"].to_numpy()
    # Where records begin or end at different iterations, the others are cut.
    common = table.filter(pa.array(ranks == ranks.max()))
    of_common = common["duration"].to_numpy()
    limits = _limits(common)
    order = np.argsort(-of_common, kind="stable")
    outliers = common["iteration"].to_numpy()[order[of_common[order] > limits[order]]]
    callpath = table["callpath_id"][0].as_py()
    begin, end = float(table["begin"].to_numpy().min()), float(table["end"].to_numpy().max())
    waiting = {kind: float(table[kind].to_numpy().sum()) for kind in kinds(table)}
    return {
        "callpath": result.tree.path(callpath),
        "callpath_id": callpath,
        "parameter": marking_parameter(table),
        "iterations": table.num_rows,
        "common": common.num_rows,
        "time": end - begin,
        "share": _share(result, table),
        "duration": {
            "mean": float(duration.mean()), "median": float(np.median(duration)),
            "minimum": float(duration.min()), "maximum": float(duration.max()),
        },
        "waiting": float(table["waiting"].to_numpy().sum()),
        "wait_states": dict(sorted(waiting.items(), key=lambda item: -item[1])),
        "worst": int(duration.argmax()),
        "outliers": outliers.tolist(),
        "limit": float(limits.max()),
        "periodic": periodic(table),
        "trend": _trend(whole(of_common)),
    }  # fmt: skip


def whole(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what iterations take without the last one if it is cut: if the marker ends a step, it has nothing else."""
    return values[:-1] if values.size > 1 and values[-1] < _CUT * np.median(values[:-1]) else values


def periodic(table: pa.Table) -> list[dict[str, Any]]:
    """Return the collective operations that every k-th iteration has only: ``name``, ``every``, and the ``first``."""
    column = table["periodic"].to_pylist()
    names = sorted({name for text in column if text is not None for name in text.split(", ")})
    found = []
    for name in names:
        which = [number for number, text in enumerate(column) if text is not None and name in text.split(", ")]
        if len(which) >= _FEWEST and len(set(np.diff(which).tolist())) == 1:
            found.append({"name": name, "every": which[1] - which[0], "first": which[0]})
    return found


def _limits(table: pa.Table) -> npt.NDArray[np.float64]:
    """Return the limit of each iteration, above which it is an outlier among those with the same operations."""
    duration = table["duration"].to_numpy()
    classes = np.array([text or "" for text in table["periodic"].to_pylist()])
    limits = np.empty(duration.size)
    for name in np.unique(classes):
        here = classes == name
        lower, median, upper = np.quantile(duration[here], (0.25, 0.5, 0.75))
        limits[here] = max(upper + 3 * (upper - lower), _ODD * median)
    return limits


def _trend(duration: npt.NDArray[np.float64]) -> dict[str, Any]:
    count, mean = duration.size, float(duration.mean())
    at = np.arange(count) - (count - 1) / 2
    variance, spread = float(((duration - mean) ** 2).sum()), float((at**2).sum())
    slope = float((at * (duration - mean)).sum()) / spread if spread else 0.0
    change = slope * (count - 1) / mean if mean else 0.0
    fit = slope**2 * spread / variance if variance else 0.0
    is_trend = abs(change) >= _TREND and fit >= _FIT and count >= _FEWEST
    kind = "steady" if not is_trend else "grows" if slope > 0 else "shrinks"
    return {"slope": slope, "change": change, "fit": fit, "kind": kind}
