"""The steps of a training run: how many there are, how long call paths take in them, and who is late in which."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.findings.waiters import ranks_of, waiters
from whywait.analysis.focus import focused
from whywait.analysis.iterations import known_iterations
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Run

# A step, or a rank, with so much less waiting than the one with the most does not count.
_RECURS = 0.1


class Steps:
    """The steps that all ranks recorded, at least half of each in the focus; a run without steps is one.

    Parameters
    ----------
    run
        The run.

    Attributes
    ----------
    name
        What they are called.
    number
        How many there are.
    length
        Their mean length, in seconds.
    recorded
        The number of steps that each rank recorded; 0 without steps.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._who = run, run.once(waiters)
        self.name = "steps" if run.result.facts.get("traces", {}).get("steps") else "iterations"
        self._begins, self.number, self.length = np.zeros(1), 1, run.length
        self._window = first, last = run.losses.account.window
        self._ranks = ranks_of(run)
        recorded = {one["rank"]: len(one["steps"]) for one in run.result.facts.get("traces", {}).get("ranks", [])}
        self.recorded = np.array([recorded.get(number, 0) for number in self._ranks.numbers.tolist()], np.int64)
        # The same, where steps are known.
        self._whole = np.zeros_like(self.recorded)
        table = known_iterations(run.result)
        if table is None or not table.num_rows:
            return
        begin, end, length, ranks = (table[name].to_numpy() for name in ("begin", "end", "duration", "ranks"))
        inside = np.minimum(end, last) - np.maximum(begin, first) >= (end - begin) / 2
        here = inside & (ranks == ranks[inside].max(initial=0))
        if not here.any():
            return
        self._begins, self.number = np.sort(begin[here]), int(here.sum())
        self.length = float(length[here].mean())
        self._whole = self.recorded
        if (inside & ~here).any():
            self._window = max(first, float(begin[here].min())), min(last, float(end[here].max()))

    def times(self, callpath: int) -> npt.NDArray[np.float64]:
        """Return the time in a call path by rank, in all these steps."""
        result, position = self._run.result, int(self._run.result.tree.position[callpath])
        if not self._whole.any():
            return self._ranks.sums(focused(result).profile.row("time", position))
        # The focus begins and ends within steps: only whole visits compare.
        visits = self._ranks.sums(self._run.visits(callpath))
        of_step = visits / np.maximum(self._whole, 1)
        if np.ptp(self._whole):
            # So do the records of ranks then, which have visits of steps that they have not.
            of_step = np.where(of_step > 1, np.rint(of_step), of_step)
        return self.number * of_step * self._ranks.sums(result.profile.row("time", position)) / np.maximum(visits, 1)

    def with_waits(self, ranks: list[int]) -> int:
        """Return in how many of these steps others wait for some ranks."""
        by_step = self._waits[:, ranks].sum(axis=1)
        return max(1, int(np.count_nonzero(by_step >= _RECURS * by_step.max()))) if by_step.any() else self.number

    def are_often_late(self, ranks: list[int]) -> bool:
        """Return whether others wait for each of some ranks in more than half of the steps in which they wait most."""
        by_step = self._waits.sum(axis=1)
        waits = self._waits[by_step >= _RECURS * by_step.max()]
        late = waits[:, ranks] >= _RECURS * waits.sum(axis=1, keepdims=True)
        return bool((2 * np.count_nonzero(late, axis=0) > len(waits)).all())

    def share_of_others(self, ranks: list[int]) -> float:
        """Return the part of the waiting for some ranks in the focus that is of others, and in these steps."""
        if self._who is None:
            return 1.0
        waits = self._who.waits
        waiter, cause = (self._ranks.of_locations[waits[name].to_numpy()] for name in ("location", "cause_location"))
        waiting = np.where(np.isin(cause, ranks), waits["waiting"].to_numpy(), 0.0)
        theirs = float(waiting[self._inside(waits["enter"].to_numpy()) & ~np.isin(waiter, ranks)].sum())
        return theirs / float(waiting.sum()) if theirs else 1.0

    def _inside(self, begin: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which waits begin in these steps; a run without steps has all."""
        first, last = self._window
        return (begin >= first) & (begin < last) | (self.number == 1)

    @cached_property
    def _waits(self) -> npt.NDArray[np.float64]:
        """The waiting in each step for each rank."""
        ranks = self._ranks.numbers.size
        if self._who is None:
            return np.zeros((self.number, ranks))
        waits = self._who.waits
        rank = self._ranks.of_locations[waits["cause_location"].to_numpy()]
        begin, waiting = waits["enter"].to_numpy(), waits["waiting"].to_numpy()
        inside = self._inside(begin)
        step = np.maximum(np.searchsorted(self._begins, begin, "right") - 1, 0)
        cells = sum_at((step * ranks + rank)[inside], waiting[inside], self.number * ranks)
        return cells.reshape(self.number, ranks)

    def waiting(self, ranks: list[int]) -> int:
        """Return how many ranks wait, but for some."""
        if self._who is None:
            return 0
        rank = self._ranks.of_locations[self._who.waits["location"].to_numpy()]
        of_ranks = np.delete(sum_at(rank, self._who.waits["waiting"].to_numpy(), self._ranks.numbers.size), ranks)
        return int(np.count_nonzero(of_ranks > _RECURS * of_ranks.max(initial=0.0)))


def steps(run: Run) -> Steps:
    """Return the steps of a run."""
    return run.once(Steps)
