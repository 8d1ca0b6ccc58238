"""The counters of a trace: hardware and software counters, by call path and location.

What a counter grows by between two samples belongs to the call paths that ran in between: see docs/counters.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whywait.model.profile import sum_at
from whywait.model.selection import find_callpaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.result import ResultData

#: What the counters of instructions and of cycles are called.
INSTRUCTIONS, CYCLES = "PAPI_TOT_INS", "PAPI_TOT_CYC"


class Counter:
    """One counter of a trace.

    Parameters
    ----------
    name
        Its name in the result: that in the trace, with a number behind it if another counter has the same.
    definition
        A row of the table `counters` of a dataset.
    cells
        Its rows of the table `counter_cells`.
    result
        The result that it belongs to.
    """

    def __init__(self, name: str, definition: dict[str, Any], cells: pa.Table, result: ResultData) -> None:
        self.name = name
        self._definition = definition
        self._cells = {column: cells[column].to_numpy(zero_copy_only=False) for column in cells.column_names}
        self._result = result

    @property
    def description(self) -> str:
        """What the trace says of it."""
        return str(self._definition["description"])

    @property
    def unit(self) -> str:
        """The unit of its values, as the trace names it."""
        return str(self._definition["unit"])

    @property
    def mode(self) -> str:
        """What its values are said to be: a name of OTF2, such as ``ACCUMULATED_START``."""
        return str(self._definition["mode"])

    @property
    def occurrence(self) -> str:
        """When it is sampled: ``SYNCHRONOUS_STRICT``, ``SYNCHRONOUS`` or ``ASYNCHRONOUS``."""
        return str(self._definition["occurrence"])

    @property
    def kind(self) -> str:
        """What its values are taken as.

        ``total`` grows, and its growth counts; ``level`` holds from sample to sample, and is integrated over time;
        ``samples`` holds at its samples alone. A plugin's total that falls is taken as samples.
        """
        return str(self._definition["kind"])

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return int(self._cells["samples"].sum())

    @cached_property
    def _value(self) -> npt.NDArray[np.float64]:
        """What is summed: growth, integrals, or samples."""
        value: npt.NDArray[np.float64] = self._cells["sampled" if self.kind == "samples" else "amount"]
        return value

    @property
    def total(self) -> float:
        """The sum over all cells: growth, integral over time (unit times seconds), or sum of the samples."""
        return float(self._value.sum())

    @property
    def minimum(self) -> float | None:
        """The least value; None if there is none."""
        return float(self._cells["minimum"].min()) if self.samples else None

    @property
    def maximum(self) -> float | None:
        """The greatest value; None if there is none."""
        return float(self._cells["maximum"].max()) if self.samples else None

    @property
    def mean(self) -> float | None:
        """The mean of a level over the time in which it is known, or of samples; None of a total."""
        weight = {"level": "seconds", "samples": "samples"}.get(self.kind)
        if weight is None or not (sum_of_weights := float(self._cells[weight].sum())):
            return None
        return self.total / sum_of_weights

    @property
    def outside(self) -> float:
        """The part of `total` that lies outside of all regions: that of counters with a location of their own, too."""
        return float(self._value[~self._inside].sum())

    @cached_property
    def _inside(self) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = ~np.isnan(self._cells["callpath"].astype(np.float64))
        return inside

    def by_position(self) -> npt.NDArray[np.float64]:
        """Sum over all locations: one exclusive value for each position of the call tree."""
        tree = self._result.tree
        callpath = self._cells["callpath"][self._inside].astype(np.int64)
        return sum_at(tree.position[callpath], self._value[self._inside], len(tree))

    def by_callpath(self) -> pa.Table:
        """Sum over locations: ``callpath``, ``callpath_id``, ``value`` and ``inclusive`` (with all below)."""
        tree = self._result.tree
        value = self.by_position()
        inclusive = self._result.profile.inclusive(value)
        (shown,) = np.nonzero((value != 0) | (inclusive != 0))
        callpath = tree.preorder[shown]
        return pa.table(
            {
                "callpath": tree.paths.take(pa.array(callpath)),
                "callpath_id": callpath.astype(np.uint32),
                "value": value[shown],
                "inclusive": inclusive[shown],
            }
        )

    def by_location(self) -> pa.Table:
        """Sum over call paths: ``location``, ``rank``, ``thread``, ``value``, ``samples``, ``minimum``, ``maximum``."""
        locations = len(self._result.places)
        location = self._cells["location"].astype(np.int64)
        (shown,) = np.nonzero(np.bincount(location, self._cells["samples"], locations))
        least, most = np.full(locations, np.inf), np.full(locations, -np.inf)
        np.minimum.at(least, location, self._cells["minimum"])
        np.maximum.at(most, location, self._cells["maximum"])
        places = self._result.places
        return pa.table(
            {
                "location": shown.astype(np.uint32),
                "rank": places.rank[shown],
                "thread": places.thread[shown],
                "value": sum_at(location, self._value, locations)[shown],
                "samples": sum_at(location, self._cells["samples"], locations)[shown].astype(np.uint64),
                "minimum": least[shown],
                "maximum": most[shown],
            }
        )

    def cells(self) -> pa.Table:
        """Return exclusive values: ``callpath``, ``callpath_id``, ``location``, ``rank``, ``thread``, ``value``, ...

        Then ``seconds`` (in which a level is known), ``samples``, ``minimum`` and ``maximum``. What lies outside of
        all regions has no call path.
        """
        places = self._result.places
        number = pa.array(self._cells["callpath"].astype(np.float64), from_pandas=True).cast(pa.uint32())
        location = self._cells["location"].astype(np.int64)
        columns = {
            "callpath": self._result.tree.paths.take(number),
            "callpath_id": number,
            "location": self._cells["location"],
            "rank": places.rank[location],
            "thread": places.thread[location],
            "value": self._value,
        }
        return pa.table(columns | {name: self._cells[name] for name in ("seconds", "samples", "minimum", "maximum")})

    def in_computation(self, callpath: str | int | None = None) -> float:
        """Sum over the call paths that compute: those with time outside of all communication and threading libraries.

        Parameters
        ----------
        callpath
            Only call paths that end in these names, with all below, as `find_callpaths` takes it; None for all.
        """
        tree = self._result.tree
        inside = self._result.profile.by_position("comp") > 0
        if callpath is not None:
            part = np.zeros(len(tree), dtype=np.bool_)
            for position in find_callpaths(tree, callpath):
                part[position : tree.end[position]] = True
            inside &= part
        return float(self.by_position()[inside].sum())

    def as_dict(self) -> dict[str, Any]:
        """Return what there is to say of it in one line, as data that JSON can say."""
        names = "name kind mode occurrence unit samples total minimum maximum mean outside".split()
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"<whywait Counter {self.name}: {self.total:g} {self.unit}>"


class Counters(Mapping[str, Counter]):
    """The counters of a trace that have values, by name.

    >>> result.counters["PAPI_TOT_INS"].by_callpath()

    Parameters
    ----------
    result
        The result.
    """

    def __init__(self, result: ResultData) -> None:
        cells = result.tables.counter_cells
        number = cells["counter"].to_numpy()
        self._counters: dict[str, Counter] = {}
        for definition in result.tables.counters.to_pylist():
            own = cells.filter(pa.array(number == definition["counter"]))
            if own.num_rows:
                name = self._free(definition["name"])
                self._counters[name] = Counter(name, definition, own, result)

    def _free(self, name: str) -> str:
        """Return a name that no other counter has: the same name may come with another unit or mode."""
        names = (name if number == 1 else f"{name} ({number})" for number in range(1, len(self._counters) + 2))
        return next(free for free in names if free not in self._counters)

    def __getitem__(self, name: str) -> Counter:
        return self._counters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counters)

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def instructions_per_cycle(self) -> float | None:
        """``PAPI_TOT_INS / PAPI_TOT_CYC`` over the whole run; None without these counters."""
        if INSTRUCTIONS not in self or CYCLES not in self or not self[CYCLES].total:
            return None
        return self[INSTRUCTIONS].total / self[CYCLES].total
