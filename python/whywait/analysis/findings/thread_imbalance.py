"""A construct takes longer on some threads of a team than on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import BALANCED, STEADY
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "thread_imbalance"
TITLE = "Imbalance of threads"
DOCUMENT = """\
A call path takes longer on some threads than on others of their process: the mean of their times is below 90% of the
longest, and what the threads lack of the longest of their process is at least half of the waiting. The others wait at
the next barrier of the team. Distribute the work more evenly; where it is a loop, another schedule or chunk size may do
that.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path"),
    uneven=("times", "the longest time of a thread of a process in it, as a multiple of the mean of its threads"),
)

_CLASSES = frozenset({"ompbarrier"})
_LOOPS = frozenset({"loop", "for", "taskloop"})


def detect(run: Run) -> Found:
    """Yield call paths that some threads of a process are longer in."""
    places = run.result.places
    for bearer in run.own() if run.threads > 1 else ():
        of_teams = sum(time for name, time in bearer.of_classes.items() if name in _CLASSES)
        times = run.times(bearer.callpath)
        if of_teams <= bearer.loss / 2:
            continue
        runs = times > 0
        team = np.bincount(places.rank[runs & (places.rank >= 0)], times[runs & (places.rank >= 0)])
        size = np.bincount(places.rank[runs & (places.rank >= 0)])
        longest = np.zeros(team.size)
        np.maximum.at(longest, places.rank[runs & (places.rank >= 0)], times[runs & (places.rank >= 0)])
        several = size > 1
        if not several.any() or team[several].sum() >= BALANCED * (size * longest)[several].sum():
            continue
        if (size * longest - team).sum() < STEADY * bearer.waiting:
            continue
        place = run.place(bearer.callpath)
        uneven = float((size * longest)[several].sum() / team[several].sum())
        is_loop = any(run.region(number).role in _LOOPS for number in _above(run, bearer.callpath))
        advice = FIGURES.say("Distribute the work of {place} more evenly among the threads", place=place)
        advice += ": try another schedule or chunk size." if is_loop else "."
        yield run.finding(
            NAME,
            FIGURES.say(
                "The slowest thread of a process takes {uneven} its threads on average in {place}; ",
                uneven=uneven,
                place=place,
            )
            + (suffering(run, [bearer]) + "."),
            advice,
            bearer.loss,
            callpath=bearer.callpath,
            ranks=run.culprits(bearer.costs),
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"times": times[runs].tolist(), "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing the threads of each process."""
    if finding.callpath is not None:
        yield run.changes.balance(finding.callpath, among="process")
        yield run.changes.faster(finding.callpath, 0.0)


def _above(run: Run, callpath: int) -> Iterator[int]:
    """Yield a call path and those that contain it, up to its parallel region."""
    tree = run.result.tree
    while callpath >= 0:
        yield callpath
        if run.region(callpath).role == "parallel":
            return
        callpath = int(tree.parents[callpath])
