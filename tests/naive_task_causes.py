"""An oracle for the causes of waits for tasks, and of waits at barriers with tasks (specification.md#tasks).

It adds to tests/naive_causes.py. Which waits there are, tests/naive_tasks.py finds; here, each moment of them is one of
the thread that the awaited task is bound to.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests import naive, naive_tasks

if TYPE_CHECKING:
    from tests.naive_causes import Analysis, Call, Event, Point
    from tests.naive_tasks import Task


def find(analysis: Analysis) -> None:
    """Add the waits for tasks, and at each moment of them, whom they wait for."""
    from tests.naive_causes import Point

    if not any(e.kind == "task_switch" for loc in analysis.trace.locations for e in loc.events):
        return
    locations = {(loc.rank, loc.thread): loc for loc in analysis.trace.locations}
    for team in naive.Trace(analysis.trace.anchor).teams:
        # Starvation is a part of another wait.
        waits = [wait for wait in naive_tasks.waits(naive_tasks.Tasks(team), team) if wait.task is not None]
        for wait in waits:
            call = analysis.call_of(wait.call)
            # Behind the wait at the barrier, if it is one, and not in the interval that begins at the Leave.
            at = call.leave.i - 0.25
            e = call.enter.loc.points[at] = Point(call.leave, sum(b - a for a, b in wait.moments), "task", at=at)
            e.moments = wait.moments
            pieces = []
            for moment in wait.moments:
                owner = owner_of(wait.task, moment[0])
                # Who waits for a task itself does not keep others waiting for it.
                own = [w for w in waits if w.task is wait.task and w.call.thread is owner and moment in w.moments]
                pieces.append((*moment, None if own else locations[owner.rank, owner.number]))
            analysis.lock_waits.append((e, "task", pieces))


def owner_of(task: Task | Any, time: int) -> Any:
    """Return the thread that a task is bound to from a time on, or before it starts, its nearest ancestor that runs."""
    if not isinstance(task, naive_tasks.Task):
        return task  # the implicit task of a thread
    if task.start <= time:
        return next((run[0] for run in task.runs if time < run[2]), task.runs[-1][0])
    ancestor = task.parent
    while isinstance(ancestor, naive_tasks.Task) and not ancestor.start <= time < ancestor.end:
        ancestor = ancestor.parent
    return owner_of(ancestor, time)


def idle(barrier: Call, latest: int) -> list[tuple[int, int]]:
    """Return when a thread runs nothing in a barrier before a time."""
    inside = [
        e for e in barrier.enter.loc.events[barrier.enter.i : barrier.leave.i + 1] if e.kind in ("enter", "leave")
    ]
    found = []
    for before, after in pairwise(inside):
        runs = before.call if before.kind == "enter" else before.call.around
        if runs is barrier and before.t < min(after.t, latest):
            found.append((before.t, min(after.t, latest)))
    return found


def arrival(leave: Event, latest: int, wait: int) -> Point:
    """Add a point to a barrier where the last thread arrives: who is last itself has run nothing there yet."""
    from tests.naive_causes import Point

    events = leave.loc.events[leave.call.enter.i + 1 :]
    at = next(e.i for e in events if e.t > latest) - 0.5
    leave.loc.points[at] = Point(leave, wait, "ompbarrier", at=at)
    return leave.loc.points[at]


def work(left: Point, e: Point, between: list[Point], until: int) -> dict[Any, int]:
    """Return the work of a thread from a point to a time in a barrier."""
    barrier = e.event.call
    times: dict[Any, int] = defaultdict(int)
    for i, path, ticks, end in e.loc.steps:
        # What the thread does in the barrier itself is its wait.
        if left.at <= i and not (i > barrier.enter.i and path == barrier.path):
            times[path] += max(0, min(end, until) - (end - ticks))
    for p in between:
        times[p.path] -= p.waits_within(0, until)
    return {c: t for c, t in times.items() if t > 0}
