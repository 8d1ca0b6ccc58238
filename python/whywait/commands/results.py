"""Results to work on: written ones are read, traces are analysed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whywait.commands.common import Progress

if TYPE_CHECKING:
    from whywait import Result

#: The help of an operand that may be either.
RESULT = "a directory that `whywait analyze` wrote, or a trace, which is analysed first"
#: The help of an option that says what the numbers are about.
FOCUS = (
    "what the numbers are about: 'all' for the whole run, or only the call paths that end in these names (default: the "
    "time from start-up to shutdown)"
)
#: The help of an option that names a part of the call tree.
CALLPATH = "only the call paths that end in these names (main/solve), with all below them; or the number of one"


def load(path: str, *, events: bool = False) -> Result:
    """Return the result that was written to a directory, or that of a trace.

    Parameters
    ----------
    path
        The directory, or the trace.
    events
        Whether the events are needed, which a written result has not: then its trace is analyzed again.
    """
    import whywait
    from whywait._load import is_result

    if not is_result(path):
        with Progress() as progress:
            return whywait.analyze(path, progress=progress)
    result = whywait.load(path)
    if not events:
        return result
    with Progress() as progress:
        return whywait.analyze(result.run, **result.options, progress=progress)


def name_of(path: str) -> str:
    """Call a run by its directory: runs that are compared are often of one program."""
    place = Path(path).resolve()
    return (place if place.is_dir() else place.parent).name
