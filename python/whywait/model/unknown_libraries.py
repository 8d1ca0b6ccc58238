"""Communication libraries whose waiting the analysis does not know, but whose calls it tells by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from whywait.model.profile import Profile

#: The kind of the warnings.
KIND = "unknown_library"


def unknown_libraries(profile: Profile, silent: str | None = None) -> list[dict[str, Any]]:
    """Return the unknown communication libraries that a run calls, the one with most time first.

    Parameters
    ----------
    profile
        The profile of the run.
    silent
        A paradigm whose calls are known, but that has no records of what they did.

    Returns
    -------
    list of dict
        ``name``, ``share`` (of the time of the run, in its calls), ``calls`` (by the program) and ``is_silent`` (its
        calls are known, but the trace has no records of what they did) of each.
    """
    tree = profile.tree
    named = [library or "" for library in tree.unknown_libraries]
    silent_ones = set()
    if silent is not None:
        recorded = tree.regions["paradigm"].to_pylist()
        for position, callpath in enumerate(tree.preorder.tolist()):
            if tree.kinds[row := tree.region_rows[callpath]].paradigm == silent:
                named[position] = recorded[row].lower()
                silent_ones.add(named[position])
    occurring = sorted({*named} - {""})
    if not occurring or "time" not in profile.metrics:
        return []
    time, visits = profile.by_position("time"), profile.by_position("visits")
    libraries = np.array(named)
    above = tree.above
    within = np.where(above >= 0, libraries[above], "")
    whole = profile.total("time")
    found = [
        {
            "name": name,
            "share": float(time[libraries == name].sum() / whole) if whole else 0.0,
            "calls": int(visits[(libraries == name) & (within != name)].sum()),
            "is_silent": name in silent_ones,
        }
        for name in occurring
    ]
    return sorted(found, key=lambda one: -one["share"])


def warnings(libraries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a warning of each library of `unknown_libraries`, as those of the analysis."""
    return [{"kind": KIND, "count": 1, "text": sentence(one), "place": None} for one in libraries]


def sentence(library: dict[str, Any]) -> str:
    """Return what a library of `unknown_libraries` means for the result."""
    why = "of which the trace records nothing else" if library["is_silent"] else "which whywait does not know"
    return f"{library['share']:.1%} of the time lies in calls of {library['name']}, {why}: waiting in them is not seen"
