"""What is known of a trace besides what an analysis finds in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa


class Trace(Protocol):
    """A trace as `whywait.Run` has it."""

    @property
    def path(self) -> Path:
        """The anchor file."""
        ...

    @property
    def name(self) -> str:
        """A name for the run."""
        ...

    @property
    def definitions(self) -> Mapping[str, pa.Table]:
        """The definition records, by kind."""
        ...

    @property
    def locations(self) -> pa.Table:
        """The streams of events."""
        ...

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """What the definitions get wrong without leaving a doubt: kind, place and text of each finding."""
        ...

    def events(self, location: int) -> pa.Table:
        """Return the events of one location."""
        ...
