"""An oracle for the causes of waits of POSIX threads: creation, joins, condition variables, and barriers.

It adds points and waits to tests/naive_causes.py, as specification.md#posix-threads and #costs-of-thread-teams say. Who
waits for what, tests/naive_posix.py finds. Threads of a process synchronize as `("thread", number)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests import naive, naive_posix, naive_threads

if TYPE_CHECKING:
    from tests.naive_causes import Analysis, Event, Location, Point


def find(analysis: Analysis) -> None:
    """Add what the threads of all processes wait for."""
    events = [e for loc in analysis.trace.locations for e in loc.events]
    names = {e.call.name for e in events if e.kind == "enter"}
    if not any(name.startswith("pthread_") for name in names):
        return
    trace = naive.Trace(analysis.trace.anchor)
    threads = {(loc.rank, loc.thread): loc for loc in analysis.trace.locations}
    for rank in {rank for rank, _ in threads}:
        lives(analysis, [loc for (other, _), loc in threads.items() if other == rank])
    for instances in trace.processes.values():
        barriers(analysis, [i for t in instances for i in t.instances if i.name == "pthread_barrier_wait"])
    waits = [wait for owners in naive.ownerships(trace) for wait in naive_posix.condition_waits(owners)]
    for instances in trace.processes.values():
        of_process = [wait for wait in waits if wait.call.thread.process == instances[0].process]
        naive_posix.give_signals(instances, of_process)
        of_rank = {number: loc for (rank, number), loc in threads.items() if rank == instances[0].rank}
        for wait in of_process:
            condition(analysis, wait, of_rank)


def thread(loc: Location) -> tuple[str, int]:
    """Return whom others synchronize with."""
    return "thread", loc.thread


def point(event: Event, cls: str, at: float, total: int) -> Point:
    """Return the point of a location at a position, which is new or has other roles as well."""
    from tests.naive_causes import Point

    points = event.loc.points
    if at not in points:
        points[at] = Point(event, 0, cls, total=total, at=at)
    return points[at]


def lives(analysis: Analysis, threads: list[Location]) -> None:
    """Threads synchronize with the one that creates them, and with the one that joins them."""
    records: dict[Any, dict[str, Event]] = {}
    for loc in threads:
        for e in loc.events:
            if e.kind.startswith("thread_"):
                records.setdefault(e.life, {}).setdefault(e.kind, e)
    for life in records.values():
        begin, end = life.get("thread_begin"), life.get("thread_end")
        create, wait = life.get("thread_create"), life.get("thread_wait")
        if create and begin:
            first = next(e for e in begin.loc.events[begin.i :] if e.kind == "enter")
            creator = point(create.call.enter, "creation", create.call.enter.i + 0.5, create.call.L - create.call.E)
            own = point(first, "creation", first.i - 0.5, 0)
            creator.partners[thread(begin.loc)] = create.call.L - create.t
            own.partners[thread(create.loc)] = 0
            own.cause, begin.loc.created = creator, (first.i - 0.75, creator)
        if end and wait:
            call, last = wait.call, next(e for e in reversed(end.loc.events[: end.i]) if e.kind == "leave")
            waiting = min(end.t, call.L) - call.E
            if waiting > 0:
                waiter = analysis.point(call.leave, waiting, call.L - call.E - waiting, [thread(end.loc)], "join")
                cause = point(last, "join", last.i + 0.5, 0)
                cause.partners[thread(wait.loc)] = 0
                add(analysis, "join", cause, (waiter, waiting), thread(wait.loc))


def add(analysis: Analysis, cls: str, cause: Point, wait: tuple[Point, int], key: Any) -> None:
    from tests.naive_causes import Instance

    instance = Instance(cls, cause, [wait])
    # Whom each side synchronizes with.
    instance.keys = thread(cause.loc), key
    analysis.instances.append(instance)


def barriers(analysis: Analysis, calls: list[naive.Instance]) -> None:
    while calls:
        first = min(i.leave for i in calls)
        together = [i for i in calls if i.enter <= first]
        latest = max(together, key=lambda i: (i.enter, -i.thread.number))
        everybody = [("thread", i.thread.number) for i in together]
        points = {}
        for i in together:
            last = min(latest.enter, i.leave)
            leave = analysis.call_of(i).leave
            points[i] = analysis.point(leave, last - i.enter, i.leave - last, everybody, "pthreadbarrier")
        for i in together:
            if points[i].wait > 0:
                add(analysis, "pthreadbarrier", points[latest], (points[i], points[i].wait), thread(points[i].loc))
        calls = [i for i in calls if i not in together]


def condition(analysis: Analysis, wait: Any, threads: dict[int, Location]) -> None:
    """Add a wait for a condition variable: for the signal to begin, and for the owner of the mutex to end."""
    call, contended = analysis.call_of(wait.call), wait.contended
    free = contended.end if contended else call.E
    if wait.signal is not None:
        awake = min(max(wait.signal.enter, call.E), call.L)
        until = awake
    elif "timed" in call.name:
        awake, until = max(call.E, contended.cause.begin) if contended else call.E, free
    else:
        awake = until = call.L
    awake = min(awake, free)
    held = max(free, until)
    if held <= call.E:
        return
    e = point(call.leave, "signal", call.leave.i, call.L - call.E)
    e.wait = e.held = held - call.E
    for begin, end in ((call.E, awake), (free, until)):
        if end <= begin:
            continue
        e.parts.append(("signal", end - begin))
        if wait.signal is None:
            analysis.lock_waits.append((e, "signal", [(begin, end, None)]))
            continue
        signal = analysis.call_of(wait.signal)
        cause = point(signal.enter, "signal", signal.enter.i + 0.5, signal.L - signal.E)
        cause.partners[thread(e.loc)] = signal.L - signal.E
        e.partners[thread(cause.loc)] = max(0, call.L - signal.E)
        e.last = cause
        add(analysis, "signal", cause, (e, end - begin), thread(e.loc))
    if free > awake:
        e.parts.append(("threadlock", free - awake))
        owned = naive_threads.pieces(wait.owners, awake, free)
        pieces = [(a, b, own and threads[own.thread]) for a, b, own in owned]
        analysis.lock_waits.append((e, "threadlock", pieces))
        if until <= free:
            e.last = e.cause = analysis.released(threads[contended.cause.thread], contended.cause.release)
