"""Devices transfer and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "exposed_transfer"
TITLE = "Exposed transfers"
DOCUMENT = """\
Devices transfer data between each other for more than 10% of the time without computing meanwhile, and wait for
each other less than that. Overlap transfers with computation: other sizes of buckets, other sharding, prefetching.
"""
FIGURES = Figures(
    transfers=(
        "s",
        "the time of devices in which only kernels run that communicate, and none waits for another device",
    ),
    part=("share", "the same as a part of the time of devices"),
)

_LEAST = 0.1


def detect(run: Run) -> Found:
    """Yield the transfers that nothing hides."""
    loss, total = in_rows(run, "comm.transfer", "comm.excess"), run.device_time
    if loss <= _LEAST * total or loss <= in_rows(run, "comm.wait."):
        return
    words = FIGURES.say(
        "GPUs transfer data for {transfers}, {part} of their time, and compute nothing meanwhile.",
        transfers=loss,
        part=loss / total,
    )
    advice = "Overlap transfers with computation: sizes of buckets, sharding, prefetching."
    yield run.finding(NAME, words, advice, loss, base="device")
