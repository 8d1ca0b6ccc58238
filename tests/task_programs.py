"""Random programs with tasks, simulated and written in the trace language of tests/tracedsl.py.

One thread of a team creates tasks, which may create others and wait for them; all threads run them in barriers, of
which a team has up to three, and in taskwait constructs. Mixed programs are two processes with such teams, whose tasks
have critical sections; the master thread of one sends messages to that of the other. Times are whole milliseconds, and
no two events of a process have the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

WORK = st.tuples(st.just("work"), st.integers(1, 40))
CRITICAL = st.tuples(st.just("critical"), st.integers(0, 1), st.integers(1, 30))


def bodies(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return bodies of tasks that do such things, and create and wait for others."""
    return st.recursive(
        st.lists(leaf, min_size=1, max_size=2),
        lambda inner: st.lists(
            st.one_of(
                leaf,
                st.tuples(st.just("create"), inner),
                st.just(("taskwait",)),
                st.tuples(st.just("taskgroup"), inner),
            ),
            min_size=1,
            max_size=4,
        ),
        max_leaves=6,
    )


# A barrier of all threads of the team.
ALL = ("all",)

BODY, MIXED_BODY = bodies(WORK), bodies(st.one_of(WORK, CRITICAL))


@dataclass(eq=False)
class Group:
    """A task group, and the one around it."""

    around: Group | None
    begin: int
    open: int = 0  # number of its tasks that are not complete
    waits: bool = False

    def __contains__(self, task: Task) -> bool:
        group = task.group
        while group is not None and group is not self:
            group = group.around
        return group is self


@dataclass(eq=False)
class Task:
    """A task, or the implicit task of a thread."""

    body: list[Any]
    number: int = 0
    parent: Task | None = None
    begin: int = 0
    children: list[Task] = field(default_factory=list)
    is_complete: bool = False
    waits_since: int | None = None  # in a taskwait construct
    group: Group | None = None  # in which it was created
    groups: list[Group] = field(default_factory=list)  # in which it is

    @property
    def innermost(self) -> Group | None:
        """The group that its next tasks are part of."""
        return self.groups[-1] if self.groups else self.group

    @property
    def ends_group(self) -> bool:
        return bool(self.groups) and self.groups[-1].waits


class Run:
    """A team while it runs: each thread has a stack of tasks, the innermost of which runs."""

    def __init__(
        self, bodies: list[list[Any]], rank: int = 0, sent: dict[int, int] | None = None, begin: int = 0
    ) -> None:
        self.rank, self.fork = rank, begin
        # When each message to the other process is sent, by tag.
        self.sent = {} if sent is None else sent
        # When each lock is free, and how often it has been acquired.
        self.free: dict[int, int] = {}
        self.acquired: dict[int, int] = {}
        self.lines: list[str] = []
        self.used: set[int] = set()
        self.tasks = 0
        self.ready: list[Task] = []
        self.open: list[Task] = []
        self.now = [self.time(begin + 1 + thread) for thread in range(len(bodies))]
        self.begins = list(self.now)
        self.stacks = [[Task(list(body))] for body in bodies]
        self.arrived: list[int | None] = [None] * len(bodies)
        self.blocked = [False] * len(bodies)
        self.barriers = bodies[0].count(ALL)  # besides the one at the end

    def time(self, at: int) -> int:
        while at in self.used:
            at += 1
        self.used.add(at)
        return at

    def note(self, thread: int, what: str, begin: int, end: int) -> None:
        who = f"{self.rank}.{thread}" if thread else f"{self.rank}"
        self.lines.append(f"{who}: {what} [{begin / 1000:.3f}, {end / 1000:.3f}]")

    def wake(self, time: int) -> None:
        """Let threads without a task look again."""
        for thread, is_blocked in enumerate(self.blocked):
            if is_blocked:
                self.blocked[thread] = False
                self.now[thread] = self.time(time + 1)

    def run(self) -> list[str]:
        """Run until all is done; return what happened."""
        while not (self.all_have_come and self.end_barrier()):
            thread = min((t for t in range(len(self.now)) if not self.blocked[t]), key=lambda t: self.now[t])
            self.step(thread)
        return self.lines

    @property
    def all_have_come(self) -> bool:
        return all(when is not None for when in self.arrived) and not self.open

    def end_barrier(self) -> bool:
        """End the barrier in which all threads are; return whether it was the last one of the team."""
        if self.barriers == 0:
            self.end_team()
            return True
        self.barriers -= 1
        end = max(self.now[: len(self.arrived)]) + 1
        for thread, begin in enumerate(self.arrived):
            leave = self.time(end)
            self.note(thread, f"!$omp barrier @a:8{self.barriers}", begin or 0, leave)
            self.now[thread] = self.time(leave + 1)
            self.arrived[thread], self.blocked[thread] = None, False
        return False

    def end_team(self) -> None:
        """Let the last one that ran a task, or arrived, end the barrier."""
        end = max(self.now[: len(self.arrived)]) + 1
        for thread, begin in enumerate(self.arrived):
            leave = self.time(end)
            self.note(thread, "!$omp implicit barrier @a:7", begin or 0, leave)
            self.note(thread, "!$omp parallel @a:1", self.begins[thread], self.time(leave + 1))
            self.now[thread] = self.time(leave + 2)
        join = max(self.now[: len(self.arrived)])
        self.note(0, "fork", self.fork, join)
        self.now[0] = self.time(join + 1)

    def step(self, thread: int) -> None:
        stack = self.stacks[thread]
        task = stack[-1]
        now = self.now[thread]
        if task.waits_since is not None or task.ends_group or (len(stack) == 1 and self.arrived[thread] is not None):
            self.schedule(thread, task)
        elif task.body and task.body[0] != ALL:
            self.act(thread, task, task.body.pop(0))
        elif len(stack) > 1:
            stack.pop()
            task.is_complete = True
            self.open.remove(task)
            group = task.group
            while group is not None:
                group.open -= 1
                group = group.around
            self.note(thread, f"!$omp task @a:5(task={task.number})", task.begin, now)
            self.now[thread] = self.time(now + 1)
            self.wake(now)
        else:
            task.body[:1] = []
            self.arrived[thread] = self.now[thread]
            self.now[thread] = self.time(now + 1)

    def act(self, thread: int, task: Task, action: Any) -> None:
        now = self.now[thread]
        if action[0] == "work":
            self.now[thread] = self.time(now + action[1])
        elif action[0] == "create":
            self.tasks += 1
            new = Task(list(action[1]), self.tasks, task, group=task.innermost)
            group = new.group
            while group is not None:
                group.open += 1
                group = group.around
            task.children.append(new)
            self.open.append(new)
            self.ready.append(new)
            self.now[thread] = self.time(now + 2)
            self.note(thread, f"!$omp create task @a:5(task={new.number})", now, self.now[thread])
            self.wake(now)
            self.now[thread] = self.time(self.now[thread] + 1)
        elif action[0] == "taskgroup":
            task.groups.append(Group(task.innermost, now))
            task.body[:0] = [*action[1], ("end",)]
            self.now[thread] = self.time(now + 1)
        elif action[0] == "critical":
            self.critical(thread, *action[1:])
        elif action[0] == "send":
            self.sent[action[1]] = now
            self.now[thread] = self.time(now + 2)
            self.note(thread, f"MPI_Send(1, tag={action[1]})", now, self.now[thread])
            self.now[thread] = self.time(self.now[thread] + 1)
        elif action[0] == "receive":
            self.now[thread] = self.time(max(now, self.sent[action[1]]) + 2)
            self.note(thread, f"MPI_Recv(0, tag={action[1]})", now, self.now[thread])
            self.now[thread] = self.time(self.now[thread] + 1)
        elif action[0] == "end":
            task.groups[-1].waits = True
            self.now[thread] = self.time(now + 1)
        else:
            task.waits_since = now
            self.now[thread] = self.time(now + 1)

    def critical(self, thread: int, lock: int, ticks: int) -> None:
        """Wait for a lock, and keep it for some time."""
        now = self.now[thread]
        acquire = self.time(max(now, self.free.get(lock, 0)) + 1)
        release = self.free[lock] = self.time(acquire + ticks)
        leave = self.time(release + 1)
        self.acquired[lock] = order = self.acquired.get(lock, 0) + 1
        call = f"!$omp critical @a:{lock}(lock={lock}, order={order})"
        self.note(thread, call, now, leave)
        self.lines[-1] += f" @{acquire / 1000:.3f}, {release / 1000:.3f}"
        self.now[thread] = self.time(leave + 1)

    def schedule(self, thread: int, task: Task) -> None:
        """Run a ready task, end a taskwait construct, or wait for something to happen."""
        now = self.now[thread]
        group = task.groups[-1] if task.ends_group else None
        is_barrier = task.waits_since is None and group is None
        candidates = [new for new in self.ready if is_barrier or (new in group if group else new.parent is task)]
        if candidates:
            new = candidates[0]
            self.ready.remove(new)
            new.begin = now
            self.stacks[thread].append(new)
            self.now[thread] = self.time(now + 1)
        elif group is not None and group.open == 0:
            task.groups.pop()
            self.note(thread, "!$omp taskgroup @a:4", group.begin, now)
            self.now[thread] = self.time(now + 1)
        elif group is None and not is_barrier and all(child.is_complete for child in task.children):
            self.note(thread, "!$omp taskwait @a:6", task.waits_since, now)
            task.waits_since = None
            self.now[thread] = self.time(now + 1)
        else:
            self.blocked[thread] = True


def team_of(draw, master: st.SearchStrategy[Any], others: st.SearchStrategy[Any], threads: int) -> list[list[Any]]:
    """Return what the threads of a team do, which is divided by barriers."""
    bodies = [list(draw(master)), *(list(draw(others)) for _ in range(threads - 1))]
    for _ in range(draw(st.integers(0, 2))):
        for body in bodies:
            body.insert(draw(st.integers(0, len(body))), ALL)
    return bodies


@st.composite
def task_programs(draw) -> str:
    others = st.lists(st.tuples(st.just("work"), st.integers(1, 60)), max_size=2)
    bodies = team_of(draw, BODY, others, draw(st.integers(2, 3)))
    return "\n".join([f"threads {len(bodies)}", *Run(bodies).run()])


@st.composite
def mixed_programs(draw) -> str:
    threads = draw(st.integers(2, 3))
    others = st.lists(st.one_of(WORK, CRITICAL), max_size=2)
    messages = draw(st.integers(0, 3))
    sent: dict[int, int] = {}
    lines = ["ranks 2", f"threads {threads}"]
    for rank, call in enumerate(("send", "receive")):
        # Messages go one way, so that nothing waits in a circle.
        master, *workers = team_of(draw, MIXED_BODY, others, threads)
        for tag in range(messages):
            at = [i for i, action in enumerate(master) if action[0] == call]
            master.insert(draw(st.integers(at[-1] + 1 if at else 0, len(master))), (call, tag))
        lines += Run([master, *workers], rank, sent).run()
    return "\n".join(lines)
