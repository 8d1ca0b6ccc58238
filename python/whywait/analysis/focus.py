"""The focus: the part of a run that headlines refer to, as a result of its own.

By default it is the time from the last Leave of the call that starts the communication library to the last Enter of
the one that ends it; start-up and shutdown take long in short runs and say little about the program. The core decides
the bounds (rust/core/src/focus.rs) and says by which rule: the fact ``focus_rule``. Where nothing tells them (a run of
threads only), and in results that keep no events of it, the focus is the whole run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.analysis.causes import IDLE_THREADS, cost_classes
from whywait.model.imbalance import NAMES as IMBALANCE
from whywait.model.imbalance import imbalance
from whywait.model.profile import NOTHING, Cells, split
from whywait.model.result import ResultData
from whywait.model.selection import find_callpaths, in_subtrees

if TYPE_CHECKING:
    from whywait.model.dataset import Dataset
    from whywait.model.profile import Profile

#: The name of the focus on the whole run.
ALL = "all"


class Focus(NamedTuple):
    """The part of a run that headlines refer to.

    Attributes
    ----------
    name
        ``all``, ``run`` (without start-up and shutdown) or the requested call path.
    window
        Its begin and end, seconds since the start of the trace; None for the whole time.
    callpath
        The call path, as in `whywait.model.selection.find_callpaths`; None for all. It is cut at the window.
    rule
        The rule that bounds it, as the fact ``focus_rule``; None if none does.
    """

    name: str
    window: tuple[float, float] | None = None
    callpath: str | None = None
    rule: str | None = None

    @property
    def phrase(self) -> str:
        """The phrase for the reference of shares of the time."""
        if self.callpath is not None:
            return f"the time in {self.callpath}"
        if self.window and self.rule == "profiler":
            return "the time that all ranks recorded"
        return "the time between start-up and shutdown" if self.window else "all time"

    def length(self, result: ResultData) -> float:
        """Return how long it is in a result, in seconds."""
        return float(result.facts["length"]) if self.window is None else self.window[1] - self.window[0]


def find_focus(result: ResultData, name: str | None = None) -> Focus:
    """Return the focus of a result.

    Parameters
    ----------
    result
        The result.
    name
        ``all`` for the whole run, or a call path with everything below it; None for the default.

    Raises
    ------
    whywait.UsageError
        If there is no such call path.
    """
    if name is not None and name != ALL:
        find_callpaths(result.tree, name)
        return Focus(name, find_focus(result).window, name)
    # If only a part of the time was analyzed, that part is the focus.
    # Results of version 0.2.0 have bounds, those until the first Enter of MPI_Finalize, but no rule.
    if name == ALL or "focus_begin" not in result.facts or result.facts.get("focus_rule") in {"whole", "window"}:
        return Focus(ALL)
    window = result.facts["focus_begin"], result.facts["focus_end"]
    return Focus("run", window, rule=result.facts.get("focus_rule"))


class FocusedData(ResultData):
    """The part of a result in the focus, as a result.

    Its profile has the times, wait states, and critical path of the focus, and the costs of these waits that are caused
    in the focus.

    Attributes
    ----------
    whole
        The result that this is a part of.
    focus
        The focus.
    charged
        The same profile with all costs of these waits, also those caused outside the focus.
    """

    def __init__(self, whole: ResultData, focus: Focus, profile: Profile, charged: Profile | None = None) -> None:
        super().__init__(whole.tables, whole.run)
        self.tree, self.places, self.locations = whole.tree, whole.places, whole.locations
        self.facts, self.failures = whole.facts, whole.failures
        self.profile = profile
        self.charged = charged or profile
        self.whole, self.focus = whole, focus
        self._focused_tables = cast("Dataset", _Tables(whole, focus))

    @property
    def tables(self) -> Dataset:
        """The dataset with the wait states and the critical path of the focus."""
        return self._focused_tables


def whole_of(result: ResultData) -> ResultData:
    """Return the result that a focus is a part of; any other result itself."""
    return result.whole if isinstance(result, FocusedData) else result


def with_counts(part: FocusedData) -> FocusedData:
    """Return a part of a run with all metrics, for pages that show any of them.

    Of metrics that a part does not have, such as visits and bytes, they are those of the whole run: see `is_whole`.
    """
    if part.profile is part.whole.profile:
        return part
    own = {metric.name: part.profile.cells(metric.name) for metric in part.profile.metrics if not metric.derived}
    profile = part.whole.profile.extended(own)
    if not set(IMBALANCE) <= own.keys():
        profile = profile.extended(imbalance(profile, part.places))
    return FocusedData(part.whole, part.focus, profile, part.charged)


def is_whole(part: FocusedData, name: str) -> bool:
    """Return whether the values of a metric of `with_counts` are those of the whole run, or partly."""
    if part.profile is part.whole.profile or name in part.charged.metrics:
        return False
    formula = part.profile.metrics.find(name).formula
    return name not in IMBALANCE and (formula is None or any(is_whole(part, term.metric) for term in formula.terms))


def profile_with(result: ResultData, name: str) -> Profile:
    """Return the profile that has a metric: that of the focus, or for counts and such, that of the whole run."""
    return result.profile if name in result.profile.metrics else whole_of(result).profile


class _Tables:
    """A dataset whose tables of wait states and of the critical path are restricted to the focus."""

    def __init__(self, whole: ResultData, focus: Focus) -> None:
        self._whole, self._focus = whole, focus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole.tables, name)

    @property
    def wait_states(self) -> pa.Table:
        """The wait states that overlap the focus."""
        table = self._whole.tables.wait_states
        if self._focus.window is not None:
            begin, end = self._focus.window
            table = _filter_rows(table, pc.and_(pc.less(table["enter"], end), pc.greater(table["leave"], begin)))
        if self._focus.callpath is not None:
            kept = in_subtrees(self._whole.tree, self._focus.callpath)
            table = table.filter(pa.array(kept[table["callpath"].to_numpy()]))
        return table

    @property
    def critical_path(self) -> pa.Table:
        """The segments of the critical path, cut at the bounds of the focus."""
        table = self._whole.tables.critical_path
        if self._focus.window is not None:
            begin, end = self._focus.window
            table = _filter_rows(table, pc.and_(pc.less(table["from"], end), pc.greater(table["to"], begin)))
            for name, bound in (("from", pc.max_element_wise), ("to", pc.min_element_wise)):
                cut = bound(table[name], begin if name == "from" else end)
                table = table.set_column(table.column_names.index(name), name, cut)
        if self._focus.callpath is not None:
            kept = in_subtrees(self._whole.tree, self._focus.callpath)
            callpath = table["callpath"].fill_null(0).to_numpy()
            table = table.filter(pa.array(kept[callpath] & table["callpath"].is_valid().to_numpy()))
        return table


def _filter_rows(table: pa.Table, keep: pa.ChunkedArray) -> pa.Table:
    """Keep some rows, without a copy of contiguous ones: all but the first and the last of a location usually are."""
    edges = np.flatnonzero(np.diff(keep.to_numpy().astype(np.int8), prepend=0, append=0)).tolist()
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    if len(runs) * _MIN_SLICE_ROWS > table.num_rows:
        return table.filter(keep)
    return pa.concat_tables([table.slice(0, 0), *(table.slice(begin, end - begin) for begin, end in runs)])


# Mean number of rows from which slices are cheaper than copies.
_MIN_SLICE_ROWS = 1000


def focused(result: ResultData, name: str | None = None) -> FocusedData:
    """Return the part of a result in the focus.

    Parameters
    ----------
    result, name
        As for `find_focus`.

    Raises
    ------
    whywait.UsageError
        If there is no such call path.
    """
    if name not in result.parts:
        result.parts[name] = _restrict(result, find_focus(result, name))
    return cast("FocusedData", result.parts[name])


def _restrict(result: ResultData, focus: Focus) -> FocusedData:
    if focus.callpath is not None:
        within = focused(result)
        kept = np.flatnonzero(in_subtrees(result.tree, focus.callpath)[result.tree.preorder])
        focus = focus._replace(window=within.focus.window)
        return FocusedData(result, focus, _below(within.profile, kept), _below(within.charged, kept))
    profile = result.profile
    if focus.window is not None:
        try:
            window = result.window(*focus.window)
        except _native.UsageError:
            # There are no events.
            return FocusedData(result, Focus(ALL), profile)
        running = window.cells("time").key
        costs = {name: profile.cells(name) for name in cost_names(profile)}
        if (of_part := result.tables.focus_costs) is not None:
            found = dict(split(result.tree, profile.locations, of_part))
            # Costs of idle threads belong to where the threads are idle.
            local = {
                name for kind in cost_classes(profile.metrics) if kind.name == IDLE_THREADS for name in kind.metrics
            }
            costs = {name: cells if name in local else found.get(name, NOTHING) for name, cells in costs.items()}
        own_costs = {name: _cells_with_keys(cells, running) for name, cells in costs.items()}
        return FocusedData(result, focus, window.extended(own_costs), window.extended(costs))
    return FocusedData(result, focus, profile)


def cost_names(profile: Profile) -> list[str]:
    """Return the stored metrics of the cost model: delay costs and unattributed waiting."""
    names = [name for kind in cost_classes(profile.metrics) for name in kind.metrics]
    return [*names, *(name for name in ("wait_unexplained",) if name in profile.metrics)]


def _below(profile: Profile, positions: np.ndarray[Any, np.dtype[np.intp]]) -> Profile:
    """Keep the cells of some call paths."""

    def kept(cells: Cells) -> Cells:
        of_part = np.isin(cells.key // profile.locations, positions)
        return Cells(cells.key[of_part], cells.value[of_part])

    return profile.extended({one.name: kept(profile.cells(one.name)) for one in profile.metrics if not one.derived})


def _cells_with_keys(cells: Cells, keys: np.ndarray[Any, np.dtype[np.int64]]) -> Cells:
    """Keep the cells of call paths that run in the focus."""
    kept = np.isin(cells.key, keys)
    return Cells(cells.key[kept], cells.value[kept])
