"""Patterns and cost classes as the core declares them: what the package knows of a wait state by its name."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from whywait import _native


class Pattern(NamedTuple):
    """A wait state that the analysis looks for.

    Attributes
    ----------
    kind
        The metric that it is booked on, whose name is its own.
    paradigm
        In whose calls it occurs: ``MPI``, ``SHMEM``, ``ARMCI``, ``OPENMP`` or ``PTHREAD``.
    cost_class
        What its costs are booked on; None if nobody is charged.
    part_of
        The wait state that it is a part of, or another bound of: it does not count beside that.
    is_completion
        Whether it is what an operation takes after all have come.
    is_balanced_away
        Whether a perfectly balanced run would not have it.
    document
        The name of its specification, which is its test, in ``tests/patterns``.
    source
        Where it is defined.
    """

    kind: str
    paradigm: str
    cost_class: str | None
    part_of: str | None
    is_completion: bool
    is_balanced_away: bool
    document: str
    source: str


class CostClass(NamedTuple):
    """A kind of waiting that costs are paid for, and the metrics that it is booked on.

    Attributes
    ----------
    name
        As in the names of the metrics.
    short_term, long_term
        Costs of the delays that caused such a wait themselves, and through other waits.
    indirect, propagating
        The parts of such waits that earlier waits explain, and that made others wait; None where there are none.
    is_known_to_scalasca
        Whether release 2.6 of Scalasca has it.
    """

    name: str
    short_term: str
    long_term: str
    indirect: str | None
    propagating: str | None
    is_known_to_scalasca: bool


@cache
def patterns() -> dict[str, Pattern]:
    """Return all patterns by their metric."""
    return {row["kind"]: Pattern(**row) for row in _native.patterns()}


@cache
def cost_classes() -> dict[str, CostClass]:
    """Return all cost classes by name."""
    return {row["name"]: CostClass(**row) for row in _native.cost_classes()}
