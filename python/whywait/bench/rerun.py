"""Repeat a published experiment, and compare the figures with the published ones.

>>> from whywait.bench import published, rerun
>>> case = published.named("lock").scaled(processes=4)
>>> report = rerun.run(case)
>>> [row["name"] for row in report["rows"]][:2]
['Lock Contention, process 1', 'Lock Contention and Wait for Progress, process 2']
>>> [f"{value:.1f}" for value in report["rows"][0]["here"]]
['2.0']
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.bench.case import facts, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whywait.bench.case import Case, Variant


def run(case: Case, *, progress: Callable[[str, float], object] | None = None) -> dict[str, Any]:
    """Generate and analyze all variants of a case; each trace is removed after its analysis.

    Parameters
    ----------
    case
        The case, as published or `Case.scaled`.
    progress
        Called with the name of the variant and the share that is done.

    Returns
    -------
    dict
        ``case``, ``title``, ``source``, ``remark``, ``left_out`` (names of variants that are too large); ``variants``,
        each a dict of ``name``, ``workload``, ``processes``, ``iterations``; ``rows``, each a dict of ``name``,
        ``unit``, ``depth``, and by variant ``published`` (None if unpublished or for another number of processes),
        ``structure`` (None if it does not follow from the structure of the program) and ``here``. Times are in seconds
        even if the case compares shares.
    """
    figures = []
    for place, variant in enumerate(case.variants):
        if progress:
            progress(variant.name, place / len(case.variants))
        with tempfile.TemporaryDirectory(prefix="whywait-case-") as directory:
            figures.append(case.measure(case, variant, _maker(variant, Path(directory))))
    rows = [
        {
            "name": row.name,
            "unit": row.unit,
            "depth": row.depth,
            "published": [figure if case.is_published(place) else None for place, figure in enumerate(row.published)],
            "structure": [row.structure(variant) if row.structure else None for variant in case.variants],
            "here": [own.get(row.name) for own in figures],
        }
        for row in case.rows
    ]
    names = ("name", "workload", "processes", "iterations")
    variants = [{name: getattr(variant, name) for name in names} for variant in case.variants]
    return {**facts(case), "left_out": list(case.left_out), "shares": case.shares, "variants": variants, "rows": rows}


def _maker(variant: Variant, directory: Path) -> Callable[[str], Path]:
    def make(workload: str) -> Path:
        trace = directory / workload
        _native.generate(workload, trace, seed=1, **options(variant))
        return trace

    return make


#: Labels of the lines of a row.
_LINES = {"published": "published", "structure": "by structure", "here": "here"}


def table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of a report, as text."""
    head = ["", "", *(variant["name"] for variant in report["variants"])]
    rows: list[list[str]] = []
    base = report["rows"][0] if report["shares"] else None
    for row in report["rows"]:
        name = "  " * row["depth"] + row["name"]
        for what, text in _LINES.items():
            if any(figure is not None for figure in row[what]):
                rows.append([name, text, *_cells(row, what, base)])
                name = ""
    return head, rows


def _cells(row: dict[str, Any], what: str, base: dict[str, Any] | None) -> Iterator[str]:
    for place, figure in enumerate(row[what]):
        if figure is None:
            yield "-"
        elif base is not None and row is not base and row["unit"] == "s":
            yield f"{100 * figure / base[what][place]:.1f}%"
        else:
            yield _text(figure, row["unit"], is_rounded=what == "published")


def _text(figure: float, unit: str, *, is_rounded: bool) -> str:
    if unit == "%":
        return f"{figure:.4g}%"
    if unit == "r":
        return f"{figure:.3f}"
    if unit == "s" and figure < 1:
        return f"{figure:.3g} s"
    if unit:
        return f"{figure:,.{0 if figure >= 1000 else 2}f} {unit}"
    return f"{figure:.4g}".replace("e+0", "e").replace("e+", "e") if is_rounded and figure >= 1e6 else f"{figure:,.0f}"
