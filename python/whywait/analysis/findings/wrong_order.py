"""Messages are received in another order than they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.words import Figures
from whywait.analysis.focus import focused
from whywait.analysis.ranking import Choice, choose

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Run

NAME = "wrong_order"
TITLE = "Messages in the wrong order"
DOCUMENT = """\
A remark on the finding that bears most of the waiting for late senders by the rank that causes most of these waits.
In at least 1% of the CPU time, a rank waits for a message while another one, which it receives later, has already
arrived; where it waits for all of them at once (MPI_Waitall), their order does not matter. Receive messages in the
order in which they arrive (MPI_ANY_SOURCE, MPI_Waitany), if there is work to do with each. What that saves is not
simulated: the order of messages is part of the program. In a pipeline, this is always so, and no remark.
"""
FIGURES = Figures(wrong_order=("s", "the Late Senders in Wrong Order, in the focus, but not those in MPI_Waitall"))

_METRIC, _SHARE = "mpi_latesender_wo", 0.01
# Waits for all messages that are due, in whatever order they come; those received later belong to the next exchange.
_FOR_ALL = "mpi_waitall"


def remark(run: Run, found: list[Finding]) -> None:
    """Add to the finding that bears most of the Late Senders that their order is wrong."""
    part = focused(run.result)
    if not run.time or _METRIC not in part.profile.metrics:
        return
    tree = run.result.tree
    counts = np.array([run.region(number).name.lower() != _FOR_ALL for number in range(len(tree))])
    time = float(part.profile.by_position(_METRIC)[counts[tree.preorder]].sum())
    if time < _SHARE * run.time:
        return
    waits = choose(part, Choice(_METRIC)).select(["cause_location", "callpath", "waiting"]).drop_null()
    waits = waits.filter(counts[waits["callpath"].to_numpy()])
    cause = run.result.places.rank[waits["cause_location"].to_numpy()]
    worst = int(np.bincount(cause, waits["waiting"].to_numpy()).argmax()) if cause.size else None
    host = run.bears_most([one for one in found if worst in one.ranks] or found, "latesender")
    if host is not None and host.rule != "pipeline":
        host.remark(
            NAME,
            FIGURES.say(
                "In {wrong_order} of the waiting for late senders, another message that is received later had arrived.",
                wrong_order=time,
            ),
        )
        host.evidence[NAME] = {"time": time}
