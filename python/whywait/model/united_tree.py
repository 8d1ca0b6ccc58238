"""The call trees of two runs merged into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.result import ResultData

# A call path is only a wrapper if the one below it takes at least this share of its time.
_INSIDE = 0.8


class _Names:
    """A call tree by names: call paths with the same names from the root down are one node, 0 is above the roots."""

    def __init__(self, tree: CallTree, time: npt.NDArray[np.float64]) -> None:
        self.name: list[str | None] = [None]
        self.children: list[dict[str, int]] = [{}]
        self.time: list[float] = [0.0]
        self.of_position: list[int] = []
        for callpath, above, inclusive in zip(tree.preorder.tolist(), tree.above.tolist(), time.tolist(), strict=True):
            siblings = self.children[self.of_position[above] if above >= 0 else 0]
            name = tree.kinds[tree.region_rows[callpath]].name
            if name not in siblings:
                siblings[name] = len(self.children)
                self.name.append(name)
                self.children.append({})
                self.time.append(0.0)
            self.time[siblings[name]] += inclusive
            self.of_position.append(siblings[name])

    def wrapped(self, node: int, wrapper: str, name: str) -> int | None:
        """Return the child of a child, if it takes most of the time of the latter."""
        outer = self.children[node][wrapper]
        inner = self.children[outer].get(name)
        return inner if inner is not None and self.time[inner] >= _INSIDE * self.time[outer] > 0 else None


class UnitedTree:
    """The call paths of two runs merged into one tree.

    Call paths match by name, below ones that match. Roots match whatever their names: the only one of each run, or
    those that are left after names, by time. A call path also matches one that is a level further down, below a call
    path that the other run lacks, if this is the only such pair, and the wrapper does little else.

    Parameters
    ----------
    first, second
        The runs.

    Attributes
    ----------
    names
        Name of each node in pre-order, in the first run where it has one; None for an artificial root above several
        programs.
    parents
        Parent of each node, -1 for the root.
    nodes
        For each run, the node of each position in its call tree.
    """

    def __init__(self, first: ResultData, second: ResultData) -> None:
        one, other = (_Names(run.tree, _time(run)) for run in (first, second))
        names, children = list(one.name), [dict(of_node) for of_node in one.children]
        united = [0] * len(other.name)
        stack = [0]
        while stack:
            node = stack.pop()
            for below, match in _matches(one, other, united[node], node).items():
                if united[below]:
                    # It matched when its parent did not.
                    continue
                united[below] = len(names) if match is None else match
                if match is None:
                    names.append(other.name[below])
                    children.append({})
                    children[united[node]][str(other.name[below])] = united[below]
                stack.append(below)
        order, self.names, self.parents = _in_preorder(names, children)
        self.nodes = [
            [order[node] for node in one.of_position],
            [order[united[node]] for node in other.of_position],
        ]

    def __len__(self) -> int:
        return len(self.names)

    def path(self, node: int) -> list[str]:
        """Return the names from the root down to a node."""
        names = []
        while node >= 0:
            if (name := self.names[node]) is not None:
                names.append(name)
            node = self.parents[node]
        return names[::-1]

    def to_nodes(self, run: int, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert values of one run by position into values by node."""
        return np.bincount(np.array(self.nodes[run], np.int64), values, len(self)).astype(np.float64)


def _time(run: ResultData) -> npt.NDArray[np.float64]:
    """Return the inclusive time by position."""
    if "time" not in run.profile.metrics:
        return np.zeros(len(run.tree))
    return run.profile.inclusive_by_position("time")


def _matches(one: _Names, other: _Names, here: int, there: int) -> dict[int, int | None]:
    """Return the match in the first run, if any, of each child of a node of the second, and of children of wrappers."""
    below = other.children[there]
    if here >= len(one.children):
        return dict.fromkeys(below.values())
    known = one.children[here]
    found: dict[int, int | None] = {node: known.get(name) for name, node in below.items()}
    left = [name for name in known if name not in below]
    new = [name for name in below if name not in known]
    if here == 0:
        left.sort(key=lambda name: -one.time[known[name]])
        new.sort(key=lambda name: -other.time[below[name]])
        found |= {below[name]: known[match] for match, name in zip(left, new, strict=False)}
        return found
    inserted = [(match, name, inner) for match in left for name in new if (inner := other.wrapped(there, name, match))]
    removed = [(match, name, inner) for match in left for name in new if (inner := one.wrapped(here, match, name))]
    pairs = [(match, name) for match, name, _ in inserted + removed]
    for match, name, inner in inserted:
        if _only(pairs, match, name):
            found[inner] = known[match]
    for match, name, inner in removed:
        if _only(pairs, match, name):
            found[below[name]] = inner
    return found


def _only(pairs: list[tuple[str, str]], match: str, name: str) -> bool:
    return sum(pair[0] == match or pair[1] == name for pair in pairs) == 1


def _in_preorder(
    names: list[str | None], children: list[dict[str, int]]
) -> tuple[list[int], list[str | None], list[int]]:
    """Return the number in pre-order of each node, and in that order names and parents."""
    order = [-1] * len(names)
    named: list[str | None] = []
    parents: list[int] = []
    # An artificial root above a single program is left out.
    stack = [(0, -1)] if len(children[0]) != 1 else [(node, -1) for node in children[0].values()]
    while stack:
        node, parent = stack.pop()
        order[node] = len(named)
        named.append(names[node])
        parents.append(parent)
        stack.extend((below, order[node]) for below in reversed(children[node].values()))
    return order, named, parents
