"""An oracle for waiting between hosts and devices: quadratic, but obviously correct.

It shares no code with the program; calls and MPI wait states of the host come from tests/naive.py. It implements the
definitions at the top of tests/patterns/gpu.md and in docs/accelerators.md.

Contexts whose node in the system tree is a device share it; else each context is a device of its own. Times are ticks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from otf2 import events as ev
from otf2.enums import LocationType, SystemTreeDomain

from tests import naive

STUB = "__device_stub__"
MPI_WAITS = {
    "mpi_latesender",
    "mpi_latereceiver",
    "mpi_barrier_wait",
    "mpi_wait_nxn",
    "mpi_latebroadcast",
    "mpi_earlyreduce",
    "mpi_earlyscan",
    "mpi_finalize_wait",
}


@dataclass(eq=False)
class Launch:
    """A call that launches a kernel, with its records."""

    call: naive.Instance
    stream: int | None
    site: int | None
    kernel: Kernel | None = None
    correlation: int | None = None


@dataclass(eq=False)
class Kernel:
    """A kernel or copy on a stream, which is the location `run.thread.ref`."""

    run: naive.Instance
    device: tuple[str, int]
    site: int | None = None
    launch: Launch | None = None
    correlation: int | None = None

    @property
    def stream(self) -> int:
        return self.run.thread.ref

    @property
    def asked(self) -> int:
        """Return when it was requested: the launch, else its begin as an upper bound."""
        return self.run.enter if self.launch is None else self.launch.call.enter


@dataclass(eq=False)
class Synchronization:
    """A call that waits for a device, a stream, an event or a copy."""

    call: naive.Instance
    stream: int | None
    event: int | None


@dataclass
class Process:
    """The devices of a process."""

    streams: list[int] = field(default_factory=list)
    devices: set[tuple[str, int]] = field(default_factory=set)
    null_streams: list[int] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    synchronizations: list[Synchronization] = field(default_factory=list)
    # Kernels that begin before the launch that would be theirs, and that launch.
    early: dict[int, tuple[Kernel, Launch]] = field(default_factory=dict)
    # Records of events: the call, the event, and its stream.
    recorded: list[tuple[naive.Instance, int, int]] = field(default_factory=list)


class Devices:
    """The wait states between the hosts and the devices of a trace; `hosts` are those of the hosts alone."""

    def __init__(self, trace: naive.Trace, hosts: naive.Result) -> None:
        self.trace, self.hosts = trace, hosts
        self.result = naive.Result(self.trace.resolution, self.trace.begin)
        self.processes: dict[int, Process] = defaultdict(Process)
        # Kernels that end behind the call that awaits them, or lie over the launch that would be theirs.
        self.clock_violations = 0
        for thread in self.trace.threads.values():
            self._host(thread, self.processes[thread.process])
        self._read_streams()
        for process in self.processes.values():
            process.launches.sort(key=lambda launch: launch.call.enter)
            process.kernels.sort(key=lambda kernel: kernel.run.enter)
            self.clock_violations += match(process)
            # A process without a stream has no device to wait for.
            for synchronization in process.synchronizations if process.streams else ():
                self._synchronize(process, synchronization)
        kernels = [kernel for process in self.processes.values() for kernel in process.kernels]
        for kernel in kernels:
            same = [other for other in kernels if other.device == kernel.device]
            self._start(kernel.run, kernel.launch, [o.run.leave for o in same if o.run.enter < kernel.run.enter])

    def table(self) -> dict[str, dict]:
        """Seconds of the non-zero cells by metric."""
        return self.result.table()

    def waits(self) -> list[naive.Wait]:
        """Return the wait states, in seconds since the begin of the trace."""
        begin, scale = self.trace.begin, self.trace.resolution
        return [
            w._replace(enter=(w.enter - begin) / scale, leave=(w.leave - begin) / scale, waiting=w.waiting / scale)
            for w in self.result.waits
        ]

    # --- what there is -----------------------------------------------------------------------------------------------

    @staticmethod
    def _host(thread: naive.Thread, process: Process) -> None:
        sites = {id(call): e.value for e, call in thread.records if isinstance(e, ev.ParameterUnsignedInt)}
        for event, call in thread.records:
            if not isinstance(event, ev.Enter):
                continue
            values = {attribute.name: value for attribute, value in (event.attributes or {}).items()}
            stream = values["CUDA_STREAM_REF"]._ref if "CUDA_STREAM_REF" in values else None
            if call.name.endswith("LaunchKernel"):
                number = values.get("correlation")
                process.launches.append(Launch(call, stream, sites.get(id(call)), correlation=number))
            elif call.name.endswith("Synchronize") or call.name == "hipMemcpy":
                process.synchronizations.append(Synchronization(call, stream, values.get("CUDA_EVENT_REF")))
            elif call.name.endswith("EventRecord") and stream is not None and "CUDA_EVENT_REF" in values:
                process.recorded.append((call, values["CUDA_EVENT_REF"], stream))

    def _read_streams(self) -> None:
        """Number streams after all other locations of their process, in the order of their definitions."""
        others: Counter[int] = Counter()
        threads: dict[int, naive.Thread] = {}
        contexts: dict[int, tuple[str, int]] = {}
        running: dict[int, Kernel] = {}
        definitions = self.trace.definitions
        devices = {
            domain.system_tree_node._ref
            for domain in definitions.system_tree_node_domains
            if domain.system_tree_node_domain == SystemTreeDomain.ACCELERATOR_DEVICE
        }
        null_streams = {
            one.location._ref
            for one in definitions.location_properties
            if one.name in {"hipNullStream", "CUDA_NULL_STREAM"}
        }
        for location in definitions.locations:
            if location.type != LocationType.ACCELERATOR_STREAM:
                others[location.group._ref] += 1
                continue
            owner = location.group.creating_location_group._ref
            process, rank = self.processes[owner], self.trace.processes[owner][0].rank
            number = others[owner] + len(process.streams)
            threads[location._ref] = naive.Thread(location._ref, owner, rank, number)
            node = location.group.system_tree_parent._ref
            device = ("node", node) if node in devices else ("context", location.group._ref)
            contexts[location._ref] = device
            process.streams.append(location._ref)
            process.devices.add(device)
            if location._ref in null_streams:
                process.null_streams.append(location._ref)
        for location, event in self.trace.elsewhere:
            thread = threads.get(location._ref)
            if thread is None:
                continue
            if isinstance(event, ev.Enter):
                run = naive.Instance(thread, event.region, event.region.name, None, event.time)
                attributes = {attribute.name: value for attribute, value in (event.attributes or {}).items()}
                running[thread.ref] = Kernel(run, contexts[thread.ref], correlation=attributes.get("correlation"))
                self.processes[thread.process].kernels.append(running[thread.ref])
            elif isinstance(event, ev.ParameterUnsignedInt):
                running[thread.ref].site = event.value
            elif isinstance(event, ev.Leave):
                running[thread.ref].run.leave = event.time

    # --- hosts that wait for devices ---------------------------------------------------------------------------------

    def _synchronize(self, process: Process, synchronization: Synchronization) -> None:
        call = synchronization.call
        awaited = await_kernels(process, synchronization)
        last = max(awaited, key=lambda kernel: kernel.run.leave, default=None)
        end = call.enter if last is None else max(call.enter, min(last.run.leave, call.leave))
        if last is not None and last.run.leave > call.leave:
            self.clock_violations += 1
        if last is not None and end > call.enter:
            self.result.wait("gpu_host_wait", call, end - call.enter, last.run)
        if call.leave > end:
            self.result.wait("gpu_host_completion", call, call.leave - end, None)

    # --- devices that wait for hosts ---------------------------------------------------------------------------------

    def _start(self, run: naive.Instance, launched: Launch | None, ends: list[int]) -> None:
        if launched is None:
            # The device had nothing to do, and nobody knows why.
            if ends and run.enter > max(ends):
                self.result.add("gpu_device_idle", run, run.enter - max(ends))
            return
        launch = launched.call
        p = max(ends, default=launch.enter)
        if run.enter > p:
            self.result.add("gpu_device_idle", run, run.enter - p)
        until = min(run.enter, launch.enter)
        if until > p:
            self.result.wait("gpu_device_starved", run, until - p, launch)
            for span, wait in self._mpi_waits(launch.thread, p, until):
                self.result.wait("gpu_mpi_starved", run, span, self._instance(wait))
        latency = run.enter - max(p, launch.enter)
        if latency > 0:
            self.result.wait("gpu_launch_latency", run, latency, None)
        if p > launch.leave and run.enter > launch.leave:
            self.result.add("gpu_queue", run, run.enter - launch.leave)

    def _mpi_waits(self, host: naive.Thread, begin: int, end: int) -> list[tuple[int, naive.Wait]]:
        """Return the overlap of a thread's wait states in MPI with an interval; they begin with their calls."""
        waits = [w for w in self.hosts.waits if w.kind in MPI_WAITS and (w.rank, w.thread) == (host.rank, host.number)]
        spans = [(min(end, w.enter + w.waiting) - max(begin, w.enter), w) for w in waits]
        return [(span, wait) for span, wait in spans if span > 0]

    def _instance(self, wait: naive.Wait) -> naive.Instance:
        """Return a call at the location and call path of the cause of a wait state."""
        cause = wait.cause_rank, wait.cause_thread, wait.cause_callpath
        calls = [i for thread in self.trace.threads.values() for i in thread.instances]
        return next(i for i in calls if (i.thread.rank, i.thread.number, i.callpath) == cause)


def match(process: Process) -> int:
    """Match kernels with launches that agree in all that both say; those that say the most come first.

    Returns how many kernels without a launch lie over one that was next in its turn.
    """
    numbered = {launch.correlation: launch for launch in process.launches if launch.correlation is not None}
    for kernel in process.kernels:
        if launch := numbered.get(kernel.correlation):
            kernel.launch, launch.kernel = launch, kernel
    names = {kernel.run.name for kernel in process.kernels}
    # Names that never occur on a stream are of another kind.
    are_named = any(stub(launch) in names for launch in process.launches)
    is_one = len({kernel.stream for kernel in process.kernels}) == 1
    early: list[tuple[Kernel, Launch]] = []
    for with_site, with_stream, with_name in product((True, False), repeat=3):
        if not (with_site or with_stream or with_name or is_one):
            continue
        alike: dict[Any, tuple[list[Launch], list[Kernel]]] = defaultdict(lambda: ([], []))
        for launch in process.launches:
            name = stub(launch) if are_named else None
            is_asked = (launch.stream is not None) == with_stream and (name is not None) == with_name
            if launch.kernel is None and is_asked and (launch.site is not None or not with_site):
                alike[launch.site if with_site else None, launch.stream, name][0].append(launch)
        for kernel in process.kernels:
            key = (kernel.site if with_site else None, kernel.stream if with_stream else None,
                   kernel.run.name if with_name else None)  # fmt: skip
            if kernel.launch is None and key in alike and (kernel.site is not None or not with_site):
                alike[key][1].append(kernel)
        for launches, kernels in alike.values():
            known = [launch for launch in launches if launch.site is not None]
            sited = [kernel for kernel in kernels if kernel.site is not None]
            if with_site or not known or not sited:
                early += pair(process, launches, kernels)
            else:
                # Two call sites that differ never belong together.
                early += pair(process, known, [kernel for kernel in kernels if kernel.site is None])
                unknown = [launch for launch in launches if launch.site is None]
                early += pair(process, unknown, [kernel for kernel in kernels if kernel.launch is None])
    for kernel, launch in early:
        if kernel.launch is None and launch.kernel is None:
            process.early.setdefault(id(kernel), (kernel, launch))
    return len(process.early)


def floor(process: Process, stream: int, time: int) -> int:
    """Return since when a stream had not been awaited by a time."""
    scopes = [(scope(process, call), call.call) for call in process.synchronizations]
    known = [limit for (streams, limit), call in scopes if stream in streams and call.leave <= time]
    return max(known, default=-1)


def pair(process: Process, launches: list[Launch], kernels: list[Kernel]) -> list[tuple[Kernel, Launch]]:
    """Pair as many as possible by augmenting paths; returns kernels that begin before the launch that is next.

    Those that remain are the earliest launches, and the kernels with the earliest floors and then the latest begins.
    """
    floors = {id(kernel): floor(process, kernel.stream, kernel.run.enter) for kernel in kernels}
    fits = {
        id(launch): [k for k in kernels if floors[id(k)] <= launch.call.enter <= k.run.enter] for launch in launches
    }

    def most(first: list[Any], edges: dict[int, list[Any]]) -> list[Any]:
        """Return those that a largest matching covers, the first ones preferred."""
        partner: dict[int, Any] = {}

        def augment(one: Any, seen: set[int]) -> bool:
            for other in edges[id(one)]:
                if id(other) not in seen:
                    seen.add(id(other))
                    if id(other) not in partner or augment(partner[id(other)], seen):
                        partner[id(other)] = one
                        return True
            return False

        return [one for one in first if augment(one, set())]

    chosen = most(list(reversed(launches)), fits)
    back = {id(k): [launch for launch in chosen if k in fits[id(launch)]] for k in kernels}
    run = most(sorted(kernels, key=lambda k: (-floors[id(k)], k.run.enter)), back)
    for launch in chosen:
        possible = [k for k in run if k.launch is None and k.run.enter >= launch.call.enter]
        launch.kernel = max(possible, key=lambda k: (floors[id(k)], k.run.enter))
        launch.kernel.launch = launch
    early = []
    for kernel in kernels:
        later = [launch for launch in launches if launch.call.enter > kernel.run.enter]
        if kernel.launch is None and later and later[0].kernel is None:
            enter = later[0].call.enter
            others = [k for k in kernels if kernel.run.enter < k.run.enter < enter]
            is_awaited = floor(process, kernel.stream, enter) != floors[id(kernel)]
            if not others and not is_awaited and enter < kernel.run.leave:
                early.append((kernel, later[0]))
    return early


def stub(launch: Launch) -> str | None:
    around = launch.call.parent
    return around.name.removeprefix(STUB) if around is not None and around.name.startswith(STUB) else None


def scope(process: Process, synchronization: Synchronization) -> tuple[list[int], int]:
    """Return the streams that a call awaits, none if unknown, and when their work must have been launched."""
    call = synchronization.call
    limit = call.enter
    if "DeviceSync" in call.name and len(process.devices) == 1:
        return process.streams, limit
    if "StreamSync" in call.name:
        if synchronization.stream is not None:
            return [synchronization.stream], limit
        if len(process.streams) == 1:
            return process.streams, limit
    elif "EventSync" in call.name:
        records = [r for r in process.recorded if r[1] == synchronization.event and r[0].enter < limit]
        if records:
            recorded, _, stream = max(records, key=lambda r: r[0].enter)
            return [stream], recorded.enter
    elif call.name == "hipMemcpy" and len(process.null_streams) == 1:
        return process.null_streams, limit
    return [], limit


def await_kernels(process: Process, synchronization: Synchronization) -> list[Kernel]:
    """Return the kernels, launched before a call, that the call waits for."""
    call = synchronization.call
    streams, limit = scope(process, synchronization)
    begun = [k for k in process.kernels if k.run.enter < call.leave]
    if streams:
        found = [k for k in begun if k.stream in streams and k.asked < limit]
        if call.name == "hipMemcpy":
            # What nobody launched and begins meanwhile is the copy.
            found += [k for k in begun if k.stream in streams and k.launch is None and k.run.enter >= call.enter]
        return found
    # Nobody knows: what ended meanwhile, or by another clock ends soon after.
    launched = [k for k in begun if k.asked < call.enter]
    ended = [k for k in launched if call.enter < k.run.leave <= call.leave]
    late = [k for k in launched if 0 < k.run.leave - call.leave < call.leave - max(call.enter, k.run.enter)]
    return ended or late
