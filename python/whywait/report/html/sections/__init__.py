"""The sections of the report of one run: each module of this package is one of them.

A section has a function ``data(report)`` that yields the names and contents of its blocks, or nothing if the run has
nothing to show in it. The scripts in ``assets/report`` read these blocks. The report in one file and the served report
both consist of all sections, so no other file names them.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike

    from whywait.model.result import ResultData


class Report(NamedTuple):
    """What a report is made from.

    Attributes
    ----------
    result
        The run.
    summary
        As `whywait.analysis.summary.summarize` returns it.
    timeline
        The blocks of the timeline from `whywait.report.html.timeline.pack`; empty for no timeline.
    loop
        The loop whose iterations to show, as in `whywait.analysis.iterations.iterations`; None for the main loop.
    source
        The directory with the source files of the program; None to show no source lines.
    """

    result: ResultData
    summary: dict[str, Any]
    timeline: Mapping[str, str]
    loop: str | int | None = None
    source: str | PathLike[str] | None = None


#: The functions that yield the data of each section.
SECTIONS: tuple[Callable[[Report], Iterator[tuple[str, str]]], ...] = tuple(
    import_module(f"{__name__}.{module.name}").data for module in pkgutil.iter_modules(__path__)
)
