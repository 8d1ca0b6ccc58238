"""The page docs/formulas.md, made from the comments of the sources."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SOURCES = (("rust/core/src", "*.rs"), ("python/whywait", "*.py"))
INTRODUCTION = """\
# Formulas

This page shows where the code computes each formula of the thesis and of Eberius ([references](references.md)). The
comments in the code cite the formula and state the conditions under which it holds. [The
specification](specification.md) has all formulas in one place, with their differences from the thesis.

`docs/make_formulas.py` generates this page from these comments.

| formula | name | code |
|---|---|---|
"""
# All that is computed, by kind and number.
FORMULAS = {
    ("equation", "2.1"): "Late Sender",
    ("equation", "2.2"): "Wait at N x N",
    ("pattern", "1"): "Wait at Create, Fence and Free",
    ("pattern", "2"): "Early Fence",
    ("pattern", "3"): "Late Post",
    ("pattern", "4"): "Early Wait",
    ("pattern", "5"): "Late Complete",
    ("pattern", "6"): "Wait for Progress",
    ("pattern", "7"): "Lock Contention",
    ("algorithm", "1"): "Wait for Progress without overlap",
    ("algorithm", "2"): "Lock Contention in the order of releases",
    ("definition", "4"): "synchronization point",
    ("definition", "5"): "synchronization interval",
    ("definition", "6"): "time without waiting",
    ("equation", "4.1"): "time in a call path without waiting",
    ("equation", "4.2"): "delay",
    ("definition", "8"): "contention point",
    ("definition", "9"): "pre-contention interval, equations 4.3 to 4.6",
    ("equation", "4.9"): "sums of delays and of waits",
    ("equation", "4.10"): "scaling factor of delay costs",
    ("equation", "4.11"): "short-term delay costs",
    ("equation", "4.12"): "long-term delay costs",
    ("equation", "4.13"): "propagation costs",
    ("equation", "4.14"): "sums of work and of waits before contention",
    ("equation", "4.15"): "ratio of waits before contention",
    ("equation", "4.16"): "scaling factor of waits before contention",
    ("equation", "4.17"): "scaling factor of work before contention",
    ("equation", "4.18"): "short-term interval-delay costs",
    ("equation", "4.19"): "long-term interval-delay costs",
    ("definition", "20"): "unified propagation costs",
    ("definition", "21"): "critical path",
    ("definition", "22"): "critical-path profile",
    ("definition", "23"): "critical-path imbalance",
    ("Eberius, equation", "4.1"): "computational imbalance",
    ("Eberius, equation", "4.2"): "load of a process",
    ("Eberius, equation", "4.3"): "efficiency of a kernel",
    ("Eberius, equation", "4.4"): "load of a process and its devices",
    ("Eberius, equation", "4.5"): "adjusted load",
}
_NUMBER = r"\d+(?:\.\d+)?"
_REFERENCE = re.compile(
    rf"\b(equation|eq\.|definition|algorithm|pattern)s?\s+({_NUMBER}(?:(?:,\s*|\s+and\s+|,\s+and\s+|\s+to\s+){_NUMBER})*)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:pub(?:\([a-z]+\))?\s+)?(?:async\s+)?(?:fn|def|struct|enum|class|const)\s+(\w+)")


class Place(NamedTuple):
    """A comment that names a formula, and the function or module that it stands at."""

    path: str
    line: int
    item: str


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and number of all formulas that a comment names."""
    for match in _REFERENCE.finditer(text):
        if match[1].isupper():
            continue
        kind = match[1].lower().replace("eq.", "equation")
        numbers = re.split(r"(,\s*(?:and\s+)?|\s+and\s+|\s+to\s+)", match[2])
        yield kind, numbers[0]
        for between, number in zip(numbers[1::2], numbers[2::2], strict=True):
            if between.strip() == "to":
                chapter, _, first = numbers[numbers.index(number) - 2].rpartition(".")
                last = number.rpartition(".")[2]
                for k in range(int(first) + 1, int(last)):
                    yield kind, f"{chapter}.{k}" if chapter else str(k)
            yield kind, number


def places() -> dict[tuple[str, str], list[Place]]:
    """Find all comments that name a formula."""
    found: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for folder, pattern in SOURCES:
        for path in sorted((ROOT / folder).rglob(pattern)):
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines):
                if not _is_comment(path, line):
                    continue
                work = "Eberius, " if "Eberius" in "".join(lines[max(0, number - 2) : number + 1]) else ""
                place = Place(path.relative_to(ROOT).as_posix(), number + 1, _item(path, lines, number))
                for kind, formula in references(line):
                    found[work + kind, formula].append(place)
    return found


def _is_comment(path: Path, line: str) -> bool:
    # In Python a reference is prose wherever it stands.
    return path.suffix == ".py" or line.lstrip().startswith("//")


def _item(path: Path, lines: list[str], number: int) -> str:
    """Return the function or type that a comment stands at or in; the module for those of the file."""
    if lines[number].lstrip().startswith("//!"):
        return path.parent.name if path.stem == "mod" else path.stem
    if lines[number].lstrip().startswith("///"):
        after = (match[1] for line in lines[number:] if (match := _ITEM.match(line)))
        return next(after, path.stem)
    before = (match[1] for line in reversed(lines[:number]) if (match := _ITEM.match(line)))
    return next(before, path.stem)


def page() -> str:
    """Return the text of the page."""
    found = places()
    rows = []
    for (kind, number), title in FORMULAS.items():
        # Without lines: these change with every commit. One item may name a formula more than once.
        places_of = dict.fromkeys(f"`{place.item}` ({place.path})" for place in found.get((kind, number), []))
        where = "; ".join(places_of)
        rows.append(f"| {kind} {number} | {title} | {where} |\n")
    return INTRODUCTION + "".join(rows)
