"""A case: a published experiment with its programs and its table of figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: The figures of a variant by name of the row.
Figures = dict[str, float]


@dataclass(frozen=True)
class Variant:
    """A column of the table: one program on one number of processes."""

    name: str
    workload: str
    processes: int
    iterations: int = 1
    #: Work between two exchanges (s) and its imbalance, as in ``whywait bench generate``.
    work: float = 1e-3
    imbalance: float = 0.2
    #: Whether BT-RMA has a barrier after each dimension, and the machine whose calls it makes.
    barriers: bool = False
    machine: str | None = None
    #: For multirate: threads of a process, messages of a window, and share of rounds in which all threads send.
    threads: int | None = None
    window: int | None = None
    overlap: float | None = None


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    #: By variant; None where none was published.
    published: tuple[float | None, ...]
    #: ``s``, ``%``, ``ms``, or empty for a number.
    unit: str = "s"
    #: The metric, or several in the form ``a+b``, if the figure is a sum of metrics.
    metric: str = ""
    #: The figure as it follows from the structure of the program, if it does.
    structure: Callable[[Variant], float] | None = None
    #: Indentation: the row is part of the one above with a lower depth.
    depth: int = 0


@dataclass(frozen=True)
class Case:
    """An experiment."""

    name: str
    title: str
    #: Where it was published.
    source: str
    variants: tuple[Variant, ...]
    rows: tuple[Row, ...]
    #: What can be compared, and what cannot.
    remark: str
    #: Returns the figures of a variant, given a function that writes the trace of a workload and returns its path.
    measure: Callable[[Case, Variant, Callable[[str], Path]], Figures]
    #: Whether times are shown as shares of the first row.
    shares: bool = False
    #: Whether figures are sums over all iterations, so that runs with fewer iterations cannot be compared.
    sums: bool = False
    #: Default maximum number of processes; None for all.
    usual: int | None = None
    #: The published variants before `scaled` changed them, and the names of those that it omitted.
    original: tuple[Variant, ...] = field(default=())
    left_out: tuple[str, ...] = field(default=())

    def scaled(self, processes: int | None = None, iterations: int | None = None) -> Case:
        """Return the case with fewer processes or iterations.

        Parameters
        ----------
        processes
            The maximum number. Of variants with different numbers, larger ones are omitted, unless all are.
        iterations
            The number of iterations; None for that of the case.
        """
        rows, variants, left_out = self.rows, self.variants, self.left_out
        if processes is not None and len({variant.processes for variant in variants}) > 1:
            small = [place for place, variant in enumerate(variants) if variant.processes <= processes]
            if small:
                left_out += tuple(variant.name for place, variant in enumerate(variants) if place not in small)
                variants = tuple(variants[place] for place in small)
                rows = tuple(replace(row, published=tuple(row.published[place] for place in small)) for row in rows)
        changed = tuple(
            replace(
                variant,
                processes=min(variant.processes, processes or variant.processes),
                iterations=iterations or variant.iterations,
            )
            for variant in variants
        )
        return replace(self, rows=rows, variants=changed, original=self.original or variants, left_out=left_out)

    def is_published(self, place: int) -> bool:
        """Whether a variant has as many processes as the published one, and as many iterations where these matter."""
        if not self.original:
            return True
        here, there = self.variants[place], self.original[place]
        return here.processes == there.processes and (not self.sums or here.iterations == there.iterations)


def facts(case: Case) -> dict[str, Any]:
    """Return the description of a case."""
    return {"case": case.name, "title": case.title, "source": case.source, "remark": case.remark}


def options(variant: Variant) -> Mapping[str, Any]:
    """Return the arguments of a variant for ``_native.generate``."""
    return {
        "ranks": variant.processes,
        "iterations": variant.iterations,
        "work": round(variant.work * 1e9),
        "imbalance": variant.imbalance,
        "barriers": variant.barriers,
        "machine": variant.machine,
        "threads": variant.threads,
        "window": variant.window,
        "overlap": variant.overlap,
    }
