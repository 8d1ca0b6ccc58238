"""Profilers start apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.waiters import waiting
from whywait.analysis.findings.words import Figures
from whywait.analysis.focus import focused

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "window_start"
TITLE = "Profilers started apart"
DOCUMENT = """\
The first operation has more than a fifth of the waiting of devices for each other, because the profilers of ranks
started apart: that lies before the focus. Let the profiler's schedule warm up, and look at later steps. It is no
loss of the program.
"""
FIGURES = Figures(
    before=("s", "the waiting of devices for each other before the focus"),
    part=("share", "the same as a part of all such waiting"),
)

_LEAST = 0.2


def detect(run: Run) -> Found:
    """Yield the waiting before all ranks had met."""
    result = run.result
    whole, inside = waiting(result.profile), waiting(focused(result).profile)
    if result.facts.get("focus_rule") != "profiler" or whole - inside <= _LEAST * whole:
        return
    words = FIGURES.say(
        "{part} of the waiting of GPUs, {before}, is for profilers that started or stopped apart, and is left out.",
        before=whole - inside,
        part=(whole - inside) / whole,
    )
    advice = "Begin the profiler's schedule with warm-up steps on all ranks."
    found = run.finding(NAME, words, advice, 0.0, base="run")
    found.share = (whole - inside) / whole
    yield found
