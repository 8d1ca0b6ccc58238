"""The most severe wait states, individually or by call path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.model import tables
from whywait.model.metric_names import metric_name
from whywait.model.metrics import metric_tree
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.metrics import MetricTree
    from whywait.model.result import ResultData

_GROUP = ["kind", "callpath", "cause_callpath"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection of wait states.

    Attributes
    ----------
    metric
        A wait state, or a metric that has some below it. None for all that waiting is made of, which is without
        completion. A wait state that is part of another counts as that other only, unless it is asked for itself.
    rank
        The waiting rank; None for all.
    callpath
        The waiting call paths, as in `whywait.model.selection.find_callpaths`; None for all.
    completion
        Whether to include completion, which is listed with the wait states but is not waiting.
    window
        Only waits in calls that overlap this time, seconds since the start of the trace; None for the whole run.
    """

    metric: str | None = None
    rank: int | None = None
    callpath: str | int | None = None
    completion: bool = False
    window: tuple[float, float] | None = None


def choose(result: ResultData, choice: Choice) -> pa.Table:
    """Return the chosen rows of the native table of wait states.

    Raises
    ------
    whywait.UsageError
        If there is no such metric, rank or call path.
    """
    return result.tables.wait_states.filter(pa.array(chosen_rows(result, choice)))


def chosen_rows(result: ResultData, choice: Choice) -> npt.NDArray[np.bool_]:
    """Return a mask of the chosen rows; see `choose`."""
    table = result.tables.wait_states
    kinds = Kinds(table)
    keep = kinds.mask(_wanted_metrics(result.profile.metrics, choice, kinds))
    if choice.rank is not None:
        if choice.rank not in (ranks := result.places.rank):
            known = ranks[ranks >= 0]
            has = f": ranks are {known.min()} to {known.max()}" if known.size else ""
            raise _native.UsageError(f"there is no rank {choice.rank}{has}")
        keep &= ranks[table["location"].to_numpy()] == choice.rank
    if choice.window is not None:
        begin, end = choice.window
        keep &= (table["enter"].to_numpy() < end) & (table["leave"].to_numpy() > begin)
    if choice.callpath is not None:
        keep &= in_subtrees(result.tree, choice.callpath)[table["callpath"].to_numpy()]
    return keep


class Kinds:
    """The kinds of wait states in a native table of them.

    A kind has its place in the complete metric tree: the tree of a part of the run lacks bounds, of which the table has
    rows. Kinds that this version does not know are left out.
    """

    def __init__(self, native: pa.Table) -> None:
        kinds = native["kind"].unify_dictionaries().combine_chunks()
        self._names: list[str] = kinds.dictionary.to_pylist()
        self._of_row: npt.NDArray[np.integer] = kinds.indices.to_numpy()
        tree = metric_tree()
        # The metrics above each kind that occurs, and itself.
        self._above = {
            kind: {metric.name for metric in tree.path(kind)} for kind in kinds.unique().to_pylist() if kind in tree
        }
        #: The kinds that occur.
        self.occurring = set(self._above)

    def of_metric(self, metrics: MetricTree, name: str) -> set[str]:
        """Return the kinds whose rows make up a wait state: its own, or if it is itself a part, those of its parts."""
        if name in self.occurring or metrics.wait_state(name) is metrics[name]:
            return {name}
        return {kind for kind, above in self._above.items() if name in above}

    def occurs(self, name: str) -> bool:
        """Return whether there is a row of this kind, or of one below it."""
        return any(name in above for above in self._above.values())

    def rows(self, kinds: set[str]) -> npt.NDArray[np.intp]:
        """Return the numbers of the rows that are of one of these kinds, in their order."""
        return np.flatnonzero(self.mask(kinds))

    def mask(self, kinds: set[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows of these kinds."""
        mask = np.zeros(self._of_row.size, np.bool_)
        for number, name in enumerate(self._names):
            if name in kinds:
                mask |= self._of_row == number
        return mask


def _wanted_metrics(metrics: MetricTree, choice: Choice, kinds: Kinds) -> set[str]:
    name = choice.metric
    whole = {one.name for one in metrics.waiting}
    if choice.completion:
        whole |= {one.name for one in metrics if one.kind == "completion"}
    name = None if name is None else metric_name(metrics, name, kinds.occurs)
    if name is None or name == "waiting":
        return whole
    if metrics.wait_state(name) is not None:
        return kinds.of_metric(metrics, name)
    found = {one for one in whole if any(above.name == name for above in metrics.path(one))}
    if not found:
        raise _native.UsageError(f"{name} has no wait states below it")
    return found


def longest(result: ResultData, chosen: pa.Table, count: int) -> pa.Table:
    """Return the longest of some wait states, longest first, as `whywait.Result.wait_states` has them.

    Parameters
    ----------
    result
        Where they were found.
    chosen
        What `choose` returned.
    count
        How many at most.
    """
    # Break ties by row number, to make the order deterministic.
    numbered = chosen.append_column("row", pa.array(np.arange(chosen.num_rows)))
    keys = [("waiting", "descending"), ("row", "ascending")]
    rows = pc.select_k_unstable(numbered, min(count, chosen.num_rows), keys) if chosen.num_rows else []
    best = chosen.take(pa.array(rows, pa.uint64()))
    return tables.table(tables.WAIT_STATES, tables.wait_state_pieces(result.tree, result.places, best))


def groups(result: ResultData, chosen: pa.Table, count: int) -> list[dict[str, Any]]:
    """Sum wait states by kind, by where they occur, and by what they wait for.

    Parameters
    ----------
    result, chosen, count
        As for `longest`.

    Returns
    -------
    list of dict
        ``kind``, ``callpath``, ``cause_callpath`` (names from the root, or None), ``waiting`` (seconds), ``instances``,
        ``longest`` (seconds), ``ranks`` (how many wait) and ``cause_ranks`` (how many are waited for), most waiting
        first.
    """
    rank = pa.array(result.places.rank)
    places = pa.table(
        {
            "kind": chosen["kind"].cast(pa.string()),
            "callpath": chosen["callpath"],
            "cause_callpath": chosen["cause_callpath"],
            "waiting": chosen["waiting"],
            "rank": rank.take(chosen["location"].combine_chunks()),
            "cause_rank": rank.take(chosen["cause_location"].combine_chunks()),
        }
    )
    sums = places.group_by(_GROUP, use_threads=False).aggregate(
        [("waiting", "sum"), ("waiting", "count"), ("waiting", "max"), ("rank", "count_distinct"),
         ("cause_rank", "count_distinct", pc.CountOptions(mode="only_valid"))]
    )  # fmt: skip
    most = sums.sort_by([("waiting_sum", "descending"), ("callpath", "ascending")]).slice(0, count)
    path = result.tree.path
    return [
        {
            "kind": row["kind"],
            "callpath": path(row["callpath"]),
            "cause_callpath": None if row["cause_callpath"] is None else path(row["cause_callpath"]),
            "waiting": row["waiting_sum"],
            "instances": row["waiting_count"],
            "longest": row["waiting_max"],
            "ranks": row["rank_count_distinct"],
            "cause_ranks": row["cause_rank_count_distinct"],
        }
        for row in most.to_pylist()
    ]


def between(result: ResultData, chosen: pa.Table, count: int | None = None) -> pa.Table:
    """Return how long processes wait for each other.

    Parameters
    ----------
    result
        Where the wait states were found.
    chosen
        What `choose` returned.
    count
        How many pairs at most; None for all.

    Returns
    -------
    pyarrow.Table
        ``rank`` (who waits), ``cause_rank`` (for whom; null where unknown), ``waiting`` (s), ``instances`` and
        ``longest`` (s) of each pair, most waiting first.
    """
    rank = pa.array(result.places.rank)
    pairs = pa.table(
        {
            "rank": rank.take(chosen["location"].combine_chunks()),
            "cause_rank": rank.take(chosen["cause_location"].combine_chunks()),
            "waiting": chosen["waiting"],
        }
    )
    sums = pairs.group_by(["rank", "cause_rank"], use_threads=False).aggregate(
        [("waiting", "sum"), ("waiting", "count"), ("waiting", "max")]
    )
    sums = sums.select(["rank", "cause_rank", "waiting_sum", "waiting_count", "waiting_max"])
    sums = sums.rename_columns(["rank", "cause_rank", "waiting", "instances", "longest"])
    order = [("waiting", "descending"), ("rank", "ascending"), ("cause_rank", "ascending")]
    return sums.sort_by(order).slice(0, count)
