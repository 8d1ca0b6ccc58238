"""Where ranks are in a grid of processes, in words: at its corners, at its edges, or inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from whywait.analysis.findings.finding import Run


def place_in_grid(run: Run, ranks: Collection[int]) -> str | None:
    """Return the words for some ranks that are all at the corners, at the edges or inside a grid of all ranks."""
    places = run.result.places
    for topology in run.result.tables.topologies.to_pylist():
        axes, at = topology["axes"], topology["coordinates"]
        rank = {int(places.rank[one["location"]]): one["at"] for one in at if places.thread[one["location"]] == 0}
        # One coordinate for each rank: no grid of threads, and none of some ranks.
        if len(at) != run.ranks or len(rank) != run.ranks or min((axis["size"] for axis in axes), default=1) < 2:
            continue
        ends = [axis for axis in range(len(axes)) if not axes[axis]["periodic"]]
        if len(axes) < 2 or not ends:
            continue
        outer = {one: sum(place[axis] in {0, axes[axis]["size"] - 1} for axis in ends) for one, place in rank.items()}
        size = " x ".join(str(axis["size"]) for axis in axes)
        corner = len(ends) if len(ends) > 1 else -1
        for where, numbers in (
            ("at the corners of", {corner}),
            ("at the edges of", set(range(1, len(ends) + 1))),
            ("inside", {0}),
        ):
            found = {one for one, number in outer.items() if number in numbers}
            if found == set(ranks) and 1 < len(found) < run.ranks:
                return f"the ranks {where} the {size} grid"
    return None
