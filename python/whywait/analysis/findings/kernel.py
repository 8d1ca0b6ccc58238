"""The kernel that most of the run goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "kernel"
TITLE = "The longest kernel"
DOCUMENT = """\
Devices run kernels for at least 70% of the time: little is lost, and the kernel that takes most of it is what remains
to be made faster. It is no loss; it says where the time goes.
"""
FIGURES = Figures(
    kernel=("name", "the kernel with the longest time"),
    time=("s", "its time, in the whole run"),
    time_share=("share", "the same as a part of that of all kernels"),
)

_BUSY = 0.7


def detect(run: Run) -> Found:
    """Yield the kernel with most of the time, if devices are busy."""
    lines, total = run.device_lines, run.device_time
    if not total or sum(line["time"] for line in lines if line["row"] == "busy.kernel") < _BUSY * total:
        return
    times = {number: run.total("time", number) for number in run.kernels}
    if not times or not run.length:
        return
    longest = max(times, key=lambda number: times[number])
    devices = len({line["device"] for line in lines})
    finding = run.finding(
        NAME,
        FIGURES.say(
            "{kernel} takes {time}, {time_share} of the time of all kernels.",
            kernel=run.region(longest).name,
            time=times[longest],
            time_share=times[longest] / sum(times.values()),
        ),
        "Make this kernel faster: its memory accesses, its occupancy, its precision.",
        0.0,
        callpath=longest,
        base="run",
        instances=int(run.visits(longest).sum()),
        evidence={"time": times[longest], "kernels": len(times)},
    )
    finding.share = times[longest] / (devices * run.length)
    yield finding


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the kernel faster."""
    yield from run.faster(finding, 0.75, 0.5)
