"""Sends take until their receiver calls the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, volume

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "rendezvous"
TITLE = "Sends that wait until the receiver calls MPI"
DOCUMENT = """\
Calls that send take longer than they need until their receiver, which computes, calls MPI: at least 80% of the excess
of the calls that send as much lies before that. Such messages go by rendezvous, and the library of the receiver does
not answer while it computes. Raise the eager limit, post receives early and test them, or use asynchronous progress.
Sends that wait for a receive that is not yet posted are another matter: Late Receiver.
"""
FIGURES = Figures(
    calls=("count", "the calls that are held up"),
    sizes=("name", "the bytes of the smallest and of the largest of these"),
    lost=("s", "the part of their excess that lies before the receiver calls MPI"),
    place=("name", "the call path with most of it"),
    place_share=("share", "the part of it there"),
)

_SHARE = 0.8


def detect(run: Run) -> Found:
    """Yield the excess of calls that are held up by their receivers."""
    found = run.reasons("held_up")
    held, excess = (sum(row[name] for row in found) for name in ("time", "excess"))
    if not found or held < _SHARE * excess:
        return
    loss = 0.0
    bearers = {bearer.callpath: bearer for bearer in run.slow() if bearer.kind == "library"}
    for row in found:
        if (bearer := bearers.get(row["callpath"])) is not None:
            loss += bearer.take("transfer.excess", row["time"])
    if loss <= 0:
        return
    calls = sum(row["calls"] for row in found)
    smallest, largest = min(row["smallest"] for row in found), max(row["largest"] for row in found)
    most = max(found, key=lambda row: row["time"])
    size = volume(smallest) if smallest == largest else f"{volume(smallest)} to {volume(largest)}"
    yield run.finding(
        NAME,
        FIGURES.say(
            "{calls} calls that send {sizes} take {lost} longer than they need, until the receiver calls MPI "
            "({place_share} of it in {place}).",
            calls=calls,
            sizes=size,
            lost=loss,
            place_share=most["time"] / held,
            place=run.place(most["callpath"]),
        ),
        "Raise the eager limit, let receivers test their requests while they compute, or use asynchronous progress.",
        loss,
        callpath=most["callpath"],
        instances=calls,
        evidence={"calls": found, "largest": largest},
    )


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield sending these messages eagerly, and trimming the calls."""
    yield run.changes.eager(finding.evidence["largest"])
    yield run.changes.trim()
