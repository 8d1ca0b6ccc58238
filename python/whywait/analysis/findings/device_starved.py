"""A device is idle because its host does something else first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.small_kernels import small
from whywait.analysis.findings.words import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "device_starved"
TITLE = "Starved device"
DOCUMENT = """\
A device is idle for at least a tenth of the time, because a host that launches its kernels computes, waits, or
is about to launch. Launch earlier, or do the work of the host meanwhile. The loss is time of devices, not of
CPUs.
"""

_LEAST = 0.1
_ROWS = frozenset({"idle.computes", "idle.waits", "latency"})


def detect(run: Run) -> Iterator[Finding]:
    """Yield what the hosts do most while their devices are idle."""
    lines = run.result.tables.device_account.to_pylist()
    total = sum(line["time"] for line in lines)
    # Of small kernels, the latency has another reason.
    rows = _ROWS if small(run) is None else _ROWS - {"latency"}
    idle = [line for line in lines if line["row"] in rows]
    loss = sum(line["time"] for line in idle)
    if not total or loss < _LEAST * total:
        return
    most = max(idle, key=lambda line: line["time"])
    place = "Each launch" if most["callpath"] is None else f"On the host, {run.place(most['callpath'])}"
    finding = run.finding(
        NAME,
        f"{place} keeps the device waiting: it is idle for {seconds(loss)}.",
        "Launch kernels earlier, or do this work while they run.",
        loss,
        callpath=most["callpath"],
        base="device",
        evidence={row: sum(line["time"] for line in idle if line["row"] == row) for row in sorted(_ROWS)},
    )
    finding.share = loss / total
    yield finding


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield making the host faster."""
    if finding.callpath is not None and run.region(finding.callpath).paradigm not in {
        "cuda",
        "hip",
        "opencl",
        "openacc",
    }:
        yield run.changes.faster(finding.callpath, 0.75)
        yield run.changes.faster(finding.callpath, 0.0)
