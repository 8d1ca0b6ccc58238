"""Devices copy instead of computing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from whywait.analysis.findings.finding import Price
from whywait.analysis.findings.words import Figures, Words, devices

if TYPE_CHECKING:
    from typing import Any

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "copies"
TITLE = "Copies of devices"
DOCUMENT = """\
Copies keep devices busy without a kernel, or hosts in blocking copies keep them idle, for at least a tenth of their
time. Leave data on the device, copy less, or copy on a stream of its own while kernels run. The loss is time of
devices.
"""
FIGURES = Figures(
    copies=("s", "the time of devices in copies without a kernel, or idle while their host is in one that blocks"),
    devices=("name", "the devices of the run"),
    blocking=("share", "the part of it in which hosts are in copies that block"),
)

_LEAST = 0.1
_COPY = re.compile(r"mem_?cpy|copy|enqueue(read|write)", re.IGNORECASE)


def detect(run: Run) -> Found:
    """Yield the time that copies take from kernels."""
    lines, total = run.device_lines, run.device_time
    found = [line for line in lines if is_copy(run, line)]
    loss = sum(line["time"] for line in found)
    if not total or loss < _LEAST * total:
        return
    blocking = sum(line["time"] for line in found if line["row"] != "busy.copy")
    which, _ = devices(names := {line["device"] for line in lines})
    also = FIGURES.say(", {blocking} of it in blocking calls", blocking=blocking / loss) if blocking else Words("")
    yield run.finding(
        NAME,
        FIGURES.say("Copies take {copies} in which no kernel runs on {devices}", copies=loss, devices=which)
        + also
        + ".",
        "Leave data on the device, copy less, or copy on a stream of its own while kernels run.",
        loss,
        base="device",
        evidence={"idle": {"copies": loss - blocking, "blocking copies": blocking}, "devices": len(names)},
    )


def changes(_: Run, finding: Finding) -> Proposed:
    """Yield the bound: all copies overlap with kernels."""
    saved = finding.loss / finding.evidence["devices"]
    yield Price(
        "all copies while kernels run", "overlapped", "With copies while kernels run", None, saved, is_bound=True
    )


def is_copy(run: Run, line: dict[str, Any]) -> bool:
    """Return whether a row of the account of devices is a copy, or a host in a copy that blocks."""
    if line["row"] == "busy.copy":
        return True
    callpath = line["callpath"]
    return (
        line["row"] in {"starved.call", "starved.sync"}
        and callpath is not None
        and bool(_COPY.search(run.region(callpath).name))
    )
