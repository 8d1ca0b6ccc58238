"""Parallel regions are too small for what it takes to begin and end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.analysis.findings.finding import INSTANCES
from whywait.analysis.findings.words import Figures
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.losses import Bearer

NAME = "small_regions"
TITLE = "Small parallel regions"
DOCUMENT = """\
Creating, synchronizing and joining the team of a parallel region takes at least a quarter of the computation in it, and
threads have cores of their own. All such regions are one finding. Merge parallel regions, let fewer threads take part
(num_threads, the if clause), or give each region more work.
"""
FIGURES = Figures(
    places=("count", "the call paths of such parallel regions"),
    place=("name", "the call path with the largest part of the loss"),
    place_share=("share", "the part of the loss in `place`"),
    regions=("count", "how often a team runs one of them, in all processes together, in the whole run"),
    mean=("s", "the computation in them, divided by how often threads run one of them in the whole run"),
    lost=("s", "the time in which their teams are created, joined and synchronized at barriers, without waiting"),
)

_SHARE = 0.25


class _Region(NamedTuple):
    callpath: int
    parts: list[tuple[Bearer, str]]

    @property
    def loss(self) -> float:
        return sum(bearer.spent[row] for bearer, row in self.parts)


def detect(run: Run) -> Found:
    """Yield the parallel regions whose teams take long."""
    tree = run.result.tree
    found: list[_Region] = []
    for number in range(len(tree)):
        region = run.region(number)
        if region.role == "parallel" and region.paradigm == "openmp" and run.visits(number).max() >= INSTANCES:
            found += _small(run, number, found)
    if not found:
        return
    loss = sum(one.loss for one in found)
    lost = {one.callpath: one.loss for one in found}
    most = max(found, key=lambda one: one.loss)
    visits = np.sum([run.visits(one.callpath) for one in found], axis=0)
    computation = run.computation(np.any([in_subtrees(tree, one.callpath) for one in found], axis=0))
    sentence = FIGURES.say(
        "{regions} parallel regions compute {mean} on each thread on average; creating, synchronizing and joining "
        "their teams takes {lost}",
        regions=sum(_of_teams(run, one.callpath) for one in found),
        mean=computation / visits.sum(),
        lost=loss,
    )
    if len(found) == 1:
        sentence += FIGURES.say(" (all of them {place}).", place=run.place(most.callpath))
    else:
        sentence += FIGURES.say(
            " ({place_share} of it in {place}, one of {places}).",
            place_share=most.loss / loss,
            place=run.place(most.callpath),
            places=len(found),
        )
    for one in found:
        for bearer, row in one.parts:
            bearer.take(row, bearer.spent[row])
    yield run.finding(
        NAME,
        sentence,
        "Merge parallel regions, let fewer threads take part, or give each region more work.",
        loss,
        callpath=most.callpath,
        instances=int(visits.max()),
        evidence={"lost": {run.place(callpath): time for callpath, time in lost.items()}},
    )


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind."""
    yield run.changes.trim()


def _small(run: Run, callpath: int, found: list[_Region]) -> Iterator[_Region]:
    """Yield a parallel region if its team takes long, without what belongs to one that contains it."""
    inside = in_subtrees(run.result.tree, callpath)
    taken = {(id(bearer), row) for one in found for bearer, row in one.parts}
    parts = [
        (bearer, row)
        for bearer in run.slow()
        for row in ("threads.fork_join", "threads.barrier")
        if inside[bearer.callpath] and bearer.spent.get(row) and (id(bearer), row) not in taken
    ]
    region = _Region(callpath, parts)
    if region.loss > 0 and region.loss >= _SHARE * run.computation(inside):
        yield region


def _of_teams(run: Run, callpath: int) -> int:
    """Return how often a team runs a parallel region: in each process as often as the thread with the most visits."""
    rank = run.result.places.rank
    of_ranks = np.zeros(int(rank.max(initial=0)) + 1)
    np.maximum.at(of_ranks, np.maximum(rank, 0), run.visits(callpath))
    return int(of_ranks.sum())
