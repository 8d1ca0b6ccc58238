"""A rank's data loader makes the devices of others wait."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import FIGURES, blames, changes, finding, sentence, takes_longer

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "straggler_loading"
TITLE = "Slow data loader"
DOCUMENT = """\
The data loader of one rank, or a few, takes longer than that of the others, and devices, or ranks where there are
none, wait at least a percent of their time for it. Give it more workers, let it prefetch, pin memory, and see which
part of the data this rank reads. The loss is time of devices, as that of all rules about them, or else of CPUs.
"""
_ADVICE = "Use more workers of the data loader, prefetch, and pin memory; see which part of the data this rank reads."

__all__ = ["DOCUMENT", "FIGURES", "NAME", "TITLE", "changes", "detect"]


def detect(run: Run) -> Found:
    """Yield what it finds, the most waiting first."""
    for blame in blames(run, NAME):
        words = sentence(run, blame, partial(takes_longer, run, blame))
        yield finding(run, blame, words, _ADVICE)
