"""The page of a result on a server: the same program, but the page requests each block of data when needed.

It has all values, however many: a page in one file merges ranks and rounds values to stay small.
"""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Any

from whywait.report.html import blocks, places, worst_waits
from whywait.report.html.formulas import Formulas
from whywait.report.html.model import fixed_blocks, shown_part, stored_metrics
from whywait.report.html.page import page
from whywait.report.html.sections import SECTIONS, Report
from whywait.report.html.timeline import calls_block

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import whywait._native as _native
    from whywait.model.result import ResultData

#: Maximum number of individual wait states: more than in a page in one file.
_WAITS = 200_000
# Maximum number of calls in an answer: about what a screen has room for.
_CALLS = 100_000
#: The name of the block of individual calls in a window, which a query selects.
WINDOW = "timeline-window"


class ServedPage:
    """A page and its blocks of data by name.

    Parameters
    ----------
    result, summary, timeline
        As in `whywait.report.html.sections.Report`.
    events
        A function that returns an analysis with the events, for individual calls; it is asked once, when these are
        first wanted. None if there are no events.
    """

    def __init__(
        self,
        result: ResultData,
        summary: dict[str, Any],
        timeline: Mapping[str, str],
        events: Callable[[], _native.Analysis] | None = None,
    ) -> None:
        self._result = result
        part = shown_part(result, summary)
        self._profile = part.profile
        self._stored = stored_metrics(part.profile)
        self._resolution = places.Resolution(1, exact=True)
        worst = worst_waits.worst(part, _WAITS)
        fixed = fixed_blocks(part, Formulas(part.profile), self._stored, self._resolution, worst)
        report = Report(result, summary, timeline)
        self._blocks = dict(chain(fixed, *(section(report) for section in SECTIONS)))
        self._lock = threading.Lock()
        self._events = events if "timeline" in self._blocks else None
        self._analysis: _native.Analysis | None = None

    @property
    def names(self) -> list[str]:
        """The names of all blocks."""
        cells = (f"cells-{number}" for number in range(len(self._stored)))
        return [*self._blocks, *cells, *([WINDOW] if self._events else [])]

    def calls(self, begin: float, end: float, shown: range, rows: int) -> bytes | None:
        """Return the block of the calls of some rows of the timeline in a window of time; None if there is none.

        Parameters
        ----------
        begin, end
            The window, seconds since the start of the trace.
        shown
            The rows.
        rows
            The number of all rows.
        """
        if self._events is None or not begin < end:
            return None
        with self._lock:
            self._analysis = self._analysis or self._events()
        return calls_block(self._result, self._analysis, (begin, end), shown, rows, _CALLS).encode()

    def html(self) -> bytes:
        """Return the page, with the address of each block in its place."""
        data = ((name, None) for name in self.names)
        return "".join(page(self._result.run.name, "report", data, served=True)).encode()

    def block(self, name: str) -> bytes | None:
        """Return a block by name; None if there is none."""
        if name in self._blocks:
            return self._blocks[name].encode()
        kind, _, number = name.partition("-")
        if kind != "cells" or not number.isdecimal() or int(number) >= len(self._stored):
            return None
        # The profile computes values on first use: one request computes them, and others wait for these.
        with self._lock:
            return blocks.columns(self._resolution.of_metric(self._profile, self._stored[int(number)])).encode()
