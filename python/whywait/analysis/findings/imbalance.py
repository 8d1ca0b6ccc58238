"""A call path takes longer on some ranks than on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.few_cores import certainly
from whywait.analysis.findings.finding import STEADY
from whywait.analysis.findings.groups import Groups, is_one, others, two_groups, who
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import EQUAL, Figures, Words

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.losses import Bearer

NAME = "imbalance"
TITLE = "Imbalance of a call path"
DOCUMENT = """\
A call path takes longer on some locations than on others, and the others wait for it: what all others lack of the
longest time is at least half of the waiting. Where two groups explain at least 80% of the variance of the times, the
slower one is named and bears at least a third of the waiting; otherwise, the location with the longest time is.
Call paths below the same one that the same rank delays are one finding. Give the slow rank less work, or
find out why it is slower: other counters (instructions) tell whether it does more.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path, or several below the same one"),
    who=("name", "the ranks or threads with the longest times, those with the most if there are two groups"),
    others=("name", "the other group"),
    factor=("times", "the mean of the times of `who`, as a multiple of that of `others`"),
    who_share=("share", "the part of all time in the call path that `who` has, if the others have hardly any"),
    longest=("times", "the longest time of a location, as a multiple of the mean of those that run it"),
)

_SHARE = 1 / 3
# Who works so many times as long does nearly all.
_FEW = 20.0
# Who has this share of all time works alone: others could take a part of it.
_ALONE = 0.9


def detect(run: Run) -> Found:
    """Yield call paths of own code that some locations are longer in."""
    for bearers in run.families(bearer for bearer in run.own() if _is_uneven(run, bearer)):
        callpaths = [bearer.callpath for bearer in bearers]
        times = run.sum_of_times(callpaths)
        place = run.places(callpaths)
        groups = _named(run, callpaths, times)
        if groups is not None:
            named = who(run, groups.slow)
            if groups.factor < _FEW:
                sentence = FIGURES.say(
                    f"{{who}} work{'s' * is_one(named)} {{factor}} {{others}} in {{place}}",
                    who=named,
                    factor=groups.factor,
                    others=others(run, groups),
                    place=place,
                ).capitalized()
            else:
                sentence = FIGURES.say(
                    f"{{who}} do{'es' * is_one(named)} {{who_share}} of the work in {{place}}",
                    who=named,
                    who_share=float(times[groups.slow].sum() / times.sum()),
                    place=place,
                ).capitalized()
            ranks = np.unique(run.result.places.rank[groups.slow]).tolist()
            they_are = "it is" if is_one(named) else "they are"
            why = ": cores are shared" if certainly(run) is not None else ""
            advice: Words | str = FIGURES.say(
                f"Give {{who}} less work, or find out why {they_are} slower{why}.", who=named
            )
        else:
            slowest = int(times.argmax())
            sentence = FIGURES.say(
                "{place} takes up to {longest} on average (on {who})",
                place=place,
                longest=float(times[slowest] / times[times > 0].mean()),
                who=run.location(slowest),
            )
            ranks = [int(run.result.places.rank[slowest])]
            advice = "Distribute the work more evenly."
        found = run.finding(
            NAME,
            sentence + "; " + suffering(run, bearers) + ".",
            advice,
            sum(bearer.loss for bearer in bearers),
            ranks=ranks,
            **run.family(bearers),
        )
        runs = times > 0
        found.evidence |= {"balance": float(times[runs].mean() / times.max()), "times": times[runs].tolist()}
        yield found
        run.take(*bearers)


def _is_uneven(run: Run, bearer: Bearer) -> bool:
    times = run.times(bearer.callpath)
    if bearer.waiting <= bearer.loss / 2 or np.count_nonzero(times) < 2 or run.steady(bearer) < STEADY:
        return False
    if times.max() < EQUAL * times[times > 0].mean():
        return False
    # Where others are late, their times are not the reason.
    groups = two_groups(times)
    slow = [int(times.argmax())] if groups is None else groups.slow
    of_ranks = np.isin(run.result.places.rank, run.result.places.rank[slow])
    return groups is None or bool(bearer.costs[of_ranks].sum() >= _SHARE * bearer.waiting)


def _named(run: Run, callpaths: list[int], times: npt.NDArray[np.float64]) -> Groups | None:
    """Return who can be named."""
    return None if callpaths[0] in run.kernels else two_groups(times)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing the call path, distributing it, or making the slow ranks as fast as the others."""
    if finding.callpath is None:
        return
    below = bool(finding.merged)
    times = run.sum_of_times(finding.causes)
    if times.max() >= _ALONE * times.sum() and not below:
        yield run.changes.distribute(finding.callpath, run.ranks)
    else:
        yield run.changes.balance(finding.callpath, below=below)
    costs = run.sum_of_costs(finding.causes)
    yield run.changes.like_others(finding.callpath, costs, below=below)
    yield run.changes.faster(finding.callpath, 0.0, below=below)
