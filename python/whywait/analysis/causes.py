"""Delay costs and the critical path."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from whywait.analysis.functions import functions
from whywait.model.profile import sum_at
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from whywait.model.metrics import MetricTree
    from whywait.model.profile import Cells
    from whywait.model.result import ResultData

#: The class of unattributed costs, located at the waiting; other classes are located at the cause.
UNATTRIBUTED = "unattributed"
IDLE_THREADS = "ompidle"
#: Classes of costs of idle resources, which do not wait, and the names of these resources.
IDLE_OF = {IDLE_THREADS: "threads", "gpu_device": "devices"}
IDLE = frozenset(IDLE_OF)


class CostClass(NamedTuple):
    """A class of delay costs, by the kind of waiting that they cause."""

    name: str
    display_name: str
    metrics: tuple[str, ...]


@lru_cache(16)
def cost_classes(metrics: MetricTree) -> tuple[CostClass, ...]:
    """Return the classes of delay costs that an analysis computes, in the order of the metric tree."""
    found: dict[str, CostClass] = {}
    for metric in metrics:
        if metric.derived or metrics.path(metric.name)[0].name not in {"delay", "interval_delay"}:
            continue
        name = metric.name.removesuffix("_longterm").replace("interval_delay_", "interval_").removeprefix("delay_")
        # The two terms of a class are the only children of their sum.
        whole = metrics[metric.parent] if metric.parent and metric.parent.endswith("_aggregate") else metric
        known = found.get(name, CostClass(name, whole.display_name.removesuffix(" delay costs"), ()))
        found[name] = known._replace(metrics=(*known.metrics, metric.name))
    names = Counter(kind.display_name for kind in found.values())
    return tuple(kind if names[kind.display_name] == 1 else _qualified(metrics, kind) for kind in found.values())


def _qualified(metrics: MetricTree, kind: CostClass) -> CostClass:
    """Make a class distinct from one of the same name elsewhere in the tree."""
    family = metrics.path(kind.metrics[0])[1]
    return kind._replace(display_name=f"{family.display_name} {kind.display_name}")


def delay_costs(result: ResultData, is_wanted: Callable[[str], bool] = lambda _: True) -> pa.Table:
    """Return the delay costs, with numbers instead of names.

    Parameters
    ----------
    result
        What to look through.
    is_wanted
        Which classes to return, by name; all by default.

    Returns
    -------
    pyarrow.Table
        ``class``, ``callpath``, ``location``, ``short_term`` and ``long_term`` (seconds), in the order of the metric
        tree, the call tree and the locations.

    Raises
    ------
    whywait.UsageError
        If causes were not computed.
    """
    result.need_causes()
    profile = result.profile
    classes = [kind for kind in cost_classes(profile.metrics) if is_wanted(kind.name)]
    codes, keys, terms = [], [], []
    for code, kind in enumerate(classes):
        cells = {name.endswith("_longterm"): profile.cells(name) for name in kind.metrics}
        key = _union_of_keys(list(cells.values()))
        codes.append(np.full(key.size, code, np.int32))
        keys.append(key)
        terms.append([_values_at(cells.get(long), key) for long in (False, True)])
    key = np.concatenate([np.empty(0, np.int64), *keys])
    position, location = np.divmod(key, profile.locations)
    short, long = (np.concatenate([np.empty(0), *(pair[term] for pair in terms)]) for term in (0, 1))
    return pa.table(
        {
            "class": pa.DictionaryArray.from_arrays(
                np.concatenate([np.empty(0, np.int32), *codes]), pa.array([kind.name for kind in classes], pa.string())
            ),
            "callpath": profile.tree.preorder[position].astype(np.uint32),
            "location": location.astype(np.uint32),
            "short_term": short,
            "long_term": long,
        }
    )


def _union_of_keys(cells: list[Cells]) -> npt.NDArray[np.int64]:
    """Return the sorted keys of all cells, without duplicates."""
    # A stable sort merges runs that are already sorted in one pass each.
    key = np.sort(np.concatenate([part.key for part in cells]), kind="stable")
    return key[np.flatnonzero(np.diff(key, prepend=-1))]


def _values_at(cells: Cells | None, key: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    values = np.zeros(key.size)
    if cells is not None:
        values[np.searchsorted(key, cells.key)] = cells.value
    return values


def _costs_below(
    result: ResultData, callpath: str | int | None, is_wanted: Callable[[str], bool] = lambda _: True
) -> pa.Table:
    """Return the delay costs of the matching call paths and those below; of all for None."""
    table = delay_costs(result, is_wanted)
    if callpath is None:
        return table
    return table.filter(pa.array(in_subtrees(result.tree, callpath)[table["callpath"].to_numpy()]))


def costliest(
    result: ResultData,
    count: int,
    *,
    paid_for: Literal["all", "waiting", "idle"] = "all",
    whole: float | None = None,
    callpath: str | int | None = None,
    with_libraries: bool = True,
) -> list[dict[str, Any]]:
    """Return the call paths whose delays cost most waiting time elsewhere.

    Parameters
    ----------
    result
        What to look through.
    count
        How many to return at most.
    paid_for
        Which costs: those of waiting, those of idle threads, or both.
    whole
        The total that shares refer to (s); None for all of these costs.
    callpath
        What to find call paths by, see `whywait.model.selection.find_callpaths`: only these and what is below them.
    with_libraries
        Whether to include calls of communication libraries, which pass waiting on (`passed_on`).

    Returns
    -------
    list of dict
        ``callpath``, ``callpath_id``, ``costs`` (s), their parts ``short_term`` and ``long_term``, ``share`` (of the
        whole), ``ranks`` (number of delaying ranks), ``worst_rank``, ``worst_rank_share`` (of the costs),
        ``classes``: ``class``, ``display_name`` and ``costs`` (s) of each class of waiting, largest first, and
        ``functions``: what samples say, see `whywait.analysis.functions.functions.costs`.
    """

    def is_paid(kind: str) -> bool:
        return kind != UNATTRIBUTED and (paid_for == "all" or (kind in IDLE) == (paid_for == "idle"))

    table = _costs_below(result, callpath, is_paid)
    kinds = {kind.name: kind.display_name for kind in cost_classes(result.profile.metrics)}
    size = len(result.tree)
    where, location = (table[name].to_numpy().astype(np.int64) for name in ("callpath", "location"))
    short, long = table["short_term"].to_numpy(), table["long_term"].to_numpy()
    by_callpath = sum_at(where, short + long, size)
    if not with_libraries:
        by_callpath[calls_of_libraries(result)] = 0.0
    shorts = sum_at(where, short, size)
    order = np.argsort(-by_callpath, kind="stable")[:count]
    places = []
    for chosen in order[by_callpath[order] > 0].tolist():
        rows = where == chosen
        costs = float(by_callpath[chosen])
        by_class = _by_class(table.filter(pa.array(rows)))
        amounts = [
            {"class": name, "display_name": kinds[name], "costs": by_class[name]}
            for name in sorted(by_class, key=lambda name: -by_class[name])
        ]
        places.append(
            {
                "callpath": result.tree.path(chosen),
                "callpath_id": chosen,
                "costs": costs,
                "short_term": float(shorts[chosen]),
                "long_term": costs - float(shorts[chosen]),
                "share": costs / (whole or float(by_callpath.sum())),
                **on_ranks(result, location[rows], (short + long)[rows]),
                "classes": amounts,
                "functions": functions.costs(result, chosen),
            }
        )
    return places


def calls_of_libraries(result: ResultData) -> npt.NDArray[np.bool_]:
    """Return for each call path, by number, whether it is a call of a communication library."""
    tree = result.tree
    return np.array([kind.is_communication for kind in tree.kinds], bool)[tree.region_rows]


def passed_on(result: ResultData) -> float:
    """Return the waiting that calls of communication libraries cause, in seconds.

    They do not cause it by themselves: they take longer than the same calls elsewhere, or begin to wait late.
    """
    profile, calls = result.profile, calls_of_libraries(result)[result.tree.preorder]
    kinds = (kind for kind in cost_classes(profile.metrics) if kind.name not in IDLE | {UNATTRIBUTED})
    return sum(float(profile.by_position(name)[calls].sum()) for kind in kinds for name in kind.metrics)


def total_costs(result: ResultData, *, callpath: str | int | None = None) -> dict[str, float]:
    """Return the nonzero costs of each class, in seconds.

    Restricted to the call paths that match `callpath` and those below, if given.
    """
    return _by_class(_costs_below(result, callpath))


def _by_class(table: pa.Table) -> dict[str, float]:
    """Add up the costs of each class that occurs, in seconds."""
    classes = table["class"].combine_chunks()
    names, numbers = classes.dictionary.to_pylist(), classes.indices.to_numpy()
    short, long = (sum_at(numbers, table[term].to_numpy(), len(names)) for term in ("short_term", "long_term"))
    costs = (short + long).tolist()
    return {names[number]: costs[number] for number in np.unique(numbers).tolist()}


def on_ranks(result: ResultData, location: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return the number of ranks with values, and the rank with the largest sum.

    Parameters
    ----------
    result
        The result that the locations belong to.
    location, values
        The location and amount of each value.

    Returns
    -------
    dict
        ``ranks`` (number of ranks with values), ``worst_rank``, ``worst_rank_share`` (of all), and, if that rank has
        several threads, ``worst_thread`` and ``worst_thread_share`` (of all); else None.
    """
    ranks, group = np.unique(result.places.rank[location], return_inverse=True)
    by_rank = sum_at(group, values, ranks.size)
    worst = int(by_rank.argmax())
    rank, whole = int(ranks[worst]), float(by_rank.sum())
    thread = share = None
    if np.count_nonzero(result.places.works & (result.places.rank == rank)) > 1:
        (own,) = np.nonzero(group == worst)
        threads, inside = np.unique(result.places.thread[location[own]], return_inverse=True)
        by_thread = sum_at(inside, values[own], threads.size)
        thread, share = int(threads[by_thread.argmax()]), float(by_thread.max() / whole)
    return {
        "ranks": int(np.count_nonzero(by_rank)),
        "worst_rank": rank,
        "worst_rank_share": float(by_rank[worst] / whole),
        "worst_thread": thread,
        "worst_thread_share": share,
    }


def critical(result: ResultData, count: int, *, callpath: str | int | None = None) -> dict[str, Any]:
    """Return the call paths on the critical path.

    Parameters
    ----------
    result
        What to look through.
    count
        How many call paths to return at most.
    callpath
        What to find call paths by, see `whywait.model.selection.find_callpaths`: only these and what is below them.

    Returns
    -------
    dict
        ``length`` (s), ``imbalance`` (s: the part that a balanced run would not have), ``hops`` (how often the complete
        path changes its location) and ``callpaths``: those with the largest shares, each with ``callpath``,
        ``callpath_id``, ``time`` (s), ``share`` (of the length), ``imbalance`` (s), ``ranks``, ``worst_rank``,
        ``worst_rank_share`` and ``functions``: what samples say, see `whywait.analysis.functions.functions.times`.
    """
    result.need_causes()
    profile, tree = result.profile, result.tree
    path, imbalance = (profile.by_position(name) for name in ("critical_path", "critical_path_imbalance"))
    if callpath is not None:
        chosen = in_subtrees(tree, callpath)[tree.preorder]
        path, imbalance = np.where(chosen, path, 0.0), np.where(chosen, imbalance, 0.0)
    length = float(path.sum())
    order = np.argsort(-path, kind="stable")[:count]
    places = []
    for position in order[path[order] > 0].tolist():
        row = profile.row("critical_path", position)
        (location,) = np.nonzero(row)
        number = int(tree.preorder[position])
        places.append(
            {
                "callpath": tree.path(number),
                "callpath_id": number,
                "time": float(path[position]),
                "share": float(path[position]) / length,
                "imbalance": float(imbalance[position]),
                **on_ranks(result, location, row[location]),
                "functions": functions.times(result, number, critical=True),
            }
        )
    if not length:
        return {"length": 0.0, "imbalance": 0.0, "hops": 0, "callpaths": []}
    segments = result.tables.critical_path
    hops = segments.num_rows - segments["hop"].null_count
    return {"length": length, "imbalance": float(imbalance.sum()), "hops": hops, "callpaths": places}
