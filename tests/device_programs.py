"""Random programs that use devices, simulated and written in the trace language of tests/tracedsl.py.

Hosts launch kernels on streams, synchronize with them and with each other. A text comes out, in whole milliseconds as
in tests/programs.py. No two kernels of a device begin or end at once: definitions do not say which of them is the last.
"""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("a", "b")
# How launches say what they launch; the last way does not.
WAYS = ("site", "stream", "stub", "order")


class Host:
    """A rank with its device while they run."""

    def __init__(self, draw, rank: int, used: set[int]) -> None:
        self.draw, self.rank = draw, rank
        self.now = draw(st.integers(0, 3))
        self.lines: list[str] = []
        self.free = [0] * draw(st.integers(1, 2))  # when each stream has done what was launched
        self.used = used  # when something on its device began or ended
        self.events: dict[int, int] = {}  # when what they wait for has ended
        self.ways = draw(st.lists(st.sampled_from(WAYS), min_size=1, max_size=2))
        self.loses = draw(st.sampled_from((False, False, False, True)))

    def note(self, who: str, what: str, begin: int, end: int) -> None:
        self.lines.append(f"{who}: {what} [{begin / 1000:.3f}, {end / 1000:.3f}]")

    def call(self, what: str, leave: int = 0) -> None:
        leave = max(leave, self.now + 1)
        self.note(str(self.rank), what, self.now, leave)
        self.now = leave

    def stream(self) -> int:
        return self.draw(st.integers(0, len(self.free) - 1))

    def unused(self, time: int) -> int:
        while time in self.used:
            time += 1
        self.used.add(time)
        return time

    def is_lost(self) -> bool:
        return self.loses and self.draw(st.sampled_from((False, False, True)))

    # --- steps -------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        self.now += self.draw(st.integers(1, 20))

    def launch(self) -> None:
        way, name, stream = self.draw(st.sampled_from(self.ways)), self.draw(st.sampled_from(NAMES)), self.stream()
        begin = self.unused(max(self.now + self.draw(st.integers(0, 3)), self.free[stream]))
        self.free[stream] = self.unused(begin + self.draw(st.integers(1, 15)))
        site = f"site={NAMES.index(name)}" if way == "site" else ""
        if not self.is_lost():
            self.note(f"{self.rank}/{stream}", f"{name}({site})", begin, self.free[stream])
        said = f"stream={stream}" if way == "stream" else site
        leave = self.now + self.draw(st.integers(1, 3))
        if self.is_lost():
            self.now = leave
            return
        if way == "stub":
            self.note(str(self.rank), f"__device_stub__{name}", self.now, leave)
        self.call(f"hipLaunchKernel({said})", leave)

    def synchronize(self, what: str, end: int) -> None:
        # A device's clock may be late.
        self.call(what, end + self.draw(st.sampled_from((0, 0, 1, 2, -1))))

    def device(self) -> None:
        self.synchronize("hipDeviceSynchronize", max(self.free))

    def one_stream(self) -> None:
        stream = self.stream()
        self.synchronize(
            f"hipStreamSynchronize({self.draw(st.sampled_from((f'stream={stream}', '')))})", self.free[stream]
        )

    def record(self) -> None:
        event, stream = self.draw(st.integers(0, 1)), self.stream()
        self.events[event] = self.free[stream]
        self.call(f"hipEventRecord(stream={stream}, event={event})")

    def event(self) -> None:
        event = self.draw(st.integers(0, 1))
        self.synchronize(f"hipEventSynchronize(event={event})", self.events.get(event, 0))

    def copy(self) -> None:
        self.call("hipMemcpy", max(self.free[0], self.now) + self.draw(st.integers(0, 2)))


@st.composite
def device_programs(draw) -> str:
    """A program of one or two ranks, each with a device, or with one for both."""
    ranks, shared, null = draw(st.integers(1, 2)), draw(st.booleans()), draw(st.booleans())
    used: set[int] = set()
    hosts = [Host(draw, rank, used if shared else set()) for rank in range(ranks)]
    alone = [Host.work, Host.launch, Host.launch, Host.launch, Host.device, Host.one_stream, Host.record, Host.event,
             Host.copy]  # fmt: skip
    for _ in range(draw(st.integers(1, 16))):
        host = draw(st.sampled_from(hosts))
        step = draw(st.sampled_from([*alone, "barrier", "message"] if len(hosts) > 1 else alone))
        if step == "barrier":
            last = max(one.now for one in hosts)
            for one in hosts:
                one.call("MPI_Barrier", last + draw(st.integers(1, 2)))
        elif step == "message":
            other = hosts[1 - host.rank]
            sent = host.now
            host.call(f"MPI_Send({other.rank})")
            other.call(f"MPI_Recv({host.rank})", sent + draw(st.integers(1, 2)))
        else:
            step(host)
    for host in hosts:
        host.note(str(host.rank), "main", 0, max(host.now, 1))
    said = [f"ranks {ranks}", *["devices shared"] * shared, *["devices null"] * null]
    return "\n".join([*said, *(line for host in hosts for line in host.lines)])


@st.composite
def communicating_programs(draw) -> str:
    """A program whose hosts exchange messages, and whose devices run operations on a stream of their own."""
    hosts = [Host(draw, rank, set()) for rank in range(draw(st.integers(2, 3)))]
    number = 0
    for host in hosts:
        host.free = [0, 0]

    def launched(host: Host, name: str, stream: int, transfer: int) -> tuple[int, str]:
        """Launch work that begins after what its stream does, and return when, and what to note of it."""
        host.call(f"hipLaunchKernel(correlation={number})")
        begin = max(host.now, host.free[stream])
        host.free[stream] = begin + transfer
        return begin, f"{name}(correlation={number})"

    for _ in range(draw(st.integers(1, 12))):
        host = draw(st.sampled_from(hosts))
        step = draw(
            st.sampled_from(["work", "kernel", "operation", "operation", "device", "device", "message", "message"])
        )
        number += 1
        if step == "work":
            host.work()
        elif step == "kernel":
            begin, what = launched(host, draw(st.sampled_from(NAMES)), 0, draw(st.integers(1, 15)))
            host.note(f"{host.rank}/0", what, begin, host.free[0])
        elif step == "operation":
            begun = [launched(one, "ncclAllReduce", 1, 0) for one in hosts]
            end = max(begin for begin, _ in begun) + draw(st.integers(1, 3))
            for one, (begin, what) in zip(hosts, begun, strict=True):
                one.free[1] = end
                one.note(f"{one.rank}/1", what, begin, end)
        elif step == "device":
            host.call("hipDeviceSynchronize", max(host.free))
        else:
            other = draw(st.sampled_from([one for one in hosts if one is not host]))
            sent = host.now
            host.call(f"MPI_Send({other.rank})")
            other.call(f"MPI_Recv({host.rank})", sent + draw(st.integers(1, 2)))
    for host in hosts:
        host.note(str(host.rank), "main", 0, max(host.now, 1))
    return "\n".join([f"ranks {len(hosts)}", *(line for host in hosts for line in host.lines)])
