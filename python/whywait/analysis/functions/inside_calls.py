"""What threads did inside calls of communication libraries: polling, copying, or nothing because they had no core.

Samples in a call keep where in the code of a library they were: the function, or its file and the place in it. Debian's
libraries have few names of functions, so the file tells what can be told.
"""

from __future__ import annotations

import re
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.focus import focused
from whywait.analysis.functions.tree import CERTAIN, LIKELY, deviation_of_share

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData

#: Fewer samples say nothing about a call.
ENOUGH = 30
#: The kinds of places, and how their names are written; the first that fits counts.
KINDS = {
    "copying": re.compile(r"mem(cpy|move|set)|process_vm_|copy|yaksa|(un)?pack(?![a-z])", re.IGNORECASE),
    "locks": re.compile(r"futex|pthread_(mutex|cond|rwlock|spin)|lll_lock", re.IGNORECASE),
    "system calls": re.compile(
        r"^_*(sched_yield|(clock_)?nanosleep|usleep|p?poll|epoll_p?wait|p?select|read|write|(recv|send)\w*|ioctl|mmap|munmap"
        r"|madvise|syscall)(64)?$"
    ),
    "polling": re.compile(
        r"lib(p?mpi|open-|oshmem|uc[stpm]|fabric|psm|ibverbs|rdmacm|pmi|mlx|efa|xpmem|hcoll|ucc)|^(p?mpi|uc[stp]_|opal_|"
        r"ompi_|mca_|fi_|psm)|progress",
        re.IGNORECASE,
    ),
}
OTHER, SYSTEM, AWAY = "other", "in the system", "asleep or without a core"


def kind(address: str | None) -> str:
    """Return the kind of a place in a library."""
    return next((name for name, fits in KINDS.items() if address and fits.search(address)), OTHER)


def inside(result: ResultData, callpaths: Collection[int]) -> dict[str, Any] | None:
    """Return what threads did in calls, by their samples in the focus.

    Parameters
    ----------
    result
        The result.
    callpaths
        The call paths of the calls, by number.

    Returns
    -------
    dict
        ``samples``, and ``parts``: the kinds with some share, the largest first, each with ``kind``, ``share`` (of the
        time of the calls) and ``error`` (at 95%). What samples do not stand for is in the system, or the thread was
        asleep or had no core, where a clock that stands still then was used. None with fewer than 30 samples.
    """
    if not result.facts.get("samples"):
        return None
    table = _samples(result, callpaths)
    count = table.num_rows
    if count < ENOUGH:
        return None
    kinds = dict.fromkeys((*KINDS, OTHER), 0)
    for entry in table["address"].combine_chunks().value_counts().to_pylist():
        kinds[kind(entry["values"])] += entry["counts"]
    shares = {name: seen / count for name, seen in kinds.items()}
    errors = {name: deviation_of_share(share, count) for name, share in shares.items()}
    time, weight = _time(result, callpaths), float(pc.sum(table["weight"]).as_py() or 0.0)
    period = weight / count
    if pc.all(table["user_only"].fill_null(False)).as_py() and time - weight > CERTAIN * period * sqrt(count):
        # The clock stood still in the system and without a core.
        used = min(float(pc.sum(table["system_time"]).as_py() or 0.0), time - weight)
        shares = {name: period * seen / time for name, seen in kinds.items()}
        errors = {name: period * sqrt(max(seen, 1)) / time for name, seen in kinds.items()}
        error = period * sqrt(count) / time
        shares |= {SYSTEM: used / time, AWAY: (time - weight - used) / time}
        errors |= {SYSTEM: error, AWAY: error}
    parts = [
        {"kind": name, "share": share, "error": LIKELY * errors[name]}
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= _LEAST
    ]
    return {"samples": count, "parts": parts}


# Smaller shares are left out.
_LEAST = 0.02


def _samples(result: ResultData, callpaths: Collection[int]) -> pa.Table:
    """Return the samples of time of a clock that are in calls, within the focus."""
    table = result.tables.samples
    recorded = table["recorded_callpath"].fill_null(len(result.tree)).to_numpy()
    here: npt.NDArray[np.bool_] = np.isin(recorded, list(callpaths)) & pc.equal(table["kind"], "time").to_numpy()
    if "focus_begin" in result.facts:
        time = table["time"].to_numpy()
        here &= (time >= result.facts["focus_begin"]) & (time < result.facts["focus_end"])
    return table.filter(here)


def _time(result: ResultData, callpaths: Collection[int]) -> float:
    """Return the time in calls."""
    times = focused(result).profile.by_position("time")
    return float(sum(times[int(result.tree.position[callpath])] for callpath in callpaths))
