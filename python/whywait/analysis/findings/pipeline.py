"""Ranks work one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import BALANCED, STEADY, Price
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "pipeline"
TITLE = "Pipeline or wavefront"
DOCUMENT = """\
A call path takes as long on three ranks or more (the mean of its times is at least 90% of the longest, or their
differences explain less than a tenth of the waiting), but each waits for the one before it: at least 40% of the waiting
is passed on along chains, at least a third of it in waits for messages, and no rank is charged with 80% of it. The
differences of its times in all explain less than half of it, as do those of what ranks compute in each iteration, and
those of its n-th pieces between calls. Filling and draining the pipeline takes the time. Use smaller blocks, more
sweeps at once, or start the next sweep before the last has ended. Balancing work does not help.
"""
FIGURES = Figures(
    place=("name", "the call path"),
    passed_on=("share", "the part of the waiting charged to it that it causes through other waits"),
    filling=("share", "the waiting charged to it, as a part of the CPU time of the focus"),
)

_PASSED_ON, _CHAIN = 0.4, 3
# Before a barrier that ends each sweep, ranks wait as long as for messages.
_MESSAGES = 1 / 3
# Differences that explain no larger share of the waiting do not matter.
_HARDLY = 0.1


def detect(run: Run) -> Found:
    """Yield balanced call paths whose costs are passed on from rank to rank."""
    for bearer in run.own():
        waiting = bearer.waiting
        if waiting <= 0 or (run.balance(bearer.callpath) < BALANCED and run.steady(bearer) >= _HARDLY):
            continue
        if bearer.long_term < _PASSED_ON * waiting or bearer.of_messages < _MESSAGES * waiting:
            continue
        if run.steady(bearer) >= STEADY or run.takes_turns(bearer):
            continue
        if len(run.culprits(bearer.costs)) < 2:
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


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield the bound: the same work without filling and draining. No single change does that."""
    saved = finding.loss / max(run.locations, 1)
    yield Price("the same work without filling and draining", "no fill", "Without filling", None, saved, is_bound=True)
