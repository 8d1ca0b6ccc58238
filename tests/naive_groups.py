"""Oracle of blocking collective operations on intercommunicators, whose data flow from one group to the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import otf2
from otf2 import events as ev

from tests import naive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otf2.enums import CollectiveOp

    from tests.naive import Part, Result, Trace

# The root of an operation that is the process itself.
ROOT_SELF = 0xFFFFFFFE


def operations(trace: Trace) -> Iterator[tuple[CollectiveOp, tuple[list[Part], list[Part]]]]:
    """Yield the operations in which all of both groups take part, with the parts of each group by rank."""
    found = defaultdict(lambda: ({}, {}))
    about = {}
    for thread in trace.threads.values():
        turn, begin = Counter(), -1
        for event, call in thread.records:
            if isinstance(event, ev.MpiCollectiveBegin):
                begin = event.time
            comm = event.communicator if isinstance(event, ev.MpiCollectiveEnd) else None
            if not isinstance(comm, otf2.definitions.InterComm):
                continue
            groups = [[m.group._ref for m in group.members] for group in (comm.groupA, comm.groupB)]
            number = 0 if thread.process in groups[0] else 1
            rank = groups[number].index(thread.process)
            part = naive.Part(call, rank, max(begin, call.enter), event.time, event.size_sent, event.size_received)
            part.root = event.root
            key = (comm._ref, turn[comm._ref])
            turn[comm._ref] += 1
            found[key][number][rank] = part
            about[key] = (event.collective_op, [len(group) for group in groups])
    for key, groups in found.items():
        op, sizes = about[key]
        if [len(group) for group in groups] == sizes:
            yield op, tuple([group[rank] for rank in sorted(group)] for group in groups)


def needs(op: CollectiveOp, groups: tuple[list[Part], list[Part]]) -> Iterator[tuple[str, Part, list[Part]]]:
    """Yield each part with those of the other group that it needs, and the metric of its wait."""
    for own, other in (groups, groups[::-1]):
        for me in own:
            if op in naive.BARRIER:
                yield "mpi_barrier_wait", me, other
            elif op in naive.N_TO_N and me.received:
                yield "mpi_wait_nxn", me, [you for you in other if you.sent]
            elif op in naive.ONE_TO_N and me.received:
                yield "mpi_latebroadcast", me, [you for you in other if you.rank == me.root and you.sent]
            elif op in naive.N_TO_ONE and me.root == ROOT_SELF and me.received:
                yield "mpi_earlyreduce", me, [you for you in other if you.sent]


def add_waits(trace: Trace, result: Result) -> None:
    """Book the waits for the latest member of the other group (specification.md#intercommunicators)."""
    for op, groups in operations(trace):
        for metric, me, others in needs(op, groups):
            if others:
                naive.wait_for(naive.last(others), me, metric, result)
