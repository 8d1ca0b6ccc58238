"""What a case is: programs, and a table of figures that were published about them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: A figure of each row, by its name.
Figures = dict[str, float]


@dataclass(frozen=True)
class Variant:
    """A column of the table: one program on one number of processes."""

    name: str
    workload: str
    processes: int
    iterations: int = 1
    #: Work between two exchanges, s, and by how much it differs: see ``whywait bench generate``.
    work: float = 1e-3
    imbalance: float = 0.2
    #: Whether BT-RMA has a barrier after each dimension, and the machine whose calls it has.
    barriers: bool = False
    machine: str | None = None
    #: What multirate sends: threads of a process, messages of a window, share of rounds in which all threads send.
    threads: int | None = None
    window: int | None = None
    overlap: float | None = None


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    #: By variant; None where nothing was printed.
    published: tuple[float | None, ...]
    #: ``s``, ``%``, ``ms`` or nothing for a number.
    unit: str = "s"
    #: The metric, or several in the form ``a+b``, if it is the sum of a metric.
    metric: str = ""
    #: What the structure of the program says it is, if that says it.
    structure: Callable[[Variant], float] | None = None
    #: How far it is indented: part of the row before.
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
    #: What can be compared, and what not.
    remark: str
    #: Returns the figures of a variant. What it is given writes the trace of a workload and says where that is.
    measure: Callable[[Case, Variant, Callable[[str], Path]], Figures]
    #: Whether times stand as shares of the first row.
    shares: bool = False
    #: Whether figures are sums over all iterations, which those of fewer compare with nothing.
    sums: bool = False
    #: Up to how many processes it runs if nobody asks for more; None for all.
    usual: int | None = None
    #: The published variants where `scaled` has changed them, and the names of those that it has left out.
    original: tuple[Variant, ...] = field(default=())
    left_out: tuple[str, ...] = field(default=())

    def scaled(self, processes: int | None = None, iterations: int | None = None) -> Case:
        """Return the case with fewer processes or iterations.

        Parameters
        ----------
        processes
            At most so many. Where variants are numbers of processes, those beyond are left out if any stays.
        iterations
            So many instead of those of the case.
        """
        rows, variants, left_out = self.rows, self.variants, self.left_out
        if processes is not None and len({variant.processes for variant in variants}) > 1:
            kept = [place for place, variant in enumerate(variants) if variant.processes <= processes]
            if kept:
                left_out += tuple(variant.name for place, variant in enumerate(variants) if place not in kept)
                variants = tuple(variants[place] for place in kept)
                rows = tuple(replace(row, published=tuple(row.published[place] for place in kept)) for row in rows)
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
        """Whether a variant runs on as many processes as the published one, and as long where that matters."""
        if not self.original:
            return True
        here, there = self.variants[place], self.original[place]
        return here.processes == there.processes and (not self.sums or here.iterations == there.iterations)


def facts(case: Case) -> dict[str, Any]:
    """Return what is said of a case without running it."""
    return {"case": case.name, "title": case.title, "source": case.source, "remark": case.remark}


def options(variant: Variant) -> Mapping[str, Any]:
    """Return what ``_native.generate`` is asked for."""
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
