"""One rank works while all others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.files import FIGURES as FILES
from whywait.analysis.findings.files import on_files
from whywait.analysis.findings.io import advice as advice_on_files
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import Figures
from whywait.analysis.io import operations_of

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.findings.words import Words

NAME = "one_does_all"
TITLE = "One rank does all"
DOCUMENT = """\
One rank has at least 95% of the time in a call path (it reads, writes, or decides), while at least 90% of the others
wait for it. Distribute it over all ranks, or let others go on meanwhile. For reading and writing, let all ranks take
part (MPI-IO).
"""
FIGURES = Figures(
    LOSSES,
    FILES,
    rank=("name", "the rank"),
    place=("name", "the call path"),
    worked=("s", "the time of the rank in the call path"),
    worked_share=("share", "the same as a part of the time of all ranks in it"),
)

_OTHERS, _RANKS, _ALONE = 0.9, 2, 0.95


def detect(run: Run) -> Found:
    """Yield call paths of one rank that all others wait for."""
    rank = np.maximum(run.result.places.rank, 0)
    for bearer in sorted(run.rest.values(), key=lambda bearer: (-bearer.loss, bearer.callpath)):
        if bearer.kind not in {"own", "io"} or run.ranks < _RANKS or bearer.waiting <= 0:
            continue
        row = "io" if bearer.kind == "io" else None
        worked = np.bincount(rank, run.times_of(bearer.callpath, row))
        visited = np.unique(rank[run.visits(bearer.callpath) > 0])
        most = int(worked.argmax()) if worked.any() else int(visited[0])
        share = float(worked[most] / worked.sum()) if worked.any() else 1.0
        # Of two ranks, one that works longer is an imbalance unless it works alone.
        if share < _ALONE or bearer.waiting < _OTHERS * (run.ranks - 1) * worked[most]:
            continue
        if np.bincount(rank, bearer.costs)[most] < _OTHERS * bearer.waiting:
            continue
        place = run.place(bearer.callpath)
        values = {"rank": f"rank {most}", "place": place}
        if visited.size == 1:
            does = "calls" if bearer.kind == "io" else "works in"
            sentence = FIGURES.say(f"Only {{rank}} {does} {{place}}", **values)
        else:
            sentence = FIGURES.say(
                "{rank} does {worked_share} of the work in {place}", worked_share=share, **values
            ).capitalized()
        if bearer.kind == "io":
            sentence += on_files(run, bearer.callpath)
        sentence += FIGURES.say(", for {worked}", worked=float(worked[most]))
        others = "the other" if run.ranks == 2 else "the others"
        sentence = sentence + "; " + suffering(run, [bearer], "the ") + "."
        advice: Words | str = FIGURES.say(
            f"Distribute {{place}} over the ranks, or let {others} go on meanwhile.", place=place
        )
        if bearer.kind == "io":
            advice = advice_on_files(operations_of(run.result, bearer.callpath), is_one=True)
        yield run.finding(
            NAME,
            sentence,
            advice,
            bearer.loss,
            callpath=bearer.callpath,
            ranks=[most],
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"worked": float(worked[most]), "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield distributing it over all ranks, and making it faster."""
    if finding.callpath is not None and not run.region(finding.callpath).is_library:
        yield run.changes.distribute(finding.callpath, run.ranks)
        yield run.changes.faster(finding.callpath, 0.5)
        yield run.changes.faster(finding.callpath, 0.0)
