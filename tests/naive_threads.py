"""An oracle for locks of threads: who owns them, who waits for whom, and what the owners do meanwhile.

It follows specification.md#locks-of-threads sentence by sentence, with loops over all pairs of ownerships.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from otf2.enums import RegionRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.naive import Team


@dataclass(eq=False)
class Record:
    """An acquisition or a release of a lock."""

    thread: int
    time: int
    acquires: bool
    lock: Any
    order: int
    call: Any  # as the caller has it
    name: str  # of its region
    enter: int  # of the call
    until: int  # when a wait in the call ends at the latest


@dataclass(eq=False)
class Ownership:
    """From a thread's first acquisition of a lock to its last release with one order."""

    thread: int
    order: int
    acquire: Record | None
    release: Record | None
    begin: int | None = None
    end: int | None = None

    @property
    def is_shared(self) -> bool:
        return self.acquire is not None and "rdlock" in self.acquire.name


@dataclass(eq=False)
class Wait:
    """A call that waits for a release."""

    own: Ownership
    cause: Ownership
    begin: int
    end: int


def ownerships(records: list[Record], ends: dict[int, int]) -> list[Ownership]:
    """Return the ownerships of one lock in their order; `ends` are those of the threads."""
    threads = {order: {r.thread for r in records if r.order == order} for order in {r.order for r in records}}
    records = [replace(r, order=0) if len(threads[r.order]) > 1 else r for r in records]
    found = []
    for order in sorted({r.order for r in records} - {0}):
        mine = [r for r in records if r.order == order]
        acquired, released = [r for r in mine if r.acquires], [r for r in mine if not r.acquires]
        found.append(Ownership(mine[0].thread, order, next(iter(acquired), None), next(reversed(released), None)))
    unknown = []
    for thread in sorted({r.thread for r in records}):
        depth, first = 0, None
        for r in (r for r in records if r.order == 0 and r.thread == thread):
            if r.acquires:
                first = first or r
                depth += 1
            else:
                depth = max(depth - 1, 0)
                if depth == 0:
                    unknown.append(Ownership(thread, 0, first, r))
                    first = None
        if first is not None:
            last = [
                r for r in records if r.order == 0 and r.thread == thread and not r.acquires and r.time > first.time
            ]
            unknown.append(Ownership(thread, 0, first, last[-1] if last else None))

    def at(own: Ownership) -> int:
        return own.acquire.time if own.acquire else own.release.time

    for own in sorted(unknown, key=lambda own: (at(own), own.thread)):
        later = [i for i, other in enumerate(found) if at(other) >= at(own) and other.order]
        found.insert(later[0] if later else len(found), own)
    for i, own in enumerate(found):
        again = [at(other) for other in found[i + 1 :] if other.thread == own.thread and other.acquire]
        own.begin = own.acquire.time if own.acquire else None
        own.end = own.release.time if own.release else max(again[0] if again else ends[own.thread], own.begin)
    for before, own in zip([None, *found], found, strict=False):
        if own.begin is None:
            own.begin = own.end if before is None else min(before.end, own.end)
    return found


def ordered_blocks(teams: list[Team]) -> Iterator[list[Ownership]]:
    """Yield the passes through the blocks of each ordered construct of a team, in the order of Enter."""
    for team in teams:
        records = []
        for block in (i for member in team.members for i in member if i.is_openmp(RegionRole.ORDERED_SBLOCK)):
            construct = block.parent
            if construct is None or not construct.is_openmp(RegionRole.ORDERED):
                continue
            for time, call, until in ((block.enter, construct, block.enter), (block.leave, block, block.leave)):
                key = block.thread.number, time, call is construct, construct.region, 0
                records.append(Record(*key, call, call.name, call.enter, until))
        ends = {member[0].thread.number: member[0].leave for member in team.members}
        for region in {r.lock for r in records}:
            yield ownerships([r for r in records if r.lock is region], ends)


def waits(owners: list[Ownership]) -> list[Wait]:
    """Return the waits for a lock."""
    candidates: dict[Ownership, list[Wait]] = {}
    for own, other in handovers(owners):
        end = min(other.release.time, own.acquire.until)
        if end > own.acquire.enter:
            candidates.setdefault(own, []).append(Wait(own, other, own.acquire.enter, end))
    return [max(of, key=lambda w: (w.cause.release.time, -w.cause.thread)) for of in candidates.values()]


def handovers(owners: list[Ownership]) -> list[tuple[Ownership, Ownership]]:
    """Return which ownerships follow a release by another thread, and the one that it ends."""
    found = []
    for i, own in enumerate(owners):
        before: list[Ownership] = []
        for k in reversed(range(i)):
            other, after = owners[k], owners[k + 1]
            if other.order and after.order and other.order + 1 != after.order:
                break  # who came in between is unknown
            if other.is_shared:
                if not own.is_shared:
                    before.append(other)
            else:
                if not before:
                    before.append(other)
                break
        found += [(own, other) for other in before if own.acquire and other.release and other.thread != own.thread]
    return found


def owner_at(owners: list[Ownership], time: float) -> Ownership | None:
    """Return who keeps others waiting at a moment: the one that releases last if several readers own the lock.

    If clocks make exclusive ownerships overlap, the later one begins at the release.
    """
    here = [own for own in owners if own.begin <= time < own.end]
    if not here:
        return None
    exclusive = [own for own in here if not own.is_shared]
    if exclusive:
        return min(here, key=lambda own: (own.begin, -own.end, own.thread))
    return max(here, key=lambda own: (own.end, -own.thread))


def pieces(owners: list[Ownership], begin: int, end: int) -> list[tuple[int, int, Ownership | None]]:
    """Divide a stretch of time by who owns the lock."""
    times = {t for own in owners for t in (own.begin, own.end) if begin < t < end}
    cuts = sorted({begin, end, *times})
    return [(a, b, owner_at(owners, a)) for a, b in pairwise(cuts)]
