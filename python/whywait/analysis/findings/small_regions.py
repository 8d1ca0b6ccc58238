"""Parallel regions are too small for what it takes to begin and end them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.finding import INSTANCES
from whywait.analysis.findings.words import seconds
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.analysis.losses import Bearer

NAME = "small_regions"
TITLE = "Small parallel regions"
DOCUMENT = """\
Creating, synchronizing and joining the team of a parallel region takes at least a quarter of the computation in it, and
threads have cores of their own. Merge parallel regions, let fewer threads take part (num_threads, the if clause), or
give each region more work.
"""

_SHARE = 0.25


def detect(run: Run) -> Iterator[Finding]:
    """Yield parallel regions whose team takes long."""
    tree = run.result.tree
    regions = [number for number in range(len(tree)) if run.region(number).role == "parallel"]
    for region in regions:
        if run.region(region).paradigm != "openmp":
            continue
        inside = in_subtrees(tree, region)
        parts = [
            (bearer, row)
            for bearer in run.slow()
            for row in ("threads.fork_join", "threads.barrier")
            if inside[bearer.callpath] and bearer.spent.get(row)
        ]
        loss = sum(bearer.spent[row] for bearer, row in parts)
        computation = run.computation(inside)
        visits = int(run.visits(region).max())
        if loss <= 0 or loss < _SHARE * computation or visits < INSTANCES:
            continue
        _take(parts)
        team = int((run.visits(region) > 0).sum() / max(run.ranks, 1))
        yield run.finding(
            NAME,
            f"{visits:,} parallel regions {run.place(region)} compute {seconds(computation / visits / max(team, 1))} "
            f"on each thread; starting and ending them takes {seconds(loss)}.",
            "Merge parallel regions, let fewer threads take part, or give each region more work.",
            loss,
            callpath=region,
            instances=visits,
            evidence={"computation": computation, "visits": visits},
        )


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield trimming all calls to the fastest of their kind."""
    yield run.changes.trim()


def _take(parts: list[tuple[Bearer, str]]) -> None:
    for bearer, row in parts:
        bearer.take(row, bearer.spent[row])
