"""A stage of a pipeline takes longer than the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import FIGURES, blames, changes, finding, sentence, takes_longer

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "pipeline_stage"
TITLE = "Slow stage"
DOCUMENT = """\
Devices, or ranks where there are none, wait for messages most of the time, and the kernels or functions of one rank,
or a few, take at least 10% longer than those of the median rank: a stage has too much to do. All of them are one
finding. Move layers to other stages.
"""
_ADVICE = "Move layers from this stage of the pipeline to others."

__all__ = ["DOCUMENT", "FIGURES", "NAME", "TITLE", "changes", "detect"]


def detect(run: Run) -> Found:
    """Yield what it finds, the most waiting first."""
    for blame in blames(run, NAME):
        words = sentence(run, blame, partial(takes_longer, run, blame))
        yield finding(run, blame, words, _ADVICE)
