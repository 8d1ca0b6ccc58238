"""Hosts wait for results of devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.words import Figures
from whywait.analysis.focus import focused

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "syncs"
TITLE = "Synchronizations"
DOCUMENT = """\
Hosts wait for their devices to read a result (`.item()`, copies to the host) for more than 2% of the time of
devices, or devices are idle as long because such a call ends. Until it does, nothing can be launched. Read results
later, or less often.
"""
FIGURES = Figures(
    place=("name", "the call path in which hosts wait longest for that"),
    waiting=("s", "the time in which hosts wait for devices to read results, in the focus"),
    idle=("s", "the time of devices that are idle while hosts are in calls that wait for devices"),
)

_LEAST = 0.02
_READS = re.compile(r"aten::item|_local_scalar_dense|aten::nonzero|Memcpy|aten::is_nonzero|aten::_to_copy|aten::to$")


def detect(run: Run) -> Found:
    """Yield where hosts read results of devices."""
    profile, tree = focused(run.result).profile, run.result.tree
    total = run.device_time
    if not total or "gpu_host_wait" not in profile.metrics:
        return
    key, value = profile.cells("gpu_host_wait")
    callpaths = profile.tree.preorder[np.floor_divide(key, max(profile.locations, 1))]
    times: dict[int, float] = {}
    for callpath in np.unique(callpaths).tolist():
        if any(_READS.search(name) for name in tree.path(callpath)):
            times[callpath] = float(value[callpaths == callpath].sum())
    idle, waits = in_rows(run, "starved.sync"), sum(times.values())
    if not times or waits + idle <= _LEAST * total:
        return
    callpath = max(times, key=lambda one: times[one])
    words = FIGURES.say(
        "Hosts wait {waiting} for results of devices, longest in {place}, and launch nothing meanwhile; devices are "
        "idle for {idle} until such calls end.",
        waiting=waits,
        place=run.place(callpath),
        idle=idle,
    )
    advice = "Read results later or less often, and copy without blocking."
    found = run.finding(NAME, words, advice, 0.0, callpath=callpath, base="run")
    found.share = waits / total
    yield found
