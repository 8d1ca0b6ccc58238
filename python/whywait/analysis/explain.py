"""The causes of a wait state: the factors in the cost model, and in turn their factors, down to the work.

All numbers come from the analysis (`whywait.model.dataset.Dataset.factors`); this module arranges them as a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import whywait._native as _native
from whywait.analysis.counters.counters import Counters
from whywait.analysis.ranking import Choice, chosen_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.model.result import ResultData

#: The minimum share of a wait for a factor to be listed.
SMALL = 0.02


def longest(result: ResultData, choice: Choice) -> int | None:
    """Return the row of the longest chosen wait state, preferably one with a known cause.

    Parameters
    ----------
    result
        The result.
    choice
        The selection of wait states.

    Returns
    -------
    int or None
        The row in the table of wait states; None if no cause of any of them is known.
    """
    waits = result.tables.wait_states
    waiting = waits["waiting"].to_numpy()
    candidates = chosen_rows(result, choice)
    for known in ("indirect", "cause_callpath"):
        (rows,) = np.nonzero(candidates & waits[known].is_valid().to_numpy())
        if rows.size:
            return int(rows[waiting[rows].argmax()])
    return None


def explain_longest(result: ResultData, which: int | Choice | None, depth: int) -> dict[str, Any] | None:
    """Explain a wait state, given by its row or as the longest of a choice; see `explain`."""
    row = which if isinstance(which, int) else longest(result, which or Choice())
    return None if row is None else explain(result, [row], depth)[0]


def explain(result: ResultData, rows: Sequence[int], depth: int) -> list[dict[str, Any]]:
    """Explain some wait states.

    Parameters
    ----------
    result
        The result that contains them.
    rows
        Their rows in the table of wait states.
    depth
        The maximum length of a chain of waits to follow.

    Returns
    -------
    list of dict
        Of each wait: ``row``, ``kind``, ``callpath``, ``rank``, ``thread``, ``enter``, ``waiting``, ``explains`` (how
        much of the wait in question is due to it), ``cause_rank``, ``cause_thread``, ``cause_callpath``,
        ``cause_time``; ``since`` and ``waiter_since``: when the two last synchronized, on the side of the cause and of
        the waiter, ``cause_sync`` and ``waiter_sync``: in which calls.

        What it is shared out among: ``work``, what the cause did in the meantime longer than the waiter (each
        ``callpath``, ``time``, ``waiter_time``, ``thread`` and ``waiter_thread`` that ran it: before the fork of a
        worker, its master; ``explains``, and ``counters``: what each strict counter of the trace came to there (of a
        level its mean), at the ``cause`` and the ``waiter``; ``rates``: the same per second, without levels; both are
        empty for a written result); ``completion``, what it took longer to leave the call in which they synchronized,
        in the same form, or None; ``waits``, what it waited itself, each in this form; ``unattributed``, what nobody is
        charged for; ``rest``, what factors of less than 2% explain together. What these explain adds up to
        ``explains``.

        ``unexplained`` says how much of that exceeds the factors: it is shared out among them all the same. All times
        are seconds.
    """
    tree = _Tree(result)
    count = result.tables.wait_states.num_rows
    if missing := [row for row in rows if not 0 <= row < count]:
        raise _native.UsageError(f"there is no wait state {missing[0]}: the result has {count}")
    roots = [(row, tree.node(row, None)) for row in rows]
    level = [_OpenNode(node, row, frozenset({row}), SMALL * node["waiting"]) for row, node in roots]
    for _ in range(depth):
        level = tree.grow(level)
    tree.count()
    return [node for _, node in roots]


def unexplained(node: dict[str, Any]) -> tuple[float, float]:
    """Split the part of a wait that exceeds all of its factors.

    Parameters
    ----------
    node
        The wait, as `explain` returns it.

    Returns
    -------
    behind : float
        What the cause was behind the waiter when the two last synchronized, seconds of what the wait explains: a
        message holds up whom it arrives at, and not its sender.
    unrecorded : float
        The rest, for which nothing is recorded.
    """
    excess: float = node["unexplained"]
    if node["since"] is None:
        return 0.0, excess
    lag = max(node["since"] - node["waiter_since"], 0.0) * node["explains"] / node["waiting"]
    if lag < SMALL * excess:
        return 0.0, excess
    return (excess, 0.0) if lag > (1 - SMALL) * excess else (lag, excess - lag)


class _OpenNode(NamedTuple):
    """A node whose factors are not yet known.

    Attributes
    ----------
    node
        The node.
    row
        The row of its wait.
    above
        The rows from the root to it.
    least
        The minimum time that a factor must explain to be listed (s).
    """

    node: dict[str, Any]
    row: int
    above: frozenset[int]
    least: float


class _Tree:
    """Builds the tree of explanations."""

    def __init__(self, result: ResultData) -> None:
        self._result = result
        self._waits = result.tables.wait_states
        # Work, the number of its call path, and the compared intervals.
        self._compared: list[tuple[dict[str, Any], int, dict[str, Any]]] = []

    def count(self) -> None:
        """Add the values of counters in the compared work, on both sides."""
        if not self._compared or self._result.tables.analysis is None:
            return
        counters = Counters(self._result)
        if not counters:
            return
        stretches: dict[str, list[Any]] = {"location": [], "begin": [], "end": [], "callpath": []}
        for _, callpath, interval in self._compared:
            for side in ("cause", "waiter"):
                stretches["callpath"].append(callpath)
                stretches["location"].append(self._runner(interval[f"{side}_location"], callpath))
                for column in ("begin", "end"):
                    stretches[column].append(interval[f"{side}_{column}"])
        found = counters.during(stretches, means=True).to_pydict()
        for row, (part, *_) in enumerate(self._compared):
            for name, amounts in found.items():
                cause, waiter = amounts[2 * row], amounts[2 * row + 1]
                if cause is None or waiter is None:
                    continue
                part["counters"][name] = {"cause": cause, "waiter": waiter}
                if counters[name].kind == "total" and part["time"] > 0 and part["waiter_time"] > 0:
                    part["rates"][name] = {"cause": cause / part["time"], "waiter": waiter / part["waiter_time"]}

    def _runner(self, location: int, callpath: int) -> int:
        """Return who ran a call path in an interval: before the fork of a worker, this is its master."""
        profile, places = self._result.profile, self._result.places
        visits = profile.cells("visits")
        key = int(profile.tree.position[callpath]) * profile.locations + location
        at = int(np.searchsorted(visits.key, key))
        if places.thread[location] == 0 or (at < len(visits) and visits.key[at] == key):
            return location
        masters = (places.rank == places.rank[location]) & (places.thread == 0) & places.works
        return int(np.flatnonzero(masters)[0]) if masters.any() else location

    def grow(self, level: list[_OpenNode]) -> list[_OpenNode]:
        """Add the factors of the nodes of a level; return the waits among them as the next level."""
        if not level:
            return []
        intervals, factors = self._result.tables.factors(sorted({one.row for one in level}))
        of_row = {row["wait"]: row for row in intervals.to_pylist()}
        first = factors["wait"].to_numpy()
        following = []
        for one in level:
            begin, end = np.searchsorted(first, [one.row, one.row + 1])
            interval = of_row.get(one.row)
            self._intervals(one.node, interval)
            for factor in factors.slice(begin, end - begin).to_pylist():
                below = self._add(one, factor, interval)
                if below is not None:
                    following.append(below)
        return following

    def _intervals(self, node: dict[str, Any], row: dict[str, Any] | None) -> None:
        """Add the begin of the compared intervals, and the part of the wait that exceeds their differences."""
        if row is None:
            return
        path = self._result.tree.path
        node["since"], node["waiter_since"] = row["cause_begin"], row["waiter_begin"]
        for side in ("cause", "waiter"):
            call = row[f"{side}_sync_callpath"]
            node[f"{side}_sync"] = None if call is None else path(call)
        node["unexplained"] = row["unexplained"] * node["explains"] / node["waiting"]

    def _add(self, one: _OpenNode, factor: dict[str, Any], interval: dict[str, Any] | None) -> _OpenNode | None:
        """Add a factor to a node; return it if it is a wait that can be followed."""
        node = one.node
        share = factor["share"] * node["explains"] / node["waiting"]
        kind, earlier = factor["kind"], factor["earlier"]
        if kind == "unattributed":
            node["unattributed"] += share
        elif share < one.least or (kind == "wait" and earlier is None):
            node["rest"] += share
        elif kind == "wait":
            below = self.node(earlier, share)
            node["waits"].append(below)
            if earlier not in one.above and below["cause_rank"] is not None:
                return _OpenNode(below, earlier, one.above | {earlier}, one.least)
        else:
            part = {
                "callpath": self._result.tree.path(factor["callpath"]),
                "time": factor["time"],
                "waiter_time": factor["waiter_time"],
                "explains": share,
            }
            if kind == "completion":
                node["completion"] = part
            else:
                part["counters"], part["rates"] = {}, {}
                part["thread"], part["waiter_thread"] = self._place(factor["location"])[1], node["thread"]
                node["work"].append(part)
                if interval is not None:
                    waiter = self._runner(interval["waiter_location"], factor["callpath"])
                    part["waiter_thread"] = self._place(waiter)[1]
                    self._compared.append((part, factor["callpath"], interval))
        return None

    def node(self, row: int, explains: float | None) -> dict[str, Any]:
        """Return the node of a wait without its factors; `explains` is None for the complete wait."""
        wait = self._waits.slice(row, 1).to_pylist()[0]
        path = self._result.tree.path
        rank, thread = self._place(wait["location"])
        cause_rank, cause_thread = (None, None)
        if wait["cause_callpath"] is not None:
            cause_rank, cause_thread = self._place(wait["cause_location"])
        return {
            "row": row,
            "kind": wait["kind"],
            "callpath": path(wait["callpath"]),
            "rank": rank,
            "thread": thread,
            "enter": wait["enter"],
            "waiting": wait["waiting"],
            "explains": wait["waiting"] if explains is None else explains,
            "cause_rank": cause_rank,
            "cause_thread": cause_thread,
            "cause_callpath": None if wait["cause_callpath"] is None else path(wait["cause_callpath"]),
            "cause_time": wait["cause_time"],
            "inferred": wait["inferred"],
            "since": None,
            "waiter_since": None,
            "cause_sync": None,
            "waiter_sync": None,
            "work": [],
            "completion": None,
            "waits": [],
            "unattributed": 0.0,
            "rest": 0.0,
            "unexplained": 0.0,
        }

    def _place(self, location: int) -> tuple[int, int]:
        locations = self._result.places
        return int(locations.rank[location]), int(locations.thread[location])
