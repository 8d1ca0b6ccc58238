"""Accelerators: worked examples, a real trace, and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import whywait
from otf2.enums import LocationGroupType, LocationType, SystemTreeDomain, Type
from whywait import _native
from whywait.cli import main
from whywait.report.html.places import stream_names

from tests.results import SHARED, UNRECORDED
from tests.tracedsl import new_archive, trace_from_text

DATA = Path(__file__).parent / "data"
DOCUMENT = Path(__file__).parent / "devices" / "devices.md"
EXAMPLES = re.findall(
    r"^## (.*?)\n.*?```trace\n(.*?)```.*?```gpu\n(.*?)```",
    DOCUMENT.read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def number(value):
    return f"{value:.9f}".rstrip("0").rstrip(".")


def told(result):
    """Format the waits as the document does."""
    devices = result.gpu()
    names = {"idle": "idle", "starved": "starved", "mpi": "mpi_starved", "latency": "latency", "queued": "queued"}
    kernels = devices.kernels.to_pylist()
    for kernel in kernels:
        yield f"{kernel['callpath'][-1]} " + " ".join(f"{name} {number(kernel[of])}" for name, of in names.items())
    for call in devices.synchronizations.to_pylist():
        cause = "" if call["kernel"] is None else f" for {kernels[call['kernel']]['callpath'][-1]}"
        times = f"waiting {number(call['waiting'])} completion {number(call['completion'])}"
        yield f"{call['callpath'][-1]} {times}{cause}"
    for row in devices.starving().to_pylist():
        yield f"{row['callpath'][-1]} starves {number(row['starving'])}"
    for name, count in devices.counts.items():
        if name != "launches" and count:
            yield f"{name} {count}"


def test_all_examples_are_tested():
    assert len(EXAMPLES) == DOCUMENT.read_text(encoding="utf-8").count("\n## ")


@pytest.mark.parametrize(("text", "expected"), [one[1:] for one in EXAMPLES], ids=[one[0] for one in EXAMPLES])
def test_device_waits_match_hand_worked_traces(text, expected, tmp_path):
    result = whywait.analyze(trace_from_text(text, tmp_path / "trace"), causes=False)
    assert sorted(told(result)) == sorted(expected.splitlines())


def test_launches_name_their_stream(tmp_path):
    """The k-th launch to a stream is that of its k-th kernel: CUDA_STREAM_REF, an attribute of the call."""
    place = tmp_path / "archive"
    with new_archive(str(place), timer_resolution=10) as trace:
        define = trace.definitions
        node = define.system_tree_node("machine")
        process = define.location_group("process", system_tree_parent=node)
        device = define.location_group(
            "CUDA Context 1",
            location_group_type=LocationGroupType.ACCELERATOR,
            system_tree_parent=node,
            creating_location_group=process,
        )
        host = define.location("thread", type=LocationType.CPU_THREAD, group=process)
        streams = [
            define.location(f"CUDA[0:{n}]", type=LocationType.ACCELERATOR_STREAM, group=device) for n in range(2)
        ]
        stream = define.attribute("CUDA_STREAM_REF", type=Type.LOCATION)
        launch, kernel = define.region("cudaLaunchKernel"), define.region("kernel")
        writer = trace.event_writer_from_location(host)
        for time, to in ((10, 1), (20, 0), (30, 1)):
            writer.enter(time, launch, attributes={stream: streams[to]})
            writer.leave(time + 1, launch)
        for to, runs in enumerate(([(40, 50)], [(35, 45), (46, 60)])):
            writer = trace.event_writer_from_location(streams[to])
            for begin, end in runs:
                writer.enter(begin, kernel)
                writer.leave(end, kernel)
    devices = whywait.analyze(place / "traces.otf2", causes=False).gpu()
    launches = {(row["begin"], row["launch_enter"]) for row in devices.kernels.to_pylist()}
    assert launches == {(3.0, 1.0), (2.5, 0.0), (3.6, 2.0)}
    assert devices.counts["unmatched_kernels"] == devices.counts["unmatched_launches"] == 0


def shared_device(place, *, is_shared):
    """Two processes launch kernels in turn: on a device that they share, or each on its own. Ticks are 0.1 s."""
    with new_archive(str(place), timer_resolution=10) as trace:
        define = trace.definitions
        node = define.system_tree_node("node0")
        gpus = [define.system_tree_node(f"GPU {n}", "device", node) for n in range(1 if is_shared else 2)]
        for gpu in gpus:
            define.system_tree_node_domain(gpu, SystemTreeDomain.ACCELERATOR_DEVICE)
        processes = [define.location_group(f"process {n}", system_tree_parent=node) for n in range(2)]
        hosts = [define.location("thread", type=LocationType.CPU_THREAD, group=process) for process in processes]
        launch, kernel = define.region("cudaLaunchKernel"), define.region("kernel")
        for number, process in enumerate(processes):
            context = define.location_group(
                f"CUDA Context {number}",
                location_group_type=LocationGroupType.ACCELERATOR,
                system_tree_parent=gpus[number % len(gpus)],
                creating_location_group=process,
            )
            stream = define.location("CUDA[0:7]", type=LocationType.ACCELERATOR_STREAM, group=context)
            host, device = (trace.event_writer_from_location(one) for one in (hosts[number], stream))
            for begin in (10 + 20 * number, 50 + 20 * number):
                host.enter(begin, launch)
                host.leave(begin + 1, launch)
                device.enter(begin + 2, kernel)
                device.leave(begin + 15, kernel)
    return whywait.analyze(place / "traces.otf2").gpu()


def test_a_device_that_processes_share_is_idle_while_none_uses_it(tmp_path):
    """MPS: one process may use a device while another leaves it idle."""
    own = shared_device(tmp_path / "own", is_shared=False)
    # Kernels [1.2, 2.5] and [5.2, 6.5], launched at 1 and 5: from 2.5 to 5 the device is starved.
    assert [row["starved"] for row in own.kernels.to_pylist()] == pytest.approx([0, 2.5, 0, 2.5])
    assert [device["ranks"] for device in own.summary()["devices"]] == [[0], [1]]
    one = shared_device(tmp_path / "one", is_shared=True)
    # The other has kernels [3.2, 4.5] and [7.2, 8.5], launched at 3 and 7.
    assert [row["starved"] for row in one.kernels.to_pylist()] == pytest.approx([0, 0.5, 0.5, 0.5])
    assert [row["idle"] for row in one.kernels.to_pylist()] == pytest.approx([0.2, 0.7, 0.7, 0.7])
    (device,) = one.summary()["devices"]
    assert (device["ranks"], device["kernels"]) == ([0, 1], 4)
    assert device["busy"] == pytest.approx(4 * 1.3)


def test_a_real_trace_of_two_devices():
    """Two devices one after the other."""
    place = SHARED / "samples" / "mi300"
    if not place.exists():
        pytest.skip(UNRECORDED)
    result = whywait.analyze(place, causes=False)
    found = result.gpu().summary()
    resolution = result.facts["resolution"]
    assert [round(device["busy"] * resolution) for device in found["devices"]] == [17_520_723_958, 6_024_764_085]
    assert [round(100 * device["share"], 1) for device in found["devices"]] == [65.7, 22.6]
    assert found["imbalance"] == pytest.approx(0.4882, abs=5e-5)
    # The counters of devices say how busy they are: both nearly all of the time that kernels run.
    assert found["efficiency_source"] == "busy"
    assert all(0.7 * one["busy"] < one["adjusted"] <= one["busy"] for one in found["devices"])
    waits = [row for row in result.gpu().synchronizations.to_pylist() if "Event" in row["callpath"][-1]]
    assert [row["waiting"] for row in waits] == pytest.approx([4.735376, 1.628328], abs=5e-7)
    assert [row["completion"] for row in waits] == pytest.approx([61.9e-6, 12.5e-6], abs=5e-8)
    assert (found["launches"], found["unmatched_launches"], found["unmatched_kernels"]) == (2, 0, 0)
    # The second kernel starts before its launch returns.
    light = result.gpu().kernels.to_pylist()[1]
    assert light["launch_leave"] - light["begin"] == pytest.approx(244e-9, abs=2e-9)


def test_without_devices_the_verb_says_so(capsys):
    assert main(["gpu", str(DATA / "p2p")]) == 0
    assert "no accelerators" in capsys.readouterr().out
    assert main(["gpu", str(DATA / "p2p"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["devices"], found["imbalance"], found["launches"]) == ([], None, 0)


def test_the_verb_shows_who_waits(tmp_path, capsys):
    anchor = trace_from_text(EXAMPLES[3][1], tmp_path / "trace")
    assert main(["gpu", str(anchor)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"HIP\[0:0\] +0 +2 +4\.65 s", out)
    assert re.search(r"rank 0 +3\.00 s +program/MPI_Recv", out)


def test_a_written_result_has_no_kernels(tmp_path):
    whywait.analyze(DATA / "p2p", causes=False).write(tmp_path)
    with pytest.raises(whywait.UsageError, match="has no kernels"):
        whywait.load(tmp_path).gpu()


def test_a_report_calls_streams_by_their_names(tmp_path):
    _native.generate("comd-gpu", tmp_path, ranks=2, iterations=2, seed=1)
    assert stream_names(whywait.analyze(tmp_path, causes=False).places) == {1: "HIP[0:0]", 3: "HIP[1:0]"}


def test_most_starved_devices_come_first_where_there_are_many(tmp_path, capsys):
    _native.generate("comd-gpu", tmp_path, ranks=4, iterations=3, seed=1)
    assert main(["gpu", str(tmp_path), "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines = lines[next(number for number, line in enumerate(lines) if line.startswith("Device")) :]
    starved = {one["name"]: one["starved"] for one in whywait.analyze(tmp_path).gpu().summary()["devices"]}
    assert [line.split()[0] for line in lines[1:3]] == sorted(starved, key=starved.get, reverse=True)[:2]
    assert lines[3] == "and 2 that were starved less"


def test_counters_of_streams_adjust_the_load_of_devices(tmp_path, capsys):
    """Eberius, equation 4.5: loads of 1, 1.25 and 2 ms in waves of 0.1 ms, seven of eight threads of a warp."""
    _native.generate("comd-gpu", tmp_path, ranks=3, iterations=2, seed=1, imbalance=1.0)
    devices = whywait.analyze(tmp_path, causes=False).gpu()
    efficiency = [0.875, 0.875 * 1.25 / 1.3, 0.875]
    assert devices.kernels["efficiency"].to_pylist() == pytest.approx([each for each in efficiency for _ in range(2)])
    found = devices.summary()
    assert found["imbalance"] == pytest.approx(2 * 3 / 4.3 - 1, abs=1e-12)
    assert found["imbalance_adjusted"] == pytest.approx(2 * 3 / 4.25 - 1, abs=1e-12)
    assert main(["gpu", str(tmp_path)]) == 0
    assert "devices: 39.53%; adjusted: 41.18%" in capsys.readouterr().out


@pytest.mark.parametrize("names", [[], ["sm_efficiency"]])
def test_a_mean_of_100_percent_is_a_share(names, tmp_path):
    """Rank 1 has 1.5 ms of full waves: integrals and times are rounded, so their quotient can exceed 100%."""
    _native.generate("comd-gpu", tmp_path, ranks=2, iterations=3, seed=1, imbalance=0.5)
    found = whywait.analyze(tmp_path, causes=False).gpu().loads(names)
    warp = 1 if names else 0.875
    adjusted = [process["gpu_time_adjusted"] for process in found["processes"]]
    assert adjusted == pytest.approx([3e-3 * warp, 4.5e-3 * warp], rel=1e-12)


def test_without_counters_no_load_is_adjusted(tmp_path, capsys):
    anchor = trace_from_text(EXAMPLES[3][1], tmp_path)
    found = whywait.analyze(anchor, causes=False).gpu().summary()
    assert found["imbalance_adjusted"] is None
    assert {one["adjusted"] for one in found["devices"]} == {None}
    assert main(["gpu", str(anchor)]) == 0
    assert "adjusted" not in capsys.readouterr().out
