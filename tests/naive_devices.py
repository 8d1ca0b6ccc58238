"""An oracle for waiting between hosts and devices: quadratic, but obviously correct.

It shares no code with the program; calls and MPI wait states of the host come from tests/naive.py. It implements the
definitions at the top of tests/patterns/gpu.md and in docs/accelerators.md.

Contexts whose node in the system tree is a device share it; else each context is a device of its own. Times are ticks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from otf2 import events as ev
from otf2.enums import LocationType, SystemTreeDomain

from tests import naive

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass(eq=False)
class Kernel:
    """A kernel or copy on a stream, which is the location `run.thread.ref`."""

    run: naive.Instance
    device: tuple[str, int]
    site: int | None = None
    launch: Launch | None = None

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
            # Who has no stream has no device to wait for.
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
                process.launches.append(Launch(call, stream, sites.get(id(call))))
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
                running[thread.ref] = Kernel(run, contexts[thread.ref])
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
    """Match kernels with launches by the first applicable rule; the k-th kernel has the k-th launch.

    Returns how many kernels without a launch lie over one that was next in its turn.
    """
    early = []
    used = {kernel.stream for kernel in process.kernels}
    only = used.pop() if len(used) == 1 else None
    rules: list[tuple[Callable[[Launch], Any], Callable[[Kernel], Any]]] = [
        (lambda launch: launch.site, lambda kernel: kernel.site),
        (lambda launch: launch.stream, lambda kernel: kernel.stream),
        (stub, lambda kernel: kernel.run.name),
        (lambda _: only, lambda _: only),
    ]
    for of_launch, of_kernel in rules:
        launches, kernels = defaultdict(list), defaultdict(list)
        for launch in process.launches:
            if launch.kernel is None:
                launches[of_launch(launch)].append(launch)
        for kernel in process.kernels:
            if kernel.launch is None:
                kernels[of_kernel(kernel)].append(kernel)
        for key in launches.keys() & kernels.keys() - {None}:
            for kernel in kernels[key]:
                # What begins before the next launch was launched by nobody: it is not counted.
                if launches[key] and launches[key][0].call.enter <= kernel.run.enter:
                    kernel.launch = launches[key].pop(0)
                    kernel.launch.kernel = kernel
                elif launches[key] and launches[key][0].call.enter < kernel.run.leave:
                    early.append(kernel)
    return len({id(kernel) for kernel in early if kernel.launch is None})


def stub(launch: Launch) -> str | None:
    around = launch.call.parent
    return around.name.removeprefix(STUB) if around is not None and around.name.startswith(STUB) else None


def await_kernels(process: Process, synchronization: Synchronization) -> list[Kernel]:
    """Return the kernels, launched before a call, that the call waits for."""
    call, stream, limit = synchronization.call, None, synchronization.call.enter
    launched = [k for k in process.kernels if k.asked < limit]
    if "DeviceSync" in call.name and len(process.devices) == 1:
        return launched
    if "StreamSync" in call.name:
        stream = synchronization.stream
        if stream is None and len(process.streams) == 1:
            stream = process.streams[0]
    elif "EventSync" in call.name:
        records = [r for r in process.recorded if r[1] == synchronization.event and r[0].enter < limit]
        if records:
            recorded, _, stream = max(records, key=lambda r: r[0].enter)
            limit = recorded.enter
    elif call.name == "hipMemcpy" and len(process.null_streams) == 1:
        stream = process.null_streams[0]
    if stream is not None:
        return [k for k in launched if k.stream == stream and k.asked < limit]
    # Nobody knows: what ended meanwhile, or by another clock still runs.
    ended = [k for k in launched if call.enter < k.run.leave <= call.leave]
    return ended or [k for k in launched if k.run.enter < call.leave < k.run.leave]
