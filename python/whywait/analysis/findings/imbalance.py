"""A call path takes longer on some ranks than on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import BALANCED, STEADY
from whywait.analysis.findings.words import seconds
from whywait.analysis.findings.words import times as times_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.analysis.losses import Bearer

NAME = "imbalance"
TITLE = "Imbalance of a call path"
DOCUMENT = """\
A call path takes longer on some locations than on others, and the others wait for it: the mean of its times is below
90% of the longest, or below 97% if one location has at least 40% of the costs, or the differences of its times in all
are at least half of the waiting. Call paths below the same one that the same rank delays are one finding. Give the
slow rank less work, or find out why it is slower: other counters (instructions) tell whether it does more.
"""

_MOST, _ALMOST = 0.4, 0.97


def detect(run: Run) -> Iterator[Finding]:
    """Yield call paths of own code that some locations are longer in."""
    for bearers in run.families(bearer for bearer in run.own() if _is_uneven(run, bearer)):
        callpaths = [bearer.callpath for bearer in bearers]
        times = run.sum_of_times(callpaths)
        runs = times > 0
        costs = run.sum_of_costs(callpaths)
        ranks = run.culprits(costs)
        slow = np.isin(run.result.places.rank, ranks) & runs
        others = times[runs & ~slow]
        place = run.places(callpaths)
        if others.size and others.mean() > 0 and len(ranks) <= run.few() and callpaths[0] not in run.kernels:
            factor = times[slow].max() / others.mean()
            verb = "works" if len(ranks) == 1 else "work"
            sentence = f"{run.who(ranks)} {verb} {times_as(factor)} the others in {place}; "
            advice = f"Give {run.who(ranks).lower()} less work, or find out why it is slower."
        else:
            slowest = int(times.argmax())
            factor = times[slowest] / times[runs].mean()
            sentence = f"{place} takes up to {times_as(factor)} on average (on {run.location(slowest)}); "
            advice = f"Distribute the work of {place} more evenly."
        found = run.finding(
            NAME,
            f"{sentence}others wait {seconds(float(costs.sum()))} for it.",
            advice,
            sum(bearer.loss for bearer in bearers),
            ranks=ranks,
            **run.family(bearers),
        )
        found.evidence |= {"balance": float(times[runs].mean() / times.max()), "times": times[runs].tolist()}
        yield found
        run.take(*bearers)


def _is_uneven(run: Run, bearer: Bearer) -> bool:
    if bearer.waiting <= bearer.loss / 2 or np.count_nonzero(run.times(bearer.callpath)) < 2:
        return False
    balance = run.balance(bearer.callpath)
    most = float(bearer.costs.max() / bearer.waiting)
    return balance < BALANCED or (most >= _MOST and balance < _ALMOST) or run.steady(bearer) >= STEADY


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield balancing the call path, or making the slow ranks as fast as the others."""
    if finding.callpath is None:
        return
    below = bool(finding.merged)
    if (balance := run.changes.balance(finding.callpath, below=below)) is not None:
        yield balance
    costs = run.sum_of_costs(finding.causes)
    if (like_others := run.changes.like_others(finding.callpath, costs, below=below)) is not None:
        yield like_others
    yield run.changes.faster(finding.callpath, 0.0, below=below)
