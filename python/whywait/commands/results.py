"""Results to work on: written ones are read, traces are analysed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whywait.commands.common import Progress

if TYPE_CHECKING:
    from whywait import Result

#: The help of an operand that may be either.
RESULT = "a directory that `whywait analyze` wrote, or a trace, which is analysed first"
#: The help of an option that names a part of the call tree.
CALLPATH = "only the call paths that end in these names (main/solve), with all below them; or the number of one"


def load(path: str) -> Result:
    """Return the result that was written to a directory, or that of a trace."""
    import whywait

    if (Path(path) / "summary.json").is_file():
        from whywait._load import load as read

        return read(path)
    with Progress() as progress:
        return whywait.analyze(path, progress=progress)


def name_of(path: str) -> str:
    """Call a run by its directory: runs that are compared are often of one program."""
    place = Path(path).resolve()
    return (place if place.is_dir() else place.parent).name
