"""Operations on files take longer while others are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.sharing import FIGURES, evidence, shared, slower

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "file_contention"
TITLE = "Contention of the file system"
DOCUMENT = """\
Operations on files of one kind and size take longer while others are under way: by at least 20%, and the more others,
the longer (Pearson's r of at least 0.4). They share the file system. Let fewer ranks read and write at a time, use
collective operations (MPI-IO), or larger and fewer ones. The loss is the excess over those with the fewest others. Only
runs of up to a million events are searched.
"""


def detect(run: Run) -> Found:
    """Yield the call paths whose operations take longer beside others."""
    for row in shared(run, "files"):
        bearer = run.rest.get((row["callpath"], "io"))
        if bearer is None or bearer.loss <= 0:
            continue
        yield run.finding(
            NAME,
            FIGURES.say("An operation of {place}", place=run.place(row["callpath"]))
            + slower(row, "operations")
            + ": they share the file system.",
            "Let fewer ranks read and write at a time, or use collective operations.",
            min(row["excess"], bearer.loss),
            callpath=row["callpath"],
            instances=row["samples"],
            evidence=evidence(row),
        )
        if row["excess"] >= bearer.loss / 2:
            run.take(bearer)
