"""An oracle for the counters of messages and queues (docs/counters.md): quadratic, but obviously correct.

It shares no code with the program; messages are matched by tests/naive.py. Times are ticks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from otf2 import events as ev

from tests import naive, naive_protocols

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = 5
# Calls that begin something and see nothing; those that only ask are not in generated programs.
BLIND = (
    "isend ibsend issend irsend irecv start startall isendrecv isendrecv_replace send_init bsend_init ssend_init "
    "rsend_init recv_init init init_thread comm_rank"
).split()
SIZES = {0: "0", 64: "64", 1 << 10: "1ki", 8 << 10: "8ki", 64 << 10: "64ki", 1 << 20: "1mi"}


@dataclass(eq=False)
class Message:
    """A matched message with its times; `n` is its number in its pair of processes and communicator."""

    send: naive.Message
    receive: naive.Message
    post: naive.Instance
    s: int
    q: int
    d: int
    bytes: int
    order: int
    n: int = 0
    a: int = 0
    protocol: str = "unknown"
    eager: bool = True

    @property
    def pair(self):
        return self.send.thread.process, self.receive.thread.process, self.send.event.communicator._ref

    def queue(self, match: str):
        return self.pair if match == "pair" else self.pair[1:]


class Queues:
    """All of them.

    `cells` by metric, call path, rank and thread; `levels` by quantity and rank (None: the run): maximum, when it was
    reached, integral; all in ticks.
    """

    def __init__(self, anchor: Path | str, *, arrival: str = "progress", match: str = "pair") -> None:
        self.trace = trace = naive.Trace(anchor)
        self.end = max(event.time for t in trace.threads.values() for event, _ in t.records)
        self.cells: Counter = Counter()
        self.levels: dict = {}
        received = naive.match(trace, naive.Result(trace.resolution, trace.begin))
        self.sends = [m for of_thread in received.values() for m in of_thread if not naive.is_receive(m)]
        place = {id(m): (t, i) for t, of_thread in enumerate(received.values()) for i, m in enumerate(of_thread)}
        probes = self._probes()
        self.messages = []
        for of_thread in received.values():
            for m in of_thread:
                if naive.is_receive(m) and m.partner is not None:
                    s, post = m.partner, probes.get(id(m.event), m.start)
                    times = s.start.enter, post.enter, m.here.leave
                    self.messages.append(Message(s, m, post, *times, s.event.msg_length, place[id(s)]))
        for m in self.messages:
            before = [x for x in self.messages if x.pair == m.pair and (x.s, x.order) < (m.s, m.order)]
            m.n, m.a = len(before), min(m.d, m.s)
        self._protocols()
        if arrival == "estimate":
            self._estimate()
        elif arrival == "progress":
            self._see()
        self._count(match)
        self._senders()
        self._levels()
        self._requests()

    def _probes(self):
        """No generated trace has matched probes."""
        return {}

    def _add(self, metric: str, call: naive.Instance, value: int = 1) -> None:
        self.cells[metric, call.callpath, call.thread.rank, call.thread.number] += value

    def _protocols(self) -> None:
        ends = naive_protocols.completed(self.trace)
        sizes = []
        for m in self.messages:
            proof = naive_protocols.proof(m.send, m.q, ends)
            m.protocol = "unknown" if proof is None else "rendezvous" if proof else "eager"
            # A call whose name says its protocol proves nothing of the limit.
            if proof is not None and naive_protocols.named(m.send.start.name) is None:
                sizes.append((m.bytes, proof))
        # All processes of a generated trace are on one node.
        self.limit = naive_protocols.limit(sizes)
        for m in self.messages:
            below = self.limit is None or m.bytes <= self.limit
            m.eager = below if m.protocol == "unknown" else m.protocol == "eager"

    def _estimate(self) -> None:
        transfers, calls, kinds = defaultdict(list), defaultdict(list), {}
        by_call = defaultdict(list)
        for m in self.messages:
            by_call[id(m.receive.here)].append(m)
        for of_call in by_call.values():
            call = of_call[0].receive.here
            kind = call.name, len(of_call).bit_length(), max(m.bytes for m in of_call).bit_length()
            starts = [m.s if m.eager else max(m.s, m.q) for m in of_call]
            z = max(starts)
            latest = of_call[starts.index(z)]
            if z > call.enter:
                transfers[latest.bytes.bit_length(), latest.eager].append(max(call.leave - z, 0))
            else:
                calls[kind].append(call.leave - call.enter)
            for m in of_call:
                kinds[id(m)] = kind
        for m in self.messages:
            long, short = transfers[m.bytes.bit_length(), m.eager], calls[kinds[id(m)]]
            if len(long) >= SAMPLES and len(short) >= SAMPLES:
                median = sorted(long)[(len(long) - 1) // 2]
                m.a = min(m.d, m.s + max(0, median - min(short)))

    def _see(self) -> None:
        """Let each message arrive in the first call, of any thread of its receiver, that sees it."""
        for m in self.messages:
            calls = [
                call
                for thread in self.trace.threads.values()
                if thread.process == m.receive.thread.process
                for call in thread.instances
                if call.name.startswith("MPI_") and call.name.removeprefix("MPI_").lower() not in BLIND
            ]
            m.a = min([m.d, *(max(m.s, call.enter) for call in calls if call.leave > m.s)])

    def _count(self, match: str) -> None:
        for m in self.messages:
            others = [x for x in self.messages if x.queue(match) == m.queue(match) and x is not m]
            if m.s < m.q:
                self._add("mpi_unexpected_possible", m.post)
            if m.a < m.q:
                self._add("mpi_unexpected", m.post)
                self._add("mpi_unexpected_time", m.post, m.q - m.a)
                if m.eager:
                    self._add("mpi_unexpected_bytes", m.post, m.bytes)
            else:
                self._add("mpi_posted_time", m.post, m.a - m.q)
            self._add("mpi_match_attempts", m.post, attempts(m, others))
            if any(x.pair == m.pair and x.n > m.n and x.q < m.q for x in others):
                self._add("mpi_overtaken", m.post)
            if any(x.d <= m.q for x in self.messages if x.pair == m.pair and is_later(x, m)):
                self._add("mpi_unexpected_at_least", m.post)

    def _senders(self) -> None:
        for m in self.messages:
            call = m.send.start
            self._add(f"mpi_{m.protocol}" if m.protocol != "unknown" else "mpi_protocol_unknown", call)
            name = f"mpi_{m.protocol}_bytes" if m.protocol != "unknown" else "mpi_protocol_unknown_bytes"
            self._add(name, call, m.bytes)
            size = next((name for bound, name in SIZES.items() if m.bytes <= bound), "more")
            self._add(f"mpi_message_size_{size}", call)
            if self.limit is not None and m.bytes > self.limit:
                self._add("mpi_message_size_above_limit", call)
            others = [x.send.start for x in self.messages if x.pair == m.pair]
            if any(o.thread is not call.thread and min(call.leave, o.leave) > max(call.enter, o.enter) for o in others):
                self._add("mpi_oos_possible", call)
        for thread in self.trace.threads.values():
            for event, call in thread.records:
                if isinstance(event, ev.MpiCollectiveEnd):
                    large = self.limit is not None and max(event.size_sent, event.size_received) > self.limit
                    self._add(f"mpi_collective_size_{'large' if large else 'small'}_small", call)

    def _level(self, quantity: str, rank: int | None, spans: list[tuple[int, int, int]]) -> None:
        """Evaluate a level at every time at which it changes."""
        if not spans:
            return
        times = sorted({self.trace.begin, *(t for a, b, _ in spans for t in (a, b))})
        levels = [sum(v for a, b, v in spans if a <= t < b) for t in times]
        most = max(levels)
        integral = sum(v * (b - a) for a, b, v in spans)
        self.levels[quantity, rank] = most, times[levels.index(most)] if most else self.trace.begin, integral

    def _levels(self) -> None:
        for rank in {t.rank for t in self.trace.threads.values()}:
            own = [m for m in self.messages if m.receive.thread.rank == rank]
            unexpected = [m for m in own if m.a < m.q]
            self._level("mpi_unexpected_queue", rank, [(m.a, m.q, 1) for m in unexpected])
            self._level("mpi_unexpected_data", rank, [(m.a, m.q, m.bytes) for m in unexpected if m.eager])
            self._level("mpi_posted_queue", rank, [(m.q, m.a, 1) for m in own if m.q < m.a])
            self._level("mpi_bytes_in_flight", rank, [(m.s, m.d, m.bytes) for m in own if m.s < m.d])
        self._level("mpi_bytes_in_flight", None, [(m.s, m.d, m.bytes) for m in self.messages if m.s < m.d])

    def _requests(self) -> None:
        """Read the records again: requests and when they complete."""
        spans = defaultdict(list)
        for thread in self.trace.threads.values():
            open_ones: dict = {}
            for event, call in thread.records:
                if isinstance(event, ev.MpiIsend) and event.receiver <= 0x7FFFFFFF:
                    open_ones["send", event.request_id] = call
                elif isinstance(event, ev.MpiIrecvRequest):
                    open_ones["receive", event.request_id] = call
                elif isinstance(event, ev.NonBlockingCollectiveRequest):
                    open_ones["collective", event.request_id] = call
                elif isinstance(event, (ev.RmaPut, ev.RmaGet, ev.RmaAtomic)) and call.name.startswith("MPI_R"):
                    open_ones["one-sided", event.matching_id] = call
                ends = {ev.MpiIsendComplete: ["send"], ev.MpiIrecv: ["receive"],
                        ev.NonBlockingCollectiveComplete: ["collective"],
                        ev.RmaOpCompleteBlocking: ["one-sided"], ev.RmaOpCompleteNonBlocking: ["one-sided"],
                        ev.MpiRequestCancelled: ["send", "receive"]}.get(type(event), [])  # fmt: skip
                for kind in ends:
                    number = event.matching_id if kind == "one-sided" else event.request_id
                    begun = open_ones.pop((kind, number), None)
                    if begun is not None:
                        spans[kind, thread.rank].append((begun.enter, call.leave, 1))
                        break
            for (kind, _), begun in open_ones.items():
                self._add("mpi_requests_leaked", begun)
                spans[kind, thread.rank].append((begun.enter, self.end, 1))
        for (kind, rank), of_rank in spans.items():
            if kind in ("send", "receive"):
                self._level(f"mpi_{kind}_requests", rank, of_rank)
        for rank in {rank for _, rank in spans}:
            self._level("mpi_requests", rank, [span for (_, own), of in spans.items() if own == rank for span in of])

    def table(self) -> dict[str, dict]:
        """Return seconds and numbers of the nonzero cells by metric."""
        table: dict[str, dict] = defaultdict(dict)
        for (metric, *cell), value in self.cells.items():
            if value:
                table[metric][tuple(cell)] = value / self.trace.resolution if metric.endswith("_time") else value
        return dict(table)


def is_later(a: Message, b: Message) -> bool:
    """Whether a message follows another one of the same process: on the same thread, or because that had been sent."""
    if a.send.thread is b.send.thread:
        return (a.s, a.order) > (b.s, b.order)
    return a.s >= b.send.start.leave


def attempts(m: Message, others: list[Message]) -> int:
    """Count the match attempts of a message; on equal times, the lower number and then the lower sender comes first."""

    def posted(x):
        return x.q, x.n, x.send.thread.rank

    def arrived(x):
        return x.a, x.n, x.send.thread.rank

    if m.q <= m.a:
        arrival = 1 + sum(posted(x) < posted(m) and arrived(x) > arrived(m) for x in others)
        post = sum(x.a <= m.q and posted(x) > posted(m) for x in others)
    else:
        arrival = sum(x.q <= m.a and arrived(x) > arrived(m) for x in others)
        post = 1 + sum(arrived(x) < arrived(m) and posted(x) > posted(m) for x in others)
    return arrival + post
