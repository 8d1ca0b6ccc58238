"""A rank runs a kernel more often than others, or on more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import FIGURES as SHARED
from whywait.analysis.findings.blame import (
    SLOWER,
    blames,
    calls,
    changes,
    finding,
    of_both,
    sentence,
    takes_longer,
    usual_shapes,
)
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.blame import Blame
    from whywait.analysis.findings.finding import Found, Run
    from whywait.analysis.findings.words import Words

NAME = "uneven_work"
TITLE = "Uneven work"
DOCUMENT = """\
One rank, or a few, run a kernel at least 10% more often than the others, or on inputs of other shapes (where these are
recorded), and devices wait at least a percent of their time for that: batches, experts, sequences or layers are
distributed unevenly. Balance them.
"""
FIGURES = Figures(
    SHARED,
    oftener=("share", "by how much more often `who` run the kernel in a step than the mean of the other ranks"),
    shapes=("name", "the shapes of its inputs that are most frequent on `who`"),
    elsewhere=("name", "those that are most frequent on most of the other ranks"),
)
_ADVICE = "Balance what the ranks get: batches, experts, lengths of sequences, or layers."

__all__ = ["DOCUMENT", "FIGURES", "NAME", "TITLE", "changes", "detect"]


def detect(run: Run) -> Found:
    """Yield what it finds, the most waiting first."""
    for blame in blames(run, NAME):
        yield finding(run, blame, sentence(run, blame, partial(_oftener, run, blame)), _ADVICE)


def _oftener(run: Run, blame: Blame, longer: float, factor: float, each: float) -> Words:
    callpath = blame.callpaths[0]
    own, other = of_both(calls(run, callpath), blame.ranks)
    if other <= 0:
        return FIGURES.say("{place} runs only there.", place=run.place(callpath))
    if own <= SLOWER * other:
        shapes, elsewhere = usual_shapes(run, callpath, blame.ranks)
        words = " Its inputs have other shapes there: mostly {shapes}, elsewhere {elsewhere}."
        return takes_longer(run, blame, longer, factor, each) + FIGURES.say(words, shapes=shapes, elsewhere=elsewhere)
    return FIGURES.say("{place} runs {oftener} more often there.", place=run.place(callpath), oftener=own / other - 1)
