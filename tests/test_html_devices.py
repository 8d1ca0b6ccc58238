"""The view of devices in the HTML report, and what waits for busy devices look like."""

from __future__ import annotations

from pathlib import Path

import pytest
import whywait

from tests.browser import Viewer
from tests.test_devices_lost import MS, copies_behind_kernels, write_device


def two_devices(device):
    """Copies behind kernels on the first device, a kernel on the second, and a launch whose kernel is lost."""
    copies_behind_kernels(device)
    device.call("cuLaunchKernel", 22_100 * MS, 22_110 * MS, 1)
    device.writers[1].enter(22_150 * MS, device.region("solve"))
    device.writers[1].leave(22_450 * MS, device.region("solve"))
    device.call("cuStreamSynchronize", 22_150 * MS, 22_460 * MS, 1)
    device.call("cuLaunchKernel", 22_500 * MS, 22_510 * MS, 1)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("devices")
    result = whywait.analyze(write_device(directory / "run", two_devices, devices=(1, 1)))
    result.write_html(directory / "report.html")
    return directory / "report.html"


def texts(viewer, selector):
    return viewer.js("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector)


def test_the_view_shows_devices_kernels_and_copies(browser, page):
    viewer = Viewer(browser, page).open("#devices")
    viewer.until("document.querySelectorAll('.devices .stack').length === 2")
    labels = viewer.js("return [...document.querySelectorAll('.devices .stack')].map((one) => one.ariaLabel)")
    assert labels[0].startswith("CUDA[0:0]: Kernels 17.3%, Copies 54.5%")
    assert "Idle, other device runs" in labels[1]
    assert texts(viewer, ".devices h2") == [
        "What the devices did", "Efficiencies", "Kernels", "Copies", "Hosts", "Odd records",
    ]  # fmt: skip
    rows = texts(viewer, ".devices tbody tr")
    assert any(row.split("\t")[:6] == ["to host", "CUDA[0:0]", "4", "4.00 GiB", "12.0 s", "341 MiB"] for row in rows)
    assert any(row.split("\t")[:4] == ["kernel", "CUDA[0:0]", "4", "3.80 s"] for row in rows)
    assert texts(viewer, ".devices .odd li") == ["1 launch without a kernel: rank 0 at 21.500000 s"]


def test_a_host_that_waits_for_a_busy_device_is_not_bad(browser, page):
    viewer = Viewer(browser, page).open("#overview")
    viewer.until("document.querySelector('.verdict') !== null")
    assert viewer.js("return document.querySelector('.verdict .bad')") is None
    assert viewer.js("return document.querySelectorAll('.stack .part.waiting').length") == 0


def test_what_the_verdict_is_about_comes_first(browser, page):
    viewer = Viewer(browser, page).open("#overview")
    viewer.until("document.querySelector('.verdict') !== null")
    assert texts(viewer, ".verdict")[0].startswith("The devices compute")
    assert [text.split("\n")[0] for text in texts(viewer, ".of-devices h3")] == ["The devices", "The CPUs"]
    bars = viewer.js("return [...document.querySelectorAll('.card .stack')].slice(0, 2).map((one) => one.ariaLabel)")
    assert "Idle, other device runs" in bars[0]


def test_runs_without_devices_have_no_such_view(browser, tmp_path):
    whywait.analyze(Path(__file__).parent / "data" / "p2p").write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("")
    assert "Devices" not in texts(viewer, "nav a")
