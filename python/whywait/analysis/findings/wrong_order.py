"""Messages are received in another order than they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import seconds
from whywait.analysis.focus import focused

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Run

NAME = "wrong_order"
TITLE = "Messages in the wrong order"
DOCUMENT = """\
A remark on the finding that bears most of the waiting for late senders. In at least 1% of the CPU time, a rank waits
for a message while another one, which it receives later, has already arrived. Receive messages in the order in which
they arrive (MPI_ANY_SOURCE, MPI_Waitany), if there is work to do with each. What that saves is not simulated: the order
of messages is part of the program.
"""

_SHARE = 0.01


def remark(run: Run, found: list[Finding]) -> None:
    """Add to the finding that bears most of the Late Senders that their order is wrong."""
    profile = focused(run.result).profile
    names = [name for name in ("mpi_latesender_wo",) if name in profile.metrics]
    time = sum(profile.total(name) for name in names)
    host = run.bears_most(found, "latesender")
    if host is not None and run.time and time >= _SHARE * run.time:
        host.remarks[NAME] = (
            f"In {seconds(time)} of the waiting for late senders, another message that is received later had arrived."
        )
        host.evidence[NAME] = {"time": time}
