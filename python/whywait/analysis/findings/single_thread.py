"""One thread executes a block while others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.suffering import FIGURES as LOSSES
from whywait.analysis.findings.suffering import beside, who_waits
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.losses import Bearer

NAME = "single_thread"
TITLE = "One thread in a block"
DOCUMENT = """\
A single, master, critical or ordered block runs on one thread at a time, and the other threads of the team wait
for it at the next barrier, or at the block itself. Shorten the block, or let others do something else meanwhile
(nowait, tasks).
"""
FIGURES = Figures(
    LOSSES,
    place=("name", "the block"),
    waiting=("s", "the waiting at barriers and at the block that the cost model charges to it"),
)

_BLOCKS = frozenset({"single", "single sblock", "master", "critical", "critical sblock", "ordered", "ordered sblock"})
_WAITS = frozenset({"ompbarrier", "interval_lock"})


def detect(run: Run) -> Found:
    """Yield blocks of one thread that others wait for."""
    found = [bearer for bearer in run.rest.values() if _is_block(run, bearer)]
    for bearer in sorted(found, key=lambda bearer: -bearer.loss):
        waiting = sum(bearer.of_classes.get(name, 0.0) for name in _WAITS)
        if waiting <= bearer.waiting / 2 or waiting <= 0:
            continue
        place = run.place(bearer.callpath)
        # What the runtime needs for it has other reasons.
        loss = bearer.waiting + bearer.idle
        yield run.finding(
            NAME,
            FIGURES.say(
                f"One thread at a time executes {{place}}; {who_waits(run, 'the ')} {{waiting}} for it",
                place=place,
                waiting=waiting,
            )
            + beside(run, [bearer], waiting),
            "Shorten the block, or let the other threads go on meanwhile.",
            loss,
            callpath=bearer.callpath,
            instances=int(run.visits(bearer.callpath).sum()),
            evidence={"of_classes": bearer.of_classes},
        )
        bearer.take_waiting(np.arange(bearer.costs.size))
        bearer.idle = 0.0


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the block faster."""
    yield from run.faster(finding, 0.75, 0.5, 0.0)


def _is_block(run: Run, bearer: Bearer) -> bool:
    kind = run.region(bearer.callpath)
    return kind.paradigm == "openmp" and (kind.role in _BLOCKS or "sblock" in kind.name)
