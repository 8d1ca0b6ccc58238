"""Whether a series of runs shows strong or weak scaling."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import whywait._native as _native
from whywait.analysis.counters.counters import INSTRUCTIONS, Counters
from whywait.model.selection import Processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.analysis.efficiency.efficiency import Scaling
    from whywait.analysis.focus import FocusedData

# Runs with fewer times as many locations as the first say little about scaling.
_GROWTH = 1.5
# How far the exponent may be from that of strong scaling, 0, or of weak scaling, 1.
_TOLERANCE = 0.25


class Detected(NamedTuple):
    """What a series of runs shows.

    Attributes
    ----------
    mode
        ``strong`` if the total work is constant, ``weak`` if that of each location is; None if it is neither.
    exponents
        For each run with at least 1.5 times the locations of the first: the power of the number of locations that the
        total work grows with, ``ln(U / U0) / ln(p / p0)``.
    measure
        What the work is measured by: ``instructions`` or ``computation``.
    """

    mode: Scaling | None
    exponents: list[float]
    measure: str = "computation"

    @property
    def sentence(self) -> str:
        """What was found, as a sentence; empty if the runs are of about the same size."""
        if not self.exponents:
            return ""
        low, high = min(self.exponents), max(self.exponents)
        power = f"p^{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"p^{low:.2f} to p^{high:.2f}"
        what = {"instructions": "The number of instructions", "computation": "Total computation"}[self.measure]
        if self.mode is None:
            return f"{what} grows by {power}: neither strong nor weak scaling. Use --scaling."
        return f"{self.mode.capitalize()} scaling: {what[0].lower()}{what[1:]} grows by {power}."


def detect_scaling(parts: Sequence[FocusedData]) -> Detected:
    """Tell whether the total work of runs is constant, or grows with the number of CPU locations.

    Parameters
    ----------
    parts
        The focus of each run; the first is the reference.
    """
    counts = [np.count_nonzero(part.places.works) for part in parts]
    measure, works = _works(parts)
    pairs = [
        log(work / works[0]) / log(count / counts[0])
        for work, count in zip(works, counts, strict=True)
        if counts[0] and count >= _GROWTH * counts[0] and min(work, works[0]) > 0
    ]
    modes: dict[Scaling, float] = {"strong": 0.0, "weak": 1.0}
    for mode, expected in modes.items():
        if all(abs(exponent - expected) <= _TOLERANCE for exponent in pairs):
            return Detected(mode, pairs, measure)
    return Detected(None, pairs, measure)


def _works(parts: Sequence[FocusedData]) -> tuple[str, list[float]]:
    try:
        counters = [Counters(part.whole) for part in parts]
        if all(INSTRUCTIONS in found for found in counters):
            windows = [part.focus.window for part in parts]
            inside = [
                found.window(*window) if window else found for found, window in zip(counters, windows, strict=True)
            ]
            return "instructions", [found[INSTRUCTIONS].in_computation(None) for found in inside]
    except (_native.UsageError, KeyError):
        # A written result has no counters of a window.
        pass
    sums = [Processes(part.whole, part.profile, only_threads=True).sums("comp", None) for part in parts]
    return "computation", [float(of_run.sum()) for of_run in sums]
