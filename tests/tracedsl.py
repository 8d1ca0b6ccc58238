"""A small language for traces, written as OTF2 archives with the records of Score-P.

One line is one call, its nesting follows from the intervals, times are seconds:

    ranks 2
    0: main [0, 10]
    0: MPI_Send(1, tag=3, bytes=8) [5.0, 5.2] @5.1
    1: MPI_Recv(0, tag=3) [2, 5.3]
    *: MPI_Barrier [6, 7]

*Who*: a rank, `0,2`, `0-3`, `*` (all), `0.1` for thread 1 of rank 0, or `0/1` for stream 1 of its accelerator.
*What*: a region with its arguments. *When*: Enter and Leave. *@*: the stamps of the records in it, where the defaults
do not do: what is written before the time in MPI (sends, begins, requests) stands at Enter, what is written after it
(receives, ends, completions) at Leave.

| call | arguments |
|---|---|
| MPI_Send, Ssend, Bsend, Rsend | destination, `tag=0`, `bytes=8`, `comm=world` |
| MPI_Recv | source, the same |
| MPI_Isend, Irecv and so on | the same, and `req=` a number |
| MPI_Wait*, Test* | the requests that complete; `failed`: none does; `cancelled`: that is how they end |
| MPI_Send_init, Recv_init; MPI_Start(all) | as Isend, Irecv; the requests |
| MPI_Psend_init, Precv_init | the same, and `partitions=` how many |
| MPI_Pready, Pready_range, Pready_list | the request, then the partition, the first and the last one, or all |
| MPI_Parrived | the request and the partition; `failed` |
| MPI_Sendrecv | `to=`, `source=`; without one of them, its partner is MPI_PROC_NULL |
| MPI_Iallreduce and so on | as the blocking operation, and `req=` |
| MPI_Neighbor_allgather, alltoall | none: they leave no record; MPI_Ineighbor_... as MPI_Iallreduce |
| collectives | `comm=`, `root=0`, `bytes=8` a rank, or what is recorded itself: `sent=`, `received=` |
| MPI_Win_create, allocate, free, fence | the window |
| MPI_Put, Get, Accumulate, ... | target, `win=`, `bytes=8` (Rput and so on: `req=`) |
| MPI_Win_post, start, complete, wait, test | the window, the group; `failed` |
| MPI_Win_lock, unlock, flush, flush_local | target, `win=`; `shared`; `granted`: the lock is got at its end |
| MPI_Win_lock_all, unlock_all, flush_all, flush_local_all | `win=` |
| shmem_*_put, _get, _add, _fadd, ... | PE, `win=`, `bytes=8` |
| shmem_set_lock, clear_lock, test_lock | the window, `lock=` its address; `failed`; `acquired`: as in the thesis |
| shmem_barrier_all, broadcast64, ...; wait_until | the window |
| ARMCI_Put, Get, Acc, Rmw, NbPut, NbGet, NbAcc | target, `win=`, `bytes=8` (Nb...: `req=`) |
| ARMCI_Wait; Fence; AllFence | the request; target and window; the window |
| ARMCI_Init, Finalize, Malloc, Free, Barrier | the window |
| ARMCI_Lock, Unlock | target, `win=`, `lock=0` |
| gaspi_write, _read, _atomic_..., upc_memput, ... | target, `win=`, `bytes=8` (`req=`: until gaspi_wait of it) |
| gaspi_notify, _write_notify; _notify_waitsome | target, `win=`, `id=`; `win=`, `id=` (`id` may lack in either) |
| gaspi_passive_send, _passive_receive | target, sender; `win=` |
| gaspi_barrier, ..., upc_all_... | the window, `root=`; `begins`, `ends`: only so; `asked`: neither |
| upc_notify, upc_wait | the window |
| upc_lock, _unlock, _lock_attempt | owner, `win=`, `lock=0`; `failed` |
| !$omp critical ..., omp_[un]set_[nest_]lock, pthread_*lock, pthread_*unlock | `order=` of acquisition, `lock=0` |
| pthread_cond_wait, timedwait | `lock=0`, `released=`, `order=`: of the release at Enter, the acquisition at Leave |
| pthread_create, pthread_join | the thread, which then has records of its begin and end |
| !$omp create task ..., !$omp task ... | `task=` a number: creation at Enter; switch at Enter, completion at Leave |
| launches, synchronizations, cudaEventRecord | `stream=`, `event=` that they name |
| launches, kernels | `site=` the number of their call site, `correlation=` that both share |
| ncclAllReduce, Broadcast, ..., Send, Recv | on streams: as MPI_Allreduce, Bcast, ..., Send, Recv |
| open, read, pwrite, fsync, aio_read, MPI_File_write_all, ... | `file=`, `bytes=8` (aio_..., MPI_File_i...: `req=`) |
| aio_suspend | the requests that complete, as in MPI_Wait |

`fork [1, 5]` on a rank is a THREAD_FORK at 1 and a THREAD_JOIN at 5; a `!$omp parallel` in it is the team's.
`raw MpiRequestCancelled(request_id=3) @4` is any record of the `otf2` package; it comes before a call of the same time.

Declarations: `ranks 4`, `threads 2`, `comm half = 0 2` (communicator order), `intercomm both = 0 1 | 2 3` (the `root=`
of an operation on it is a rank of world), `topology half = 2 3*` (its members in a grid, row by row; `*`: periodic),
`set evens = 0 2` (a communicator of OpenSHMEM: ranks are PEs), `group g = 1 2` (of world ranks, or of none), `win w on
half` (`on locations`: of threads, not processes), `clock 1 +0.5` (rank 1's own clock is half a second behind),
`node n1 = 0 2` (ranks of a node of their own; the others share one, named `node`), `sockets` (each rank has one, below
its node),
`counters INS MISS` (strict counters, sampled at each Enter and Leave; as arguments of a call, `INS=100` says by how
much one grows from the call's Enter to the next sample), `parameters step phase:string` (INT64, `:unsigned` or
`:string`; as arguments of a call, `step=3` is recorded directly behind its Enter), `dynamic step` (regions that are),
`frames f` (functions that are only known from the stack, whatever their names),
`devices shared` (all ranks have one, with its node), `devices null` (stream 0 of each is its null stream),
`contexts` (records name whole call paths, and those of `frames` are only part of them: calling contexts), `contexts
perf 0.5` (and each sample stands for so many seconds outside of the system).

`0: sample main/step/kernel(stime=0.002, minflt=7) @2.5, 2.6` is what samples saw at these times, and how much processor
time in the system and how many faults there were since the sample before; `on=faults` is one that faults triggered,
and `at=memcpy` where in a library it was.

Every rank runs the program `program` from second 0 to its last event.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import _otf2
import otf2
from otf2 import events as ev
from otf2.definitions import Location
from otf2.enums import (
    Base,
    CartPeriodicity,
    CollectiveOp,
    GroupFlag,
    GroupType,
    InterruptGeneratorMode,
    IoAccessMode,
    IoCreationFlag,
    IoHandleFlag,
    IoOperationFlag,
    IoOperationMode,
    IoParadigmClass,
    IoParadigmFlag,
    IoSeekOption,
    IoStatusFlag,
    LocationGroupType,
    LocationType,
    LockType,
    MeasurementMode,
    MetricMode,
    MetricOccurrence,
    MetricType,
    Paradigm,
    ParadigmClass,
    ParameterType,
    RegionFlag,
    RegionRole,
    RmaAtomicType,
    RmaSyncLevel,
    RmaSyncType,
    RmaWinFlag,
    SystemTreeDomain,
    Type,
)

RESOLUTION = 1_000_000_000
# The writer does not like time stamp 0, so a trace's second 0 is a little later on the clock.
ORIGIN = RESOLUTION
UNDEFINED = 0xFFFFFFFF
# Roots of collective operations on inter-communicators.
ROOT_SELF, ROOT_THIS_GROUP = 0xFFFFFFFE, 0xFFFFFFFD

COLLECTIVES = {
    "MPI_Barrier": CollectiveOp.BARRIER,
    "MPI_Bcast": CollectiveOp.BCAST,
    "MPI_Scatter": CollectiveOp.SCATTER,
    "MPI_Scatterv": CollectiveOp.SCATTERV,
    "MPI_Gather": CollectiveOp.GATHER,
    "MPI_Gatherv": CollectiveOp.GATHERV,
    "MPI_Reduce": CollectiveOp.REDUCE,
    "MPI_Allgather": CollectiveOp.ALLGATHER,
    "MPI_Allgatherv": CollectiveOp.ALLGATHERV,
    "MPI_Allreduce": CollectiveOp.ALLREDUCE,
    "MPI_Alltoall": CollectiveOp.ALLTOALL,
    "MPI_Alltoallv": CollectiveOp.ALLTOALLV,
    "MPI_Alltoallw": CollectiveOp.ALLTOALLW,
    "MPI_Reduce_scatter": CollectiveOp.REDUCE_SCATTER,
    "MPI_Reduce_scatter_block": CollectiveOp.REDUCE_SCATTER_BLOCK,
    "MPI_Scan": CollectiveOp.SCAN,
    "MPI_Exscan": CollectiveOp.EXSCAN,
}
# They leave no record, but those that do not block.
NEIGHBORS = {
    "MPI_Neighbor_allgather": CollectiveOp.ALLGATHER,
    "MPI_Neighbor_alltoall": CollectiveOp.ALLTOALL,
}
OPERATIONS = {**COLLECTIVES, **NEIGHBORS}
ROOTED = {"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv", "MPI_Gather", "MPI_Gatherv", "MPI_Reduce"}

# Kernels of devices that communicate, by the operations of MPI that have the same flow of data.
DEVICE_OPERATIONS = {
    "ncclBarrier": "MPI_Barrier",
    "ncclAllReduce": "MPI_Allreduce",
    "ncclAllGather": "MPI_Allgather",
    "ncclReduceScatter": "MPI_Reduce_scatter",
    "ncclAllToAll": "MPI_Alltoall",
    "ncclBroadcast": "MPI_Bcast",
    "ncclScatter": "MPI_Scatter",
    "ncclReduce": "MPI_Reduce",
    "ncclGather": "MPI_Gather",
    "ncclSend": "MPI_Send",
    "ncclRecv": "MPI_Recv",
}

SHMEM_COLLECTIVES = {
    "barrier": CollectiveOp.BARRIER,
    "broadcast": CollectiveOp.BCAST,
    "collect": CollectiveOp.ALLGATHER,
}
ARMCI_COLLECTIVES = {
    "Init": CollectiveOp.CREATE_HANDLE,
    "Finalize": CollectiveOp.DESTROY_HANDLE,
    "Malloc": CollectiveOp.ALLOCATE,
    "Free": CollectiveOp.DEALLOCATE,
    "Barrier": CollectiveOp.BARRIER,
}
# By what the names of calls have in them; the others are barriers.
PGAS_COLLECTIVES = {
    "alloc": CollectiveOp.ALLOCATE,
    "create": CollectiveOp.ALLOCATE,
    "init": CollectiveOp.CREATE_HANDLE,
    "term": CollectiveOp.DESTROY_HANDLE,
    "free": CollectiveOp.DEALLOCATE,
    "broadcast": CollectiveOp.BCAST,
    "scatter": CollectiveOp.SCATTER,
    "gather_all": CollectiveOp.ALLGATHER,
    "gather": CollectiveOp.GATHER,
    "allreduce": CollectiveOp.ALLREDUCE,
    "reduce": CollectiveOp.REDUCE,
    "exchange": CollectiveOp.ALLTOALL,
}
# By how the names of calls end; the longer ending first.
ATOMICS = {
    "fetch_add": RmaAtomicType.FETCH_AND_ADD,
    "compare_swap": RmaAtomicType.COMPARE_AND_SWAP,
    "fadd": RmaAtomicType.FETCH_AND_ADD,
    "finc": RmaAtomicType.FETCH_AND_INCREMENT,
    "cswap": RmaAtomicType.COMPARE_AND_SWAP,
    "swap": RmaAtomicType.SWAP,
    "Rmw": RmaAtomicType.FETCH_AND_ADD,
    "add": RmaAtomicType.ACCUMULATE,
    "inc": RmaAtomicType.INCREMENT,
    "Acc": RmaAtomicType.ACCUMULATE,
}

ROLES = {
    **dict.fromkeys(COLLECTIVES, RegionRole.COLL_ALL2ALL),
    **dict.fromkeys(("MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"), RegionRole.COLL_ONE2ALL),
    **dict.fromkeys(("MPI_Gather", "MPI_Gatherv", "MPI_Reduce"), RegionRole.COLL_ALL2ONE),
    **dict.fromkeys(("MPI_Scan", "MPI_Exscan"), RegionRole.COLL_OTHER),
    "MPI_Barrier": RegionRole.BARRIER,
    **dict.fromkeys(("MPI_Put", "MPI_Get", "MPI_Rput", "MPI_Rget"), RegionRole.RMA),
    **dict.fromkeys(
        (
            "MPI_Accumulate",
            "MPI_Raccumulate",
            "MPI_Get_accumulate",
            "MPI_Rget_accumulate",
            "MPI_Fetch_and_op",
            "MPI_Compare_and_swap",
        ),
        RegionRole.ATOMIC,
    ),
    "MPI_Win_allocate": RegionRole.ALLOCATE,
}
MPI_FILE = re.compile(r"MPI_File_(?P<start>i?)(?P<what>read|write|sync|open|close|delete|seek)(?P<how>\w*)")
POSIX_FILE = re.compile(
    r"(?P<start>aio_|)(?P<how>[fp]?)(?P<what>read|write|sync|open|close|lseek|unlink|dup|flock|fcntl)"
)
METADATA = {"open", "close", "delete", "seek", "lseek", "unlink", "dup", "flock", "fcntl"}
OPENMP_ROLES = {
    "!$omp parallel": RegionRole.PARALLEL,
    "!$omp barrier": RegionRole.BARRIER,
    "!$omp implicit barrier": RegionRole.IMPLICIT_BARRIER,
    "!$omp critical": RegionRole.CRITICAL,
    "!$omp ordered sblock": RegionRole.ORDERED_SBLOCK,
    "!$omp ordered": RegionRole.ORDERED,
    "!$omp for": RegionRole.LOOP,
    "!$omp sections": RegionRole.SECTIONS,
    "!$omp section": RegionRole.SECTION,
    "!$omp create task": RegionRole.TASK_CREATE,
    "!$omp taskwait": RegionRole.TASK_WAIT,
    "!$omp taskgroup": RegionRole.FUNCTION,
    "!$omp task": RegionRole.TASK,
    "!$omp single": RegionRole.SINGLE,
}
POINT_TO_POINT = re.compile(r"MPI_(I?[bsr]?(send|recv)|Sendrecv|Send_init|Recv_init|Start|I?probe)", re.IGNORECASE)


@dataclass(eq=False)
class Call:
    """A call: one line of the text."""

    line: str
    name: str
    arguments: list[Any]
    options: dict[str, Any]
    enter: int
    leave: int
    stamps: list[int]
    records: list[tuple[int, Any]] = field(default_factory=list)  # (time, event)
    children: list[Call] = field(default_factory=list)

    def at(self, which: int, default: int) -> int:
        return self.stamps[which] if which < len(self.stamps) else default

    @property
    def before(self) -> int:
        return self.at(0, self.enter)

    @property
    def after(self) -> int:
        return self.at(-1, self.leave) if self.stamps else self.leave


@dataclass(eq=False)
class Stream:
    """The calls of a location."""

    rank: int
    thread: int
    calls: list[Call] = field(default_factory=list)
    raw: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    forks: list[tuple[int, int]] = field(default_factory=list)
    samples: list[tuple[int, list[str], dict[str, Any]]] = field(default_factory=list)


def ticks(seconds: float) -> int:
    return ORIGIN + round(seconds * RESOLUTION)


def trace_from_text(text: str, directory: Path | str) -> Path:
    """Write the archive that a text describes into a directory, and return its anchor file."""
    return Script(text).write(Path(directory))


class Script:
    """A parsed text."""

    def __init__(self, text: str) -> None:
        self.ranks = 0
        self.threads = 1
        self.comms: dict[str, list[int]] = {}
        self.sets: dict[str, list[int]] = {}
        self.topologies: list[tuple[str, list[str]]] = []
        self.intercomms: dict[str, tuple[list[int], list[int]]] = {}
        self.groups: dict[str, list[int]] = {}
        self.windows: dict[str, str] = {}
        self.clocks: dict[int, int] = {}
        self.nodes: dict[int, str] = {}
        self.has_sockets = False
        self.counters: list[str] = []
        self.parameters: dict[str, str] = {}
        self.dynamic: list[str] = []
        self.frames: list[str] = []
        self.devices: list[str] = []
        self.has_contexts = False
        self.period: float | None = None
        lines = [line.split("#")[0].strip() for line in text.splitlines()]
        activities = [line for line in lines if line and not self._declare(line)]
        mentioned = [
            int(who) for line in activities for who in re.findall(r"\d+", re.split("[./]", line.split(":")[0])[0])
        ]
        self.ranks = self.ranks or max(mentioned) + 1
        for line in activities:
            for _, thread in self._who(line.split(":")[0]):
                self.threads = max(self.threads, thread + 1)
        self.streams = {(r, t): Stream(r, t) for r in range(self.ranks) for t in range(self.threads)}
        # Streams of devices have negative numbers.
        for line in activities:
            for place in self._who(line.split(":")[0]):
                self.streams.setdefault(place, Stream(*place))
        for line in activities:
            self._act(line)
        calls = [call for stream in self.streams.values() for call in stream.calls]
        # The thread that creates each task, by rank, and the threads that are created.
        self.creators = {
            (stream.rank, call.options["task"]): stream.thread
            for stream in self.streams.values()
            for call in stream.calls
            if call.name.startswith("!$omp create task") and "task" in call.options
        }
        self.created = {
            (stream.rank, call.arguments[0])
            for stream in self.streams.values()
            for call in stream.calls
            if call.name == "pthread_create" and call.arguments
        }
        self.of_files = {call.name for call in calls if "file" in call.options or call.name == "aio_suspend"}
        for rank, call in [(stream.rank, call) for stream in self.streams.values() for call in stream.calls]:
            if "stream" in call.options:
                place = rank, -1 - call.options["stream"]
                self.streams.setdefault(place, Stream(*place))

    def _declare(self, line: str) -> bool:
        if match := re.fullmatch(r"(ranks|threads) (\d+)", line):
            setattr(self, match[1], int(match[2]))
        elif match := re.fullmatch(r"(comm|set) (\w+) = ([\d ]+)", line):
            getattr(self, f"{match[1]}s")[match[2]] = [int(r) for r in match[3].split()]
        elif match := re.fullmatch(r"intercomm (\w+) = ([\d ]+)\|([\d ]+)", line):
            self.intercomms[match[1]] = [int(r) for r in match[2].split()], [int(r) for r in match[3].split()]
        elif match := re.fullmatch(r"topology (\w+) = ([\d* ]+)", line):
            self.topologies.append((match[1], match[2].split()))
        elif match := re.fullmatch(r"group (\w+) =([\d ]*)", line):
            self.groups[match[1]] = [int(r) for r in match[2].split()]
        elif match := re.fullmatch(r"win (\w+) on (\w+)", line):
            self.windows[match[1]] = match[2]
        elif match := re.fullmatch(r"clock (\d+) ([+-][\d.]+)", line):
            self.clocks[int(match[1])] = round(float(match[2]) * RESOLUTION)
        elif match := re.fullmatch(r"node (\w+) = ([\d ]+)", line):
            self.nodes |= dict.fromkeys(map(int, match[2].split()), match[1])
        elif line == "sockets":
            self.has_sockets = True
        elif match := re.fullmatch(r"contexts(?: perf ([\d.]+))?", line):
            self.has_contexts = True
            self.period = float(match[1]) if match[1] else None
        elif match := re.fullmatch(r"counters ([\w ]+)", line):
            self.counters = match[1].split()
        elif match := re.fullmatch(r"(dynamic|frames) ([\w ]+)", line):
            setattr(self, match[1], match[2].split())
        elif match := re.fullmatch(r"devices (shared|null)", line):
            self.devices.append(match[1])
        elif match := re.fullmatch(r"parameters ([\w: ]+)", line):
            self.parameters = {name: kind for name, _, kind in (each.partition(":") for each in match[1].split())}
        else:
            return False
        return True

    def _who(self, text: str) -> list[tuple[int, int]]:
        if match := re.fullmatch(r"(\d+)/(\d+)", text.strip()):
            return [(int(match[1]), -1 - int(match[2]))]
        ranks, _, thread = text.strip().partition(".")
        chosen: list[int] = []
        for part in ranks.split(","):
            if part.strip() == "*":
                chosen += range(self.ranks)
            elif match := re.fullmatch(r"(\d+)-(\d+)", part.strip()):
                chosen += range(int(match[1]), int(match[2]) + 1)
            else:
                chosen.append(int(part))
        return [(rank, int(thread or 0)) for rank in chosen]

    def _act(self, line: str) -> None:
        who, _, what = line.partition(":")
        stamps = r"(?:@\s*(?P<stamps>[\d., ]+))?"
        raw = re.fullmatch(r"raw (?P<name>\w+)(?:\((?P<arguments>.*)\))? " + stamps, what.strip())
        call = re.fullmatch(
            r"(?P<name>.+?)(?:\((?P<arguments>[^()]*)\))?\s*\[(?P<enter>[\d.]+), *(?P<leave>[\d.]+)\]\s*" + stamps,
            what.strip(),
        )
        sample = re.fullmatch(r"sample (?P<name>[^@(]+)(?:\((?P<arguments>.*)\))? " + stamps, what.strip())
        match = raw or sample or call
        if match is None:
            raise ValueError(f"not a line of a trace: {line!r}")
        arguments, options = parse_arguments(match["arguments"] or "")
        times = [ticks(float(t)) for t in (match["stamps"] or "").split(",") if t.strip()]
        for place in self._who(who):
            stream = self.streams[place]
            if raw:
                stream.raw.append((times[0], match["name"], options))
                continue
            if sample:
                stream.samples += [(time, match["name"].strip().split("/"), options) for time in times]
                continue
            enter, leave = ticks(float(match["enter"])), ticks(float(match["leave"]))
            if match["name"] == "fork":
                stream.forks.append((enter, leave))
            else:
                stream.calls.append(Call(line, match["name"].strip(), arguments, options, enter, leave, sorted(times)))

    def write(self, directory: Path) -> Path:
        return Archive(self, directory).anchor


def parse_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Parse `1, tag=3, shared` into positional values (bare words are strings) and options."""
    if not text.strip():
        return [], {}
    call = ast.parse(f"f({text})", mode="eval").body

    def value(node: ast.expr) -> Any:
        return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)

    return [value(a) for a in call.args], {k.arg: value(k.value) for k in call.keywords}


def is_task(call: Call) -> bool:
    """Whether a call is an explicit task."""
    return "task" in call.options and not call.name.startswith("!$omp create")


def nest(calls: list[Call]) -> list[Call]:
    """Arrange calls as a forest by their intervals."""
    roots: list[Call] = []
    stack: list[Call] = []
    for call in sorted(calls, key=lambda c: (c.enter, -c.leave)):
        while stack and stack[-1].leave <= call.enter:
            stack.pop()
        if stack and call.leave > stack[-1].leave:
            raise ValueError(f"neither inside nor outside: {call.line!r} and {stack[-1].line!r}")
        (stack[-1].children if stack else roots).append(call)
        stack.append(call)
    return roots


def new_archive(directory: Path | str, timer_resolution: int) -> Any:
    """Open a writer with the smallest buffers; clearing larger ones takes longer than writing a small trace."""
    smallest = 2**18
    return otf2.writer.open(
        str(directory),
        timer_resolution=timer_resolution,
        chunk_size_events=smallest,
        chunk_size_definitions=smallest,
    )


class Archive:
    """Definitions and events of a script, written with the official writer."""

    def __init__(self, script: Script, directory: Path) -> None:
        self.script = script
        self.anchor = directory / "traces.otf2"
        self.handles: dict[tuple[str, str], Any] = {}
        self.paradigms: dict[str, Any] = {}
        self.files: dict[str, Any] = {}
        with new_archive(directory, timer_resolution=RESOLUTION) as self.writer:
            self.writer.creator = "whywait tests"
            self.definitions = self.writer.definitions
            self._define()
            self.contexts: dict[tuple[str, ...], Any] = {}
            if script.period is not None:
                for location in self.locations.values():
                    self.definitions.location_property(location, "sampling", value="perf", type_id=Type.STRING)
            for stream in script.streams.values():
                if stream.thread == 0 or stream.calls or stream.raw:
                    self._write(stream)
            self._write_clocks()

    # --- definitions -------------------------------------------------------------------------------------------------

    def _define(self) -> None:
        d, script = self.definitions, self.script
        d._paradigms.create(paradigm=Paradigm.MPI, name="MPI", paradigm_class=ParadigmClass.PROCESS)
        if script.threads > 1:
            d._paradigms.create(paradigm=Paradigm.OPENMP, name="OpenMP", paradigm_class=ParadigmClass.THREAD_FORK_JOIN)
        machine = d.system_tree_node("machine", "machine")
        node = d.system_tree_node("node", class_name="node", parent=machine)
        names = sorted(set(script.nodes.values()))
        # Not the node of the others, even if it has this name.
        create = d._system_tree_nodes.create
        nodes = {name: create(name=name, class_name="node", parent=machine) for name in names}
        self.locations: dict[tuple[int, int], Location] = {}
        processes = {}
        for rank in range(script.ranks):
            of_rank = nodes[script.nodes[rank]] if rank in script.nodes else node
            if script.has_sockets:
                of_rank = create(name="socket", class_name="socket", parent=of_rank)
            process = d.location_group(f"MPI Rank {rank}", system_tree_parent=of_rank)
            processes[rank] = process
            for thread in range(script.threads):
                name = f"OMP thread {thread}" if thread else "Master thread"
                # As Score-P numbers them; the registry would count from 0.
                location = Location(d._locations, thread << 32 | rank, name, group=process)
                d._locations._register(location)
                self.locations[rank, thread] = location
        kinds = {"": ParameterType.INT64, "unsigned": ParameterType.UINT64, "string": ParameterType.STRING}
        self.parameters = {name: d.parameter(name, kinds[kind]) for name, kind in script.parameters.items()}
        masters = [self.locations[r, 0] for r in range(script.ranks)]
        everyone = list(self.locations.values())
        self.locations |= self._devices(node, processes)

        def group(kind: GroupType, members: list, paradigm: Paradigm = Paradigm.MPI) -> Any:
            flags = GroupFlag.GLOBAL_MEMBERS if paradigm == Paradigm.SHMEM else GroupFlag.NONE
            return d._groups.create("", kind, paradigm=paradigm, members=tuple(members), group_flags=flags)

        group(GroupType.COMM_LOCATIONS, masters)
        group(GroupType.COMM_LOCATIONS, everyone, Paradigm.MEASUREMENT_SYSTEM)
        all_threads = group(GroupType.COMM_GROUP, everyone, Paradigm.MEASUREMENT_SYSTEM)
        # The measurement system's communicator comes first, so that MPI_COMM_WORLD is not number 0.
        locations = d._comms.create("Process x Threads CPU Locations", all_threads, _type=otf2.definitions.Comm)
        world = group(GroupType.COMM_GROUP, masters)
        self.members = {"world": list(range(script.ranks)), **script.comms}

        def comm(name: str, members: Any, parent: Any) -> Any:
            return d._comms.create(name, members, parent, _type=otf2.definitions.Comm)

        self.comms = {"world": comm("MPI_COMM_WORLD", world, None), "locations": locations}
        self.comms["self"] = comm("MPI_COMM_SELF", group(GroupType.COMM_SELF, []), None)
        for name, ranks in script.comms.items():
            members = group(GroupType.COMM_GROUP, [masters[r] for r in ranks])
            self.comms[name] = comm("", members, self.comms["world"])
        for name, sizes in script.topologies:
            self._topology(name, sizes)
        if script.sets:
            group(GroupType.COMM_LOCATIONS, masters, Paradigm.SHMEM)
        for name, ranks in script.sets.items():
            members = group(GroupType.COMM_GROUP, [masters[r] for r in ranks], Paradigm.SHMEM)
            self.comms[name] = comm("", members, None)
        self.intercomms = script.intercomms
        for name, sides in script.intercomms.items():
            a, b = (group(GroupType.COMM_GROUP, [masters[r] for r in side]) for side in sides)
            self.comms[name] = d._comms.create("", a, b, self.comms["world"], _type=otf2.definitions.InterComm)
        self.groups = {
            name: group(GroupType.COMM_GROUP, [masters[r] for r in ranks]) for name, ranks in script.groups.items()
        }
        self.windows = {
            name: d._rma_wins.create("MPI_Win_create window", self.comms[on], RmaWinFlag.CREATE_DESTROY_EVENTS)
            for name, on in script.windows.items()
        }
        self._define_counters()
        self._define_teams(group, comm, everyone)

    def _define_teams(self, group: Any, comm: Any, everyone: list[Location]) -> None:
        script = self.script
        if script.threads > 1:
            group(GroupType.COMM_LOCATIONS, everyone, Paradigm.OPENMP)
            for rank in range(script.ranks):
                team = [self.locations[rank, t] for t in range(script.threads)]
                self.comms[f"team {rank}"] = comm("", group(GroupType.COMM_GROUP, team, Paradigm.OPENMP), None)
        if script.created:
            group(GroupType.COMM_LOCATIONS, everyone, Paradigm.PTHREAD)
        for rank in sorted({rank for rank, _ in script.created}):
            members = [self.locations[rank, t] for t in range(script.threads)]
            self.comms[f"threads {rank}"] = comm("", group(GroupType.COMM_GROUP, members, Paradigm.PTHREAD), None)

    def _define_counters(self) -> None:
        d, script = self.definitions, self.script
        if script.counters:
            options = {"metric_type": MetricType.PAPI, "metric_mode": MetricMode.ACCUMULATED_START, "unit": "#"}
            members = [d.metric_member(name, value_type=Type.INT64, **options) for name in script.counters]
            self.metric = d.metric_class(members, occurrence=MetricOccurrence.SYNCHRONOUS_STRICT)

    def attributes(self, values: dict[str, int | None]) -> tuple[dict, ...]:
        """Return values as the attributes of a record, its last field; none if none is known."""
        known = {attribute.name: attribute for attribute in self.definitions._attributes}
        values = {name: value for name, value in values.items() if value is not None}
        define = self.definitions.attribute
        return ({known.get(name) or define(name, "", Type.UINT32): value for name, value in values.items()},)[
            : len(values)
        ]

    def region(self, name: str) -> Any:
        if name in self.script.dynamic:
            return self._region(name, RegionRole.CODE, Paradigm.USER)
        if name in self.script.of_files:
            used = MPI_FILE.fullmatch(name) or POSIX_FILE.fullmatch(name)
            is_metadata = used is not None and used["what"] in METADATA
            role = RegionRole.FILE_IO_METADATA if is_metadata else RegionRole.FILE_IO
            return self._region(name, role, Paradigm.MPI if name.startswith("MPI_") else Paradigm.NONE)
        if name.startswith("MPI_"):
            waits = re.match(r"MPI_(Wait|Test)", name)
            default = RegionRole.POINT2POINT if waits or POINT_TO_POINT.match(name) else RegionRole.FUNCTION
            return self._region(name, ROLES.get(name, default), Paradigm.MPI)
        if name.startswith(("shmem_", "shmalloc", "shfree")):
            return self._region(name, RegionRole.FUNCTION, Paradigm.SHMEM)
        if name.startswith("ARMCI_") and name not in self.script.frames:  # for which OTF2 has no paradigm
            return self._region(name, RegionRole.FUNCTION, Paradigm.UNKNOWN)
        if name.startswith(("gaspi_", "upc_")) and name not in self.script.frames:
            paradigm = Paradigm.GASPI if name.startswith("gaspi_") else Paradigm.UPC
            return self._region(name, RegionRole.FUNCTION, paradigm)
        if name.startswith(("!$omp", "omp_")):
            role = next((r for prefix, r in OPENMP_ROLES.items() if name.startswith(prefix)), RegionRole.FUNCTION)
            return self._region(name, role, Paradigm.OPENMP)
        if name.startswith("pthread_"):
            return self._region(name, RegionRole.FUNCTION, Paradigm.PTHREAD)
        if operation := DEVICE_OPERATIONS.get(name):
            return self._region(name, ROLES.get(operation, RegionRole.POINT2POINT), Paradigm.HIP)
        return self._region(name, RegionRole.FUNCTION, Paradigm.COMPILER)

    def _region(self, name: str, role: RegionRole, paradigm: Paradigm) -> Any:
        flags = RegionFlag.DYNAMIC if name in self.script.dynamic else RegionFlag.NONE
        return self.definitions.region(name, name, "", role, paradigm, flags)

    def _devices(self, node: Any, processes: dict[int, Any]) -> dict[tuple[int, int], Location]:
        """Define the streams of devices: a device per rank, or one for all."""
        d = self.definitions
        contexts, streams = {}, {}
        if "shared" in self.script.devices:
            node = d.system_tree_node("GPU", "device", node)
            d.system_tree_node_domain(node, SystemTreeDomain.ACCELERATOR_DEVICE)
        for rank, number in sorted(place for place in self.script.streams if place[1] < 0):
            if rank not in contexts:
                options = {"creating_location_group": processes[rank]}
                kind = LocationGroupType.ACCELERATOR
                contexts[rank] = d.location_group(f"HIP Context {rank}", kind, system_tree_parent=node, **options)
            name, reference = f"HIP[{rank}:{-1 - number}]", (64 - number) << 32 | rank
            kind = LocationType.ACCELERATOR_STREAM
            stream = Location(d._locations, reference, name, type=kind, group=contexts[rank])
            d._locations._register(stream)
            streams[rank, number] = stream
            if number == -1 and "null" in self.script.devices:
                d.location_property(stream, "hipNullStream", Type.UINT64, 1)
        return streams

    def handle(self, name: str, paradigm: str, comm: str | None = None, parent: Any = None) -> Any:
        """Return the handle of a file in an I/O paradigm."""
        key = name, paradigm
        if key not in self.handles:
            d = self.definitions
            if paradigm not in self.paradigms:
                kind = IoParadigmClass.PARALLEL if paradigm == "MPI-IO" else IoParadigmClass.SERIAL
                flags = IoParadigmFlag.NONE if paradigm == "MPI-IO" else IoParadigmFlag.OS
                self.paradigms[paradigm] = d.io_paradigm(paradigm, paradigm, kind, flags)
            if name not in self.files:
                self.files[name] = d.io_regular_file(name, d.system_tree_node("node", class_name="node"))
            members = self.comms[comm] if comm else None
            self.handles[key] = d.io_handle(
                "", self.files[name], self.paradigms[paradigm], IoHandleFlag.NONE, members, parent
            )
        return self.handles[key]

    # --- events ------------------------------------------------------------------------------------------------------

    def _write(self, stream: Stream) -> None:
        location = self.locations[stream.rank, stream.thread]
        writer = self.writer.event_writer_from_location(location)
        shift = self.script.clocks.get(stream.rank, 0)
        Recorder(self, stream).record()
        program = Call("program", "program", [], {}, 0, sys.maxsize, [])
        program.children = nest(stream.calls)
        for time, name, options in stream.raw:
            here = program
            while inner := next((c for c in here.children if c.enter < time <= c.leave), None):
                here = inner
            here.records.append((time, self._raw(time, name, options)))
        for enter, leave in stream.forks:
            fork = ev.ThreadFork(enter, Paradigm.OPENMP, self.script.threads)
            join = ev.ThreadJoin(leave, Paradigm.OPENMP)
            for time, event in ((enter, fork), (leave, join)):
                self._caller(program, time, (enter, leave)).records.append((time, event))
        events = list(self._walk(program, stream, dict.fromkeys(self.script.counters, 0)))
        if (stream.rank, stream.thread) in self.script.created and events:
            life = self.comms[f"threads {stream.rank}"], stream.thread
            events.insert(0, ev.ThreadBegin(events[0].time, *life))
            events.append(ev.ThreadEnd(events[-1].time, *life))
        if stream.thread == 0 and events:
            events.insert(0, ev.ProgramBegin(ORIGIN, "./program", ()))
            events.append(ev.ProgramEnd(max(e.time for e in events), 0))
        if self.script.has_contexts:
            events = list(Sampled(self, stream).records(events))
        for event in events:
            event.time -= shift
            if isinstance(event, ev.BufferFlush):
                event.stop_time -= shift
            writer(event)

    def _caller(self, here: Call, time: int, fork: tuple[int, int]) -> Call:
        """Return the innermost call around a record of a fork or its join, but not the team's own parallel region."""

        def is_around(call: Call) -> bool:
            is_outer = call.enter < fork[0] and fork[1] < call.leave
            return call.enter <= time <= call.leave and (is_outer or not is_parallel(call))

        while inner := next(filter(is_around, here.children), None):
            here = inner
        return here

    def _walk(self, call: Call, stream: Stream, totals: dict[str, int]) -> Any:
        """Return the events in a call in file order; at equal times, records precede calls."""

        def sample(time: int) -> Any:
            if totals:
                yield ev.Metric(time, self.metric, list(totals.values()))

        inside: list[tuple[int, int, Any]] = [(time, 0, event) for time, event in call.records]
        inside += [(child.enter, 1, child) for child in call.children]
        inside.sort(key=lambda item: item[:2])
        for time, _, item in inside:
            if not isinstance(item, Call):
                yield item
                continue
            team = self.comms.get(f"team {stream.rank}") if is_parallel(item) else None
            if team is not None:
                yield ev.ThreadTeamBegin(time, team)
            region = self.region(item.name)
            task = is_task(item)
            if task:
                yield self._switch(time, stream.rank, item.options["task"])
            yield from sample(time)
            yield ev.Enter(time, region, self._attributes(stream.rank, item.options))
            if "site" in item.options:
                site = self.definitions.parameter("callsite id", ParameterType.UINT64)
                yield ev.ParameterUnsignedInt(time, site, item.options["site"])
            for name in self.script.parameters:
                if name in item.options:
                    yield self._parameter(time, name, item.options[name])
            for name in totals:
                totals[name] += item.options.get(name, 0)
            yield from self._walk(item, stream, totals)
            if any(map(is_task, item.children)):
                # What was suspended goes on when the region in which others ran ends.
                yield self._switch(item.leave, stream.rank, self._around(item, stream))
            yield from sample(item.leave)
            yield ev.Leave(item.leave, region)
            if task:
                yield self._switch(item.leave, stream.rank, item.options["task"], ev.ThreadTaskComplete)
            if team is not None:
                yield ev.ThreadTeamEnd(item.leave, team)

    def _switch(self, time: int, rank: int, task: int, event: Any = ev.ThreadTaskSwitch) -> Any:
        """Return the record of a task; number 0 is the implicit one."""
        return event(time, self.comms[f"team {rank}"], self.script.creators.get((rank, task), 0), task)

    def _around(self, call: Call, stream: Stream) -> int:
        """Return the task of the innermost team that runs a call."""
        around = [c for c in stream.calls if c.enter <= call.enter and call.leave <= c.leave]
        team = max((c.enter for c in around if is_parallel(c)), default=0)
        inner = [c for c in around if is_task(c) and c.enter > team and c is not call]
        return max(inner, key=lambda c: c.enter).options["task"] if inner else 0

    def _attributes(self, rank: int, options: dict[str, Any]) -> dict[Any, Any] | None:
        values = {}
        if "stream" in options:
            attribute = self.definitions.attribute("CUDA_STREAM_REF", type=Type.LOCATION)
            values[attribute] = self.locations[rank, -1 - options["stream"]]
        if "correlation" in options:
            values[self.definitions.attribute("correlation", type=Type.UINT64)] = options["correlation"]
        if "event" in options:
            values[self.definitions.attribute("CUDA_EVENT_REF", type=Type.UINT64)] = options["event"]
        return values or None

    def _parameter(self, time: int, name: str, value: Any) -> Any:
        kind = self.script.parameters[name]
        event = {"": ev.ParameterInt, "unsigned": ev.ParameterUnsignedInt, "string": ev.ParameterString}[kind]
        return event(time, self.parameters[name], value)

    def _raw(self, time: int, name: str, options: dict[str, Any]) -> Any:
        values = {key: self._value(key, value) for key, value in options.items()}
        return getattr(ev, name)(time, **values)

    def _value(self, key: str, value: Any) -> Any:
        if key == "stop_time":
            return ticks(value)
        if key == "region":
            return self.region(value)
        if key in {"communicator", "thread_team", "thread_contingent"}:
            # The team, or the threads, of rank 0.
            return self.comms.get(value) or self.comms[f"{value} 0"]
        if key == "win":
            return self.windows[value]
        if key == "handle":
            return self.handle(value, "POSIX I/O")
        if key == "parameter":
            return self.parameters[value]
        if key == "group":
            return self.groups[value]
        enums = {
            "collective_op": CollectiveOp,
            "mode": IoOperationMode,
            "operation_flags": IoOperationFlag,
            "lock_type": LockType,
            "measurement_mode": MeasurementMode,
            "model": Paradigm,
            "paradigm": Paradigm,
            "sync_level": RmaSyncLevel,
            "sync_type": RmaSyncType,
        }
        return getattr(enums[key], value) if key in enums else value

    def _write_clocks(self) -> None:
        """Write clock offsets to the local definitions, for which the package has no writer."""
        for (rank, _), location in self.locations.items():
            offset = self.script.clocks.get(rank)
            if offset is None:
                continue
            definitions = self.writer.event_writer_from_location(location)._def_handle
            for time in (ORIGIN - offset, ORIGIN - offset + RESOLUTION):
                _otf2.DefWriter_WriteClockOffset(definitions, time, offset, 0.0)

    def _topology(self, comm: str, sizes: list[str]) -> None:
        d = self.definitions
        sides = [int(size.rstrip("*")) for size in sizes]
        around = [CartPeriodicity.TRUE if size.endswith("*") else CartPeriodicity.FALSE for size in sizes]
        axes = tuple(
            d._cart_dimensions.create(f"dimension {axis}", side, periodicity)
            for axis, (side, periodicity) in enumerate(zip(sides, around, strict=True))
        )
        topology = d._cart_topologies.create("MPI_Cartesian", self.comms[comm], axes)
        for rank, place in zip(range(len(self.members[comm])), product(*map(range, sides)), strict=True):
            d._cart_coordinates.create(topology, rank, place)


def blocking(name: str) -> str:
    """Return the blocking operation that a non-blocking one (`MPI_Iallreduce`) does, or any other name as it is."""
    return f"MPI_{name[5:].capitalize()}" if name.startswith("MPI_I") else name


def is_parallel(call: Call) -> bool:
    return call.name.startswith("!$omp parallel")


class Sampled:
    """Events as calling contexts, with samples."""

    COUNTS = ("ru_stime", "ru_minflt", "ru_majflt", "ru_nvcsw", "ru_nivcsw")

    def __init__(self, archive: Archive, stream: Stream) -> None:
        self.archive = archive
        self.samples = sorted(stream.samples, key=lambda sample: sample[0])
        #: The functions that run, and those of the record before.
        self.open: list[str] = []
        self.before: list[str] = []
        self.used = dict.fromkeys(self.COUNTS, 0)

    def records(self, events: list[Any]) -> Any:
        samples = iter([*self.samples, (2**63, [], {})])
        sample = next(samples)
        for event in events:
            while sample[0] < event.time:
                yield from self._sample(*sample)
                sample = next(samples)
            if isinstance(event, ev.Enter):
                self.open.append(event.region.name)
                if event.region.name not in self.archive.script.frames:
                    yield ev.CallingContextEnter(event.time, *self._context(self.open))
            elif isinstance(event, ev.Leave):
                if event.region.name not in self.archive.script.frames:
                    yield ev.CallingContextLeave(event.time, self._context(self.open)[0])
                    self.before = self.open[:-1]
                self.open.pop()
            else:
                yield event
        while sample[1]:
            yield from self._sample(*sample)
            sample = next(samples)

    def _context(self, path: list[str]) -> tuple[Any, int]:
        """Return a context, and its distance to the record before."""
        context = None
        for depth in range(1, len(path) + 1):
            known = self.archive.contexts.get(tuple(path[:depth]))
            if known is None:
                region = self.archive.region(path[depth - 1])
                known = self.archive.definitions.calling_context(region=region, parent=context)
                self.archive.contexts[tuple(path[:depth])] = known
            context = known
        common = 0
        for mine, other in zip(path, self.before, strict=False):
            common += 1
            if mine != other:
                common -= 1
                break
        self.before = list(path)
        return context, len(path) - common + 1

    def _sample(self, time: int, path: list[str], options: dict[str, Any]) -> Any:
        d = self.archive.definitions
        options = dict(options)
        name, mode, period = "CPU time", InterruptGeneratorMode.TIME, round((self.archive.script.period or 0.01) * 1e9)
        if options.pop("on", None) == "faults":
            name, mode, period = "page faults", InterruptGeneratorMode.COUNT, 500
        attributes = None
        if address := options.pop("at", None):
            known = {attribute.name: attribute for attribute in d._attributes}
            attributes = {known.get("address") or d.attribute("address", "", Type.STRING): address}
        exponent = -9 if mode == InterruptGeneratorMode.TIME else 0
        generator = d.interrupt_generator(name, mode, Base.DECIMAL, exponent, period)
        if options:
            for key, value in options.items():
                self.used[f"ru_{key}"] += round(value * 1e6) if key == "stime" else value
            members = [
                d.metric_member(
                    count,
                    metric_type=MetricType.RUSAGE,
                    metric_mode=MetricMode.ACCUMULATED_START,
                    value_type=Type.UINT64,
                    exponent=-6 if count == "ru_stime" else 0,
                    unit="s" if count == "ru_stime" else "#",
                )
                for count in self.COUNTS
            ]
            metric = d.metric_class(members, occurrence=MetricOccurrence.ASYNCHRONOUS)
            yield ev.Metric(time, metric, list(self.used.values()))
        yield ev.CallingContextSample(time, *self._context(path), generator, attributes=attributes)


class Recorder:
    """Adds the records that Score-P writes for each call of a location."""

    def __init__(self, archive: Archive, stream: Stream) -> None:
        self.archive, self.stream, self.rank = archive, stream, stream.rank
        self.requests: dict[int, Call] = {}
        self.pending: list[tuple[Call, int]] = []  # RMA operations not yet complete: (call, matching id)
        self.here: set[int] = set()  # those that are complete locally only
        self.files: dict[int, tuple[Any, int, int]] = {}  # operations on files by request: handle, size, matching id
        self.operations = 0

    def record(self) -> None:
        for call in sorted(self.stream.calls, key=lambda c: (c.enter, -c.leave)):
            self._call(call)

    def _call(self, call: Call) -> None:
        name = DEVICE_OPERATIONS.get(call.name, call.name)
        persistent = name.endswith("_init")
        if name in COLLECTIVES:
            self._collective(call)
        elif blocking(name) in OPERATIONS and "req" in call.options:
            self.requests[call.options["req"]] = call
            self._put(call, call.before, ev.NonBlockingCollectiveRequest, call.options["req"])
        elif name in {"MPI_Sendrecv", "MPI_Sendrecv_replace"}:
            if "to" in call.options:
                self._put(call, call.before, ev.MpiSend, *self._message(call, call.options["to"]))
            if "source" in call.options:
                self._put(call, call.after, ev.MpiRecv, *self._message(call, call.options["source"]))
        elif re.fullmatch(r"MPI_[SBR]?s?end|MPI_Send", name):
            self._put(call, call.before, ev.MpiSend, *self._message(call, call.arguments[0]))
        elif name == "MPI_Recv":
            self._put(call, call.after, ev.MpiRecv, *self._message(call, call.arguments[0]))
        elif re.fullmatch(r"MPI_I[sbr]*(end|ecv)|MPI_Isend|MPI_Irecv", name) or (persistent and call.options):
            self.requests[call.options["req"]] = call
            if not persistent:
                self._start(call, call)
        elif "file" in call.options:
            self._file(call)
        elif name == "aio_suspend":
            self._complete(call)
        elif name in {"MPI_Start", "MPI_Startall"}:
            for request in call.arguments:
                self._start(call, self.requests[request])
        elif re.match(r"MPI_(Wait|Test)", name):
            self._complete(call)
        elif re.match(r"MPI_(Pready|Parrived)", name):
            self._partitions(call)
        elif name.startswith("MPI_Win_"):
            self._window(call)
        elif name.startswith("shmem_"):
            self._shmem(call)
        elif name.startswith("ARMCI_") and name not in self.archive.script.frames:
            self._armci(call)
        elif name.startswith(("gaspi_", "upc_")) and name not in self.archive.script.frames:
            self._pgas(call)
        elif "win" in call.options:
            self._operation(call)
        elif name.startswith("!$omp critical") and call.options:
            self._put(call, call.before, ev.ThreadAcquireLock, *self._lock(call))
            self._put(call, call.after, ev.ThreadReleaseLock, *self._lock(call))
        elif name.startswith(("pthread_", "!$omp create task")) and self._thread_call(call):
            pass
        elif re.fullmatch(r"omp_set_(nest_)?lock|pthread_\w+_\w*lock", name) and "unlock" not in name and call.options:
            self._put(call, call.after, ev.ThreadAcquireLock, *self._lock(call))
        elif re.fullmatch(r"omp_unset_(nest_)?lock|pthread_\w+_unlock", name) and call.options:
            self._put(call, call.before, ev.ThreadReleaseLock, *self._lock(call))

    def _thread_call(self, call: Call) -> bool:
        """Add the records of a call about threads or tasks, other than of locks; return whether it is one."""
        name = call.name
        if name.startswith("pthread_cond_") and "order" in call.options:
            paradigm, lock, order = self._lock(call)
            if "released" in call.options:
                self._put(call, call.before, ev.ThreadReleaseLock, paradigm, lock, call.options["released"])
            self._put(call, call.after, ev.ThreadAcquireLock, paradigm, lock, order)
        elif name in {"pthread_create", "pthread_join"} and call.arguments:
            event = ev.ThreadCreate if name == "pthread_create" else ev.ThreadWait
            time = call.before if name == "pthread_create" else call.after
            self._put(call, time, event, self.archive.comms[f"threads {self.rank}"], call.arguments[0])
        elif name.startswith("!$omp create task") and "task" in call.options:
            task = call.options["task"]
            team = self.archive.comms[f"team {self.rank}"]
            self._put(call, call.before, ev.ThreadTaskCreate, team, self.archive.script.creators[self.rank, task], task)
        else:
            return False
        return True

    @staticmethod
    def _put(call: Call, time: int, event: Any, *fields: Any) -> None:
        call.records.append((time, event(time, *fields)))

    def _message(self, call: Call, peer: int) -> tuple:
        options = call.options
        comm = self.archive.comms[options.get("comm", "world")]
        return peer, comm, options.get("tag", 0), options.get("bytes", 8)

    def _start(self, call: Call, request: Call) -> None:
        number = request.options["req"]
        parts = self.archive.attributes({"partitions": request.options.get("partitions")})
        if "recv" in request.name.lower():
            self._put(call, call.before, ev.MpiIrecvRequest, number, *parts)
        else:
            self._put(call, call.before, ev.MpiIsend, *self._message(request, request.arguments[0]), number, *parts)

    def _partitions(self, call: Call) -> None:
        """Record which partitions a call has made ready, or has found, as the recorder does."""
        request, *partitions = [a for a in call.arguments if isinstance(a, int)]
        if call.name.startswith("MPI_Pready_list"):
            ranges = [(partition, partition) for partition in partitions]
        else:
            ranges = [] if "failed" in call.arguments else [(partitions[0], partitions[-1])]
        for first, last in ranges:
            parts = self.archive.attributes({"first partition": first, "last partition": last})
            self._put(call, call.after, ev.MpiRequestTest, request, *parts)
        if not ranges:
            self._put(call, call.after, ev.MpiRequestTest, request)

    def _complete(self, call: Call) -> None:
        words = [a for a in call.arguments if isinstance(a, str)]
        for number in call.arguments:
            if isinstance(number, str):
                continue
            request = self.requests[number]
            if "failed" in words and "file" in request.options:
                self._put(call, call.after, ev.IoOperationTest, self.files[number][0], self.files[number][2])
            elif "failed" in words:
                self._put(call, call.after, ev.MpiRequestTest, number)
            elif "cancelled" in words and "file" not in request.options:
                self._put(call, call.after, ev.MpiRequestCancelled, number)
            elif "file" in request.options:
                handle, size, operation = self.files[number]
                if "cancelled" in words:
                    self._put(call, call.after, ev.IoOperationCancelled, handle, operation)
                else:
                    self._put(call, call.after, ev.IoOperationComplete, handle, size, operation)
            elif blocking(request.name) in OPERATIONS:
                fields = self._flow(request, blocking(request.name))
                self._put(call, call.after, ev.NonBlockingCollectiveComplete, *fields, number)
            elif "win" in request.options:
                self._finish(call, [p for p in self.pending if p[0] is request], remote="get" in request.name.lower())
            elif "recv" in request.name.lower():
                self._put(call, call.after, ev.MpiIrecv, *self._message(request, request.arguments[0]), number)
            else:
                self._put(call, call.after, ev.MpiIsendComplete, number)

    def _collective(self, call: Call) -> None:
        comm = call.options.get("comm", "world")
        if comm in self.archive.intercomms:
            self._between_groups(call, self.archive.intercomms[comm], call.options.get("bytes", 8))
            return
        _, _, root, sent, received = self._flow(call, DEVICE_OPERATIONS.get(call.name, call.name))
        self._collective_records(call, root, sent, received)

    def _flow(self, call: Call, name: str) -> tuple:
        """Return operation, communicator, root, and bytes sent and received."""
        options = call.options
        comm = options.get("comm", "world")
        members = self.archive.members.get(comm, [self.rank])
        rank, n, b = members.index(self.rank), len(members), options.get("bytes", 8)
        root = options.get("root", 0) if name in ROOTED else UNDEFINED
        if name == "MPI_Barrier":
            sent, received = 0, 0
        elif name in {"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"}:
            sent, received = n * b if rank == root else 0, b
        elif name in {"MPI_Gather", "MPI_Gatherv", "MPI_Reduce"}:
            sent, received = b, n * b if rank == root else 0
        elif name == "MPI_Scan":
            sent, received = (n - rank) * b, (rank + 1) * b
        elif name == "MPI_Exscan":
            sent, received = (n - rank - 1) * b, rank * b
        else:
            sent, received = n * b, n * b
        sent, received = options.get("sent", sent), options.get("received", received)
        return OPERATIONS[name], self.archive.comms[comm], root, sent, received

    def _between_groups(self, call: Call, groups: tuple[list[int], list[int]], b: int) -> None:
        """Data flows from one group to the other; only the group without the root knows its rank."""
        own, other = groups if self.rank in groups[0] else groups[::-1]
        root = call.options.get("root", 0)
        if call.name == "MPI_Barrier":
            self._collective_records(call, UNDEFINED, 0, 0)
        elif call.name not in ROOTED:
            self._collective_records(call, UNDEFINED, len(other) * b, len(other) * b)
        else:
            collects = call.name in {"MPI_Gather", "MPI_Gatherv", "MPI_Reduce"}
            if self.rank == root:
                root, away, here = ROOT_SELF, len(other) * b, 0
            elif root in own:
                root, away, here = ROOT_THIS_GROUP, 0, 0
            else:
                root, away, here = other.index(root), 0, b
            self._collective_records(call, root, *((here, away) if collects else (away, here)))

    def _collective_records(self, call: Call, root: int, sent: int, received: int) -> None:
        sent, received = call.options.get("sent", sent), call.options.get("received", received)
        comm = self.archive.comms[call.options.get("comm", "world")]
        self._put(call, call.before, ev.MpiCollectiveBegin)
        operation = COLLECTIVES[DEVICE_OPERATIONS.get(call.name, call.name)]
        end = (operation, comm, root, sent, received)
        self._put(call, call.at(1, call.leave), ev.MpiCollectiveEnd, *end)

    # --- files -------------------------------------------------------------------------------------------------------

    def _file(self, call: Call) -> None:
        is_mpi = call.name.startswith("MPI_")
        used = (MPI_FILE if is_mpi else POSIX_FILE).fullmatch(call.name)
        if used is None:
            raise ValueError(f"no call for I/O: {call.line!r}")
        options, what = call.options, used["what"]
        # The handle that MPI-IO operates for this file, if `of=mpi`.
        parent = (
            self.archive.handle(options["file"], "MPI-IO", options.get("comm", "world")) if "of" in options else None
        )
        comm = options.get("comm", "world") if is_mpi else None
        handle = self.archive.handle(options["file"], "MPI-IO" if is_mpi else "POSIX I/O", comm, parent)
        if what == "open":
            fields = (IoAccessMode.READ_WRITE, IoCreationFlag.CREATE, IoStatusFlag.NONE)
            self._put(call, call.after, ev.IoCreateHandle, handle, *fields)
        elif what == "close":
            self._put(call, call.after, ev.IoDestroyHandle, handle)
        elif what in {"seek", "lseek"}:
            self._put(call, call.after, ev.IoSeek, handle, 0, IoSeekOption.FROM_START, 0)
        elif what == "dup":
            self._put(call, call.after, ev.IoDuplicateHandle, handle, handle, IoStatusFlag.NONE)
        elif what == "flock":
            self._put(call, call.after, ev.IoAcquireLock, handle, LockType.EXCLUSIVE)
        elif what == "fcntl":
            self._put(call, call.after, ev.IoChangeStatusFlags, handle, IoStatusFlag.APPEND)
        elif what in {"delete", "unlink"}:
            self._put(call, call.after, ev.IoDeleteFile, handle.io_paradigm, handle.file)
        else:
            mode = {"read": IoOperationMode.READ, "write": IoOperationMode.WRITE, "sync": IoOperationMode.FLUSH}[what]
            flags = IoOperationFlag.COLLECTIVE if is_mpi and "_all" in used["how"] else IoOperationFlag.NONE
            size, number = options.get("bytes", 0 if what == "sync" else 8), self.operations
            self.operations += 1
            if used["start"]:
                flags |= IoOperationFlag.NON_BLOCKING
                self.requests[options["req"]] = call
                self.files[options["req"]] = handle, size, number
            self._put(call, call.before, ev.IoOperationBegin, handle, mode, flags, size, number)
            if used["start"] == "aio_":
                self._put(call, call.after, ev.IoOperationIssued, handle, number)
            elif not used["start"]:
                self._put(call, call.after, ev.IoOperationComplete, handle, options.get("moved", size), number)

    # --- one-sided ---------------------------------------------------------------------------------------------------

    def _operation(self, call: Call) -> None:
        window, target = self.archive.windows[call.options["win"]], call.arguments[0]
        number, size = self.operations, call.options.get("bytes", 8)
        self.operations += 1
        self.pending.append((call, number))
        if "req" in call.options:
            self.requests[call.options["req"]] = call
        if call.name in {"MPI_Put", "MPI_Rput"}:
            self._put(call, call.before, ev.RmaPut, window, target, size, number)
        elif call.name in {"MPI_Get", "MPI_Rget"}:
            self._put(call, call.before, ev.RmaGet, window, target, size, number)
        else:
            kind = {
                "MPI_Accumulate": RmaAtomicType.ACCUMULATE,
                "MPI_Raccumulate": RmaAtomicType.ACCUMULATE,
                "MPI_Compare_and_swap": RmaAtomicType.COMPARE_AND_SWAP,
            }.get(call.name, RmaAtomicType.FETCH_AND_ACCUMULATE)
            received = 0 if kind == RmaAtomicType.ACCUMULATE else 1
            self._put(call, call.before, ev.RmaAtomic, window, target, kind, 1, received, number)

    def _finish(self, call: Call, operations: list[tuple[Call, int]], *, remote: bool | None) -> None:
        """Complete operations locally, and remotely if `remote` (None: gets, while the others stay unknown)."""
        for operation, number in operations:
            if number not in self.here:
                window = self.archive.windows[operation.options["win"]]
                self._put(call, call.after, ev.RmaOpCompleteNonBlocking, window, number)
        for operation, number in operations:
            if remote or (remote is None and operation.name in {"MPI_Get", "MPI_Rget"}):
                window = self.archive.windows[operation.options["win"]]
                self._put(call, call.after, ev.RmaOpCompleteRemote, window, number)
        if remote is False:
            self.here |= {number for _, number in operations}
        else:
            self.pending = [p for p in self.pending if p not in operations]

    def _window(self, call: Call) -> None:
        name = call.name
        words = [a for a in call.arguments if isinstance(a, str)]
        handle = call.options.get("win") or words[0]
        window = self.archive.windows[handle]
        mine = [p for p in self.pending if p[0].options["win"] == handle]
        target = next((a for a in call.arguments if isinstance(a, int)), None)
        if target is not None:
            mine = [p for p in mine if p[0].arguments[0] == target]
        if name in {"MPI_Win_create", "MPI_Win_allocate", "MPI_Win_free", "MPI_Win_fence"}:
            operation = {
                "MPI_Win_create": CollectiveOp.CREATE_HANDLE,
                "MPI_Win_allocate": CollectiveOp.CREATE_HANDLE_AND_ALLOCATE,
                "MPI_Win_free": CollectiveOp.DESTROY_HANDLE,
                "MPI_Win_fence": CollectiveOp.BARRIER,
            }[name]
            fence = name == "MPI_Win_fence"
            level = RmaSyncLevel.PROCESS | RmaSyncLevel.MEMORY if fence else RmaSyncLevel.PROCESS
            self._put(call, call.before, ev.RmaCollectiveBegin)
            if fence:
                self._finish(call, mine, remote=None)
            else:
                event = ev.RmaWinDestroy if name == "MPI_Win_free" else ev.RmaWinCreate
                self._put(call, call.after, event, window)
            self._put(call, call.after, ev.RmaCollectiveEnd, operation, level, window, UNDEFINED, 0, 0)
        elif re.fullmatch(r"MPI_Win_(post|start|complete|wait|test)", name):
            level = RmaSyncLevel.PROCESS
            if name in {"MPI_Win_complete", "MPI_Win_wait", "MPI_Win_test"}:
                level |= RmaSyncLevel.MEMORY
            if "failed" in words:
                level = RmaSyncLevel.NONE
            stamp = call.before
            if name == "MPI_Win_complete" and mine:
                self._finish(call, mine, remote=None)
                stamp = call.after
            self._put(call, stamp, ev.RmaGroupSync, level, window, self.archive.groups[words[1]])
        elif name in {"MPI_Win_lock", "MPI_Win_lock_all"}:
            kind = LockType.SHARED if target is None or "shared" in words else LockType.EXCLUSIVE
            remote = UNDEFINED if target is None else target
            self._put(call, call.before, ev.RmaRequestLock, window, remote, 0, kind)
            self._grant(call, words, window, remote)
        elif name in {"MPI_Win_unlock", "MPI_Win_unlock_all"}:
            remote = UNDEFINED if target is None else target
            stamp = call.after if mine or "granted" in words else call.before
            self._finish(call, mine, remote=True)
            self._grant(call, words, window, remote)
            self._put(call, stamp, ev.RmaReleaseLock, window, remote, 0)
        elif "flush" in name:
            self._grant(call, words, window, UNDEFINED if target is None else target)
            self._finish(call, mine, remote="local" not in name)

    def _grant(self, call: Call, words: list[str], window: Any, remote: int) -> None:
        """Record that a lock is got at the end of a call."""
        if "granted" in words:
            self._put(call, call.after, ev.RmaAcquireLock, window, remote, 0, LockType.EXCLUSIVE)

    def _shmem(self, call: Call) -> None:
        """Record as Score-P 7.1: quiet and allocations have no records, a test that acquires a lock has a Request."""
        words = [a for a in call.arguments if isinstance(a, str)]
        if "win" not in call.options and not words:
            return
        window = self.archive.windows[call.options.get("win") or words[0]]
        lock = (window, UNDEFINED, call.options.get("lock", 0))
        if call.name == "shmem_set_lock":
            self._put(call, call.before, ev.RmaAcquireLock, *lock, LockType.EXCLUSIVE)
        elif call.name == "shmem_test_lock":
            kind = ev.RmaTryLock if "failed" in words else ev.RmaRequestLock
            kind = ev.RmaAcquireLock if "acquired" in words else kind
            self._put(call, call.before, kind, *lock, LockType.EXCLUSIVE)
        elif call.name == "shmem_clear_lock":
            self._put(call, call.before, ev.RmaReleaseLock, *lock)
        elif "wait" in call.name:
            self._put(call, call.before, ev.RmaWaitChange, window)
        elif "win" in call.options:
            self._blocking(call, window)
        else:
            operation = next((op for word, op in SHMEM_COLLECTIVES.items() if word in call.name), CollectiveOp.REDUCE)
            self._whole_window(call, operation, window)

    def _armci(self, call: Call) -> None:
        """Record as in the thesis, section 3.1.2; no measurement system does."""
        name = call.name.removeprefix("ARMCI_")
        words = [a for a in call.arguments if isinstance(a, str)]
        if name in {"Test", "Notify", "Notify_wait"}:
            return  # what it finds complete, and whom it notifies, stands there as a raw record
        if name == "Wait":
            request = self.requests[call.arguments[0]]
            self._finish(call, [p for p in self.pending if p[0] is request], remote="Get" in request.name or False)
            return
        handle = call.options.get("win") or words[0]
        window = self.archive.windows[handle]
        if name in ARMCI_COLLECTIVES:
            self._whole_window(call, ARMCI_COLLECTIVES[name], window)
        elif name in {"Lock", "Unlock"}:
            lock = (window, call.arguments[0], call.options.get("lock", 0))
            if name == "Lock":
                self._put(call, call.after, ev.RmaAcquireLock, *lock, LockType.EXCLUSIVE)
            else:
                self._put(call, call.after, ev.RmaReleaseLock, *lock)
        elif name in {"Fence", "AllFence"}:
            targets = [a for a in call.arguments if isinstance(a, int)]
            mine = [p for p in self.pending if p[0].options["win"] == handle]
            self._finish(call, [p for p in mine if not targets or p[0].arguments[0] in targets], remote=True)
        elif name.startswith("Nb"):
            self.requests[call.options["req"]] = call
            self._issue(call, window, name.removeprefix("Nb"))
        else:
            self._blocking(call, window)

    def _pgas(self, call: Call) -> None:
        """Record GASPI and UPC as tests/patterns/one-sided-pgas.md has it."""
        _, _, name = call.name.partition("_")
        words = [a for a in call.arguments if isinstance(a, str)]
        numbers = [a for a in call.arguments if isinstance(a, int)]
        if name == "wait" and numbers:
            queue = [self.requests[number] for number in numbers]
            return self._finish(call, [p for p in self.pending if p[0] in queue], remote=None)
        handle = call.options.get("win") or next((w for w in words if w in self.archive.windows), None)
        if handle is None:
            return None
        window = self.archive.windows[handle]
        if name in {"lock", "unlock", "lock_attempt"}:
            lock = (window, numbers[0], call.options.get("lock", 0))
            if name == "unlock":
                return self._put(call, call.after, ev.RmaReleaseLock, *lock)
            kind = ev.RmaTryLock if "failed" in words else ev.RmaAcquireLock
            return self._put(call, call.after, kind, *lock, LockType.EXCLUSIVE)
        if name in {"notify_waitsome", "passive_receive"}:
            sender = numbers[0] if numbers else UNDEFINED
            return self._put(call, call.after, ev.RmaSync, window, sender, RmaSyncType.NOTIFY_IN, self._id(call))
        if re.fullmatch(r"(mem|atomic_|write|read|passive_send)\w*", name):
            if "req" in call.options:
                self.requests[call.options["req"]] = call
                self._issue(call, window, name)
            else:
                self._blocking(call, window)
        if name == "passive_send" or (name.endswith("notify") and numbers):
            return self._put(call, call.after, ev.RmaSync, window, numbers[0], RmaSyncType.NOTIFY_OUT, self._id(call))
        if "win" not in call.options:
            return self._parts(call, name, words, window)
        return None

    def _parts(self, call: Call, name: str, words: list[str], window: Any) -> None:
        """Record the begin and the end of a collective operation of GASPI or UPC, or one of them, or none."""
        if name != "wait" and not {"ends", "asked"} & {*words}:
            self._put(call, call.before, ev.RmaCollectiveBegin)
        if name != "notify" and not {"begins", "asked"} & {*words}:
            operation = next((op for word, op in PGAS_COLLECTIVES.items() if word in name), CollectiveOp.BARRIER)
            level = RmaSyncLevel.PROCESS | RmaSyncLevel.MEMORY
            root = call.options.get("root", UNDEFINED)
            self._put(call, call.after, ev.RmaCollectiveEnd, operation, level, window, root, 0, 0)

    def _id(self, call: Call) -> dict | None:
        """Return the id of a notification as an attribute."""
        return next(iter(self.archive.attributes({"notification": call.options.get("id")})), None)

    def _whole_window(self, call: Call, operation: CollectiveOp, window: Any) -> None:
        self._put(call, call.before, ev.RmaCollectiveBegin)
        if operation == CollectiveOp.BARRIER:
            for other, number in self.pending:
                if self.archive.windows[other.options["win"]] is window:
                    self._put(call, call.after, ev.RmaOpCompleteRemote, window, number)
            self.pending = [p for p in self.pending if self.archive.windows[p[0].options["win"]] is not window]
        level = RmaSyncLevel.PROCESS | RmaSyncLevel.MEMORY
        self._put(call, call.after, ev.RmaCollectiveEnd, operation, level, window, UNDEFINED, 0, 0)

    def _issue(self, call: Call, window: Any, verb: str) -> int:
        target, size, number = call.arguments[0], call.options.get("bytes", 8), self.operations
        self.operations += 1
        self.pending.append((call, number))
        kind = next((kind for word, kind in ATOMICS.items() if verb.endswith(word)), None)
        if kind is not None:
            received = 0 if kind in {RmaAtomicType.ACCUMULATE, RmaAtomicType.INCREMENT} else size
            self._put(call, call.before, ev.RmaAtomic, window, target, kind, size, received, number)
        else:
            get = "get" in verb.lower() or "_read" in verb or verb.startswith("read") or verb.endswith("_g")
            self._put(call, call.before, ev.RmaGet if get else ev.RmaPut, window, target, size, number)
        return number

    def _blocking(self, call: Call, window: Any) -> None:
        """Issue a blocking operation, which completes locally; one that fetches completes remotely, too."""
        number = self._issue(call, window, call.name)
        self._put(call, call.after, ev.RmaOpCompleteBlocking, window, number)
        if any(isinstance(r, ev.RmaGet) or getattr(r, "bytes_received", 0) for _, r in call.records):
            self.pending.pop()
        else:
            self.here.add(number)

    def _lock(self, call: Call) -> tuple:
        paradigm = Paradigm.PTHREAD if call.name.startswith("pthread_") else Paradigm.OPENMP
        return paradigm, call.options.get("lock", 0), call.options["order"]
