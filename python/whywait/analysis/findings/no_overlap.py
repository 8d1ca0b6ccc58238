"""Transfers of non-blocking requests do not progress while the program computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "no_overlap"
TITLE = "Transfers that do not progress"
DOCUMENT = """\
Non-blocking messages of 8 KiB and more are posted long before they are completed, both sides are ready, and a function
computes in between. Still, in at least 20 calls and half of them, completion takes at least 80% of what it takes where
nothing could be hidden. Use a library or a setting with asynchronous progress, or call MPI_Test inside the function.
Compared are calls without waiting with those that waited for their partner first.
"""
FIGURES = Figures(
    during=("name", "the call path that computes between the call that posts and the one that completes"),
    calls=("count", "the calls that complete such messages"),
    place=("name", "the call path with most of their time"),
    lost=("s", "their time"),
)


def detect(run: Run) -> Found:
    """Yield the completion of requests that had enough time before."""
    found = run.reasons("unprogressed")
    bearers = {bearer.callpath: bearer for bearer in run.slow() if bearer.kind == "library"}
    loss = 0.0
    for row in found:
        if (bearer := bearers.get(row["callpath"])) is None:
            continue
        needed = bearer.take("transfer.needed", row["needed"])
        loss += needed + bearer.take("transfer.excess", row["excess"])
        _reduce(run, run.region(row["callpath"]).name, needed)
    if loss <= 0:
        return
    most = max(found, key=lambda row: row["needed"] + row["excess"])
    calls = sum(row["calls"] for row in found)
    during = run.place(most["during"])
    yield run.finding(
        NAME,
        FIGURES.say(
            "Transfers do not progress while {during} computes: {calls} calls that complete them, {place} most of all, "
            "take {lost}, as long as if nothing had been sent before.",
            during=during,
            calls=calls,
            place=run.place(most["callpath"]),
            lost=loss,
        ),
        FIGURES.say(
            "Use a library or a setting with asynchronous progress, or call MPI_Test inside {during}.", during=during
        ),
        loss,
        callpath=most["callpath"],
        instances=calls,
        evidence={"calls": found},
    )


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield trimming the calls that complete the transfers."""
    if finding.callpath is not None:
        yield run.changes.trim(finding.callpath)


def _reduce(run: Run, region: str, time: float) -> None:
    """Take what calls of a region need as explained, from the kinds with the most bytes on."""
    for kind in sorted(run.kinds, key=lambda kind: -kind["bytes_from"]):
        if kind["region"] == region and time > 0:
            part = min(time, kind["needed"])
            kind["needed"] -= part
            time -= part
