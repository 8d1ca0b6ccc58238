"""What the run does with files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.io import summary
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report

# Number of files and call paths in the card.
_SHOWN = 6


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the sums over the run, and the files and call paths with most time."""
    found = summary(report.result)
    if not found["time"] and not found["paradigms"]:
        return
    busiest = max(found["ranks"], key=lambda one: one["time"], default=None)
    more = {f"more_{name}": max(0, len(found[name]) - _SHOWN) for name in ("files", "callpaths")}
    shown = {name: found[name][:_SHOWN] for name in ("files", "callpaths")}
    sums = {name: value for name, value in found.items() if name not in ("ranks", "paradigms")}
    yield "io", blocks.document({**sums, **shown, **more, "busiest": busiest, "ranks": len(found["ranks"])})
