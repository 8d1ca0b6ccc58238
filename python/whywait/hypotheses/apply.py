"""Applies hypotheses to a run, and leaves out those that match nothing in it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import whywait._native as _native
import whywait.mpi as mpi
from whywait.hypotheses.compiler import OF_MODEL, SELECTIVE, Compiler
from whywait.hypotheses.kinds import Cpu, Cut, CutMessages, IdealNetwork, Network, Overlap, Split
from whywait.hypotheses.lengths import Graph
from whywait.model.selection import NothingSelectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whywait.hypotheses.kinds import Hypothesis
    from whywait.model.result import ResultData


class LeftOut(NamedTuple):
    """A hypothesis that matches nothing in a run.

    Attributes
    ----------
    hypothesis
        The hypothesis.
    reason
        What it names that the run does not have.
    """

    hypothesis: Hypothesis
    reason: str


class Applied(NamedTuple):
    """A simulation, and the hypotheses that it applies.

    Attributes
    ----------
    simulation
        The native simulation.
    hypotheses
        The hypotheses that match something, in the given order.
    left_out
        The others, in the given order.
    """

    simulation: _native.Simulation
    hypotheses: list[Hypothesis]
    left_out: list[LeftOut]


def apply(compiler: Compiler, hypotheses: Sequence[Hypothesis], *, strict: bool, **options: Any) -> Applied:
    """Simulate a run with those hypotheses that match something in it.

    Parameters
    ----------
    compiler
        The compiler of hypotheses for this run.
    hypotheses
        The hypotheses.
    strict
        Whether to refuse a hypothesis that matches nothing.
    options
        The arguments of `simulate`.

    Raises
    ------
    whywait.UsageError
        If a hypothesis is invalid. If one matches nothing and `strict` is set, or none of them matches anything.
    """
    left_out: dict[int, str] = {}
    while True:
        kept = [number for number in range(len(hypotheses)) if number not in left_out]
        try:
            simulation = simulate(compiler, [hypotheses[number] for number in kept], **options)
        except _UnmatchedError as unmatched:
            if strict:
                raise unmatched.error from None
            left_out |= {kept[position]: str(unmatched.error) for position in unmatched.positions}
            if len(left_out) == len(hypotheses):
                raise _native.UsageError("; ".join(dict.fromkeys(left_out.values()))) from None
        else:
            return Applied(
                simulation,
                [hypotheses[number] for number in kept],
                [LeftOut(hypotheses[number], left_out[number]) for number in sorted(left_out)],
            )


def simulate(
    compiler: Compiler,
    hypotheses: Sequence[Hypothesis],
    *,
    result: ResultData,
    hidden: bool,
    threads: int | None,
    progress: Callable[[str, float], object] | None,
) -> _native.Simulation:
    """Simulate a run with hypotheses, each of which must match something.

    Parameters
    ----------
    compiler, hypotheses
        As for `apply`.
    result
        The result of the run.
    hidden
        Whether to estimate hidden transfers.
    threads, progress
        As for the native simulator.
    """
    # The ratio of processors and the network come last, because they apply to the result of the others.
    durations = sorted(
        (position for position, one in enumerate(hypotheses) if not isinstance(one, OF_MODEL)),
        key=lambda position: (
            isinstance(hypotheses[position], (IdealNetwork, Network)),
            isinstance(hypotheses[position], Cpu),
        ),
    )
    # Functions that only samples have seen share the time of a call path, so they are changed together.
    functions = [position for position in durations if compiler.is_of_functions(hypotheses[position])]
    groups = [
        functions if position in functions else [position] for position in durations if position not in functions[1:]
    ]
    changes = []
    for first, *others in groups:
        with _names(first):
            together = [hypotheses[position] for position in (first, *others)]
            changes += [(first, change) for change in compiler.changes(together)]
    waits = [position for position, one in enumerate(hypotheses) if isinstance(one, OF_MODEL)]
    for position in waits:
        with _names(position):
            compiler.model([hypotheses[position]])

    def build(chosen: Sequence[Hypothesis]) -> _native.Simulator:
        return Graph.of(result, compiler, chosen, hidden=hidden, threads=threads, progress=progress).native

    cuts = [position for position in waits if isinstance(hypotheses[position], SELECTIVE)]
    texts = {position: _text(hypotheses[position]) for position in cuts}
    if len(cuts) > 1:
        # The simulator refuses several only if no message matches any.
        for position in cuts:
            if isinstance(hypotheses[position], CutMessages):
                with _names(position, texts={position: texts[position]}):
                    build([hypotheses[position]])
    with _names(texts=texts):
        simulator = build(hypotheses)
    selected = {position: change.selection.text for position, change in changes if change.selection}
    with _names(texts={position: f"{text}{_NOTHING}" for position, text in selected.items()}):
        chosen = [change for _, change in changes]
        return mpi.together(simulator.simulate, chosen, threads=threads, progress=progress)


# The errors of the simulator for what matches nothing.
_NOTHING = " selects nothing: "
_NO_MESSAGE = "no message in the run matches"


def _text(one: Hypothesis) -> str:
    """Return how the error of a change of the graph that matches nothing begins."""
    return f"{one.selected}{_NOTHING}" if isinstance(one, (Cut, Overlap, Split)) else _NO_MESSAGE


class _UnmatchedError(Exception):
    """Some hypotheses, by position, match nothing."""

    def __init__(self, positions: list[int], error: _native.UsageError) -> None:
        super().__init__(str(error))
        self.positions, self.error = positions, error


@contextmanager
def _names(position: int | None = None, *, texts: dict[int, str] | None = None) -> Iterator[None]:
    """Name the hypotheses that match nothing: one, or those whose errors begin with these texts."""
    try:
        yield
    except _native.UsageError as error:
        if isinstance(error, NothingSelectedError) and position is not None:
            positions = [position]
        else:
            positions = [one for one, text in (texts or {}).items() if str(error).startswith(text)]
        if not positions:
            raise
        raise _UnmatchedError(positions, error) from None
