"""The page of a result on a server: the same program, but the page requests each block of data when needed.

It has all values, however many: a page in one file merges ranks and rounds values to stay small.
"""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Any

from whywait.report.html import blocks, places, worst_waits
from whywait.report.html.formulas import Formulas
from whywait.report.html.model import fixed_blocks, stored_metrics
from whywait.report.html.page import page
from whywait.report.html.sections import SECTIONS, Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whywait.model.result import ResultData

#: Maximum number of individual wait states: more than in a page in one file.
_WAITS = 200_000


class ServedPage:
    """A page and its blocks of data by name.

    Parameters
    ----------
    result, summary, timeline
        As in `whywait.report.html.sections.Report`.
    """

    def __init__(self, result: ResultData, summary: dict[str, Any], timeline: Mapping[str, str]) -> None:
        self._result = result
        self._stored = stored_metrics(result.profile)
        self._resolution = places.Resolution(1, exact=True)
        worst = worst_waits.worst(result, _WAITS)
        fixed = fixed_blocks(result, Formulas(result.profile), self._stored, self._resolution, worst)
        report = Report(result, summary, timeline)
        self._blocks = dict(chain(fixed, *(section(report) for section in SECTIONS)))
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names of all blocks."""
        return [*self._blocks, *(f"cells-{number}" for number in range(len(self._stored)))]

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
            return blocks.columns(self._resolution.of_metric(self._result.profile, self._stored[int(number)])).encode()
