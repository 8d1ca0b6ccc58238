"""Random message-passing programs, simulated and written in the trace language of tests/tracedsl.py.

The result is a text, so a failing example can be read, shortened, and kept in tests/patterns. Times are whole
milliseconds, so many events coincide, which tests the definitions on ties.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.tracedsl import COLLECTIVES, NEIGHBORS, ROOTED

TAGS = (0, 1)
SIZES = (0, 8, 100_000)
LARGE = 1 << 16  # bytes from which on messages mostly go by rendezvous
CALL = 1  # milliseconds that a call takes by itself


class Run:
    """The state of the processes of a running program."""

    def __init__(self, draw, ranks: int, *, orderly: bool = False) -> None:
        self.draw = draw
        self.ranks = ranks
        self.orderly = orderly  # right clocks, and all members of a collective operation send and receive
        self.now = [0] * ranks
        self.lines: list[str] = []
        skews = (0,) if orderly else (0, 0, 0, 2)
        self.skew = [draw(st.sampled_from(skews)) for _ in range(ranks)]  # a clock that is wrong
        self.functions: list[list[tuple[str, int]]] = [[] for _ in range(ranks)]
        # Open requests of each rank: (number, when it can be complete)
        self.open: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
        self.requests = [0] * ranks
        self.comms = {"world": list(range(ranks))}
        self.groups: tuple[list[int], list[int]] = ([], [])
        self.grids: list[str] = []
        self.starts = False  # whether operations of neighbors can be non-blocking
        for name in draw(st.sets(st.sampled_from(("odd", "turned")))):
            members = draw(st.permutations(range(ranks)))
            self.comms[name] = members[: draw(st.integers(2, ranks))]
            self.lines.append(f"comm {name} = {' '.join(map(str, self.comms[name]))}")

    def call(self, rank: int, what: str, leave: int) -> None:
        """Write a call that begins now, and advance to its Leave."""
        leave = max(leave, self.now[rank] + CALL)
        self.note(rank, what, self.now[rank], leave)
        self.now[rank] = leave

    def note(self, rank: int, what: str, enter: int, leave: int) -> None:
        shift = self.skew[rank]
        self.lines.append(f"{rank}: {what} [{(enter + shift) / 1000:.3f}, {(leave + shift) / 1000:.3f}]")

    def request(self, rank: int) -> int:
        self.requests[rank] += 1
        return self.requests[rank]

    # --- steps -------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        self.now[self.rank()] += self.draw(st.integers(1, 9))

    def function(self) -> None:
        """Enter or leave a function; it returns after its callees, because times determine the nesting."""
        rank = self.rank()
        stack = self.functions[rank]
        if stack and self.draw(st.booleans()):
            name, enter = stack.pop()
            self.now[rank] += 1
            self.note(rank, name, enter, self.now[rank])
        elif len(stack) < 3:
            stack.append((self.draw(st.sampled_from(("f", "g"))), self.now[rank]))

    def message(self) -> None:
        """Send a message with any call, and receive it with any other."""
        name, members, a, b = self.pair()
        source, target = members[a], members[b]
        size = self.draw(st.sampled_from(SIZES))
        rest = f"tag={self.draw(st.sampled_from(TAGS))}, bytes={size}, comm={name}"
        if source == target:
            return
        how = self.draw(st.sampled_from(("Send", "Ssend", "Bsend", "Rsend", "Isend", "Issend", "start")))
        sent, posted = self.now[source], self.now[target]
        receive = self.draw(st.sampled_from(("Recv", "Irecv", "start")))
        is_large = size > LARGE and how not in {"Bsend", "Rsend"} and self.draw(st.integers(0, 9)) > 0
        synchronous = how in {"Ssend", "Issend"} or is_large
        done = max(sent, posted) if synchronous else sent
        if how in {"Isend", "Issend"}:
            number = self.request(source)
            self.call(source, f"MPI_{how}({b}, {rest}, req={number})", 0)
            self.open[source].append((number, done))
        elif how == "start":
            number = self.request(source)
            self.call(source, f"MPI_Send_init({b}, {rest}, req={number})", 0)
            sent = self.now[source]
            self.call(source, f"MPI_Start({number})", 0)
            self.open[source].append((number, max(sent, done)))
        else:
            self.call(source, f"MPI_{how}({b}, {rest})", done + CALL)
        if receive == "Recv":
            self.call(target, f"MPI_Recv({a}, {rest})", sent + CALL)
            return
        number = self.request(target)
        if receive == "start":
            self.call(target, f"MPI_Recv_init({a}, {rest}, req={number})", 0)
            self.call(target, f"MPI_Start({number})", 0)
        else:
            self.call(target, f"MPI_Irecv({a}, {rest}, req={number})", 0)
        self.open[target].append((number, sent))

    def in_partitions(self) -> None:
        """Send a message in partitions, and receive it in as many or others; perhaps look for one before."""
        name, members, a, b = self.pair()
        source, target = members[a], members[b]
        if source == target:
            return
        rest = f"tag=2, bytes={self.draw(st.sampled_from(SIZES))}, comm={name}"
        requests = self.request(source), self.request(target)
        counts = [self.draw(st.integers(1, 3)) for _ in requests]
        for rank, what, peer, number, count in zip(
            (source, target), ("Psend", "Precv"), (b, a), requests, counts, strict=True
        ):
            self.call(rank, f"MPI_{what}_init({peer}, {rest}, partitions={count}, req={number})", 0)
            self.call(rank, f"MPI_Start({number})", 0)
        ready = {}
        for partition in self.draw(st.permutations(range(counts[0]))):
            self.now[source] += self.draw(st.integers(0, 4))
            ready[partition] = self.now[source]
            self.call(source, f"MPI_Pready({requests[0]}, {partition})", 0)
        self.open[source].append((requests[0], max(ready.values())))
        self.open[target].append((requests[1], max(ready.values())))
        if self.draw(st.booleans()):
            mine = self.draw(st.integers(0, counts[1] - 1))
            needs = [
                ready[i]
                for i in ready
                if i * counts[1] < (mine + 1) * counts[0] and mine * counts[0] < (i + 1) * counts[1]
            ]
            polls = self.draw(st.booleans())
            if not polls:
                self.now[target] = max(self.now[target], *needs, 0)
            self.call(target, f"MPI_Parrived{' (polling)' * polls}({requests[1]}, {mine})", max(needs) + CALL)

    def exchange(self) -> None:
        name, members, a, b = self.pair()
        x, y = members[a], members[b]
        if x == y:
            return
        rest = f"tag={self.draw(st.sampled_from(TAGS))}, bytes={self.draw(st.sampled_from(SIZES))}, comm={name}"
        end = max(self.now[x], self.now[y]) + CALL
        self.call(x, f"MPI_Sendrecv(to={b}, source={b}, {rest})", end)
        self.call(y, f"MPI_Sendrecv(to={a}, source={a}, {rest})", end)

    def shift(self) -> None:
        """Send to one rank and receive from another in one call."""
        if self.ranks < 3:
            return
        own, to, source = self.draw(st.permutations(range(self.ranks)))[:3]
        self.now[to] += self.draw(st.integers(0, 4))
        rest = f"tag=3, bytes={self.draw(st.sampled_from(SIZES))}"
        began, posted, sent = (self.now[rank] for rank in (own, to, source))
        self.call(own, f"MPI_Sendrecv(to={to}, source={source}, {rest})", max(began, posted, sent) + CALL)
        self.call(to, f"MPI_Recv({own}, {rest})", began + CALL)
        self.call(source, f"MPI_Send({own}, {rest})", began + CALL)

    def complete(self) -> None:
        """Complete some of the open requests of a rank."""
        rank = self.rank()
        if not self.open[rank]:
            return
        how = self.draw(st.sampled_from(("Wait", "Waitany", "Waitall", "Waitsome", "Test", "Testall", "failed")))
        one = how in {"Wait", "Waitany", "Test", "failed"}
        chosen = self.draw(st.permutations(self.open[rank]))
        chosen = chosen[: 1 if one else self.draw(st.integers(1, len(chosen)))]
        numbers = ", ".join(str(number) for number, _ in chosen)
        if how == "failed":
            self.call(rank, f"MPI_Test({numbers}, failed)", 0)
            return
        ready = max(when for _, when in chosen)
        if how.startswith("Test"):
            self.now[rank] = max(self.now[rank], ready)
        self.call(rank, f"MPI_{how}({numbers})", ready + CALL)
        self.open[rank] = [request for request in self.open[rank] if request not in chosen]

    def collective(self) -> None:
        for rank, operation, arguments, needs in self.operation():
            self.call(rank, f"{operation}({arguments})", needs + self.draw(st.integers(0, 2)))

    def start_collective(self) -> None:
        """Start a non-blocking collective operation at all members."""
        for rank, operation, arguments, needs in self.operation():
            number = self.request(rank)
            self.call(rank, f"MPI_I{operation[4:].lower()}({arguments}, req={number})", 0)
            self.open[rank].append((number, needs))

    def operation(self) -> list[tuple[int, str, str, int]]:
        """Return the part of each member in a collective operation: rank, name, arguments, and when it can be over."""
        name = self.draw(st.sampled_from(sorted(self.comms)))
        members = self.comms[name]
        operations = sorted(COLLECTIVES.keys() - {"MPI_Alltoallv", "MPI_Alltoallw"} if self.orderly else COLLECTIVES)
        operation = self.draw(st.sampled_from(operations))
        size = self.draw(st.sampled_from((8, 8, 8, 0)))
        root = self.draw(st.integers(0, len(members) - 1))
        last = max(self.now[m] for m in members)
        parts = []
        for index, rank in enumerate(members):
            needs = last
            arguments = f"comm={name}, bytes={size}"
            if operation in ROOTED:
                arguments += f", root={root}"
                collects = operation in {"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"}
                needs = (last if index == root else 0) if collects else self.now[members[root]]
            if operation.endswith("v") and not self.orderly and self.draw(st.booleans()):
                arguments += self.draw(st.sampled_from((", sent=0", ", received=0", ", sent=0, received=0")))
                needs = self.draw(st.sampled_from((0, last)))
            parts.append((rank, operation, arguments, needs))
        return parts

    def grid(self) -> None:
        """Put all processes, or those of a communicator, in a grid."""
        name = self.draw(st.sampled_from(sorted(self.comms)))
        size = len(self.comms[name])
        sides = self.draw(st.sampled_from([[a, size // a] for a in range(1, size + 1) if size % a == 0]))
        around = self.draw(st.lists(st.sampled_from(("", "*")), min_size=2, max_size=2))
        self.lines.append(f"topology {name} = {sides[0]}{around[0]} {sides[1]}{around[1]}")
        self.grids.append(name)

    def with_neighbors(self) -> None:
        """Exchange data with neighbors; the trace does not always tell that they are."""
        name = self.draw(st.sampled_from(self.grids))
        operation = self.draw(st.sampled_from(sorted(NEIGHBORS)))
        last = max(self.now[rank] for rank in self.comms[name])
        starts = self.starts and self.draw(st.booleans())
        for rank in self.comms[name]:
            needs = self.draw(st.sampled_from((0, last, last)))
            if starts:
                number = self.request(rank)
                self.call(rank, f"MPI_I{operation[4:].lower()}(comm={name}, req={number})", 0)
                self.open[rank].append((number, needs))
            else:
                self.call(rank, operation, needs + self.draw(st.integers(0, 2)))

    def bridge(self) -> None:
        """Connect all processes, as two groups."""
        order = self.draw(st.permutations(range(self.ranks)))
        here = self.draw(st.integers(1, self.ranks - 1))
        self.groups = order[:here], order[here:]
        self.lines.append("intercomm bridge = {} | {}".format(*(" ".join(map(str, group)) for group in self.groups)))

    def between_groups(self) -> None:
        """A collective operation between the two groups."""
        operation = self.draw(st.sampled_from(sorted(COLLECTIVES.keys() - {"MPI_Scan", "MPI_Exscan"})))
        root, size = self.rank(), self.draw(st.sampled_from((8, 8, 0)))
        for own, other in (self.groups, self.groups[::-1]):
            for rank in own:
                arguments = f"comm=bridge, bytes={size}" + (f", root={root}" if operation in ROOTED else "")
                if operation.endswith("v") and self.draw(st.booleans()):
                    arguments += self.draw(st.sampled_from((", sent=0", ", received=0", ", sent=0, received=0")))
                needs = self.draw(st.sampled_from((0, max(self.now[other_rank] for other_rank in other))))
                self.call(rank, f"{operation}({arguments})", needs + self.draw(st.integers(0, 2)))

    def rank(self) -> int:
        return self.draw(st.integers(0, self.ranks - 1))

    def pair(self) -> tuple[str, list[int], int, int]:
        name = self.draw(st.sampled_from(sorted(self.comms)))
        members = self.comms[name]
        last = len(members) - 1
        return name, members, self.draw(st.integers(0, last)), self.draw(st.integers(0, last))

    def finish(self) -> str:
        """Complete, leave open, or cancel open requests, and return from all functions."""
        for rank in range(self.ranks):
            numbers = ", ".join(str(number) for number, _ in self.open[rank])
            ready = max((when for _, when in self.open[rank]), default=0)
            if numbers and self.draw(st.integers(0, 3)):
                self.call(rank, f"MPI_Waitall({numbers})", ready + CALL)
        last = max(self.now)
        for rank in range(self.ranks):
            self.call(rank, "MPI_Finalize", last + self.draw(st.integers(0, 2)))
            for name, enter in reversed(self.functions[rank]):
                self.now[rank] += 1
                self.note(rank, name, enter, self.now[rank])
        return "\n".join([f"ranks {self.ranks}", *self.lines])


def messages_of_two_sizes(each: int) -> str:
    """Return a run with as many messages of 8 bytes, which take 0.18 s, as of 80 bytes, which take 0.9 s."""
    lines = ["*: main [0, 100]"]
    for i in range(each):
        for offset, size, took in ((0, 8, 0.18), (5, 80, 0.9)):
            begin = 10 * i + offset
            lines += [f"0: MPI_Send(1, bytes={size}) [{begin + 2}, {begin + 2.01}]",
                      f"1: MPI_Recv(0, bytes={size}) [{begin}, {begin + 2 + took}]"]  # fmt: skip
    return "\n".join(lines)


@st.composite
def programs(
    draw,
    *,
    groups: bool = False,
    nonblocking: bool = False,
    neighbors: bool = False,
    partitions: bool = False,
    orderly: bool = False,
) -> str:
    """Draw the trace of a program, as a text.

    With `groups`, it also has collective operations between two groups, with `nonblocking`, non-blocking ones, with
    `neighbors`, those of neighbors in a topology, or in two, with `partitions`, messages in partitions. In an `orderly`
    one, clocks are right, and all members of a collective operation send and receive.
    """
    run = Run(draw, draw(st.integers(2, 4)), orderly=orderly)
    for rank in range(run.ranks):
        run.now[rank] = draw(st.integers(0, 3))
        run.call(rank, "MPI_Init", 4)
    steps = (
        run.work, run.function, run.message, run.message, run.exchange, run.shift, run.complete, run.complete,
        run.collective,
    )  # fmt: skip
    if partitions:
        steps += (run.in_partitions, run.complete)
    if groups:
        run.bridge()
        steps += (run.between_groups, run.between_groups)
    if nonblocking:
        steps += (run.start_collective, run.start_collective, run.complete)
    if neighbors:
        for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
            run.grid()
        run.starts = nonblocking
        steps += (run.with_neighbors, run.with_neighbors, run.complete)
    for _ in range(draw(st.integers(5, 60))):
        draw(st.sampled_from(steps))()
    return run.finish()
