"""Devices wait since the stages of a pipeline work one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.blame import OF_MANY as FIGURES
from whywait.analysis.findings.blame import blames, finding

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "pipeline_bubble"
TITLE = "Bubble of a pipeline"
DOCUMENT = """\
Devices, or ranks where there are none, wait for messages most of the time, and at least a percent of their time for
ranks that are no slower than others: filling and draining the pipeline takes it. Use more microbatches, or interleave
the stages. It follows the slower stages, which can be mended first.
"""


def detect(run: Run) -> Found:
    """Yield what no slower rank explains."""
    for blame in blames(run, NAME):
        words = FIGURES.say(
            f"{blame.who.words} wait {{waiting}} for ranks that work one after another, most of it for {{place}}.",
            waiting=blame.waiting,
            place=run.place(blame.callpaths[0]),
        ).capitalized()
        advice = "Use more microbatches, interleave the stages, and give each as much work."
        found = finding(run, blame, words, advice)
        found.is_remainder = True
        yield found
