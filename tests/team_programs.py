"""Random programs with threads, simulated and written in the trace language of tests/tracedsl.py.

Masters work, and talk with each other, between teams; in a team, all threads do, and wait for locks of the process and
for their turn in ordered constructs.
All times are whole milliseconds.
"""

from __future__ import annotations

from hypothesis import strategies as st

CALL = 1  # milliseconds that a call takes by itself


class Run:
    """The threads of a program while it runs."""

    def __init__(self, draw, ranks: int, threads: int) -> None:
        self.draw, self.ranks, self.threads = draw, ranks, threads
        self.now = {(rank, thread): 0 for rank in range(ranks) for thread in range(threads)}
        self.lines = [f"ranks {ranks}", f"threads {threads}"]
        self.tag = 0
        # When each lock of each rank is free, and how often it has been acquired.
        self.free: dict[tuple[int, int], int] = {}
        self.acquired: dict[tuple[int, int], int] = {}

    def note(self, place: tuple[int, int], what: str, enter: int, leave: int) -> None:
        rank, thread = place
        who = f"{rank}.{thread}" if thread else f"{rank}"
        self.lines.append(f"{who}: {what} [{enter / 1000:.3f}, {leave / 1000:.3f}]")

    def call(self, place: tuple[int, int], what: str, leave: int = 0) -> None:
        enter = self.now[place]
        self.now[place] = max(leave, enter + CALL)
        self.note(place, what, enter, self.now[place])

    def work(self, place: tuple[int, int]) -> None:
        ticks = self.draw(st.integers(0, 6))
        if ticks:
            self.call(place, self.draw(st.sampled_from(("f", "g"))), self.now[place] + ticks)

    def message(self, threads: range) -> None:
        """Send a message from a thread of a process to one of another."""
        source, other = self.draw(st.permutations(range(self.ranks)))[:2]
        sender, receiver = (source, self.draw(st.sampled_from(threads))), (other, self.draw(st.sampled_from(threads)))
        self.work(sender)
        self.work(receiver)
        self.tag += 1
        begin = self.now[sender]
        if self.draw(st.booleans()):
            # A rendezvous: the sender waits for the receiver.
            self.call(sender, f"MPI_Ssend({other}, tag={self.tag})", max(begin, self.now[receiver]) + CALL)
        else:
            self.call(sender, f"MPI_Send({other}, tag={self.tag})")
        self.call(receiver, f"MPI_Recv({source}, tag={self.tag})", begin + CALL)

    def critical(self) -> None:
        """Let a thread run one of the two critical sections of its process, maybe the second inside the first."""
        place = self.draw(st.sampled_from(list(self.now)))
        self.section(place, self.draw(st.integers(0, 1)))

    def section(self, place: tuple[int, int], lock: int) -> None:
        key = place[0], lock
        enter = self.now[place]
        acquire = self.now[place] = max(enter, self.free.get(key, 0)) + self.draw(st.integers(0, 1))
        self.work(place)
        if lock == 0 and self.draw(st.booleans()):
            self.section(place, 1)
        self.now[place] += self.draw(st.integers(0, 3))
        self.work(place)
        release = self.free[key] = self.now[place]
        self.now[place] += CALL
        self.acquired[key] = self.acquired.get(key, 0) + 1
        self.note(place, f"!$omp critical @a:{lock}(lock={lock}, order={self.acquired[key]})", enter, self.now[place])
        self.lines[-1] += f" @{acquire / 1000:.3f}, {release / 1000:.3f}"

    def ordered(self) -> None:
        """Let a thread come to one of the two ordered constructs of its team, and wait for its turn."""
        place = self.draw(st.sampled_from(list(self.now)))
        construct = self.draw(st.integers(2, 3))
        key = place[0], construct
        enter = self.now[place]
        begin = self.now[place] = max(enter, self.free.get(key, 0)) + self.draw(st.integers(0, 1))
        self.work(place)
        if self.draw(st.booleans()):
            self.section(place, 1)
        end = self.free[key] = self.now[place] = self.now[place] + CALL
        self.now[place] += self.draw(st.integers(0, 1))
        self.note(place, f"!$omp ordered @a:{construct}", enter, self.now[place])
        self.note(place, f"!$omp ordered sblock @a:{construct}", begin, end)

    def collective(self) -> None:
        masters = [(rank, 0) for rank in range(self.ranks)]
        end = max(self.now[master] for master in masters) + CALL
        for master in masters:
            self.call(master, "MPI_Allreduce", end)

    def team(self) -> None:
        """All processes have a team, each from when its master comes to it."""
        forks = {}
        for rank in range(self.ranks):
            # Behind the call before: the team is not part of it.
            self.now[rank, 0] += 1
            forks[rank] = self.now[rank, 0]
            for thread in range(self.threads):
                self.now[rank, thread] = forks[rank] + self.draw(st.integers(0, 2))
        begins = dict(self.now)
        for _ in range(self.draw(st.integers(0, 8))):
            match self.draw(st.sampled_from(("message", "message", "critical", "ordered"))):
                case "message":
                    self.message(range(self.threads))
                case "critical":
                    self.critical()
                case "ordered":
                    self.ordered()
        has_barrier = self.draw(st.booleans())
        for rank, fork in forks.items():
            places = [(rank, thread) for thread in range(self.threads)]
            for place in places:
                self.work(place)
                self.now[place] += CALL
            end = max(self.now[place] for place in places) + CALL
            self.note((rank, 0), "fork", fork, end)
            for place in places:
                if has_barrier:
                    self.call(place, "!$omp implicit barrier", end)
                self.note(place, "!$omp parallel", begins[place], self.now[place])
            self.now[rank, 0] = end + 1


@st.composite
def team_programs(draw) -> str:
    run = Run(draw, ranks=draw(st.integers(2, 3)), threads=draw(st.integers(2, 3)))
    masters = range(1)
    for rank in range(run.ranks):
        run.call((rank, 0), "MPI_Init", 2)
    for _ in range(draw(st.integers(1, 8))):
        step = draw(st.sampled_from(("work", "message", "team", "team", "collective")))
        match step:
            case "work":
                run.work((draw(st.integers(0, run.ranks - 1)), 0))
            case "message":
                run.message(masters)
            case "team":
                run.team()
            case "collective":
                run.collective()
    end = max(run.now.values()) + CALL
    for rank in range(run.ranks):
        run.call((rank, 0), "MPI_Finalize", end)
    return "\n".join(run.lines)
