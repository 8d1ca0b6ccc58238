"""Places: the locations that values are shown for or, if these are too many, groups of neighboring locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from whywait.model.profile import Cells, Profile
    from whywait.model.tables import Locations

# A page with many more cells is too large in any case: rounded to four digits and encoded, a time takes 2.5 bytes or
# more. A count takes less, since most counts are the same on all ranks.
_CELLS = 18_000_000
_OF_COUNT = 0.25
# Up to this number, cells are written unrounded. Larger sets only serve pictures, and totals are always exact.
_EXACT_CELLS = 1_000_000


@dataclass(frozen=True)
class Resolution:
    """The resolution of values by place.

    Attributes
    ----------
    merged
        Number of neighboring locations per place.
    exact
        Whether values are exact or rounded to four digits.
    """

    merged: int
    exact: bool

    @classmethod
    def of(cls, profile: Profile, names: Iterable[str], limit: int = _CELLS, exact: int = _EXACT_CELLS) -> Resolution:
        """Choose the resolution for the given metrics."""
        cells = sum(
            len(profile.cells(name)) * (_OF_COUNT if profile.metrics.find(name).integer else 1.0) for name in names
        )
        merged = 1
        while cells > limit * merged:
            merged *= 2
        return cls(merged, exact=cells <= exact)

    def coarser(self) -> Resolution:
        """Return the next coarser resolution: first rounded, then with fewer places."""
        return Resolution(self.merged * 2 if not self.exact else self.merged, exact=False)

    def places(self, locations: int) -> int:
        """Return the number of places."""
        return -(-locations // self.merged)

    def of_metric(self, profile: Profile, name: str) -> dict[str, npt.NDArray[Any]]:
        """Return the cells of a metric as columns: see `cells`."""
        return self.cells(profile.cells(name), profile.locations, is_maximum=profile.metrics.find(name).is_maximum)

    def cells(self, cells: Cells, locations: int, *, is_maximum: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Return the cells of a metric as columns; those of a place are summed up, or the largest of them is taken.

        Returns
        -------
        dict
            ``position`` (in the call tree) and ``count`` of each row; ``place`` of each cell, as the distance from the
            previous one in its row; ``value``.
        """
        position, location = np.divmod(cells.key, locations)
        place, value = location // self.merged, cells.value
        if self.merged > 1 and place.size:
            starts = np.flatnonzero(np.concatenate(([True], (np.diff(place) != 0) | (np.diff(position) != 0))))
            combine = np.maximum if is_maximum else np.add
            position, place, value = position[starts], place[starts], combine.reduceat(value, starts)
        rows, starts, counts = np.unique(position, return_index=True, return_counts=True)
        distance = np.diff(place, prepend=0)
        distance[starts] = place[starts]
        return {
            "position": rows.astype(np.uint32),
            "count": counts.astype(np.uint32),
            "place": distance.astype(np.uint32),
            "value": value if self.exact else rounded(value),
        }


def rounded(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Round to 13 significant bits, about four digits."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x400)) & np.uint32(0xFFFFF800)).view(np.float32)


def place_columns(locations: Locations, resolution: Resolution) -> dict[str, npt.NDArray[np.int32]]:
    """Return rank and thread of the first, and rank of the last location of each place."""
    starts = np.arange(0, len(locations), resolution.merged)
    ends = np.minimum(starts + resolution.merged, len(locations)) - 1
    ranks, threads = locations.rank.astype(np.int32), locations.thread.astype(np.int32)
    return {"rank": ranks[starts], "thread": threads[starts], "last": ranks[ends]}


def stream_names(locations: Locations) -> dict[int, str]:
    """Return the names of locations other than threads, such as the streams of accelerators."""
    (streams,) = np.nonzero(~locations.works & ~locations.lost & (locations.rank >= 0))
    names = locations.table["name"].take(pa.array(streams)).to_pylist()
    return {stream: name for stream, name in zip(streams.tolist(), names, strict=True) if name}


def left_out(locations: Locations) -> list[int]:
    """Return the locations without time of their own, which are in no distribution and no mean.

    These only record counters, which count for threads, or their events are gone.
    """
    return np.flatnonzero(locations.measures | locations.lost).tolist()


def running(locations: Locations) -> npt.NDArray[np.int64]:
    """Return all other locations, or all if there are no others."""
    runs = ~(locations.measures | locations.lost)
    return np.flatnonzero(runs) if runs.any() else np.arange(len(locations))


def computing(locations: Locations) -> npt.NDArray[np.int64]:
    """Return those of them that compute on a CPU, which have an account, or all if there are none."""
    runs = running(locations)
    threads = runs[locations.works[runs]]
    return threads if threads.size else runs


def system_rows(system: pa.Table, locations: Locations, resolution: Resolution) -> dict[str, list[Any]]:
    """Return the system tree in pre-order.

    Parameters
    ----------
    system
        The system tree: a table of schema `whywait.model.system.SYSTEM`.
    locations
        All locations.
    resolution
        The resolution. Places of several locations are placed directly below one root.

    Returns
    -------
    dict
        ``name``, ``kind``, ``parent`` (row, or -1) and ``place`` (or -1) of each row.
    """
    return _merged(locations, resolution) if resolution.merged > 1 else _rows(system)


def _merged(locations: Locations, resolution: Resolution) -> dict[str, list[Any]]:
    places = place_columns(locations, resolution)
    bounds = list(zip(places["rank"].tolist(), places["last"].tolist(), strict=True))
    names = [f"ranks {first}\N{EN DASH}{last}" if first != last else f"rank {first}" for first, last in bounds]
    return {
        "name": [f"{len(locations):,} locations", *names],
        "kind": ["machine", *["processes"] * len(names)],
        "parent": [-1, *[0] * len(names)],
        "place": [-1, *range(len(names))],
    }


def _rows(system: pa.Table) -> dict[str, list[Any]]:
    kind = system["kind"].to_numpy()
    parent, location = (system[name].cast(pa.int64()).fill_null(-1).to_numpy() for name in ("parent", "location"))
    is_location = kind == "location"
    members = np.bincount(parent[is_location], minlength=kind.size)
    # A process with one thread takes one row; its place is in the row of the thread.
    (alone,) = np.nonzero((kind == "group") & (members == 1))
    place = location.copy()
    place[alone] = location[alone + 1]
    kept = ~(is_location & (members[parent] == 1))
    row = np.cumsum(kept) - 1
    return {
        "name": system["name"].to_numpy()[kept].tolist(),
        "kind": system["class"].to_numpy()[kept].tolist(),
        "parent": np.where(parent >= 0, row[parent], -1)[kept].tolist(),
        "place": place[kept].tolist(),
    }


def topologies(found: pa.Table) -> list[dict[str, Any]]:
    """Return Cartesian topologies: ``name``, ``sizes``, ``axes`` (names), ``places`` and their coordinates (``at``).

    Parameters
    ----------
    found
        A table of schema `whywait.model.system.TOPOLOGIES`.
    """
    return [
        {
            "name": topology["name"],
            "axes": [axis["name"] for axis in topology["axes"]],
            "sizes": [axis["size"] for axis in topology["axes"]],
            "places": [place["location"] for place in topology["coordinates"]],
            "at": [place["at"] for place in topology["coordinates"]],
        }
        for topology in found.to_pylist()
    ]
