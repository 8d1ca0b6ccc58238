"""Files are read or written, and others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from whywait.analysis.findings.finding import CULPRIT
from whywait.analysis.findings.words import percent, seconds, volume
from whywait.analysis.io import operations_of
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Run

NAME = "io"
TITLE = "I/O"
DOCUMENT = """\
A call path reads, writes, or manages files. The loss is the time in it, and the waiting of others for it. If one rank
does most of it, let all ranks read and write (MPI-IO), or do it on a thread of its own. If operations are smaller than
64 KiB, collect data in a buffer, or use collective operations. Otherwise write less, or overlap it with computation.
"""

_SMALL = 64 << 10


def detect(run: Run) -> Iterator[Finding]:
    """Yield the call paths with I/O."""
    for bearer in [bearer for bearer in run.rest.values() if bearer.kind == "io" and bearer.loss > 0]:
        times = _times(run, bearer.callpath)
        spent = float(times.sum())
        ranks = run.culprits(times) if spent else []
        is_one = len(ranks) <= run.few() and run.ranks > 1
        found = operations_of(run.result, bearer.callpath)
        sentence = f"{run.place(bearer.callpath)} takes {seconds(spent)}{_moved(found)}"
        if is_one:
            sentence += f", {percent(CULPRIT)} or more of it on {run.who(ranks).lower()}"
        if bearer.waiting:
            sentence += f"; others wait {seconds(bearer.waiting)} for it"
        yield run.finding(
            NAME,
            sentence + ".",
            _advice(found, is_one=is_one),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks if is_one else [],
            instances=int(run.visits(bearer.callpath).sum()),
            evidence={"time": spent, "waiting": bearer.waiting, **found},
        )
        run.take(bearer)


def _times(run: Run, callpath: int) -> npt.NDArray[np.float64]:
    """Return the time of I/O in a call path by location, in the focus."""
    cells = run.losses.account.cells
    of_path = pc.and_(pc.equal(cells["callpath"], callpath), pc.equal(cells["row"].cast("string"), "io"))
    here = cells.filter(pc.fill_null(of_path, False))
    return sum_at(here["location"].to_numpy(), here["time"].to_numpy(), run.result.profile.locations)


def _moved(found: dict[str, Any]) -> str:
    if not found["count"]:
        return ""
    moved = volume(found["bytes_read"] + found["bytes_written"])
    return f" for {moved} in {found['count']:,} operation{'s' if found['count'] > 1 else ''}"


def _advice(found: dict[str, Any], *, is_one: bool) -> str:
    if is_one:
        return "Let all ranks read and write (MPI-IO), or do it on a thread of its own."
    if found["count"] and (found["bytes_read"] + found["bytes_written"]) / found["count"] < _SMALL:
        return "Collect data in a buffer, or use collective operations: fewer and larger operations take less time."
    return "Write less, or overlap it with computation."
