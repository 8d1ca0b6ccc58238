"""Files are read or written, and others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.findings.files import FIGURES as FILES
from whywait.analysis.findings.files import on_files
from whywait.analysis.findings.groups import who
from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import suffering
from whywait.analysis.findings.words import Figures, Words
from whywait.analysis.io import operations_of

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "io"
TITLE = "I/O"
DOCUMENT = """\
A call path reads, writes, or manages files. The loss is the time in it, and the waiting of others for it. If one rank
does most of it, let all ranks read and write (MPI-IO), or do it on a thread of its own. If operations are smaller than
64 KiB, collect data in a buffer, or use collective operations. Otherwise read or write less, or overlap it with
computation. Call what moves no data (opening, closing) less often, or on fewer ranks.
"""
FIGURES = Figures(
    LOSSES,
    FILES,
    place=("name", "the call path"),
    spent=("s", "the time of I/O in it"),
    moved=("bytes", "the bytes that it reads and writes, in the whole run"),
    operations=("count", "the operations that do so"),
    who=("name", "the fewest ranks that have at least 80% of the time, if these are few"),
    who_share=("share", "the part of the time that they have"),
)

_SMALL = 64 << 10


def detect(run: Run) -> Found:
    """Yield the call paths with I/O."""
    for bearer in [bearer for bearer in run.rest.values() if bearer.kind == "io" and bearer.loss > 0]:
        times = run.times_of(bearer.callpath, "io")
        spent = float(times.sum())
        ranks = run.culprits(times) if spent else []
        is_one = len(ranks) <= run.few() and run.ranks > 1
        found = operations_of(run.result, bearer.callpath)
        sentence = FIGURES.say("{place} takes {spent}", place=run.place(bearer.callpath), spent=spent) + _moved(found)
        sentence += on_files(run, bearer.callpath)
        if is_one:
            here = np.isin(run.result.places.rank, ranks)
            sentence += FIGURES.say(
                ", {who_share} of it on {who}",
                who_share=float(times[here].sum() / spent),
                who=who(run, np.flatnonzero(here & run.result.places.works)),
            )
        if bearer.waiting:
            sentence = sentence + "; " + suffering(run, [bearer])
        yield run.finding(
            NAME,
            sentence + ".",
            advice(found, is_one=is_one),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=ranks if is_one else [],
            instances=int(run.visits(bearer.callpath).sum()),
            evidence={"time": spent, "waiting": bearer.waiting, **found},
        )
        run.take(bearer)


def _moved(found: dict[str, Any]) -> Words:
    if not found["count"]:
        return Words("")
    moved = found["bytes_read"] + found["bytes_written"]
    operations = FIGURES.say(f" in {{operations}} operation{'s' * (found['count'] > 1)}", operations=found["count"])
    return FIGURES.say(" for {moved}", moved=moved) + operations if moved else operations


def advice(found: dict[str, Any], *, is_one: bool) -> str:
    """Return what to do about some operations, which one rank does or several do."""
    reads, writes = found["bytes_read"], found["bytes_written"]
    if not reads + writes:
        return f"Call it less often, or {'do it on a thread of its own' if is_one else 'on fewer ranks'}."
    if (reads + writes) / found["count"] < _SMALL:
        collective = "let all ranks take part (MPI-IO)" if is_one else "use collective operations"
        return f"Collect data in a buffer, or {collective}: fewer and larger operations take less time."
    if is_one:
        return "Let all ranks read and write (MPI-IO), or do it on a thread of its own."
    less = "Read and write" if reads and writes else "Read" if reads else "Write"
    return f"{less} less, or overlap it with computation."
