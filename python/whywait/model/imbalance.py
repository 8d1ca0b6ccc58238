"""Computational imbalance: the deviation of each process's computation from the average at the same call path.

The heuristic of Scalasca's remapper. For a call path c with N participants p, and its computation time without what is
below it::

    avg(c) = sum over p of comp(p, c) / N        d(p, c) = comp(p, c) - avg(c)

A positive d is overload, a negative one underload.

*Source*: specification.md#computational-imbalance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.model.profile import Cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.profile import Profile
    from whywait.model.tables import Locations

NAMES = (
    "imbalance",
    "imbalance_above",
    "imbalance_above_single",
    "imbalance_below",
    "imbalance_below_bypass",
    "imbalance_below_singularity",
)

# Equal times can differ from their average by rounding errors.
_ROUNDING = 1e-12


def imbalance(profile: Profile, places: Locations) -> dict[str, Cells]:
    """Compute the six metrics of computational imbalance.

    Parameters
    ----------
    profile
        The severities, with ``comp`` (or ``execution``, if there is none) and ``visits``.
    places
        The locations.

    Returns
    -------
    dict of str to Cells
        ``imbalance`` is the absolute deviation, ``imbalance_above`` the overload and ``imbalance_below`` the underload.
        Parts of these are ``imbalance_above_single``, at call paths with one visiting participant;
        ``imbalance_below_bypass``, of participants that never visit the call path; and
        ``imbalance_below_singularity``, the same where exactly one visits it. Empty for a run with one location.

    Notes
    -----
    The participants are all threads inside a parallel region, and the master threads of all processes outside.
    """
    base = "comp" if "comp" in profile.metrics else "execution"
    if len(places) < 2 or not places.works.any() or not {base, "visits"} <= {metric.name for metric in profile.metrics}:
        return {}
    (everyone,) = np.nonzero(places.works)
    (masters,) = np.nonzero(places.works & (places.thread == 0))
    parallel = profile.tree.parallel
    parts: dict[str, list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]] = {name: [] for name in NAMES}
    used = profile.positions(base)
    for (position, work), visitors in zip(profile.rows(base, used.tolist()), _visitors(profile, used), strict=True):
        crew = everyone if parallel[position] or not masters.size else masters
        average = work[crew].sum() / crew.size
        deviation = work[crew] - average
        deviation[np.abs(deviation) < _ROUNDING * average] = 0.0
        here = np.isin(crew, visitors)
        alone = np.count_nonzero(here) == 1
        above, below = deviation > 0, deviation < 0
        chosen = (above | below, above, above & here & alone, below, below & ~here, below & ~here & alone)
        for name, mask in zip(NAMES, chosen, strict=True):
            parts[name].append((position * profile.locations + crew[mask], np.abs(deviation[mask])))
    return {name: _concatenate(pieces) for name, pieces in parts.items()}


def _visitors(profile: Profile, positions: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield for each of the given call paths the locations that visit it."""
    key = profile.cells("visits").key
    first, end = np.searchsorted(key, [positions * profile.locations, (positions + 1) * profile.locations])
    for a, b in zip(first.tolist(), end.tolist(), strict=True):
        yield key[a:b] % profile.locations


def _concatenate(pieces: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]) -> Cells:
    if not pieces:
        return Cells(np.empty(0, np.int64), np.empty(0, np.float64))
    keys, values = zip(*pieces, strict=True)
    return Cells(np.concatenate(keys), np.concatenate(values))
