"""Records of devices as profilers write them: lost, crossing each other, without a time; copies."""

from __future__ import annotations

import re

import pytest
import whywait
from otf2.enums import GroupFlag, GroupType, LocationGroupType, LocationType, Paradigm, RegionRole, RmaSyncLevel, Type
from whywait.analysis.causes import costliest
from whywait.cli import main

from tests.tracedsl import new_archive, trace_from_text

MS = 1_000_000


def iterations(lost=()):
    """Write 20 iterations: a launch, a kernel, a call that awaits its stream. Some kernels are not recorded."""
    lines = ["0: main [0, 21]"]
    for one in range(1, 21):
        lines.append(f"0: cuLaunchKernel(stream=0) [{one}.000, {one}.010]")
        if one not in lost:
            lines.append(f"0/0: {('copy', 'jacobi')[one % 2]} [{one}.020, {one}.500]")
        lines.append(f"0: cuStreamSynchronize(stream=0) [{one}.020, {one}.510]")
    return "\n".join(lines)


def sums(devices):
    (device,) = devices.summary()["devices"]
    return {name: round(device[name], 9) for name in ("latency", "queued", "starved")}


def test_a_lost_kernel_shifts_no_other_one(tmp_path, capsys):
    whole = whywait.analyze(trace_from_text(iterations(), tmp_path / "all")).gpu()
    assert sums(whole) == {"latency": 0.4, "queued": 0, "starved": 9.5}
    anchor = trace_from_text(iterations(lost={4}), tmp_path / "lost")
    result = whywait.analyze(anchor)
    devices = result.gpu()
    # From 3.5 on the device is starved until the launch at 5.0: half a second, as before, and the second in between.
    assert sums(devices) == {"latency": 0.38, "queued": 0, "starved": 10.0}
    assert devices.counts["clock_violations"] == devices.counts["unmatched_kernels"] == 0
    assert [(row["enter"], row["rank"]) for row in devices.lost.to_pylist()] == [(4.0, 0)]
    assert {one["kind"] for one in result.warnings} == {"launch_without_kernel"}
    kernels = devices.kernels.to_pylist()
    for call in devices.synchronizations.to_pylist():
        assert call["kernel"] is None or kernels[call["kernel"]]["begin"] < call["leave"]
        assert (call["waiting"] > 0) == (call["enter"] != pytest.approx(4.02))
    assert main(["gpu", str(anchor)]) == 0
    out = capsys.readouterr().out
    assert "1 launches without a kernel, first: rank 0 at 4.000000 s" in out
    assert "clock" not in out
    assert "seem to end" not in out


class Device:
    """A process with a thread and streams of one or more devices. Times are ticks of 1 ns."""

    def __init__(self, trace, devices):
        self.trace, self.define = trace, trace.definitions
        node = self.define.system_tree_node("node0")
        process = self.define.location_group("process", system_tree_parent=node)
        self.thread = self.define.location("Master thread", type=LocationType.CPU_THREAD, group=process)
        self.host = trace.event_writer_from_location(self.thread)
        self.streams, self.regions = [], {}
        for device, count in enumerate(devices):
            context = self.define.location_group(
                f"CUDA Context {device}", location_group_type=LocationGroupType.ACCELERATOR, system_tree_parent=node,
                creating_location_group=process,
            )  # fmt: skip
            self.streams += [
                self.define.location(f"CUDA[{device}:{one}]", type=LocationType.ACCELERATOR_STREAM, group=context)
                for one in range(count)
            ]
        self.writers = [trace.event_writer_from_location(stream) for stream in self.streams]
        self.stream_ref = self.define.attribute("CUDA_STREAM_REF", type=Type.LOCATION)
        members = (self.thread, *self.streams)
        self.define.group(
            "CUDA", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.CUDA, members=members,
            group_flags=GroupFlag.NONE,
        )  # fmt: skip
        self.group = self.define.group(
            "members", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.CUDA, members=tuple(range(len(members))),
            group_flags=GroupFlag.NONE,
        )  # fmt: skip
        self.window = self.define.rma_win("window", comm=self.define.comm("CUDA", group=self.group))

    def region(self, name):
        if name not in self.regions:
            role = RegionRole.WRAPPER if name.startswith("cu") else RegionRole.FUNCTION
            self.regions[name] = self.define.region(name, region_role=role, paradigm=Paradigm.CUDA)
        return self.regions[name]

    def call(self, name, begin, end, stream=None):
        attributes = None if stream is None else {self.stream_ref: self.streams[stream]}
        self.host.enter(begin, self.region(name), attributes=attributes)
        self.host.leave(end, self.region(name))

    def copy(self, stream, begin, end, size, remote=0, put=True, number=42):
        write = self.writers[stream].rma_put if put else self.writers[stream].rma_get
        write(begin, self.window, remote, size, number)
        self.writers[stream].rma_op_complete_blocking(end, self.window, number)


def write_device(place, program, devices=(1,), begin=1000 * MS, length=22_000 * MS):
    """Write a program between its begin and its end; return the anchor file."""
    with new_archive(str(place), timer_resolution=1000 * MS) as trace:
        device = Device(trace, devices)
        device.host.enter(begin, device.define.region("main"))
        program(device)
        device.host.leave(begin + length, next(r for r in device.define.regions if r.name == "main"))
    return place / "traces.otf2"


def copies_behind_kernels(device):
    """Four times a kernel of 0.95 s and a copy of 1 GiB of 3 s, which the host awaits."""
    for one in range(4):
        at = (2000 + 5000 * one) * MS
        device.call("cuLaunchKernel", at, at + 10 * MS, 0)
        device.call("cuMemcpyDtoHAsync_v2", at + 20 * MS, at + 30 * MS, 0)
        device.call("cuStreamSynchronize", at + 40 * MS, at + 4050 * MS, 0)
        device.writers[0].enter(at + 50 * MS, device.region("kernel"))
        device.writers[0].leave(at + 1000 * MS, device.region("kernel"))
        device.copy(0, at + 1000 * MS, at + 4000 * MS, 1 << 30)


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    return write_device(tmp_path_factory.mktemp("copies") / "run", copies_behind_kernels)


def test_copies_are_work_of_devices(copying, capsys):
    result = whywait.analyze(copying)
    devices = result.gpu()
    (copy,) = devices.summary()["copies"]
    assert (copy["direction"], copy["count"], copy["bytes"], copy["total"]) == ("to host", 4, 4 << 30, 12.0)
    assert sum(row["waiting"] for row in devices.synchronizations.to_pylist()) == pytest.approx(4 * 3.96)
    places = costliest(result, 5, paid_for="waiting")
    costs = {result.tree.path(place["callpath_id"])[-1]: place["costs"] for place in places}
    # Of 15.84 s of waiting, kernels and copies pay in proportion to their 15.8 s.
    assert costs["copy to host"] == pytest.approx(12.0 * 15.84 / 15.8)
    # The host that awaits the device does not starve it: only what follows each copy does.
    starving = {row["callpath"][-1]: row["starving"] for row in devices.starving().to_pylist()}
    assert starving == {"main": pytest.approx(3 * 0.95), "cuStreamSynchronize": pytest.approx(3 * 0.05)}
    account = {row["row"]: 0.0 for row in result.tables.device_account.to_pylist()}
    for row in result.tables.device_account.to_pylist():
        account[row["row"]] += row["time"]
    assert (account["busy.copy"], account["busy.kernel"]) == pytest.approx((12.0, 3.8))
    assert not result.warnings
    # Kernels are computation even if they are recorded as functions; calls and copies are not.
    assert result.profile.total("cuda_kernel_executions") == pytest.approx(3.8)
    assert main(["gpu", str(copying)]) == 0
    assert re.search(r"CUDA\[0:0\] +4 +12\.0 s +4\.00 GiB +341 MiB +to host", capsys.readouterr().out)


def test_copies_can_be_changed(copying):
    """Without the copies, each synchronization ends 3 s earlier; at twice the bandwidth, 1.5 s."""
    run = whywait.analyze(copying)
    for factor, saved in ((0.0, 12.0), (0.5, 6.0)):
        simulation = whywait.whatif(run, [whywait.hypotheses.Scale("copy to host", factor)])
        assert simulation.before - simulation.after == pytest.approx(saved)
        (copy,) = simulation.analyze().gpu().summary()["copies"]
        assert (copy["bytes"], copy["total"]) == (4 << 30, pytest.approx(12.0 * factor))


def test_copies_overlap_kernels_and_reach_other_devices(tmp_path):
    """On one stream a copy [2, 5] beside a kernel [3, 6]; between devices and within one on the second device."""

    def program(device):
        device.writers[0].rma_get(2000 * MS, device.window, 0, 100, 1)
        device.writers[0].enter(3000 * MS, device.region("kernel"))
        device.writers[0].rma_op_complete_blocking(5000 * MS, device.window, 1)
        device.writers[0].leave(6000 * MS, device.region("kernel"))
        device.copy(1, 7000 * MS, 8000 * MS, 200, remote=1)
        device.copy(1, 8000 * MS, 9000 * MS, 300, remote=3, put=False)
        device.copy(1, 9000 * MS, 9500 * MS, 400, remote=99)

    result = whywait.analyze(write_device(tmp_path / "run", program, devices=(1, 2)))
    rows = result.gpu().kernels.to_pylist()
    found = [(row["copy"], row["bytes"], round(row["end"] - row["begin"], 9)) for row in rows]
    assert found == [
        ("to device", 100, 3.0), (None, None, 3.0), ("between devices", 200, 1.0), ("on device", 300, 1.0),
        ("to host", 400, 0.5),
    ]  # fmt: skip
    first = result.gpu().summary()["devices"][0]
    assert (first["busy"], first["copies_overlap"]) == pytest.approx((4.0, 2.0))
    assert {one["kind"] for one in result.warnings} == {"unknown_peer", "kernel_without_launch"}
    assert result.profile.total("visits") == 1 + 5


def test_kernels_that_cross_each_other_are_all_kernels(tmp_path):
    """a [2, 5], b [3, 8] and c [4, 6] on one stream, and d [10, 14] around e [11, 12]."""

    def program(device):
        for at in (20, 30, 40, 100, 110):
            device.call("cuLaunchKernel", at * 100 * MS - 50 * MS, at * 100 * MS - 40 * MS, 0)
        for at, name, is_enter in (
            (2, "a", True), (3, "b", True), (4, "c", True), (5, "a", False), (6, "c", False), (8, "b", False),
            (10, "d", True), (11, "e", True), (12, "e", False), (14, "d", False),
        ):  # fmt: skip
            write = device.writers[0].enter if is_enter else device.writers[0].leave
            write(at * 1000 * MS, device.region(name))
        device.call("cuStreamSynchronize", 14_000 * MS - 1, 14_100 * MS, 0)

    result = whywait.analyze(write_device(tmp_path / "run", program))
    devices = result.gpu()
    found = {row["callpath"][-1]: (row["begin"] + 1, row["end"] + 1) for row in devices.kernels.to_pylist()}
    assert found == {"a": (2, 5), "b": (3, 8), "c": (4, 6), "d": (10, 14), "e": (11, 12)}
    assert devices.counts["unmatched_kernels"] == devices.counts["unmatched_launches"] == 0
    (device,) = devices.summary()["devices"]
    assert device["busy"] == pytest.approx(6 + 4)
    assert not result.warnings
    assert result.profile.total("visits") == 1 + 5 + 1 + 5


def test_a_record_with_time_0_is_left_out_and_named(tmp_path):
    """One kernel without any time, one without an end; the process begins at 100 s."""

    def program(device):
        write = device.writers[0]
        write.enter(1, device.region("kernel"))
        write.leave(2, device.region("kernel"))
        for one in range(5):
            at = 100_000 * MS + (one + 1) * MS
            device.call("cuLaunchKernel", at, at + 5000, 0)
            if one:
                write.enter(at + 10_000, device.region("kernel"))
                write.leave(at + 590_000, device.region("kernel"))
            device.call("cuStreamSynchronize", at + 6000, at + 600_000, 0)

    result = whywait.analyze(write_device(tmp_path / "run", program, begin=100_000 * MS, length=10 * MS))
    warnings = {one["kind"]: one["count"] for one in result.warnings}
    assert warnings == {"device_time": 1, "launch_without_kernel": 1}
    assert result.facts["length"] == pytest.approx(0.01)
    (device,) = result.gpu().summary()["devices"]
    assert (device["kernels"], device["share"]) == (4, pytest.approx(0.232))
    assert device["starved"] < 0.01
    assert all(0 <= time <= 0.01 for time in device["account"].values())


def test_no_sentence_speaks_of_what_a_run_does_not_have(tmp_path, capsys):
    text = """
        0: main [0, 12]
        0: hipLaunchKernel(stream=0) [1, 1.1]
        0/0: work [3, 5]
        0: hipStreamSynchronize(stream=0) [1.2, 5.1]
    """
    anchor = trace_from_text(text, tmp_path / "run")
    assert main(["summary", str(anchor)]) == 0
    assert main(["explain", str(anchor)]) == 0
    out = capsys.readouterr().out
    assert "unexplained" in out
    assert "network" not in out
    assert "MPI" not in out


def test_a_device_synchronization_awaits_the_device_of_its_thread(tmp_path):
    """Two devices: the second is used after it was selected; the call returns while the first one runs."""

    def program(device):
        device.call("cudaSetDevice", 1100 * MS, 1110 * MS)
        device.call("cudaLaunchKernel", 1200 * MS, 1210 * MS, 0)
        device.call("cudaSetDevice", 1300 * MS, 1310 * MS)
        device.call("cudaLaunchKernel", 1400 * MS, 1410 * MS, 1)
        device.call("cudaDeviceSynchronize", 1500 * MS, 3010 * MS)
        for stream, end in ((0, 9000), (1, 3000)):
            device.writers[stream].enter((1250 + 200 * stream) * MS, device.region("kernel"))
            device.writers[stream].leave(end * MS, device.region("kernel"))

    devices = whywait.analyze(write_device(tmp_path / "run", program, devices=(1, 1))).gpu()
    (call,) = devices.synchronizations.to_pylist()
    assert (call["waiting"], call["completion"]) == pytest.approx((1.5, 0.01))
    assert devices.kernels.to_pylist()[call["kernel"]]["device"] == 1
    assert devices.counts["clock_violations"] == 0


def test_stray_synchronizations_of_copies_are_ignored(tmp_path):
    def program(device):
        device.copy(0, 2000 * MS, 3000 * MS, 8)
        device.writers[0].rma_op_complete_remote(3000 * MS, device.window, 42)
        device.writers[0].rma_group_sync(3100 * MS, RmaSyncLevel.MEMORY, device.window, device.group)

    result = whywait.analyze(write_device(tmp_path / "run", program))
    (copy,) = result.gpu().summary()["copies"]
    assert (copy["count"], copy["total"]) == (1, pytest.approx(1.0))
    assert not result.warnings
