"""The data of a run that all views share, which ``assets/model.js`` reads: its trees and the values at them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.focus import ALL, FocusedData, focused, is_whole, with_counts
from whywait.analysis.summary import identity
from whywait.model.counters import seconds_of
from whywait.model.names import short_name
from whywait.report.html import blocks, places, worst_waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.metrics import Metric
    from whywait.model.profile import Profile
    from whywait.model.result import ResultData
    from whywait.report.html.formulas import Factors, Formulas

# Threads that pack cells: most of that is compression, for which Python lets others run.
_THREADS = 4


def run_blocks(
    result: ResultData, formulas: Formulas, room: Callable[[], int], *, waits: int = worst_waits.OF_ALL
) -> Iterator[tuple[str, str]]:
    """Yield name and content of each block of a run.

    Parameters
    ----------
    result, formulas
        The run.
    room
        A function that returns the maximum size of the cells in bytes.
    waits
        Maximum number of individual wait states.
    """
    stored = stored_metrics(result.profile)
    with ThreadPoolExecutor(1) as beside:
        # The core chooses wait states while the cells are packed.
        worst = beside.submit(worst_waits.worst, result, waits)
        resolution, cells = _cells(result.profile, stored, room)
    yield from fixed_blocks(result, formulas, stored, resolution, worst.result())
    for number, block in enumerate(cells):
        yield f"cells-{number}", block


def shown_part(result: ResultData, summary: dict[str, Any]) -> FocusedData:
    """Return what all values of a report are of: the focus of its summary; of counts, the whole run."""
    focus = summary["focus"]
    return with_counts(focused(result, focus["callpath"] or (ALL if focus["name"] == ALL else None)))


def stored_metrics(profile: Profile) -> list[str]:
    """Return the metrics whose cells a page holds."""
    stored = [metric.name for metric in profile.metrics if not metric.derived]
    return [name for name in [*stored, *profile.metrics.beside] if len(profile.cells(name))]


def fixed_blocks(
    result: ResultData,
    formulas: Formulas,
    stored: list[str],
    resolution: places.Resolution,
    worst: worst_waits.WorstWaits,
) -> Iterator[tuple[str, str]]:
    """Yield name and content of each block of a run except the cells; parameters as in `run_blocks`.

    ``stored`` names the metrics with cells, ``resolution`` is the resolution of these cells, and ``worst`` are the
    individual wait states.
    """
    profile, locations = result.profile, result.places
    factors = _Vectors()
    yield (
        "meta",
        blocks.document(
            {
                "whywait": _native.__version__,
                "run": identity(result),
                "facts": result.facts,
                "stored": stored,
                "metrics": [_metric(result, name, formulas[name], stored, factors) for name in _shown_metrics(profile)],
                "regions": _regions(result.tree),
                "callpaths": _callpaths(result.tree),
                "system": places.system_rows(result.tables.system, locations, resolution),
                "topologies": [] if resolution.merged > 1 else places.topologies(result.tables.topologies),
                "streams": places.stream_names(locations),
                "left_out": [] if resolution.merged > 1 else places.left_out(locations),
                "resolution": {"merged": resolution.merged, "exact": resolution.exact},
                "kinds": worst.kinds,
            }
        ),
    )
    yield "places", blocks.columns(dict(places.place_columns(locations, resolution)))
    yield "factors", blocks.columns({"factor": factors.all(len(result.tree))})
    yield "totals", blocks.columns(_totals(profile, stored))
    yield "instances", blocks.columns(worst.merged(resolution.merged))


def _cells(profile: Profile, stored: list[str], room: Callable[[], int]) -> tuple[places.Resolution, list[str]]:
    """Pack the cells of all stored metrics at the finest resolution that fits in the page."""

    def packed(name: str) -> str:
        return blocks.columns(resolution.of_metric(profile, name))

    resolution = places.Resolution.of(profile, stored)
    with ThreadPoolExecutor(_THREADS) as threads:
        while sum(map(len, cells := list(threads.map(packed, stored)))) > room():
            if resolution.merged >= profile.locations:
                break
            resolution = resolution.coarser()
    return resolution, cells


def _shown_metrics(profile: Profile) -> Iterable[str]:
    return (metric.name for metric in profile.metrics if metric.name not in profile.void)


class _Vectors:
    """Factors by call path; many metrics have equal ones, so each vector is kept once."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def number(self, factor: npt.NDArray[np.float64]) -> int:
        return self._numbers.setdefault(factor.tobytes(), len(self._numbers))

    def all(self, length: int) -> npt.NDArray[np.float64]:
        """Return all vectors, concatenated."""
        return np.frombuffer(b"".join(self._numbers) or bytes(8 * length), np.float64)


def described(metric: Metric) -> dict[str, Any]:
    """Return what a page tells of a metric, whatever its values."""
    return {
        "name": metric.name,
        "label": metric.display_name,
        "parent": metric.parent,
        "unit": metric.unit,
        "text": metric.description,
        "formula": str(metric.formula) if metric.formula else None,
        "maximum": metric.is_maximum,
        "heading": metric.kind == "heading",
    }


def _metric(result: ResultData, name: str, factors: Factors, stored: list[str], vectors: _Vectors) -> dict[str, Any]:
    profile = result.profile
    return {
        **described(profile.metrics[name]),
        "whole": isinstance(result, FocusedData) and is_whole(result, name),
        "terms": [[stored.index(part), vectors.number(factor)] for part, factor in factors.items()],
        "seconds": stored.index(seconds) if (seconds := seconds_of(name)) in profile.metrics.beside else None,
    }


def _regions(tree: CallTree) -> list[dict[str, Any]]:
    lines = tree.regions["begin_line"].to_pylist()
    return [
        {"name": kind.name, "short": short_name(kind.name), "file": kind.file, "line": line or None}
        for kind, line in zip(tree.kinds, lines, strict=True)
    ]


def _callpaths(tree: CallTree) -> dict[str, list[int]]:
    """Return the call tree in pre-order."""
    return {
        "id": tree.preorder.tolist(),
        "parent": tree.above.tolist(),
        "region": [tree.region_rows[callpath] for callpath in tree.preorder.tolist()],
    }


def _totals(profile: Profile, stored: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of stored metrics over all locations, unrounded."""
    sums = [profile.by_position(name) for name in stored]
    used = [profile.positions(name) if profile.metrics.find(name).is_maximum else np.flatnonzero(values)
            for name, values in zip(stored, sums, strict=True)]  # fmt: skip
    return {
        "metric": np.repeat(np.arange(len(stored), dtype=np.uint32), [rows.size for rows in used]),
        "position": np.concatenate([*used, np.empty(0, np.int64)]).astype(np.uint32),
        "value": np.concatenate([*(values[rows] for values, rows in zip(sums, used, strict=True)), np.empty(0)]),
    }
