"""The same work takes longer while other ranks or threads of the node work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.few_cores import shared_cores
from whywait.analysis.findings.sharing import FIGURES, evidence, shared, slower

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "memory_contention"
TITLE = "Contention of memory"
DOCUMENT = """\
A function without calls takes longer on the same rank or thread while more others of its node compute: by at least 20%,
and the more others, the longer (Pearson's r of at least 0.4), but at most half as much again as their number explains:
more is other work. They share memory bandwidth, caches, or the clock rate of the processor; counters tell which. Use
fewer ranks per node, or make the function need less memory traffic. Where locations share cores, this rule says
nothing, since these explain it. The loss is the excess over the instances with the fewest others. It is computation,
and so no part of the lost time of the account. Where all always compute at the same time, a trace cannot tell. Only
runs of up to a million events are searched.
"""


def detect(run: Run) -> Found:
    """Yield the functions that take longer beside others."""
    if run.result.facts.get("few_cores") or shared_cores(run.result.facts):
        return
    for row in shared(run, "memory"):
        yield run.finding(
            NAME,
            FIGURES.say("{place}", place=run.place(row["callpath"]))
            + slower(row, "busy ranks or threads of its node")
            + ": they share memory bandwidth, caches, or the clock rate.",
            "Use fewer ranks per node, or less memory traffic in it.",
            row["excess"],
            callpath=row["callpath"],
            instances=row["samples"],
            evidence=evidence(row),
        )


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield the function without its excess."""
    if finding.callpath is not None:
        yield run.changes.faster(finding.callpath, 1 / float(finding.evidence["ratio"]))
