"""Derived metrics as linear combinations of stored ones.

A page holds the cells of stored metrics only. At every call path, a derived metric is a sum of stored metrics with one
factor each: 1, -1, 0 outside of a mask, or a share that depends on the call path only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.metrics import Term
    from whywait.model.profile import Profile

#: Factors by position in the call tree, by stored metric.
Factors = dict[str, "npt.NDArray[np.float64]"]


class Formulas:
    """The factors of every metric of a profile.

    Parameters
    ----------
    profile
        The severities that the factors apply to.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._ones = np.ones(len(profile.tree))
        self._known: dict[str, Factors] = {}

    def __getitem__(self, name: str) -> Factors:
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Factors:
        formula = self._profile.metrics[name].formula
        if name in self._profile.void:
            return {}
        if formula is None:
            return {name: self._ones} if len(self._profile.cells(name)) else {}
        return combine([(term.sign, self.masked(term)) for term in formula.terms])

    def masked(self, term: Term) -> Factors:
        """Return the factors of a metric, restricted to the class of call paths of the term, if any."""
        factors = self[term.metric]
        if term.mask is None:
            return factors
        if term.mask == "critical_imbalance":
            share = self._profile.critical_imbalance()
        else:
            share = self._profile.tree.mask(term.mask).astype(np.float64)
        return {stored: factor * share for stored, factor in factors.items()}

    def by_location(self, factors: Factors) -> npt.NDArray[np.float64]:
        """Sum over the call tree: one value for each location."""
        locations = self._profile.locations
        total = np.zeros(locations)
        for stored, factor in factors.items():
            cells = self._profile.cells(stored)
            weighted = cells.value * factor[cells.key // locations]
            total += np.bincount(cells.key % locations, weighted, locations)
        return total

    def by_position(self, factors: Factors) -> npt.NDArray[np.float64]:
        """Sum over all locations: one exclusive value for each position of the call tree."""
        return sum(
            (self._profile.by_position(stored) * factor for stored, factor in factors.items()), start=0 * self._ones
        )


def combine(parts: list[tuple[int, Factors]]) -> Factors:
    """Add up factors with their signs; those that cancel out are removed."""
    total: Factors = {}
    for sign, factors in parts:
        for stored, factor in factors.items():
            total[stored] = total[stored] + sign * factor if stored in total else sign * factor
    return {stored: factor for stored, factor in total.items() if factor.any()}
