"""One rank works while all others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "one_does_all"
TITLE = "One rank does all"
DOCUMENT = """\
Only one rank runs a call path (it reads, writes, or decides), while at least 90% of the others wait for it.
Distribute it over all ranks, or let others go on meanwhile. For reading and writing, let all ranks take part (MPI-IO).
"""

_OTHERS, _RANKS = 0.9, 3


def detect(run: Run) -> Iterator[Finding]:
    """Yield call paths of one rank that all others wait for."""
    for bearer in sorted(run.rest.values(), key=lambda bearer: (-bearer.loss, bearer.callpath)):
        if bearer.kind not in {"own", "io"} or run.ranks < _RANKS or bearer.waiting <= 0:
            continue
        visited = np.unique(run.result.places.rank[run.visits(bearer.callpath) > 0])
        worked = float(run.times(bearer.callpath).sum()) + bearer.spent.get("io", 0.0)
        if visited.size != 1 or bearer.waiting < _OTHERS * (run.ranks - 1) * worked:
            continue
        place = run.place(bearer.callpath)
        how = "Let all ranks read and write (MPI-IO)" if bearer.kind == "io" else f"Distribute {place} over the ranks"
        yield run.finding(
            NAME,
            f"Only rank {visited[0]} works in {place}, for {seconds(worked)}; all others wait for it.",
            f"{how}, or let the others go on meanwhile.",
            bearer.loss,
            callpath=bearer.callpath,
            ranks=visited.tolist(),
            instances=int(run.visits(bearer.callpath).max()),
            evidence={"worked": worked, "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield making it faster; at best, all ranks share it."""
    if finding.callpath is not None and not run.region(finding.callpath).is_library:
        yield run.changes.faster(finding.callpath, 0.75)
        yield run.changes.faster(finding.callpath, 0.5)
        yield run.changes.faster(finding.callpath, 0.0)
