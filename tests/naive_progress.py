"""An oracle for Wait for Progress: what targets did while calls waited for them (specification.md#wait-for-progress).

`Progress` is the part of `tests.naive_rma.Analysis` that finds these waits, once the epochs and contention are known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from otf2.enums import Paradigm

from tests.naive import TESTS, Instance

if TYPE_CHECKING:
    from tests.naive_rma import Op, Result

HABIT = 3  # calls
TRIES = TESTS | {"ARMCI_Test", "shmem_int_test", "upc_lock_attempt"}


def interface(call: Instance) -> str | None:
    """Return the communication library of a call, as the prefix of its metrics."""
    paradigm = call.region.paradigm if call.region is not None else None
    if call.name.startswith("ARMCI_") and paradigm != Paradigm.COMPILER:
        return "armci"  # OTF2 knows no such paradigm
    names = {Paradigm.MPI: "mpi", Paradigm.SHMEM: "shmem", Paradigm.GASPI: "pgas", Paradigm.UPC: "pgas"}
    return names.get(paradigm)


class Delay(NamedTuple):
    """What a target did while a call waited: calls, the end of all before the last one, and how long it was away."""

    first: Instance
    last: Instance
    before: int
    away: int


def away(calls: list[Instance], begin: int, end: int) -> int:
    """Return how much of the time between two ticks lies in none of the calls."""
    outside = 0
    for i in calls:
        outside += max(0, min(i.enter, end) - begin)
        begin = max(begin, i.leave)
    return outside + max(0, end - begin)


def nine_of_ten(lengths: list[int]) -> int:
    """Return the length that nine of ten do not exceed, rounded up to four significant bits."""
    length = next(v for n, v in enumerate(sorted(lengths), 1) if 10 * n >= 9 * len(lengths))
    bits = max(0, length.bit_length() - 4)
    return (((length >> bits) + 1) << bits) - 1


class Progress:
    """The waits for progress of an analysis."""

    result: Result
    ops: list[Op]
    processes: dict[int, Any]
    library: dict[int, list[Instance]]
    messages: dict[Instance, int]
    contention: dict[Instance, Any]
    completes: dict[Instance, set[int]]
    locking: dict[Instance, set[int]]
    locking_all: set[Instance]
    active: set[Instance]
    evident: set[Instance]
    op_calls: set[Instance]

    def variant(self, call: Instance) -> str:
        """Return whether a call communicates or only synchronizes."""
        return "comm" if call in self.op_calls else "sync"

    def library_calls(self, rank: int) -> list[Instance]:
        """Return the calls in which a process makes progress, by Enter."""
        if rank not in self.library:
            calls = [i for thread in self.processes[rank] for i in thread.instances if interface(i)]
            outermost = [i for i in calls if i.parent is None or not interface(i.parent)]
            self.library[rank] = sorted(outermost, key=lambda i: i.enter)
        return self.library[rank]

    def delays(self, call: Instance) -> list[Delay]:
        """Return what targets did that made the progress that a call needs, by Enter."""
        if (call in self.active and call not in self.evident) or call.name in TRIES:
            return []
        found = []
        for rank in (self.completes.get(call, set()) | self.locking.get(call, set())) - {call.thread.rank}:
            calls = self.library_calls(rank)
            since = call.enter
            if call in self.contention:
                # Nothing could proceed before the release, and what the target did in its time is not known to have
                # helped: it may be the release itself.
                release = self.contention[call][1].leave
                since = max(since, release)
                first = next((i for i in calls if i.enter > release), None)
            else:
                first = next((i for i in calls if i.leave >= call.enter), None)
                if call in self.locking and first is not None and call.enter < first.enter < call.leave:
                    # The call returns with the lock: the target's last call that begins in it has granted it.
                    first = [i for i in calls if i.enter < call.leave][-1]
            # A call that ended without the target needed nothing from it; of many, some grant the lock at once.
            at_once = call in self.locking_all and first is not None and first.enter <= since
            if first is not None and first.enter < call.leave and not at_once:
                *before, last = [i for i in calls if i.enter < call.leave]
                # What the target did before its first activity helped nobody.
                missed = max(0, first.enter - since) + away(calls, max(since, first.enter), last.enter)
                found.append(Delay(first, last, max((i.leave for i in before), default=0), missed))
        found.sort(key=lambda delay: (delay.first.enter, delay.first.thread.rank))
        # The last to grant a lock on all decides alone.
        last = max(found, key=lambda d: (d.first.enter, -d.first.thread.rank), default=None)
        return [last] if last and call in self.locking_all else found

    def begin(self, call: Instance) -> int:
        """Return the time from which a call waits only for one-sided communication."""
        return self.messages.get(call, call.enter)

    def kind(self, call: Instance) -> tuple[Any, int]:
        """Return what a call is, and how many bits there are in the number of bytes that it completes."""
        ops = [op for op in self.ops if call in (op.done_locally, op.done_remotely)]
        sizes = [e.bytes if hasattr(e, "bytes") else e.bytes_sent + e.bytes_received for e in (op.event for op in ops)]
        return call.region, sum(sizes).bit_length()

    def progress(self) -> None:
        """Sum the time before each call of a target that overlaps none of the others (thesis, algorithm 1).

        A lock moves no data: nothing of what its targets do in their calls is a transfer. Then find the calls that
        another call of a target evidently served (specification.md#wait-for-progress).
        """
        calls = dict.fromkeys((*self.completes, *self.locking, *self.contention))
        lengths: tuple[dict[Any, list[int]], ...] = defaultdict(list), defaultdict(list), defaultdict(list)
        found: dict[Instance, tuple[int, int, list[Delay]]] = {}
        for call in calls:
            targets = self.delays(call)
            begin = self.begin(call)
            if call in self.contention:
                begin = max(begin, self.contention[call][1].leave)
            takes_part = call in self.active and call not in self.evident
            others = self.completes.get(call, set()) - {call.thread.rank} and not takes_part
            if not (others or call in self.locking) or call.name in TRIES:
                continue
            is_own = call in self.locking and not self.locking[call] - {call.thread.rank}
            if call not in self.contention and not is_own:
                # Of calls that wait for nobody, for one activity of each target, or perhaps for the last of several.
                sure = 2 if any(d.first is not d.last for d in targets) else any(d.first.enter > begin for d in targets)
                latest = max([begin, *(delay.last.enter for delay in targets)])
                lengths[sure][self.kind(call)].append(call.leave - latest)
            if not targets:
                continue
            firsts = [delay.first for delay in targets]
            last = max(firsts, key=lambda i: (i.enter, -i.thread.rank))
            waiting = last.enter - begin if call in self.locking else self.no_overlap(call, begin, firsts)
            waiting = 0 if call in self.evident else waiting
            found[call] = begin, max(0, waiting), targets
        # By the surest calls; one that ends after the last activity may do so by chance.
        lengths[2].update({kind: [] for kind, of_kind in lengths[2].items() if len(of_kind) < HABIT})
        typical = {
            kind: (nine_of_ten(of_kind), 10 if one is lengths[2] else 2)
            for one in reversed(lengths) for kind, of_kind in one.items() if of_kind
        }  # fmt: skip
        for call, (begin, waiting, targets) in found.items():
            self.book_progress(call, begin, waiting, targets, typical.get(self.kind(call)))

    def book_progress(
        self, call: Instance, begin: int, waiting: int, targets: list[Delay], typical: tuple[int, int] | None
    ) -> None:
        """Book the wait of a call, for the last to provide progress or for who evidently served it, and its bounds."""
        metric = f"{interface(call)}_rma_{self.variant(call)}_wait_for_progress"
        # The last to provide progress is the one that the call waited for, whoever came before (figure 4.8).
        last = max((delay.first for delay in targets), key=lambda i: (i.enter, -i.thread.rank))
        bound = last.enter - begin if waiting else 0
        longest = max(targets, key=lambda d: (min(d.away, d.last.enter - begin), -d.last.thread.rank))
        most = min(longest.away, longest.last.enter - begin)
        first = waiting
        candidates = [(d.last, d.before, min(d.away, d.last.enter - begin)) for d in targets if d.first is not d.last]
        if call in self.evident:
            # Of a target that takes part, its first call is no more likely than its last.
            candidates += [(d.first, begin, d.first.enter - begin) for d in targets]
        for candidate, before, missed in candidates if typical is not None else ():
            length = typical[0] * (2 if call in self.evident else 1)
            soon, long = call.leave - candidate.enter, call.leave - max(before, begin)
            if soon <= length and length * typical[1] < long and missed > waiting:
                waiting, last, bound = missed, candidate, max(bound, missed)
        if call in self.evident:
            if waiting:
                name = "mpi_rma_active_wait_for_progress"
                self.result.wait(name, call, waiting, last, last.enter, last="progress")
            return
        if waiting > first:
            self.result.wait(f"{metric}_served", call, waiting - first, last, last.enter, last="progress")
        if waiting:
            self.result.wait(metric, call, waiting, last, last.enter, last="progress")
            self.result.wait(f"{metric}_last_call", call, bound, last, last.enter, last="progress")
        if most > 0:
            self.result.wait(f"{metric}_away", call, most, longest.last, longest.last.enter, last="progress")

    @staticmethod
    def no_overlap(call: Instance, begin: int, targets: list[Instance]) -> int:
        waiting, reference = 0, begin
        for i in targets:
            waiting += max(0, i.enter - reference)
            reference = max(reference, i.leave)
            if reference >= call.leave:
                break
        return waiting
