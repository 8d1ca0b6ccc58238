"""How far one run is from another: computation, communication, and waiting separately, as in figure 5.5 of Jül-4297.

Deviations of the parts can cancel each other, so two runs of equal length need not be alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from whywait.analysis.waiting import PARTS, account

if TYPE_CHECKING:
    from whywait.model.profile import Profile

#: Parts of the processor time, and the lines of the account that they consist of; computation is all the rest.
_COMMUNICATION = ("communication", "completion", "threads")


class Deviation(NamedTuple):
    """The deviation of one run from another in one part of the time.

    Attributes
    ----------
    before, after
        The processor time of this part in the run to compare with and in the other one, seconds.
    percent
        The difference, in percent of all processor time of the run to compare with; None if it has none.
    """

    before: float
    after: float
    percent: float | None


def deviations(before: Profile, after: Profile) -> dict[str, Deviation]:
    """Return by how much a run deviates from another.

    Parameters
    ----------
    before
        The severities of the run to compare with, or of a part of it.
    after
        Those of the other run.

    Returns
    -------
    dict
        The deviation of ``time`` (summed over all threads) and of its parts: ``computation`` (all time outside of the
        others), ``communication`` (of processes and of threads, without waiting) and ``waiting``. Times and percentages
        of the parts add up to those of ``time``.
    """
    first, second = _times(before), _times(after)
    total = first["time"]
    return {
        name: Deviation(value, second[name], 100 * (second[name] - value) / total if total else None)
        for name, value in first.items()
    }


def _times(profile: Profile) -> dict[str, float]:
    parts = account(profile)["parts"]
    communication = sum(parts[name] for name in _COMMUNICATION)
    computation = sum(parts[name] for name in PARTS if name not in (*_COMMUNICATION, "waiting"))
    waiting = parts["waiting"]
    return {
        "time": computation + communication + waiting,
        "computation": computation,
        "communication": communication,
        "waiting": waiting,
    }
