"""Which files a call path uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, Words
from whywait.analysis.io import files_of

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Run

FIGURES = Figures(
    file=("name", "the file that takes most of this time"),
    files=("count", "the other files"),
)


def on_files(run: Run, callpath: int) -> Words:
    """Return which files a call path works on; nothing if none is known."""
    names = files_of(run.result, callpath)
    if not names:
        return Words("")
    if len(names) == 1:
        return FIGURES.say(" on {file}", file=names[0])
    other = "other" if len(names) == 2 else "others"
    return FIGURES.say(f" on {{file}} and {{files}} {other}", file=names[0], files=len(names) - 1)
