"""Threads queue for a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "lock_convoy"
TITLE = "Queue for a lock"
DOCUMENT = """\
At least 20 times threads wait for a lock or a critical section, and in at least half of this time three or more wait
for the same one. Make the section shorter, divide what it protects among several locks, or collect results in each
thread and combine them once.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "what the owner of the lock is in"),
    waiting=("s", "the waiting for locks that the cost model charges to it"),
    queued=("share", "the part of the time of waits for locks in `lock` in which at least three wait for the same one"),
    lock=("name", "the call path with the longest of these waits"),
)

_WAITS, _QUEUED = 20, 0.5


def detect(run: Run) -> Found:
    """Yield what owners of a lock do while others queue for it."""
    found = [row for row in run.reasons("convoys") if row["waits"] >= _WAITS]
    found = [row for row in found if row["queued"] >= _QUEUED * row["time"]]
    if not found:
        return
    most = max(found, key=lambda row: row["time"])
    for bearer in sorted(run.rest.values(), key=lambda bearer: (-bearer.loss, bearer.callpath)):
        of_locks = sum(time for name, time in bearer.of_classes.items() if name.endswith("_lock"))
        if bearer.waiting <= 0 or of_locks <= bearer.waiting / 2:
            continue
        place = run.place(bearer.callpath)
        yield run.finding(
            NAME,
            FIGURES.say(
                "Threads queue for a lock: they wait {waiting} because another one is in {place}. In {queued} of the "
                "time that {lock} waits, at least three threads do",
                waiting=of_locks,
                place=place,
                queued=most["queued"] / most["time"],
                lock=run.place(most["callpath"]),
            )
            + beside(run, [bearer], of_locks),
            FIGURES.say(
                "Shorten {place}, divide what the lock protects among several, or combine the results of threads once.",
                place=place,
            ),
            bearer.loss,
            callpath=bearer.callpath,
            instances=sum(row["waits"] for row in found),
            evidence={"locks": found, "of_classes": bearer.of_classes},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the section that the lock protects twice as fast."""
    if finding.callpath is not None and run.region(finding.callpath).paradigm in {"user", "compiler", "openmp"}:
        yield run.changes.faster(finding.callpath, 0.5)
        yield run.changes.faster(finding.callpath, 0.0)
