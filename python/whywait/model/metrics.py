"""The metric tree: measured and derived metrics, and their formulas.

The tree is defined in ``metrics.txt``, except for the wait states, whose parents the core declares. This module
combines both and reduces the tree to the metrics that an analysis computes: all others are absent rather than zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Kind = Literal["stored", "wait", "completion", "idle", "cause", "thesis", "pre", "post", "hidden", "counter", "heading"]

#: The heading of the counters of the trace and of the longest queues: a metric without values.
COUNTERS = "counters"
#: Kinds of metrics that are wait states, or listed with them.
WAIT_STATES = frozenset({"wait", "completion", "idle"})
# Calls that no record names as causes.
_CAUSES = frozenset({"pthread_cond_signal", "pthread_cond_broadcast", "pthread_barrier_wait"})
# Waits whose records do not tell for whom, if the name of the waiting call has this in it.
_WAITS = {
    "mpi_alltoallv_wait": "",
    "mpi_tree_wait": "",
    "mpi_comm_create_wait": "",
    "mpi_file_open_wait": "",
    "mpi_neighbor_wait": "neighbor",
    "mpi_probe_latesender": "_probe",
}
#: Waits for the end of a thread, whose causes are its last functions.
JOINS = frozenset({"pthread_join_wait"})


def is_inferred(wait: Mapping[str, Any]) -> bool:
    """Return whether whom a wait state waits for is inferred from calls, and not recorded.

    Parameters
    ----------
    wait
        A row of the wait states, of which it takes ``kind``, ``callpath``, ``cause_callpath``, and ``inferred``.
    """
    if wait["inferred"]:
        return True
    if wait["kind"] in _WAITS:
        return _WAITS[wait["kind"]] in wait["callpath"][-1].lower()
    return bool(wait["cause_callpath"]) and wait["cause_callpath"][-1] in _CAUSES


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
        Whether the operand is dropped if it is not computed.
    mask
        The class of call paths (see `whywait.model.regions`) that it is restricted to, or None.
    """

    sign: int
    metric: str
    optional: bool = False
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of metrics, some of them restricted to the call paths of a class."""

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
        """Parse ``[mask] a + b - c? + [other] d``: a mask applies to all terms up to the next mask."""
        terms = []
        mask = None
        for sign, named, metric, optional in re.findall(r"([+-]?)\s*(?:\[(\w+)\])?\s*(\w+)(\??)", text):
            mask = named or mask
            terms.append(Term(-1 if sign == "-" else 1, metric, bool(optional), mask))
        return cls(tuple(terms))

    def restricted(self, known: Collection[str], *, whole: bool = False) -> Formula | None:
        """Return the formula reduced to known metrics, or None if it has no meaning without the others.

        A sum reduces to its known parts, unless it must be `whole`. Subtracted operands must be known, or the rest
        would be too large.
        """
        terms = tuple(term for term in self.terms if term.metric in known)
        missing = [term for term in self.terms if term.metric not in known and not term.optional]
        if not any(term.sign > 0 for term in terms) or any(whole or term.sign < 0 for term in missing):
            return None
        return self if len(terms) == len(self.terms) else Formula(terms)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the tree.

    Attributes
    ----------
    name
        The unique name in files and tools.
    display_name
        The display name, shown below that of its parent.
    unit
        ``sec``, ``occ`` (occurrences), ``bytes`` or ``elements``.
    kind
        ``stored``, ``wait`` (stored, and a wait state), ``completion`` (stored; listed with the wait states, but no
        waiting), ``idle`` (stored, and a wait state of a device that has nothing to run: no part of the time),
        ``cause`` (stored if the analysis looks for causes), ``thesis``
        (if it does so by all definitions of the thesis), ``pre`` (derived cell by cell), ``post`` (sum or difference of
        others), ``hidden``, ``counter`` (stored; of the trace, not of the file), or ``heading`` (without values).
    paradigm
        The programming model that the metric requires, or None.
    formula
        The formula of a derived metric.
    description
        The meaning in one sentence.
    parent
        Name of the parent metric.
    real
        Whether values other than times may be fractional.
    is_balanced_away
        Whether a perfectly balanced run would not have it; for wait states, declared by the patterns.
    is_maximum
        Whether several values combine to the largest one instead of their sum.
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
    is_maximum: bool = False

    @property
    def derived(self) -> bool:
        """Whether the metric is derived from others."""
        return self.formula is not None

    @property
    def integer(self) -> bool:
        """Whether values are integers: all except times and some counters."""
        return self.unit != "sec" and not self.real


def _with(metric: Metric, **fields: Any) -> Metric:
    """Return a metric with these fields: itself, if it has them already."""
    has = all(getattr(metric, name) == value for name, value in fields.items())
    return metric if has else replace(metric, **fields)


class MetricTree:
    """Metrics in display order: every metric after its parent, siblings in order."""

    def __init__(self, metrics: Iterable[Metric], beside: Iterable[Metric] = ()) -> None:
        self._metrics = {metric.name: metric for metric in metrics}
        #: Metrics that are not shown: the time in which each level is known.
        self.beside = {metric.name: metric for metric in beside}
        self._children: dict[str | None, list[Metric]] = {}
        for metric in self:
            self._children.setdefault(metric.parent, []).append(metric)
        self._computed: dict[frozenset[str], MetricTree] = {}
        self._paths: dict[str, list[Metric]] = {}

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

    def find(self, name: str) -> Metric:
        """Return a metric, shown or not."""
        return self.beside[name] if name in self.beside else self[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._metrics)

    def called(self, text: str) -> list[str]:
        """Return the metrics with a display name: several can share one below different parents."""
        return [metric.name for metric in self if metric.display_name.lower() == text.strip().lower()]

    def suggestion(self, text: str) -> str:
        """Return suggestions for an unknown name, as the end of a message; empty if there are none."""
        from difflib import get_close_matches

        known = {metric.name.lower(): metric.name for metric in self}
        # Of several with the same display name, prefer wait states.
        for metric in sorted(self, key=lambda metric: self.wait_state(metric.name) is None):
            known.setdefault(metric.display_name.lower(), metric.name)
        found = dict.fromkeys(known[name] for name in get_close_matches(text.lower(), known, 3, 0.7))
        return f": did you mean {', '.join(found)}?" if found else ""

    def children(self, name: str | None) -> list[Metric]:
        """Return the children of a metric; for None, the roots."""
        return self._children.get(name, [])

    def depth(self, name: str) -> int:
        """Return the number of metrics above this one."""
        return len(self.path(name)) - 1

    def path(self, name: str) -> list[Metric]:
        """Return the metrics from the root down to this one."""
        if name not in self._paths:
            metric = self[name]
            self._paths[name] = [*(self.path(metric.parent) if metric.parent else ()), metric]
        return self._paths[name]

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Return the display names of metrics for a list, in which a tree does not tell namesakes apart.

        A metric with namesakes is followed by the outermost metric above it that some of them lack, and by the
        outermost one that all of them lack: *Wait at Barrier (OpenMP, Implicit)*.
        """
        trails = {name: [metric.display_name for metric in self.path(name)] for name in names}
        labels = {}
        for name, (*above, label) in trails.items():
            namesakes = [trail for other, trail in trails.items() if other != name and trail[-1] == label]
            some = (one for one in above if any(one not in trail for trail in namesakes))
            own = (one for one in above if all(one not in trail for trail in namesakes))
            kinds = dict.fromkeys([*islice(some, 1), *islice(own, 1)])
            labels[name] = f"{label} ({', '.join(kinds)})" if kinds and namesakes else label
        return labels

    def wait_state(self, name: str) -> Metric | None:
        """Return the outermost wait state that contains a metric: for wrong-order messages, Late Sender.

        Completion and the wait states of idle devices count as wait states here, as they are listed with the others.
        `waiting` excludes them.
        """
        if name not in self:
            return None
        return next((metric for metric in self.path(name) if metric.kind in WAIT_STATES), None)

    @property
    def waiting(self) -> list[Metric]:
        """The wait states that make up waiting: each time counted once, without completion."""
        return [metric for metric in self if metric.kind == "wait" and self.wait_state(metric.name) is metric]

    def without(self, stored: Collection[str], *kinds: Kind) -> set[str]:
        """Return the names of stored metrics without those of the given kinds."""
        return {name for name in stored if name not in self or self[name].kind not in kinds}

    def with_counters(self, counters: Iterable[Metric]) -> MetricTree:
        """Return the tree with counters appended, below a root of their own."""
        every = list(counters)
        below = [replace(counter, parent=COUNTERS) for counter in every if counter.kind == "counter"]
        beside = [counter for counter in every if counter.kind == "hidden"]
        return MetricTree([*self, metric_tree()[COUNTERS], *below], beside) if below else self

    def computed(self, stored: Collection[str]) -> MetricTree:
        """Reduce the tree to the metrics that follow from the given stored ones.

        Parameters
        ----------
        stored
            Names of the stored metrics that an analysis computes.

        Returns
        -------
        MetricTree
        Formulas are reduced to known operands; a metric whose parent is removed moves up to the nearest remaining one.
        """
        names = frozenset(stored)
        if names not in self._computed:
            self._computed[names] = self._cut_down(names)
        return self._computed[names]

    def _cut_down(self, stored: frozenset[str]) -> MetricTree:
        formulas: dict[str, Formula | None] = {m.name: None for m in self if not m.derived and m.name in stored}
        waiting = [metric for metric in self if metric.formula is not None]
        while waiting:
            # An operand may still be reduced, so decide a formula after all of its operands.
            undecided = {metric.name for metric in waiting}
            for metric in waiting:
                formula = cast("Formula", metric.formula)
                if undecided.isdisjoint(term.metric for term in formula.terms):
                    undecided.discard(metric.name)
                    if (rest := formula.restricted(formulas.keys(), whole=metric.unit == "occ")) is not None:
                        formulas[metric.name] = rest
            waiting = [metric for metric in waiting if metric.name in undecided]
        kept = (metric for metric in self if metric.name in formulas and metric.kind != "hidden")
        return MetricTree(
            _with(
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
    """Return the complete tree, including metrics that are not computed."""
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
            placed = _with(metric, paradigm=paradigm)
            yield placed
            yield from below(placed)

    tree = MetricTree(below(None))
    waiting = Formula(tuple(Term(1, metric.name) for metric in tree.waiting))
    return MetricTree(replace(m, formula=waiting) if m.formula == _ALL_WAIT else m for m in tree)


# Notation of the file for the sum of all wait states.
_ALL_WAIT = Formula((Term(1, "all"), Term(1, "wait")))


def _read() -> Iterator[Metric]:
    """Yield the metrics of the file."""
    above: list[str] = []
    for line in Path(__file__).with_name("metrics.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, display_name, unit, kind, formula, description = (field.strip() for field in line.split("|"))
        kind, _, paradigm = kind.partition(" @")
        is_balanced_away = kind.endswith(" ~")
        del above[(len(line) - len(line.lstrip())) // 2 :]
        formula = re.sub(r"\{(\w+)(?: of ([\w ]+))?\}", lambda found: " + ".join(_of_class(*found.groups())), formula)
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


def _of_class(cost_class: str, paradigms: str | None) -> list[str]:
    """Return the wait states whose costs belong to a cost class, all or those in calls of some paradigms."""
    kinds = [pattern for pattern in patterns().values() if pattern.cost_class == cost_class]
    return [pattern.kind for pattern in kinds if not paradigms or pattern.paradigm in paradigms.split()]


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
        The metric tree.
    paradigms
        The paradigms of all call paths, as in `whywait.model.regions.Region`.
    totals
        Whether a metric has values; then its programming model occurs. Accelerators have no paradigm of their own.
    """
    occurring = {*paradigms, *(metric.paradigm for metric in tree if totals.get(metric.name))}
    return {metric.name for metric in tree if metric.paradigm and metric.paradigm not in occurring}
