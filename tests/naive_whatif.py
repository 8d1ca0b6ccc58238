"""An oracle for the what-if simulation of messages and collective operations of processes without threads.

It shares no code with the program: it implements rule R (docs/whatif.md, "How it works") without estimates of hidden
transfers, and advances one process after another as far as possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import otf2
from otf2 import events as ev
from otf2.enums import CollectiveOp, GroupType

from tests import naive, naive_groups, naive_looks, naive_protocols
from tests.naive_protocols import RENDEZVOUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.naive import Instance, Trace

TO_ALL = {*naive.N_TO_N, CollectiveOp.ALLTOALLV, CollectiveOp.ALLTOALLW}


@dataclass
class Call:
    """A call in a collective operation."""

    instance: Instance
    rank: int
    root: int
    sends: bool
    receives: bool


@dataclass
class Simulation:
    """New times of the Enters and Leaves of each process, in the order of its events.

    `factor` says how many times as long a segment takes by the region instance that it belongs to.
    """

    anchor: Path
    factor: Callable[[Instance], float]
    trace: Trace = field(init=False)
    # The Enters that the Leave of a call waits for.
    sources: dict[Instance, list[Instance]] = field(init=False, default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.trace = naive.Trace(self.anchor)
        assert all(len(threads) == 1 for threads in self.trace.processes.values())
        self._messages()
        self._collectives()
        for parts, next_to in naive.neighborhood_operations(self.trace):
            for process, part in parts.items():
                for other in next_to[process]:
                    self._wait(part.call, parts[other].call)
        self._finalize()

    # --- who waits for whom ------------------------------------------------------------------------------------------

    def _messages(self) -> None:
        result = naive.Result(self.trace.resolution, self.trace.begin)
        parts = naive_looks.parts(self.trace)
        everyone = [m for of in naive.match(self.trace, result).values() for m in of]
        receives = [m for m in everyone if naive.is_receive(m) and m.partner]
        proofs, decided = naive_protocols.proofs(self.trace, receives), naive_protocols.decided(self.trace, receives)
        late = [w for w in naive.analyze(self.trace).waits if w.kind == "mpi_latereceiver"]
        late = {(w.rank, w.thread, w.enter, w.cause_rank, w.cause_callpath, w.enter + w.waiting) for w in late}
        for r in receives:
            s = r.partner
            protocol = decided[id(r)]
            waits = s.done and (s.done.thread.rank, s.done.thread.number, s.done.enter)
            is_late = waits and (*waits, r.thread.rank, r.start.callpath, r.start.enter) in late
            if proofs[id(r)] is None and is_late:
                protocol = RENDEZVOUS
            for part in parts.get(id(s.event), ()):
                self._wait(r.done, part.call)
            for call, _, needed in naive_looks.found_parts(parts, r):
                for sender in needed:
                    self._wait(call, sender)
            self._wait(r.done, s.start)
            if protocol is RENDEZVOUS:
                self._wait(r.done, r.start)
                if s.done is not None:
                    self._wait(s.done, r.start)
                    self._wait(s.done, s.start)

    def _wait(self, who: Instance, what: Instance) -> None:
        if who is not what:
            self.sources[who].append(what)

    def _in_tree(self, root: Call, calls: list[Call]) -> None:
        """A member waits for the last one that comes before it leaves, if it leaves right after that."""
        for one in calls:
            own = one.instance
            come = [other.instance for other in calls if own.enter < other.instance.enter < own.leave]
            if one is root or not come:
                continue
            last = max(other.enter for other in come)
            if 5 * len(come) * (own.leave - last) <= own.leave - own.enter:
                self._wait(own, next(other for other in come if other.enter == last))

    def _collectives(self) -> None:
        operations: dict[tuple[int, int], tuple[Any, list[Call], int]] = {}
        for thread in self.trace.threads.values():
            turn: Counter[int] = Counter()
            for event, call in thread.records:
                if not isinstance(event, ev.MpiCollectiveEnd):
                    continue
                comm = event.communicator
                if isinstance(comm, otf2.definitions.InterComm) or comm.group.group_type == GroupType.COMM_SELF:
                    continue
                members = [m.group._ref for m in comm.group.members]
                rank = members.index(thread.process)
                part = Call(call, rank, event.root, event.size_sent > 0, event.size_received > 0)
                key = (comm._ref, turn[comm._ref])
                turn[comm._ref] += 1
                operations.setdefault(key, (event.collective_op, [], len(members)))[1].append(part)
        for op, calls, size in operations.values():
            if size > 1 and len(calls) == size:
                self._collective(op, sorted(calls, key=lambda call: call.rank))
        for op, groups in naive_groups.operations(self.trace):
            for _, me, others in naive_groups.needs(op, groups):
                for you in others:
                    self._wait(me.call, you.call)

    def _collective(self, op: CollectiveOp, calls: list[Call]) -> None:
        if op in naive.BARRIER:
            for one in calls:
                for other in calls:
                    self._wait(one.instance, other.instance)
        elif op in TO_ALL:
            if op not in naive.N_TO_N and not all(call.sends and call.receives for call in calls):
                return
            part = [call for call in calls if call.sends or call.receives]
            latest = max((call.instance.enter for call in part), default=0)
            together = all(call.instance.leave > latest for call in part)
            for one in part:
                for other in part:
                    if together or (op in naive.N_TO_N and other.sends and one.receives):
                        self._wait(one.instance, other.instance)
        elif op in naive.ONE_TO_N:
            root = calls[calls[0].root]
            for one in calls:
                if one is not root and one.receives and root.sends:
                    self._wait(one.instance, root.instance)
        elif op in naive.N_TO_ONE:
            root = calls[calls[0].root]
            for other in calls:
                if other is not root and other.sends and root.receives:
                    self._wait(root.instance, other.instance)
            if root.receives:
                self._in_tree(root, [call for call in calls if call is root or call.sends])
        elif op in naive.SCAN:
            for one in (call for call in calls if call.receives):
                for other in calls[: one.rank]:
                    if other.sends:
                        self._wait(one.instance, other.instance)

    def _finalize(self) -> None:
        ends = [
            next((i for i in thread.instances if i.name == "MPI_Finalize"), None)
            for thread in self.trace.threads.values()
        ]
        known = [end for end in ends if end is not None]
        if len(known) > 1:
            for one in known:
                for other in known:
                    self._wait(one, other)

    # --- new times ---------------------------------------------------------------------------------------------------

    def run(self) -> dict[int, list[int]] | None:
        """Return the new times by location; None if calls wait for each other in a cycle."""
        steps = {ref: list(of_thread(thread)) for ref, thread in self.trace.threads.items()}
        new: dict[int, list[int]] = {ref: [] for ref in steps}
        enters: dict[Instance, int] = {}
        moved = True
        while moved:
            moved = False
            for ref, of in steps.items():
                while len(new[ref]) < len(of) and self._step(of, new[ref], enters):
                    moved = True
        return new if all(len(new[ref]) == len(of) for ref, of in steps.items()) else None

    def _step(self, of: list[tuple[int, bool, Instance]], new: list[int], enters: dict[Instance, int]) -> bool:
        time, leaves, instance = of[len(new)]
        if not new:
            now = time
        else:
            before, left, last = of[len(new) - 1]
            inside = last.parent if left else last
            sources = self.sources.get(instance, []) if leaves else []
            if any(source not in enters for source in sources):
                return False
            latest = max([before, *(min(source.enter, time) for source in sources)])
            remainder = round((time - latest) * (self.factor(inside) if inside else 1.0))
            offsets = (enters[source] + min(0, time - source.enter) for source in sources)
            now = max([new[-1], *offsets]) + remainder
        new.append(now)
        if not leaves:
            enters[instance] = now
        return True


def of_thread(thread: naive.Thread) -> Any:
    """Yield the Enters and Leaves of a process: time, whether it is a Leave, and region instance."""
    for event, instance in thread.records:
        if isinstance(event, (ev.Enter, ev.ProgramBegin)):
            yield event.time, False, instance
        elif isinstance(event, (ev.Leave, ev.ProgramEnd)):
            yield event.time, True, instance
