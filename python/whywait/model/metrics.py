"""The metric tree: what is measured, what is derived from it, and how.

The tree stands in ``metrics.txt``, but for the wait states, whose rows in the core say where they belong. This module
puts them together and cuts the tree down to what an analysis can say: a metric that the analysis does not compute is
absent rather than zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, cast

from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Kind = Literal["stored", "wait", "completion", "idle", "cause", "thesis", "pre", "post", "hidden", "counter"]

#: Kinds of metrics that are wait states, or listed with them.
WAIT_STATES = frozenset({"wait", "completion", "idle"})


@dataclass(frozen=True, slots=True)
class Term:
    """One signed operand of a formula.

    Attributes
    ----------
    sign
        1 or -1.
    metric
        The operand.
    optional
        Whether it is left out while nothing computes it.
    mask
        The class of call paths (see `whywait.model.regions`) that it is cut down to, or None.
    """

    sign: int
    metric: str
    optional: bool = False
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of metrics, of some of them only what stands at the call paths of a class."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        text, mask = "", None
        for term in self.terms:
            text += " + " if term.sign > 0 else " - "
            text += f"[{term.mask}] " if term.mask != mask else ""
            text += term.metric
            mask = term.mask
        return text.removeprefix(" + ")

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read ``[mask] a + b - c? + [other] d``: a mask is that of all terms up to the next one."""
        terms = []
        mask = None
        for sign, named, metric, optional in re.findall(r"([+-]?)\s*(?:\[(\w+)\])?\s*(\w+)(\??)", text):
            mask = named or mask
            terms.append(Term(-1 if sign == "-" else 1, metric, bool(optional), mask))
        return cls(tuple(terms))

    def restricted(self, known: Collection[str], *, whole: bool = False) -> Formula | None:
        """Return what is left of the formula where only some metrics are known, or None if that says nothing.

        A sum of parts is what its known parts add up to, unless it must be `whole`. What is subtracted must be known,
        or the rest is too large.
        """
        terms = tuple(term for term in self.terms if term.metric in known)
        missing = [term for term in self.terms if term.metric not in known and not term.optional]
        if not any(term.sign > 0 for term in terms) or any(whole or term.sign < 0 for term in missing):
            return None
        return Formula(terms)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the tree.

    Attributes
    ----------
    name
        The name by which files and tools know it.
    display_name
        The name a person reads below that of its parent.
    unit
        ``sec``, ``occ`` (occurrences), ``bytes`` or ``elements``.
    kind
        ``stored``, ``wait`` (stored, and a wait state), ``completion`` (stored; listed with the wait states, but no
        waiting), ``idle`` (stored, and a wait state of a device that has nothing to run: no part of the time),
        ``cause`` (stored if the analysis looks for causes), ``thesis``
        (if it does so by all definitions of the thesis), ``pre`` (derived cell by cell), ``post`` (sum or difference of
        others), ``hidden``, or ``counter`` (stored; of the trace, not of the file).
    paradigm
        The programming model without which the metric does not exist, or None.
    formula
        How a derived metric follows from others.
    description
        What it means, in a sentence.
    parent
        Name of the metric it is a part of.
    real
        Whether values need not be whole numbers, though they are no times.
    is_balanced_away
        Whether a perfectly balanced run would not have it; of wait states the patterns say so.
    """

    name: str
    display_name: str
    unit: str
    kind: Kind
    paradigm: str | None
    formula: Formula | None
    description: str
    parent: str | None
    real: bool = False
    is_balanced_away: bool = False

    @property
    def derived(self) -> bool:
        """Whether the metric follows from others."""
        return self.formula is not None

    @property
    def integer(self) -> bool:
        """Whether values are whole numbers: everything but times, and some counters."""
        return self.unit != "sec" and not self.real


class MetricTree:
    """Metrics in the order people read them: every metric after its parent, siblings in order."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = {metric.name: metric for metric in metrics}
        self._children: dict[str | None, list[Metric]] = {}
        for metric in self:
            self._children.setdefault(metric.parent, []).append(metric)
        self._computed: dict[frozenset[str], MetricTree] = {}

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def __len__(self) -> int:
        return len(self._metrics)

    def __contains__(self, name: object) -> bool:
        return name in self._metrics

    def __getitem__(self, name: str) -> Metric:
        if name not in self._metrics:
            raise KeyError(f"{name}{self.suggestion(name)}")
        return self._metrics[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._metrics)

    def called(self, text: str) -> list[str]:
        """Return the metrics that people call so: several can have one name below different parents."""
        return [metric.name for metric in self if metric.display_name.lower() == text.strip().lower()]

    def suggestion(self, text: str) -> str:
        """Return which metrics may be meant by a name that none has, as the end of a message; empty if none is."""
        known = {metric.name.lower(): metric.name for metric in self}
        # Of several that are called the same, wait states are what people look for.
        for metric in sorted(self, key=lambda metric: self.wait_state(metric.name) is None):
            known.setdefault(metric.display_name.lower(), metric.name)
        found = dict.fromkeys(known[name] for name in get_close_matches(text.lower(), known, 3, 0.7))
        return f": did you mean {', '.join(found)}?" if found else ""

    def children(self, name: str | None) -> list[Metric]:
        """Return the direct parts of a metric; of None, the roots."""
        return self._children.get(name, [])

    def depth(self, name: str) -> int:
        """Return the number of metrics above this one."""
        parent = self[name].parent
        return 0 if parent is None else 1 + self.depth(parent)

    def path(self, name: str) -> list[Metric]:
        """Return the metrics from the root down to this one."""
        metric = self[name]
        return [*(self.path(metric.parent) if metric.parent else ()), metric]

    def wait_state(self, name: str) -> Metric | None:
        """Return the whole wait state that a metric is, or is a part of: of wrong-order messages, Late Sender.

        Completion counts as one here, and so do the wait states of devices that have nothing to run: they are listed
        with the others. `waiting` is without them.
        """
        if name not in self:
            return None
        return next((metric for metric in self.path(name) if metric.kind in WAIT_STATES), None)

    @property
    def waiting(self) -> list[Metric]:
        """The wait states that waiting is made of: each time once, without completion."""
        return [metric for metric in self if metric.kind == "wait" and self.wait_state(metric.name) is metric]

    def without(self, stored: Collection[str], *kinds: Kind) -> set[str]:
        """Leave out of the names of stored metrics those of some kinds."""
        return {name for name in stored if name not in self or self[name].kind not in kinds}

    def with_roots(self, metrics: Iterable[Metric]) -> MetricTree:
        """Return the tree with other metrics behind it, which are parts of none."""
        others = list(metrics)
        return MetricTree([*self, *others]) if others else self

    def computed(self, stored: Collection[str]) -> MetricTree:
        """Cut the tree down to what follows from the given stored metrics.

        Parameters
        ----------
        stored
            Names of the stored metrics that an analysis computes.

        Returns
        -------
        MetricTree
            Formulas are cut down with their operands; a metric whose parent is gone moves up to the next one left.
        """
        names = frozenset(stored)
        if names not in self._computed:
            self._computed[names] = self._cut_down(names)
        return self._computed[names]

    def _cut_down(self, stored: frozenset[str]) -> MetricTree:
        formulas: dict[str, Formula | None] = {m.name: None for m in self if not m.derived and m.name in stored}
        waiting = [metric for metric in self if metric.formula is not None]
        while waiting:
            # An operand may still be cut down further, so a formula is decided once all its operands are.
            undecided = {metric.name for metric in waiting}
            for metric in waiting:
                formula = cast("Formula", metric.formula)
                if not any(term.metric in undecided for term in formula.terms):
                    undecided.discard(metric.name)
                    if (rest := formula.restricted(formulas.keys(), whole=metric.unit == "occ")) is not None:
                        formulas[metric.name] = rest
            waiting = [metric for metric in waiting if metric.name in undecided]
        kept = (metric for metric in self if metric.name in formulas and metric.kind != "hidden")
        return MetricTree(
            replace(
                metric,
                formula=formulas[metric.name],
                parent=next(
                    (above.name for above in reversed(self.path(metric.name)[:-1]) if above.name in formulas), None
                ),
            )
            for metric in kept
        )


@cache
def metric_tree() -> MetricTree:
    """Return the complete tree, whether this version computes all of it or not."""
    children: dict[str | None, list[Metric]] = {}
    known: dict[str, Metric] = {}
    for metric in [*_read(), *_wait_states()]:
        children.setdefault(metric.parent, []).append(metric)
        known[metric.name] = metric
    if missing := children.keys() - known.keys() - {None}:
        raise ValueError(f"the metric tree has no {', '.join(sorted(map(str, missing)))}")

    def below(parent: Metric | None) -> Iterator[Metric]:
        for metric in children.get(parent.name if parent else None, ()):
            paradigm = metric.paradigm or (parent.paradigm if parent else None)
            placed = replace(metric, paradigm=paradigm)
            yield placed
            yield from below(placed)

    tree = MetricTree(below(None))
    waiting = Formula(tuple(Term(1, metric.name) for metric in tree.waiting))
    return MetricTree(replace(m, formula=waiting) if m.formula == _ALL_WAIT else m for m in tree)


# How the file says that a metric is the sum of all wait states.
_ALL_WAIT = Formula((Term(1, "all"), Term(1, "wait")))


def _read() -> Iterator[Metric]:
    """Yield the metrics of the file."""
    above: list[str] = []
    for line in files("whywait.model").joinpath("metrics.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, display_name, unit, kind, formula, description = (field.strip() for field in line.split("|"))
        kind, _, paradigm = kind.partition(" @")
        is_balanced_away = kind.endswith(" ~")
        del above[(len(line) - len(line.lstrip())) // 2 :]
        formula = re.sub(r"\{(\w+)\}", lambda found: " + ".join(_of_class(found[1])), formula)
        yield Metric(
            name,
            display_name,
            unit,
            cast("Kind", kind.removesuffix(" ~")),
            paradigm or None,
            Formula.parse(formula) if formula else None,
            description,
            above[-1] if above else None,
            is_balanced_away=is_balanced_away,
        )
        above.append(name)


def _of_class(cost_class: str) -> list[str]:
    """Return the wait states that a cost class is charged for."""
    return [pattern.kind for pattern in patterns().values() if pattern.cost_class == cost_class]


def _wait_states() -> Iterator[Metric]:
    """Yield the metrics of the patterns."""
    for row in patterns().values():
        kind: Kind = (
            "stored" if row.is_bound else "completion" if row.is_completion else "idle" if row.is_idle else "wait"
        )
        yield Metric(row.kind, row.display_name, "sec", kind, None, None, row.description, row.below)


def void(tree: MetricTree, paradigms: Collection[str], totals: Mapping[str, bool]) -> set[str]:
    """Return the metrics that cannot have a value because their programming model does not occur.

    Parameters
    ----------
    tree
        The metrics to judge.
    paradigms
        The paradigms of all call paths, as in `whywait.model.regions.Region`.
    totals
        Whether a metric has values all the same; such a one is never void.
    """
    return {
        metric.name
        for metric in tree
        if metric.paradigm and metric.paradigm not in paradigms and not totals.get(metric.name)
    }
