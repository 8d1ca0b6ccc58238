"""The account of devices: on the first screen, in the verdict, and on the front page."""

from __future__ import annotations

import pytest
import whywait
from whywait.analysis.devices.use import device_account
from whywait.analysis.findings import rules
from whywait.analysis.findings.finding import Run
from whywait.cli import main
from whywait.report.html.sections.overview import _devices

from tests.test_devices_lost import MS, write_device


def take_turns(device):
    """Forty times a kernel of 0.3 s on the first device, and then one of 0.1 s on the second."""
    for one in range(40):
        at = (1000 + 500 * one) * MS
        for stream, begin, end in ((0, 10, 310), (1, 350, 450)):
            device.call("cuLaunchKernel", at + (begin - 5) * MS, at + begin * MS, stream)
            device.writers[stream].enter(at + begin * MS, device.region("kernel"))
            device.writers[stream].leave(at + end * MS, device.region("kernel"))
            device.call("cuStreamSynchronize", at + (begin + 1) * MS, at + end * MS, stream)
    # Beside both devices, for 3 s.
    device.call("cuMemsetD8_v2", 21_500 * MS, 24_500 * MS)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    place = tmp_path_factory.mktemp("turns") / "run"
    return write_device(place, take_turns, devices=(1, 1), length=24_000 * MS)


def test_it_adds_up(trace):
    result = whywait.analyze(trace)
    found = device_account(result)
    assert found.devices == 2
    assert found.time == pytest.approx(48)
    times = {name: time for name, _, time in found.rows}
    assert sum(times.values()) == pytest.approx(found.time)
    assert found.computes == times["busy.kernel"] == pytest.approx(40 * 0.4)
    assert list(times.values()) == sorted(times.values(), reverse=True)
    front = _devices(result)
    assert [row["time"] for row in front["rows"]] == [time for _, _, time in found.rows]


def test_the_verdict_is_about_what_is_busy_longest(trace, capsys):
    found = whywait.analyze(trace).findings()
    assert found.verdict().startswith("The devices compute 33% of their time. CUDA[0:0] and CUDA[1:0] take turns")
    assert main(["account", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "Where the device time went (48.0 s of 2 devices in the focus)" in out
    assert "Kernels                                 16.0 s   33.3%" in out


def test_devices_at_once_save_no_more_than_the_shorter_one(trace):
    result = whywait.analyze(trace)
    turns = next(one for one in result.findings() if one.rule == "devices_take_turns")
    (price,) = rules()["devices_take_turns"].changes(Run(result), turns)
    assert price.is_bound
    # The second device is busy for 4 s, while the first one is idle.
    assert 0 < price.saved <= 4.0


def test_a_call_that_keeps_devices_idle_is_named(trace):
    found = [one for one in whywait.analyze(trace).findings() if one.rule == "device_starved"]
    (memset,) = (one for one in found if "cuMemsetD8_v2" in one.sentence)
    assert memset.sentence == "cuMemsetD8_v2 keeps both devices waiting, which are idle for 6.00 s."
    assert memset.loss == pytest.approx(6)
    assert memset.share == pytest.approx(6 / 48)


def test_without_devices_there_is_none(tmp_path):
    from tests.tracedsl import trace_from_text

    assert device_account(whywait.analyze(trace_from_text("0: work [0, 1]\n", tmp_path))) is None
