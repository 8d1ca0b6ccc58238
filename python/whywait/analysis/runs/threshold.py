"""Limits on the growth of metrics from one run to another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import whywait._native as _native
from whywait.analysis.runs.compare import is_comparable, resolve_metric, total, unit

if TYPE_CHECKING:
    from whywait.model.result import ResultData

#: The name of the length of the whole run.
RUN = "run"
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class Threshold:
    """The maximum growth of a metric from the first run to the second.

    >>> Threshold.parse("mpi_latesender>5%").limit
    0.05

    Attributes
    ----------
    metric
        Its unique name or its display name ("Late Sender"); `RUN` for the length of the whole run.
    limit
        The growth allowed, in the unit of the metric or as a share of the first run.
    relative
        Whether it is a share.
    text
        The limit as given.
    unit
        ``s`` if the limit is a time, ``%`` if it is a share, and empty if there is no unit.
    """

    metric: str
    limit: float
    relative: bool
    text: str
    unit: str = ""

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read ``METRIC>NUMBER%``, ``METRIC>NUMBERs`` (or ms, us), or ``METRIC>NUMBER`` for anything but a time.

        Parameters
        ----------
        text
            The limit.

        Raises
        ------
        ValueError
            If it is none of these.
        """
        match = re.fullmatch(r"\s*([^>]*\w)\s*>\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(%|s|ms|us|)\s*", text)
        if not match:
            raise ValueError(f"{text!r} is not of the form METRIC>5%, METRIC>0.5s or METRIC>100")
        metric, number, unit = match.groups()
        scale = 0.01 if unit == "%" else _UNITS.get(unit, 1.0)
        return cls(metric, float(number) * scale, unit == "%", text.strip(), "s" if unit in _UNITS else unit)

    def exceeded(self, first: ResultData, second: ResultData) -> bool:
        """Return whether the metric grew by more than the limit.

        Growth from zero exceeds every share.

        Parameters
        ----------
        first, second
            The runs.

        Raises
        ------
        whywait.UsageError
            If neither run computes the metric, or the limit has the wrong unit: a time needs a unit or a share.
        """
        if self.metric == RUN:
            is_time = True
            before, after = (float(result.facts.get("length", 0.0)) for result in (first, second))
        else:
            metric = resolve_metric(self.metric, first, second)
            if not is_comparable(metric, first, second):
                raise _native.UsageError(f"a profile has no {self.metric}, so the limit {self.text} cannot be checked")
            is_time = unit(metric, first, second) == "sec"
            before, after = (total(result, metric) for result in (first, second))
        if is_time and not self.unit:
            ways = f"'{self.text}s', '{self.text}ms' or '{self.text}%'"
            raise _native.UsageError(f"{self.metric} is a time, so a limit needs a unit or a share: {ways}")
        if not is_time and self.unit == "s":
            raise _native.UsageError(f"{self.metric} is not a time, so the limit {self.text} needs another unit")
        return after - before > self.limit * (before if self.relative else 1.0)
