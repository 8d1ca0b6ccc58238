"""A rank's host makes the devices of others wait, or the other ranks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import FIGURES, blames, changes, finding, is_pause, sentence, takes_longer

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "straggler_host"
TITLE = "Slow host"
DOCUMENT = """\
The host of one rank, or a few, is late, and not its kernels: other devices, or other ranks where there are none, wait
at least a percent of their time for what it does. A garbage collection on one rank delays all. Otherwise pin CPUs,
and look for other processes on that node. The time of a call path is that of its whole visits in recorded steps.
"""
_RANK = "Give it as much work as the others, or find out why it is slower: its cores, and other processes on its node."
_ADVICE = "See what the host does there: pin its CPUs, and look for other processes on its node."
_COLLECTS = "Freeze what lives long (gc.freeze), and collect garbage on all ranks in the same step."

__all__ = ["DOCUMENT", "FIGURES", "NAME", "TITLE", "changes", "detect"]


def detect(run: Run) -> Found:
    """Yield what it finds, the most waiting first."""
    for blame in blames(run, NAME):
        words = sentence(run, blame, partial(takes_longer, run, blame))
        advice = _RANK if blame.who.base == "cpu" and len(blame.ranks) == 1 else _ADVICE
        yield finding(run, blame, words, _COLLECTS if is_pause(run, blame.callpaths[0]) else advice)
