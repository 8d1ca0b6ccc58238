"""Communicators, windows and memory of libraries take time to make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.needed import FIGURES as NEEDED
from whywait.analysis.findings.needed import finding, needed
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run
    from whywait.model.regions import Region

NAME = "set_up"
TITLE = "Setting up"
DOCUMENT = """\
At least 5% of the CPU time is in library calls that make or free communicators, windows, or memory of the library,
beyond what they wait for. Make them once, and keep them. What happens once matters less in a longer run.
"""
FIGURES = Figures(NEEDED)

_LEAST = 0.05
_MASKS = ("mpi_mgmt_comm", "mpi_mgmt_win", "shmem_mgmt", "armci_mgmt", "pgas_mgmt")


def detect(run: Run) -> Found:
    """Yield the time of calls that make or free something."""
    found = needed(run, is_set_up, _LEAST)
    if found is not None:
        yield finding(
            run,
            NAME,
            found,
            ", to make or free communicators, windows or memory.",
            "Make what {place} makes once, and keep it.",
            "No rank calls {place} twice, so it matters less in a longer run.",
        )


def is_set_up(region: Region) -> bool:
    """Return whether a call makes or frees something of its library."""
    return any(region.is_in(mask) for mask in _MASKS)
