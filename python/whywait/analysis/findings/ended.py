"""Ranks or threads have ended, while others still run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.findings.finding import fewest
from whywait.analysis.findings.groups import is_one, who
from whywait.analysis.findings.words import Figures
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "ended"
TITLE = "Early ends"
DOCUMENT = """\
Ranks or threads have ended before the focus does, for at least 5% of the CPU time: the others still work, or they are
not recorded until their end. Let those that have ended take a part of what the others still do. Where the trace lacks
the end of the program, such as `MPI_Finalize`, and clocks disagree, they may have ended at the same time. Profilers of
PyTorch and Nsight Systems stop where they are told to: that is no end.
"""
FIGURES = Figures(
    ended=("s", "the time between the last event of each rank or thread and the end of the focus: `idle.ended`"),
    who=("name", "the fewest ranks or threads that have at least 80% of it"),
    who_share=("share", "the part of it that they have"),
)

_LEAST = 0.05


def detect(run: Run) -> Found:
    """Yield the time of ranks and threads after their end, unless devices communicate: theirs counts then."""
    profile = run.result.profile
    if "ccl" in profile.metrics and profile.total("ccl"):
        return
    cells = run.losses.account.cells
    cells = cells.filter(pc.equal(cells["row"].cast("string"), "idle.ended"))
    times = sum_at(cells["location"].to_numpy(), cells["time"].to_numpy(), run.result.profile.locations)
    ended = float(times.sum())
    if not run.time or ended < _LEAST * run.time or "traces" in run.result.facts:
        return
    most = np.array(fewest(times))
    named = who(run, most)
    if most.size == np.count_nonzero(times) < run.locations:
        has, is_idle = ("has", "is") if is_one(named) else ("have", "are")
        sentence = FIGURES.say(
            f"{{who}} {has} ended before the others, and {is_idle} idle for {{ended}}.", who=named, ended=ended
        )
    else:
        sentence = FIGURES.say(
            "{ended} of CPU time follow the ends of ranks or threads, {who_share} of it that of {who}.",
            ended=ended,
            who_share=float(times[most].sum() / ended),
            who=named,
        )
    yield run.finding(
        NAME,
        sentence.capitalized(),
        "See what the others do then: let those that have ended take a part of it.",
        ended,
        ranks=np.unique(run.result.places.rank[most]).tolist(),
        evidence={"ended": ended},
    )
