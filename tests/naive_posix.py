"""An oracle for POSIX threads: joins, condition variables, and barriers, as specification.md#posix-threads says.

It tries all signals on all waits, and all calls of barriers on all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otf2 import events as ev

from tests import naive_threads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.naive import Instance, Result, Thread, Trace
    from tests.naive_threads import Ownership

CONDITION = "pthread_lock_contention_conditional"
CONTENTION = {
    "pthread_lock_contention_mutex_lock": r"pthread_mutex_(try)?lock",
    "pthread_lock_contention_rwlock": r"pthread_rwlock_(try|timed)?(rd|wr)lock",
    "pthread_lock_contention_spin": r"pthread_spin_(try)?lock",
    CONDITION: r"pthread_cond_(timed|clock)?wait",
}
SIGNALS = {"pthread_cond_signal", "pthread_cond_broadcast"}


def contention(name: str) -> str | None:
    """Return the metric of waits for locks in a function."""
    return next((metric for metric, names in CONTENTION.items() if re.fullmatch(names, name)), None)


def book(trace: Trace, locks: Iterable[list[Ownership]], result: Result) -> None:
    for threads in trace.processes.values():
        joins(threads, result)
        barriers(threads, result)
    waits = [wait for owners in locks for wait in condition_waits(owners)]
    for threads in trace.processes.values():
        of_process = [wait for wait in waits if wait.call.thread.process == threads[0].process]
        give_signals(threads, of_process)
        for wait in of_process:
            wait.book(result)


def joins(threads: list[Thread], result: Result) -> None:
    ends, awaited = {}, {}
    for thread in threads:
        for event, call in thread.records:
            if isinstance(event, ev.ThreadEnd):
                ends[event.thread_contingent._ref, event.sequence_count] = event.time, call
            elif isinstance(event, ev.ThreadWait):
                awaited[event.thread_contingent._ref, event.sequence_count] = call
    for key in ends.keys() & awaited.keys():
        (end, last), call = ends[key], awaited[key]
        waiting = min(end, call.leave) - call.enter
        if waiting > 0:
            result.wait("pthread_join_wait", call, waiting, last)


def barriers(threads: list[Thread], result: Result) -> None:
    calls = [i for thread in threads for i in thread.instances if i.name == "pthread_barrier_wait"]
    while calls:
        first = min(i.leave for i in calls)
        together = [i for i in calls if i.enter <= first]
        latest = max(together, key=lambda i: (i.enter, -i.thread.number))
        for i in together:
            if latest.enter > i.enter:
                result.wait("pthread_barrier_wait", i, latest.enter - i.enter, latest)
        calls = [i for i in calls if i not in together]


@dataclass(eq=False)
class ConditionWait:
    """A call that waits for a condition variable, between the release of the mutex and its acquisition."""

    call: Instance
    owners: list[Ownership]
    begin: int
    end: int
    contended: naive_threads.Wait | None
    signal: Instance | None = None

    def fits(self, signal: Instance) -> bool:
        between = [own for own in self.owners if self.begin <= own.begin <= signal.enter]
        return (
            self.signal is None
            and signal.thread is not self.call.thread
            and self.begin <= signal.enter < self.end
            and between != []
            and between[-1].acquire.call.thread is signal.thread
        )

    def book(self, result: Result) -> None:
        wait = self.contended
        enter, leave = self.call.enter, self.call.leave
        free = wait.end if wait else enter
        if wait:
            # For the signal if that is most of it, else for the owner of the mutex.
            awake = self.signal is not None and min(max(self.signal.enter, enter), leave, free)
            is_for_signal = self.signal is not None and awake - enter >= free - awake
            result.wait(CONDITION, self.call, free - enter, self.signal if is_for_signal else wait.cause.release.call)
        if self.signal is not None:
            given = max(self.signal.enter, enter)
            if wait and free > given:
                result.wait("pthread_cond_mutex_wait", self.call, free - given, wait.cause.release.call)
            if min(given, leave) > free:
                result.wait("pthread_cond_late_signal", self.call, min(given, leave) - free, self.signal)
        elif "timed" in self.call.name:
            # Awake since the owner that it waited for acquired the mutex.
            if wait and free > max(enter, wait.cause.begin):
                waiting = free - max(enter, wait.cause.begin)
                result.wait("pthread_cond_mutex_wait", self.call, waiting, wait.cause.release.call)
            result.add("pthread_cond_timeout", self.call, leave - free)
        elif leave > free:
            result.wait("pthread_cond_late_signal", self.call, leave - free, None)


def condition_waits(owners: list[Ownership]) -> list[ConditionWait]:
    found = []
    for own in owners:
        call: Any = own.acquire and own.acquire.call
        if call and contention(call.name) == CONDITION:
            released = [r.release.time for r in owners if r.release and r.release.call is call]
            waits = [wait for wait in naive_threads.waits(owners) if wait.own is own]
            begin = released[-1] if released else call.enter
            found.append(ConditionWait(call, owners, begin, own.acquire.time, waits[0] if waits else None))
    return found


def give_signals(threads: list[Thread], waits: list[ConditionWait]) -> None:
    """Let each signal wake a thread that it fits, the one that acquires first, and each broadcast all of them."""
    signals = [i for thread in threads for i in thread.instances if i.name in SIGNALS]
    for signal in sorted(signals, key=lambda i: (i.enter, i.thread.number)):
        woken = sorted((wait for wait in waits if wait.fits(signal)), key=lambda wait: wait.end)
        for wait in woken if "broadcast" in signal.name else woken[:1]:
            wait.signal = signal
