"""An oracle for the wait states of one-sided communication: slow, but obviously correct.

Like tests/naive.py, whose reader it uses, it shares no code with the program: it implements chapter 3 of the thesis
sentence by sentence, with loops over lists of calls. Where the definitions are ambiguous, it follows
specification.md#one-sided-communication.

Times are integer ticks. Enter and Leave are those of the call that encloses a record, because most records repeat the
time stamp of the preceding one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from otf2 import events as ev
from otf2.enums import CollectiveOp, GroupFlag, GroupType, LockType, Paradigm, RmaAtomicType, RmaSyncLevel, RmaSyncType

from tests import naive
from tests.naive import WAIT_MANY, WAIT_SINGLE, Instance, Trace
from tests.naive_owners import first_order, holders
from tests.naive_progress import Progress, interface

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CREATES = {CollectiveOp.CREATE_HANDLE, CollectiveOp.CREATE_HANDLE_AND_ALLOCATE, CollectiveOp.ALLOCATE}
FREES = {CollectiveOp.DESTROY_HANDLE, CollectiveOp.DESTROY_HANDLE_AND_DEALLOCATE, CollectiveOp.DEALLOCATE}
# Atomics that bring something back: like a get they are complete when the answer is there.
FETCHES = {
    RmaAtomicType.FETCH_AND_ACCUMULATE,
    RmaAtomicType.FETCH_AND_ADD,
    RmaAtomicType.FETCH_AND_INCREMENT,
    RmaAtomicType.SWAP,
    RmaAtomicType.COMPARE_AND_SWAP,
    RmaAtomicType.TEST_AND_SET,
}
# In these the root has what the others wait for, or needs what they have.
FROM_ROOT = (CollectiveOp.BCAST, CollectiveOp.SCATTER, CollectiveOp.SCATTERV)
TO_ROOT = (CollectiveOp.GATHER, CollectiveOp.GATHERV, CollectiveOp.REDUCE)
# OpenSHMEM calls that wait for all PEs but leave no collective record (measured: Score-P 7.1).
SHMEM_CREATES = {
    "start_pes",
    "shmem_init",
    "shmem_init_thread",
    "shmalloc",
    "shmemalign",
    "shrealloc",
    "shmem_malloc",
    "shmem_align",
    "shmem_realloc",
    "shmem_calloc",
}
SHMEM_FREES = {"shfree", "shmem_free", "shmem_finalize"}


class RmaWait(NamedTuple):
    """A wait state.

    `last` is the factor that the call waited for last, in contention and progress; else empty. `inferred` means that
    only releases tell who held the lock.
    """

    metric: str
    rank: int
    callpath: tuple[str, ...]
    enter: int
    leave: int
    waiting: int
    cause_rank: int
    cause_callpath: tuple[str, ...]
    cause_time: int
    last: str = ""
    inferred: bool = False


class Transfer(NamedTuple):
    """A transfer: data leave the source at `start`, and arrive at `end`; the operation began at `origin`."""

    kind: str
    window: int
    bytes: int
    source: int
    start: int
    destination: int
    end: int | None
    origin_rank: int
    origin: int


@dataclass(eq=False)
class Op:
    """A put, get or atomic."""

    rank: int
    target: int
    window: int
    event: Any
    call: Instance
    epoch: Access | LockEpoch | Collective | None = None
    done_locally: Instance | None = None
    done_remotely: Instance | None = None

    @property
    def fetches(self) -> bool:
        return isinstance(self.event, ev.RmaGet) or (
            not isinstance(self.event, ev.RmaPut) and self.event.type in FETCHES
        )


@dataclass(eq=False)
class Collective:
    """A process's call of a collective operation on a window, and its operations since its last fence.

    `begin` is the call in which the process arrives; those in `asked` returned before the operation could end.
    """

    rank: int
    call: Instance
    kind: CollectiveOp
    window: int
    begin: Instance
    asked: list[Instance]
    root: int | None
    ops: list[Op] = field(default_factory=list)


class Notification(NamedTuple):
    """A notification that a process sends, or waits for; None is what the record does not tell."""

    window: int
    rank: int
    partner: int | None
    id: int | None
    call: Instance
    needed: bool = True


@dataclass(eq=False)
class Access:
    """An access epoch, from start to complete, with the matching exposure epochs (`partners`) by target."""

    rank: int
    group: list[int]
    start: Instance
    complete: Instance | None = None
    ops: list[Op] = field(default_factory=list)
    partners: dict[int, Exposure] = field(default_factory=dict)


@dataclass(eq=False)
class Exposure:
    """An exposure epoch, post to wait or successful test, with the matching access epochs (`partners`) by origin."""

    rank: int
    group: list[int]
    post: Instance
    wait: Instance | None = None
    partners: dict[int, Access] = field(default_factory=dict)


@dataclass(eq=False)
class LockEpoch:
    """A lock epoch, from lock to unlock; `target` is None for lock_all."""

    rank: int
    window: int
    target: int | None
    shared: bool
    blocking: bool  # the call that got the lock returned with it: nothing else can have waited for it
    acquire: Instance
    release: Instance | None = None
    ops: list[Op] = field(default_factory=list)
    granted: tuple[int, Instance] | None = None  # time and call of a record of the acquisition

    def calls(self, target: int | None) -> list[Instance]:
        """Return the calls that may wait for the lock of a target."""
        ops = [op for op in self.ops if op.target == target]
        found = [self.acquire, self.release]
        found += [call for op in ops for call in (op.call, op.done_locally, op.done_remotely)]
        return [call for call in found if call is not None]

    def proofs(self, target: int | None) -> list[Instance]:
        """Return the calls that return only with the lock of a target."""
        if self.blocking:
            return [self.acquire]
        ops = [op for op in self.ops if op.target == target]
        calls = [op.done_remotely or self.release for op in ops] + [op.done_locally for op in ops if op.fetches]
        return [call for call in calls if call]

    def proof(self, target: int | None) -> int:
        """Return when the epoch has proven that it owns the lock of a target."""
        return min(call.leave for call in (*self.proofs(target), self.release) if call)

    @property
    def order(self) -> tuple[int, int]:
        """What orders the epochs where no proof does."""
        return (self.acquire if self.blocking else self.release).leave, self.rank


@dataclass
class Result:
    resolution: int
    begin: int
    cells: Counter[tuple[str, tuple[str, ...], int]] = field(default_factory=Counter)
    waits: list[RmaWait] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)

    def add(self, metric: str, call: Instance, value: int) -> None:
        self.cells[metric, call.callpath, call.thread.rank] += value

    def wait(self, metric: str, call: Instance, waiting: int, cause: Instance, time: int, **how: Any) -> None:
        self.add(metric, call, waiting)
        here = (metric, call.thread.rank, call.callpath, call.enter, call.leave)
        self.waits.append(RmaWait(*here, waiting, cause.thread.rank, cause.callpath, time, **how))

    def table(self) -> dict[str, dict[tuple[tuple[str, ...], int], float]]:
        """Return seconds, occurrences, and bytes of the nonzero cells by metric."""
        table: dict[str, dict] = defaultdict(dict)
        for (metric, callpath, rank), value in self.cells.items():
            if value:
                table[metric][callpath, rank] = value if is_count(metric) else value / self.resolution
        return dict(table)


MESSAGES = {"mpi_latesender", "mpi_latereceiver", "mpi_exchange_latereceiver"}


class MessageWaits(naive.Result):
    """The time until which each call that completes requests waits for messages."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.resolution, trace.begin)
        self.until: dict[Instance, int] = {}
        messages = naive.match(trace, self)
        naive.late_senders(trace, messages, self, window=0)
        naive.late_receivers(trace, messages, self)

    def wait(self, kind: str, at: Instance, waiting: int, cause: Instance | None, *, inferred: bool = False) -> None:
        """Remember calls that may also complete one-sided operations."""
        if kind in MESSAGES and at.name in WAIT_MANY | WAIT_SINGLE:
            self.until[at] = self.until.get(at, at.enter) + waiting
        super().wait(kind, at, waiting, cause, inferred=inferred)


def is_count(metric: str) -> bool:
    """Whether a metric counts occurrences or data; the others are times."""
    return metric.endswith("_count") or "bytes_" in metric or "atomic_" in metric


def analyze(trace: Trace, *, stamps: bool = False) -> Result:
    """Compute all metrics of one-sided communication.

    `stamps`: time collectives by their records, not by Enter and Leave, as one version of Scalasca does. To compare.
    """
    return Analysis(trace, stamps=stamps).result


class Analysis(Progress):
    def __init__(self, trace: Trace, *, stamps: bool = False) -> None:
        self.trace = trace
        self.stamps = stamps
        self.result = Result(trace.resolution, trace.begin)
        self.rank_of = {ref: thread.rank for ref, thread in trace.threads.items()}
        self.processes = {threads[0].rank: threads for threads in trace.processes.values()}
        self.ops: list[Op] = []
        self.op_calls: set[Instance] = set()
        self.members: dict[int, list[int]] = {}  # by window; missing: a window of each process alone
        self.collectives: dict[int, dict[int, list[Collective]]] = defaultdict(lambda: defaultdict(list))
        self.begins: dict[Instance, int] = {}
        self.ends: dict[Instance, int] = {}
        self.accesses: dict[int, dict[int, list[Access]]] = defaultdict(lambda: defaultdict(list))
        self.exposures: dict[int, dict[int, list[Exposure]]] = defaultdict(lambda: defaultdict(list))
        self.locks: dict[Any, list[LockEpoch]] = defaultdict(list)
        self.completes: dict[Instance, set[int]] = defaultdict(set)  # targets at which a call completes something
        self.locking: dict[Instance, set[int]] = {}  # calls that may block until these processes grant a lock
        self.locking_all: set[Instance] = set()
        self.active: set[Instance] = set()  # calls in which the target takes part: they do not wait for its progress
        self.evident: set[Instance] = set()  # those of them of which evidence tells that they do
        self.library: dict[int, list[Instance]] = {}
        self.passive_syncs: list[tuple[Instance, int, set[int]]] = []  # calls, with how many processes, open windows
        self.notifications: list[Notification] = []
        self.notified: list[Notification] = []
        self.changes: list[Instance] = []  # calls that wait for a change of local memory
        for rank in self.processes:
            self.read(rank)
        self.match()
        self.collective_waits()
        self.allocation_waits()
        self.pairs()
        self.late_posts()
        self.early_waits()
        self.changes_waits()
        self.notification_waits()
        self.messages = MessageWaits(trace).until
        self.contention: dict[Instance, tuple[int, Instance, bool]] = {}
        self.proofs: dict[tuple[LockEpoch, int | None], int] = {}
        self.proving: dict[tuple[LockEpoch, int | None], list[Instance]] = {}
        self.find_contention()
        self.progress()
        self.volumes()
        self.find_transfers()

    # --- epochs ------------------------------------------------------------------------------------------------------

    def records(self, rank: int) -> Iterator[tuple[Any, Instance]]:
        """Yield the records of a process by time; those of a thread stay in order."""
        merged = [(event.time, event, call) for thread in self.processes[rank] for event, call in thread.records]
        merged.sort(key=lambda r: r[0])
        for _, event, call in merged:
            if call is not None:
                yield event, call

    def ranks(self, group: Any, own: int) -> list[int]:
        """Return the members of a group as ranks of processes."""
        if group.group_type == GroupType.COMM_SELF:
            return [own]
        return [self.rank_of[m._ref] for m in group.members]

    def read(self, rank: int) -> None:
        process = Process(self, rank)
        for event, call in self.records(rank):
            window = getattr(event, "win", None)
            if window is not None and window.comm.group.group_type != GroupType.COMM_SELF:
                self.members.setdefault(window._ref, self.ranks(window.comm.group, rank))
            process.see(event, call)

    def match(self) -> None:
        """Match the k-th access epoch of an origin to a target with the target's k-th exposure epoch to the origin."""
        for w, by_origin in self.accesses.items():
            for origin, accesses in by_origin.items():
                for target in {t for a in accesses for t in a.group}:
                    mine = [a for a in accesses if target in a.group]
                    yours = [e for e in self.exposures[w][target] if origin in e.group]
                    for a, e in zip(mine, yours, strict=False):
                        a.partners[target] = e
                        e.partners[origin] = a

    # --- collectives -------------------------------------------------------------------------------------------------

    def instances(self) -> Iterator[list[Collective]]:
        """Yield the instances of collective calls: the k-th calls of all members of a window."""
        for w, members in self.members.items():
            calls = [self.collectives[w][rank] for rank in members]
            # A process whose calls are missing leaves the instance incomplete.
            yield from ([*parts] for parts in zip(*calls, strict=False))

    def enter(self, part: Collective) -> int:
        return self.begins.get(part.call, part.call.enter) if self.stamps else part.begin.enter

    def leave(self, part: Collective) -> int:
        return self.ends[part.call] if self.stamps else part.call.leave

    def collective_waits(self) -> None:
        for parts in self.instances():
            if len(parts) < 2:
                continue
            last = max(parts, key=lambda p: (self.enter(p), -p.rank))
            library = interface(last.call)
            kind = last.kind
            if kind in CREATES:
                suffix = "rma_wait_at_create"
            elif kind in FREES:
                suffix = "rma_wait_at_free"
            elif library == "mpi":
                suffix = "rma_wait_at_fence"
            elif kind == CollectiveOp.BARRIER:
                suffix = "barrier_wait"
            elif kind in FROM_ROOT[: 3 if library == "pgas" else 1]:
                suffix = "latebroadcast"
            else:
                suffix = "wait_nxn"
            everyone = self.enter(last) < min(self.leave(p) for p in parts)
            # For a broadcast only the root counts, if it is known.
            root = next((p for p in parts if p.rank == last.root), None) if library == "pgas" else None
            if root and kind in FROM_ROOT:
                last = root
            elif not everyone and kind in FROM_ROOT[: 3 if library == "pgas" else 1]:
                continue
            for p in parts:
                if not everyone and suffix == "rma_wait_at_fence":
                    # It completes the operations on its process; else it needs nobody.
                    origins = [q for q in parts if q is not p and any(op.target == p.rank for op in q.ops)]
                    last = max(origins, key=lambda q: (self.enter(q), -q.rank), default=p)
                if not everyone and root and kind in TO_ROOT and p is not root:
                    continue
                for call in (*p.asked, p.call):
                    begin, end = call.enter, call.leave
                    if self.stamps:
                        begin, end = self.enter(p), self.leave(p)
                    waiting = min(self.enter(last), end) - begin
                    if waiting <= 0:
                        continue
                    self.result.wait(f"{library}_{suffix}", call, waiting, last.begin, self.enter(last))
                    if suffix == "rma_wait_at_fence":
                        self.early_fence(p, parts)

    def early_fence(self, fence: Collective, parts: list[Collective]) -> None:
        """A target waits for the last operation of each origin on it (specification.md#early-fence)."""
        mine = [op for part in parts for op in part.ops if op.target == fence.rank]
        if not mine:
            return
        last = max(mine, key=lambda op: (op.call.leave, -op.rank))
        waiting = last.call.leave - self.enter(fence)
        if waiting > 0 and last.call.leave <= self.leave(fence):
            self.result.wait("mpi_rma_early_fence", fence.call, waiting, last.call, last.call.leave)

    def allocation_waits(self) -> None:
        """Match the k-th allocations of all PEs of SHMEM, which synchronize but are not recorded."""
        calls = []
        for _rank, threads in sorted(self.processes.items()):
            names = SHMEM_CREATES | SHMEM_FREES
            found = [i for i in threads[0].instances if interface(i) == "shmem" and i.name in names]
            calls.append([i for i in found if i not in self.ends])
        for parts in zip(*calls, strict=False):
            last = max(parts, key=lambda call: (call.enter, -call.thread.rank))
            for call in parts:
                waiting = min(last.enter, call.leave) - call.enter
                if waiting > 0:
                    suffix = "create" if call.name in SHMEM_CREATES else "free"
                    self.result.wait(f"shmem_rma_wait_at_{suffix}", call, waiting, last, last.enter)

    # --- start, post, complete, wait ---------------------------------------------------------------------------------

    def pairs(self) -> None:
        """Count pair-wise synchronizations, and unneeded ones (specification.md#pair-wise-synchronizations)."""
        for parts in self.instances():
            members = {p.rank for p in parts}
            for p in parts:
                if p.kind == CollectiveOp.BARRIER:
                    accessed = {op.target for op in p.ops} & members
                    accessing = {op.rank for q in parts for op in q.ops if op.target == p.rank}
                    # In either direction a pair is needed; the process itself is only one.
                    needed = len(accessed) + len(accessing) - (p.rank in accessed)
                    self.count_pairs(p.call, len(parts), min(needed, len(parts)))
        for w, by_rank in self.collectives.items():
            for p in (p for parts in by_rank.values() for p in parts if w not in self.members):
                if p.kind == CollectiveOp.BARRIER and interface(p.call) == "mpi":
                    self.count_pairs(p.call, 1, len({op.target for op in p.ops}))
        for by_origin in self.accesses.values():
            for a in (a for accesses in by_origin.values() for a in accesses if a.complete is not None):
                self.count_pairs(a.complete, len(a.group), len({op.target for op in a.ops}))
        for by_target in self.exposures.values():
            for e in (e for exposures in by_target.values() for e in exposures if e.wait is not None):
                partners = {o for o, a in e.partners.items() if any(op.target == e.rank for op in a.ops)}
                self.count_pairs(e.wait, len(e.group), len(partners))

        for call, processes, locked in self.passive_syncs:
            size = processes
            if call.name == "MPI_Win_flush_all":
                # It leaves no record itself: its window is that of what it completes, or the only one that is locked.
                windows = {op.window for op in self.ops if op.done_remotely is call}
                windows = windows or (locked if len(locked) == 1 else set())
                size = len(self.members.get(windows.pop(), [0])) if windows else 0
            if size:
                self.count_pairs(call, size, len(self.completes.get(call, ())))
        for sent in self.notifications:
            self.count_pairs(sent.call, 1, int(sent.needed))
        for awaited in self.notified:
            sent = self.sent(awaited)
            self.count_pairs(awaited.call, 1, int(sent is None or sent.needed))

    def count_pairs(self, call: Instance, size: int, partners: int) -> None:
        self.result.add(f"{interface(call)}_rma_pairsync_count", call, size)
        self.result.add(f"{interface(call)}_rma_pairsync_unneeded_count", call, size - partners)

    def late_posts(self) -> None:
        """Late Post in complete, start, or operations (specification.md#late-post)."""
        for by_origin in self.accesses.values():
            for a in (a for accesses in by_origin.values() for a in accesses):
                if a.complete is not None and not a.partners:
                    self.evident.add(a.complete)
                if a.complete is None or not a.partners:
                    continue
                last = max(a.partners.values(), key=lambda e: (e.post.enter, -e.rank)).post
                if not a.complete.enter < last.enter <= a.complete.leave:
                    self.evident.add(a.complete)
                candidates = [(a.complete, last, "sync"), (a.start, last, "sync")]
                candidates += [(op.call, a.partners[op.target].post, "comm") for op in a.ops if op.target in a.partners]
                for call, post, kind in candidates:
                    if call.enter < post.enter <= call.leave:
                        metric = f"mpi_rma_{kind}_late_post"
                        self.result.wait(metric, call, post.enter - call.enter, post, post.enter)
                        break  # an epoch is blocked once

    def early_waits(self) -> None:
        for by_target in self.exposures.values():
            for e in (e for exposures in by_target.values() for e in exposures):
                accesses = [a for a in e.partners.values() if a.complete is not None]
                if e.wait is None or e.wait.name == "MPI_Win_test" or not accesses:
                    continue
                last = max(accesses, key=lambda a: (a.complete.enter, -a.rank)).complete
                until = min(last.enter, e.wait.leave)
                if until <= e.wait.enter:
                    continue
                self.result.wait("mpi_rma_early_wait", e.wait, until - e.wait.enter, last, last.enter)
                # The last operation of any origin, whoever completes last; without any all of the wait was avoidable.
                leaves = [op.call.leave for a in accesses for op in a.ops if op.target == e.rank]
                late = until - max([e.wait.enter, *leaves])
                if late > 0:
                    self.result.wait("mpi_rma_late_complete", e.wait, late, last, last.enter)

    # --- locks -------------------------------------------------------------------------------------------------------

    def find_contention(self) -> None:
        """Compare each epoch with the preceding owner of the lock (thesis, algorithm 2)."""
        for target, epochs in self.queues():
            for i, waiter in enumerate(epochs):
                for holder in holders(epochs[:i], waiter)[-1:]:
                    self.contend(waiter, holder, target)
        for call, (waiting, release, inferred) in self.contention.items():
            metric = f"{interface(call)}_rma_{self.variant(call)}_lock_competition"
            last = "progress" if self.delays(call) else "contention"
            # What the call waited for a message is explained.
            alone = call.enter + waiting - self.begin(call)
            if alone > 0:
                self.result.wait(metric, call, alone, release, release.leave, last=last, inferred=inferred)

    def queues(self) -> Iterator[tuple[int | None, list[LockEpoch]]]:
        """Yield the target of each lock, and its epochs in the order of acquisition."""
        queues: dict[Any, list[LockEpoch]] = defaultdict(list)
        static = self.static_locks()
        for key, epochs in self.locks.items():
            for e in epochs:
                queues[static.get((key, e.rank), key)].append(e)
        # By window, then target: of equal waits in one call the first tells the cause.
        for key in sorted(queues, key=lambda key: [part if isinstance(part, int) else -1 for part in key]):
            target = None if key[0] == "static" else key[1]
            yield target, self.owners(queues[key], target)

    def owners(self, epochs: list[LockEpoch], target: int | None) -> list[LockEpoch]:
        """Return the epochs of a lock in the order in which they owned it (specification.md#ownership-of-locks)."""
        proofs = {e: e.proof(target) for e in epochs}
        recorded = any(e.granted for e in epochs)
        if not epochs[0].blocking:
            if recorded:
                acquired = {e: min(proofs[e], e.granted[0]) if e.granted else proofs[e] for e in epochs}
            else:
                acquired = {e: min(proofs[e], e.acquire.leave) for e in epochs}
            order, contradicts = first_order(epochs, acquired)
            excluding = [(a, b) for a, b in pairwise(order) if not (a.shared and b.shared)]
            blocked = any(b.acquire.enter < a.release.enter < b.acquire.leave for a, b in excluding)
            if not contradicts and (blocked or recorded):
                self.proofs.update({(e, target): time for e, time in acquired.items()})
                for e in epochs:
                    call = e.granted[1] if e.granted else None if recorded else e.acquire
                    self.proving[e, target] = [*e.proofs(target), *filter(None, [call])]
                return order
        for e in epochs:
            e.granted = None
        self.proofs.update({(e, target): time for e, time in proofs.items()})
        self.proving.update({(e, target): e.proofs(target) for e in epochs})
        return first_order(epochs, proofs)[0]

    def static_locks(self) -> dict[tuple[Any, int], Any]:
        """Return the classes of static locks of SHMEM, whose addresses differ by whole pages from PE to PE.

        Ids that several PEs use are heap addresses and mean the same. Of the others those with equal low 12 bits are
        one lock if each PE has one of them at most and the PE's distance is the same for all of its locks.
        """
        users: dict[Any, set[int]] = defaultdict(set)
        for key, epochs in self.locks.items():
            if key[1] is None and epochs[0].blocking:
                users[key] |= {e.rank for e in epochs}
        groups: dict[Any, dict[int, Any]] = defaultdict(dict)
        twice = set()
        for key, ranks in users.items():
            if len(ranks) == 1:
                (rank,) = ranks
                low = (key[0], key[2] & 0xFFF)
                if rank in groups[low]:
                    twice.add(low)
                groups[low][rank] = key
        shifts: dict[tuple[int, int], set[int]] = defaultdict(set)
        for by_rank in groups.values():
            for a in by_rank:
                for b in by_rank:
                    shifts[a, b].add(by_rank[a][2] - by_rank[b][2])
        consistent = all(len(s) == 1 for s in shifts.values())
        return {
            (key, rank): ("static", *low)
            for low, by_rank in groups.items()
            if consistent and low not in twice and len(by_rank) > 1
            for rank, key in by_rank.items()
        }

    def contend(self, waiter: LockEpoch, holder: LockEpoch, target: int | None) -> None:
        """The call that overlaps the release waits from its Enter to the end of the release."""
        release = holder.release
        if waiter.blocking:
            # The order of acquisition is sure, so a release that seems to begin too late is the clocks' fault.
            found = [] if waiter.acquire.name in {"shmem_test_lock", "upc_lock_attempt"} else [waiter.acquire]
        elif waiter.granted:
            found = [waiter.granted[1]]
        else:
            found = [c for c in waiter.calls(target) if c.enter < release.leave and c.leave > release.enter]
        if not found:
            return
        # A release may last, and see several calls of the waiter: that which spent longest in it was blocked.
        waiting, call = max(
            ((min(release.leave, c.leave) - c.enter, c) for c in found), key=lambda f: (f[0], f[1].enter)
        )
        # One call may complete the epochs of several locks. It waits only once.
        if waiting > self.contention.get(call, (0,))[0]:
            inferred = self.proofs[holder, target] >= waiter.release.enter
            self.contention[call] = (waiting, release, inferred)

    def changes_waits(self) -> None:
        """A PE of SHMEM waits for the last write to it that began meanwhile (specification.md#wait-until)."""
        for call in self.changes:
            rank = call.thread.rank
            writes = [
                op.call for op in self.ops if op.target == rank != op.rank and not isinstance(op.event, ev.RmaGet)
            ]
            signals = [w for w in writes if call.enter < w.enter <= call.leave]
            if signals:
                signal = max(signals, key=lambda w: (w.enter, -w.thread.rank))
                self.result.wait("shmem_rma_wait_until", call, signal.enter - call.enter, signal, signal.enter)

    def notification_waits(self) -> None:
        """A notification ends the wait for it (specification.md#notifications)."""
        for awaited in self.notified:
            call, sent = awaited.call, self.sent(awaited)
            if sent is None or sent.rank == awaited.rank:
                continue
            waiting = min(sent.call.enter, call.leave) - call.enter
            if waiting > 0:
                library = interface(call)
                metric = "mpi_rma_early_wait" if library == "mpi" else f"{library}_rma_wait_until"
                self.result.wait(metric, call, waiting, sent.call, sent.call.enter)

    def sent(self, awaited: Notification) -> Notification | None:
        """Return what a process waits for: the k-th with its id, the k-th of its sender, or the last."""
        here = [one for one in self.notifications if (one.window, one.partner) == (awaited.window, awaited.rank)]
        alike = [
            one for one in self.notified if (one.window, one.rank, one.id) == (awaited.window, awaited.rank, awaited.id)
        ]
        if awaited.id is not None:
            here = sorted((one for one in here if one.id == awaited.id), key=lambda one: (one.call.enter, one.rank))
        elif awaited.partner is None:
            begin, end = awaited.call.enter, awaited.call.leave
            within = [one for one in here if begin < one.call.enter <= end]
            return max(within, key=lambda one: (one.call.enter, one.rank), default=None)
        else:
            here = [one for one in here if one.rank == awaited.partner]
            here = [one for one in here if one.id is None] or here
            alike = [one for one in alike if one.partner == awaited.partner]
        number = next(number for number, one in enumerate(alike) if one is awaited)
        return here[number] if number < len(here) else None

    # --- volumes and transfers ---------------------------------------------------------------------------------------

    def volumes(self) -> None:
        for op in self.ops:
            prefix = "" if interface(op.call) == "mpi" else f"{interface(op.call)}_"
            if isinstance(op.event, ev.RmaPut):
                self.result.add(f"{prefix}bytes_put", op.call, op.event.bytes)
            elif isinstance(op.event, ev.RmaGet):
                self.result.add(f"{prefix}bytes_get", op.call, op.event.bytes)
            else:
                # Not bytes: Score-P writes elements for MPI.
                self.result.add(f"{prefix}rma_atomic_sent", op.call, op.event.bytes_sent)
                self.result.add(f"{prefix}rma_atomic_received", op.call, op.event.bytes_received)

    def find_transfers(self) -> None:
        """Find transfers, which end in the synchronization that completes them; without MPI, in the call itself."""
        fences = {part: parts for parts in self.instances() for part in parts}
        for op in self.ops:
            end: Instance | None = op.done_locally or op.call
            if interface(op.call) == "mpi":
                end = self.end_of(op, fences)
            source, destination = (op.target, op.rank) if op.fetches else (op.rank, op.target)
            size = op.event.bytes if hasattr(op.event, "bytes") else max(op.event.bytes_sent, op.event.bytes_received)
            kind = {ev.RmaPut: "put", ev.RmaGet: "get"}.get(type(op.event), "atomic")
            t = op.event.time
            row = (kind, op.window, size, source, t, destination, end.leave if end else None, op.rank, t)
            self.result.transfers.append(Transfer(*row))

    @staticmethod
    def end_of(op: Op, fences: dict[Collective, list[Collective]]) -> Instance | None:
        if isinstance(op.epoch, LockEpoch):
            return ((op.done_locally or op.done_remotely) if op.fetches else op.done_remotely) or op.epoch.release
        if isinstance(op.epoch, Access):
            exposure = op.epoch.partners.get(op.target)
            return op.epoch.complete if op.fetches else exposure and exposure.wait
        if op.epoch is None or op.epoch.kind != CollectiveOp.BARRIER:
            return None
        if op.fetches or op.rank == op.target:
            return op.epoch.call
        return next((p.call for p in fences.get(op.epoch, ()) if p.rank == op.target), None)


class Process:
    """The open epochs of a process while its records are read by time."""

    def __init__(self, analysis: Analysis, rank: int) -> None:
        self.all = analysis
        self.rank = rank
        self.fence_ops: dict[int, list[Op]] = defaultdict(list)
        self.access: dict[int, Access] = {}
        self.exposure: dict[int, Exposure] = {}
        self.locks: dict[tuple[int, int | None, int], LockEpoch] = {}
        # An id may name several operations, and be used again: a record completes all that are open.
        self.open_locally: dict[tuple, list[Op]] = defaultdict(list)
        self.open_remotely: dict[tuple, list[Op]] = defaultdict(list)
        self.begun: dict[Any, Instance] = {}  # by thread: the call in which a collective operation begins
        # Others than MPI: what the next quiet or barrier completes at its target.
        self.unfinished: dict[str, list[Op]] = defaultdict(list)
        self.accessed: set[int] = set()  # since the last notification

    def see(self, event: Any, call: Instance) -> None:
        if isinstance(event, ev.RmaCollectiveBegin):
            self.all.begins[call] = event.time
            self.begun[call.thread] = call
        elif isinstance(event, ev.RmaCollectiveEnd):
            self.collective(event, call)
        elif isinstance(event, (ev.RmaPut, ev.RmaGet, ev.RmaAtomic)):
            self.operation(event, call)
        elif isinstance(event, (ev.RmaOpCompleteBlocking, ev.RmaOpCompleteNonBlocking, ev.RmaOpCompleteRemote)):
            self.completion(event, call)
        elif isinstance(event, ev.RmaGroupSync):
            self.group_sync(event, call)
        elif isinstance(event, (ev.RmaRequestLock, ev.RmaAcquireLock)):
            self.lock(event, call)
        elif isinstance(event, ev.RmaReleaseLock):
            self.unlock(event, call)
        elif isinstance(event, ev.RmaWaitChange):
            self.all.changes.append(call)
        elif isinstance(event, ev.RmaWinDestroy):
            self.fence_ops.pop(event.win._ref, None)
        elif isinstance(event, ev.RmaSync):
            self.notification(event, call)
        elif isinstance(event, ev.Enter) and call.name == "shmem_quiet":
            # It leaves no record of what it completes.
            pending = self.unfinished.pop("shmem", [])
            self.all.completes[call] |= {op.target for op in pending if op.done_remotely is None}
            self.all.passive_syncs.append((call, len(self.all.processes), set()))
        elif isinstance(event, ev.Enter) and call.name == "ARMCI_AllFence":
            self.all.passive_syncs.append((call, len(self.all.processes), set()))
        elif isinstance(event, ev.Enter) and call.name == "MPI_Win_flush_all":
            self.all.passive_syncs.append((call, 0, {w for w, _, _ in self.locks}))

    def notification(self, event: Any, call: Instance) -> None:
        w, partner = event.win._ref, self.target(event)
        ids = [value for attribute, value in (event.attributes or {}).items() if attribute.name == "notification"]
        here = Notification(w, self.rank, partner, ids[0] if ids else None, call, partner in self.accessed)
        if event.sync_type == RmaSyncType.NOTIFY_OUT:
            self.all.notifications.append(here)
            self.accessed.discard(partner)
        elif event.sync_type == RmaSyncType.NOTIFY_IN:
            self.all.notified.append(here)

    def target(self, event: Any) -> int | None:
        """Return the process of a rank in a window; None for MPI_PROC_NULL, the complete window, and threads."""
        group = event.win.comm.group
        if group.paradigm == Paradigm.MEASUREMENT_SYSTEM:
            return None
        if group.group_flags == GroupFlag.GLOBAL_MEMBERS:
            members = sorted(self.all.processes)
        else:
            members = self.all.ranks(group, self.rank)
        return members[event.remote] if event.remote < len(members) else None

    def collective(self, event: Any, call: Instance) -> None:
        self.all.ends[call] = event.time
        self.all.active.add(call)
        begin, asked = self.begun.pop(call.thread, call), []
        if interface(call) == "mpi" or interface(begin) != interface(call):
            begin = call
        elif begin.region is call.region:
            asked = [
                i for i in call.thread.instances if i.region is call.region and begin.enter <= i.enter < call.enter
            ]
        members = self.all.members.get(event.win._ref, [self.rank])
        root = members[event.root] if event.root < len(members) else None
        here = Collective(self.rank, call, event.collective_op, event.win._ref, begin, asked, root)
        # Creating and freeing complete nothing: an operation that is pending then belongs to no fence.
        here.ops = self.fence_ops.pop(here.window, [])
        for op in here.ops:
            op.epoch = here
        self.all.collectives[here.window][self.rank].append(here)
        if interface(call) != "mpi" and here.kind == CollectiveOp.BARRIER:
            # Of what it completes the records may stand before its own end.
            pending = self.unfinished.pop(interface(call), [])
            here.ops = [op for op in pending if op.done_remotely in (None, call)]
            for op in here.ops:
                op.epoch = here

    def operation(self, event: Any, call: Instance) -> None:
        target = self.target(event)
        if target is None:
            return
        w = event.win._ref
        op = Op(self.rank, target, w, event, call)
        self.all.ops.append(op)
        self.all.op_calls.add(call)
        self.open_locally[call.thread, w, event.matching_id].append(op)
        self.open_remotely[call.thread, w, event.matching_id].append(op)
        self.accessed.add(target)
        if interface(call) != "mpi" and not op.fetches:
            self.unfinished[interface(call)].append(op)
        if interface(call) != "mpi":
            # It may wait for its target, whatever its name says; in GASPI only what completes it does.
            if call.region.paradigm != Paradigm.GASPI:
                self.all.completes[call].add(target)
            return  # no epochs there
        held = [e for e in self.locks.values() if e.window == w and e.target == target]
        held += [e for e in self.locks.values() if e.window == w and e.target is None]
        if held:
            op.epoch = held[0]
            held[0].ops.append(op)
        elif w in self.access and target in self.access[w].group:
            op.epoch = self.access[w]
            self.access[w].ops.append(op)
        else:
            self.fence_ops[w].append(op)

    def completion(self, event: Any, call: Instance) -> None:
        remotely = isinstance(event, ev.RmaOpCompleteRemote)
        pending = self.open_remotely if remotely else self.open_locally
        for op in pending.pop((call.thread, event.win._ref, event.matching_id), []):
            if remotely:
                op.done_remotely = call
            else:
                op.done_locally = call
            # A library may wait for the target even if the operation need only be complete here.
            if remotely or op.fetches or call is not op.call:
                self.all.completes[call].add(op.target)

    def group_sync(self, event: Any, call: Instance) -> None:
        w = event.win._ref
        self.all.active.add(call)
        if event.sync_level == RmaSyncLevel.NONE:
            return  # a test that failed
        group = self.all.ranks(event.group, self.rank)
        if call.name == "MPI_Win_start":
            self.access[w] = Access(self.rank, group, call)
            self.all.accesses[w][self.rank].append(self.access[w])
        elif call.name == "MPI_Win_complete" and w in self.access:
            self.access.pop(w).complete = call
        elif call.name == "MPI_Win_post":
            self.exposure[w] = Exposure(self.rank, group, call)
            self.all.exposures[w][self.rank].append(self.exposure[w])
        elif call.name in ("MPI_Win_wait", "MPI_Win_test") and w in self.exposure:
            self.exposure.pop(w).wait = call

    def lock(self, event: Any, call: Instance) -> None:
        target = self.target(event)
        key = (event.win._ref, target, event.lock_id)
        mpi = interface(call) == "mpi"
        if mpi and key in self.locks:
            self.locks[key].granted = (event.time, call)
            return
        shared = event.lock_type == LockType.SHARED
        self.locks[key] = LockEpoch(self.rank, key[0], target, shared, not mpi, call)
        if mpi:
            self.all.locking[call] = set(self.all.members.get(key[0], ())) if target is None else {target}
            if target is None:
                self.all.locking_all.add(call)

    def unlock(self, event: Any, call: Instance) -> None:
        target = self.target(event)
        w = event.win._ref
        epoch = self.locks.pop((w, target, event.lock_id), None)
        if epoch is None:
            return
        epoch.release = call
        if epoch.blocking:
            self.all.locks[w, target, event.lock_id].append(epoch)
            return
        if target is not None:
            self.all.completes[call].add(target)
        else:
            self.all.passive_syncs.append((call, len(self.all.members.get(w, [0])), set()))
        # Which locks a lock_all really took is unknown but for those of the processes that it accessed.
        for t in {op.target for op in epoch.ops} if target is None else {target}:
            self.all.locks[w, t, event.lock_id].append(epoch)


def total(result: Result, metric: str, ranks: Iterable[int] | None = None) -> float:
    """Return the sum of a metric over some ranks, in seconds."""
    chosen = None if ranks is None else set(ranks)
    cells = result.cells.items()
    return sum(v for (m, _, r), v in cells if m == metric and (chosen is None or r in chosen)) / result.resolution
