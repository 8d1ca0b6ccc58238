"""Ranks have no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import LEAST
from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "missing_ranks"
TITLE = "Ranks without a trace"
DOCUMENT = """\
Devices communicate with ranks of which no trace is there, for at least a percent of their time beyond what the
transfers need: whether that is transfer or waiting, and for whom, is unknown. Record all ranks of a group.
"""
FIGURES = Figures(
    unseen=("s", "the time of devices in kernels that communicate with them, beyond what the transfers need"),
)


def detect(run: Run) -> Found:
    """Yield what cannot be explained without the missing ranks."""
    traces = run.result.facts.get("traces")
    unseen = in_rows(run, "comm.unseen")
    total = run.device_time
    if not traces or not traces["missing"] or not total or unseen < LEAST * total:
        return
    words = FIGURES.say("GPUs transfer data to ranks without a trace, or wait for them, for {unseen}.", unseen=unseen)
    yield run.finding(NAME, words, "Record all ranks of a group.", unseen, base="device")
