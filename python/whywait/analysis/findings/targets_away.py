"""Targets of one-sided operations are outside the library for long, and the trace does not show whether others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import Figures
from whywait.analysis.focus import focused
from whywait.analysis.progress import AWAY, progress_thread

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "targets_away"
TITLE = "Targets away"
DOCUMENT = """\
While one-sided operations complete, their targets are outside of their libraries for at least 5% of the time, and at
least three times as long as the operations are known to wait for progress. Whether they wait longer cannot be told from
the records: a library that needs several calls of its target, and one that moves the data while its origin computes,
look alike. So it is no loss, but a bound.
"""
FIGURES = Figures(
    away=("s", "the bound: the longest that a target of each call was outside of its libraries, over all calls"),
    away_share=("share", "the same as a part of the time of the focus"),
    known=("s", "the Wait for Progress that is known"),
    call=("name", "the call path with most of the bound"),
)

_SHARE, _TIMES = 0.05, 3


def detect(run: Run) -> Found:
    """Yield how long calls can have waited for progress, if that is much more than what is known."""
    part = focused(run.result)
    found = progress_thread(part)
    if found is None or found["upper"] < max(_SHARE, _TIMES * found["lower"]):
        return
    profile = part.profile
    away = sum(profile.by_position(name) for name in AWAY if name in profile.metrics)
    callpath = int(profile.tree.preorder[int(np.argmax(away))])
    time = profile.total("time")
    finding = run.finding(
        NAME,
        FIGURES.say(
            "Targets of one-sided operations are outside the library for up to {away} ({away_share}) "
            "while others are in {call}; {known} of waiting for them is known.",
            away=found["upper"] * time,
            away_share=found["upper"],
            call=run.region(callpath).name,
            known=found["lower"] * time,
        ),
        "Try asynchronous progress, or call the library more often at the targets: only a run can tell what it saves.",
        0.0,
        callpath=callpath,
        base="run",
        instances=int(run.visits(callpath).max()),
        evidence={"verdict": found},
    )
    finding.share = found["upper"]
    yield finding
