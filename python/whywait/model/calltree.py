"""The call tree, in the orders that tables and Cube files need."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.model.regions import OTHER, UNKNOWN, Region

if TYPE_CHECKING:
    import numpy.typing as npt

#: A call path in a table: names from the root down, each name kept once.
PATH_TYPE = pa.list_(pa.dictionary(pa.int32(), pa.string()))


class CallTree:
    """Call paths with their regions.

    A call path has an *id* 0..n-1, by which tables name it, and a *position*: its place in pre-order. The subtree of a
    call path is a range of positions.

    Parameters
    ----------
    regions, callpaths
        The tables of the native analysis of these names.
    """

    def __init__(self, regions: pa.Table, callpaths: pa.Table) -> None:
        self.regions = regions
        rows = {region: row for row, region in enumerate(regions["region"].to_pylist())}
        #: Row in `regions` of each call path, by id.
        self.region_rows: list[int] = [rows[region] for region in callpaths["region"].to_pylist()]
        #: Id of the parent of each call path, -1 for a root.
        self.parents = [-1 if parent is None else parent for parent in callpaths["parent"].to_pylist()]
        self.children: list[list[int]] = [[] for _ in self.parents]
        self.roots: list[int] = []
        for callpath, parent in enumerate(self.parents):
            (self.roots if parent < 0 else self.children[parent]).append(callpath)

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def preorder(self) -> npt.NDArray[np.int64]:
        """Ids in pre-order: a call path, then the subtree of each of its children."""
        order, stack = [], self.roots[::-1]
        while stack:
            callpath = stack.pop()
            order.append(callpath)
            stack.extend(reversed(self.children[callpath]))
        return np.array(order, dtype=np.int64)

    @cached_property
    def wide(self) -> npt.NDArray[np.int64]:
        """Ids in Cube's order of inclusive values: all children of a call path, then the subtree of each.

        Several roots are treated as children of a virtual one.
        """
        order: list[int] = []
        stack = [self.roots]
        while stack:
            siblings = stack.pop()
            order.extend(siblings)
            stack.extend(self.children[callpath] for callpath in reversed(siblings))
        return np.array(order, dtype=np.int64)

    @cached_property
    def position(self) -> npt.NDArray[np.int64]:
        """Position of each call path in `preorder`, by id."""
        position = np.empty(len(self), dtype=np.int64)
        position[self.preorder] = np.arange(len(self))
        return position

    @cached_property
    def above(self) -> npt.NDArray[np.int64]:
        """For each position, the position of the parent, -1 for a root."""
        parents = np.array(self.parents, dtype=np.int64)[self.preorder]
        return np.where(parents < 0, -1, self.position[parents])

    @cached_property
    def depth(self) -> npt.NDArray[np.int64]:
        """For each position, the number of call paths above it."""
        depth = np.zeros(len(self), dtype=np.int64)
        for position, above in enumerate(self.above.tolist()):
            depth[position] = depth[above] + 1 if above >= 0 else 0
        return depth

    @cached_property
    def end(self) -> npt.NDArray[np.int64]:
        """For each position, the position after the last of its subtree."""
        end = np.arange(1, len(self) + 1)
        for position in range(len(self) - 1, -1, -1):
            if (above := self.above[position]) >= 0:
                end[above] = max(end[above], end[position])
        return end

    @cached_property
    def kinds(self) -> list[Region]:
        """The region of each row of `regions`, in the terms of the classes of regions."""
        columns = (self.regions[name].to_pylist() for name in ("name", "paradigm", "role"))
        recorded = [(name or "", paradigm, role) for name, paradigm, role in zip(*columns, strict=True)]
        files = self.regions["file"].to_pylist()
        return [replace(region, file=file or "") for region, file in zip(Region.all_of(recorded), files, strict=True)]

    @cached_property
    def paradigms(self) -> set[str]:
        """The paradigms that occur in the call tree; that of all unknown communication libraries is one."""
        found = {self.kinds[row].paradigm for row in set(self.region_rows)}
        return found - UNKNOWN | {OTHER} if any(self.unknown_libraries) else found - UNKNOWN

    @cached_property
    def parallel(self) -> npt.NDArray[np.bool_]:
        """For each position, whether it is an OpenMP parallel region or inside one."""
        inside = np.zeros(len(self), np.bool_)
        for position, callpath in enumerate(self.preorder.tolist()):
            kind = self.kinds[self.region_rows[callpath]]
            if kind.paradigm == "openmp" and kind.role == "parallel":
                inside[position : self.end[position]] = True
        return inside

    @cached_property
    def unknown_libraries(self) -> list[str | None]:
        """For each position, the unknown communication library that it is a call of.

        Calls of one library by another are those of the outer one. What a known library calls is its own matter.
        """
        outer: list[str | None] = []
        found: list[str | None] = []
        is_known = np.zeros(len(self), np.bool_)
        for position, callpath in enumerate(self.preorder.tolist()):
            kind, above = self.kinds[self.region_rows[callpath]], self.above[position]
            is_known[position] = kind.is_communication or (above >= 0 and is_known[above])
            is_call = kind.paradigm in UNKNOWN and not is_known[position]
            around = outer[above] if above >= 0 else None
            outer.append(around or (kind.paradigm if is_call else None))
            found.append(outer[-1] if is_call else None)
        return found

    def mask(self, name: str) -> npt.NDArray[np.bool_]:
        """Return for each position whether it is in a mask of `whywait.model.regions`."""
        if name == OTHER:
            return np.array([library is not None for library in self.unknown_libraries], np.bool_)
        inside = np.array([kind.is_in(name) for kind in self.kinds], dtype=np.bool_)
        return inside[np.array(self.region_rows, dtype=np.int64)[self.preorder]]

    @cached_property
    def paths(self) -> pa.ListArray:
        """Names from the root down, of type `PATH_TYPE`, by id."""
        names = pa.array([kind.name for kind in self.kinds], pa.string())
        rows = np.array(self.region_rows, dtype=np.int32)
        parents = np.array(self.parents, dtype=np.int64)
        depth = np.empty(len(self), dtype=np.int64)
        depth[self.preorder] = self.depth
        offsets = np.concatenate(([0], np.cumsum(depth + 1)))
        steps = np.empty(offsets[-1], dtype=np.int32)
        # From the end of each path to its root, all paths at once.
        path = at = np.arange(len(self))
        while path.size:
            steps[offsets[path] + depth[at]] = rows[at]
            inner = parents[at] >= 0
            path, at = path[inner], parents[at[inner]]
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.DictionaryArray.from_arrays(pa.array(steps), names), type=PATH_TYPE
        )

    @cached_property
    def joined(self) -> pa.StringArray:
        """Names from the root down, joined with ``/``, by id, for use as keys and groups."""
        return pc.binary_join(self.paths.cast(pa.list_(pa.string())), "/")

    def path(self, callpath: int) -> list[str]:
        """Return the names from the root down to a call path."""
        names = []
        while callpath >= 0:
            names.append(self.kinds[self.region_rows[callpath]].name)
            callpath = self.parents[callpath]
        return names[::-1]
