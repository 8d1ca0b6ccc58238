"""Traces of Paraver by what happens in them: calls at their times, messages between calls, records in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Type, value and state of calls.
CALLS = {
    "Send": (50000001, 1, 4),
    "Recv": (50000001, 2, 3),
    "Isend": (50000001, 3, 10),
    "Irecv": (50000001, 4, 11),
    "Wait": (50000001, 5, 8),
    "Waitall": (50000001, 6, 8),
    "Sendrecv": (50000001, 41, 16),
    "Ssend": (50000001, 34, 4),
    "Issend": (50000001, 37, 10),
    "Waitany": (50000001, 59, 8),
    "Waitsome": (50000001, 60, 8),
    "Bcast": (50000002, 7, 13),
    "Barrier": (50000002, 8, 13),
    "Reduce": (50000002, 9, 13),
    "Allreduce": (50000002, 10, 13),
    "Alltoallv": (50000002, 12, 13),
    "Gather": (50000002, 13, 13),
    "Scatterv": (50000002, 16, 13),
    "Scan": (50000002, 30, 13),
    "Iallreduce": (50000002, 155, 13),
    "Finalize": (50000003, 32, 15),
    "Test": (50000003, 39, 8),
    "Start": (50000003, 123, 10),
    "Put": (50000004, 65, 20),
}
# Numbers of calls of POSIX threads.
PTHREADS = {
    "exit": 1,
    "create": 2,
    "join": 3,
    "rwlock_wrlock": 5,
    "rwlock_rdlock": 6,
    "rwlock_unlock": 7,
    "mutex_lock": 8,
    "mutex_unlock": 9,
    "cond_signal": 10,
    "cond_broadcast": 11,
    "cond_wait": 12,
    "barrier_wait": 13,
}


@dataclass(frozen=True)
class Call:
    """A call of a thread: application, task and thread, from 1."""

    thread: tuple[int, int, int]
    name: str
    begin: int
    end: int


@dataclass
class Trace:
    """A trace: `tasks` are, for each application, the threads of each task with its node."""

    end: int
    tasks: tuple[tuple[tuple[int, int], ...], ...]
    comms: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    unit: str = "_ns"
    records: list[tuple[int, int, str]] = field(default_factory=list)

    def place(self, thread: tuple[int, int, int]) -> str:
        """Return how records name a thread."""
        all_threads = [
            (application, task, number)
            for application, tasks in enumerate(self.tasks, 1)
            for task, (count, _) in enumerate(tasks, 1)
            for number in range(1, count + 1)
        ]
        return ":".join(map(str, (all_threads.index(thread) + 1, *thread)))

    def events(self, thread: tuple[int, int, int], time: int, *pairs: tuple[int, int]) -> None:
        """Add events of one instant; those of value 0 come first."""
        order = 2 if pairs[0][1] else 1
        text = ":".join(f"{kind}:{value}" for kind, value in pairs)
        self.records.append((time, order, f"2:{self.place(thread)}:{time}:{text}"))

    def state(self, thread: tuple[int, int, int], begin: int, end: int, state: int) -> None:
        """Add what a thread is doing."""
        self.records.append((begin, 0, f"1:{self.place(thread)}:{begin}:{end}:{state}"))

    def call(self, thread: tuple[int, int, int], name: str, begin: int, end: int, *pairs: tuple[int, int]) -> Call:
        """Add a call, with what is recorded at its begin."""
        kind, value, state = CALLS[name]
        self.state(thread, begin, end, state)
        self.events(thread, begin, (kind, value), *pairs)
        self.events(thread, end, (kind, 0))
        return Call(thread, name, begin, end)

    def pthread(self, thread: tuple[int, int, int], name: str, begin: int, end: int, address: int = 0) -> None:
        """Add a call of POSIX threads: in the older form, a type of its own, if it has an address."""
        number = PTHREADS[name]
        kind, value = (61000000 + number, address) if address else (61000000, number)
        self.state(thread, begin, end, 7 if name in ("create", "join") else 5)
        self.events(thread, begin, (kind, value))
        if name != "exit":
            self.events(thread, end, (kind, 0))

    def life(self, thread: tuple[int, int, int], begin: int, end: int, function: int = 7) -> None:
        """Add the function of a thread that another one makes."""
        self.events(thread, begin, (60000020, function))
        self.events(thread, end, (60000020, 0))

    def collective(
        self, name: str, calls: dict[tuple[int, int, int], tuple[int, int]], comm: int, root: int = 0, size: int = 8
    ) -> None:
        """Add the calls of a collective operation, each with its begin and end; `root` is a task."""
        for thread, (begin, end) in calls.items():
            is_root = thread[1] == root
            sizes = (size, size)
            if root:
                sizes = (size, 0) if is_root == (name in ("Bcast", "Scatterv")) else (0, size)
            pairs = [(50100001, sizes[0]), (50100002, sizes[1]), (50100004, comm)]
            self.call(thread, name, begin, end, *pairs, *([(50100003, 1)] if is_root else []))

    def message(self, send: Call, post: Call, receive: Call, size: int = 8, tag: int = 0) -> None:
        """Add a message from a call to one that receives it, and the one that posts the receive."""
        left = send.begin if send.name == "Sendrecv" else send.end
        posted = post.begin if post == receive else post.end
        text = f"3:{self.place(send.thread)}:{send.begin}:{left}:{self.place(receive.thread)}:{posted}:{receive.end}"
        self.records.append((left, 3, f"{text}:{size}:{tag}"))

    def text(self) -> str:
        """Return the text of the file."""
        nodes = max(node for tasks in self.tasks for _, node in tasks)
        cpus = [sum(n for tasks in self.tasks for n, at in tasks if at == node) for node in range(1, nodes + 1)]
        model = ",".join(f"{len(tasks)}({','.join(f'{n}:{node}' for n, node in tasks)})" for tasks in self.tasks)
        machine = f"{nodes}({','.join(map(str, cpus))})"
        header = f"{self.end}{self.unit}:{machine}:{len(self.tasks)}:{model},{len(self.comms)}"
        lines = [f"#Paraver (28/11/2026 at 20:00):{header}"]
        lines += [f"c:{app}:{number}:{len(who)}:{':'.join(map(str, who))}" for app, number, who in self.comms]
        return "\n".join([*lines, *(text for *_, text in sorted(self.records, key=lambda record: record[:2]))]) + "\n"

    def write(self, directory: Path) -> Path:
        """Write the file."""
        path = directory / "trace.prv"
        path.write_text(self.text())
        return path
