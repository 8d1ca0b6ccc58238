"""Whether a progress thread would pay off: Wait for Progress, and its upper bound, against the cores of such threads.

*Source*: thesis, section 5.4, which decides so for SRUMMA: there each process would have needed a core for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.model.result import ResultData

_LIBRARIES = ("mpi", "shmem", "armci", "pgas")
_PASSIVE = tuple(f"{library}_rma_{kind}_wait_for_progress" for library in _LIBRARIES for kind in ("sync", "comm"))
# Evidence tells it, so it is its own bound.
_ACTIVE = "mpi_rma_active_wait_for_progress"
#: Wait for Progress, of all libraries.
WAITS = (*_PASSIVE, _ACTIVE)
#: How long targets were away in such calls.
AWAY = (*(f"{name}_away" for name in _PASSIVE), _ACTIVE)
#: The minimum share of the time for an assessment.
_NOTABLE = 0.001


def progress_thread(result: ResultData) -> dict[str, Any] | None:
    """Compare Wait for Progress with the cores that progress threads would take.

    Parameters
    ----------
    result
        The run, or its focus.

    Returns
    -------
    dict or None
        ``lower`` and ``upper``: Wait for Progress, and how long targets were away, as shares of the time;
        ``processes``, how many run on a node (None if they are distributed unevenly or there is but one); ``node`` and
        ``process``, the shares of the cores that a thread a node, or one a process, would take if these run nothing
        else (``node`` is None with ``processes``); ``verdict_node`` and ``verdict_process``: ``no`` if a thread cannot
        gain what it takes, ``yes`` if the lower bound exceeds that, ``open`` between. None if there is hardly any Wait
        for Progress.
    """
    profile = result.profile
    time = profile.total("time") if "time" in profile.metrics else 0.0
    if not time:
        return None
    lower, upper = (
        sum(profile.total(name) for name in names if name in profile.metrics) / time for names in (WAITS, AWAY)
    )
    upper = max(lower, upper)
    if upper < _NOTABLE:
        return None
    processes = _processes_of_a_node(result.tables.system)
    node = 1 / (processes + 1) if processes else None
    return {
        "lower": lower,
        "upper": upper,
        "processes": processes,
        "node": node,
        "process": 0.5,
        "verdict_node": node and _verdict(lower, upper, node),
        "verdict_process": _verdict(lower, upper, 0.5),
    }


def _verdict(lower: float, upper: float, cost: float) -> str:
    return "no" if upper <= cost else "yes" if lower > cost else "open"


def _processes_of_a_node(system: pa.Table) -> int | None:
    """Return how many processes run on each node, if that is one number and there is more than one of them."""
    processes = system.filter((pc.field("kind") == "group") & (pc.field("rank") >= 0))
    found = set(processes["parent"].value_counts().field("counts").to_pylist())
    return found.pop() if len(found) == 1 and found != {1} else None
