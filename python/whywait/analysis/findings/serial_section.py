"""Threads are idle while their master works alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import who_waits
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "serial_section"
TITLE = "Serial section"
DOCUMENT = """\
The master of a process runs a call path outside of parallel regions, or a team runs it that has fewer threads than the
process, while the other threads have no work. Parallelize it, or make it faster.
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the call path"),
    threads=("count", "the threads of the process that has most"),
    running=("count", "the threads of a process that run it, at most"),
    ranks=("name", "the ranks that run it, of several"),
)

# A smaller part of a loss has no words.
_PART = 0.1


def detect(run: Run) -> Found:
    """Yield call paths of own code that keep threads idle."""
    places = run.result.places
    threads = int(places.thread[places.works].max(initial=0)) + 1
    for bearer in run.own():
        if bearer.idle <= bearer.loss / 2:
            continue
        place = run.place(bearer.callpath)
        times = run.times(bearer.callpath)
        of_ranks = np.bincount(np.maximum(places.rank, 0), times > 0)
        running = max(1, int(of_ranks.max(initial=0)))
        of_all = "{running}" if running > 1 else "one"
        named: dict[str, int | str] = {"running": running} if running > 1 else {}
        where, idle = "", f"the other{'s are' * (threads > 2) or ' is'} idle for {{idle}}"
        if run.ranks > 1:
            here = np.flatnonzero(of_ranks)
            named["ranks"] = f"rank {here[0]}" if here.size == 1 else f"{here.size:,} ranks"
            if here.size == run.ranks:
                named["ranks"] = "each rank"
            where = " of {ranks}"
            if here.size > 1:
                idle = "the others are idle for {idle} in all"
        sentence = FIGURES.say(
            f"{{place}} runs on {of_all} of {{threads}} threads{where}: {idle}",
            place=place,
            threads=threads,
            idle=bearer.idle,
            **named,
        )
        if bearer.waiting >= _PART * bearer.loss:
            sentence += FIGURES.say(f"; {who_waits(run)} {{waiting}} for it", waiting=bearer.waiting)
        yield run.finding(
            NAME,
            sentence + ".",
            FIGURES.say("Parallelize {place}.", place=place),
            bearer.loss,
            callpath=bearer.callpath,
            ranks=run.culprits(times) if np.any(times) else [],
            instances=max(3, int(run.visits(bearer.callpath).max())),
            evidence={"idle": bearer.idle, "threads": threads},
        )
        run.take(bearer)


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the section faster; at best, all threads share it."""
    if finding.callpath is not None:
        yield run.changes.faster(finding.callpath, 0.75)
        yield run.changes.faster(finding.callpath, 0.5)
        threads = finding.evidence["threads"]
        bound = run.changes.faster(finding.callpath, 1 / threads)
        what = f"{run.changes.name(finding.callpath)} on {'both' if threads == 2 else f'all {threads}'} threads"
        yield replace(bound, what=what, label="all threads", is_bound=True)
