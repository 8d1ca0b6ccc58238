"""Selection of parts of a run by name: call paths and processes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import whywait._native as _native
from whywait.model.names import close, short_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.profile import Profile
    from whywait.model.result import ResultData


class NothingSelectedError(_native.UsageError):
    """A selection of a part of a run that is well-formed, but selects nothing in this run."""


def find_callpaths(tree: CallTree, text: str | int) -> list[int]:
    """Find call paths by name.

    Parameters
    ----------
    tree
        The call tree.
    text
        The last names of the call paths, joined with ``/``: ``relax``, ``solve/MPI_Allreduce``. A name is that of the
        table of call paths, with or without types and parameters. A number is the id of one call path.

    Returns
    -------
    list of int
        Their positions in the call tree, without call paths below another match, so that subtrees do not overlap.

    Raises
    ------
    whywait.UsageError
        If there is none.
    """
    positions = all_callpaths(tree, text)
    outermost, end = [], 0
    for position in positions:
        if position >= end:
            outermost.append(position)
            end = int(tree.end[position])
    return outermost


def in_subtrees(tree: CallTree, text: str | int) -> npt.NDArray[np.bool_]:
    """Return for each call path, by id, whether it is one that `find_callpaths` finds, or below one."""
    chosen = np.zeros(len(tree), bool)
    for position in find_callpaths(tree, text):
        chosen[tree.preorder[position : int(tree.end[position])]] = True
    return chosen


def every_callpath(tree: CallTree, text: str | int) -> list[int]:
    """Find all call paths that match a text as in `find_callpaths`, including those below another match."""
    return _by_id(tree, int(text)) if isinstance(text, int) or text.isdecimal() else _by_names(tree, text)


def all_callpaths(tree: CallTree, text: str | int) -> list[int]:
    """Return what `every_callpath` finds; raise an error if it is nothing."""
    positions = every_callpath(tree, text)
    if not positions:
        raise _no_match_error(tree, text)
    return positions


def one_callpath(tree: CallTree, text: str | int) -> int:
    """Return the position of the only call path that matches a text; raise an error for several or none."""
    positions = all_callpaths(tree, text)
    if len(positions) > 1:
        several = ", ".join("/".join(tree.path(int(tree.preorder[p]))) for p in positions[:3])
        raise _native.UsageError(f"several call paths end in {text}: {several}; give more names to select one")
    return positions[0]


def _no_match_error(tree: CallTree, text: str | int) -> NothingSelectedError:
    """Return an error that names the call paths that may be meant."""
    if isinstance(text, int) or text.isdecimal():
        return NothingSelectedError(f"there is no call path {text}: the last one has the number {len(tree) - 1}")
    last = text.rpartition("/")[2]
    if "/" in text and (there := _by_names(tree, last)):
        several = ", ".join("/".join(tree.path(int(tree.preorder[position]))) for position in there[:3])
        return NothingSelectedError(f"no call path ends in {text}: {last} is at {several}")
    names = {name for kind in tree.kinds for name in (kind.name, short_name(kind.name))}
    hint = close(last, sorted(names))
    if not hint:
        own = dict.fromkeys(kind.name for kind in tree.kinds if not kind.is_library)
        # A program may be known by its calls of libraries only.
        own = own or dict.fromkeys(kind.name for kind in tree.kinds)
        shown = ", ".join(short_name(name) for name in list(own)[:_NAMES])
        hint = f": the program has {shown}{', ...' if len(own) > _NAMES else ''}; whywait tree lists call paths"
    return NothingSelectedError(f"no call path ends in {text}{hint}")


_NAMES = 8


def _by_id(tree: CallTree, callpath: int) -> list[int]:
    return [int(tree.position[callpath])] if callpath < len(tree) else []


def _by_names(tree: CallTree, text: str) -> list[int]:
    rows = np.array(tree.region_rows, dtype=np.int64)[tree.preorder]
    # Names may contain a slash, so compare complete names of regions with the text, without splitting it.
    full = [kind.name for kind in tree.kinds]
    short = [short_name(name) for name in full]
    return [
        position
        for position in range(len(tree))
        if any(_ends_in(tree, rows, names, position, text) for names in (full, short))
    ]


def _ends_in(tree: CallTree, rows: npt.NDArray[np.int64], names: list[str], position: int, text: str) -> bool:
    """Compare from the end: the rest of the text must match the call paths above."""
    while position >= 0:
        name = names[rows[position]]
        if text == name:
            return True
        if not text.endswith(f"/{name}"):
            return False
        text = text[: -len(name) - 1]
        position = int(tree.above[position])
    return False


class Processes:
    """The processes of a run, and sums over each.

    Locations that belong to no process, such as those of accelerators' counters, are in no sum. Processes whose events
    are gone are left out.

    Parameters
    ----------
    result
        The result.
    profile
        The severities to sum up; None for those of the result.
    only_threads
        Whether to leave out locations other than threads: streams of accelerators, metric locations.
    """

    def __init__(self, result: ResultData, profile: Profile | None = None, *, only_threads: bool = False) -> None:
        self._profile = profile or result.profile
        places = result.places
        (self._locations,) = np.nonzero(places.works if only_threads else (places.rank >= 0) & ~places.lost)
        #: The rank of each process, in order.
        self.ranks: npt.NDArray[np.int32]
        self.ranks, self._process = np.unique(places.rank[self._locations], return_inverse=True)

    def __len__(self) -> int:
        return self.ranks.size

    def sums(self, metric: str, positions: list[int] | None = None) -> npt.NDArray[np.float64]:
        """Sum a metric over the threads of each process.

        Parameters
        ----------
        metric
            The name of the metric. A metric that is void or not computed is zero.
        positions
            The positions of the subtrees to sum over; None for all.
        """
        if metric not in self._profile.metrics:
            return np.zeros(len(self))
        if positions is None:
            by_location = self._profile.by_location(metric)
        else:
            by_location = np.zeros(self._profile.locations)
            combine = np.maximum if self._profile.metrics[metric].is_maximum else np.add
            for _, row in self._profile.inclusive_rows(metric, positions):
                by_location = combine(by_location, row)
        return self._profile.combine(metric)(self._process, by_location[self._locations], len(self))


def edges_of_bins(window: tuple[float, float], bins: int, width: float | None = None) -> npt.NDArray[np.float64]:
    """Return the edges of a number of equal bins, or of bins of a width, of which the last may be narrower.

    Parameters
    ----------
    window
        Begin of the first and end of the last bin.
    bins
        The number of bins.
    width
        The width of bins instead.
    """
    begin, end = window
    if width is None:
        return np.linspace(begin, end, bins + 1)
    # Rounding must not make a last bin of no width.
    before = begin + width * np.arange(max(math.ceil((end - begin) / width * (1 - 1e-12)), 1))
    return np.append(before, end)


def position_in_run(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the position of each value among the equal ones around it, from 0."""
    order = np.arange(values.size)
    starts = np.concatenate(([True], values[1:] != values[:-1])) if values.size else np.zeros(0, np.bool_)
    return order - np.maximum.accumulate(np.where(starts, order, 0))
