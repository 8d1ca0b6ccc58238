"""An independent census of the constraints of time: which moments come before which, by docs/clocks.md#constraints."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from otf2 import events as ev
from otf2.enums import CollectiveOp, Paradigm, RegionRole

from tests import (
    naive,
    naive_devices,
    naive_groups,
    naive_looks,
    naive_owners,
    naive_progress,
    naive_rma,
    naive_threads,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.naive import Instance

# Kinds within a process: no least time between two processes applies.
LOCAL = {"fork", "join", "thread_barrier", "thread_lock", "device"}


class Constraint(NamedTuple):
    """A moment (location, time) that comes before the target; `key` tells targets apart."""

    kind: str
    source: tuple[int, int]
    target: tuple[int, int]
    key: Any


class Count(NamedTuple):
    """The targets of a kind: how many, how many come too early, and by how many ticks at most."""

    checked: int
    violated: int
    worst: int


def census(anchor: Path | str, latency: int = 0) -> dict[str, Count]:
    """Count the targets of each kind; each counts once, against the latest of its sources on other locations."""
    amounts: dict[str, dict[Any, int]] = defaultdict(dict)
    for one in constraints(naive.Trace(anchor)):
        if one.source[0] != one.target[0]:
            amount = one.source[1] - one.target[1] + (0 if one.kind in LOCAL else latency)
            of_kind = amounts[one.kind]
            of_kind[one.key] = max(of_kind.get(one.key, amount), amount)
    return {
        kind: Count(len(of), sum(amount > 0 for amount in of.values()), max(0, *of.values()))
        for kind, of in amounts.items()
    }


def constraints(trace: naive.Trace) -> Iterator[Constraint]:
    """Yield all pairs of a source and a target."""
    yield from messages(trace)
    yield from collectives(trace)
    yield from one_sided(trace)
    yield from threads(trace)
    yield from devices(trace)


def enter(call: Instance) -> tuple[int, int]:
    return call.thread.ref, call.enter


def leave(call: Instance) -> tuple[int, int]:
    return call.thread.ref, call.leave


def to_call(kind: str, source: tuple[int, int], call: Instance) -> Constraint:
    """The Leave of a call is the target; calls of a location that end at one time are one target."""
    return Constraint(kind, source, leave(call), leave(call))


def everybody(kind: str, calls: list[Instance]) -> Iterator[Constraint]:
    for source in calls:
        for target in calls:
            yield Constraint(kind, enter(source), leave(target), target)


def messages(trace: naive.Trace) -> Iterator[Constraint]:
    matched = naive.match(trace, naive.Result(trace.resolution, trace.begin))
    parts = naive_looks.parts(trace)
    for r in (m for of in matched.values() for m in of if naive.is_receive(m) and m.partner is not None):
        s = r.partner
        yield Constraint("p2p", (s.start.thread.ref, s.sent), (r.thread.ref, r.event.time), r)
        for call, recorded, _ in naive_looks.found_parts(parts, r):
            yield from (to_call("p2p", enter(sender), call) for sender in recorded)
        if s.start.name in {"MPI_Ssend", "MPI_Issend"} and s.done is not None:
            yield to_call("ssend", enter(r.start), s.done)


def collectives(trace: naive.Trace) -> Iterator[Constraint]:
    def pairs(kind: str, sources: list, targets: list) -> Iterator[Constraint]:
        for s in sources:
            for t in targets:
                yield Constraint(kind, (s.call.thread.ref, s.begin), (t.call.thread.ref, t.end), t)

    for op, parts in naive.operations(trace):
        senders, receivers = [p for p in parts if p.sent], [p for p in parts if p.received]
        root = next((p for p in parts if p.rank == p.root), None)
        if op in naive.BARRIER:
            yield from pairs("barrier", parts, parts)
        elif op in naive.N_TO_N:
            yield from pairs("n_to_n", senders, receivers)
        elif op in naive.ONE_TO_N and root.sent:
            yield from pairs("one_to_n", [root], [p for p in receivers if p is not root])
        elif op in naive.N_TO_ONE and root.received:
            yield from pairs("n_to_one", [p for p in senders if p is not root], [root])
        elif op in naive.SCAN:
            for t in parts:
                if t.received:
                    yield from pairs("prefix", [p for p in senders if p.rank < t.rank], [t])
    finals = [[i for t in of for i in t.instances if i.is_mpi and i.name == "MPI_Finalize"] for of in
              trace.processes.values()]  # fmt: skip
    if sum(map(bool, finals)) > 1:
        yield from everybody("barrier", [calls[0] for calls in finals if calls])
    kinds = {"mpi_barrier_wait": "barrier", "mpi_wait_nxn": "n_to_n", "mpi_latebroadcast": "one_to_n",
             "mpi_earlyreduce": "n_to_one"}  # fmt: skip
    for op, groups in naive_groups.operations(trace):
        for metric, me, others in naive_groups.needs(op, groups):
            if metric:
                yield from pairs(kinds[metric], others, [me])
    topologies = {t.communicator._ref: naive.neighbors(t, trace.definitions) for t in trace.definitions.cart_topologies}
    for parts in naive.nonblocking_operations(trace):
        op, root = parts[0][3].collective_op, parts[0][3].root
        comm = parts[0][3].communicator
        members = [member.group._ref for member in comm.group.members]
        is_local = parts[0][1].name.startswith("MPI_Ineighbor_")
        for i, (_, _, completing, own) in enumerate(parts):
            for k, (_, starting, _, other) in enumerate(parts):
                data = other.size_sent > 0 and own.size_received > 0
                if is_local:
                    is_needed = members[k] in topologies.get(comm._ref, {}).get(members[i], ())
                else:
                    is_needed = i != k and (
                        op in naive.BARRIER
                        or (op in naive.N_TO_N and data)
                        or (op in naive.ONE_TO_N and k == root and data)
                        or (op in naive.N_TO_ONE and i == root and data)
                        or (op in naive.SCAN and k < i and data)
                    )
                if is_needed:
                    # The location is that of the call that completes the operation.
                    source = parts[k][2].thread.ref, starting.enter
                    yield Constraint("nonblocking", source, leave(completing), (completing, own.request_id))


def one_sided(trace: naive.Trace) -> Iterator[Constraint]:
    found = naive_rma.Analysis(trace)
    for parts in found.instances():
        library = naive_progress.interface(parts[0].call)
        calls, kind = [part.call for part in parts], parts[0].kind
        if len(parts) < 2:
            continue
        if library == "mpi" and kind != CollectiveOp.BARRIER:
            yield from everybody("window", calls)
        elif library != "mpi" and kind not in (CollectiveOp.BCAST, CollectiveOp.CREATE_HANDLE):
            # Where a root is known, the others need not wait for each other.
            rooted = (*naive_rma.FROM_ROOT, *(naive_rma.TO_ROOT if parts[0].root is not None else ()))
            if library == "pgas" and kind in rooted:
                continue
            for here in parts:
                yield from (to_call("shmem", enter(other.begin), here.call) for other in parts)
    yield from fences(found)
    for accesses in (a for by_origin in found.accesses.values() for of in by_origin.values() for a in of):
        for target, exposure in accesses.partners.items():
            if accesses.complete is not None and any(op.target == target for op in accesses.ops):
                yield to_call("post", enter(exposure.post), accesses.complete)
            if accesses.complete is not None and exposure.wait is not None:
                yield to_call("complete", enter(accesses.complete), exposure.wait)
    allocations = []
    for _rank, of in sorted(found.processes.items()):
        names = naive_rma.SHMEM_CREATES | naive_rma.SHMEM_FREES
        calls = [i for i in of[0].instances if naive_progress.interface(i) == "shmem" and i.name in names]
        allocations.append([i for i in calls if i not in found.ends])
    for calls in zip(*allocations, strict=False):
        yield from everybody("shmem", list(calls))
    for target, epochs in found.queues():
        for i, own in enumerate(epochs):
            for before in naive_owners.holders(epochs[:i], own):
                # An inferred order bounds nothing, and an epoch without operations may never have had the lock.
                proofs = found.proving[own, target]
                if proofs and found.proofs[before, target] < own.release.enter:
                    yield to_call("lock", enter(before.release), min(proofs, key=lambda call: call.leave))
    for awaited in found.notified:
        # What only its time tells bounds nothing.
        sent = None if awaited.partner is None and awaited.id is None else found.sent(awaited)
        if sent is not None:
            yield to_call("notify", enter(sent.call), awaited.call)


def fences(found: naive_rma.Analysis) -> Iterator[Constraint]:
    for w, members in found.members.items():
        calls = [found.collectives[w][rank] for rank in members]
        last: dict[int, Instance] = {}
        for parts in zip(*calls, strict=False):
            if naive_progress.interface(parts[0].call) != "mpi" or parts[0].kind != CollectiveOp.BARRIER:
                continue
            by_rank = {part.rank: part for part in parts}
            for origin in parts:
                for target in {op.target for op in origin.ops} & by_rank.keys() - {origin.rank}:
                    yield to_call("fence", enter(origin.call), by_rank[target].call)
                    if target in last:
                        yield to_call("fence", enter(last[target]), origin.call)
            last |= {part.rank: part.call for part in parts}


def threads(trace: naive.Trace) -> Iterator[Constraint]:
    for team in trace.teams:
        forker = team.forked_in.thread
        for member in team.members:
            first = member[0]
            yield Constraint("fork", (forker.ref, team.fork), enter(first), (first, "begin"))
            if team.join >= 0:
                yield Constraint("join", leave(first), (forker.ref, team.join), (forker, team.join))
        roles = RegionRole.BARRIER, RegionRole.IMPLICIT_BARRIER
        barriers = [[i for i in member if i.is_openmp(*roles)] for member in team.members]
        if len(barriers) > 1 and len({len(of) for of in barriers}) == 1:
            for turn in zip(*barriers, strict=True):
                yield from everybody("thread_barrier", list(turn))
    acquires, releases = (ev.ThreadAcquireLock, ev.OmpAcquireLock), (ev.ThreadReleaseLock, ev.OmpReleaseLock)
    for of_process in trace.processes.values():
        records = [
            naive_threads.Record(
                t.ref, e.time, isinstance(e, acquires), (getattr(e, "model", Paradigm.OPENMP), e.lock_id),
                e.acquisition_order, call, call.name, call.enter, call.leave,
            )
            for t in of_process for e, call in t.records if isinstance(e, acquires + releases)
        ]  # fmt: skip
        ends = {t.ref: max((e.time for e, _ in t.records), default=0) for t in of_process}
        for lock in {r.lock for r in records}:
            owners = naive_threads.ownerships([r for r in records if r.lock == lock], ends)
            for own, before in naive_threads.handovers(owners):
                source, target = (before.thread, before.release.time), (own.thread, own.acquire.time)
                yield Constraint("thread_lock", source, target, target)


def devices(trace: naive.Trace) -> Iterator[Constraint]:
    found = naive_devices.Devices(trace, naive.Result(trace.resolution, trace.begin))
    for process in found.processes.values():
        for kernel in process.kernels:
            if kernel.launch is not None:
                yield Constraint("device", enter(kernel.launch.call), enter(kernel.run), (kernel, "begin"))
        for kernel, launch in process.early.values():
            yield Constraint("device", enter(launch.call), enter(kernel.run), (kernel, "begin"))
        for synchronization in process.synchronizations if process.streams else ():
            awaited = naive_devices.await_kernels(process, synchronization)
            if last := max(awaited, key=lambda kernel: kernel.run.leave, default=None):
                yield to_call("device", leave(last.run), synchronization.call)
