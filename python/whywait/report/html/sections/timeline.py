"""The timeline, whose blocks are made while the events are known, or from the stored tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the blocks that `whywait.report.html.timeline` made."""
    yield from report.timeline.items()
