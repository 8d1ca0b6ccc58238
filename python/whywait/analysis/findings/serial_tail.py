"""At the end, few ranks work while all others wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.groups import is_one, who
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "serial_tail"
TITLE = "Serial tail"
DOCUMENT = """\
In the last tenth of the run, at most a tenth of the ranks works (collects results, writes them) while at least 90% of
the others wait, and at least half of the waiting for the call path is in MPI_Finalize. Let all ranks take part in it,
or do it earlier, while others compute.
"""
FIGURES = Figures(
    LOSSES,
    who=("name", "the fewest ranks that at least 80% of the waiting for the call path is charged to"),
    place=("name", "the call path"),
)

_TAIL, _OTHERS = 0.1, 0.9


def detect(run: Run) -> Found:
    """Yield call paths that run at the end and that others wait for in MPI_Finalize."""
    finalize = run.losses.account.times.get("wait.mpi_finalize_wait", 0.0)
    if not finalize or not run.result.has_causes:
        return
    rank = run.result.places.rank
    barriers = sum(bearer.of_classes.get("barrier", 0.0) for bearer in run.losses.bearers.values())
    for bearer in run.own():
        ranks = run.culprits(bearer.costs) if bearer.waiting else []
        if len(ranks) > run.few() or (last := _last(run, ranks)) is None:
            continue
        # At least so much of it is no waiting at other barriers.
        in_finalize = bearer.of_classes.get("barrier", 0.0) - max(0.0, barriers - finalize)
        if in_finalize < bearer.waiting / 2 or _waiters(run, last) < _OTHERS * (run.ranks - len(ranks)):
            continue
        place = run.place(bearer.callpath)
        alone = int(np.count_nonzero(run.times(bearer.callpath))) == 1
        named = who(run, np.flatnonzero(np.isin(rank, ranks) & run.masters()))
        works = f"{'only ' * alone}{{who}} work{'s' * is_one(named)}"
        yield run.finding(
            NAME,
            FIGURES.say(f"At the end, {works} in {{place}}; ", who=named, place=place)
            + (suffering(run, [bearer], "the ") + "."),
            FIGURES.say("Let all ranks take part in {place}, or run it earlier.", place=place),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks,
            evidence={"finalize": in_finalize, "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def _last(run: Run, ranks: list[int]) -> float | None:
    """Return when the critical path leaves some ranks for the last time, if that is at the end."""
    begin, end = run.losses.account.window
    path = run.result.tables.critical_path
    here = np.isin(run.result.places.rank[path["location"].to_numpy()], ranks)
    last = float(path["to"].to_numpy()[here].max(initial=begin))
    return last if last > end - _TAIL * (end - begin) else None


def _waiters(run: Run, time: float) -> int:
    """Return how many ranks have begun to wait before some time, and wait until then or longer."""
    waits = run.result.tables.wait_states
    enter = waits["enter"].to_numpy()
    here = (enter < time) & (enter + waits["waiting"].to_numpy() >= time)
    return int(np.unique(run.result.places.rank[waits["location"].to_numpy()[here]]).size)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield balancing the tail, or making it faster."""
    if finding.callpath is not None:
        yield run.changes.balance(finding.callpath)
    yield from run.faster(finding, 0.75, 0.0)
