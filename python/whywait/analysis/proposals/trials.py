"""Trials: how long a run is under changes, by simulation, many changes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import whywait._native as _native
from whywait.hypotheses.compiler import OWN_GRAPH
from whywait.hypotheses.lengths import Lengths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whywait.analysis.changes import Change
    from whywait.analysis.focus import Focus
    from whywait.hypotheses.kinds import Hypothesis, Network
    from whywait.hypotheses.lengths import Length
    from whywait.model.result import ResultData

    # What is changed, and the part of the run to which that is restricted.
    _Hypotheses = tuple[Sequence[Hypothesis], tuple[float, float] | None]

#: So many changes are simulated at the same time.
BATCH = 8
# A run on a network that fits is about as long as the measured one, or it says nothing of other networks.
_FITS = 0.1


class Trial(NamedTuple):
    """The lengths of the focus before and after a change, seconds.

    `before` is that on the network that fits the run for changes of the network; None if no network fits. `after` is
    None if the change cannot be applied.
    """

    before: float | None
    after: float | None

    @property
    def saved(self) -> float | None:
        """By how much the focus becomes shorter; None if that is unknown."""
        return None if self.before is None or self.after is None else self.before - self.after


class Trials:
    """Tries changes of a run.

    Parameters
    ----------
    result
        The result of the run.
    focus
        The part of it whose length counts.
    lengths
        The lengths of the run under changes that keep who waits for whom.
    threads
        The number of threads to use; None for one per core.

    Attributes
    ----------
    measured
        The measured length of the focus, seconds.
    """

    def __init__(self, result: ResultData, focus: Focus, lengths: Lengths, threads: int | None = None) -> None:
        self._result, self._lengths, self._threads = result, lengths, threads
        self._of_run = focus.window is None
        self.measured = focus.length(result)
        self._networks: dict[Network, float | None] = {}

    def of(self, changes: Sequence[Change]) -> list[Trial]:
        """Return the lengths with each of the changes alone."""
        before = [self.measured if change.base is None else self._on(change.base) for change in changes]
        # Where no network fits, a simulation on another one says nothing.
        comparable = [[change] for change, length in zip(changes, before, strict=True) if length is not None]
        after = iter(self._after(comparable))
        return [Trial(length, None if length is None else next(after)) for length in before]

    def together(self, changes: Sequence[Change]) -> float | None:
        """Return the length with all of the changes; None if they cannot be applied."""
        return self._after([changes])[0]

    def _on(self, network: Network) -> float | None:
        """Return the length on a network; None if that is not about the measured one."""
        if network not in self._networks:
            length = self._with_graph([network], [([network], None)])[0]
            fits = length is not None and abs(length - self.measured) <= _FITS * self.measured
            self._networks[network] = length if fits else None
        return self._networks[network]

    def _after(self, changes: Iterable[Sequence[Change]]) -> list[float | None]:
        """Return the lengths with the changes of each list; those of who waits for whom need a graph of their own."""
        changes = list(changes)
        lengths: list[float | None] = [None] * len(changes)
        wanted = [([one for change in each for one in change.hypotheses], each[0].window) for each in changes]
        graphs = [tuple(one for one in hypotheses if isinstance(one, OWN_GRAPH)) for hypotheses, _ in wanted]
        for graph in dict.fromkeys(graphs):
            these = [number for number, other in enumerate(graphs) if other == graph]
            found = self._with_graph(graph, [wanted[number] for number in these])
            for number, length in zip(these, found, strict=True):
                lengths[number] = length
        return lengths

    def _with_graph(self, graph: Sequence[Hypothesis], wanted: Sequence[_Hypotheses]) -> list[float | None]:
        try:
            lengths = Lengths(self._result, graph, threads=self._threads) if graph else self._lengths
        except _native.UsageError:
            return [None] * len(wanted)
        return [self._length(found) for found in lengths.all_of(wanted)]

    def _length(self, found: Length | None) -> float | None:
        return found and (found.run if self._of_run else found.focus)
