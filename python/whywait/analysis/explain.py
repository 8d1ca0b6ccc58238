"""The history of a wait state: who made it wait, who made *that* one wait, down to the work at the bottom of it.

Between their last meeting and the wait, waiter and cause did different things. What the cause did longer, and what it
waited itself, shares the blame, each by its length; so does what it waited for, in the same way.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.result import ResultData

# All that take part in one of these have met after it; in the others only those who wait for each other.
_MEETINGS = frozenset(
    "mpi_barrier_wait mpi_wait_nxn mpi_rma_wait_at_create mpi_rma_wait_at_free mpi_rma_wait_at_fence "
    "shmem_barrier_wait shmem_wait_nxn shmem_rma_wait_at_create shmem_rma_wait_at_free armci_barrier_wait "
    "armci_wait_nxn armci_rma_wait_at_create armci_rma_wait_at_free omp_ebarrier_wait omp_ibarrier_wait".split()
)
# What contributes less to the wait is not followed, and only summed up.
_SMALL = 0.02

Path = tuple[str, ...]


class Cause(NamedTuple):
    """The call that was waited for."""

    location: int
    callpath: int
    enter: int


class Wait(NamedTuple):
    """A wait state; times in ticks since the begin of the trace, but for `indirect`, which is seconds."""

    row: int
    kind: str
    location: int
    callpath: int
    enter: int
    leave: int
    waiting: int
    cause: Cause | None
    indirect: float | None


class Timeline:
    """The calls of one location in the order of time.

    Parameters
    ----------
    result
        The result of an analysis whose trace is still there.
    location
        Its index.
    """

    def __init__(self, result: ResultData, location: int) -> None:
        events = result.run.events(location)
        kind = events["type"].cast(pa.string())
        begins = pc.is_in(kind, pa.array(["Enter", "ProgramBegin"]))
        steps = events.filter(pc.or_(begins, pc.is_in(kind, pa.array(["Leave", "ProgramEnd"]))))
        self.time: npt.NDArray[np.int64] = steps["time"].to_numpy()
        kind = steps["type"].cast(pa.string())
        self.enters: npt.NDArray[np.bool_] = pc.is_in(kind, pa.array(["Enter", "ProgramBegin"])).to_numpy()
        #: How many calls are open after each step.
        self.depth: npt.NDArray[np.int64] = np.where(self.enters, 1, -1).cumsum()
        self.names = _names(result, steps)

    def steps(self, time: int, name: str) -> tuple[int, int]:
        """Return the first and the last step of the call that begins at a time; if it never ends, the last of all."""
        first, last = np.searchsorted(self.time, [time, time + 1])
        begin = next((i for i in range(first, last) if self.enters[i] and self.names[i] == name), int(first))
        closed = np.flatnonzero(self.depth[begin:] < self.depth[begin])
        return begin, begin + int(closed[0]) if closed.size else len(self.names) - 1

    def stack(self, step: int) -> list[str]:
        """Return the calls that are open before a step, outermost first."""
        open_calls = []
        level = int(self.depth[step - 1]) if step else 0
        for depth in range(1, level + 1):
            (opened,) = np.nonzero(self.enters[:step] & (self.depth[:step] == depth))
            open_calls.append(self.names[opened[-1]])
        return open_calls

    def work(self, begin: int, end: int) -> tuple[dict[Path, int], dict[tuple[int, str], Path]]:
        """Return what happened between two times: the time in each call path without the calls below, and the calls.

        A call is known by its begin and its name.
        """
        first = int(np.searchsorted(self.time, begin))
        stack = self.stack(first)
        times: dict[Path, int] = {}
        calls: dict[tuple[int, str], Path] = {}
        last = begin
        for step in range(first, len(self.names)):
            now = min(int(self.time[step]), end)
            times[tuple(stack)] = times.get(tuple(stack), 0) + now - last
            if (last := now) == end:
                break
            if self.enters[step]:
                stack.append(self.names[step])
                calls[now, self.names[step]] = tuple(stack)
            else:
                stack.pop()
        return times, calls

    @cached_property
    def started(self) -> int:
        """When a process left its initialization: there everybody meets."""
        for step, name in enumerate(self.names):
            if not self.enters[step] and name.startswith(("MPI_Init", "shmem_init", "start_pes")):
                return int(self.time[step])
        return int(self.time[0]) if self.time.size else 0


def _names(result: ResultData, steps: pa.Table) -> list[str]:
    """Return the name of what each step enters or leaves."""
    regions = result.run.definitions["Region"]
    of_region = dict(zip(regions["id"].to_pylist(), regions["name"].to_pylist(), strict=True))
    program = result.tree.path(result.tree.roots[0])[0]
    return [program if region is None else of_region[region] for region in steps["region"].to_pylist()]


class History:
    """Follows wait states back to what caused them.

    Parameters
    ----------
    result
        The result of an analysis with causes whose trace is still there.
    """

    def __init__(self, result: ResultData) -> None:
        self._result = result
        self._resolution: int = result.facts["resolution"]
        self._table = result.tables.wait_states
        self._locations: npt.NDArray[np.uint32] = self._table["location"].to_numpy()
        self._known: dict[int, list[Wait]] = {}
        self._timelines: dict[int, Timeline] = {}
        self._begin: int | None = None

    def _waits(self, location: int) -> list[Wait]:
        """Return the wait states of a location, by time."""
        if location not in self._known:
            (rows,) = np.nonzero(self._locations == location)
            self._known[location] = [wait for wait in self._read(rows) if self._is_whole(wait.kind)]
        return self._known[location]

    def _is_whole(self, kind: str) -> bool:
        """Whether a wait state is not a part of another, as which it is there once more."""
        metrics = self._result.profile.metrics
        return metrics.wait_state(kind) is metrics[kind]

    def _read(self, rows: npt.NDArray[np.int64]) -> Iterator[Wait]:
        table = self._table.take(pa.array(rows))
        times = (
            np.rint(table[name].fill_null(0.0).to_numpy() * self._resolution).astype(np.int64).tolist()
            for name in ("enter", "leave", "waiting", "cause_time")
        )
        names = ("kind", "location", "callpath", "cause_location", "cause_callpath", "indirect")
        columns = (table[name].to_pylist() for name in names)
        for row, enter, leave, waiting, since, kind, location, callpath, by, by_callpath, indirect in zip(
            rows.tolist(), *times, *columns, strict=True
        ):
            cause = None if by_callpath is None else Cause(by, by_callpath, since)
            yield Wait(row, kind, location, callpath, enter, leave, waiting, cause, indirect)

    def _timeline(self, location: int) -> Timeline:
        if location not in self._timelines:
            timeline = Timeline(self._result, location)
            if self._begin is None:
                self._begin = self._find_begin(timeline, location)
            timeline.time = timeline.time - self._begin
            self._timelines[location] = timeline
        return self._timelines[location]

    def _find_begin(self, timeline: Timeline, location: int) -> int:
        """Return the tick at which the trace begins: tables count from there.

        It is the only one for which every wait state of a location is a call of it.
        """
        enters, leaves = timeline.time[timeline.enters], timeline.time[~timeline.enters]
        found: npt.NDArray[np.int64] | None = None
        for wait in self._waits(location):
            possible = np.intersect1d(enters - wait.enter, leaves - wait.leave)
            found = possible if found is None else np.intersect1d(found, possible)
            if found.size == 1:
                break
        if found is None or not found.size:
            raise _native.TraceError("the wait states are not those of the trace")
        return int(found[0])

    def explain(self, row: int, depth: int) -> dict[str, Any]:
        """Return the history of a wait state.

        Parameters
        ----------
        row
            Its row in the table of wait states.
        depth
            How many waits to follow one after the other.

        Returns
        -------
        dict
            Of the wait: ``kind``, ``callpath``, ``rank``, ``thread``, ``enter``, ``waiting``, ``explains`` (how much of
            the wait in question is due to it), ``cause_rank``, ``cause_thread``, ``cause_callpath``, ``cause_time``,
            ``since`` (when the two last met, on the side of the cause), ``work``: what the cause did in the meantime
            longer than the waiter (``callpath``, ``time``, ``waiter_time``, ``explains``), ``waits``: what it waited
            itself, each in this form, and ``rest``: what small parts explain together. Times are seconds.
        """
        (wait,) = self._read(np.array([row]))
        self._timeline(wait.location)
        return self._explain(wait, wait.waiting, wait.waiting, depth, frozenset())

    def _explain(self, wait: Wait, explains: float, whole: int, depth: int, seen: frozenset[int]) -> dict[str, Any]:
        node = self._node(wait, explains)
        if wait.cause is None:
            return node
        interval = self._interval(wait, wait.cause)
        node["since"] = self._seconds(interval.begin)
        delays, waits = interval.delays, interval.waits
        more, waited = sum(delay for delay, _ in delays.values()), sum(other.waiting for other in waits)
        if wait.indirect is not None:
            indirect = wait.indirect * self._resolution
        else:
            indirect = wait.waiting * waited / (more + waited) if more + waited else 0.0
        per_tick = explains / wait.waiting
        # Small differences to the intervals of the analysis may leave a part without anything to blame.
        if not more:
            node["rest"] += self._seconds((wait.waiting - indirect) * per_tick)
        if not waited:
            node["rest"] += self._seconds(indirect * per_tick)
        for callpath, (delay, own) in sorted(delays.items(), key=lambda pair: -pair[1][0]):
            share = delay / more * (wait.waiting - indirect) * per_tick
            if share < _SMALL * whole:
                node["rest"] += self._seconds(share)
                continue
            node["work"].append(
                {
                    "callpath": list(callpath),
                    "time": self._seconds(own + delay),
                    "waiter_time": self._seconds(own),
                    "explains": self._seconds(share),
                }
            )
        for other in sorted(waits, key=lambda other: -other.waiting):
            share = other.waiting / waited * indirect * per_tick
            if share < _SMALL * whole:
                node["rest"] += self._seconds(share)
            elif depth > 1 and other.row not in seen:
                node["waits"].append(self._explain(other, share, whole, depth - 1, seen | {wait.row}))
            else:
                node["waits"].append(self._node(other, share))
        return node

    def _node(self, wait: Wait, explains: float) -> dict[str, Any]:
        rank, thread = self._place(wait.location)
        cause = wait.cause
        cause_rank, cause_thread = (None, None) if cause is None else self._place(cause.location)
        path = self._result.tree.path
        return {
            "kind": wait.kind,
            "callpath": path(wait.callpath),
            "rank": rank,
            "thread": thread,
            "enter": self._seconds(wait.enter),
            "waiting": self._seconds(wait.waiting),
            "explains": self._seconds(explains),
            "cause_rank": cause_rank,
            "cause_thread": cause_thread,
            "cause_callpath": None if cause is None else path(cause.callpath),
            "cause_time": None if cause is None else self._seconds(cause.enter),
            "since": None,
            "work": [],
            "waits": [],
            "rest": 0.0,
        }

    def _place(self, location: int) -> tuple[int, int]:
        locations = self._result.places
        return int(locations.rank[location]), int(locations.thread[location])

    def _seconds(self, ticks: float) -> float:
        return ticks / self._resolution

    def _interval(self, wait: Wait, cause: Cause) -> Interval:
        """Compare what waiter and cause did since they met last."""
        is_lock = "lock_competition" in wait.kind
        # Who waits for a begin waits for what came before it; who waits for an end, for that call as well.
        begin, end = self._call(cause)
        end = end if is_lock else begin
        left, since = self._met(wait, cause.location, end)
        threads = self._place(wait.location)[0] == self._place(cause.location)[0]
        work = self._work(cause.location, since, end, threads=threads)
        own = self._work(wait.location, left, wait.enter, threads=threads)
        # Of the holder of a lock all counts, not only what is more.
        same = {callpath: 0 if is_lock else own.get(callpath, 0) for callpath in work}
        delays = {path: (time - same[path], same[path]) for path, time in work.items() if time > same[path]}
        waits = [
            other for other in self._waits(cause.location) if since <= other.enter < end and other.indirect is not None
        ]
        return Interval(since, delays, waits)

    def _call(self, cause: Cause) -> tuple[int, int]:
        """Return when the call began that was waited for, and when it ended."""
        timeline = self._timeline(cause.location)
        first, last = timeline.steps(cause.enter, self._result.tree.path(cause.callpath)[-1])
        return int(timeline.time[first]), int(timeline.time[last])

    def _met(self, wait: Wait, cause: int, end: int) -> tuple[int, int]:
        """Return when waiter and cause met last before, each by its own time: when they left that call."""
        own, others = (
            [other for other in self._waits(location) if other.leave <= limit]
            for location, limit in ((wait.location, wait.enter), (cause, end))
        )
        if self._place(wait.location)[0] == self._place(cause)[0]:
            last = self._forked(wait.location, wait.enter), self._forked(cause, end)
        else:
            last = self._timeline(wait.location).started, self._timeline(cause).started
        together = {(other.kind, other.cause): other.leave for other in others if other.kind in _MEETINGS}
        for other in own:
            if other.cause is not None and other.cause.location == cause:
                last = max(last, (other.leave, self._call(other.cause)[1]))
            elif (other.kind, other.cause) in together:
                last = max(last, (other.leave, together[other.kind, other.cause]))
        for other in others:
            if other.cause is not None and other.cause.location == wait.location:
                last = max(last, (self._call(other.cause)[1], other.leave))
        return min(last[0], wait.enter), min(last[1], end)

    def _forked(self, location: int, before: int) -> int:
        """When the team of a thread began that is at work at a time."""
        timeline = self._timeline(location)
        last = int(np.searchsorted(timeline.time, before))
        steps = [step for step in range(last) if timeline.enters[step] and timeline.names[step] in self._parallel]
        return int(timeline.time[steps[-1]]) if steps else timeline.started

    @cached_property
    def _parallel(self) -> frozenset[str]:
        rows = self._result.tree.regions.to_pylist()
        return frozenset(row["name"] for row in rows if row["role"] == "PARALLEL")

    def _work(self, location: int, begin: int, end: int, *, threads: bool) -> dict[Path, int]:
        """Return what a location did between two times, without waiting."""
        work, calls = self._timeline(location).work(begin, end)
        for wait in self._waits(location):
            if begin <= wait.enter < end and wait.indirect is not None:
                callpath = calls.get((wait.enter, self._result.tree.path(wait.callpath)[-1]))
                if callpath in work:
                    work[callpath] = max(0, work[callpath] - wait.waiting)
        return {self._in_team(path): time for path, time in work.items()} if threads else work

    def _in_team(self, path: Path) -> Path:
        """Return a call path from the parallel region on: above it, a worker has none."""
        for step in range(len(path) - 1, -1, -1):
            if path[step] in self._parallel:
                return path[step:]
        return path


class Interval(NamedTuple):
    """What a cause did since it met the waiter.

    Attributes
    ----------
    begin
        When they met.
    delays
        By call path, how much longer it was there than the waiter, and how long the waiter was.
    waits
        What it waited itself.
    """

    begin: int
    delays: dict[Path, tuple[int, int]]
    waits: list[Wait]
