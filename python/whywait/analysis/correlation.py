"""How counters and metrics of ranks go together: Pearson's r, without a test of significance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait import _native
from whywait.analysis.counters import Counters
from whywait.analysis.load import pearson
from whywait.model.selection import Processes

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData


class Correlation(NamedTuple):
    """Pearson's r of two quantities over n ranks; None if n < 3, or if a side does not vary."""

    x: str
    y: str
    n: int
    r: float | None


def by_rank(result: ResultData, name: str) -> npt.NDArray[np.float64]:
    """Return the sum of a metric, or of a counter of the trace, over each rank.

    Raises
    ------
    whywait.UsageError
        If the result has neither.
    """
    processes = Processes(result)
    if name in result.profile.metrics:
        return processes.sums(name)
    counters = Counters(result)
    if name not in counters:
        raise _native.UsageError(f"there is no metric and no counter {name!r}")
    sums = counters[name].by_location()
    value = np.zeros(len(processes))
    known = sums["rank"].to_numpy() >= 0
    np.add.at(value, np.searchsorted(processes.ranks, sums["rank"].to_numpy()[known]), sums["value"].to_numpy()[known])
    return value


def correlate(result: ResultData, x: str, y: str) -> Correlation:
    """Correlate two quantities over ranks; see `whywait.Result.correlate`."""
    a, b = by_rank(result, x), by_rank(result, y)
    return Correlation(x, y, a.size, pearson(a, b))


def with_waits(result: ResultData, x: str) -> list[Correlation]:
    """Correlate a quantity with all wait states that occur, the strongest first."""
    a = by_rank(result, x)
    waits = [metric.name for metric in result.profile.metrics if metric.kind == "wait"]
    found = [Correlation(x, y, a.size, pearson(a, by_rank(result, y))) for y in waits if result.profile.total(y)]
    return sorted(found, key=lambda one: (-abs(one.r or 0.0), one.y))
