"""Layers above MPI: what the calls of Global Arrays, ARMCI and ComEx cost, from the functions around calls of MPI.

A library on top of MPI that is not recorded itself is there as functions on the stack. The innermost function of a
library around a call path is its *layer*: what is spent below it, down to the next one, is spent in this call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.progress import AWAY, WAITS

if TYPE_CHECKING:
    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData

# Libraries, and what the names of their functions look like. Aliases of one function have one name: without the P of
# profiling, and without what tells implementations and parts of a function apart.
_LIBRARIES = {
    "Global Arrays": re.compile(r"(?P<own>(N?GA|n?ga)_\w+)|[pw]n(?P<alias>ga_\w+)"),
    "ARMCI": re.compile(r"P?(?P<own>ARMCI_\w+)"),
    "ComEx": re.compile(r"(?P<own>comex_\w+)"),
}


def layers(result: ResultData) -> list[dict[str, Any]]:
    """Return the calls of each library that is a layer above MPI, those with most time first.

    Parameters
    ----------
    result
        The result.

    Returns
    -------
    list of dict
        ``library``, ``call``, ``visits``, ``time``, ``waiting`` (s), ``waits`` (the same by metric), ``progress`` (the
        Wait for Progress in it) and ``away`` (how long targets were away, its upper bound) of each call.
    """
    profile, tree = result.profile, result.tree
    found = []
    for library, form in _LIBRARIES.items():
        calls, owner, is_frame = _owners(tree, form)
        if not calls:
            continue
        inside = owner >= 0

        def by_call(name: str, here: Any = inside, owner: Any = owner, calls: Any = calls) -> Any:
            values = profile.by_position(name)
            return np.bincount(owner[here], values[here], len(calls))

        visits = by_call("visits", is_frame)
        waits = {metric.name: by_call(metric.name) for metric in profile.metrics.waiting}
        bounds = [name for name in AWAY if name in profile.metrics]
        time, away = by_call("time"), sum((by_call(name) for name in bounds), np.zeros(len(calls)))
        found += [
            {
                "library": library,
                "call": call,
                "visits": int(visits[number]),
                "time": float(time[number]),
                "waiting": float(sum(values[number] for values in waits.values())),
                "waits": {name: float(values[number]) for name, values in waits.items() if values[number] > 0},
                "progress": float(sum(waits[name][number] for name in WAITS if name in waits)),
                "away": float(away[number]),
            }
            for number, call in enumerate(calls)
        ]
    return sorted(found, key=lambda one: -one["time"])


def _owners(tree: CallTree, form: re.Pattern[str]) -> tuple[list[str], Any, Any]:
    """Return the calls of a library, for each position the one that it belongs to or -1, and which are the calls."""
    numbers: dict[str, int] = {}
    frames = [kind.paradigm in {"compiler", "user", "unknown", "comex"} for kind in tree.kinds]
    names = [
        form.fullmatch(kind.name.partition(".")[0]) if frame else None
        for kind, frame in zip(tree.kinds, frames, strict=True)
    ]
    owner = np.full(len(tree), -1, np.int64)
    is_frame = np.zeros(len(tree), np.bool_)
    for position, callpath in enumerate(tree.preorder.tolist()):
        above = tree.above[position]
        if above >= 0:
            owner[position] = owner[above]
        if (match := names[tree.region_rows[callpath]]) is not None:
            owner[position] = numbers.setdefault(next(filter(None, match.groupdict().values())), len(numbers))
            is_frame[position] = True
    return list(numbers), owner, is_frame
