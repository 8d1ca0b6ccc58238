"""Lengths of changed runs: many changes at once, without the results of the changed runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import whywait._native as _native
import whywait.mpi as mpi
from whywait.hypotheses.compiler import OF_MODEL, OWN_GRAPH, Compiler
from whywait.hypotheses.kinds import Network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from whywait.hypotheses.kinds import Hypothesis
    from whywait.model.result import ResultData


@dataclass(frozen=True, eq=False)
class Graph:
    """Who waits for whom in a run, ready to be simulated.

    Attributes
    ----------
    native
        The native simulator.
    """

    native: _native.Simulator

    @classmethod
    def of(
        cls,
        result: ResultData,
        compiler: Compiler,
        hypotheses: Iterable[Hypothesis] = (),
        *,
        hidden: bool = True,
        threads: int | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> Graph:
        """Build a graph, unless it is that of the unchanged run and somebody uses it already.

        Parameters
        ----------
        result
            The result of the run.
        compiler
            The compiler of hypotheses for it.
        hypotheses
            Those that change who waits for whom count.
        hidden
            Whether to estimate transfers that no receive had to wait for.
        threads, progress
            As for `whywait.whatif`.

        Raises
        ------
        whywait.UsageError
            If these hypotheses cannot be applied, or the result has no events.
        """
        hypotheses = list(hypotheses)
        known = {} if any(isinstance(one, OWN_GRAPH) for one in hypotheses) else result.graphs
        if (graph := known.get(hidden)) is None:
            analysis = native_analysis(result)
            model = compiler.model(hypotheses)
            graph = cls(
                mpi.together(_native.Simulator, analysis, hidden=hidden, threads=threads, progress=progress, **model)
            )
            known[hidden] = graph
        return graph


class Length(NamedTuple):
    """How long a changed run takes: all of it, and its focus from the measured begin on, in seconds."""

    run: float
    focus: float


class Lengths:
    """Computes the lengths of changed runs that share one graph of waits, eight at a time.

    Parameters
    ----------
    result
        The result of the run.
    waits
        The hypotheses that change who waits for whom; others are ignored.
    threads
        The number of threads to use; None for one per core.

    Raises
    ------
    whywait.UsageError
        If these hypotheses cannot be applied, or the result has no events.
    """

    def __init__(self, result: ResultData, waits: Iterable[Hypothesis] = (), *, threads: int | None = None) -> None:
        self._result = result
        self._compiler = Compiler(result, None)
        self._threads = threads
        self._graph = Graph.of(result, self._compiler, waits, threads=threads)
        self._native = self._graph.native

    @property
    def assumed(self) -> float:
        """Total time of the calls that the assumptions are about, seconds."""
        measured = mpi.together(self._native.simulate, [], threads=self._threads)
        return sum(time or 0.0 for _, _, _, time in measured.assumptions())

    @property
    def network(self) -> Network | None:
        """The network that fits the run best (`whywait.fit_network`), between nodes and within one; None if unknown."""
        fitted = fitted_networks(self._native)
        remote, local = fitted.get("remote"), fitted.get("local")
        if remote and local:
            remote = replace(remote, local_latency=local.latency, local_bandwidth=local.bandwidth)
        if found := remote or local:
            # As an option of the command line has it.
            numbers: dict[str, Any] = {name: value and float(f"{value:.4g}") for name, value in asdict(found).items()}
            return Network(**numbers)
        return None

    def of(self, candidates: Iterable[Iterable[Hypothesis]]) -> list[float | None]:
        """Return the run length under each list of changes, seconds; None where these cannot be applied."""
        return [found and found.run for found in self.all_of((candidate, None) for candidate in candidates)]

    def all_of(
        self, candidates: Iterable[tuple[Iterable[Hypothesis], tuple[float, float] | None]]
    ) -> list[Length | None]:
        """Return the lengths of the run and its focus under changes.

        Parameters
        ----------
        candidates
            Lists of changes, each with the window to which it is restricted, as for `whywait.whatif`.

        Returns
        -------
        list of Length
            None where the changes cannot be applied.
        """
        compiled: list[list[Any] | None] = []
        for candidate, window in candidates:
            compiler = self._compiler if window is None else Compiler(self._result, window)
            try:
                compiled.append(compiler.changes(one for one in candidate if not isinstance(one, OF_MODEL)))
            except _native.UsageError:
                compiled.append(None)
        applicable = [one for one in compiled if one is not None]
        found = iter(mpi.together(self._native.lengths, applicable, threads=self._threads))
        lengths = [None if one is None else next(found) for one in compiled]
        return [None if one is None else Length(*one) for one in lengths]


def native_analysis(result: ResultData) -> _native.Analysis:
    """Return the native analysis of a result, which has the events to simulate.

    Parameters
    ----------
    result
        The result.

    Raises
    ------
    whywait.UsageError
        If it has none.
    """
    analysis = result.tables.analysis
    if not isinstance(analysis, _native.Analysis):
        raise _native.UsageError("a result on disk has no events to simulate: analyze the trace again")
    return analysis


def fitted_networks(simulator: _native.Simulator) -> dict[str, Network]:
    """Return the networks that fit the messages of a run, by locality: see `whywait.fit_network`."""
    transfers = simulator.transfers()
    fitted = {}
    for name, is_local in (("remote", False), ("local", True)):
        samples = [(size, time) for local, _, size, time in transfers if local is is_local]
        if samples:
            fitted[name] = _fit_line(samples)
    return fitted


def _fit_line(samples: Sequence[tuple[float, float]]) -> Network:
    """Fit latency + size / bandwidth."""
    count = len(samples)
    size = sum(size for size, _ in samples) / count
    time = sum(time for _, time in samples) / count
    spread = sum((own - size) ** 2 for own, _ in samples)
    slope = sum((own - size) * (duration - time) for own, duration in samples) / spread if spread else 0.0
    if slope <= 0:
        return Network(time)
    latency = time - slope * size
    if latency < 0:
        # The line through zero.
        slope = sum(own * duration for own, duration in samples) / sum(own**2 for own, _ in samples)
        latency = 0.0
    return Network(latency, 1 / slope)
