"""Who launched and who awaits what, where records name streams and events; copies as one-sided transfers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import otf2
import pytest
import whywait
from otf2.enums import (
    GroupFlag,
    GroupType,
    LocationGroupType,
    LocationType,
    MetricMode,
    MetricOccurrence,
    Paradigm,
    RegionRole,
    RmaSyncLevel,
    SystemTreeDomain,
    Type,
)
from whywait.cli import main

from tests.test_mpi import JOB, mpiexec
from tests.tracedsl import new_archive

DATA = Path(__file__).parent / "data"


class Program:
    """A process with a thread and streams of devices. Times are ticks of 0.1 s."""

    def __init__(self, trace, devices, null_streams=()):
        self.trace, self.define = trace, trace.definitions
        node = self.define.system_tree_node("node0")
        process = self.define.location_group("process", system_tree_parent=node)
        self.thread = self.define.location("thread", type=LocationType.CPU_THREAD, group=process)
        self.host = trace.event_writer_from_location(self.thread)
        self.streams, self.writers, self.regions = [], [], {}
        for number, streams in enumerate(devices):
            device = self.define.system_tree_node(f"GPU {number}", "device", node)
            self.define.system_tree_node_domain(device, SystemTreeDomain.ACCELERATOR_DEVICE)
            context = self.define.location_group(
                f"CUDA Context {number}",
                location_group_type=LocationGroupType.ACCELERATOR,
                system_tree_parent=device,
                creating_location_group=process,
            )
            for stream in range(streams):
                name = f"CUDA[{number}:{stream}]"
                self.streams.append(self.define.location(name, type=LocationType.ACCELERATOR_STREAM, group=context))
                self.writers.append(trace.event_writer_from_location(self.streams[-1]))
        for stream, location in enumerate(self.streams):
            is_null = "yes" if stream in null_streams else "no"
            self.define.location_property(location, "CUDA_NULL_STREAM", Type.STRING, is_null)
        self.stream_ref = self.define.attribute("CUDA_STREAM_REF", type=Type.LOCATION)
        self.event_ref = self.define.attribute("CUDA_EVENT_REF", type=Type.UINT64)
        self.kernel_name = self.define.attribute("kernel name", type=Type.STRING)
        self.host.enter(0, self.region("main"))

    def region(self, name):
        if name not in self.regions:
            paradigm = Paradigm.CUDA if name.startswith("cuda") else Paradigm.USER
            self.regions[name] = self.define.region(name, paradigm=paradigm)
        return self.regions[name]

    def call(self, name, begin, end, stream=None, event=None, kernel=None):
        attributes = {}
        if kernel is not None:
            attributes[self.kernel_name] = kernel
        if stream is not None:
            attributes[self.stream_ref] = self.streams[stream]
        if event is not None:
            attributes[self.event_ref] = event
        self.host.enter(begin, self.region(name), attributes=attributes or None)
        self.host.leave(end, self.region(name))

    def run(self, stream, begin, end, name="kernel"):
        self.writers[stream].enter(begin, self.region(name))
        self.writers[stream].leave(end, self.region(name))


@contextmanager
def program_at(place, devices, null_streams=()):
    """Write a program of 10 s."""
    with new_archive(str(place), timer_resolution=10) as trace:
        program = Program(trace, devices, null_streams)
        yield program
        program.host.leave(100, program.region("main"))


def waits(place):
    devices = whywait.analyze(place / "traces.otf2").gpu()
    kernels = devices.kernels.to_pylist()
    found = [
        (row["callpath"][-1], round(row["waiting"], 9), round(kernels[row["kernel"]]["begin"], 9))
        for row in devices.synchronizations.to_pylist()
    ]
    return found, devices


def test_a_stream_that_is_named_is_the_one_that_is_awaited(tmp_path):
    """Kernels [1.2, 5] on stream 0 and [1.4, 3] on stream 1; both end within the call, which names one of them."""
    for stream, waiting, begin in ((0, 3.0, 1.2), (1, 1.0, 1.4)):
        with program_at(tmp_path / str(stream), [2]) as program:
            program.call("cudaLaunchKernel", 10, 11, stream=0)
            program.call("cudaLaunchKernel", 12, 13, stream=1)
            program.call("cudaStreamSynchronize", 20, 60, stream=stream)
            program.run(0, 12, 50)
            program.run(1, 14, 30)
        found, _ = waits(tmp_path / str(stream))
        assert found == [("cudaStreamSynchronize", waiting, begin)]


def test_an_event_awaits_what_was_launched_before_its_record(tmp_path):
    """Of two kernels on one stream, [1.2, 3] and [3, 9], the second is launched after the event is recorded."""
    with program_at(tmp_path / "events", [1]) as program:
        program.call("cudaLaunchKernel", 10, 11, stream=0)
        program.call("cudaEventRecord", 12, 13, stream=0, event=7)
        program.call("cudaLaunchKernel", 14, 15, stream=0)
        program.call("cudaEventSynchronize", 20, 32, event=7)
        program.call("cudaEventSynchronize", 40, 95, event=8)
        program.run(0, 12, 30)
        program.run(0, 30, 90)
    found, _ = waits(tmp_path / "events")
    # Event 8 was never recorded: the call awaits what ended in it.
    assert found == [("cudaEventSynchronize", 1.0, 1.2), ("cudaEventSynchronize", 5.0, 3.0)]


def test_an_event_that_is_recorded_again(tmp_path):
    """The latest record before the call counts."""
    with program_at(tmp_path / "again", [1]) as program:
        for begin in (10, 14):
            program.call("cudaLaunchKernel", begin, begin + 1, stream=0)
            program.call("cudaEventRecord", begin + 2, begin + 3, stream=0, event=7)
        program.call("cudaEventSynchronize", 20, 95, event=7)
        program.run(0, 12, 30)
        program.run(0, 30, 90)
    assert waits(tmp_path / "again")[0] == [("cudaEventSynchronize", 7.0, 3.0)]


def test_a_blocking_copy_awaits_the_null_stream(tmp_path):
    with program_at(tmp_path / "copy", [2], null_streams=[1]) as program:
        program.call("cudaLaunchKernel", 10, 11, stream=0)
        program.call("cudaLaunchKernel", 12, 13, stream=1)
        program.call("cudaMemcpy", 20, 60)
        program.run(0, 12, 50)
        program.run(1, 14, 30)
    assert waits(tmp_path / "copy")[0] == [("cudaMemcpy", 1.0, 1.4)]


def test_a_blocking_copy_awaits_itself(tmp_path):
    """What starts on the null stream within the call, and was not launched, is the copy: [3, 5] of a call [2, 6]."""
    with program_at(tmp_path / "copy", [2], null_streams=[1]) as program:
        program.call("cudaLaunchKernel", 12, 13, stream=1)
        program.call("cudaMemcpy", 20, 60)
        program.run(1, 14, 30)
        program.run(1, 30, 50, "DtoH")
        program.run(0, 30, 58, "other")
        program.run(1, 61, 70, "DtoH")
    assert waits(tmp_path / "copy")[0] == [("cudaMemcpy", 3.0, 3.0)]


def test_launches_name_their_kernel(tmp_path):
    """Two streams: neither a call site nor a stream is known, but the names of the kernels."""
    with program_at(tmp_path / "names", [2]) as program:
        program.call("cudaLaunchKernel", 10, 11, kernel="b")
        program.call("cudaLaunchKernel", 12, 13, kernel="a")
        program.call("cudaLaunchKernel", 14, 15, kernel="b")
        program.run(0, 13, 20, "a")
        program.run(1, 16, 20, "b")
        program.run(1, 20, 30, "b")
    kernels = whywait.analyze(tmp_path / "names" / "traces.otf2").gpu().kernels.to_pylist()
    assert {(row["callpath"][-1], row["begin"]): row["launch_enter"] for row in kernels} == {
        ("a", 1.3): 1.2, ("b", 1.6): 1.0, ("b", 2.0): 1.4,
    }  # fmt: skip


def test_idle_regions_are_no_kernels(tmp_path):
    """Score-P's artificial regions; a kernel may have a name that looks like theirs."""
    with program_at(tmp_path / "idle", [1]) as program:
        program.call("cudaLaunchKernel", 8, 9)
        program.run(0, 0, 10, "COMPUTE IDLE")
        program.run(0, 10, 20, "FIND_IDLERS")
        program.run(0, 20, 90, "GPU IDLE")
    devices = whywait.analyze(tmp_path / "idle" / "traces.otf2").gpu()
    assert [row["callpath"][-1] for row in devices.kernels.to_pylist()] == ["FIND_IDLERS"]
    assert devices.counts["unmatched_kernels"] == 0


def test_several_devices_of_a_process(tmp_path):
    """Each is idle by itself; a synchronization with an unknown device awaits what ended in it."""
    with program_at(tmp_path / "two", [1, 1]) as program:
        program.call("cudaLaunchKernel", 10, 11, stream=0)
        program.call("cudaLaunchKernel", 12, 13, stream=1)
        program.call("cudaDeviceSynchronize", 20, 31)
        program.call("cudaLaunchKernel", 60, 61, stream=1)
        program.call("cudaDeviceSynchronize", 62, 81)
        program.run(0, 11, 70)
        program.run(1, 13, 30)
        program.run(1, 61, 80)
    found, devices = waits(tmp_path / "two")
    assert found == [("cudaDeviceSynchronize", 1.0, 1.3), ("cudaDeviceSynchronize", 1.8, 6.1)]
    summary = devices.summary()
    assert [(one["name"], one["kernels"]) for one in summary["devices"]] == [("CUDA[0:0]", 1), ("CUDA[1:0]", 2)]
    assert [one["busy"] for one in summary["devices"]] == pytest.approx([5.9, 3.6])
    # The second device has nothing from 3 to 6.1: starved until the launch at 6, though the first one is busy.
    starved = {row["begin"]: row["starved"] for row in devices.kernels.to_pylist()}
    assert starved == {1.1: 0, 1.3: 0, 6.1: pytest.approx(3.0)}
    assert summary["imbalance"] == pytest.approx((5.9 - 4.75) / 4.75)


def copies(place):
    """CUDA's copies as one-sided transfers in a window of thread and stream, as Score-P writes them."""
    with program_at(place, [1]) as program:
        define = program.define
        locations = define.group(
            "CUDA", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.CUDA,
            members=(program.thread, program.streams[0]), group_flags=GroupFlag.NONE,
        )  # fmt: skip
        members = define.group(
            "members", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.CUDA, members=(0, 1),
            group_flags=GroupFlag.GLOBAL_MEMBERS,
        )  # fmt: skip
        assert locations is not members
        window = define.rma_win("window", comm=define.comm("CUDA", group=members))
        copy = define.region("cudaMemcpy", region_role=RegionRole.WRAPPER, paradigm=Paradigm.CUDA)
        program.call("cudaLaunchKernel", 10, 11, stream=0)
        program.host.enter(20, copy)
        program.host.rma_get(21, window, 1, 4096, 1)
        program.host.rma_op_complete_blocking(38, window, 1)
        program.host.leave(40, copy)
        stream = program.writers[0]
        stream.enter(12, program.region("kernel"))
        stream.leave(35, program.region("kernel"))
        stream.rma_put(41, window, 0, 512, 2)
        stream.rma_op_complete_non_blocking(42, window, 2)
        stream.rma_sync(43, window, 0, otf2.enums.RmaSyncType.MEMORY)
        stream.rma_group_sync(44, RmaSyncLevel.MEMORY, window, members)
    return place / "traces.otf2"


def test_copies_are_no_one_sided_communication(tmp_path):
    """Their windows have threads and streams as members: no process is a target, and nothing is odd about that."""
    result = whywait.analyze(copies(tmp_path / "copies"))
    assert not result.warnings
    assert result.transfers().num_rows == 0
    (call,) = result.gpu().synchronizations.to_pylist()
    assert (call["waiting"], call["completion"]) == pytest.approx((1.5, 0.5))


@pytest.mark.parametrize("processes", [2, 3])
def test_devices_under_mpi(tmp_path, processes):
    """Several processes of the analysis find what one finds."""
    whywait._native.generate("comd-gpu", tmp_path, ranks=5, iterations=4, seed=3)
    done = mpiexec(processes, JOB, "compare", tmp_path)
    assert done.returncode == 0, done.stderr


def counted(place, counters, properties=(), kernels=((12, 32), (41, 51))):
    """Write two kernels on one stream and computation of the host; counters are levels at the begin of each kernel."""
    with program_at(place, [1]) as program:
        define = program.define
        node = next(one for one in define.system_tree_nodes if one.name == "GPU 0")
        for name, value in properties:
            define.system_tree_node_property(node, name, Type.STRING, value)
        classes = {
            name: define.metric_class(
                (define.metric_member(name, metric_mode=MetricMode.ABSOLUTE_NEXT, value_type=Type.DOUBLE, unit="%"),),
                occurrence=MetricOccurrence.ASYNCHRONOUS,
            )
            for name in counters
        }
        for number, (begin, end) in enumerate(kernels):
            program.call("cudaLaunchKernel", begin - 2, begin - 1)
            for name, values in counters.items():
                program.writers[0].metric(begin, classes[name], (values[number],))
            program.run(0, begin, end)
            for name in counters:
                program.writers[0].metric(end, classes[name], (0.0,))
    return whywait.analyze(place / "traces.otf2", causes=False).gpu()


def test_loads_are_adjusted_by_named_counters(tmp_path):
    """Kernels of 2 s at 72% and 1 s at 50%; the host computes for 10 s less launches and kernels."""
    devices = counted(tmp_path / "named", {"busy": (72.0, 50.0)})
    (load,) = devices.loads(["busy"])["processes"]
    assert load["host"] == pytest.approx(10 - 0.2 - 3.0)
    assert (load["gpu_time"], load["gpu_time_adjusted"]) == pytest.approx((3.0, 2 * 0.72 + 0.5))
    assert load["load_adjusted"] == pytest.approx(load["host"] + 1.94)
    assert devices.loads()["efficiency_source"] == "none"
    assert devices.loads(["busy", "busy"])["processes"][0]["gpu_time_adjusted"] == pytest.approx(2 * 0.72**2 + 0.25)
    with pytest.raises(whywait.UsageError, match="no counter 'nix'"):
        devices.loads(["nix"])
    too_much = counted(tmp_path / "wrong", {"busy": (172.0, 50.0)})
    with pytest.raises(whywait.UsageError, match="busy is 172"):
        too_much.loads(["busy"])
    too_little = counted(tmp_path / "negative", {"busy": (-3.0, 50.0)})
    with pytest.raises(whywait.UsageError, match="busy is -3"):
        too_little.loads(["busy"])


def shared(place, name, value, scope):
    """Write kernels [1, 3] on device 0 and [4, 5] on device 1, and a level of a metric location that covers more."""
    with program_at(place, [1, 1]) as program:
        define = program.define
        for stream, (begin, end) in enumerate([(10, 30), (40, 50)]):
            program.call("cudaLaunchKernel", begin - 2, begin - 1)
            program.run(stream, begin, end)
        member = define.metric_member(name, metric_mode=MetricMode.ABSOLUTE_NEXT, value_type=Type.DOUBLE, unit="%")
        metric = define.metric_class((member,), occurrence=MetricOccurrence.ASYNCHRONOUS)
        group = next(iter(define.location_groups))
        location = define.location("metrics", type=LocationType.METRIC, group=group)
        instance = define.metric_instance(metric, location, scope=scope(define))
        writer = program.trace.event_writer_from_location(location)
        writer.metric(0, instance, (value,))
    return whywait.analyze(place / "traces.otf2", causes=False).gpu()


def node(name):
    return lambda define: next(one for one in define.system_tree_nodes if one.name == name)


def test_loads_are_adjusted_by_counters_of_devices(tmp_path):
    """A counter of a device is known at its streams, one of a machine at those of all."""
    first = shared(tmp_path / "device", "use", 50.0, node("GPU 0"))
    with pytest.raises(whywait.UsageError, match="use is not recorded at every kernel"):
        first.loads(["use"])
    both = shared(tmp_path / "machine", "use", 50.0, lambda define: define.system_tree_nodes[0])
    (load,) = both.loads(["use"])["processes"]
    assert (load["gpu_time"], load["gpu_time_adjusted"]) == pytest.approx((3.0, 1.5))
    assert both.loads()["efficiency_source"] == "none"


def test_efficiencies_may_be_recorded_beside_the_streams(tmp_path):
    """Counters of a metric location that cover the contexts of both devices: 90% of 80%."""
    with program_at(tmp_path, [1, 1]) as program:
        define = program.define
        for stream, (begin, end) in enumerate([(10, 30), (40, 50)]):
            program.call("cudaLaunchKernel", begin - 2, begin - 1)
            program.run(stream, begin, end)
        for name, value in (("sm_efficiency", 90.0), ("warp_execution_efficiency", 80.0)):
            member = define.metric_member(name, metric_mode=MetricMode.ABSOLUTE_NEXT, value_type=Type.DOUBLE, unit="%")
            metric = define.metric_class((member,), occurrence=MetricOccurrence.ASYNCHRONOUS)
            for group in [group for group in define.location_groups if group.name.startswith("CUDA Context")]:
                location = define.location("metrics", type=LocationType.METRIC, group=group)
                instance = define.metric_instance(metric, location, scope=group)
                program.trace.event_writer_from_location(location).metric(0, instance, (value,))
    found = whywait.analyze(tmp_path / "traces.otf2", causes=False).gpu().loads()
    assert found["efficiency_source"] == "counters"
    assert found["processes"][0]["gpu_time_adjusted"] == pytest.approx(3 * 0.72)


def test_times_of_kernels_by_call_path_and_location(tmp_path):
    """a [1, 3] on one stream and b [2, 4] on another one of the device: a counts until b starts; a [6, 7] alone."""
    with program_at(tmp_path, [2]) as program:
        define = program.define
        member = define.metric_member("busy", metric_mode=MetricMode.ABSOLUTE_NEXT, value_type=Type.DOUBLE, unit="%")
        busy = define.metric_class((member,), occurrence=MetricOccurrence.ASYNCHRONOUS)
        runs = [(0, 10, 30, "a", 50.0), (0, 60, 70, "a", 30.0), (1, 20, 40, "b", 100.0)]
        for stream, begin, end, name, value in runs:
            program.writers[stream].metric(begin, busy, (value,))
            program.run(stream, begin, end, name)
            program.writers[stream].metric(end, busy, (0.0,))
    devices = whywait.analyze(tmp_path / "traces.otf2", causes=False).gpu()
    rows = devices.times(["busy"]).to_pylist()
    found = {row["callpath"][-1]: (row["kernels"], row["gpu_time"], row["gpu_time_adjusted"]) for row in rows}
    assert found == {"a": (2, pytest.approx(2), pytest.approx(0.5 + 0.3)), "b": (1, pytest.approx(2), pytest.approx(2))}
    assert len({row["location"] for row in rows}) == 2
    (load,) = devices.loads(["busy"])["processes"]
    for name in ("gpu_time", "gpu_time_adjusted"):
        assert sum(row[name] for row in rows) == pytest.approx(load[name])


def test_how_busy_devices_are_adjusts_loads(tmp_path):
    """By a counter of the machine that names the device, and where it is known for each kernel."""
    alone = shared(tmp_path / "one", "gpu_busy_percent:device=GPU 0", 50.0, lambda define: define.system_tree_nodes[0])
    assert alone.loads()["efficiency_source"] == "none"
    whole = shared(tmp_path / "all", "gpu_busy_percent", 0.5, lambda define: define.system_tree_nodes[0])
    found = whole.loads()
    # Its unit is percent.
    assert (found["efficiency_source"], found["processes"][0]["gpu_time_adjusted"]) == ("busy", pytest.approx(0.015))


def test_loads_of_a_window_and_of_call_paths(tmp_path):
    """Kernels [1.2, 3.2] and [4.1, 5.1]; the host computes whenever none runs, apart from launches."""
    devices = counted(tmp_path, {"busy": (72.0, 50.0)})
    (load,) = devices.loads(["busy"], window=(2.0, 5.0))["processes"]
    # In the window 1.2 s and 0.9 s of kernels, and a launch of 0.1 s.
    assert (load["gpu_time"], load["gpu_time_adjusted"]) == pytest.approx((2.1, 1.2 * 0.72 + 0.9 * 0.5))
    assert load["host"] == pytest.approx(3.0 - 2.1 - 0.1)
    (launched,) = devices.loads(callpath="cudaLaunchKernel")["processes"]
    assert (launched["host"], launched["gpu_time"]) == pytest.approx((0.0, 3.0))
    (whole,) = devices.loads(callpath="main")["processes"]
    assert whole == devices.loads()["processes"][0]


def test_efficiencies_have_the_loads_of_devices(tmp_path, capsys):
    """Eberius, equations 4.1 and 4.5, as `whywait gpu` has them, also of windows."""
    whywait._native.generate("comd-gpu", tmp_path, ranks=3, iterations=2, seed=1, imbalance=1.0)
    result = whywait.analyze(tmp_path, causes=False)
    found, loads = result.efficiencies(), result.gpu().loads()
    for name in ("load_imbalance_gpu", "load_imbalance_gpu_adjusted"):
        assert found[name].value == loads[name] > 0
    assert "load_gpu_adjusted" in found.definitions
    half = result.facts["length"] / 2
    part = result.efficiencies(window=(0.0, half))
    assert part["load_imbalance_gpu"].value == result.gpu().loads(window=(0.0, half))["load_imbalance_gpu"]
    assert main(["efficiency", str(tmp_path)]) == 0
    assert "Load imbalance, devices, adjusted" in capsys.readouterr().out
    assert "load_imbalance_gpu" not in {one.name for one in whywait.analyze(DATA / "p2p").efficiencies()}


def test_loads_are_adjusted_by_the_geometry_of_launches(tmp_path):
    """80 multiprocessors, warps of 32: 81 blocks fill two rounds to 81/160, 48 threads two warps to 3/4."""
    counters = {"blocks_per_grid": (81.0, 80.0), "threads_per_block": (1024.0, 48.0)}
    properties = [("Number of multi-processors", "80"), ("Warp size", "32")]
    found = counted(tmp_path / "geometry", counters, properties).loads()
    assert found["efficiency_source"] == "geometry"
    assert found["processes"][0]["gpu_time_adjusted"] == pytest.approx(2 * 81 / 160 + 0.75)
    assert counted(tmp_path / "unknown", counters).loads()["efficiency_source"] == "none"


def test_kernels_that_overlap_on_a_device_count_once(tmp_path):
    """[1, 3] at 50% and [2, 4] at 100% on one device: the latest to start counts."""
    with program_at(tmp_path / "overlap", [2]) as program:
        define = program.define
        member = define.metric_member("busy", metric_mode=MetricMode.ABSOLUTE_NEXT, value_type=Type.DOUBLE, unit="%")
        busy = define.metric_class((member,), occurrence=MetricOccurrence.ASYNCHRONOUS)
        for stream, (begin, end, value) in enumerate([(10, 30, 50.0), (20, 40, 100.0)]):
            program.writers[stream].metric(begin, busy, (value,))
            program.run(stream, begin, end)
            program.writers[stream].metric(end, busy, (0.0,))
    (load,) = whywait.analyze(tmp_path / "overlap", causes=False).gpu().loads(["busy"])["processes"]
    assert (load["host"], load["gpu_time"], load["gpu_time_adjusted"]) == pytest.approx((7.0, 3.0, 0.5 + 2.0))


def test_the_command_takes_names_of_counters(tmp_path, capsys):
    counted(tmp_path / "named", {"busy": (72.0, 50.0)})
    assert main(["gpu", str(tmp_path / "named"), "--gpu-efficiency", "busy * busy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["efficiency_source"] == "counters"
    assert main(["gpu", str(tmp_path / "named"), "--gpu-efficiency", "nix"]) == 2
