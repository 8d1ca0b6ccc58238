"""An oracle for root causes and the critical path: slow, but obviously correct.

It reads a trace into memory with the official Python reader, walks lists where the analysis keeps running sums, and
implements chapter 4 of the thesis definition by definition. Times are integer ticks until they are returned.

Two variants of the cost model:

* ``scalasca``: as computed by release 2.6, including its errors, and without one-sided communication.
* ``thesis``: as defined, for every paradigm; the sum of costs equals the waiting time.

    python -m tests.naive_causes ARCHIVE [--model scalasca]
"""

# The names are those of the papers.
# ruff: noqa: N802, N806, PLR0915

import argparse
import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest

import otf2
from otf2 import events as ev
from otf2.enums import GroupType, LocationType, Paradigm

from tests import naive, naive_posix_causes, naive_rma, naive_task_causes, naive_threads

SHORT = {"latesender": "ls", "latereceiver": "lr"}
PAIRS = {
    "late_post": "rma_late_post",
    "early_wait": "rma_early_wait",
    "wait_for_progress": "rma_progress",
    "lock_competition": "lock",
}
NONBLOCKING = {  # metrics and their classes
    "mpi_nbc_barrier_wait": "barrier",
    "mpi_nbc_wait_nxn": "n2n",
    "mpi_neighbor_wait": "n2n",
    "mpi_nbc_latebroadcast": "12n",
    "mpi_nbc_earlyreduce": "n21",
    "mpi_nbc_earlyscan": "n2n",
    "mpi_probe_latesender": "latesender",
    "mpi_exchange_latereceiver": "latereceiver",
}
ALL_WITH_ALL = {"mpi_nbc_barrier_wait", "mpi_nbc_wait_nxn"}
LIMIT = 128  # call paths in a profile of release 2.6; the smallest are dropped
WAIT_MANY = {"MPI_Waitall", "MPI_Waitsome"}
WAIT_ONE = {"MPI_Wait", "MPI_Waitany"}
TESTS = {"MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome"}
INIT = {"MPI_Init", "MPI_Init_thread"}
BARRIER = {"BARRIER"}
ONE_TO_N = {"BCAST", "SCATTER", "SCATTERV"}
N_TO_ONE = {"REDUCE", "GATHER", "GATHERV"}
LOCK_CALLS = re.compile(r"pthread_(mutex_(try)?lock|(rw|spin_)\w*lock|cond_(timed)?wait)")
N_TO_N = {"ALLGATHER", "ALLGATHERV", "ALLREDUCE", "ALLTOALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"}


def synchronized(trace):
    """Yield the calls that wait in an operation of all with all until the last one starts it, and this time."""
    topologies = {t.communicator._ref: naive.neighbors(t, trace.definitions) for t in trace.definitions.cart_topologies}
    for parts in naive.nonblocking_operations(trace):
        ready = defaultdict(list)
        for number, part in enumerate(parts):
            naive.needs(number, part, parts, topologies.get(parts[0][3].communicator._ref), ready, naive.Result(1, 0))
        waits = [(call, at) for call, [(at, metric, _)] in ready.items() if metric in ALL_WITH_ALL and call.enter < at]
        waits = [(call, at) for call, at in waits if call.name not in naive.TESTS]
        last = max((at for _, at in waits), default=0)
        yield [call for call, at in waits if at == last], last


def is_parallel(name):
    return name.startswith("!$omp parallel")


def is_omp_barrier(name):
    return name.startswith(("!$omp barrier", "!$omp implicit barrier", "!$omp ibarrier"))


COLLECTIVE_METRIC = {
    "barrier": "mpi_barrier_wait",
    "n2n": "mpi_wait_nxn",
    "12n": "mpi_latebroadcast",
    "n21": "mpi_earlyreduce",
}


# --------------------------------------------------------------------------------------------------------------------
# The trace in memory


class Call:
    """One region instance."""

    def __init__(self, region, name, around, base, enter):
        self.region, self.name, self.around, self.enter, self.leave = region, name, around, enter, None
        self.below = around or base  # the call that it is below in the call tree
        self.created = None  # of a task's outermost call: where to find the call that created it

    @cached_property
    def path(self):
        if self.created:
            creations, task = self.created
            if task in creations:
                # Recursion folds.
                path = path_of(creations[task].around)
                return (*path[: path.index(self.region)], self.region) if self.region in path else (*path, self.region)
        return (*path_of(self.below), self.region)

    @property
    def E(self):
        return self.enter.t

    @property
    def L(self):
        return self.leave.t


def path_of(call):
    return call.path if call else ()


def attribute(event, name):
    return {attribute.name: value for attribute, value in (event.attributes or {}).items()}.get(name)


class Event:
    def __init__(self, loc, i, t, kind, call, fields):
        self.loc, self.i, self.t, self.kind, self.call = loc, i, t, kind, call
        self.__dict__.update(fields)

    @property
    def path(self):
        return self.call and self.call.path

    def __repr__(self):
        return f"<{self.kind} {self.i} of {self.loc.rank}.{self.loc.thread} in {self.call and self.call.name}>"


class Location:
    """One stream of events with its points of synchronization and contention."""

    def __init__(self, rank, thread, raw):
        self.rank, self.thread, self.raw = rank, thread, raw
        self.events = []
        self.points = {}  # position -> Point
        self.created = None  # from which position on it is a thread of its own, and the point that creates it
        self.releases = set()  # positions of releases that end a part of the critical path
        self.steps = []  # (event index, call path, ticks, end): who had the time up to this event


class Point:
    """A synchronization point: an event, the waiting time there, and the part of its call after the waiting.

    The position is the index of the event, or half a step behind it: the Leave of a release that others waited for
    belongs to the time that they waited, and a call that brings progress does so when it begins.
    """

    def __init__(self, event, wait, cls, total=None, at=None):
        self.event, self.loc, self.wait, self.cls = event, event.loc, wait, cls
        self.at = event.i if at is None else at
        self.path = event.path
        self.total = event.call.L - event.call.E if total is None else total
        self.partners = {}  # rank -> the time of the call after the synchronization with it
        self.contenders = set()  # ranks that it contended with here
        self.phi = defaultdict(float)  # class -> costs of waits that this wait caused later
        self.propagating = 0.0  # the largest share of this wait that a later wait is due to
        self.cause = None  # Point that ended the wait
        self.after = 0  # of the call of a fork, which synchronizes all threads of its team
        self.held = wait  # from Enter to the end of the wait
        self.parts = []  # class and waiting time of the waits for one other process
        self.moments = None  # from when to when it waited, if not all the time from the begin of the call

    def completion(self, rank):
        if rank in self.partners:
            return self.partners[rank]
        return self.total - self.wait

    def waits_within(self, begin, end):
        """Return how long it waited from one time to another."""
        if not self.wait or not self.event.call:
            return 0
        until = self.event.call.E + self.held
        moments = [(until - self.wait, until)] if self.moments is None else self.moments
        return sum(max(0, min(end, b) - max(begin, a)) for a, b in moments)


class Trace:
    """Processes with their event streams; see `read` for the fields of the raw events."""

    def __init__(self, resolution, streams, comms, anchor, is_one_sided):
        self.resolution, self.anchor, self.is_one_sided = resolution, anchor, is_one_sided
        self.comms = comms  # id -> list of world ranks, None for a self communicator
        self.locations = [Location(rank, thread, raw) for (rank, thread), raw in sorted(streams.items())]
        self.by_rank = {loc.rank: loc for loc in self.locations if loc.thread == 0}
        self.creations = {}  # task -> call that created it
        self.begun = set()  # tasks whose outermost call is known
        for loc in sorted(self.locations, key=lambda loc: loc.thread):
            self._link(loc)
        for loc in self.locations:
            loc.steps = [(i, path_of(call), ticks, end) for i, call, ticks, end in loc.steps]

    def members(self, comm, rank):
        ranks = self.comms[comm]
        return [rank] if ranks is None else ranks

    def _link(self, loc):
        """Assign each event its enclosing call, and each interval between events its call path."""
        stack, loc.teams, loc.parallel = [], [], None
        last, base, fork, task = None, None, None, None
        begun = self.begun
        for i, (t, kind, fields) in enumerate(loc.raw):
            if kind == "enter":
                region, name = fields["region"]
                parent = stack[-1] if stack else base
                event = Event(loc, i, t, kind, None, {})
                call = Call(region, name, stack[-1] if stack else None, base, event)
                if task and task not in begun:
                    begun.add(task)
                    call.created = self.creations, task
                event.call = call
                if fork is not None and is_parallel(name):
                    # The way from the fork to the region belongs to the region, and to the right of a point here.
                    if stack:
                        loc.steps.append((i - 1, parent, fork - last, fork))
                    loc.steps.append((i, call, max(0, t - fork), t))
                    event.fork, fork = fork, None
                elif stack:
                    loc.steps.append((i, parent, t - last, t))
                stack.append(call)
                last = t
            elif kind == "leave":
                call = stack.pop()
                event = Event(loc, i, t, kind, call, {})
                call.leave = event
                loc.steps.append((i, call, t - last, t))
                last = t
                if is_parallel(call.name):
                    loc.parallel = call
            else:
                event = Event(loc, i, t, kind, stack[-1] if stack else None, fields)
                if kind == "fork":
                    fork = t
                elif kind == "join":
                    # So does the way from the region to the join.
                    loc.steps.append((i, loc.parallel, t - last, t))
                    last = t
                elif kind == "team_begin":
                    loc.teams.append(event)
                    event.base, event.fork = stack[-1] if stack else None, fork
                    if loc.thread:
                        begin = self._begin_of_master(loc, event)
                        base, fork = begin.base, begin.fork
                elif kind == "task_create" and stack:
                    self.creations[event.task] = stack[-1]
            # The outermost call of a task follows its first switch.
            task = event.task if kind == "task_switch" else None
            loc.events.append(event)
        assert not stack, f"location {loc.rank}.{loc.thread} ends inside {stack[-1].name}"

    def _begin_of_master(self, worker, begin):
        """Return the begin of the same team on the master: the k-th of both match."""
        master = self.by_rank[worker.rank]
        k = sum(1 for b in worker.teams[:-1] if b.team == begin.team)
        return [b for b in master.teams if b.team == begin.team][k]


def read(anchor):
    with otf2.reader.open(str(anchor), batch_events=10000) as reader:
        world = None
        for group in reader.definitions.groups:
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI:
                world = {member._ref: rank for rank, member in enumerate(group.members)}
        streams, place = {}, {}
        ranks = {}  # of location groups
        for loc in reader.definitions.locations:
            if loc.type != LocationType.CPU_THREAD:
                continue
            if world and loc._ref in world:
                ranks[loc.group._ref] = world[loc._ref]
        threads = defaultdict(int)
        for loc in reader.definitions.locations:
            if loc.type != LocationType.CPU_THREAD:
                continue
            rank = ranks.get(loc.group._ref, loc.group._ref)
            place[loc._ref] = (rank, threads[rank])
            streams[place[loc._ref]] = []
            threads[rank] += 1

        comms = {}
        for comm in reader.definitions.comms:
            group = comm.group
            if group.group_type == GroupType.COMM_SELF:
                comms[comm._ref] = None
            elif group.paradigm == Paradigm.MPI:
                comms[comm._ref] = [place[member._ref][0] for member in group.members]
        names = {}

        def region(r):
            names[r._ref] = r.name
            return {"region": ((r._ref, r.name, str(r.paradigm).rpartition(".")[2]), r.name)}

        pending = defaultdict(list)  # buffer flushes, put in behind the last event that is not later

        def put(key, t, kind, **fields):
            while pending[key] and pending[key][0][0] < t:
                streams[key].append(pending[key].pop(0))
            streams[key].append((t, kind, fields))

        for loc, e in reader.events:
            if loc._ref not in place:
                continue
            key, t = place[loc._ref], e.time
            if isinstance(e, ev.Enter):
                put(key, t, "enter", **region(e.region))
            elif isinstance(e, ev.Leave):
                put(key, t, "leave")
            elif isinstance(e, ev.ProgramBegin):
                name = e.program_name.rsplit("/", 1)[-1]
                put(key, t, "enter", region=(("program", name, "PROGRAM"), name))
            elif isinstance(e, ev.ProgramEnd):
                put(key, t, "leave")
            elif isinstance(e, ev.BufferFlush):
                name = "TRACE BUFFER FLUSH"
                pending[key] += [
                    (t, "enter", {"region": (("flush", name, "MEASUREMENT"), name)}),
                    (e.stop_time, "leave", {}),
                ]
            elif isinstance(e, ev.MpiSend):
                put(key, t, "send", comm=e.communicator._ref, peer=e.receiver, tag=e.msg_tag, bytes=e.msg_length)
            elif isinstance(e, ev.MpiIsend):
                put(
                    key,
                    t,
                    "isend",
                    comm=e.communicator._ref,
                    peer=e.receiver,
                    tag=e.msg_tag,
                    bytes=e.msg_length,
                    request=e.request_id,
                    count=attribute(e, "partitions"),
                )
            elif isinstance(e, ev.MpiRequestTest) and e.attributes:
                first, last = attribute(e, "first partition"), attribute(e, "last partition")
                put(key, t, "partitions", request=e.request_id, first=first, last=last)
            elif isinstance(e, ev.MpiIsendComplete):
                put(key, t, "isend_complete", request=e.request_id)
            elif isinstance(e, ev.MpiRecv):
                put(key, t, "recv", comm=e.communicator._ref, peer=e.sender, tag=e.msg_tag, bytes=e.msg_length)
            elif isinstance(e, ev.MpiIrecvRequest):
                put(key, t, "irecv_request", request=e.request_id, count=attribute(e, "partitions"))
            elif isinstance(e, ev.MpiIrecv):
                put(
                    key,
                    t,
                    "irecv",
                    comm=e.communicator._ref,
                    peer=e.sender,
                    tag=e.msg_tag,
                    bytes=e.msg_length,
                    request=e.request_id,
                )
            elif isinstance(e, ev.MpiRequestCancelled):
                put(key, t, "cancelled", request=e.request_id)
            elif isinstance(e, ev.MpiCollectiveBegin):
                put(key, t, "coll_begin")
            elif isinstance(e, ev.MpiCollectiveEnd):
                put(
                    key,
                    t,
                    "coll_end",
                    comm=e.communicator._ref,
                    op=str(e.collective_op).rpartition(".")[2],
                    root=e.root,
                    sent=e.size_sent,
                    received=e.size_received,
                )
            elif isinstance(e, ev.ThreadAcquireLock | ev.OmpAcquireLock | ev.ThreadReleaseLock | ev.OmpReleaseLock):
                kind = "acquire" if isinstance(e, ev.ThreadAcquireLock | ev.OmpAcquireLock) else "release"
                put(key, t, kind, lock=(getattr(e, "model", Paradigm.OPENMP), e.lock_id), order=e.acquisition_order)
            elif isinstance(e, ev.NonBlockingCollectiveComplete):
                put(key, t, "nonblocking")
            elif isinstance(e, ev.ThreadCreate | ev.ThreadBegin | ev.ThreadWait | ev.ThreadEnd):
                kind = f"thread_{type(e).__name__.removeprefix('Thread').lower()}"
                put(key, t, kind, life=(e.thread_contingent._ref, e.sequence_count))
            elif isinstance(e, ev.ThreadTaskCreate | ev.ThreadTaskSwitch | ev.ThreadTaskComplete):
                kind = f"task_{type(e).__name__.removeprefix('ThreadTask').lower()}"
                put(key, t, kind, task=(key[0], e.creating_thread, e.generation_number))
            elif isinstance(e, ev.ThreadFork):
                put(key, t, "fork", threads=e.number_of_requested_threads)
            elif isinstance(e, ev.ThreadJoin):
                put(key, t, "join")
            elif isinstance(e, ev.ThreadTeamBegin):
                put(key, t, "team_begin", team=e.thread_team._ref)
            elif isinstance(e, ev.ThreadTeamEnd):
                put(key, t, "team_end", team=e.thread_team._ref)
        # OpenSHMEM also synchronizes where it records no window.
        libraries = {region.paradigm for region in reader.definitions.regions}
        is_one_sided = bool(reader.definitions.rma_wins) or Paradigm.SHMEM in libraries
        return Trace(reader.timer_resolution, streams, comms, anchor, is_one_sided)


# --------------------------------------------------------------------------------------------------------------------
# Wait states and the synchronization points that they make


class Instance:
    """A wait with its cause: one waiting point, or those of all ranks of a collective."""

    def __init__(self, cls, cause, waiters, group=None, factor=None, begin=None):
        self.cls = cls  # names the cost metric
        self.cause = cause  # Point
        self.waiters = waiters  # list of (Point, wait) that take part, the cause itself excluded
        self.group = group  # communicator ranks of a collective, None for a pair
        self.factor, self.begin = factor, begin  # of idleness: idle threads, and the join before it
        # What the waiter knows the causing side as, and the other way round: their processes, if not set.
        self.keys = None


def prune(work, left, completion):
    """Reduce the work in the call of the left point to the part after its synchronization."""
    c = left.path
    if c in work:
        work[c] -= left.total - completion
        if work[c] <= 0:
            del work[c]


class Analysis:
    def __init__(self, trace, model="thesis", limit=LIMIT):
        assert model in ("scalasca", "thesis", "bounded")
        self.trace, self.model, self.is_bounded = trace, "thesis" if model == "bounded" else model, model == "bounded"
        self.limit = limit if model == "scalasca" else None
        self.values = defaultdict(float)  # (metric, call path, rank, thread) -> ticks
        self.instances = []
        self.lock_waits = []  # points, classes, and when who owns the lock
        self.find_p2p()
        self.find_collectives()
        self.finalizes = []
        self.find_init_and_finalize()
        self.find_openmp()
        if self.model == "thesis":
            self.find_one_sided()
            self.find_nonblocking()
            self.find_creations()
            self.find_waits_for_locks()
            naive_posix_causes.find(self)
            naive_task_causes.find(self)
        self.number = self.number_callpaths()
        self.cut()
        self.costs()
        self.critical_path()

    def add(self, metric, point, ticks, path=None):
        if ticks:
            self.values[metric, path or point.path, point.loc.rank, point.loc.thread] += ticks

    def point(self, event, wait, completion, partners, cls, total=None):
        """Add a point, or partners to that of its event."""
        if event.i not in event.loc.points:
            p = Point(event, wait, cls, total)
            event.loc.points[p.at] = p
        for partner in partners:
            event.loc.points[event.i].partners.setdefault(partner, completion)
        return event.loc.points[event.i]

    @cached_property
    def calls(self):
        """The calls of all locations by process, thread, name, Enter, and Leave."""
        events = [e for loc in self.trace.locations for e in loc.events if e.kind == "enter"]
        return {(e.loc.rank, e.loc.thread, e.call.name, e.call.E, e.call.L): e.call for e in events}

    def call_of(self, instance):
        """Return the call that other oracles have as an instance."""
        return self.calls[instance.thread.rank, instance.thread.number, instance.name, instance.enter, instance.leave]

    def partitions(self, begin):
        """Return the records of calls that made parts of a message ready, or have found one, with these parts."""
        count = getattr(begin, "count", None)
        if count is None:
            return []
        of_rank = [e for loc in self.trace.locations if loc.rank == begin.loc.rank for e in loc.events]
        same = [e for e in of_rank if getattr(e, "request", None) == begin.request]
        until = min((e.t for e in same if e.kind == begin.kind and e.t > begin.t), default=math.inf)
        parts = [e for e in same if e.kind == "partitions" and begin.t <= e.t < until]
        for e in parts:
            e.of = Fraction(e.first, count), Fraction(e.last + 1, count)
        return sorted(parts, key=lambda e: e.call.E)

    def find_p2p(self):
        sends, receives = defaultdict(list), defaultdict(list)
        for loc in self.trace.locations:
            active = {}
            for e in loc.events:
                if e.kind in ("isend", "irecv_request"):
                    active[e.request] = e
                    e.cmp = None
                elif e.kind == "isend_complete":
                    if e.request in active:
                        active.pop(e.request).cmp = e
                elif e.kind == "cancelled":
                    active.pop(e.request, None)
                elif e.kind == "irecv":
                    e.req = active.pop(e.request, None)
                elif e.kind == "send":
                    e.cmp = e
                elif e.kind == "recv":
                    e.req = e
                if e.kind in ("send", "isend"):
                    e.partner = self.trace.members(e.comm, loc.rank)[e.peer]
                    sends[e.comm, loc.rank, e.partner, e.tag].append(e)
                elif e.kind in ("recv", "irecv"):
                    e.partner = self.trace.members(e.comm, loc.rank)[e.peer]
                    receives[e.comm, e.partner, loc.rank, e.tag].append(e)
        messages = [(s, r) for key in receives for s, r in zip(sends[key], receives[key], strict=False)]

        # Of equal waits in a call the first counts, in the order of the receives, then of the sends.
        late, sender_late_calls = {}, set()
        for s, r in sorted(messages, key=lambda message: message[1].i):
            parts = self.partitions(s)
            for one in self.partitions(r.req) if parts else ():
                is_whole = parts[-1].call.E <= one.call.L
                needed = [p for p in parts if is_whole or (p.of[0] < one.of[1] and one.of[0] < p.of[1])]
                found = min(needed[-1].call.E, one.call.L) - one.call.E if needed else 0
                if found > 0 and one.call.name == "MPI_Parrived (polling)":
                    late[one] = (found, needed[-1], one)
            sending = parts[-1] if parts else s
            idle = min(sending.call.E, r.call.L) - r.call.E
            if idle <= 0 or r.call.name in TESTS:
                continue
            key = r
            if r.call.name in WAIT_MANY:
                sender_late_calls.add(r.call)
                key = r.call
            if key not in late or idle > late[key][0]:
                late[key] = (idle, sending, r)
        for idle, s, r in late.values():
            self.add("mpi_latesender", r, idle)
            waiter = self.point(r, idle, max(0, r.call.L - s.call.L), {s.loc.rank}, "latesender")
            cause = self.point(s, 0, max(0, s.call.L - r.call.L), {r.loc.rank}, "latesender")
            self.instances.append(Instance("latesender", cause, [(waiter, idle)]))

        late = {}
        for s, r in sorted(messages, key=lambda message: message[0].i):
            k, q = s.cmp, r.req
            if k is None or q is None:
                continue
            idle = q.call.E - k.call.E
            if idle <= 0 or k.call.L <= q.call.E:
                continue
            if k.call.name in ("MPI_Send", "MPI_Ssend") or k.call.name in WAIT_ONE:
                key = k
            elif k.call.name in WAIT_MANY:
                if k.call in sender_late_calls:
                    continue
                key = k.call
            else:
                continue
            if key not in late or idle > late[key][0]:
                late[key] = (idle, k, q)
        for idle, k, q in late.values():
            self.add("mpi_latereceiver", k, idle)
            # Release 2.6 has the comparison reversed: a completion on the waiting side is none or even negative.
            completion = (max if self.model == "thesis" else min)(0, k.call.L - q.call.L)
            waiter = self.point(k, idle, completion, {q.loc.rank}, "latereceiver")
            cause = self.point(q, 0, max(0, q.call.L - k.call.L), {k.loc.rank}, "latereceiver")
            self.instances.append(Instance("latereceiver", cause, [(waiter, idle)]))

    def find_collectives(self):
        calls = defaultdict(lambda: defaultdict(list))  # comm -> rank -> its collectives
        for loc in self.trace.locations:
            begin = None
            for e in loc.events:
                if e.kind == "coll_begin":
                    begin = e.t
                elif e.kind == "coll_end":
                    e.begin = begin
                    calls[e.comm][loc.rank].append(e)
        for comm, by_rank in calls.items():
            ranks = self.trace.comms[comm]
            if ranks is None or len(ranks) == 1:
                continue
            for ends in zip(*(by_rank[r] for r in ranks), strict=False):
                self.collective(ranks, ends)

    def collective(self, ranks, ends):
        op = ends[0].op
        B, X = [e.begin for e in ends], [e.t for e in ends]
        n = range(len(ends))

        def latest_of(candidates):
            return max(candidates, key=lambda i: (B[i], -i))

        varies = op in {"ALLTOALLV", "ALLTOALLW"} and self.model == "thesis"
        if varies and not (all(e.sent and e.received for e in ends) and min(X) > max(B)):
            return
        if op in BARRIER or op in N_TO_N or varies:
            # Who neither sends nor receives does not take part in an exchange.
            present = [i for i in n if op in BARRIER or ends[i].sent > 0 or ends[i].received > 0]
            if not present:
                return
            if op in BARRIER or min(X[i] for i in present) > max(B[i] for i in present):
                taking = present
                culprit = latest_of(present)
            else:
                senders = [i for i in n if ends[i].sent > 0]
                if not senders:
                    return
                culprit = latest_of(senders)
                taking = [
                    i for i in n if (ends[i].received > 0 and B[i] < B[culprit]) or (ends[i].sent > 0 and i == culprit)
                ]
            cls = "barrier" if op in BARRIER else "n2n"
            first = min(X[i] for i in taking)
            waits, completions = {}, {}
            for i in taking:
                lb = min(B[culprit], X[i])
                waits[i] = max(0, lb - B[i])
                completions[i] = max(0, X[i] - max(first, lb))
            partners = {i: {ranks[j] for j in taking} for i in taking}
            metric = "mpi_barrier_completion" if op in BARRIER else "mpi_nxn_completion"
            for i in taking:
                if not varies:
                    self.add(metric, ends[i], completions[i])
        elif op in ONE_TO_N:
            culprit = ends[0].root
            if ends[culprit].sent == 0:
                return
            taking = [i for i in n if i != culprit and ends[i].received > 0 and B[i] < B[culprit]]
            if not taking:
                return
            cls = "12n"
            first = min(X[i] for i in taking)
            waits = {i: max(0, min(B[culprit], X[i]) - B[i]) for i in taking}
            partners = {i: {ranks[culprit]} for i in taking}
            partners[culprit] = {ranks[i] for i in taking}
            waits[culprit] = 0
            taking = [*taking, culprit]
            completions = {i: max(0, X[i] - max(first, B[culprit])) for i in taking}
        elif op in N_TO_ONE:
            root = ends[0].root
            senders = [i for i in n if ends[i].sent > 0]
            if ends[root].received > 0:
                self.in_tree(ranks, ends, [i for i in n if i == root or ends[i].sent > 0])
            if ends[root].received == 0 or not senders:
                return
            culprit = latest_of(senders)
            if not B[root] < B[culprit]:
                return
            cls = "n21"
            waits = {root: min(B[culprit], X[root]) - B[root], culprit: 0}
            taking = [root, culprit]
            partners = {root: {ranks[culprit]}, culprit: {ranks[root]}}
            completions = {i: max(0, X[i] - B[culprit]) for i in taking}
        elif op in ("SCAN", "EXSCAN"):
            for i in n:
                senders = [j for j in range(i) if ends[j].sent > 0]
                if not senders or not ends[i].received or B[i] >= max(B[j] for j in senders):
                    continue
                self.one_needs(ranks, ends, i, latest_of(senders), "mpi_earlyscan", "n2n")
            return
        else:
            return
        for i in taking:
            self.add("mpi_alltoallv_wait" if varies else COLLECTIVE_METRIC[cls], ends[i], waits[i])
        points = {i: self.point(ends[i], waits[i], completions[i], partners[i], cls) for i in taking}
        if culprit in taking:
            waiters = [(points[i], waits[i]) for i in taking if i != culprit]
            self.instances.append(Instance(cls, points[culprit], waiters, ranks))

    def in_tree(self, ranks, ends, taking):
        """Add waits for others of the tree that an N-to-1 operation is made of (specification.md#trees)."""
        for i in taking:
            own = ends[i]
            come = [j for j in taking if own.begin < ends[j].begin < own.t]
            if i == own.root or not come:
                continue
            last = max(come, key=lambda j: (ends[j].begin, -j))
            if 5 * len(come) * (own.t - ends[last].begin) <= own.t - own.begin:
                self.one_needs(ranks, ends, i, last, "mpi_tree_wait", "tree")

    def one_needs(self, ranks, ends, i, last, metric, cls):
        """Add the wait of a member for another one; without costs in release 2.6."""
        own, begin = ends[i], ends[last].begin
        waiting = min(begin, own.t) - own.begin
        self.add(metric, own, waiting)
        if self.model == "thesis":
            waiter = self.point(own, waiting, max(0, own.t - begin), {ranks[last]}, cls)
            cause = self.point(ends[last], 0, max(0, ends[last].t - begin), {ranks[i]}, cls)
            self.instances.append(Instance(cls, cause, [(waiter, waiting)], ranks))

    def find_init_and_finalize(self):
        for names, is_init in ((INIT, True), ({"MPI_Finalize"}, False)):
            calls = {}
            for rank, loc in self.trace.by_rank.items():
                for e in loc.events:
                    if e.kind == "leave" and e.call.name in names:
                        calls[rank] = e
                        break
            if not calls:
                continue
            latest = max(e.call.E for e in calls.values())
            first = min(e.call.L for e in calls.values())
            # Scalasca computes no costs of waits in MPI_Finalize; otherwise it is a barrier.
            has_costs = not is_init and self.model == "thesis"
            cls = "barrier" if has_costs else "init" if is_init else "finalize"
            points = {}
            for rank, e in calls.items():
                lb = min(latest, e.call.L)
                wait = 0 if is_init else max(0, lb - e.call.E)
                completion = max(0, e.call.L - max(first, lb))
                if is_init:
                    self.add("mpi_init_completion", e, completion)
                else:
                    self.add("mpi_finalize_wait", e, wait)
                points[rank] = self.point(e, wait, completion, set(self.trace.by_rank), cls), wait
            if not is_init:
                self.finalizes = [point for point, _ in points.values()]
            if has_costs:
                culprit = min(rank for rank, e in calls.items() if latest == e.call.E)
                waiters = [of_rank for rank, of_rank in points.items() if rank != culprit]
                self.instances.append(Instance(cls, points[culprit][0], waiters, set(self.trace.by_rank)))

    def find_creations(self):
        """Add waits in calls that create communicators or open files (specification.md#inferred-synchronization)."""
        calls = defaultdict(lambda: defaultdict(list))
        for rank, loc in self.trace.by_rank.items():
            recorded = {e.call for e in loc.events if e.kind == "coll_end"}
            for e in loc.events:
                if e.kind == "leave" and e.call.name in naive.CREATORS | naive.FILES and e.call not in recorded:
                    calls[e.call.name][rank].append(e)
        everybody = set(self.trace.by_rank)
        for by_rank in calls.values():
            counts = {len(of_rank) for of_rank in by_rank.values()}
            if len(everybody) == 1 or by_rank.keys() != everybody or len(counts) > 1:
                continue
            for ends in zip(*(by_rank[rank] for rank in sorted(everybody)), strict=True):
                latest, first = max(e.call.E for e in ends), min(e.call.L for e in ends)
                if first <= latest:
                    continue
                points = [
                    (self.point(e, latest - e.call.E, e.call.L - first, everybody, "barrier"), latest - e.call.E)
                    for e in ends
                ]
                culprit = next(i for i, e in enumerate(ends) if latest == e.call.E)
                waiters = [point for i, point in enumerate(points) if i != culprit]
                self.instances.append(Instance("barrier", points[culprit][0], waiters, everybody))

    def find_openmp(self):
        by_process = defaultdict(list)
        for loc in self.trace.locations:
            by_process[loc.rank].append(loc)
        for threads in by_process.values():
            self.openmp_process(threads)

    def openmp_process(self, threads):
        # The k-th parallel region of a thread is the k-th of the master: a thread is in all teams or in none.
        regions = {loc: [] for loc in threads if any(e.kind == "team_begin" for e in loc.events)}
        for loc in threads:
            for e in loc.events:
                if e.kind == "enter" and is_parallel(e.call.name):
                    regions[loc].append((e, []))
                elif e.kind == "leave" and is_omp_barrier(e.call.name) and regions[loc]:
                    regions[loc][-1][1].append(e)
        master = threads[0]
        has_tasks = self.model == "thesis" and any(e.kind == "task_switch" for loc in threads for e in loc.events)
        join = None
        for team in zip(*regions.values(), strict=True):
            forks = [e for e, _ in team]
            first = min(e.t for e in forks)
            # Release 2.6 has no other synchronization of threads.
            others = [("thread", e.loc.thread) for e in forks] if self.model == "thesis" else []
            for e in forks:
                p = self.point(e, 0, None, set(), "fork", total=e.t - e.fork)
                p.after = e.t - first
                p.partners = dict.fromkeys(others, p.after)
                p.master = forks[0].loc.points[forks[0].i]
                p.joined = -1 if join is None else join
            self.instances.append(Instance("ompidle", p.master, [], factor=len(team) - 1, begin=join))
            for barrier in zip(*(leaves for _, leaves in team), strict=True):
                latest = max(e.call.E for e in barrier)
                culprit = next(e for e in barrier if latest == e.call.E)
                metric = "omp_ebarrier_wait" if culprit.call.name.startswith("!$omp barrier") else "omp_ibarrier_wait"
                points = []
                for e in barrier:
                    moments = naive_task_causes.idle(e.call, latest)
                    wait = sum(b - a for a, b in moments) if self.model == "thesis" else latest - e.call.E
                    self.add(metric, e, wait)
                    p = self.point(e, 0 if has_tasks else wait, None, set(), "ompbarrier")
                    p.partners = dict.fromkeys(others, 0)
                    if has_tasks:
                        # What it runs after all have come is not part of this interval, nor of the next one.
                        p = naive_task_causes.arrival(e, latest, wait)
                    p.after, p.moments = 0, moments
                    points.append(p)
                for p in points:
                    p.ready = p.event.loc.points[p.event.i].ready = [b for b in points if latest == b.event.call.E]
                waiters = [(p, p.wait) for p in points if p.event is not culprit]
                cause = next(p for p in points if p.event is culprit)
                self.instances.append(Instance("ompbarrier", cause, waiters))
                self.instances[-1].has_tasks = has_tasks
            join = next((e.i + 1 for e in master.events[forks[0].call.leave.i :] if e.kind == "join"), None)
        if join is not None:
            end = self.end_of(master)
            self.instances.append(Instance("ompidle", end, [], factor=len(team) - 1, begin=join))

    @staticmethod
    def end_of(loc):
        return Point(Event(loc, len(loc.events), loc.events[-1].t, "end", None, {}), 0, "end", 0)

    def find_one_sided(self):
        """Add points and instances of one-sided wait states, which tests/naive_rma.py finds."""
        if not self.trace.is_one_sided:
            return
        found = naive_rma.Analysis(naive.Trace(self.trace.anchor))
        calls = {}
        for loc in self.trace.locations:
            for e in loc.events:
                if e.kind == "leave":
                    key = (loc.rank, tuple(r[1] for r in e.call.path))
                    calls.setdefault((*key, e.call.E, e.call.L), e.call)
                    calls.setdefault((*key, "from", e.call.E), e.call)
                    calls.setdefault((*key, "to", e.call.L), e.call)
        for parts in found.instances():
            mine = [calls[p.rank, p.call.callpath, p.call.enter, p.call.leave] for p in parts]
            self.window_collective(parts, mine)
        for w in found.result.waits:
            kind = w.metric.partition("_rma_")[2].removeprefix("sync_").removeprefix("comm_").removeprefix("active_")
            if kind in PAIRS:
                waiter = calls[w.rank, w.callpath, w.enter, w.leave]
                cause = calls[
                    w.cause_rank, w.cause_callpath, "from" if kind != "lock_competition" else "to", w.cause_time
                ]
                self.add(w.metric, waiter.leave, w.waiting)
                self.one_sided_pair(PAIRS[kind], waiter, w.waiting, cause, w.cause_time)

    def find_nonblocking(self):
        """Add the waits that end when another call begins, which tests/naive.py finds."""
        events = [e for loc in self.trace.locations for e in loc.events]
        names = {e.call.name for e in events if e.kind == "enter"}
        mark = ("MPI_Probe", "MPI_Neighbor_", "MPI_Sendrecv", "MPI_Isendrecv", "MPI_Waitall", "MPI_Waitsome")
        has_calls = any(name.startswith(mark) for name in names)
        if not has_calls and not any(e.kind == "nonblocking" for e in events):
            return
        calls = {}
        for loc in self.trace.locations:
            for e in loc.events:
                if e.kind == "enter":
                    calls[loc.rank, loc.thread, tuple(r[1] for r in e.path), e.t] = e.call
        result = naive.analyze(naive.Trace(self.trace.anchor))
        for w in result.waits:
            if w.kind not in NONBLOCKING:
                continue
            waiter = calls[w.rank, w.thread, w.callpath, w.enter]
            before = sum(p.wait for p in waiter.leave.loc.points.values() if p.event.call is waiter)
            cause = calls[w.cause_rank, w.cause_thread, w.cause_callpath, w.cause_enter]
            self.one_sided_pair(NONBLOCKING[w.kind], waiter, w.waiting, cause, w.enter + before + w.waiting)
        for waiting, met in synchronized(naive.Trace(self.trace.anchor)):
            points = [calls[i.thread.rank, i.thread.number, i.callpath, i.enter].leave for i in waiting]
            points = [e.loc.points.get(e.i) or self.point(e, 0, 0, set(), "n2n") for e in points]
            for p in points:
                others = [other.loc.rank for other in points if other is not p]
                p.partners.update(dict.fromkeys(others, p.event.call.L - met))

    def find_waits_for_locks(self):
        """Add the waits for locks of threads (specification.md#locks-of-threads) and who owns the lock meanwhile."""
        records = defaultdict(list)
        for loc in self.trace.locations:
            waiting, team = None, 0
            for e in loc.events:
                team += e.kind == "team_begin"
                if e.kind in ("acquire", "release"):
                    name, enter, until = (e.call.name, e.call.E, e.call.L) if e.call else ("", e.t, e.t)
                    place, acquires = (loc.thread, e.t), e.kind == "acquire"
                    record = naive_threads.Record(*place, acquires, e.lock, e.order, e.call, name, enter, until)
                    records[loc.rank, e.lock].append(record)
                elif e.kind == "enter" and e.call.name.startswith("!$omp ordered sblock"):
                    if waiting:
                        lock, block = (team, e.call.region), e.call
                        times = waiting.name, waiting.E, block.E
                        begin = naive_threads.Record(loc.thread, block.E, True, lock, 0, waiting, *times)
                        end = naive_threads.Record(
                            loc.thread, block.L, False, lock, 0, block, block.name, block.E, block.L
                        )
                        records[loc.rank, lock] += [begin, end]
                elif e.kind == "enter" and e.call.name.startswith("!$omp ordered"):
                    waiting = e.call
        for (rank, _), of_lock in records.items():
            threads = {loc.thread: loc for loc in self.trace.locations if loc.rank == rank}
            ends = {thread: loc.events[-1].t for thread, loc in threads.items() if loc.events}
            owners = naive_threads.ownerships(of_lock, ends)
            for wait in naive_threads.waits(owners):
                call, release = wait.own.acquire.call, wait.cause.release.call
                if not contends(call) or "cond" in call.name:
                    continue
                loc = threads[wait.own.thread]
                at = call.enter.i + 0.5
                e = loc.points[at] = Point(call.enter, wait.end - wait.begin, "threadlock", at=at)
                if release:
                    e.cause = self.released(threads[wait.cause.thread], wait.cause.release)
                owned = naive_threads.pieces(owners, wait.begin, wait.end)
                self.lock_waits.append((e, "threadlock", [(a, b, own and threads[own.thread]) for a, b, own in owned]))

    @staticmethod
    def released(loc, release):
        """Return a place of a release, which is no point: nothing at or after its record belongs to the path."""
        records = (e for e in loc.events if e.kind == "release" and (e.t, e.lock[1]) == (release.time, release.lock[1]))
        record = next(records, None)
        if record is None:
            # The end of a block.
            record = next(e for e in loc.events if e.kind == "leave" and e.t == release.time)
        end = next(e for e in loc.events[record.i :] if e.kind in ("enter", "leave"))
        place = Point(end, 0, "release", total=0, at=end.i + 0.5)
        place.path, place.first = record.path, record.i
        loc.releases.add(place.at)
        return place

    @staticmethod
    def owner_waits(pieces):
        """Return the waits of owners in pieces of time, with the lengths of their parts."""
        parts = defaultdict(int)
        for a, b, loc in pieces:
            for p in loc.points.values() if loc else ():
                if ticks := p.waits_within(a, b):
                    parts[p] += ticks
        return parts

    def charge_owners(self, e, cls, pieces):
        """Charge a wait for a lock to what its owners do meanwhile (thesis, equations 4.14 to 4.19, with r = W / w)."""
        metric = f"interval_delay_{'task' if cls == 'task' else 'lock'}"
        phi = {K: v / e.wait for K, v in e.phi.items()}
        later = sum(phi.values())
        for a, b, loc in pieces:
            if loc is None:
                self.add("wait_unexplained", e, b - a)
                self.add("delay_unattributed", e, (b - a) * (1 + later))
                continue
            meanwhile = self.owner_waits([(a, b, loc)])
            idle = b - a - sum(max(0, min(b, left) - max(a, entered)) for _, entered, left in running(loc))
            self.add("wait_unexplained", e, idle)
            self.add("delay_unattributed", e, idle * (1 + later))
            for path, entered, left in running(loc):
                since, to = max(a, entered), min(b, left)
                ticks = to - since - sum(p.waits_within(since, to) for p in meanwhile)
                if to > since and ticks > 0:
                    self.values[metric, path, loc.rank, loc.thread] += ticks
                    self.values[f"{metric}_longterm", path, loc.rank, loc.thread] += ticks * later
        parts = self.owner_waits(pieces)
        for p, ticks in parts.items():
            p.phi[cls] += ticks
            for K, v in phi.items():
                p.phi[K] += ticks * v
            p.propagating = max(p.propagating, ticks)
        self.add(f"mpi_wait_indirect_{cls}", e, sum(parts.values()))

    def window_collective(self, parts, calls):
        """Create and free synchronize all members; a fence too, if all are in it at the same time."""
        kind = parts[0].kind
        latest, first = max(c.E for c in calls), min(c.L for c in calls)
        if len(calls) < 2:
            return
        if not latest < first and kind not in {*naive_rma.CREATES, *naive_rma.FREES}:
            if naive_rma.interface(parts[0].call) == "mpi":
                self.loose_fences(parts, calls)
            return
        cls = "rma_create" if kind in naive_rma.CREATES else "rma_free" if kind in naive_rma.FREES else "rma_fence"
        ranks = {c.enter.loc.rank for c in calls}
        points = []
        for c in calls:
            until = min(latest, c.L)
            points.append(self.point(c.leave, until - c.E, c.L - max(first, until), ranks, cls))
        cause = min((p for p in points if not p.wait), key=lambda p: p.loc.rank)
        for p in points:
            self.add(f"mpi_rma_wait_at_{cls[4:]}", p, p.wait)
        self.instances.append(Instance(cls, cause, [(p, p.wait) for p in points if p is not cause], ranks))

    def loose_fences(self, parts, calls):
        """Let each fence wait for the last one of those that accessed its process."""
        for part, call in zip(parts, calls, strict=True):
            others = zip(parts, calls, strict=True)
            origins = [c for p, c in others if p is not part and any(op.target == part.rank for op in p.ops)]
            last = max(origins, key=lambda c: (c.E, -c.enter.loc.rank), default=None)
            if last is None or last.E <= call.E:
                continue
            met = min(last.E, call.L)
            waiter = self.point(call.leave, met - call.E, call.L - met, {last.enter.loc.rank}, "rma_fence")
            cause = self.point(last.leave, 0, max(0, last.L - met), {call.enter.loc.rank}, "rma_fence")
            self.add("mpi_rma_wait_at_fence", waiter, waiter.wait)
            self.instances.append(Instance("rma_fence", cause, [(waiter, waiter.wait)]))

    def one_sided_pair(self, cls, waiter, wait, cause, end):
        """Add a wait of a call for another one. A call with several roles or waits has one point."""
        w = waiter.leave.loc.points.get(waiter.leave.i)
        if w is None:
            w = waiter.leave.loc.points[waiter.leave.i] = Point(waiter.leave, 0, cls)
        if not w.wait:
            w.cls, w.held = cls, 0
        w.wait += wait
        w.parts.append((cls, wait))
        passes_by = cls == "rma_progress" or cls in NONBLOCKING.values()
        at = cause.enter.i + 0.5 if passes_by else cause.leave.i + (0.5 if cls == "lock" else 0)
        loc = cause.leave.loc
        if at not in loc.points:
            # What was released is over: a release has no time after it.
            loc.points[at] = Point(cause.leave, 0, cls, total=0 if cls == "lock" else None, at=at)
        c = loc.points[at]
        if end - waiter.E > w.held:
            w.held = min(end, waiter.L) - waiter.E
            w.last = c
        if cls == "lock":
            w.contenders.add(loc.rank)
            c.contenders.add(w.loc.rank)
        elif passes_by:
            # The target only passes by: they met when it began its call, and all that follows is work.
            w.partners[loc.rank] = max(0, waiter.L - cause.E)
            c.partners[w.loc.rank] = c.total
        else:
            w.partners[loc.rank] = max(0, waiter.L - cause.L)
            c.partners[w.loc.rank] = max(0, cause.L - waiter.L)
        self.instances.append(Instance(cls, c, [(w, wait)]))

    # ----------------------------------------------------------------------------------------------------------------
    # Intervals

    def cut(self):
        """Divide the time of every location at its points, because intervals extend from point to point."""
        for loc in self.trace.locations:
            loc.sorted_points = sorted(loc.points.values(), key=lambda p: p.at)
            loc.positions = [p.at for p in loc.sorted_points]
            at = {*loc.positions, *loc.releases}
            # Release 2.6 also cuts at every receive and receive request; with its limit of entries that matters.
            at |= {e.i for e in loc.events if e.kind in ("recv", "irecv_request")}
            at |= {e.i + 1 for e in loc.events if e.kind == "join"}
            loc.cuts = [-1, *sorted(at), len(loc.events) + 1]
            loc.blocks = [defaultdict(int) for _ in loc.cuts]
            for i, path, ticks, _ in loc.steps:
                loc.blocks[bisect_right(loc.cuts, i) - 1][path] += ticks
            if loc.thread and self.model == "scalasca":
                # Release 2.6 loses what a worker does from the last barrier of a parallel region on.
                for p, after in zip_longest(loc.sorted_points, loc.sorted_points[1:]):
                    if p.cls == "ompbarrier" and (after is None or after.cls == "fork"):
                        loc.blocks[loc.cuts.index(p.at)].clear()

    def number_callpaths(self):
        """Number call paths by their first visit, process by process."""
        number = {}
        for loc in self.trace.locations:
            for e in loc.events:
                if e.kind == "enter":
                    number.setdefault(e.call.path, len(number))
        return number

    def profile(self, loc, a, b):
        """Return the time by call path from position a to position b, exclusively.

        The time before an Enter or Leave is had at that Enter or Leave. So the whole call that holds a point lies to
        the right of it: the Enter, which ends the time before the call, is left of the point, the Leave right of it.
        """
        times = defaultdict(int)
        k = bisect_left(loc.cuts, a)
        while loc.cuts[k] < b:
            for path in sorted(loc.blocks[k], key=self.number.get):
                ticks = loc.blocks[k][path]
                if path not in times and len(times) == self.limit:
                    smallest = min(times, key=times.get)
                    if ticks <= times[smallest]:
                        continue
                    del times[smallest]
                times[path] += ticks
            k += 1
        return times

    def waits(self, loc, a, b):
        inside = slice(bisect_right(loc.positions, a), bisect_left(loc.positions, b))
        return [p for p in loc.sorted_points[inside] if p.wait > 0]

    def work(self, loc, a, b, between):
        work = self.profile(loc, a, b)
        for p in between:
            work[p.path] -= p.wait
        return {c: t for c, t in work.items() if t > 0}

    def stretches(self, point):
        """Yield the past of a point, latest first: locations, and the positions between which it ran there.

        A thread that communicates is its master before it is forked, back to the last join, or the one that creates it.
        """
        loc, b = point.loc, point.at
        has_past = self.model == "thesis" and any(
            (p.partners and p.cls not in ("creation", "fork", "ompbarrier")) or p.contenders for p in loc.sorted_points
        )
        if has_past and loc.created:
            begin, creator = loc.created
            yield loc, begin, b
            yield from self.stretches(creator)
            return
        if has_past and loc.thread:
            for fork in reversed([p for p in loc.sorted_points if p.cls == "fork" and p.at < point.at]):
                yield loc, fork.at, b
                yield fork.master.loc, fork.joined, fork.master.at
                b = fork.at
        yield loc, -1, b

    def previous(self, point, rank, contention=False):
        """Return the latest earlier point at which the process synchronized (or contended) with a rank.

        What another thread was before is not what threads synchronize with.
        """
        for loc, a, b in self.stretches(point):
            for left in self.before(loc, b):
                if left.at < a or (loc is not point.loc and isinstance(rank, tuple)):
                    break
                if rank in left.partners or (contention and rank in left.contenders):
                    return left
        return None

    @staticmethod
    def before(loc, at):
        """Yield the points of a location before a position, latest first."""
        return (loc.sorted_points[i] for i in reversed(range(bisect_left(loc.positions, at))))

    def interval(self, point, rank, contention=False):
        """Return work by call path since the last point with a rank, and the waiting points in between."""
        left = self.previous(point, rank, contention)
        between, times, self.had_by = [], defaultdict(int), defaultdict(set)
        for loc, a, b in self.stretches(point):
            is_last = left is not None and left.loc is loc and a <= left.at < b
            begin = left.at if is_last else a
            between = [*self.waits(loc, begin, b), *between]
            for c, t in self.profile(loc, begin, b).items():
                times[c] += t
                self.had_by[c].add(loc)
            if is_last:
                break
        for p in between:
            times[p.path] -= p.wait
        work = {c: t for c, t in times.items() if t > 0}
        if left:
            prune(work, left, left.completion(rank))
        return left, work, between

    def charge(self, metric, f, ticks, path):
        """Add costs of a call path where it ran: at the thread, or in its past, at its master."""
        if ticks:
            loc = f.loc if f.loc in self.had_by[path] else next(iter(self.had_by[path]))
            self.values[metric, path, loc.rank, loc.thread] += ticks

    # ----------------------------------------------------------------------------------------------------------------
    # Costs

    def in_order(self):
        """Order instances so that the costs that a wait causes are complete before its own cause is charged."""
        pending = {loc: [] for loc in self.trace.locations}  # instances that it caused, latest last
        for x in self.instances:
            pending[x.cause.loc].append(x)
        for xs in pending.values():
            xs.sort(key=lambda x: x.cause.at)

        def has(x, e):
            """Whether a wait lies in what comes before the cause of an instance, on another thread."""
            return x.cause.loc is not e.loc and any(
                loc is e.loc and a <= e.at < b for loc, a, b in self.stretches(x.cause)
            )

        def is_over(e):
            """Nothing that comes after this wait is left, on its thread or on one that has it in its past."""
            others = (x for loc, xs in pending.items() if loc.thread and loc.rank == e.loc.rank for x in xs)
            if any(e in waits for *_, waits in locks):
                return False
            return (not pending[e.loc] or pending[e.loc][-1].cause.at <= e.at) and not any(has(x, e) for x in others)

        def ready(x):
            return all(is_over(e) for e, _ in x.waiters)

        locks = [(e, cls, pieces, self.owner_waits(pieces)) for e, cls, pieces in self.lock_waits]
        left = len(self.instances) + len(locks)
        while left:
            before = left
            for x in [x for x in locks if is_over(x[0])]:
                locks.remove(x)
                yield x[:3]
                left -= 1
            for xs in pending.values():
                while xs and ready(xs[-1]):
                    yield xs.pop()
                    left -= 1
            assert left < before, "waits that cause each other"

    def costs(self):
        for x in self.in_order():
            if isinstance(x, tuple):
                self.charge_owners(*x)
            elif x.cls == "ompidle":
                self.idleness(x)
            elif x.cls == "ompbarrier":
                self.barrier_of_threads(x)
            elif x.cls == "lock":
                ((e, wait),) = x.waiters
                self.contention(x.cause, e, wait)
            elif self.model == "thesis" or x.group is None:
                for e, wait in x.waiters:
                    self.share(x.cls, x.cause, e, wait, x.keys)
            else:
                self.collective_costs(x)
        for loc in self.trace.locations:
            for p in loc.sorted_points:
                if self.model == "thesis" or p.cls in SHORT:
                    # Of all waits of a call the same share propagates.
                    rest = p.wait - sum(wait for _, wait in p.parts)
                    for cls, wait in [*p.parts, (p.cls, rest)]:
                        part = p.propagating * wait / p.wait if wait else 0
                        self.add(f"mpi_wait_propagating_{SHORT.get(cls, cls)}", p, part)

    def costs_of(self, e, wait):
        """Return the propagation costs of a wait, or its share of them if its call waited twice."""
        return {K: v * wait / e.wait for K, v in e.phi.items()} if wait else {}

    def delays(self, f, e, keys=None):
        """Return the delays of the process of f relative to that of e by call path, and its waits in between."""
        of_cause, of_waiter = keys or (f.loc.rank, e.loc.rank)
        other = self.interval(e, of_cause)[1]
        left, work, between = self.interval(f, of_waiter)
        D = {c: t - other.get(c, 0) for c, t in work.items() if t > other.get(c, 0)}
        return left, D, between

    def share(self, cls, f, e, wait, keys=None):
        """Charge a wait at e and its propagation costs to what precedes f (thesis, equations 4.9 to 4.13)."""
        phi = self.costs_of(e, wait)
        _, D, between = self.delays(f, e, keys)
        W = sum(p.wait for p in between)
        total = sum(D.values()) + W
        self.unexplained(e, wait - total)
        if total == 0:
            if self.model == "thesis":
                self.add("delay_unattributed", e, wait + sum(phi.values()))
            return
        rate = self.rate(e, wait, total, phi)
        direct = rate * wait
        if self.model == "scalasca":
            direct = min(direct, 1.0)
        for c, d in D.items():
            self.charge(f"delay_{cls}", f, direct * d, c)
            for K, v in phi.items():
                self.charge(f"delay_{K}_longterm", f, rate * v * d, c)
        for p in between:
            for K, v in phi.items():
                p.phi[K] += rate * v * p.wait
            p.phi[cls] += direct * p.wait
            p.propagating = max(p.propagating, min(direct, 1.0) * p.wait)
        self.add(f"mpi_wait_indirect_{cls}", e, direct * W)

    def unexplained(self, e, ticks):
        """Book the part of a wait that exceeds all its delays and waits."""
        if self.model == "thesis" and ticks > 0:
            self.add("wait_unexplained", e, ticks)

    def contention(self, f, e, wait):
        """Charge a wait for the end of a call (thesis, equations 4.14 to 4.19)."""
        phi = self.costs_of(e, wait)
        _, minus, _ = self.interval(e, f.loc.rank, contention=True)
        _, plus, between = self.interval(f, e.loc.rank, contention=True)
        d, W = sum(plus.values()), sum(p.wait for p in between)
        r = min(W / wait, 1)
        if d == 0 or d < sum(minus.values()):
            # Without its waits the causing process would have been in time.
            r = 1
            self.unexplained(e, wait - W)
            if W == 0:
                self.add("delay_unattributed", e, wait + sum(phi.values()))
                return
        else:
            self.unexplained(e, wait - W - (d if r < 1 else 0))
        for c, t in plus.items():
            self.charge("interval_delay_lock", f, (1 - r) / d * t * wait, c)
            self.charge("interval_delay_lock_longterm", f, (1 - r) / d * t * sum(phi.values()), c)
        for p in between:
            p.phi["lock"] += r / W * p.wait * wait
            for K, v in phi.items():
                p.phi[K] += r / W * p.wait * v
            p.propagating = max(p.propagating, min(r * wait / W, 1) * p.wait)
        self.add("mpi_wait_indirect_lock", e, r * wait)

    def collective_costs(self, x):
        """Charge a collective wait as release 2.6 does: shares of ranks by segments of the past of the cause."""
        f = x.cause
        # Where the causing process met each of the others last.
        met = {}
        for rank in x.group:
            if rank != f.loc.rank:
                left = self.previous(f, rank)
                met[rank] = left.at if left else -1
        g = min(met.values())
        boundaries = sorted({at for at in met.values() if at > g})
        shares = []  # (from this position on, class, scale)
        for e, wait in x.waiters:
            _, D, between = self.delays(f, e)
            total = sum(D.values()) + sum(p.wait for p in between)
            if total == 0:
                continue
            inputs = dict(e.phi)
            for c, d in D.items():
                self.add(f"delay_{x.cls}", f, wait / total * d, c)
                for K, v in inputs.items():
                    self.add(f"delay_{K}_longterm", f, v / total * d, c)
            inputs[x.cls] = inputs.get(x.cls, 0.0) + wait
            mine = met[e.loc.rank]
            if mine == g:
                start = g
            else:
                later = [b for b in boundaries if b > mine]
                if not later:
                    continue
                start = later[0]
            shares += [(start, K, v / total) for K, v in inputs.items()]
        for p in self.waits(f.loc, g, f.at):
            for start, K, s in shares:
                if p.at >= start:
                    p.phi[K] += s * p.wait

    def barrier_of_threads(self, x):
        def interval(e, other):
            """Return the work of a thread since it synchronized with another one, and its waits in between."""
            thread = "thread", other.loc.thread
            kinds = ("fork", "ompbarrier") if self.model == "scalasca" else ()
            left = next(p for p in self.before(e.loc, e.at) if thread in p.partners or p.cls in kinds)
            between = self.waits(e.loc, left.at, e.at)
            if x.has_tasks:
                work = naive_task_causes.work(left, e, between, f.event.call.E)
            else:
                work = self.work(e.loc, left.at, e.at, between)
            prune(work, left, left.partners.get(thread, left.after))
            return work, between

        f = x.cause
        scales = defaultdict(lambda: defaultdict(float))
        for e, wait in x.waiters:
            mine, between = interval(f, e)
            W = sum(p.wait for p in between)
            other, _ = interval(e, f)
            D = {c: t - other.get(c, 0) for c, t in mine.items() if t > other.get(c, 0)}
            total = sum(D.values()) + W
            self.unexplained(e, wait - total)
            # Release 2.6 forgets the costs of its own class here.
            phi = {K: v for K, v in e.phi.items() if self.model == "thesis" or K != "ompbarrier"}
            if total == 0:
                if self.model == "thesis":
                    self.add("delay_unattributed", e, wait + sum(phi.values()))
                continue
            rate = self.rate(e, wait, total, phi)
            for c, d in D.items():
                self.add("delay_ompbarrier", f, rate * wait * d, c)
                for K, v in phi.items():
                    self.add(f"delay_{K}_longterm", f, rate * v * d, c)
            if self.model == "thesis":
                self.add("mpi_wait_indirect_ompbarrier", e, rate * wait * W)
                for p in between:
                    p.propagating = max(p.propagating, min(rate * wait, 1) * p.wait)
            for p in between:
                scales[p]["ompbarrier"] += rate * wait
                for K, v in phi.items():
                    scales[p][K] += rate * v
        for p, of_wait in scales.items():
            for K, s in of_wait.items():
                p.phi[K] += s * p.wait

    def rate(self, e, wait, total, phi):
        """Return how much of a wait each tick of delays and waits explains, and book what these do not explain."""
        if not self.is_bounded or total >= wait:
            return 1 / total
        self.add("delay_unattributed", e, (wait + sum(phi.values())) * (1 - total / wait))
        return 1 / wait

    def idleness(self, x):
        """Charge idle threads to the serial call paths of their master (specification.md#idle-threads)."""
        loc, begin = x.cause.loc, -1 if x.begin is None else x.begin
        between = self.waits(loc, begin, x.cause.at)
        times = self.profile(loc, begin, x.cause.at)
        for p in between:
            times[p.path] -= p.wait
        x.idle = x.factor * (sum(t for t in times.values() if t > 0) + sum(p.wait for p in between))
        for c, t in times.items():
            if t > 0:
                self.values["delay_ompidle", c, loc.rank, loc.thread] += x.factor * t
        for p in between:
            p.phi["ompidle"] += x.factor * p.wait

    # ----------------------------------------------------------------------------------------------------------------
    # Critical path

    def critical_path(self):
        for x in self.instances:
            for e, wait in x.waiters:
                if wait > 0 and x.cls != "ompbarrier":
                    e.cause = getattr(e, "last", x.cause)
        if self.finalizes:
            start = max(self.finalizes, key=lambda p: (p.event.call.E, -p.loc.rank))
        else:
            # No MPI, or a run that was cut off: who was there to the last.
            masters = self.trace.by_rank.values()
            loc = max((m for m in masters if m.events), key=lambda m: (m.events[-1].t, -m.rank))
            start = self.end_of(loc)
        self.path = []  # (location, point or None, end), latest first
        self.until = None  # when what was found so far of the path begins
        owners = [start]
        while owners:
            end = owners.pop()
            stops = ("init", "fork", "ompbarrier")
            before = self.before(end.loc, getattr(end, "first", end.at))
            p = next((p for p in before if p.cause is not None or p.cls in stops), None)
            self.segment(end.loc, p, end)
            if p is None or p.cls == "init":
                continue
            if p.cls == "ompbarrier":
                # Threads that came last together all own the path in release 2.6.
                owners += p.ready if self.model == "scalasca" else p.ready[:1]
            elif p.cls == "fork":
                owners = [p.master]
            else:
                if p.cls in ("join", "creation"):
                    # The time from the creation of a thread to its begin, and from its last function to its end.
                    p.cause.over = min(0, p.cause.event.t - p.event.call.E - p.held)
                elif p.cause.at > p.cause.event.i:
                    # What the releasing call does after the wait has ended is not on the path.
                    p.cause.over = max(0, p.cause.event.t - p.event.call.E - p.held)
                owners.append(p.cause)
        self.impacts()

    def segment(self, loc, point, end):
        self.path.append((loc, point, end))
        times = self.profile(loc, point.at if point else -1, end.at)
        over = getattr(end, "over", 0)
        to = end.event.t if end.at > end.event.i or end.event.call is None else end.event.call.E
        if self.until is not None and to - over > self.until:
            times = self.profile_until(loc, point, end)
        else:
            if point:
                times[point.path] -= min(point.held, times[point.path])
            times[end.path] -= min(over, times[end.path])
        if self.model == "thesis":
            # Where clocks disagree, a part may begin behind what comes after it.
            begin = loc.events[0].t
            if point:
                begin = point.event.call.E + point.held - (point.total if point.cls == "fork" else 0)
            self.until = begin if self.until is None else min(self.until, begin)
        for c, t in times.items():
            self.add("critical_path", end, t, c)

    def profile_until(self, loc, point, end):
        """Return the time on a part of the path by call path, as far as it lies before the rest of the path."""
        first = point.at if point else -1
        spans = [[path, t - ticks, t] for i, path, ticks, t in loc.steps if first <= i < end.at]
        left = point.held if point else 0
        for span in (span for span in spans if point and span[0] == point.path):
            part = min(left, span[2] - span[1])
            span[1] += part
            left -= part
        left = getattr(end, "over", 0)
        for span in (span for span in reversed(spans) if span[0] == end.path):
            part = min(left, span[2] - span[1])
            span[2] -= part
            left -= part
        times = defaultdict(int)
        for path, begin, until in spans:
            times[path] += max(0, min(until, self.until) - begin)
        return times

    def impacts(self):
        path = {(c, r, t): v for (m, c, r, t), v in self.values.items() if m == "critical_path"}
        whole = defaultdict(float)
        for (c, _, _), v in path.items():
            whole[c] += v
        length = sum(whole.values())
        impact, inter = defaultdict(float), defaultdict(float)
        poisoned = False
        for loc in self.trace.locations:
            own = self.profile(loc, -1, len(loc.events) + 1)
            for p in loc.points.values():
                own[p.path] = max(0, own[p.path] - p.wait)
            excess = {}
            for c in set(own) | set(whole):
                key = (c, loc.rank, loc.thread)
                if whole.get(c, 0) > 0:
                    self.values["critical_path_activities", *key] += min(whole[c], own.get(c, 0))
                    excess[c] = max(0, whole[c] - own.get(c, 0))
                if own.get(c, 0) > whole.get(c, 0):
                    self.values["non_critical_path_activities", *key] += own[c] - whole.get(c, 0)
            idle = length - sum(own.values())
            total = sum(excess.values())
            for c, v in excess.items():
                if v:
                    impact[c] += v * idle / total
            foreign = [c for c in whole if whole[c] > 0 and own.get(c, 0) == 0]
            H = sum(whole[c] for c in foreign)
            mine = sum(max(v, whole.get(c, 0)) for c, v in own.items() if v > 0)
            if not H and self.model == "scalasca":
                # 0/0: release 2.6 then has nothing at all.
                poisoned = True
            for c in foreign:
                inter[c] += (length - mine) / H * whole[c]
        for (c, r, t), v in path.items():
            if impact[c] > 0:
                self.values["critical_imbalance_impact", c, r, t] += impact[c] * v / whole[c]
            if inter[c] > 0 and not poisoned:
                self.values["inter_partition_imbalance", c, r, t] += inter[c] * v / whole[c]

    # ----------------------------------------------------------------------------------------------------------------

    def cells(self):
        """Return the nonzero cells: {(metric, names of the call path, rank, thread): seconds}."""
        cells = defaultdict(float)
        for (metric, path, rank, thread), ticks in self.values.items():
            if ticks:
                cells[metric, tuple(r[1] for r in path), rank, thread] += ticks / self.trace.resolution
        return dict(cells)


def contends(call):
    """Return whether waiting for a lock in this call is a wait state."""
    _, name, paradigm = call.region
    return paradigm == "OPENMP" or (paradigm == "PTHREAD" and LOCK_CALLS.fullmatch(name) is not None)


def running(loc):
    """Yield call paths of a location, and from when to when they run."""
    path, since = None, None
    for e in loc.events:
        if e.kind in ("enter", "leave"):
            if path:
                yield path, since, e.t
            path, since = path_of(e.call if e.kind == "enter" else e.call.below), e.t


FAMILIES = ("delay_", "interval_delay_", "critical_", "non_critical_path_", "inter_partition_", "mpi_wait_", "wait_")


def table(cells):
    """Return the cells of the metrics of this oracle in the form of tests/results.py."""
    metrics = {}
    for (metric, *cell), value in cells.items():
        if metric.startswith(FAMILIES) or metric in COLLECTIVE_METRIC.values():
            metrics.setdefault(metric, {})[tuple(cell)] = value
    return metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("archive")
    parser.add_argument("--model", default="thesis", choices=("scalasca", "thesis"))
    args = parser.parse_args()
    for metric, cells in sorted(table(Analysis(read(args.archive), args.model).cells()).items()):
        print(f"{metric:36} {sum(cells.values()):.9f}")


if __name__ == "__main__":
    main()
