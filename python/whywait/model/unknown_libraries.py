"""Communication libraries whose waiting the analysis does not know, but whose calls it tells by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from whywait.model.profile import Profile

#: The kind of the warnings.
KIND = "unknown_library"


def unknown_libraries(profile: Profile) -> list[dict[str, Any]]:
    """Return the unknown communication libraries that a run calls, the one with most time first.

    Parameters
    ----------
    profile
        The profile of the run.

    Returns
    -------
    list of dict
        ``name``, ``share`` (of the time of the run, in its calls) and ``calls`` (by the program) of each.
    """
    tree = profile.tree
    occurring = sorted({library for library in tree.unknown_libraries if library is not None})
    if not occurring or "time" not in profile.metrics:
        return []
    time, visits = profile.by_position("time"), profile.by_position("visits")
    libraries = np.array([library or "" for library in tree.unknown_libraries])
    above = tree.above
    within = np.where(above >= 0, libraries[above], "")
    whole = profile.total("time")
    found = [
        {
            "name": name,
            "share": float(time[libraries == name].sum() / whole) if whole else 0.0,
            "calls": int(visits[(libraries == name) & (within != name)].sum()),
        }
        for name in occurring
    ]
    return sorted(found, key=lambda one: -one["share"])


def warnings(libraries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a warning of each library of `unknown_libraries`, as those of the analysis."""
    return [{"kind": KIND, "count": one["calls"], "text": sentence(one), "place": None} for one in libraries]


def sentence(library: dict[str, Any]) -> str:
    """Return what a library of `unknown_libraries` means for the result."""
    share = f"{100 * library['share']:.1f}%"
    return (
        f"{share} of the time lies in calls of {library['name']}, which whywait does not know: "
        "waiting in them is not seen"
    )
