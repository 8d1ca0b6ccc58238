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

NAME = "imbalance"
TITLE = "Imbalance of a call path"
DOCUMENT = """\
A call path takes longer on some locations than on others, and the others wait for it: the mean of its times is below
90% of the longest, or below 97% if one location has at least 40% of the costs, or the differences of its times in all
are at least half of the waiting. Give the slow rank less work, or find out why it is slower: other counters
(instructions) tell whether it does more.
"""

_MOST, _ALMOST = 0.4, 0.97


def detect(run: Run) -> Iterator[Finding]:
    """Yield call paths of own code that some locations are longer in."""
    for bearer in run.own():
        if bearer.waiting <= bearer.loss / 2:
            continue
        times = run.times(bearer.callpath)
        runs = times > 0
        balance = run.balance(bearer.callpath)
        most = float(bearer.costs.max() / bearer.waiting)
        is_uneven = balance < BALANCED or (most >= _MOST and balance < _ALMOST) or run.steady(bearer) >= STEADY
        if runs.sum() < 2 or not is_uneven:
            continue
        ranks = run.culprits(bearer.costs)
        slow = np.isin(run.result.places.rank, ranks) & runs
        others = times[runs & ~slow]
        place = run.place(bearer.callpath)
        if others.size and others.mean() > 0 and len(ranks) <= run.few() and bearer.callpath not in run.kernels:
            factor = times[slow].max() / others.mean()
            verb = "works" if len(ranks) == 1 else "work"
            sentence = f"{run.who(ranks)} {verb} {times_as(factor)} the others in {place}; "
            advice = f"Give {run.who(ranks).lower()} less work, or find out why it is slower."
        else:
            slowest = int(times.argmax())
            factor = times[slowest] / times[runs].mean()
            sentence = f"{place} takes up to {times_as(factor)} on average (on {run.location(slowest)}); "
            advice = f"Distribute the work of {place} more evenly."
        yield run.finding(
            NAME,
            f"{sentence}others wait {seconds(bearer.waiting)} for it.",
            advice,
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks,
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"balance": balance, "times": times[runs].tolist(), "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield balancing the call path, or making the slow ranks as fast as the others."""
    if finding.callpath is None:
        return
    if (balance := run.changes.balance(finding.callpath)) is not None:
        yield balance
    costs = run.losses.bearer(finding.callpath).costs
    if (like_others := run.changes.like_others(finding.callpath, costs)) is not None:
        yield like_others
    yield run.changes.faster(finding.callpath, 0.0)
