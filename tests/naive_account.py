"""An oracle for the account: what each moment of each thread is, from raw records, by docs/account.md word by word.

It knows messages, collective operations, and OpenMP; wait states come from the other oracles. It shares no code with
the program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from math import ceil, log2
from typing import TYPE_CHECKING, NamedTuple

from otf2 import events as ev
from otf2.enums import Paradigm, RegionRole

from tests import naive
from tests.oracles import truth

if TYPE_CHECKING:
    from pathlib import Path

TRANSFERS = {
    f"MPI_{call}"
    for call in (
        "Send Bsend Ssend Rsend Recv Mrecv Sendrecv Sendrecv_replace Wait Waitall Waitany Waitsome Barrier Bcast "
        "Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Alltoallw Reduce Allreduce "
        "Reduce_scatter Reduce_scatter_block Scan Exscan"
    ).split()
}
BARRIERS = (RegionRole.BARRIER, RegionRole.IMPLICIT_BARRIER)
RUNTIME = (RegionRole.CRITICAL, RegionRole.ATOMIC, RegionRole.ORDERED, RegionRole.TASK_WAIT, RegionRole.FLUSH)
# Wait states that count: none that is part of another, and no completion.
PARTS = {"mpi_latesender_wo", "mpi_lswo_same", "mpi_lswo_different"}


class Stretch(NamedTuple):
    """Time of a thread in which one call or nothing is the innermost."""

    begin: int
    end: int
    call: naive.Instance | None


def stretches(thread: naive.Thread) -> list[Stretch]:
    """Return what a thread is in, without gaps from its first to its last event."""
    inner = defaultdict(list)
    for instance in thread.instances:
        inner[instance.parent if instance.parent and instance.parent.thread is thread else None].append(instance)
    times = [event.time for event, _ in thread.records]
    found = []

    def fill(begin: int, end: int, around: naive.Instance | None) -> None:
        since = begin
        for child in sorted(inner[around], key=lambda child: (child.enter, child.leave)):
            found.append(Stretch(since, child.enter, around))
            fill(child.enter, child.leave, child)
            since = child.leave
        found.append(Stretch(since, end, around))

    if times:
        fill(min(times), max(times), None)
    return [stretch for stretch in found if stretch.begin < stretch.end]


ENDS = {"MPI_Finalize", "ARMCI_Finalize", "gaspi_proc_term"}
PGAS_MANAGEMENT = (
    "gaspi_proc_",
    "gaspi_segment_",
    "gaspi_group_",
    "gaspi_notify_reset",
    "upc_all_alloc",
    "upc_lock_attempt",
)
ARMCI_MANAGEMENT = ("ARMCI_Init", "ARMCI_Finalize", "ARMCI_Malloc", "ARMCI_Free", "ARMCI_Create_", "ARMCI_Destroy_")


def activity(call: naive.Instance, *, has_own: bool) -> str:
    """Return what a call is for its thread."""
    if call.region is None:
        if call.name in {"TRACE BUFFER FLUSH", "MEASUREMENT OFF"}:
            return "measurement"
        return "unknown" if has_own else "own"
    if call.name.startswith("MPI_File_"):
        return "io"
    if call.name in TRANSFERS:
        return "transfer"
    if call.region.paradigm == Paradigm.MPI:
        return "library"
    if call.name.startswith("ARMCI_") and call.region.paradigm != Paradigm.COMPILER:
        return "library" if call.name.startswith(ARMCI_MANAGEMENT) else "transfer"
    if call.region.paradigm in {Paradigm.GASPI, Paradigm.UPC}:
        return "library" if call.name.startswith(PGAS_MANAGEMENT) else "transfer"
    if call.is_openmp(*BARRIERS):
        return "threads.barrier"
    if call.is_openmp(*RUNTIME) or call.name.startswith("omp_"):
        return "threads.runtime"
    return "own"


def focus(trace: naive.Trace) -> tuple[int, int]:
    """Return the first and the last tick of the focus."""
    starts, ends, lasts = [], [], []
    first = min(event.time for thread in trace.threads.values() for event, _ in thread.records)
    for threads in trace.processes.values():
        of_process = []
        for thread in threads:
            for names in ({"MPI_Init", "MPI_Init_thread"}, {"ARMCI_Init"}, {"gaspi_proc_init"}):
                starts += [call.leave for call in thread.instances if call.name in names][:1]
            of_process += [call.enter for call in thread.instances if call.name in ENDS]
        times = [event.time for thread in threads for event, _ in thread.records]
        ends += of_process
        if times and not of_process:
            lasts.append(max(times))
    last = max(event.time for thread in trace.threads.values() for event, _ in thread.records)
    begin, end = (max(starts) if starts else first), (max(ends + lasts) if ends else last)
    if (starts or ends) and begin < end:
        return begin, end
    return first, last


def floor_of(value: int) -> int:
    """Return the begin of the bin that a length is in: the five digits after the first binary one count."""
    shift = max(value.bit_length() - 6, 0)
    return value >> shift << shift


def floors(rests: dict[tuple, list[int]]) -> dict[tuple, float]:
    """Return what calls of each kind need; a kind is region, exposed, members, size."""
    found, high = {}, defaultdict(float)
    for kind in sorted(rests, key=lambda kind: (kind[0], kind[1], kind[2], kind[3])):
        lengths = sorted(rests[kind])
        n = len(lengths)
        if n >= 20:
            found[kind] = max(floor_of(lengths[ceil(n * 0.05) - 1]), lengths[0])
            if kind[1]:
                high[kind[:3]] = max(high[kind[:3]], found[kind])
                median = max(floor_of(lengths[ceil(n / 2) - 1]), lengths[0])
                found[kind] = min(high[kind[:3]], median)
        elif n >= 5:
            found[kind] = lengths[0]
    known = dict(found)
    for kind in rests:
        if kind not in known:
            alike = [other for other in known if other[:2] == kind[:2]]
            near = min(
                alike,
                key=lambda other: (abs(other[3] - kind[3]), other[3] < kind[3], abs(other[2] - kind[2]), other[2:]),
                default=None,
            )
            found[kind] = known[near] if near else float("inf")
    return found


def sizes(trace: naive.Trace) -> dict[int, tuple[int, int]]:
    """Return by call the logarithm of the members of a collective operation, and the class of its bytes."""
    moved, members = Counter(), {}
    result = naive.Result(trace.resolution, trace.begin)
    for messages in naive.match(trace, result).values():
        for message in messages:
            length = message.event.msg_length
            if naive.is_receive(message):
                moved[id(message.here)] += length
            else:
                moved[id(message.here)] += length
                if message.done not in {None, message.here}:
                    moved[id(message.done)] += length
    for thread in trace.threads.values():
        for event, call in thread.records:
            if isinstance(event, ev.MpiCollectiveEnd):
                moved[id(call)] += event.size_sent + event.size_received
                members[id(call)] = ceil(log2(len(event.communicator.group.members)))
    calls = moved.keys() | members.keys()
    return {call: (members.get(call, 0), moved[call].bit_length()) for call in calls}


def leads(trace: naive.Trace) -> dict[int, int]:
    """Return by call how long the last of its messages had been sent when it began, if that is known."""
    found = {}
    result = naive.Result(trace.resolution, trace.begin)
    for messages in naive.match(trace, result).values():
        for message in filter(naive.is_receive, messages):
            if message.partner is not None and message.done is not None:
                lead = message.done.enter - message.partner.start.enter
                if lead >= 0:
                    found[id(message.done)] = min(lead, found.get(id(message.done), lead))
    return found


def account(anchor: Path | str) -> Counter[tuple[str, tuple[str, ...] | None, int, int]]:  # noqa: PLR0915
    """Return the ticks of each row by call path, rank and thread; all computation is one row."""
    trace = naive.Trace(anchor)
    begin, end = focus(trace)
    moved, lead = sizes(trace), leads(trace)
    known = truth(anchor).waits
    waits = defaultdict(list)
    for wait in known:
        if wait.kind not in PARTS and not wait.kind.endswith(("completion", "last_call", "away")):
            enter, leave = (round(time * trace.resolution) + trace.begin for time in (wait.enter, wait.leave))
            waits[wait.rank, wait.thread, wait.callpath, enter, leave].append(wait)
    lines = {thread.ref: stretches(thread) for thread in trace.threads.values()}
    has_own = any(
        activity(call, has_own=True) == "own" for thread in trace.threads.values() for call in thread.instances
    )
    management = {thread.ref: managed(trace, thread) for thread in trace.threads.values()}

    # First the rest of each call, from which the floors follow.
    own = defaultdict(list)
    for line in lines.values():
        for stretch in line:
            own[id(stretch.call)].append(stretch)
    rests, kinds, waited, undecided = defaultdict(list), {}, {}, []
    for thread in trace.threads.values():
        for call in thread.instances:
            what = activity(call, has_own=has_own)
            if what in {"own", "unknown", "measurement"}:
                continue
            key = (thread.rank, thread.number, call.callpath, call.enter, call.leave)
            mine = [round(wait.waiting * trace.resolution) for wait in waits[key]]
            length = sum(stretch.end - stretch.begin for stretch in own[id(call)])
            waited[id(call)] = min(sum(mine), length)
            members, size = moved.get(id(call), (0, 0))
            kinds[id(call)] = (call.name, bool(mine), members, size)
            rest = length - waited[id(call)]
            if what == "io":
                continue
            of_kind = rests[kinds[id(call)]]
            if mine or lead.get(id(call), rest) >= rest:
                of_kind.append(rest)
            else:
                undecided.append((call, rest))
    # A message that had not been there for as long as such a call needs kept its call waiting.
    certain = floors(rests)
    for call, rest in undecided:
        region, _, members, size = kinds[id(call)]
        if lead[id(call)] < certain[kinds[id(call)]] < float("inf"):
            kinds[id(call)] = (region, True, members, size)
        rests[kinds[id(call)]].append(rest)
    needs = floors(rests)

    rows = Counter()

    def book(row: str, thread: naive.Thread, callpath: tuple[str, ...] | None, ticks: int) -> None:
        if ticks:
            rows[row, callpath, thread.rank, thread.number] += ticks

    def cut(first: int, last: int) -> int:
        return max(0, min(last, end) - max(first, begin))

    for thread in trace.threads.values():
        for call in thread.instances:
            what = activity(call, has_own=has_own)
            mine = own[id(call)]
            if what in {"own", "unknown", "measurement"}:
                for stretch in mine:
                    ticks = cut(stretch.begin, stretch.end)
                    for first, last, during, region in management[thread.ref]:
                        part = cut(max(first, stretch.begin), min(last, stretch.end))
                        if part > 0 and during is call:
                            book("threads.fork_join", thread, region.callpath, part)
                            ticks -= part
                    book({"own": "computation"}.get(what, what), thread, call.callpath, ticks)
                continue
            in_focus = sum(cut(stretch.begin, stretch.end) for stretch in mine)
            before = sum(max(0, min(stretch.end, begin) - stretch.begin) for stretch in mine)
            key = (thread.rank, thread.number, call.callpath, call.enter, call.leave)
            waiting = 0
            for wait in waits[key]:
                # Whatever the wait is, in these programs it begins with its call.
                ticks = cut(call.enter, call.enter + round(wait.waiting * trace.resolution))
                ticks = min(ticks, in_focus - waiting)
                book(f"wait.{wait.kind}", thread, call.callpath, ticks)
                waiting += ticks
            rest = in_focus - waiting
            if what == "io":
                book(what, thread, call.callpath, rest)
                continue
            length = sum(stretch.end - stretch.begin for stretch in mine) - waited[id(call)]
            before -= min(before, waited[id(call)])
            needed = max(0, min(min(length, needs[kinds[id(call)]]) - before, rest))
            if what.startswith("threads"):
                book(what, thread, call.callpath, rest)
            else:
                book(f"{what}.needed", thread, call.callpath, needed)
                book(f"{what}.excess", thread, call.callpath, rest - needed)
    idle(trace, lines, management, (begin, end), rows, has_own=has_own)
    return rows


def managed(trace: naive.Trace, thread: naive.Thread) -> list[tuple]:
    """Return the management of a thread's teams: begin, end, what the thread is in meanwhile, the parallel region."""
    found = []
    for team in trace.teams:
        for member in team.members:
            regions = [call for call in member if call.is_openmp(RegionRole.PARALLEL)]
            if regions and regions[0].thread is thread:
                during = team.forked_in if team.forked_in and team.forked_in.thread is thread else None
                found.append((team.fork, regions[0].enter, during, regions[0]))
                if team.join >= 0:
                    found.append((regions[0].leave, team.join, during, regions[0]))
    return found


def idle(
    trace: naive.Trace, lines: dict, management: dict, span: tuple[int, int], rows: Counter, *, has_own: bool
) -> None:
    """Book threads outside of all regions: idle, by what their master does; or nothing known."""
    begin, end = span
    in_teams = {
        call.thread.ref for team in trace.teams for member in team.members for call in member
        if team.forked_in is None or call.thread is not team.forked_in.thread
    }  # fmt: skip
    for threads in trace.processes.values():
        master = threads[0]
        if not master.records:
            continue
        first = min(event.time for event, _ in master.records)
        for thread in threads:
            times = [event.time for event, _ in thread.records]
            # Whoever has no events has a part in no team, but the definitions of these traces name it in all.
            if thread is master or (times and thread.ref not in in_teams):
                if times:
                    ended = end - max(*times, begin)
                    if thread is master and ended > 0:
                        rows["idle.ended", None, thread.rank, thread.number] += ended
                    outside = [s for s in lines[thread.ref] if s.call is None]
                    ticks = sum(max(0, min(s.end, end) - max(s.begin, begin)) for s in outside)
                    if ticks:
                        rows["unknown", None, thread.rank, thread.number] += ticks
                continue
            free = moments(lines[thread.ref], max(first, begin), end)
            for a, b, region in cut_out(free, [m for m in management[thread.ref] if m[2] is None]):
                if region is not None:
                    rows["threads.fork_join", region.callpath, thread.rank, thread.number] += b - a
                    continue
                for row, callpath, ticks in reasons(lines[master.ref], management[master.ref], a, b, has_own=has_own):
                    rows[row, callpath, thread.rank, thread.number] += ticks


def moments(line: list[Stretch], begin: int, end: int) -> list[tuple[int, int]]:
    """Return when a thread is in no call, between two times."""
    busy = [(s.begin, s.end) for s in line if s.call is not None]
    free, since = [], begin
    for a, b in sorted(busy):
        if a > since:
            free.append((since, min(a, end)))
        since = max(since, b)
    free.append((since, end))
    return [(a, b) for a, b in free if a < b]


def cut_out(spans: list[tuple[int, int]], management: list[tuple]) -> list[tuple]:
    """Divide spans into those of the management of a team, with its region, and others."""
    found = []
    for begin, end in spans:
        edges = sorted({begin, end, *(min(max(t, begin), end) for m in management for t in m[:2])})
        for a, b in pairwise(edges):
            regions = [m[3] for m in management if m[0] <= a and b <= m[1]]
            found.append((a, b, regions[0] if regions else None))
    return found


def reasons(line: list[Stretch], management: list[tuple], begin: int, end: int, *, has_own: bool) -> list[tuple]:
    """Return why a thread is idle between two times: row, call path of the master, ticks."""
    edges = {begin, end, *(t for s in line for t in s[:2]), *(t for m in management for t in m[:2])}
    edges = sorted(t for t in edges if begin <= t <= end)
    found = []
    for a, b in pairwise(edges):
        here = [s for s in line if s.begin <= a and b <= s.end]
        if not here:
            found.append(("idle.ended" if line and a >= line[-1].end else "unknown", None, b - a))
            continue
        call = here[0].call
        if call is None:
            found.append(("unknown", None, b - a))
            continue
        around, parallel = call, None
        while around is not None:
            parallel = around if around.is_openmp(RegionRole.PARALLEL) else parallel
            around = around.parent
        regions = [m[3] for m in management if m[0] <= a and b <= m[1] and m[2] is call]
        what = activity(call, has_own=has_own)
        if parallel is not None:
            found.append(("idle.smaller_team", parallel.callpath, b - a))
        elif what in {"transfer", "library", "io"}:
            found.append(("idle.library", call.callpath, b - a))
        elif regions:
            found.append(("idle.smaller_team", regions[0].callpath, b - a))
        else:
            found.append(("idle.serial", call.callpath, b - a))
    return found
