"""Ranks work one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import BALANCED, STEADY, Price
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Run

NAME = "pipeline"
TITLE = "Pipeline or wavefront"
DOCUMENT = """\
A call path takes as long on three ranks or more, but each waits for the one before it: at least 40% of the waiting is
passed on along chains, most of it in waits for messages, no rank is charged with 80% of it, and the differences of
its times in all explain less than half of it, as do those of what ranks compute in each iteration. Filling and
draining the pipeline takes the time. Use smaller blocks, more sweeps at once, or start the next sweep before the last
has ended. Balancing work does not help.
"""
FIGURES = Figures(
    place=("name", "the call path"),
    passed_on=("share", "the part of the waiting charged to it that it causes through other waits"),
    filling=("share", "the waiting charged to it, as a part of the CPU time of the focus"),
)

_PASSED_ON, _CHAIN = 0.4, 3


def detect(run: Run) -> Iterator[Finding]:
    """Yield balanced call paths whose costs are passed on from rank to rank."""
    for bearer in run.own():
        waiting = bearer.waiting
        if waiting <= 0 or run.balance(bearer.callpath) < BALANCED:
            continue
        if bearer.long_term < _PASSED_ON * waiting or bearer.of_messages < waiting / 2:
            continue
        if run.steady(bearer) >= STEADY or run.alternates or len(run.culprits(bearer.costs)) < 2:
            continue
        if np.unique(run.result.places.rank[run.times(bearer.callpath) > 0]).size < _CHAIN:
            continue
        sentence = FIGURES.say(
            "Ranks work one after the other in {place}: each waits for the one before it, and {passed_on} of this "
            "waiting is passed on. Filling and draining takes {filling} of the time.",
            place=run.place(bearer.callpath),
            passed_on=bearer.long_term / waiting,
            filling=waiting / run.time,
        )
        advice = "Use smaller blocks, more sweeps at once, or start the next sweep before the last has ended."
        yield run.finding(
            NAME,
            sentence,
            advice,
            bearer.loss,
            callpath=bearer.callpath,
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"long_term": bearer.long_term, "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield the bound: the same work without filling and draining. No single change does that."""
    saved = finding.loss / max(run.locations, 1)
    yield Price("the same work without filling and draining", "no fill", "Without filling", None, saved, is_bound=True)
