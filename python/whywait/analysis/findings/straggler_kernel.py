"""A rank's kernel takes longer than the same kernel elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import (
    FIGURES,
    blames,
    changes,
    finding,
    have_own_shapes,
    sentence,
    takes_longer,
)

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "straggler_kernel"
TITLE = "Slow kernel"
DOCUMENT = """\
A kernel takes longer on one rank, or a few, than on the others, which run it as often, and devices wait at least a
percent of their time for it. If the shapes of its inputs are recorded, they are the same. Otherwise compare them: if
they are equal, look at clocks, temperature and errors of the device, or try another node; if not, the work is uneven.
"""
_ADVICE = "Compare the shapes of this kernel; if equal, look at clock, temperature and errors of the device."
_SAME = (
    "Look at clock, temperature and errors of the device, or try another node: the shapes of its inputs are the same."
)

__all__ = ["DOCUMENT", "FIGURES", "NAME", "TITLE", "changes", "detect"]


def detect(run: Run) -> Found:
    """Yield what it finds, the most waiting first."""
    for blame in blames(run, NAME):
        words = sentence(run, blame, partial(takes_longer, run, blame))
        is_same = have_own_shapes(run, blame.callpaths[0], blame.ranks) is False
        yield finding(run, blame, words, _SAME if is_same else _ADVICE)
