"""The account: each moment of each CPU location in the focus belongs to exactly one row.

The core books it (rust/core/src/account); here it is summed, restricted and named. docs/account.md defines the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.analysis.focus import find_focus
from whywait.analysis.iterations import GROUPS, known_iterations
from whywait.model import tables
from whywait.model.schema import schema_of
from whywait.model.selection import in_subtrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.model.result import ResultData

#: What `Account.table` sums over.
By = Literal["row", "callpath", "location", "iteration"]

_KEYS: dict[By, list[str]] = {"row": [], "callpath": ["callpath"], "location": ["location"]}
_BY_ITERATION = pa.schema(
    [
        ("iteration", pa.uint32()),
        ("begin", pa.float64()),
        ("duration", pa.float64()),
        ("group", pa.string()),
        ("time", pa.float64()),
        ("share", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the account: what a moment can be.

    Attributes
    ----------
    name
        Its name in tables, such as ``transfer.needed`` or ``wait.mpi_latesender``.
    label
        Its name on screen.
    description
        What belongs to it, in a sentence.
    group
        The name of its group.
    is_lost
        Whether its time is lost: neither computation nor a host that waits for a busy device.
    """

    name: str
    label: str
    description: str
    group: str
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows, which the first screen shows as one: name in tables, name on screen, and what belongs to it."""

    name: str
    label: str
    description: str


@cache
def rows() -> dict[str, Row]:
    """Return all rows by name, in the order in which they are shown."""
    return {row["name"]: Row(**row) for row in _native.account_rows()}


@cache
def groups() -> dict[str, Group]:
    """Return all groups by name, in the order in which they are shown."""
    return {name: Group(name, label, description) for name, label, description in _native.account_groups()}


class Account:
    """The account of a part of a run.

    Parameters
    ----------
    result
        The result.
    cells
        The cells, as the core returns them.
    window
        Begin and end of the part, seconds since the start of the trace.
    rule
        What decided these bounds: ``last_finalize``, ``whole``, ``callpath`` or ``window``.
    name
        The call path, if the part is one.
    """

    def __init__(
        self, result: ResultData, cells: pa.Table, window: tuple[float, float], rule: str, name: str | None = None
    ) -> None:
        self._result = result
        self.cells = cells
        self.window, self.rule, self.name = window, rule, name

    @cached_property
    def time(self) -> float:
        """All CPU time of the part, in seconds: the base of every share."""
        return float(pc.sum(self.cells["time"]).as_py() or 0.0)

    @cached_property
    def lost(self) -> float:
        """The time that is neither computation nor a host that waits for a busy device, in seconds."""
        return sum(time for name, time in self.times.items() if rows()[name].is_lost)

    @cached_property
    def times(self) -> dict[str, float]:
        """The time of each row that has any, in seconds, in the order in which rows are shown."""
        found = dict(zip(*self._sums([]).select(["row", "time"]).to_pydict().values(), strict=True))
        return {name: found[name] for name in rows() if name in found}

    @cached_property
    def of_groups(self) -> dict[str, float]:
        """The time of each group, in seconds, in the order in which they are shown."""
        times = dict.fromkeys(groups(), 0.0)
        for name, time in self.times.items():
            times[rows()[name].group] += time
        return times

    def table(self, by: By | None = "row") -> pa.Table:
        """Return the rows, summed.

        Parameters
        ----------
        by
            What to sum over: ``"row"`` for one line each, ``"callpath"`` and ``"location"`` for one line each and call
            path or location, ``"iteration"`` for one line each group and iteration of the main loop; None for no sums.

        Returns
        -------
        pyarrow.Table
            ``row``, ``group``, the call path or the location as in the table `account` of a result, ``time`` (s),
            ``share`` of all CPU time of the part, ``excess`` (s, beyond the fastest 5% of such calls), ``calls``. By
            iteration: ``iteration``, ``begin``, ``duration``, ``group``, ``time``, and ``share`` of the time of the
            iteration on all threads.

        Raises
        ------
        whywait.UsageError
            By iteration, if there is no main loop, or the account is of a part of the run only.
        """
        if by == "iteration":
            return self._by_iteration()
        if by is None:
            return tables.table(schema_of("account"), pieces(self._result, self.cells))
        found = self._sums(_KEYS[by])
        names = pa.array(list(rows()))
        order = pc.index_in(found["row"], names)
        keys = [("order", "ascending"), *((key, "ascending") for key in _KEYS[by])]
        found = found.append_column("order", order).sort_by(keys).drop_columns(["order"])
        of_groups = pa.array([row.group for row in rows().values()])
        columns = {"row": found["row"], "group": of_groups.take(pc.index_in(found["row"], names).combine_chunks())}
        if by == "callpath":
            number = found["callpath"].combine_chunks()
            columns |= {"callpath": self._result.tree.paths.take(number), "callpath_id": number}
        elif by == "location":
            number = found["location"].combine_chunks()
            places = self._result.places
            columns |= {"location": number, "rank": places.ranks.take(number), "thread": places.threads.take(number)}
        share = pc.divide(found["time"], self.time or 1.0)
        return pa.table(
            columns | {"time": found["time"], "share": share, "excess": found["excess"], "calls": found["calls"]}
        )

    def _by_iteration(self) -> pa.Table:
        """Return the time of each group in each iteration of the main loop."""
        if self.rule in {"callpath", "window"}:
            raise _native.UsageError("iterations have an account of the run, not of a part of it")
        found = known_iterations(self._result)
        if found is None:
            raise _native.UsageError("the run has no main loop: name one with --iterations")
        names = [name for name in groups() if np.any(found[GROUPS[name]].to_numpy())]
        times = np.stack([found[GROUPS[name]].to_numpy() for name in names], axis=1)
        whole = times.sum(axis=1, keepdims=True)
        number = np.repeat(np.arange(found.num_rows), len(names))
        columns = {
            "iteration": found["iteration"].take(pa.array(number)),
            "begin": found["begin"].take(pa.array(number)),
            "duration": found["duration"].take(pa.array(number)),
            "group": names * found.num_rows,
            "time": times.ravel(),
            "share": np.divide(times, whole, out=np.zeros_like(times), where=whole > 0).ravel(),
        }
        return pa.table(columns, schema=_BY_ITERATION)

    def _sums(self, keys: Sequence[str]) -> pa.Table:
        """Sum over all but some columns."""
        cells = self.cells.set_column(0, "row", self.cells["row"].cast(pa.string()))
        sums = [("time", "sum"), ("excess", "sum"), ("calls", "sum")]
        found = cells.group_by(["row", *keys]).aggregate(sums)
        return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain data: ``focus``, ``cpu_time``, ``lost``, ``groups`` and ``rows``."""
        begin, end = self.window
        base = self.time or 1.0
        return {
            "focus": {"begin": begin, "end": end, "rule": self.rule, "callpath": self.name},
            "cpu_locations": int(pc.count_distinct(self.cells["location"]).as_py()),
            "cpu_time": self.time,
            "lost": self.lost,
            "groups": [
                {"group": name, "label": groups()[name].label, "time": time, "share": time / base}
                for name, time in self.of_groups.items()
            ],
            "rows": [
                line | {"label": rows()[line["row"]].label, "is_lost": rows()[line["row"]].is_lost}
                for line in self.table().to_pylist()
            ],
        }


def account(result: ResultData, focus: str | None = None, window: tuple[float, float] | None = None) -> Account:
    """Return the account of a part of a run.

    Parameters
    ----------
    result
        The result.
    focus
        None for the default focus, ``all`` for the whole run, or a call path with everything below it, in the default
        focus.
    window
        Begin and end of a time window, seconds since the start of the trace.

    Raises
    ------
    whywait.UsageError
        If there is no such call path, both `focus` and `window` are given, the result has no account (a profile, or
        one of version 0.2.0), or a part other than the default focus needs the events and there are none.
    """
    facts, dataset = result.facts, result.tables
    if window is not None:
        if focus is not None:
            raise _native.UsageError("an account is of a focus or of a window, not of both")
        return Account(result, dataset.account_window(*window), window, "window")
    bounds = (facts.get("focus_begin", 0.0), facts.get("focus_end", facts.get("length", 0.0)))
    rule = facts.get("focus_rule", "whole")
    if focus == "all" and rule not in {"whole", "window"}:
        length = facts["length"]
        return Account(result, dataset.account_window(0.0, length), (0.0, length), "whole")
    part = find_focus(result, focus)
    if part.callpath is None:
        return Account(result, dataset.account, bounds, rule)
    kept = np.append(in_subtrees(result.tree, part.callpath), False)
    callpath = dataset.account["callpath"].fill_null(len(kept) - 1).to_numpy()
    return Account(result, dataset.account.filter(pa.array(kept[callpath])), bounds, "callpath", part.callpath)


def pieces(result: ResultData, cells: pa.Table) -> Any:
    """Yield the cells of an account as rows of the table `account`."""
    of_groups = pa.array([row.group for row in rows().values()])
    names = pa.array(list(rows()))
    group = of_groups.take(pc.index_in(cells["row"].cast(pa.string()), names).combine_chunks())
    with_groups = cells.append_column("group", group.dictionary_encode())
    return tables.named_pieces(result.tree, result.places, with_groups, schema_of("account"))
