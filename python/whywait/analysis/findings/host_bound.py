"""Hosts launch too slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "host_bound"
TITLE = "Bound by hosts"
DOCUMENT = """\
In a run of PyTorch, most devices are idle for more than 15% of the time because hosts compute or launch, and half
of the kernels take less than four times as long as half of the launching calls: hosts cannot keep up. Launch
graphs, merge kernels, or compile the model.
"""
FIGURES = Figures(
    devices=("count", "the devices that are idle for more than 15% of the time because hosts compute or launch"),
    of=("count", "all devices"),
    idle=("s", "the time of devices that are idle for that"),
    kernel=(
        "s",
        "the median of the mean lengths of kernels that compute, weighted by how often they run, in the whole run",
    ),
    launch=("s", "the same of the calls that launch"),
)

_ROWS = ("starved.host", "latency")
_IDLE, _TIMES = 0.15, 4


def detect(run: Run) -> Found:
    """Yield the time of devices that hosts cannot keep busy."""
    loss = idle(run)
    if loss is None:
        return
    number, of = len(_bound(run)), len(_times(run))
    kernel, launch = run.once(_lengths)
    words = FIGURES.say(
        "Hosts keep {devices} of {of} GPUs waiting for {idle}: a kernel takes {kernel}, launching it {launch}.",
        devices=number,
        of=of,
        idle=loss,
        kernel=kernel,
        launch=launch,
    )
    yield run.finding(NAME, words, "Launch graphs, merge kernels, or compile the model.", loss, base="device")


def idle(run: Run) -> float | None:
    """Return the time for which hosts keep devices waiting, if hosts are what bounds the run."""
    times = _times(run)
    if not run.result.facts.get("traces") or not times or 2 * len(_bound(run)) <= len(times):
        return None
    kernel, launch = run.once(_lengths)
    return sum(lost for lost, _ in times.values()) if 0 < kernel < _TIMES * launch else None


def _times(run: Run) -> dict[str, tuple[float, float]]:
    """Return for each device the time that it is idle because of its host, and all of its time."""
    times: dict[str, tuple[float, float]] = {}
    for line in run.device_lines:
        lost, whole = times.get(line["device"], (0.0, 0.0))
        times[line["device"]] = lost + line["time"] * (line["row"] in _ROWS), whole + line["time"]
    return times


def _bound(run: Run) -> list[str]:
    return [device for device, (lost, whole) in _times(run).items() if lost > _IDLE * whole]


def _lengths(run: Run) -> tuple[float, float]:
    """Return the median length of kernels, and that of the calls that launch; 0 if there are none."""
    tree = run.result.tree
    launches = [callpath for callpath in range(len(tree)) if "Launch" in run.region(callpath).name]
    return _median(run, run.kernels), _median(run, [one for one in launches if one not in run.kernels])


def _median(run: Run, callpaths: list[int]) -> float:
    number = np.array([float(run.visits(callpath).sum()) for callpath in callpaths])
    time = np.array([run.total("time", callpath) for callpath in callpaths])
    if not number.sum():
        return 0.0
    mean = time / np.maximum(number, 1.0)
    order = np.argsort(mean)
    half = int(np.searchsorted(np.cumsum(number[order]), number.sum() / 2))
    return float(mean[order][half])
