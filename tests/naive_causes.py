"""Root causes and the critical path, slowly and plainly: an oracle for the analysis.

Reads a trace with the official Python reader, keeps everything in memory, walks lists where the analysis keeps
running sums, and follows the published definitions one after the other. Times are integer ticks until the very end.

Two variants of the cost model:

* ``scalasca``: what release 2.6 computes, its accidents included. One-sided calls neither cost nor hand on the path.
* ``thesis``: the definitions, for every paradigm; the waiting time is conserved.

    python -m tests.naive_causes ARCHIVE [--model thesis] [--compare scout.json]
"""

import argparse
import gzip
import json
import sys
from bisect import bisect_left
from collections import defaultdict

WAIT_MANY = {"MPI_Waitall", "MPI_Waitsome"}
WAIT_ONE = {"MPI_Wait", "MPI_Waitany"}
TESTS = {"MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome"}
INIT = {"MPI_Init", "MPI_Init_thread"}
BARRIER = {"BARRIER"}
ONE_TO_N = {"BCAST", "SCATTER", "SCATTERV"}
N_TO_ONE = {"REDUCE", "GATHER", "GATHERV"}
N_TO_N = {"ALLGATHER", "ALLGATHERV", "ALLREDUCE", "ALLTOALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"}
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

    def __init__(self, region, name, path, enter):
        self.region, self.name, self.path, self.enter, self.leave = region, name, path, enter, None

    @property
    def E(self):
        return self.enter.t

    @property
    def L(self):
        return self.leave.t


class Event:
    def __init__(self, loc, i, t, kind, call, fields):
        self.loc, self.i, self.t, self.kind, self.call = loc, i, t, kind, call
        self.__dict__.update(fields)

    def __repr__(self):
        return f"<{self.kind} #{self.i} of {self.loc.rank}.{self.loc.thread} at {self.t} in {self.call and self.call.name}>"


class Location:
    """One stream of events with its synchronization points."""

    def __init__(self, rank, thread, raw):
        self.rank, self.thread, self.raw = rank, thread, raw
        self.events = []
        self.points = {}  # event index -> Point
        self.steps = []  # (event index, call path, ticks): who had the time up to this event


class Point:
    """A synchronization point: an event, how long it waited, and what of its call came after the synchronization."""

    def __init__(self, event, wait, completion, partners, cls, total=None):
        self.event, self.wait, self.cls = event, wait, cls
        self.partners = {p: completion for p in partners}
        self.completion = completion
        self.total = event.call.L - event.call.E if total is None else total
        self.phi = defaultdict(float)  # class -> costs of waits that this wait caused later
        self.propagating = 0.0  # the largest share of this wait that a later wait is due to
        self.cause = None  # (Location, Event) that ended the wait


class Trace:
    """Processes with their event streams; see `read` for the fields of the raw events."""

    def __init__(self, resolution, streams, comms, windows=None):
        self.resolution = resolution
        self.comms = comms  # id -> list of world ranks, None for a self communicator
        self.windows = windows or {}  # id -> communicator id
        self.locations = [Location(rank, thread, raw) for (rank, thread), raw in sorted(streams.items())]
        self.by_rank = {l.rank: l for l in self.locations if l.thread == 0}
        for loc in sorted(self.locations, key=lambda l: l.thread):
            self._link(loc)

    def members(self, comm, rank):
        ranks = self.comms[comm]
        return [rank] if ranks is None else ranks

    def _link(self, loc):
        """Give every event its enclosing call and every step of time its call path."""
        stack, loc.teams = [], []
        last, base, fork = None, (), None
        loc.forks, loc.joins = [], []
        for i, (t, kind, fields) in enumerate(loc.raw):
            if kind == "enter":
                region, name = fields["region"]
                parent = stack[-1].path if stack else base
                event = Event(loc, i, t, kind, None, {})
                call = Call(region, name, parent + (region,), event)
                event.call = call
                # Before its first call a location has no past, and a worker none between two parallel regions.
                if stack or (last is not None and loc.thread == 0):
                    if parent:
                        loc.steps.append((i, parent, t - last))
                stack.append(call)
                last = t
            elif kind == "leave":
                call = stack.pop()
                event = Event(loc, i, t, kind, call, {})
                call.leave = event
                loc.steps.append((i, call.path, t - last))
                last = t
            else:
                event = Event(loc, i, t, kind, stack[-1] if stack else None, fields)
                if kind == "fork":
                    loc.forks.append(event)
                elif kind == "join":
                    loc.joins.append(event)
                elif kind == "team_begin":
                    event.base = stack[-1].path if stack else ()
                    loc.teams.append(event)
                    if loc.thread:
                        base = self._fork_path(loc, event)
            loc.events.append(event)
        assert not stack, f"location {loc.rank}.{loc.thread} ends inside {stack[-1].name}"

    def _fork_path(self, worker, begin):
        """The call path of the master where the team of this begin was forked: k-th with k-th."""
        master = self.by_rank[worker.rank]
        k = sum(1 for b in worker.teams[:-1] if b.team == begin.team)
        return [b for b in master.teams if b.team == begin.team][k].base


def read(anchor):
    import otf2
    from otf2.enums import GroupType, LocationType, Paradigm
    from otf2 import events as E

    with otf2.reader.open(str(anchor)) as reader:
        world = None
        for group in reader.definitions.groups:
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI:
                world = {l._ref: rank for rank, l in enumerate(group.members)}
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
                comms[comm._ref] = [place[l._ref][0] for l in group.members]
        windows = {w._ref: w.comm._ref for w in reader.definitions.rma_wins}
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
            if isinstance(e, E.Enter):
                put(key, t, "enter", **region(e.region))
            elif isinstance(e, E.Leave):
                put(key, t, "leave")
            elif isinstance(e, E.ProgramBegin):
                name = e.program_name.rsplit("/", 1)[-1]
                put(key, t, "enter", region=(("program", name, "PROGRAM"), name))
            elif isinstance(e, E.ProgramEnd):
                put(key, t, "leave")
            elif isinstance(e, E.BufferFlush):
                name = "TRACE BUFFER FLUSH"
                pending[key] += [(t, "enter", {"region": (("flush", name, "MEASUREMENT"), name)}),
                                 (e.stop_time, "leave", {})]
            elif isinstance(e, E.MpiSend):
                put(key, t, "send", comm=e.communicator._ref, peer=e.receiver, tag=e.msg_tag, bytes=e.msg_length)
            elif isinstance(e, E.MpiIsend):
                put(
                    key,
                    t,
                    "isend",
                    comm=e.communicator._ref,
                    peer=e.receiver,
                    tag=e.msg_tag,
                    bytes=e.msg_length,
                    request=e.request_id,
                )
            elif isinstance(e, E.MpiIsendComplete):
                put(key, t, "isend_complete", request=e.request_id)
            elif isinstance(e, E.MpiRecv):
                put(key, t, "recv", comm=e.communicator._ref, peer=e.sender, tag=e.msg_tag, bytes=e.msg_length)
            elif isinstance(e, E.MpiIrecvRequest):
                put(key, t, "irecv_request", request=e.request_id)
            elif isinstance(e, E.MpiIrecv):
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
            elif isinstance(e, E.MpiRequestCancelled):
                put(key, t, "cancelled", request=e.request_id)
            elif isinstance(e, E.MpiCollectiveBegin):
                put(key, t, "coll_begin")
            elif isinstance(e, E.MpiCollectiveEnd):
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
            elif isinstance(e, E.ThreadFork):
                put(key, t, "fork", threads=e.number_of_requested_threads)
            elif isinstance(e, E.ThreadJoin):
                put(key, t, "join")
            elif isinstance(e, E.ThreadTeamBegin):
                put(key, t, "team_begin", team=e.thread_team._ref)
            elif isinstance(e, E.ThreadTeamEnd):
                put(key, t, "team_end", team=e.thread_team._ref)
        return Trace(reader.timer_resolution, streams, comms, windows)


# --------------------------------------------------------------------------------------------------------------------
# Wait states and the synchronization points that they make


class Instance:
    """A wait with its cause: one waiting event, or the waiting ranks of a collective."""

    def __init__(self, cls, cause, waiters, group=None):
        self.cls = cls  # names the cost metric
        self.cause = cause  # Event
        self.waiters = waiters  # list of (Event, wait) that take part, the cause itself excluded
        self.group = group  # communicator ranks of a collective, None for a pair


class Analysis:
    def __init__(self, trace, model="scalasca"):
        assert model in ("scalasca", "thesis")
        self.trace, self.model = trace, model
        self.values = defaultdict(float)  # (metric, call path, rank, thread) -> ticks
        self.instances = []
        self.find_p2p()
        self.find_collectives()
        self.find_init_and_finalize()
        self.costs()
        self.critical_path()

    def add(self, metric, event, ticks, path=None):
        if ticks:
            path = event.call.path if path is None else path
            self.values[metric, path, event.loc.rank, event.loc.thread] += ticks

    def point(self, event, wait, completion, partners, cls, total=None):
        """The first point at an event stays."""
        if event.i not in event.loc.points:
            event.loc.points[event.i] = Point(event, wait, completion, partners, cls, total)
        return event.loc.points[event.i]

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
        messages = [(s, r) for key in receives for s, r in zip(sends[key], receives[key])]

        late, sender_late_calls = {}, set()
        for s, r in messages:
            if r.call.name in TESTS:
                continue
            idle = min(s.call.E, r.call.L) - r.call.E
            if idle <= 0:
                continue
            key = r
            if r.call.name in WAIT_MANY:
                sender_late_calls.add(r.call)
                key = r.call
            if key not in late or idle > late[key][0]:
                late[key] = (idle, s, r)
        for idle, s, r in late.values():
            self.add("mpi_latesender", r, idle)
            self.point(r, idle, max(0, r.call.L - s.call.L), {s.loc.rank}, "latesender")
            self.point(s, 0, max(0, s.call.L - r.call.L), {r.loc.rank}, "latesender")
            self.instances.append(Instance("latesender", s, [(r, idle)]))

        late = {}
        for s, r in messages:
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
            # Release 2.6 has the comparison reversed and never sees a completion on the waiting side.
            completion = max(0, k.call.L - q.call.L) if self.model == "thesis" else 0
            self.point(k, idle, completion, {q.loc.rank}, "latereceiver")
            self.point(q, 0, max(0, q.call.L - k.call.L), {k.loc.rank}, "latereceiver")
            self.instances.append(Instance("latereceiver", q, [(k, idle)]))

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
            for ends in zip(*(by_rank[r] for r in ranks)):
                self.collective(ranks, ends)

    def collective(self, ranks, ends):
        op = ends[0].op
        B, X = [e.begin for e in ends], [e.t for e in ends]
        n = range(len(ends))

        def latest_of(candidates):
            return max(candidates, key=lambda i: (B[i], -i))

        if op in BARRIER or op in N_TO_N:
            if op in BARRIER or min(X) > max(B):
                taking = list(n)
                culprit = latest_of(n)
            else:
                senders = [i for i in n if ends[i].sent > 0]
                if not senders:
                    return
                culprit = latest_of(senders)
                taking = [
                    i for i in n if ends[i].received > 0 and B[i] < B[culprit] or ends[i].sent > 0 and i == culprit
                ]
            if op in N_TO_N and all(ends[i].sent == 0 and ends[i].received == 0 for i in n):
                return
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
            taking = taking + [culprit]
            completions = {i: max(0, X[i] - max(first, B[culprit])) for i in taking}
        elif op in N_TO_ONE:
            root = ends[0].root
            senders = [i for i in n if ends[i].sent > 0]
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
                senders = [j for j in n if j <= i and ends[j].sent > 0]
                if senders:
                    self.add("mpi_earlyscan", ends[i], max(0, min(max(B[j] for j in senders), X[i]) - B[i]))
            return
        else:
            return
        for i in taking:
            self.add(COLLECTIVE_METRIC[cls], ends[i], waits[i])
            self.point(ends[i], waits[i], completions[i], partners[i], cls)
        if culprit in taking:
            waiters = [(ends[i], waits[i]) for i in taking if i != culprit]
            self.instances.append(Instance(cls, ends[culprit], waiters, ranks))

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
            for e in calls.values():
                lb = min(latest, e.call.L)
                wait = 0 if is_init else max(0, lb - e.call.E)
                completion = max(0, e.call.L - max(first, lb))
                if is_init:
                    self.add("mpi_init_completion", e, completion)
                else:
                    self.add("mpi_finalize_wait", e, wait)
                self.point(e, wait, completion, set(self.trace.by_rank), "init" if is_init else "finalize")

    # ----------------------------------------------------------------------------------------------------------------
    # Intervals

    def profile(self, loc, a, b):
        """Time by call path from event index a on, up to but not including event index b.

        The time before an Enter or Leave is had at that Enter or Leave. So the whole call that holds a point lies to
        the right of it: the Enter, which ends the time before the call, is left of the point, the Leave right of it.
        """
        times = defaultdict(int)
        for i in range(bisect_left(loc.steps, (a,)), len(loc.steps)):
            at, path, ticks = loc.steps[i]
            if at >= b:
                break
            times[path] += ticks
        return times

    def previous(self, event, rank):
        """The latest point before the event at which its process synchronized with this rank."""
        for i in sorted((i for i in event.loc.points if i < event.i), reverse=True):
            if rank in event.loc.points[i].partners:
                return event.loc.points[i]
        return None

    def interval(self, event, rank):
        """Work by call path since the last point with this rank, and the waiting points in between."""
        left = self.previous(event, rank)
        a = left.event.i if left else -1
        between = [p for i, p in sorted(event.loc.points.items()) if a < i < event.i and p.wait > 0]
        work = self.profile(event.loc, a, event.i)
        for p in between:
            c = p.event.call.path
            work[c] = work[c] - p.wait
        work = {c: t for c, t in work.items() if t > 0}
        if left:
            c = left.event.call.path
            if c in work:
                work[c] -= left.total - left.partners[rank]
        work = {c: t for c, t in work.items() if t > 0}
        return left, work, between

    # ----------------------------------------------------------------------------------------------------------------
    # Costs

    def in_order(self):
        """Instances such that the costs which a wait causes later are complete before its own cause is charged."""
        pending = {loc: [] for loc in self.trace.locations}  # instances that it caused, latest last
        for x in self.instances:
            pending[x.cause.loc].append(x)
        for xs in pending.values():
            xs.sort(key=lambda x: x.cause.i)

        def ready(x):
            return all(not pending[e.loc] or pending[e.loc][-1].cause.i <= e.i for e, _ in x.waiters)

        left = len(self.instances)
        while left:
            before = left
            for xs in pending.values():
                while xs and ready(xs[-1]):
                    yield xs.pop()
                    left -= 1
            assert left < before, "waits that cause each other"

    def costs(self):
        for x in self.in_order():
            f = x.cause
            if x.group is None:
                self.pair(x)
            elif self.model == "thesis":
                for e, wait in x.waiters:
                    self.share(x.cls, f, e, wait, None)
            else:
                self.collective_costs(x)
        for loc in self.trace.locations:
            for p in loc.points.values():
                if p.cls == "latesender":
                    self.add("mpi_wait_propagating_ls", p.event, p.propagating)
                elif p.cls == "latereceiver":
                    self.add("mpi_wait_propagating_lr", p.event, p.propagating)

    def delays(self, f, e):
        """What the process of f did more than that of e, by call path, and its waits in between."""
        left, work, between = self.interval(f, e.loc.rank)
        other = self.interval(e, f.loc.rank)[1]
        D = {c: t - other.get(c, 0) for c, t in work.items() if t > other.get(c, 0)}
        return left, D, between

    def pair(self, x):
        ((e, wait),) = x.waiters
        self.share(x.cls, x.cause, e, wait, 1.0 if self.model == "scalasca" else None)

    def share(self, cls, f, e, wait, cap):
        """Charge a wait at e, and what it caused, to the delays and waits before f."""
        waiting = e.loc.points[e.i]
        _, D, between = self.delays(f, e)
        W = sum(p.wait for p in between)
        total = sum(D.values()) + W
        if total == 0:
            if self.model == "thesis":
                self.add("delay_unattributed", e, wait + sum(waiting.phi.values()))
            return
        direct = wait / total
        if cap is not None:
            direct = min(direct, cap)
        scale = {K: v / total for K, v in waiting.phi.items()}
        for c, d in D.items():
            self.add(f"delay_{cls}", f, direct * d, c)
            for K, s in scale.items():
                self.add(f"delay_{K}_longterm", f, s * d, c)
        for p in between:
            for K, s in scale.items():
                p.phi[K] += s * p.wait
            p.phi[cls] += direct * p.wait
            p.propagating = max(p.propagating, min(direct, 1.0) * p.wait)
        self.add(f"mpi_wait_indirect_{cls}", e, direct * W)

    def collective_costs(self, x):
        """As release 2.6: the shares of the ranks are summed by segments of the causing process's past."""
        f = x.cause
        # Where the causing process met each of the others last.
        met = {}
        for rank in x.group:
            if rank != f.loc.rank:
                left = self.previous(f, rank)
                met[rank] = left.event.i if left else -1
        g = min(met.values())
        boundaries = sorted({i for i in met.values() if i > g})
        shares = []  # (from this event index on, class, scale)
        for e, wait in x.waiters:
            _, D, between = self.delays(f, e)
            total = sum(D.values()) + sum(p.wait for p in between)
            if total == 0:
                continue
            inputs = dict(e.loc.points[e.i].phi)
            for c, d in D.items():
                self.add(f"delay_{x.cls}", f, wait / total * d, c)
                for K, v in inputs.items():
                    self.add(f"delay_{K}_longterm", f, v / total * d, c)
            inputs[x.cls] = inputs.get(x.cls, 0.0) + wait
            mine = met[e.loc.rank]
            if mine == g:
                start = g + 1
            else:
                later = [b for b in boundaries if b > mine]
                if not later:
                    continue
                start = later[0]
            shares += [(start, K, v / total) for K, v in inputs.items()]
        for i, p in f.loc.points.items():
            if p.wait > 0 and g < i < f.i:
                for start, K, s in shares:
                    if i >= start:
                        p.phi[K] += s * p.wait

    # ----------------------------------------------------------------------------------------------------------------
    # Critical path

    def critical_path(self):
        finalize = [p for loc in self.trace.locations for p in loc.points.values() if p.cls == "finalize"]
        if not finalize:
            return
        for x in self.instances:
            for e, wait in x.waiters:
                if wait > 0:
                    e.loc.points[e.i].cause = x.cause
        start = max(finalize, key=lambda p: (p.event.call.E, -p.event.loc.rank))
        self.path = []  # (location, from event or None, to event), latest first
        end = start.event
        while True:
            loc = end.loc
            stops = [p for p in loc.points.values() if p.event.i < end.i and (p.cause is not None or p.cls == "init")]
            if not stops:
                self.segment(loc, None, end)
                break
            p = max(stops, key=lambda p: p.event.i)
            self.segment(loc, p, end)
            if p.cause is None:
                break
            end = p.cause
        self.impacts()

    def segment(self, loc, point, end):
        self.path.append((loc, point, end))
        times = self.profile(loc, point.event.i if point else -1, end.i)
        if point:
            c = point.event.call.path
            times[c] -= min(point.wait, times[c])
        for c, t in times.items():
            self.add("critical_path", end, t, c)

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
                c = p.event.call.path
                own[c] = max(0, own[c] - p.wait)
            excess = {}
            for c in set(own) | set(whole):
                key = (c, loc.rank, loc.thread)
                if whole.get(c, 0) > 0:
                    self.values[("critical_path_activities",) + key] += min(whole[c], own.get(c, 0))
                    excess[c] = max(0, whole[c] - own.get(c, 0))
                if own.get(c, 0) > whole.get(c, 0):
                    self.values[("non_critical_path_activities",) + key] += own[c] - whole.get(c, 0)
            idle = length - sum(own.values())
            total = sum(excess.values())
            for c, v in excess.items():
                if v:
                    impact[c] += v * idle / total
            foreign = [c for c in whole if whole[c] > 0 and own.get(c, 0) == 0]
            H = sum(whole[c] for c in foreign)
            mine = sum(max(v, whole.get(c, 0)) for c, v in own.items() if v > 0)
            if not H:
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
        """{(metric, names of the call path, rank, thread): seconds}, zero cells left out."""
        cells = defaultdict(float)
        for (metric, path, rank, thread), ticks in self.values.items():
            if ticks:
                cells[metric, tuple(r[1] for r in path), rank, thread] += ticks / self.trace.resolution
        return dict(cells)


def scout_cells(file):
    data = json.load(gzip.open(file, "rt") if str(file).endswith(".gz") else open(file))
    return {
        (metric, tuple(row["callpath"]), row["rank"], row["thread"]): row["exclusive"]
        for metric, rows in data["data"].items()
        for row in rows
        if row["exclusive"]
    }


OURS = (
    "delay_",
    "critical_",
    "non_critical",
    "inter_partition",
    "mpi_wait_",
    "mpi_late",
    "mpi_early",
    "mpi_barrier",
    "mpi_nxn",
    "mpi_init",
    "mpi_finalize_wait",
)
NOT_OURS = ("mpi_latesender_wo",)


def compare(ours, theirs, tolerance=1e-7):
    """Cells that differ by more than the tolerance, largest first."""
    keys = {k for k in list(ours) + list(theirs) if k[0].startswith(OURS) and not k[0].startswith(NOT_OURS)}
    off = [(abs(ours.get(k, 0) - theirs.get(k, 0)), k, ours.get(k, 0), theirs.get(k, 0)) for k in keys]
    return len(keys), sorted((o for o in off if o[0] > tolerance), reverse=True), max(off)[0] if off else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archive")
    parser.add_argument("--model", default="scalasca", choices=("scalasca", "thesis"))
    parser.add_argument("--compare", help="scout.json or scout.json.gz")
    args = parser.parse_args()
    cells = Analysis(read(args.archive), args.model).cells()
    totals = defaultdict(float)
    for (metric, *_), v in cells.items():
        totals[metric] += v
    if args.compare:
        theirs = scout_cells(args.compare)
        want = defaultdict(float)
        for (metric, *_), v in theirs.items():
            want[metric] += v
        n, off, largest = compare(cells, theirs)
        for _, key, a, b in off[:40]:
            print(f"{a:.9f} {b:.9f} {key[0]} {'/'.join(key[1])} {key[2]}.{key[3]}")
        wrong = defaultdict(int)
        for _, key, _, _ in off:
            wrong[key[0]] += 1
        for metric in sorted(set(totals) | set(wrong)):
            print(f"{metric:36} {totals[metric]:.9f} {want[metric]:.9f} {wrong[metric] or ''}")
        print(f"{n} cells, {len(off)} differ, largest difference {largest:.3g} s")
        return 1 if off else 0
    for metric, v in sorted(totals.items()):
        print(f"{metric:36} {v:.9f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
