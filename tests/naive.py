"""An oracle for the wait states of MPI and OpenMP: slow and short, but obviously correct.

It shares no code with the program: it reads traces with the official `otf2` package and implements
docs/specification.md sentence by sentence. It reproduces Scalasca's results on the recorded traces
(tests/test_naive.py) and checks generated traces, for which no other tool has an answer.

Times are integer ticks, as in the program, so they compare exactly.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import otf2
from otf2 import events as ev
from otf2.enums import (
    CartPeriodicity,
    CollectiveOp,
    GroupType,
    LocationGroupType,
    LocationType,
    MeasurementMode,
    Paradigm,
    RegionRole,
)

from tests import naive_looks, naive_posix, naive_protocols, naive_tasks, naive_threads
from tests.naive_trees import in_tree
from tests.results import is_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BARRIER = {CollectiveOp.BARRIER}
ONE_TO_N = {CollectiveOp.BCAST, CollectiveOp.SCATTER, CollectiveOp.SCATTERV}
N_TO_ONE = {CollectiveOp.REDUCE, CollectiveOp.GATHER, CollectiveOp.GATHERV}
N_TO_N = {
    CollectiveOp.ALLGATHER,
    CollectiveOp.ALLGATHERV,
    CollectiveOp.ALLREDUCE,
    CollectiveOp.ALLTOALL,
    CollectiveOp.REDUCE_SCATTER,
    CollectiveOp.REDUCE_SCATTER_BLOCK,
}
SCAN = {CollectiveOp.SCAN, CollectiveOp.EXSCAN}
# Alltoallv and Alltoallw are left out on purpose: totals do not tell who waits for whom.

WAIT_SINGLE = {"MPI_Wait", "MPI_Waitany"}
CREATORS = {"MPI_Comm_split", "MPI_Comm_dup", "MPI_Comm_create", "MPI_Cart_create", "MPI_Intercomm_create"}
FILES = {"MPI_File_open", "MPI_File_close", "MPI_File_set_view"}
WAIT_MANY = {"MPI_Waitall", "MPI_Waitsome"}
TESTS = {"MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome", "MPI_Parrived"}
MAY_BLOCK_FOR_RECEIVER = {"MPI_Send", "MPI_Ssend"}


@dataclass(eq=False)
class Instance:
    """A region instance: one Enter and Leave of a region on a location."""

    thread: Thread
    region: Any  # None for the program and for the measurement system
    name: str
    parent: Instance | None
    enter: int
    leave: int = -1
    # Of a task's outermost region: the call that it is below, whoever runs it.
    created_in: Instance | None = None

    @cached_property
    def callpath(self) -> tuple[str, ...]:
        around = self.created_in or self.parent
        path = around.callpath if around else ()
        if self.created_in and self.name in path:
            # Recursion folds.
            return path[: path.index(self.name) + 1]
        return (*path, self.name)

    @property
    def is_mpi(self) -> bool:
        return self.region is not None and self.region.paradigm == Paradigm.MPI

    def is_openmp(self, *roles: RegionRole) -> bool:
        return self.region is not None and self.region.paradigm == Paradigm.OPENMP and self.region.region_role in roles


@dataclass(eq=False)
class Thread:
    """A location: `rank` is that of its process, `number` its position in the process."""

    ref: int
    process: int
    rank: int
    number: int
    # Events with their enclosing region instance (Enter and Leave: their own), in file order.
    records: list[tuple[Any, Instance | None]] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)


@dataclass(eq=False)
class Message:
    """A send or a receive, with the calls that started it, contain its message record, and completed it."""

    thread: Thread
    event: Any
    start: Instance
    here: Instance
    done: Instance | None
    partner: Message | None = None

    @property
    def sent(self) -> int:
        """When it was sent; one in partitions when the last one was made ready."""
        return self.event.time if self.start is self.here else self.start.enter


@dataclass
class Team:
    """One execution of a parallel region: its fork and join, and the region instances of each thread in it."""

    fork: int
    forked_in: Instance
    join: int = -1
    members: list[list[Instance]] = field(default_factory=list)


class Wait(NamedTuple):
    """One wait state."""

    kind: str
    rank: int
    thread: int
    callpath: tuple[str, ...]
    enter: int
    leave: int
    waiting: int
    cause_rank: int | None
    cause_thread: int | None
    cause_callpath: tuple[str, ...] | None
    cause_enter: int | None
    inferred: bool = False


@dataclass
class Result:
    """Exclusive severities in ticks, occurrences and bytes, and the wait states behind them."""

    resolution: int
    begin: int
    cells: Counter[tuple[str, tuple[str, ...], int, int]] = field(default_factory=Counter)
    waits: list[Wait] = field(default_factory=list)
    violations_p2p: int = 0
    violations_coll: int = 0
    unmatched_sends: int = 0
    unmatched_receives: int = 0

    def add(self, metric: str, instance: Instance, value: int) -> None:
        self.cells[metric, instance.callpath, instance.thread.rank, instance.thread.number] += value

    def wait(self, kind: str, at: Instance, waiting: int, cause: Instance | None, *, inferred: bool = False) -> None:
        """Add a wait state; a completion has no cause."""
        self.add(kind, at, waiting)
        where = at.thread.rank, at.thread.number, at.callpath, at.enter, at.leave
        thread = cause.thread if cause else None
        who = (thread.rank, thread.number, cause.callpath, cause.enter) if thread else (None, None, None, None)
        self.waits.append(Wait(kind, *where, waiting, *who, inferred=inferred))

    def table(self) -> dict[str, dict[tuple[tuple[str, ...], int, int], float]]:
        """Seconds, occurrences and bytes of the non-zero cells by metric."""
        table: dict[str, dict] = defaultdict(dict)
        for (metric, callpath, rank, thread), value in self.cells.items():
            if value:
                table[metric][callpath, rank, thread] = value / self.resolution if is_time(metric) else value
        return dict(table)


class Trace:
    """An archive in memory, each event with the region instance that it occurred in. All oracles read the same one."""

    def __init__(self, anchor: str | Path) -> None:
        self.threads: dict[int, Thread] = {}
        self.processes: dict[int, list[Thread]] = defaultdict(list)
        self.begin = sys.maxsize
        # Events of other locations, such as streams of devices.
        self.elsewhere: list[tuple[Any, Any]] = []
        with otf2.reader.open(str(anchor), batch_events=10000) as reader:
            self.definitions = reader.definitions
            self.resolution = reader.definitions.clock_properties.timer_resolution
            self._number(reader.definitions)
            stacks: dict[int, list[Instance]] = defaultdict(list)
            flushes: dict[int, Any] = {}
            for location, event in reader.events:
                if location._ref not in self.threads:
                    self.elsewhere.append((location, event))
                    continue
                thread, stack = self.threads[location._ref], stacks[location._ref]
                self.begin = min(self.begin, event.time)
                # A flush belongs behind all records of its time: inside the call that made it, whose Enter follows.
                if thread.ref in flushes and event.time > flushes[thread.ref].time:
                    self._place(thread, stack, flushes.pop(thread.ref))
                if isinstance(event, ev.BufferFlush):
                    flushes[thread.ref] = event
                else:
                    self._place(thread, stack, event)
        self.teams = list(self._find_teams())
        self._place_tasks()

    def _number(self, definitions: Any) -> None:
        """Number processes by their rank in MPI_COMM_WORLD; without MPI, in the order of their definitions."""
        ranks = {}
        for group in definitions.groups:
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI:
                ranks = {location.group._ref: rank for rank, location in enumerate(group.members)}
        for location in definitions.locations:
            group = location.group
            is_process = group.location_group_type == LocationGroupType.PROCESS
            if is_process and location.type == LocationType.CPU_THREAD:
                threads = self.processes[group._ref]
                rank = ranks[group._ref] if ranks else len(self.processes) - 1
                threads.append(Thread(location._ref, group._ref, rank, len(threads)))
                self.threads[location._ref] = threads[-1]

    @staticmethod
    def _place(thread: Thread, stack: list[Instance], event: Any) -> None:
        around = stack[-1] if stack else None
        entered = None
        if isinstance(event, ev.ProgramBegin):
            entered = Instance(thread, None, os.path.basename(event.program_name), None, event.time)  # noqa: PTH119
        elif isinstance(event, ev.Enter):
            entered = Instance(thread, event.region, event.region.name, around, event.time)
        elif isinstance(event, ev.MeasurementOnOff) and event.measurement_mode == MeasurementMode.OFF:
            entered = Instance(thread, None, "MEASUREMENT OFF", around, event.time)
        elif isinstance(event, ev.BufferFlush):
            flush = Instance(thread, None, "TRACE BUFFER FLUSH", around, event.time, event.stop_time)
            thread.instances.append(flush)
        elif isinstance(event, (ev.Leave, ev.ProgramEnd, ev.MeasurementOnOff)):
            stack.pop().leave = event.time
        if entered is not None:
            stack.append(entered)
            thread.instances.append(entered)
        thread.records.append((event, entered or around))

    def _find_teams(self) -> Iterator[Team]:
        """Yield the teams of each master; a worker's n-th TeamBegin belongs to the team's n-th fork."""
        turns = {ref: self._turns(thread) for ref, thread in self.threads.items()}
        for threads in self.processes.values():
            for forker in threads:
                open_teams: list[Team] = []  # a team may fork teams of its own
                for event, around in forker.records:
                    if isinstance(event, ev.ThreadFork):
                        open_teams.append(Team(event.time, around))
                    elif isinstance(event, ev.ThreadTeamBegin) and open_teams and not open_teams[-1].members:
                        self._gather(open_teams[-1], forker, threads, turns, event)
                    elif isinstance(event, ev.ThreadJoin) and open_teams:
                        open_teams[-1].join = event.time
                        yield open_teams.pop()

    def _place_tasks(self) -> None:
        """Put the calls of tasks below the call path that created them (specification.md#tasks)."""
        for threads in self.processes.values():
            records = [(thread, event, around) for thread in threads for event, around in thread.records]
            creations = {
                (event.creating_thread, event.generation_number): around.parent
                for _, event, around in records
                if isinstance(event, ev.ThreadTaskCreate) and around is not None
            }
            placed = set()
            for (thread, event, _), (other, after, entered) in pairwise(records):
                if isinstance(event, ev.ThreadTaskSwitch) and isinstance(after, ev.Enter) and thread is other:
                    key = event.creating_thread, event.generation_number
                    if key in creations and key not in placed:
                        placed.add(key)
                        entered.created_in = creations[key]

    @staticmethod
    def _gather(team: Team, forker: Thread, threads: list[Thread], turns: dict, begin: ev.ThreadTeamBegin) -> None:
        """Take the next turn of each thread that begins before the team joins, of the one that forks first."""
        key, depth, join = begin.thread_team._ref, 0, None
        has_begun = False
        for event, _ in forker.records:
            has_begun |= event is begin
            if has_begun and join is None:
                depth += isinstance(event, ev.ThreadFork) - isinstance(event, ev.ThreadJoin)
                if depth < 0:
                    join = event.time
        for thread in (forker, *(t for t in threads if t is not forker)):
            if turns[thread.ref][key] and (join is None or turns[thread.ref][key][0][0].enter < join):
                team.members.append(turns[thread.ref][key].pop(0))
                for instance in team.members[-1]:
                    if instance.parent is None:
                        instance.parent = team.forked_in

    @staticmethod
    def _turns(thread: Thread) -> dict[int, list[list[Instance]]]:
        """By team: the region instances of a thread between each TeamBegin and TeamEnd."""
        turns: dict[int, list[list[Instance]]] = defaultdict(list)
        current: list[list[Instance]] = []
        for event, around in thread.records:
            if isinstance(event, ev.ThreadTeamBegin):
                turns[event.thread_team._ref].append([])
                current.append(turns[event.thread_team._ref][-1])
            elif isinstance(event, ev.ThreadTeamEnd):
                current.pop()
            elif isinstance(event, ev.Enter) and current:
                current[-1].append(around)
        return turns


def analyze(trace: Trace, wrong_order_window: int = 100) -> Result:
    """Compute all metrics of the profile, of point-to-point and collective communication, and of OpenMP."""
    result = Result(trace.resolution, trace.begin)
    profile(trace, result)
    messages = match(trace, result)
    late_senders(trace, messages, result, wrong_order_window)
    late_receivers(trace, messages, result)
    naive_looks.probes(trace, messages, result)
    naive_looks.partitions(trace, messages, result)
    collectives(trace, result)
    nonblocking(trace, result)
    init_and_finalize(trace, result)
    creations(trace, result)
    neighborhoods(trace, result)
    teams(trace, result)
    naive_tasks.book(trace, result)
    locks(trace, result)
    naive_posix.book(trace, ownerships(trace), result)
    return result


# --- time and visits -------------------------------------------------------------------------------------------------


def profile(trace: Trace, result: Result) -> None:
    """Compute exclusive times and visits (specification.md#time)."""
    for thread in trace.threads.values():
        for instance in thread.instances:
            result.add("visits", instance, 1)
            result.add("time", instance, instance.leave - instance.enter)
            if instance.parent is not None and instance.parent.thread is thread:
                result.add("time", instance.parent, -(instance.leave - instance.enter))


# --- point-to-point ------------------------------------------------------------------------------------------------


def match(trace: Trace, result: Result) -> dict[int, list[Message]]:
    """Match messages (specification.md#matching-of-messages-and-collective-operations); return them by location."""
    messages: dict[int, list[Message]] = {}
    sends: dict[tuple, list[Message]] = defaultdict(list)
    receives: dict[tuple, list[Message]] = defaultdict(list)
    cancelled: list[Any] = []
    parts = naive_looks.parts(trace)
    for thread in trace.threads.values():
        messages[thread.ref] = []
        # One request may be that of a send and of a receive.
        sending: dict[int, Message] = {}
        posted: dict[int, Instance] = {}
        for event, call in thread.records:
            message = None
            if isinstance(event, (ev.MpiSend, ev.MpiRecv)):
                message = Message(thread, event, call, call, call)
            elif isinstance(event, ev.MpiIsend):
                sends_it = parts[id(event)][-1].call if id(event) in parts else call
                message = sending[event.request_id] = Message(thread, event, sends_it, call, None)
            elif isinstance(event, ev.MpiIsendComplete) and event.request_id in sending:
                sending.pop(event.request_id).done = call
            elif isinstance(event, ev.MpiIrecvRequest):
                posted[event.request_id] = call
            elif isinstance(event, ev.MpiIrecv):
                message = Message(thread, event, posted.pop(event.request_id, call), call, call)
            elif isinstance(event, ev.MpiRequestCancelled):
                # What was cancelled has no partner. It was sent all the same: it counts.
                cancelled.append(sending.pop(event.request_id, None))
                posted.pop(event.request_id, None)
            if message is None or not call.is_mpi:
                continue
            is_send = isinstance(event, (ev.MpiSend, ev.MpiIsend))
            rank = event.receiver if is_send else event.sender
            if rank > 0x7FFFFFFF:
                continue  # MPI_PROC_NULL
            messages[thread.ref].append(message)
            peer = peer_process(event.communicator, thread, rank)
            pair = (thread.process, peer) if is_send else (peer, thread.process)
            queue = sends if is_send else receives
            queue[event.communicator._ref, event.msg_tag, *pair].append(message)
    for key, received in receives.items():
        # Several threads of a process may send: then time decides who was first.
        sent = sorted((m for m in sends[key] if m not in cancelled), key=lambda m: m.event.time)
        # More receives than sends: sends are missing, and as nobody can tell which, no pair is certain.
        if len(received) <= len(sent):
            for s, r in zip(sent, sorted(received, key=lambda m: m.event.time), strict=False):
                s.partner, r.partner = r, s
    everyone = [m for queue in messages.values() for m in queue]
    for m in everyone:
        count_message(m, result)
        if m.partner is None and m not in cancelled:
            if is_receive(m):
                result.unmatched_receives += 1
            else:
                result.unmatched_sends += 1
    return messages


def peer_process(comm: Any, thread: Thread, rank: int) -> int:
    """Return the process (location group) of a rank of a communicator, as seen from a location."""
    if isinstance(comm, otf2.definitions.InterComm):
        mine = any(m.group._ref == thread.process for m in comm.groupA.members)
        return (comm.groupB if mine else comm.groupA).members[rank].group._ref
    if comm.group.group_type == GroupType.COMM_SELF:
        return thread.process
    return comm.group.members[rank].group._ref


def count_message(m: Message, result: Result) -> None:
    """Count a message (specification.md#counts-and-bytes): without bytes, it is a synchronization."""
    if isinstance(m.event, (ev.MpiSend, ev.MpiIsend)):
        kind, length, total = "send", m.event.msg_length, "bytes_sent"
    else:
        kind, length, total = "recv", (m.partner or m).event.msg_length, "bytes_rcvd"
        if m.partner is not None and m.partner.sent > m.event.time:
            result.violations_p2p += 1
    result.add(f"comms_{kind}" if length else f"syncs_{kind}", m.here, 1)
    result.add(total, m.here, length)


def late_sender(r: Message) -> int:
    """Return how long a receive waits for its send; not positive if it does not (specification.md#late-sender)."""
    call = r.here
    if call.name in TESTS or r.partner is None:
        return 0
    return min(r.partner.start.enter, call.leave) - call.enter


def is_receive(m: Message) -> bool:
    return isinstance(m.event, (ev.MpiRecv, ev.MpiIrecv))


def late_senders(trace: Trace, messages: dict[int, list[Message]], result: Result, window: int) -> None:
    for thread in trace.threads.values():
        received = {id(m.event): m for m in messages[thread.ref] if is_receive(m)}
        waited: list[tuple[Message, int]] = []  # the latest Late Senders, candidates for Wrong Order
        best: tuple[Message, int] | None = None  # of the Waitall that is open

        def book(r: Message, idle: int, waited: list[tuple[Message, int]] = waited) -> None:
            result.wait("mpi_latesender", r.here, idle, r.partner.start)
            result.add("mpi_cls_count" if r.partner.event.msg_length else "mpi_sls_count", r.here, 1)
            waited.append((r, idle))
            del waited[:-window]

        for event, call in thread.records:
            r = received.get(id(event))
            if r is not None and r.partner is not None:
                idle = late_sender(r)
                if call.name in WAIT_MANY:
                    if idle > 0 and (best is None or idle > best[1]):
                        best = (r, idle)
                elif idle > 0:
                    book(r, idle)
                for x, idle_x in list(waited):
                    if x.partner.sent > r.partner.sent:
                        waited.remove((x, idle_x))
                        same = x.partner.thread.process == r.partner.thread.process
                        wrong_order(x, idle_x, same, result)
            elif isinstance(event, ev.Leave) and call.name in WAIT_MANY and best is not None:
                book(*best)
                best = None


def wrong_order(x: Message, idle: int, same: bool, result: Result) -> None:
    result.add("mpi_latesender_wo", x.here, idle)
    result.wait("mpi_lswo_same" if same else "mpi_lswo_different", x.here, idle, x.partner.start)
    result.add("mpi_clswo_count" if x.partner.event.msg_length else "mpi_slswo_count", x.here, 1)


def late_receivers(trace: Trace, messages: dict[int, list[Message]], result: Result) -> None:
    protocols = naive_protocols.decided(
        trace, [r for of in messages.values() for r in of if is_receive(r) and r.partner is not None]
    )
    for thread in trace.threads.values():
        many: dict[int, list[tuple[int, Message]]] = defaultdict(list)
        exchanges: dict[int, list[tuple[int, Message]]] = defaultdict(list)
        has_late_sender: dict[int, int] = {}
        for r in messages[thread.ref]:
            # MPI_Isendrecv has a receive and a send in one request, so that MPI_Wait may complete both.
            may_send = r.here.name in WAIT_MANY or "sendrecv" in r.start.name.lower()
            if is_receive(r) and may_send and late_sender(r) > has_late_sender.get(id(r.here), 0):
                has_late_sender[id(r.here)] = late_sender(r)
        for s in messages[thread.ref]:
            if is_receive(s) or s.partner is None or s.done is None:
                continue
            posted, call = s.partner.start.enter, s.done
            idle = posted - call.enter if posted < call.leave else 0
            if idle <= 0:
                continue
            if call.name in WAIT_MANY:
                many[id(call)].append((idle, s))
            elif call.name in MAY_BLOCK_FOR_RECEIVER or (call.name in WAIT_SINGLE and id(call) not in has_late_sender):
                book_late_receiver(idle, s, result)
            if (id(call) in has_late_sender or "Sendrecv" in call.name) and protocols[id(s.partner)]:
                exchanges[id(call)].append((idle - has_late_sender.get(id(call), 0), s))
        for candidates in exchanges.values():
            idle, s = max(candidates, key=lambda c: c[0])
            if idle > 0:
                inferred = naive_protocols.named(s.start.name) is None
                result.wait("mpi_exchange_latereceiver", s.done, idle, s.partner.start, inferred=inferred)
        for call, candidates in many.items():
            if call not in has_late_sender:
                idle, s = max(candidates, key=lambda c: c[0])
                book_late_receiver(idle, s, result)


def book_late_receiver(idle: int, s: Message, result: Result) -> None:
    result.wait("mpi_latereceiver", s.done, idle, s.partner.start)
    result.add("mpi_clr_count" if s.event.msg_length else "mpi_slr_count", s.done, 1)


# --- collectives ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Part:
    """The part of a process in a collective operation: begin, end, bytes, and rank in the communicator."""

    call: Instance
    rank: int
    begin: int
    end: int
    sent: int = 0
    received: int = 0
    root: int = -1


def collectives(trace: Trace, result: Result) -> None:
    for thread in trace.threads.values():
        for event, call in thread.records:
            if isinstance(event, ev.MpiCollectiveEnd):
                count_collective(event, call, result)
    for op, parts in operations(trace):
        collective(op, parts, result)


def operations(trace: Trace) -> Iterator[tuple[CollectiveOp, list[Part]]]:
    """Yield the collective operations that all members of a communicator call, with their parts by rank."""
    ended: list[tuple[int, Any, Part]] = []
    for thread in trace.threads.values():
        begin = -1
        for event, call in thread.records:
            if isinstance(event, ev.MpiCollectiveBegin):
                begin = event.time
            elif isinstance(event, ev.MpiCollectiveEnd):
                comm = event.communicator
                if isinstance(comm, otf2.definitions.InterComm) or comm.group.group_type == GroupType.COMM_SELF:
                    continue
                members = [m.group._ref for m in comm.group.members]
                since = max(begin, call.enter)  # the begin record may be that of an older call
                part = Part(
                    call, members.index(thread.process), since, event.time, event.size_sent, event.size_received
                )
                part.root = event.root
                ended.append((thread.process, event, part))
    # The threads of a process take turns, in the order of time.
    ended.sort(key=lambda one: one[1].time)
    found: dict[tuple[int, int], tuple[Any, list[Part], int]] = {}
    turn: Counter[tuple[int, int]] = Counter()
    for process, event, part in ended:
        comm = event.communicator
        key = (comm._ref, turn[process, comm._ref])
        turn[process, comm._ref] += 1
        found.setdefault(key, (event.collective_op, [], len(comm.group.members)))[1].append(part)
    for op, parts, size in found.values():
        if size > 1 and len(parts) == size:
            parts.sort(key=lambda p: p.rank)
            yield op, parts


def count_collective(event: Any, call: Instance, result: Result) -> None:
    sent, received = event.size_sent, event.size_received
    kind = {(0, 0): "syncs_coll", (1, 1): "comms_cxch", (1, 0): "comms_csrc", (0, 1): "comms_cdst"}
    result.add(kind[sent != 0, received != 0], call, 1)
    result.add("bytes_cout", call, sent)
    result.add("bytes_cin", call, received)


def last(parts: list[Part]) -> Part:
    """Return the part that began last; the lowest rank on a tie."""
    return max(parts, key=lambda p: (p.begin, -p.rank))


def collective(op: CollectiveOp, parts: list[Part], result: Result) -> None:
    if op in BARRIER:
        together(parts, last(parts), "mpi_barrier_wait", "mpi_barrier_completion", result)
    elif op in N_TO_N:
        n_to_n(parts, result)
    elif op in ONE_TO_N:
        root = parts[parts[0].root]
        if root.sent:
            for p in parts:
                if p is not root and p.received:
                    wait_for(root, p, "mpi_latebroadcast", result)
    elif op in N_TO_ONE:
        root = parts[parts[0].root]
        senders = [p for p in parts if p.sent]
        if root.received and senders:
            wait_for(last(senders), root, "mpi_earlyreduce", result)
        if root.received:
            for p, q in in_tree(root, [p for p in parts if p is root or p.sent]):
                wait_for(q, p, "mpi_tree_wait", result)
    elif op in SCAN:
        for p in (p for p in parts if p.received):
            senders = [q for q in parts if q.sent and q.rank < p.rank]
            if senders:
                wait_for(last(senders), p, "mpi_earlyscan", result)
    elif op in {CollectiveOp.ALLTOALLV, CollectiveOp.ALLTOALLW} and all(p.sent and p.received for p in parts):
        at_once(parts, "mpi_alltoallv_wait", result)


def at_once(parts: list[Part], wait: str, result: Result) -> None:
    """All wait for the latest, if all are in their calls at the same time (inferred-synchronization.md)."""
    if min(p.end for p in parts) > last(parts).begin:
        together(parts, last(parts), wait, "", result)


def creations(trace: Trace, result: Result) -> None:
    """The n-th calls for communicators and files without records are one if all processes have equally many."""
    calls: dict[str, dict[int, list[Part]]] = defaultdict(lambda: defaultdict(list))
    for process, threads in trace.processes.items():
        for thread in threads:
            recorded = {id(call) for event, call in thread.records if isinstance(event, ev.MpiCollectiveEnd)}
            for i in thread.instances:
                if i.is_mpi and i.name in CREATORS | FILES and id(i) not in recorded:
                    calls[i.name][process].append(Part(i, thread.rank, i.enter, i.leave))
    for name, of in calls.items():
        metric = "mpi_file_open_wait" if name in FILES else "mpi_comm_create_wait"
        if len(of) == len(trace.processes) > 1 and len({len(one) for one in of.values()}) == 1:
            for parts in zip(*(sorted(one, key=lambda p: p.begin) for one in of.values()), strict=True):
                at_once(sorted(parts, key=lambda p: p.rank), metric, result)


def neighbors(topology: Any, definitions: Any) -> dict[int, list[int]]:
    """Return the processes next to each one in a topology (specification.md#neighborhood-collective-operations)."""
    members = [member.group._ref for member in topology.communicator.group.members]
    places = {members[c.rank]: c.coordinates for c in definitions.cart_coordinates if c.topology._ref == topology._ref}

    def is_next_to(a: int, b: int) -> bool:
        steps = 0
        for one, other, axis in zip(places[a], places[b], topology.dimensions, strict=True):
            step = abs(one - other)
            steps += min(step, axis.size - step) if axis.cart_periodicity == CartPeriodicity.TRUE else step
        return steps == 1

    return {a: [b for b in members if is_next_to(a, b)] for a in members}


def neighborhoods(trace: Trace, result: Result) -> None:
    for parts, next_to in neighborhood_operations(trace):
        for process, part in parts.items():
            others = [parts[other] for other in next_to[process]]
            if others:
                wait_for(last(others), part, "mpi_neighbor_wait", result)


def neighborhood_operations(trace: Trace) -> Iterator[tuple[dict[int, Part], dict[int, list[int]]]]:
    """Yield operations of neighbors without records, if they are known: the part of each process, and its neighbors."""
    topologies = [
        neighbors(t, trace.definitions)
        for t in trace.definitions.cart_topologies
        if t.communicator.group.paradigm == Paradigm.MPI
    ]
    for topology in topologies:
        others = [other for other in topologies if other.keys() & topology.keys()]
        if any(other != topology or list(other) != list(topology) for other in others) or others[0] is not topology:
            continue
        calls: dict[str, dict[int, list[Part]]] = defaultdict(lambda: defaultdict(list))
        for process in topology:
            for thread in trace.processes[process]:
                for i in thread.instances:
                    if i.is_mpi and i.name.startswith("MPI_Neighbor_"):
                        calls[i.name][process].append(Part(i, list(topology).index(process), i.enter, i.leave))
        for of in calls.values():
            counts = {len(of[process]) for process in topology}
            for n in range(max(counts) if len(counts) == 1 and len(topology) > 1 else 0):
                parts = {process: sorted(of[process], key=lambda p: p.begin)[n] for process in topology}
                if all(parts[other].begin <= parts[one].end for one in topology for other in topology[one]):
                    yield parts, topology


def wait_for(culprit: Part, p: Part, kind: str, result: Result) -> None:
    result.violations_coll += culprit.begin > p.end
    waiting = min(culprit.begin, p.end) - p.begin
    if waiting > 0:
        result.wait(kind, p.call, waiting, culprit.call)


def together(parts: list[Part], culprit: Part, wait: str, completion: str, result: Result) -> None:
    """Every part waits for the latest; time after the first end is completion (thesis, equation 2.2)."""
    latest, first = culprit.begin, min(p.end for p in parts)
    for p in parts:
        result.violations_coll += latest > p.end
        arrived = min(latest, p.end)
        if wait and arrived > p.begin:
            result.wait(wait, p.call, arrived - p.begin, culprit.call)
        if completion and p.end > max(first, arrived):
            result.wait(completion, p.call, p.end - max(first, arrived), None)


def n_to_n(parts: list[Part], result: Result) -> None:
    # A process that neither sends nor receives takes no part.
    parts = [p for p in parts if p.sent or p.received]
    if not parts:
        return
    culprit, first = last(parts), min(p.end for p in parts)
    if first > culprit.begin:
        synchronizing = parts
    else:
        senders = [p for p in parts if p.sent]
        if not senders:
            return
        culprit = last(senders)
        synchronizing = [p for p in parts if (p.received and p.begin < culprit.begin) or p is culprit]
    together(synchronizing, culprit, "mpi_wait_nxn", "mpi_nxn_completion", result)


def nonblocking(trace: Trace, result: Result) -> None:
    """Completing a non-blocking collective operation waits for those who start it (nonblocking-collectives.md)."""
    ready: dict[Instance, list[tuple[int, str, Instance | None]]] = defaultdict(list)
    topologies = {t.communicator._ref: neighbors(t, trace.definitions) for t in trace.definitions.cart_topologies}
    for parts in nonblocking_operations(trace):
        next_to = topologies.get(parts[0][3].communicator._ref)
        for number, part in enumerate(parts):
            needs(number, part, parts, next_to, ready, result)
    for call, operations in ready.items():
        if call.name in TESTS:
            continue
        messages = ("mpi_latesender", "mpi_latereceiver", "mpi_exchange_latereceiver")
        place = call.thread.rank, call.thread.number, call.enter
        waited = [w.waiting for w in result.waits if w.kind in messages and (w.rank, w.thread, w.enter) == place]
        at, metric, cause = max(operations, key=lambda operation: operation[0])
        begin, until = call.enter + sum(waited), max(call.enter, min(at, call.leave))
        if until > begin:
            result.wait(metric, call, until - begin, cause)
        if call.leave > max(begin, until):
            result.wait("mpi_nbc_completion", call, call.leave - max(begin, until), None)


def nonblocking_operations(trace: Trace) -> Iterator[list[tuple[int, Instance, Instance, Any]]]:
    """Yield the parts in each operation that all members start: rank, calls that start and complete it, record."""
    started: dict[Any, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    members: dict[Any, list[int]] = {}
    for process, threads in trace.processes.items():
        operations = []
        for thread in threads:
            requests: dict[int, Instance] = {}
            for event, call in thread.records:
                if isinstance(event, ev.NonBlockingCollectiveRequest):
                    requests[event.request_id] = call
                elif isinstance(event, ev.NonBlockingCollectiveComplete) and event.request_id in requests:
                    operations.append((requests.pop(event.request_id), call, event))
        for operation in sorted(operations, key=lambda operation: operation[0].enter):
            comm = operation[2].communicator
            members[comm._ref] = [member.group._ref for member in comm.group.members]
            started[comm._ref][members[comm._ref].index(process)].append(operation)
    for ref, ranks in started.items():
        for k in range(max(map(len, ranks.values()))):
            parts = [(rank, *ranks[rank][k]) for rank in sorted(ranks) if k < len(ranks[rank])]
            kinds = {(event.collective_op, event.root) for _, _, _, event in parts}
            if len(parts) == len(members[ref]) > 1 and len(kinds) == 1:
                yield parts


def needs(
    number: int, part: tuple, parts: list[tuple], next_to: Any, ready: dict[Instance, list], result: Result
) -> None:
    """Note when the last of the members that one needs starts an operation, and what that hides."""
    _, start, call, event = part
    op, root = event.collective_op, event.root
    everybody = [(i, other) for i, other in enumerate(parts) if i != number]
    senders = [(i, other) for i, other in everybody if other[3].size_sent > 0 and event.size_received > 0]
    if start.name.startswith("MPI_Ineighbor_"):
        if next_to is None:
            return
        processes = [member.group._ref for member in event.communicator.group.members]
        metric = "mpi_neighbor_wait"
        needed = [(i, other) for i, other in everybody if processes[i] in next_to[processes[number]]]
    elif op == CollectiveOp.BARRIER:
        metric, needed = "mpi_nbc_barrier_wait", everybody
    elif op in N_TO_N:
        metric, needed = "mpi_nbc_wait_nxn", senders
    elif op in ONE_TO_N:
        metric, needed = "mpi_nbc_latebroadcast", [(i, other) for i, other in senders if i == root]
    elif op in N_TO_ONE:
        metric, needed = "mpi_nbc_earlyreduce", senders if number == root else []
    elif op in SCAN:
        metric, needed = "mpi_nbc_earlyscan", [(i, other) for i, other in senders if i < number]
    else:
        return
    result.violations_coll += any(other[1].enter > call.leave for _, other in needed)
    last = max((other[1] for _, other in needed), key=lambda i: i.enter, default=None)
    at = min(last.enter, call.leave) if last else -1
    result.add("mpi_nbc_hidden_wait", start, max(0, min(at, call.enter) - start.leave))
    ready[call].append((at, metric, last))


def init_and_finalize(trace: Trace, result: Result) -> None:
    """MPI_Init and MPI_Finalize synchronize all processes (specification.md#barrier-start-and-end)."""
    for names, wait, completion in (
        ({"MPI_Init", "MPI_Init_thread"}, "", "mpi_init_completion"),
        ({"MPI_Finalize"}, "mpi_finalize_wait", ""),
    ):
        parts = []
        for threads in trace.processes.values():
            calls = [i for thread in threads for i in thread.instances if i.is_mpi and i.name in names]
            parts += [Part(i, i.thread.rank, i.enter, i.leave) for i in calls[:1]]
        if len(parts) > 1:
            before = result.violations_coll
            together(parts, last(parts), wait, completion, result)
            if not wait:  # nor does start-up skew say anything about clocks
                result.violations_coll = before


# --- OpenMP ----------------------------------------------------------------------------------------------------------


def teams(trace: Trace, result: Result) -> None:
    for team in trace.teams:
        for member in team.members:
            parallel = member[0]
            fork, join = max(0, parallel.enter - team.fork), max(0, team.join - parallel.leave)
            result.add("omp_management", parallel, fork + join)
            result.add("omp_fork", parallel, fork)
            result.add("time", parallel, fork + join)
            if parallel.thread is team.forked_in.thread:
                # The master spends this time inside the forking function: it moves.
                result.add("time", team.forked_in, -(fork + join))
        for role, metric in (
            (RegionRole.BARRIER, "omp_ebarrier_wait"),
            (RegionRole.IMPLICIT_BARRIER, "omp_ibarrier_wait"),
        ):
            barriers = [[i for i in member if i.is_openmp(role)] for member in team.members]
            for turn in zip(*barriers, strict=False):
                latest = max(turn, key=lambda i: (i.enter, -i.thread.number))
                for i in turn:
                    waiting = latest.enter - i.enter - working(i.thread, i.enter, latest.enter)
                    if latest.enter > i.enter and waiting > 0:
                        result.wait(metric, i, waiting, latest)


def working(thread: Thread, begin: int, end: int) -> int:
    """Return the time that a thread runs explicit tasks between two times, or is in calls in which these wait."""
    runs, since, explicit = [], begin, False
    for event, _ in thread.records:
        if isinstance(event, ev.ThreadTaskSwitch | ev.ThreadTaskComplete):
            runs += [(since, event.time)] if explicit else []
            since, explicit = event.time, isinstance(event, ev.ThreadTaskSwitch) and event.generation_number != 0
    runs += [(since, end)] if explicit else []
    waits = (i for i in thread.instances if i.is_openmp(RegionRole.TASK_WAIT) or naive_tasks.is_group(i))
    runs += [(i.enter, i.leave) for i in waits if begin < i.enter]
    times = sorted({begin, end, *(t for run in runs for t in run if begin < t < end)})
    return sum(b - a for a, b in pairwise(times) if any(run[0] <= a and b <= run[1] for run in runs))


def locks(trace: Trace, result: Result) -> None:
    """Each acquisition waits for the preceding release (specification.md#locks-of-threads)."""
    for owners in ownerships(trace):
        for wait in naive_threads.waits(owners):
            call = wait.own.acquire.call
            if call.is_openmp(RegionRole.CRITICAL, RegionRole.CRITICAL_SBLOCK):
                metric = "omp_lock_contention_critical"
            elif call.is_openmp(RegionRole.ORDERED):
                metric = "omp_ordered_wait"
            elif call.region.paradigm == Paradigm.OPENMP:
                metric = "omp_lock_contention_api"
            else:
                metric = naive_posix.contention(call.name)
            if metric and metric != naive_posix.CONDITION:
                result.wait(metric, call, wait.end - wait.begin, wait.cause.release.call)


def ownerships(trace: Trace) -> Iterator[list[naive_threads.Ownership]]:
    """Yield the ownerships of each lock of a process, and of each ordered construct of a team."""
    yield from naive_threads.ordered_blocks(trace.teams)
    acquires, releases = (ev.ThreadAcquireLock, ev.OmpAcquireLock), (ev.ThreadReleaseLock, ev.OmpReleaseLock)
    for threads in trace.processes.values():
        records = [
            naive_threads.Record(
                *(number, e.time, isinstance(e, acquires), (getattr(e, "model", Paradigm.OPENMP), e.lock_id)),
                *(e.acquisition_order, call, call.name, call.enter, call.leave),
            )
            for number, t in enumerate(threads)
            for e, call in t.records
            if isinstance(e, acquires + releases)
        ]
        ends = {number: max((e.time for e, _ in t.records), default=0) for number, t in enumerate(threads)}
        for lock in {r.lock for r in records}:
            yield naive_threads.ownerships([r for r in records if r.lock == lock], ends)
