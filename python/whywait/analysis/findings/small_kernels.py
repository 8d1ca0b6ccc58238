"""Kernels are short, compared with the time that it takes to launch one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.host_bound import idle
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "small_kernels"
TITLE = "Small kernels"
DOCUMENT = """\
Kernels take less than five times as long on average as launching one: devices wait for launches. Give each kernel
more work, merge kernels, or launch them as a graph. Where hosts bound the run as a whole, that is the finding. The
loss is the launch latency, in time of devices.
"""
FIGURES = Figures(
    kernels=("count", "the kernels, in the whole run"),
    mean=("s", "what a kernel takes on average, in the whole run"),
    launch=("s", "the time from a launch to the begin of its kernel on an idle device, on average, in the whole run"),
    idle=("s", "the time of devices that are idle in between, in the focus"),
)

_TIMES = 5


def detect(run: Run) -> Found:
    """Yield the latency of launches."""
    if (found := small(run)) is None or idle(run) is not None:
        return
    number, length, latency, loss = found
    yield run.finding(
        NAME,
        FIGURES.say(
            "{kernels} kernels take {mean} on average, and launching one takes {launch}: devices are idle for {idle} "
            "between a launch and its begin.",
            kernels=number,
            mean=length,
            launch=latency,
            idle=loss,
        ),
        "Give each kernel more work, merge kernels, or launch them as a graph.",
        loss,
        base="device",
        instances=number,
        evidence={"idle": {"latency": loss}, "kernels": number, "mean": length, "launch": latency},
    )


def small(run: Run) -> tuple[int, float, float, float] | None:
    """Return number, mean length and latency of kernels, and the time lost, if they are small."""
    loss = sum(line["time"] for line in run.device_lines if line["row"] == "latency")
    number = sum(int(run.visits(callpath).sum()) for callpath in run.kernels)
    if not number or loss <= 0:
        return None
    length = sum(run.total("time", callpath) for callpath in run.kernels) / number
    latency = run.result.profile.total("gpu_launch_latency") / number
    return (number, length, latency, loss) if length < _TIMES * latency else None
