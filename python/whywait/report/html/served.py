"""The page of a result on a server: the same program, but the page requests each block of data when needed.

It has all values, however many: a page in one file merges ranks and rounds values to stay small.
"""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Any

from whywait.report.html import blocks, instances, loops, page, places, story
from whywait.report.html.formulas import Formulas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whywait.model.result import ResultData

#: Maximum number of individual wait states: more than in a page in one file.
_WAITS = 200_000


class ServedPage:
    """A page and its blocks of data by name.

    Parameters
    ----------
    result
        The result.
    summary
        As `whywait.analysis.summary.summarize` returns it.
    timeline
        The blocks of the timeline; empty for no timeline.
    """

    def __init__(self, result: ResultData, summary: dict[str, Any], timeline: Mapping[str, str]) -> None:
        self._result = result
        formulas = Formulas(result.profile)
        front_page = story.front_page(result, summary)
        self._stored = page.stored_metrics(result.profile)
        self._resolution = places.Resolution(1, exact=True)
        worst = instances.worst(result, _WAITS)
        fixed = page.fixed_blocks(result, formulas, front_page, self._stored, self._resolution, worst)
        self._blocks = dict(
            chain(fixed, timeline.items(), loops.loop_blocks(result), loops.communication_blocks(result))
        )
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names of all blocks."""
        return [*self._blocks, *(f"cells-{number}" for number in range(len(self._stored)))]

    def html(self) -> bytes:
        """Return the page, with the address of each block in its place."""
        data = ((name, None) for name in self.names)
        return "".join(page.page(self._result.run.name, "app", data, served=True)).encode()

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
