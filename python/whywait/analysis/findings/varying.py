"""A call path takes longer now on one rank and now on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import BALANCED, INSTANCES, STEADY
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "varying"
TITLE = "Varying times"
DOCUMENT = """\
A call path takes as long on all ranks in total, but now longer on one and now on another: the mean of its times is at
least 90% of the longest, or differences in its n-th pieces between calls are a quarter of it and explain at least half
of the waiting; and no rank has more than twice its share of the costs. Where pieces cannot be compared, but there are
iterations of the main loop, what ranks lack of the longest computation of each is at least half of the waiting. At
least 60% of the waiting is not passed on, unless these differences also explain most of all waiting for own code and
are a quarter of the computation. Either the work changes from rank to rank, or it is noise; counters of instructions
tell. Distribute the work of each step, or synchronize less often, so that differences even out.
"""
FIGURES = Figures(LOSSES, place=("name", "the call path"))

_PASSED_ON, _SHARE = 0.4, 2.0


def detect(run: Run) -> Found:
    """Yield balanced call paths that others wait for, now on this rank and now on that."""
    for bearer in run.own():
        if run.ranks < 2 or bearer.waiting <= bearer.loss / 2:
            continue
        if run.balance(bearer.callpath) < BALANCED and not run.takes_turns(bearer):
            continue
        by_rank = np.bincount(np.maximum(run.result.places.rank, 0), bearer.costs)
        # Of two ranks, one may have up to three quarters.
        most = min(_SHARE / run.ranks, 0.75) * bearer.waiting
        if (bearer.long_term >= _PASSED_ON * bearer.waiting and not run.takes_turns(bearer)) or by_rank.max() > most:
            continue
        differences = run.differences_in(bearer.callpath)
        if differences is not None and differences < STEADY * bearer.waiting:
            continue
        place = run.place(bearer.callpath)
        sentence = FIGURES.say("{place} takes longer now on one rank and now on another; ", place=place)
        sentence += suffering(run, [bearer]) + "."
        if run.locations == 2:
            sentence = FIGURES.say(
                "{place} takes longer now on one rank and now on the other; they wait {waiting} for each other.",
                place=place,
                waiting=bearer.waiting,
            )
        yield run.finding(
            NAME,
            sentence,
            "Find out whether the work varies or its speed, and synchronize less often.",
            bearer.loss,
            callpath=bearer.callpath,
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"by_rank": by_rank.tolist(), "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing each instance, and all as long as their median."""
    if finding.callpath is not None:
        yield run.changes.balance(finding.callpath)
        if finding.instances and finding.instances >= INSTANCES:
            yield run.changes.median(finding.callpath)
        yield run.changes.faster(finding.callpath, 0.0)
