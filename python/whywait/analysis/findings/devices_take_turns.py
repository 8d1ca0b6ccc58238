"""Devices are busy one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.finding import Price
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "devices_take_turns"
TITLE = "Devices take turns"
DOCUMENT = """\
A device is idle for at least a tenth of the time, because its host waits for another device before it launches
the next kernel here. Launch the kernels of all devices before waiting for any of them. The loss is time of
devices.
"""
FIGURES = Figures(
    devices=("name", "all devices of the run"),
    idle=("s", "the time of devices that are idle while their host waits for another one, before a launch"),
)

_LEAST = 0.1


def detect(run: Run) -> Found:
    """Yield the time in which hosts wait for other devices."""
    lines, total = run.device_lines, run.device_time
    idle: dict[str, float] = {}
    for line in lines:
        if line["row"] == "starved.other_device":
            idle[line["device"]] = idle.get(line["device"], 0.0) + line["time"]
    loss = sum(idle.values())
    if not total or loss < _LEAST * total:
        return
    names = sorted({line["device"] for line in lines})
    which = " and ".join(names) if len(names) == 2 else f"{len(names)} devices"
    yield run.finding(
        NAME,
        FIGURES.say(
            "{devices} take turns: they are idle for {idle} while the host waits for another one.",
            devices=which,
            idle=loss,
        ),
        "Launch the kernels of all devices before waiting for one of them.",
        loss,
        base="device",
        evidence={"idle": idle},
    )


def changes(_: Run, finding: Finding) -> Proposed:
    """Yield the bound: all devices run at the same time."""
    # The device that is busy longest waits least: the others could run meanwhile.
    saved = min(finding.evidence["idle"].values())
    yield Price("the devices at the same time", "at once", "At the same time", None, saved, is_bound=True)
