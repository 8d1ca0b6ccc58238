"""Assemble a page from template, style, program and data."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from whywait.report.html import bundle
from whywait.report.html.formulas import Formulas
from whywait.report.html.model import run_blocks, shown_part
from whywait.report.html.sections import SECTIONS, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path

    from whywait.model.result import ResultData

#: Maximum size of all data in bytes: a much larger page opens slowly and is hard to share.
ROOM = 46_000_000


def write_html(
    result: ResultData,
    path: Path,
    summary: dict[str, Any],
    timeline: Mapping[str, str],
    loop: str | int | None = None,
    source: str | PathLike[str] | None = None,
) -> None:
    """Write a result as one file for the browser.

    Parameters
    ----------
    path
        The file; overwritten if it exists.
    result, summary, timeline, loop, source
        As in `whywait.report.html.sections.Report`.
    """
    report = Report(result, summary, timeline, loop, source)
    with ThreadPoolExecutor(2) as beside:
        # With many locations, the values take as long as all sections.
        sections = [beside.submit(dict, section(report)) for section in SECTIONS]

        def room() -> int:
            return ROOM - sum(len(block) for section in sections for block in section.result().values())

        part = shown_part(result, summary)
        values = dict(run_blocks(part, Formulas(part.profile), room))
    data = chain(values.items(), *(section.result().items() for section in sections))
    with path.open("w", encoding="utf-8") as out:
        out.writelines(page(result.run.name, "report", data))


def page(title: str, program: str, data: Iterable[tuple[str, str | None]], *, served: bool = False) -> Iterator[str]:
    """Yield the pieces of a page.

    Parameters
    ----------
    title
        The title of the page.
    program
        The directory of the page's modules below ``assets``.
    data
        Name and content of each block; None for a block that the page requests from the server.
    served
        Whether the page may send requests to its server; a page in a file sends none.
    """
    filled = {
        "title": escape(f"{title} - whywait"),
        "connections": "; connect-src 'self'" if served else "",
        "style": bundle.ASSETS.joinpath("style.css").read_text(encoding="utf-8"),
        "program": bundle.program(program),
    }
    template = bundle.ASSETS.joinpath("page.html").read_text(encoding="utf-8")
    # Text and the names of placeholders alternate.
    for number, piece in enumerate(re.split(r"\{\{(\w+)\}\}", template)):
        if number % 2 == 0:
            yield piece
        elif piece == "data":
            for name, block in data:
                source = ' data-served=""' if block is None else ""
                yield f'<script type="text/plain" id="data-{name}"{source}>{block or ""}</script>\n'
        else:
            yield filled[piece]
