"""Others wait for a call path, and nothing more can be said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.findings.finding import STEADY
from whywait.analysis.findings.groups import who
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside, suffering
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.findings.words import Words
    from whywait.analysis.losses import Bearer

NAME = "late_partner"
TITLE = "Late partner"
DOCUMENT = """\
Others wait for what a rank or thread does in a call path, and the differences of its times do not explain it: it runs
more often, at another time, or begins later. Look at the order of the calls around it. An imbalance that a simulation
saves nothing by balancing is one of these, too.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path, or several below the same one"),
    alone=("name", "the only rank or thread that runs it"),
    worked=("s", "its time in it"),
    who=("name", "the fewest ranks that at least 80% of it is charged to"),
    who_share=("share", "the part of the waiting that is charged to these"),
    explained=("s", "what all others lack of the longest time of a location in the call path, in all"),
)

_OF_ONE = "Let others take a part of it, or go on meanwhile."
_ADVICE = "Look at when it begins on each rank, and at the order of the calls around it."
_OF_RECEIVES = "Post receives earlier, or send by a protocol that does not wait for them."
# Differences that explain no larger share of the waiting are none.
_NONE = 0.01


def detect(run: Run) -> Found:
    """Yield call paths of own code that others wait for."""
    for bearers in run.families(bearer for bearer in run.own() if bearer.waiting > 0):
        yield _finding(run, bearers)
        run.take(*bearers)


def restated(run: Run, found: Finding) -> Finding:
    """Return what remains to be said of an imbalance, if balancing it saves nothing."""
    one = _finding(run, [run.losses.bearer(callpath) for callpath in found.causes])
    one.prices = sorted(found.prices, key=lambda price: price.saved is not None and price.saved <= 0)
    one.unpriced, one.remarks = found.unpriced, found.remarks
    one.values += [value for value in found.values if value.words in " ".join(found.remarks.values())]
    one.is_remainder, one.detected = found.is_remainder, found.rule
    return one


def _finding(run: Run, bearers: list[Bearer]) -> Finding:
    ranks = run.culprits(run.sum_of_costs(bearer.callpath for bearer in bearers))
    loss = sum(bearer.loss for bearer in bearers)
    is_alone = np.count_nonzero(run.sum_of_times(bearer.callpath for bearer in bearers)) == 1
    advice = _OF_RECEIVES if _is_of_receivers(family := run.family(bearers)) else _OF_ONE if is_alone else _ADVICE
    return run.finding(NAME, _sentence(run, bearers, ranks), advice, loss, ranks=ranks, **family)


def _sentence(run: Run, bearers: list[Bearer], ranks: list[int]) -> Words:
    """Say that only one rank or thread runs the call paths, or else for which ranks most of the waiting is."""
    callpaths = [bearer.callpath for bearer in bearers]
    costs = run.sum_of_costs(callpaths)
    place = run.places(callpaths)
    times = run.sum_of_times(callpaths)
    here = np.flatnonzero(times)
    if here.size == 1 and run.locations > 1:
        alone = run.location(int(here[0]))
        return FIGURES.say(
            "Only {alone} runs {place}, for {worked}; ", alone=alone, place=place, worked=float(times[here[0]])
        ) + (suffering(run, bearers) + ".")
    waiting = float(costs.sum())
    who_waits, whose = "others wait", ""
    if run.locations == 2:
        who_waits, whose = f"one {'thread' if run.threads > 1 else 'rank'} waits", " of the other"
    sentence = FIGURES.say(f"{who_waits} {{waiting}} for {{place}}{whose}", waiting=waiting, place=place).capitalized()
    if len(ranks) < run.ranks:
        named = np.isin(run.result.places.rank, ranks)
        sentence += FIGURES.say(
            ", {who_share} of it for {who}",
            who_share=float(costs[named].sum() / costs.sum()),
            who=who(run, np.flatnonzero(named & run.result.places.works)),
        )
    explained = run.lacks(times)
    if explained < _NONE * waiting:
        sentence += ", though its times do not differ"
    elif explained < STEADY * waiting:
        sentence += FIGURES.say("; the differences of its times explain {explained} of it", explained=explained)
    return sentence + beside(run, bearers, waiting)


def _is_of_receivers(family: dict[str, Any]) -> bool:
    """Return whether a good part of the waiting is that of sends for their receives."""
    of_classes = family["evidence"]["of_classes"]
    return bool(of_classes.get("latereceiver", 0.0) >= sum(of_classes.values()) / 3 > 0)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield sends that go on, if they wait for their receives, and making the call path faster."""
    if _is_of_receivers({"evidence": finding.evidence}):
        yield run.changes.early_sends()
    if finding.callpath is not None:
        for factor in (0.75, 0.5, 0.0):
            yield run.changes.faster(finding.callpath, factor, below=bool(finding.merged))
