"""An oracle for tasks: what each thread does at each moment, by the sentences of specification.md#tasks.

All stretches between two events of a team are looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from otf2 import events as ev
from otf2.enums import RegionRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.naive import Instance, Result, Team, Trace

SCHEDULING = (RegionRole.BARRIER, RegionRole.IMPLICIT_BARRIER, RegionRole.TASK_WAIT)
GROUP = RegionRole.FUNCTION  # of the construct, by its name
NAMES = {
    GROUP: ("omp_taskgroup_wait", ""),
    RegionRole.BARRIER: ("omp_ebarrier_task_wait", "omp_ebarrier_starvation"),
    RegionRole.IMPLICIT_BARRIER: ("omp_ibarrier_task_wait", "omp_ibarrier_starvation"),
    RegionRole.TASK_WAIT: ("omp_taskwait_wait", ""),
}


@dataclass(eq=False)
class Task:
    """A task, from its creation to its completion."""

    created: int = -1
    create: Instance | None = None
    creator: Any = None  # the thread
    parent: Any = None  # a task, or the thread whose implicit task created it
    runs: list[list[Any]] = field(default_factory=list)  # thread, begin, end, instance

    @property
    def start(self) -> int:
        return self.runs[0][1]

    @property
    def end(self) -> int:
        return self.runs[-1][2]


class Tasks:
    """The tasks of a team."""

    def __init__(self, team: Team) -> None:
        self.threads = [member[0].thread for member in team.members]
        self.spans = {member[0].thread.ref: (member[0].enter, member[0].leave) for member in team.members}
        found: dict[Any, Task] = {}
        for member in team.members:
            self._read(member[0].thread, found)
        self.tasks = [task for task in found.values() if task.runs]
        for task in self.tasks:
            task.runs.sort(key=lambda run: run[1])
        self.calls = [
            (i, self._task_at(i.thread, i.enter))
            for member in team.members
            for i in member
            if i.is_openmp(*SCHEDULING) or is_group(i)
        ]
        self.blocks = {id(i): self._end_of_block(i, around) for i, around in self.calls if is_group(i)}
        times = set(self.blocks.values())
        times |= {t for task in self.tasks for run in task.runs for t in (run[1], run[2])}
        times |= {t for i, _ in self.calls for t in (i.enter, i.leave)} | {task.created for task in self.tasks}
        self.moments = list(pairwise(sorted(times)))

    def _read(self, thread: Any, found: dict[Any, Task]) -> None:
        begin, end = self.spans[thread.ref]
        running: Task | None = None
        inner = 0  # teams that tasks have begun
        for event, around in thread.records:
            if not begin <= event.time <= end:
                continue
            if isinstance(event, ev.ThreadTeamBegin | ev.ThreadTeamEnd) and begin < event.time < end:
                inner += 1 if isinstance(event, ev.ThreadTeamBegin) else -1
            if inner:
                continue
            if isinstance(event, ev.ThreadTaskCreate | ev.ThreadTaskSwitch | ev.ThreadTaskComplete):
                task = found.setdefault((event.creating_thread, event.generation_number), Task())
            if isinstance(event, ev.ThreadTaskCreate):
                task.created, task.create, task.creator = event.time, around, thread
                task.parent = running or thread
            elif isinstance(event, ev.ThreadTaskSwitch | ev.ThreadTaskComplete):
                if running is not None:
                    running.runs[-1][2] = event.time
                running = None
                if isinstance(event, ev.ThreadTaskSwitch) and event.generation_number != 0:
                    running = task
                    task.runs.append([thread, event.time, -1, None])
            elif isinstance(event, ev.Enter) and running is not None and running.runs[-1][3] is None:
                first = next((run[3] for run in running.runs if run[3] is not None), None)
                running.runs[-1][3] = first or around

    def _end_of_block(self, group: Instance, around: Task | None) -> int:
        """Return the time of the last event in a group that is of its own task."""
        others = [run for task in self.tasks if task is not around for run in task.runs if run[0] is group.thread]
        events = [
            time for i in group.thread.instances for time in (i.enter, i.leave) if group.enter < time < group.leave
        ]
        own = [time for time in events if not any(run[1] <= time <= run[2] for run in others)]
        return max(own, default=group.enter)

    def _task_at(self, thread: Any, time: int) -> Task | None:
        """Return the task that runs on a thread just after a time, if it began before."""
        return next((t for t in self.tasks for run in t.runs if run[0] is thread and run[1] < time < run[2]), None)

    def is_idle(self, call: Instance, around: Task | None, time: float) -> bool:
        """Whether a thread runs no other task at a moment of a call, which is the innermost one then."""
        runs = (run for task in self.tasks if task is not around for run in task.runs)
        if any(run[0] is call.thread and run[1] < time < run[2] for run in runs):
            return False
        if time < self.blocks.get(id(call), 0):
            return False
        open_then = [i for i, _ in self.calls if i.thread is call.thread and i.enter < time < i.leave]
        return call is max(open_then, key=lambda i: (i.enter, -i.leave), default=None)

    def ready(self, task: Task) -> int:
        """Return from when on a task could run."""
        found = task.created
        for other in self.tasks:
            if other.parent is not task.parent or other is task or not task.created < other.end <= task.start:
                continue
            before = max((a + b) / 2 for a, b in self.moments if b <= other.end)
            if any(self.is_idle(call, around, before) for call, around in self.calls):
                found = max(found, other.end)
        return found


def book(trace: Trace, result: Result) -> None:
    """Add the waits for tasks, starvation, and the numbers of tasks."""
    for team in trace.teams:
        tasks = Tasks(team)
        if tasks.tasks:
            for wait in waits(tasks, team):
                result.wait(wait.metric, wait.call, sum(b - a for a, b in wait.moments), wait.cause)
            for task in tasks.tasks:
                count(task, result)


def count(task: Task, result: Result) -> None:
    first = task.runs[0]
    result.add("omp_tasks", first[3], 1)
    result.add("omp_tasks_elsewhere", first[3], int(first[0] is not task.creator))
    for before, after in pairwise(task.runs):
        if before[0] is not after[0]:
            result.add("omp_task_migrations", after[3], 1)


class Wait(NamedTuple):
    """A wait for a task, or starvation."""

    metric: str
    call: Instance
    moments: list[tuple[int, int]]
    cause: Instance
    task: Task | None = None


def waits(tasks: Tasks, team: Team) -> Iterator[Wait]:
    ready = {id(task): tasks.ready(task) for task in tasks.tasks}
    turns: dict[Any, int] = {}
    for call, around in tasks.calls:
        role = call.region.region_role
        begin = call.enter
        if is_group(call):
            parent = around or call.thread
            inside = [t for t in tasks.tasks if t.parent is parent and call.enter <= t.created <= call.leave]
            eligible = [t for t in tasks.tasks if any(descends(t, root) for root in inside)]
            awaited = eligible
            begin = tasks.blocks[id(call)]
        elif role == RegionRole.TASK_WAIT:
            parent = around or call.thread
            eligible = [t for t in tasks.tasks if t.parent is parent and t.created <= call.enter]
            awaited = [t for t in eligible if t.end > call.enter]
        else:
            k = turns[call.thread.ref, role] = turns.get((call.thread.ref, role), -1) + 1
            barriers = [[i for i in member if i.is_openmp(role)] for member in team.members]
            turn = [of_thread[k] for of_thread in barriers]
            latest = max(turn, key=lambda i: (i.enter, -i.thread.number))
            eligible = tasks.tasks
            awaited = [t for t in eligible if t.end <= min(i.leave for i in turn)]
            begin = max(begin, latest.enter)
            starved = starvation(tasks, (call, around), latest, ready)
            if starved and latest is not call:
                yield Wait(NAMES[role][1], call, starved, latest)
        if not awaited:
            continue
        last = max(awaited, key=lambda t: t.end)
        moments = [
            (a, b)
            for a, b in tasks.moments
            if begin <= a and b <= min(last.end, call.leave)
            if tasks.is_idle(call, around, (a + b) / 2)
            if not any(ready[id(t)] <= a < t.start for t in eligible)
        ]
        if moments:
            yield Wait(NAMES[role][0], call, moments, last.runs[-1][3], last)


def is_group(call: Instance) -> bool:
    return call.is_openmp(GROUP) and call.name.startswith("!$omp taskgroup")


def descends(task: Any, root: Task) -> bool:
    """Return whether a task is another one, or one that it or its descendants created."""
    while isinstance(task, Task):
        if task is root:
            return True
        task = task.parent
    return False


def starvation(
    tasks: Tasks, call: tuple[Instance, Task | None], latest: Instance, ready: dict[int, int]
) -> list[tuple[int, int]]:
    created = [t.created for t in tasks.tasks if t.creator is latest.thread and t.created < latest.enter]
    return [
        (a, b)
        for a, b in tasks.moments
        if b <= max(created, default=-1)
        if tasks.is_idle(*call, (a + b) / 2)
        if not any(ready[id(t)] <= a < t.start for t in tasks.tasks)
    ]
