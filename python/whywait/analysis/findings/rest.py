"""What no finding explains of the lost time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Run

# The rules whose losses are what calls need, and parts of rows that no bearer gives up for them.
_NEEDS = frozenset({"collectives", "latency_bound", "bandwidth_bound", "other_calls"})
_NEEDED, _UNKNOWN, _ENDED = "what calls need", "time that is not recorded", "threads that have ended"
_OF_KINDS = {"device": "calls of devices"}
_OF_ROWS = {"transfer.needed": _NEEDED, "library.needed": _NEEDED, "unknown": _UNKNOWN}


def rest(run: Run, found: Iterable[Finding], inside: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Return the parts of the lost time that no finding explains, in seconds, by their names.

    Parameters
    ----------
    run
        The run, after all rules have taken what they explain.
    found
        All findings.
    inside
        Which call paths count; None for all.
    """
    parts: dict[str, float] = defaultdict(float)
    for bearer in run.rest.values():
        if inside is not None and not inside[bearer.callpath]:
            continue
        for row, time in bearer.spent.items():
            parts[_OF_ROWS.get(row, _OF_KINDS.get(bearer.kind, "other library calls"))] += time
        parts["waiting for other call paths"] += bearer.waiting
        parts["idle threads"] += bearer.idle
    for one in found:
        if one.rule in _NEEDS:
            parts[_NEEDED] -= one.loss
        elif one.rule in {"unrecorded", "set_up"}:
            parts[_NEEDED if "library" in one.evidence else _UNKNOWN] -= one.loss
        elif one.rule == "ended":
            parts[_ENDED] -= one.loss
    if inside is None:
        ended = run.losses.account.times.get("idle.ended", 0.0)
        parts["waiting without a known cause"] += run.losses.unattributed - ended
        parts[_ENDED] += ended
        parts["waiting caused before this part of the run"] += run.losses.outside
    return {name: time for name, time in parts.items() if time > 0}
