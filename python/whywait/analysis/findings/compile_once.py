"""Kernels are compiled while the profiler records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.device_rows import lines_of
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "compile_once"
TITLE = "Compilation"
DOCUMENT = """\
Devices are idle for more than 2% of the time while a host compiles kernels, captures graphs or loads code. That
happens once: warm up longer before recording, or keep a cache of compiled kernels.
"""
FIGURES = Figures(
    place=("name", "the call path in which most of it happens"),
    idle=("s", "the time of devices that are idle meanwhile"),
)

LEAST = 0.02


def detect(run: Run) -> Found:
    """Yield the time of devices that wait for compilation."""
    lines = lines_of(run, "starved.compile")
    loss, total = sum(line["time"] for line in lines), run.device_time
    if not lines or loss <= LEAST * total:
        return
    callpath = max(lines, key=lambda line: line["time"])["callpath"]
    words = FIGURES.say(
        "Hosts compile or load kernels in {place}; GPUs are idle for {idle} meanwhile.",
        place=run.place(callpath),
        idle=loss,
    )
    advice = "Warm up longer before recording; if it recurs, keep compiled kernels in a cache."
    yield run.finding(NAME, words, advice, loss, callpath=callpath, base="device")
