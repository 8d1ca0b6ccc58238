"""The call tree with values as nested dictionaries, the literal format of Hatchet and Thicket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.runs.compare import default_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from whywait.model.result import ResultData


def literal(
    result: ResultData, metrics: Iterable[str] | None = None, *, rank: int | None = None
) -> list[dict[str, Any]]:
    """Return the call tree in the form of ``hatchet.GraphFrame.from_literal``.

    Parameters
    ----------
    result
        The result.
    metrics
        The metrics to write; None for the time and all wait states.
    rank
        The rank whose values to write; None for the sum over all locations.

    Returns
    -------
    list of dict
        One entry per root: ``frame`` (``name`` and ``type``), ``metrics`` (for each its exclusive value and, as
        ``NAME (inc)``, its inclusive value) and ``children``, which have the same form.

    Raises
    ------
    whywait.UsageError
        If there is no such metric or rank.
    """
    profile, tree = result.profile, result.tree
    names = (
        [name for name in default_metrics(result, result) if name in profile.metrics] if metrics is None else metrics
    )
    columns = {}
    for name in names:
        if name not in profile.metrics:
            raise _native.UsageError(f"there is no metric {name}")
        own = profile.by_position(name) if rank is None else _of_rank(result, name, rank)
        columns[name] = own.tolist()
        has_maxima = rank is None and profile.metrics[name].is_maximum
        inclusive = profile.inclusive_by_position(name) if has_maxima else profile.inclusive(own)
        columns[f"{name} (inc)"] = inclusive.tolist()
    roots: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    for position, above in enumerate(tree.above.tolist()):
        name = tree.kinds[tree.region_rows[int(tree.preorder[position])]].name
        node = {
            "frame": {"name": name, "type": "function"},
            "metrics": {column: values[position] for column, values in columns.items()},
            "children": [],
        }
        (made[above]["children"] if above >= 0 else roots).append(node)
        made.append(node)
    return roots


def _of_rank(result: ResultData, name: str, rank: int) -> npt.NDArray[np.float64]:
    mine = result.places.rank == rank
    if not mine.any():
        raise _native.UsageError(f"there is no rank {rank}")
    cells, locations = result.profile.cells(name), result.profile.locations
    weighted = cells.value * mine[cells.key % locations]
    return np.bincount(cells.key // locations, weighted, len(result.tree)).astype(np.float64)
