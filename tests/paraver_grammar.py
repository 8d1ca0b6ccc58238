"""What a trace of Paraver must look like, by the description of its format.

Nothing here knows how such traces are written or read by whywait.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEADER = re.compile(
    r"#Paraver \(\d\d/\d\d/\d\d(?:\d\d)? at \d\d:\d\d\):(\d+)_ns:(\d+)\(([\d,]+)\):(\d+):(.*)", re.ASCII
)
TASKS = re.compile(r"(\d+)\(((?:\d+:\d+,?)+)\)", re.ASCII)
MPI = range(50000001, 50000006)
# Types with a region of one value until 0, and those that nest.
FLAT = {*MPI, 60000005, 60000016, 61000000, *range(61000005, 61000010)}
NESTED = {60000001, 60000018, 60000019, 60000020}
LOCK = 60000006
# What a lock can be after what it was.
AFTER = {0: {3, 5}, 3: {6}, 6: {3, 5}, 5: {0}}


def labels(text: str) -> tuple[set[int], dict[int, set[int]]]:
    """Return the numbers of states, and the values of each type; none where any is meant."""
    states: set[int] = set()
    types: dict[int, set[int]] = {}
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if lines and lines[0] == "STATES":
            states = {int(line.split()[0]) for line in lines[1:]}
        if lines and lines[0] == "EVENT_TYPE":
            end = lines.index("VALUES") if "VALUES" in lines else len(lines)
            values = {int(line.split()[0]) for line in lines[end + 1 :]}
            assert len(values) == len(lines[end + 1 :]), f"a value is there twice: {lines[1]}"
            for line in lines[1:end]:
                _, kind, label = line.split(maxsplit=2)
                assert label
                assert int(kind) not in types, f"type {kind} is there twice"
                types[int(kind)] = values
    return states, types


def names(text: str) -> dict[str, int]:
    """Return the number of names of each level of a `.row`."""
    lines = iter(text.splitlines())
    sizes = {}
    for line in lines:
        if line.startswith("LEVEL "):
            _, level, size, count = line.split()
            assert size == "SIZE"
            listed = [next(lines) for _ in range(int(count))]
            assert all(name.strip() for name in listed), level
            sizes[level] = int(count)
        else:
            assert not line.strip()
    return sizes


def check(path: Path, *, is_part: bool = False) -> dict[str, int]:
    """Check a trace and the files beside it; return how many records of each kind it has.

    A part of a trace has messages of calls that are not in it.
    """
    packed = path.suffix == ".gz"
    base = path.parent / path.name.removesuffix(".gz").removesuffix(".prv")
    raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    assert raw.endswith(b"\n")
    first, *lines = raw.decode("ascii").splitlines()
    found = HEADER.fullmatch(first)
    assert found, first
    end, nodes, applications = (int(found[place]) for place in (1, 2, 4))
    cpus = [int(count) for count in found[3].split(",")]
    assert (len(cpus), applications) == (nodes, 1)
    tasks = TASKS.match(found[5])
    assert tasks
    threads = [tuple(map(int, task.split(":"))) for task in tasks[2].split(",")]
    assert int(tasks[1]) == len(threads)
    assert all(1 <= node <= nodes for _, node in threads)
    assert sum(count for count, _ in threads) == sum(cpus)
    places: dict[tuple[int, ...], int] = {}
    for task, (count, _) in enumerate(threads, 1):
        for thread in range(1, count + 1):
            places[1, task, thread] = len(places) + 1
    announced = int(found[5][tasks.end() + 1 :])
    comms = [list(map(int, line.split(":")[1:])) for line in lines[:announced]]
    assert all(line.startswith("c:") for line in lines[:announced])
    assert [comm[1] for comm in comms] == list(range(1, announced + 1))
    for application, _, count, *members in comms:
        assert application == 1
        assert len(members) == len(set(members)) == count > 0
        assert all(1 <= member <= len(threads) for member in members)
    states, types = labels(base.with_name(base.name + ".pcf").read_text())
    sizes = names(base.with_name(base.name + ".row").read_text())
    assert sizes == {"CPU": sum(cpus), "NODE": nodes, "THREAD": len(places)}
    records = Records(end, places, (states, types), {comm[1]: comm[3:] for comm in comms})
    records.read(lines[announced:])
    if not is_part:
        records.end_in_calls()
    return dict(records.counts)


class Records:
    """Checks records: their order, their objects, and what they say."""

    def __init__(
        self,
        end: int,
        places: dict[tuple[int, ...], int],
        known: tuple[set[int], dict[int, set[int]]],
        comms: dict[int, list[int]],
    ) -> None:
        self.end, self.places, self.comms = end, places, comms
        self.states, self.types = known
        self.counts: dict[str, int] = defaultdict(int)
        self.busy: dict[int, int] = defaultdict(int)
        self.open: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.begins: set[tuple[int, int]] = set()
        self.ends: set[tuple[int, int]] = set()
        self.messages: list[tuple[str, list[int]]] = []

    def read(self, lines: list[str]) -> None:
        """Check lines."""
        now = 0
        last: dict[int, tuple[int, str]] = defaultdict(lambda: (0, ""))
        for line in lines:
            kind, *fields = line.split(":")
            numbers = [int(field) for field in fields]
            assert self.places[tuple(numbers[1:4])] == numbers[0], line
            self.counts[kind] += 1
            time = numbers[5 if kind == "3" else 4]
            assert now <= time <= self.end, line
            now = time
            # At one instant of a thread, states are before events.
            assert kind == "3" or last[numbers[0]] <= (time, kind), line
            if kind != "3":
                last[numbers[0]] = (time, kind)
            {"1": self.state, "2": self.events, "3": self.message}[kind](line, numbers)
        assert not [key for key, stack in self.open.items() if stack and stack != [0]]

    def state(self, line: str, numbers: list[int]) -> None:
        cpu, *_, begin, end, state = numbers
        assert self.busy[cpu] <= begin < end <= self.end, line
        assert state in self.states, line
        self.busy[cpu] = end

    def events(self, line: str, numbers: list[int]) -> None:
        cpu, _, task, _, time = numbers[:5]
        pairs = list(zip(numbers[5::2], numbers[6::2], strict=True))
        kinds = [kind for kind, _ in pairs]
        assert len(kinds) == len(set(kinds)) > 0, line
        for kind, value in pairs:
            assert kind in self.types, line
            assert not self.types[kind] or value in self.types[kind], line
            self.region(line, self.open[cpu, kind], kind, value)
            if kind in MPI:
                (self.begins if value else self.ends).add((cpu, time))
        call = dict(pairs)
        if 50100004 in call:
            assert task in self.comms[call[50100004]], line
            assert any(call.get(kind) for kind in MPI), line
        assert call.get(50100003, 1) == 1, line

    @staticmethod
    def region(line: str, stack: list[int], kind: int, value: int) -> None:
        if kind == LOCK:
            assert value in AFTER[stack[-1] if stack else 0], line
            stack[:] = [value]
        elif kind in FLAT | NESTED:
            assert kind in NESTED or bool(value) != bool(stack), line
            assert value or stack, line
            if value:
                stack.append(value)
            else:
                stack.pop()

    def message(self, line: str, numbers: list[int]) -> None:
        assert self.places[tuple(numbers[7:10])] == numbers[6], line
        logical, physical, posted, arrived, size, tag = *numbers[4:6], *numbers[10:]
        assert logical <= physical, line
        assert posted <= arrived <= self.end, line
        assert min(size, tag) >= 0, line
        self.messages.append((line, numbers))

    def end_in_calls(self) -> None:
        """Check that messages begin and end where calls do."""
        for line, numbers in self.messages:
            sender, receiver = numbers[0], numbers[6]
            logical, physical, posted, arrived = *numbers[4:6], *numbers[10:12]
            assert (sender, logical) in self.begins, line
            assert (sender, physical) in self.ends | self.begins, line
            assert (receiver, posted) in self.begins | self.ends, line
            assert (receiver, arrived) in self.ends, line
