"""Flame graphs: the time of each call path, by samples where there are some, in all and at the latest locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.analysis.causes import delay_costs
from whywait.analysis.focus import focused
from whywait.model.profile import sum_at
from whywait.model.timeline import CLASSES, classes
from whywait.report.html import blocks
from whywait.report.html.places import computing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.result import ResultData
    from whywait.report.html.sections import Report

# So many locations can be compared with the others: the latest ones.
_LATEST = 32
_VALUES = ("time", "critical", "variance", "critical_variance", "samples")


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield sums over all locations and over those that are compared, and the values of the latest of these.

    A row is a call path (its position in the tree) with what it has itself, or what samples do not stand for there
    (``away``). Variances are of the time with what it calls.
    """
    result = report.result
    part = focused(result)
    rows = _Rows.of(part)
    rows = rows.chosen(np.isin(rows.location, computing(result.places)))
    if not rows.values["time"].any():
        return
    compared = _compared(result)
    of_compared = rows.chosen(np.isin(rows.location, compared))
    latest = _latest(part, compared, of_compared)
    tree, keys = result.tree, np.unique(rows.key)
    yield (
        "flames",
        blocks.columns(
            {
                **_columns(keys, rows.sums(keys)),
                **{f"compared_{name}": values for name, values in _typed(of_compared.sums(keys)).items()},
                "class": classes(tree)[tree.preorder],
                "sampled": (tree.preorder >= result.facts.get("callpaths", len(tree))).astype(np.uint8),
            }
        ),
    )
    places = result.places
    about = {
        "classes": [[name, text] for name, text, _ in CLASSES],
        "latest": latest.tolist(),
        "rank": places.rank[latest].tolist(),
        "thread": places.thread[latest].tolist(),
        "compared": compared.size,
    }
    yield "flames-about", blocks.document(about)
    late = of_compared.chosen(np.isin(of_compared.location, latest))
    columns = _columns(late.key, late.values) | {"location": late.location.astype(np.uint32)}
    yield "flames-latest", blocks.columns(columns)


def _columns(
    keys: npt.NDArray[np.int64], values: dict[str, npt.NDArray[np.float64]]
) -> dict[str, npt.NDArray[np.generic]]:
    return {"position": (keys // 2).astype(np.uint32), "away": (keys % 2).astype(np.uint8), **_typed(values)}


def _typed(values: dict[str, npt.NDArray[np.float64]]) -> dict[str, npt.NDArray[np.generic]]:
    return {name: of.astype(np.uint32 if name == "samples" else np.float32) for name, of in values.items()}


class _Rows(NamedTuple):
    """What call paths have themselves on locations.

    Attributes
    ----------
    key
        Twice the position of the call path, and one more for what samples do not stand for.
    location
        The location.
    values
        Times on it and on the critical path, the variances of these with what is called, and samples.
    """

    key: npt.NDArray[np.int64]
    location: npt.NDArray[np.int64]
    values: dict[str, npt.NDArray[np.float64]]

    @classmethod
    def of(cls, result: ResultData) -> _Rows:
        """Return the rows of a result: from samples where they divide the time of a call path, else from events."""
        tree, places, profile = result.tree, len(result.places), result.profile
        pieces = []
        divided = np.empty(0, np.int64)
        if result.facts.get("samples"):
            table = result.tables.function_times
            recorded, location = (table[name].to_numpy().astype(np.int64) for name in ("recorded_callpath", "location"))
            callpath = table["callpath"].fill_null(len(tree)).to_numpy().astype(np.int64)
            is_away = callpath == len(tree)
            position = tree.position[np.where(is_away, recorded, callpath)]
            deviations = (
                np.where(callpath == recorded, 0.0, table[f"inclusive_{name}"].to_numpy()) ** 2
                for name in ("deviation", "critical_deviation")
            )
            columns = (table["time"].to_numpy(), table["critical"].to_numpy(), *deviations, table["samples"].to_numpy())
            pieces.append(cls(2 * position + is_away, location, dict(zip(_VALUES, columns, strict=True))))
            divided = np.unique(tree.position[recorded] * places + location)
        for name, metric in (("time", "time"), ("critical", "critical_path")):
            if metric not in profile.metrics:
                continue
            cells = profile.cells(metric)
            kept = ~np.isin(cells.key, divided)
            position, location = np.divmod(cells.key[kept], places)
            nothing = np.zeros(position.size)
            values = dict.fromkeys(_VALUES, nothing) | {name: cells.value[kept]}
            pieces.append(cls(2 * position, location, values))
        return cls(
            np.concatenate([piece.key for piece in pieces]),
            np.concatenate([piece.location for piece in pieces]),
            {name: np.concatenate([piece.values[name] for piece in pieces]) for name in _VALUES},
        )

    def sums(self, keys: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
        """Return the sums over all locations for each of these keys."""
        size = int(keys[-1]) + 1
        return {name: sum_at(self.key, values, size)[keys] for name, values in self.values.items()}

    def chosen(self, rows: npt.NDArray[np.bool_]) -> _Rows:
        """Return some of the rows."""
        return _Rows(self.key[rows], self.location[rows], {name: values[rows] for name, values in self.values.items()})


def _compared(result: ResultData) -> npt.NDArray[np.int64]:
    """Return the locations that are compared with each other: the first threads of ranks, or all of one rank."""
    locations = computing(result.places)
    first = locations[result.places.thread[locations] == 0]
    return first if first.size > 1 else locations


def _latest(result: ResultData, compared: npt.NDArray[np.int64], own: _Rows) -> npt.NDArray[np.int64]:
    """Return the locations that cost others most waiting, and then those that compute longest, the latest first."""
    if compared.size < 2:
        return np.empty(0, np.int64)
    places = len(result.places)
    costs = np.zeros(places)
    if result.has_causes:
        table = delay_costs(result)
        costs = sum_at(
            table["location"].to_numpy().astype(np.int64),
            table["short_term"].to_numpy() + table["long_term"].to_numpy(),
            places,
        )
    works = np.array([kind.is_own for kind in result.tree.kinds])[np.array(result.tree.region_rows)]
    works = works[result.tree.preorder][own.key // 2]
    times = sum_at(own.location, own.values["time"] * works, places)
    order: npt.NDArray[np.int64] = compared[np.lexsort((-times[compared], -costs[compared]))]
    return order[:_LATEST]
