"""Random programs with tasks, POSIX threads, and messages, written in the trace language of tests/tracedsl.py.

The main thread of a process creates threads, runs a team with tasks as those of tests/task_programs.py, and joins the
threads. All of them lock mutexes, wait for condition variables, with and without a time limit, and give signals. The
created threads also meet at barriers. Who would wait forever wakes up without a signal, as POSIX allows. Without
forks, there are no teams, and so no tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.task_programs import CRITICAL, WORK, Run, Task, bodies, team_of

LOCK = st.integers(0, 1)
MUTEX = st.tuples(st.just("mutex"), LOCK, st.integers(1, 20), st.booleans())
WAIT = st.tuples(st.just("wait"), LOCK, st.one_of(st.none(), st.integers(1, 60)))
SIGNAL = st.tuples(st.just("signal"), LOCK, st.sampled_from(("inside", "behind", "without")), st.booleans())
LEAF = st.one_of(WORK, CRITICAL, MUTEX, WAIT, SIGNAL)
TASK_BODY = bodies(LEAF)


@dataclass
class Sleep:
    """A thread in a call that waits for a condition variable."""

    lock: int
    begin: int
    released: int  # order of the release
    limit: int | None  # when it wakes up by itself


class Process(Run):
    """A process while it runs: the threads of the team come first, then those that were created."""

    def __init__(
        self, team: list[list[Any]], created: list[list[Any]], rank: int, sent: dict[int, int], *, forks: bool = True
    ) -> None:
        super().__init__(team, rank, sent, begin=4 * len(created))
        self.forks = forks
        self.asleep: dict[int, Sleep] = {}
        self.at_barrier: list[tuple[int, int]] = []
        self.created = range(len(team), len(team) + len(created))
        self.ends: dict[int, int] = {}
        self.used.update(*(range(4 * number, 4 * number + 3) for number in range(len(created))))
        for number, body in enumerate(created):
            self.note(0, f"pthread_create({self.created[number]})", 4 * number, 4 * number + 2)
            self.begins.append(self.time(4 * number + 1))
            self.now.append(self.time(self.begins[-1] + 1))
            self.stacks.append([Task(list(body))])
            self.blocked.append(False)

    def run(self) -> list[str]:
        is_over = False
        while not is_over or len(self.ends) < len(self.created):
            if not is_over and self.all_have_come:
                is_over = self.end_barrier()
            threads = [t for t in range(len(self.now)) if not self.blocked[t] and t not in self.ends]
            threads = [t for t in threads if t in self.created or not is_over]
            at = {t: self.asleep[t].limit if t in self.asleep else self.now[t] for t in threads}
            ready = [t for t in threads if at[t] is not None]
            if ready:
                self.step(min(ready, key=lambda t: at[t] or 0))
            elif self.asleep:
                self.awake(min(self.asleep), max(self.now) + 1)
        for thread in self.created:
            begin = self.now[0]
            self.now[0] = self.time(max(begin, self.ends[thread]) + 1)
            self.note(0, f"pthread_join({thread})", begin, self.now[0])
            self.now[0] = self.time(self.now[0] + 1)
        return self.lines

    def end_team(self) -> None:
        if self.forks:
            super().end_team()

    def step(self, thread: int) -> None:
        if thread in self.asleep:
            self.awake(thread, self.asleep[thread].limit or 0)
            return
        (task, *_) = stack = self.stacks[thread]
        if thread not in self.created or len(stack) > 1:
            super().step(thread)
        elif task.body:
            self.act(thread, task, task.body.pop(0))
        else:
            self.ends[thread] = self.now[thread]
            self.note(thread, "worker", self.begins[thread], self.now[thread])

    def act(self, thread: int, task: Task, action: Any) -> None:
        match action:
            case ("mutex", lock, ticks, is_nested):
                self.lock(thread, lock)
                self.now[thread] = self.time(self.now[thread] + ticks)
                if is_nested and lock == 0:
                    self.act(thread, task, ("mutex", 1, ticks, False))
                self.unlock(thread, lock)
            case ("wait", lock, limit):
                self.lock(thread, lock)
                begin = self.time(self.now[thread] + 1)
                self.free[2 + lock] = begin
                self.asleep[thread] = Sleep(lock, begin, self.acquired[2 + lock], limit and begin + limit)
                self.now[thread] = begin
            case ("signal", lock, where, is_broadcast):
                if where != "without":
                    self.lock(thread, lock)
                if where == "behind":
                    self.unlock(thread, lock)
                self.signal(thread, lock, is_broadcast, held=where == "inside")
            case ("barrier",):
                self.at_barrier.append((thread, self.now[thread]))
                self.blocked[thread] = True
                if len(self.at_barrier) == len(self.created):
                    self.end_round()
            case _:
                super().act(thread, task, action)

    def wake(self, time: int) -> None:
        """Let only those look again that wait for tasks."""
        at_barrier = [thread for thread, _ in self.at_barrier]
        super().wake(time)
        for thread in at_barrier:
            self.blocked[thread] = True

    def acquire(self, lock: int, at: int) -> tuple[int, int]:
        """Return when a mutex is free for a thread that wants it, and the order of the acquisition."""
        self.acquired[2 + lock] = order = self.acquired.get(2 + lock, 0) + 1
        return self.time(max(at, self.free.get(2 + lock, 0)) + 1), order

    def lock(self, thread: int, lock: int) -> None:
        now = self.now[thread]
        acquired, order = self.acquire(lock, now)
        self.note(thread, f"pthread_mutex_lock(lock={lock}, order={order})", now, acquired)
        self.now[thread] = self.time(acquired + 1)

    def unlock(self, thread: int, lock: int) -> None:
        release = self.free[2 + lock] = self.now[thread]
        leave = self.time(release + 1)
        self.note(thread, f"pthread_mutex_unlock(lock={lock}, order={self.acquired[2 + lock]})", release, leave)
        self.now[thread] = self.time(leave + 1)

    def signal(self, thread: int, lock: int, is_broadcast: bool, held: bool) -> None:
        now = self.now[thread]
        leave = self.time(now + 1)
        self.note(thread, f"pthread_cond_{'broadcast' if is_broadcast else 'signal'}", now, leave)
        self.now[thread] = self.time(leave + 1)
        if held:
            self.unlock(thread, lock)
        # Threads that wake up by themselves before are not woken.
        asleep = [(t, s) for t, s in self.asleep.items() if s.lock == lock and s.begin < now]
        woken = [thread for thread, sleep in asleep if sleep.limit is None or sleep.limit > now]
        for waiter in woken if is_broadcast else woken[:1]:
            self.awake(waiter, now)

    def awake(self, thread: int, time: int) -> None:
        """Let a thread wake up, and return with the mutex, which it releases at once."""
        sleep = self.asleep.pop(thread)
        acquired, order = self.acquire(sleep.lock, time)
        call = f"pthread_cond_{'wait' if sleep.limit is None else 'timedwait'}"
        call += f"(lock={sleep.lock}, released={sleep.released}, order={order})"
        self.note(thread, call, sleep.begin, acquired)
        self.now[thread] = self.time(acquired + 1)
        self.unlock(thread, sleep.lock)

    def end_round(self) -> None:
        end = max(self.now[thread] for thread, _ in self.at_barrier) + 1
        for thread, begin in self.at_barrier:
            leave = self.time(end)
            self.note(thread, "pthread_barrier_wait", begin, leave)
            self.now[thread] = self.time(leave + 1)
            self.blocked[thread] = False
        self.at_barrier = []


@st.composite
def thread_programs(draw, most_ranks: int = 2, *, forks: bool = True) -> str:
    ranks, messages = draw(st.integers(1, most_ranks)), draw(st.integers(0, 2))
    members, created, rounds = draw(st.integers(1, 2)) if forks else 1, draw(st.integers(1, 2)), draw(st.integers(0, 2))
    sent: dict[int, int] = {}
    lines = [f"ranks {ranks}", f"threads {members + created}"]
    for rank, call in zip(range(ranks), ("send", "receive"), strict=False):
        if forks:
            master, *others = team_of(draw, TASK_BODY, st.lists(LEAF, max_size=3), members)
        else:
            master, others = list(draw(st.lists(LEAF, max_size=5))), []
        for tag in range(messages if ranks > 1 else 0):
            at = [i for i, action in enumerate(master) if action[0] == call]
            master.insert(draw(st.integers(at[-1] + 1 if at else 0, len(master))), (call, tag))
        threads = [list(draw(st.lists(LEAF, max_size=5))) for _ in range(created)]
        for body in threads:
            for _ in range(rounds):
                body.insert(draw(st.integers(0, len(body))), ("barrier",))
        lines += Process([master, *others], threads, rank, sent, forks=forks).run()
    return "\n".join(lines)
