"""One-sided synchronization between processes that exchange nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "empty_epochs"
TITLE = "Synchronization of processes that exchange nothing"
DOCUMENT = """\
At least 90% of the pairs of processes that fences, flushes or other synchronizations of one-sided communication bring
together exchange no data. Use MPI_Win_post and MPI_Win_start, or locks, and name only those that do. The loss is what
these calls take, without their waiting.
"""
FIGURES = Figures(
    place=("name", "the call path of such calls that takes most"),
    unneeded=("share", "the part of the pairs of processes that exchange nothing, in all such calls of the run"),
    lost=("s", "the time of these calls without their waiting"),
)

_UNNEEDED, _PAIRS = 0.9, 20
_LIBRARIES = ("mpi", "shmem", "armci", "pgas")


def detect(run: Run) -> Found:
    """Yield the time in synchronizations most of whose pairs exchange nothing."""
    profile = run.result.profile
    pairs, unneeded = (np.zeros(len(run.result.tree)) for _ in range(2))
    for library in _LIBRARIES:
        for name, sums in (("count", pairs), ("unneeded_count", unneeded)):
            if (metric := f"{library}_rma_pairsync_{name}") in profile.metrics:
                key, value = profile.cells(metric)
                np.add.at(sums, profile.tree.preorder[key // max(profile.locations, 1)], value)
    empty = (pairs >= _PAIRS) & (unneeded >= _UNNEEDED * pairs)
    bearers = [bearer for bearer in run.slow() if empty[bearer.callpath]]
    rows = ("transfer.needed", "transfer.excess")
    loss = sum(bearer.spent.get(row, 0.0) for bearer in bearers for row in rows)
    if loss <= 0:
        return
    most = max(bearers, key=lambda bearer: sum(bearer.spent.get(row, 0.0) for row in rows))
    for bearer in bearers:
        for row in rows:
            bearer.take(row, bearer.spent.get(row, 0.0))
    share = float(unneeded[empty].sum() / pairs[empty].sum())
    yield run.finding(
        NAME,
        FIGURES.say(
            "{place} synchronizes many for few: {unneeded} of the pairs of processes exchange nothing. Such calls take "
            "{lost}, without their waiting.",
            place=run.place(most.callpath),
            unneeded=share,
            lost=loss,
        ),
        "Use MPI_Win_post and MPI_Win_start, or locks, only between those that exchange data.",
        loss,
        callpath=most.callpath,
        instances=int(run.visits(most.callpath).max()),
        evidence={"pairs": float(pairs[empty].sum()), "unneeded": float(unneeded[empty].sum())},
    )


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind."""
    yield run.changes.trim()
