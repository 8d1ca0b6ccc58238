"""Many call paths make others wait a little each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.finding import CULPRIT
from whywait.analysis.findings.groups import who
from whywait.analysis.findings.words import UNSEEN, Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.losses import Bearer

NAME = "scattered"
TITLE = "Many places"
DOCUMENT = """\
At least 20 call paths, or groups of siblings that the same rank delays, are to blame for less than 1% of the CPU time
each, and for at least 5% together: no single one would be shown. The deepest call path is named that has at least 80%
of it below. Balance what runs there as a whole, or synchronize less often.
"""
FIGURES = Figures(
    waiting=("s", "the waiting that the cost model charges to these call paths"),
    paths=("count", "how many they are"),
    below=("name", "the deepest call path with at least 80% of it below"),
    who=("name", "the fewest ranks that at least 80% of it is charged to, if these are not all"),
    who_share=("share", "the part of the waiting that is charged to these"),
)

_EACH, _ALL, _MANY = 0.01, 0.05, 20


def detect(run: Run) -> Found:
    """Yield the waiting for call paths of own code that are nothing each, and much together."""
    groups = run.families(bearer for bearer in run.own() if bearer.waiting > 0 and bearer.loss < _EACH * run.time)
    small = [bearer for group in groups if sum(one.loss for one in group) < _EACH * run.time for bearer in group]
    loss = sum(bearer.loss for bearer in small)
    if len(small) < _MANY or loss < _ALL * run.time:
        return
    callpath = _above(run, small)
    costs = np.sum([bearer.costs for bearer in small], axis=0)
    ranks = run.culprits(costs)
    waits = "one rank waits {waiting} for the other" if run.locations == 2 else "others wait {waiting}"
    sentence = FIGURES.say(
        f"{waits} because of {{paths}} call paths below {{below}}, none of which has a percent of the time",
        waiting=float(costs.sum()),
        paths=len(small),
        below=run.place(callpath).removeprefix(UNSEEN),
    ).capitalized()
    if len(ranks) < run.ranks:
        named = np.isin(run.result.places.rank, ranks)
        sentence += FIGURES.say(
            "; {who_share} of it is for {who}",
            who_share=float(costs[named].sum() / costs.sum()),
            who=who(run, np.flatnonzero(named & run.result.places.works)),
        )
    yield run.finding(
        NAME,
        sentence + ".",
        "Balance what runs there as a whole, or synchronize less often.",
        loss,
        callpath=callpath,
        ranks=ranks if len(ranks) < run.ranks else [],
        merged=sorted(bearer.callpath for bearer in small),
        evidence={"paths": len(small), "of_classes": run.family(small)["evidence"]["of_classes"]},
    )
    run.take(*small)


def _above(run: Run, bearers: list[Bearer]) -> int:
    """Return the deepest call path that has most of the losses of some call paths below."""
    parents = run.result.tree.parents
    below: dict[int, float] = {}
    depths: dict[int, int] = {}
    for bearer in bearers:
        line = [bearer.callpath]
        while parents[line[-1]] >= 0:
            line.append(int(parents[line[-1]]))
        for depth, callpath in enumerate(reversed(line)):
            below[callpath] = below.get(callpath, 0.0) + bearer.loss
            depths[callpath] = depth
    enough = CULPRIT * sum(bearer.loss for bearer in bearers)
    most = [callpath for callpath, loss in below.items() if loss >= enough]
    # Threads may have roots of their own.
    return max(most or below, key=lambda callpath: (depths[callpath], below[callpath], -callpath))


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing all that runs below."""
    if finding.callpath is not None:
        yield run.changes.balance(finding.callpath, below=True)
