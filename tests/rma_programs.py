"""Random one-sided programs, correct by construction, among messages and collectives: more steps for tests/programs.py.

A step opens, uses or closes an epoch: fences, post/start/complete/wait with groups n:m, locks (shared, exclusive, of
all), flushes, requests and atomics, on several windows that may overlap. Which call of an origin blocks until the post
or the lock is there is drawn, as MPI leaves it open; so is whether a completion needs the target to call MPI.

A process' steps are run in the order in which they are drawn. So a lock goes to the one who asks first in the text even
if another asked earlier on the clock: any order is correct, and a wait is what it makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.programs import CALL, Run

OPERATIONS = ("MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap", "MPI_Get_accumulate")
REQUESTS = ("MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")


@dataclass(eq=False)
class Lock:
    """An open lock epoch; `target` is None for all. Nothing is complete at the targets before `granted`."""

    rank: int
    target: int | None
    shared: bool
    granted: int
    blocks_in: str
    pending: set[int] = field(default_factory=set)
    requests: list[tuple[int, int]] = field(default_factory=list)


@dataclass(eq=False)
class Access:
    group: str
    targets: list[int]
    posts: dict[int, int]
    blocks_in: str


@dataclass(eq=False)
class Exposure:
    group: str
    origins: list[int]
    completes: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class Window:
    name: str
    members: list[int]
    created: bool = False
    fenced: bool = False  # a fence opened an epoch in which anybody may access anybody
    dirty: bool = False  # and somebody did
    accesses: dict[int, Access] = field(default_factory=dict)
    exposures: dict[int, Exposure] = field(default_factory=dict)
    locks: list[Lock] = field(default_factory=list)
    # By target: when the last exclusive epoch ended, and the last shared one.
    exclusive_until: dict[int, int] = field(default_factory=dict)
    shared_until: dict[int, int] = field(default_factory=dict)


class OneSidedRun(Run):
    def __init__(self, draw, ranks: int) -> None:
        super().__init__(draw, ranks)
        self.groups: dict[tuple[int, ...], str] = {}
        self.windows: list[Window] = []
        for number in range(draw(st.integers(1, 3))):
            comm = draw(st.sampled_from(sorted(self.comms)))
            self.windows.append(Window(f"w{number}", self.comms[comm]))
            self.lines.append(f"win w{number} on {comm}")
        self.lines.append("win mine on self")

    def group(self, ranks: list[int]) -> str:
        key = tuple(ranks)
        if key not in self.groups:
            self.groups[key] = f"g{len(self.groups)}"
            self.lines.append(f"group {self.groups[key]} = {' '.join(map(str, ranks))}")
        return self.groups[key]

    def window(self) -> Window:
        window = self.draw(st.sampled_from(self.windows))
        if not window.created:
            self.together(window, self.draw(st.sampled_from(("MPI_Win_create", "MPI_Win_allocate"))), waits=True)
            window.created = True
        return window

    def some(self, members: list[int]) -> list[int]:
        return self.draw(st.permutations(members))[: self.draw(st.integers(1, len(members)))]

    def together(self, window: Window, name: str, *, waits: bool) -> None:
        last = max(self.now[m] for m in window.members)
        for rank in window.members:
            done = last + CALL if waits else 0
            self.call(rank, f"{name}({window.name})", done + self.draw(st.integers(0, 2)))

    def operate(self, window: Window, rank: int, target: int, names: tuple[str, ...], leave: int) -> tuple[int, int]:
        """Access a target; the request is 0 if there is none."""
        name = self.draw(st.sampled_from(names))
        size = self.draw(st.sampled_from((8, 8, 0)))
        arguments = f"{window.members.index(target)}, win={window.name}, bytes={size}"
        number = self.request(rank) if name in REQUESTS else 0
        if number:
            arguments += f", req={number}"
        self.call(rank, f"{name}({arguments})", leave)
        return number, self.now[rank]

    def served(self, target: int) -> int:
        """When the target calls MPI next, if the access needs that, else at once."""
        if self.draw(st.booleans()):
            return 0
        enter = self.now[target]
        self.call(target, "MPI_Iprobe", 0)
        return enter + CALL

    # --- fences ------------------------------------------------------------------------------------------------------

    def fence(self) -> None:
        self.fence_on(self.window())

    def fence_on(self, window: Window) -> None:
        self.close(window)
        self.together(window, "MPI_Win_fence", waits=window.dirty or self.draw(st.booleans()))
        window.fenced, window.dirty = True, False

    def access_after_fence(self) -> None:
        window = self.window()
        if not window.fenced:
            self.fence_on(window)
        rank, target = self.draw(st.sampled_from(window.members)), self.draw(st.sampled_from(window.members))
        self.operate(window, rank, target, OPERATIONS, self.now[rank] + self.draw(st.integers(1, 5)))
        window.dirty = True

    def alone(self) -> None:
        """A window of a process alone."""
        rank = self.rank()
        self.call(rank, "MPI_Win_fence(mine)", 0)
        self.call(rank, "MPI_Put(0, win=mine)", 0)
        self.call(rank, "MPI_Win_fence(mine)", 0)

    # --- post, start, complete, wait ---------------------------------------------------------------------------------

    def expose(self) -> None:
        """Post on some processes and start on others (or the same); all posts come first, so nothing can deadlock."""
        window = self.window()
        if not (window.accesses or window.exposures):
            self.expose_on(window)

    def expose_on(self, window: Window) -> None:
        if window.dirty or window.locks:
            self.fence_on(window)
        window.fenced = False
        targets = {origin: self.some(window.members) for origin in self.some(window.members)}
        posts = {}
        for target in sorted({t for group in targets.values() for t in group}):
            origins = [o for o in targets if target in targets[o]]
            exposure = window.exposures[target] = Exposure(self.group(origins), origins)
            posts[target] = self.now[target]
            self.call(target, f"MPI_Win_post({window.name}, {exposure.group})", 0)
        for origin, group in targets.items():
            blocks_in = self.draw(st.sampled_from(("start", "operation", "complete")))
            access = Access(self.group(group), group, posts, blocks_in)
            window.accesses[origin] = access
            leave = max(posts[t] for t in group) + CALL if blocks_in == "start" else 0
            self.call(origin, f"MPI_Win_start({window.name}, {access.group})", leave)

    def access_target(self) -> None:
        window = self.window()
        if not window.accesses:
            self.close(window)
            self.expose_on(window)
        origin = self.draw(st.sampled_from(sorted(window.accesses)))
        access = window.accesses[origin]
        target = self.draw(st.sampled_from(access.targets))
        leave = access.posts[target] + CALL if access.blocks_in == "operation" else 0
        self.operate(window, origin, target, OPERATIONS, leave)

    def complete_access(self) -> None:
        window = self.window()
        if window.accesses:
            self.end_access(window, self.draw(st.sampled_from(sorted(window.accesses))))

    def end_access(self, window: Window, origin: int) -> None:
        access = window.accesses.pop(origin)
        for target in access.targets:
            window.exposures[target].completes[origin] = self.now[origin]
        leave = max(access.posts[t] for t in access.targets) + CALL
        self.call(origin, f"MPI_Win_complete({window.name}, {access.group})", leave)

    def end_exposure(self, window: Window, target: int) -> None:
        exposure = window.exposures.pop(target)
        last = max(exposure.completes.values())
        arguments = f"{window.name}, {exposure.group}"
        if self.draw(st.integers(0, 3)):
            self.call(target, f"MPI_Win_wait({arguments})", last + CALL)
            return
        while self.now[target] < last:
            self.call(target, f"MPI_Win_test({arguments}, failed)", 0)
            self.now[target] += self.draw(st.integers(1, 9))
        self.call(target, f"MPI_Win_test({arguments})", 0)

    def wait_for_origins(self) -> None:
        window = self.window()
        ready = [t for t, e in window.exposures.items() if len(e.completes) == len(e.origins)]
        if ready:
            self.end_exposure(window, self.draw(st.sampled_from(sorted(ready))))

    # --- locks -------------------------------------------------------------------------------------------------------

    def lock(self) -> None:
        window = self.window()
        self.lock_on(window, self.draw(st.sampled_from(window.members)))

    def queue(self) -> None:
        """Several processes after the same lock, one after the other, while its owner may be busy."""
        window = self.window()
        target = self.draw(st.sampled_from(window.members))
        for rank in self.some(window.members):
            lock = self.lock_on(window, rank, target)
            self.access(window, lock)
            self.now[rank] += self.draw(st.integers(0, 9))
        self.now[target] += self.draw(st.integers(0, 20))

    def lock_on(self, window: Window, rank: int, target: int | None = None) -> Lock:
        if window.dirty or window.accesses or window.exposures:
            self.fence_on(window)
        target = self.draw(st.sampled_from([None, *window.members])) if target is None else target
        shared = target is None or self.draw(st.booleans())
        mine = [lock for lock in window.locks if lock.rank == rank]
        for lock in mine:
            if target is None or lock.target in {None, target}:
                self.unlock(window, lock)
        targets = window.members if target is None else [target]
        for other in list(window.locks):
            if (other.target is None or other.target in targets) and not (shared and other.shared):
                self.unlock(window, other)
        window.fenced = False
        held = [window.exclusive_until.get(t, 0) for t in targets]
        if not shared:
            held += [window.shared_until.get(t, 0) for t in targets]
        granted = max(self.now[rank], *held)
        blocks_in = self.draw(st.sampled_from(("lock", "operation", "unlock")))
        lock = Lock(rank, target, shared, granted, blocks_in)
        window.locks.append(lock)
        leave = granted + CALL if blocks_in == "lock" else 0
        if target is None:
            self.call(rank, f"MPI_Win_lock_all({window.name})", leave)
        else:
            how = "shared, " if shared else ""
            self.call(rank, f"MPI_Win_lock({window.members.index(target)}, {how}win={window.name})", leave)
        return lock

    def holder(self) -> tuple[Window, Lock]:
        window = self.window()
        if not window.locks:
            self.lock_on(window, self.draw(st.sampled_from(window.members)))
        return window, self.draw(st.sampled_from(window.locks))

    def access_locked(self) -> None:
        self.access(*self.holder())

    def access(self, window: Window, lock: Lock) -> None:
        target = self.draw(st.sampled_from(window.members)) if lock.target is None else lock.target
        leave = lock.granted + CALL if lock.blocks_in == "operation" else 0
        number, end = self.operate(window, lock.rank, target, OPERATIONS + REQUESTS, leave)
        lock.pending.add(target)
        if number:
            ready = max(end, lock.granted, self.served(target))
            lock.requests.append((number, ready))
            self.open[lock.rank].append((number, ready))

    def flush(self) -> None:
        window, lock = self.holder()
        how = self.draw(st.sampled_from(("flush", "flush_local")))
        everywhere = lock.target is None and self.draw(st.booleans())
        target = self.draw(st.sampled_from(window.members)) if lock.target is None else lock.target
        chosen = lock.pending if everywhere else lock.pending & {target}
        leave = max([lock.granted, *(self.served(t) for t in sorted(chosen - {lock.rank}))]) + CALL if chosen else 0
        if everywhere:
            self.call(lock.rank, f"MPI_Win_{how}_all({window.name})", leave)
        else:
            self.call(lock.rank, f"MPI_Win_{how}({window.members.index(target)}, win={window.name})", leave)

    def release(self) -> None:
        self.unlock(*self.holder())

    def unlock(self, window: Window, lock: Lock) -> None:
        """Complete the requests of the epoch, then end it."""
        window.locks.remove(lock)
        rank = lock.rank
        still_open = [request for request in lock.requests if request in self.open[rank]]
        if still_open:
            numbers = ", ".join(str(number) for number, _ in still_open)
            self.call(rank, f"MPI_Waitall({numbers})", max(ready for _, ready in still_open) + CALL)
            self.open[rank] = [request for request in self.open[rank] if request not in still_open]
        leave = max([lock.granted, *(self.served(t) for t in sorted(lock.pending - {rank}))]) + CALL
        if lock.target is None:
            self.call(rank, f"MPI_Win_unlock_all({window.name})", leave)
        else:
            self.call(rank, f"MPI_Win_unlock({window.members.index(lock.target)}, win={window.name})", leave)
        until = window.shared_until if lock.shared else window.exclusive_until
        for target in window.members if lock.target is None else [lock.target]:
            # What the unlock call still does after the release may be seen by the next holder, or not.
            end = self.now[rank] - self.draw(st.sampled_from((0, 0, CALL)))
            until[target] = max(until.get(target, 0), end)

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self, window: Window) -> None:
        """End all epochs but that of the fence."""
        for lock in list(window.locks):
            self.unlock(window, lock)
        for origin in sorted(window.accesses):
            self.end_access(window, origin)
        for target in sorted(window.exposures):
            self.end_exposure(window, target)

    def finish(self) -> str:
        for window in self.windows:
            self.close(window)
            if window.dirty:
                self.together(window, "MPI_Win_fence", waits=True)
            if window.created:
                self.together(window, "MPI_Win_free", waits=True)
        return super().finish()


@st.composite
def one_sided_programs(draw) -> str:
    """Draw the trace of a program with one-sided communication, as a text."""
    run = OneSidedRun(draw, draw(st.integers(2, 4)))
    for rank in range(run.ranks):
        run.now[rank] = draw(st.integers(0, 3))
        run.call(rank, "MPI_Init", 4)
    fences = (run.fence, run.access_after_fence, run.access_after_fence, run.alone)
    groups = (run.expose, run.access_target, run.access_target, run.complete_access, run.wait_for_origins)
    locks = (run.lock, run.queue, run.queue, run.access_locked, run.access_locked, run.flush, run.flush, run.release)
    others = (run.work, run.work, run.work, run.function, run.message, run.complete, run.collective)
    # All kinds of epochs in one program, or one kind in the thick of it.
    steps = draw(st.sampled_from((fences, groups, locks, locks, (*fences, *groups, *locks))))
    for _ in range(draw(st.integers(5, 60))):
        draw(st.sampled_from((*steps, *others)))()
    return run.finish()
