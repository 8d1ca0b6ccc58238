"""At the end, few ranks work while all others wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.groups import is_one, who
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "serial_tail"
TITLE = "Serial tail"
DOCUMENT = """\
In the last tenth of the run, at most a tenth of the ranks works (collects results, writes them) while the
others already wait, most of them in MPI_Finalize. Let all ranks take part in it, or do it earlier, beside the
computation.
"""
FIGURES = Figures(
    who=("name", "the fewest ranks that at least 80% of the waiting for the call path is charged to"),
    place=("name", "the call path"),
    worked=("s", "their time in it on the critical path"),
)

_TAIL = 0.1


def detect(run: Run) -> Iterator[Finding]:
    """Yield call paths that run at the end and that others wait for in MPI_Finalize."""
    finalize = run.losses.account.times.get("wait.mpi_finalize_wait", 0.0)
    if not finalize or not run.result.has_causes:
        return
    begin, end = run.losses.account.window
    path = run.result.tables.critical_path
    at_end = (path["to"].to_numpy() > end - _TAIL * (end - begin)) & (path["from"].to_numpy() < end)
    rank = run.result.places.rank
    last = set(rank[path["location"].to_numpy()[at_end]].tolist())
    for bearer in run.own():
        ranks = run.culprits(bearer.costs) if bearer.waiting else []
        of_barriers = bearer.of_classes.get("barrier", 0.0)
        if len(ranks) > run.few() or not last & set(ranks) or 2 * min(of_barriers, finalize) < bearer.waiting:
            continue
        worked = float(run.times(bearer.callpath, "computation.critical")[np.isin(rank, ranks)].sum())
        if not worked:
            continue
        place = run.place(bearer.callpath)
        alone = int(np.count_nonzero(run.times(bearer.callpath))) == 1
        named = who(run, np.flatnonzero(np.isin(rank, ranks) & run.masters()))
        what = f"{'only ' * alone}{{who}} work{'s' * is_one(named)}"
        yield run.finding(
            NAME,
            FIGURES.say(
                f"At the end, {what} in {{place}} for {{worked}} while the others wait.",
                who=named,
                place=place,
                worked=worked,
            ),
            FIGURES.say("Let all ranks take part in {place}, or run it earlier.", place=place),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks,
            evidence={"worked": worked, "finalize": finalize, "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield balancing the tail, or making it faster."""
    if finding.callpath is None:
        return
    if (balance := run.changes.balance(finding.callpath)) is not None:
        yield balance
    yield run.changes.faster(finding.callpath, 0.75)
    yield run.changes.faster(finding.callpath, 0.0)
