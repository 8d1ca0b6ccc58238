"""Properties of a trace that do not need an analysis."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TraceIdentity:
    """Identifies the files of the analyzed trace: the anchor of an archive, or files in text.

    The anchor itself says little more than how much there is: two runs of a program can have the same. So the global
    definitions beside it count as well, which have the time of the run.

    Attributes
    ----------
    name
        The name of the run.
    path
        The absolute path of the anchor file.
    size, sha256
        Size in bytes and hash of the anchor file and the global definitions; None if unknown.
    """

    name: str
    path: Path
    size: int | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, name: str, path: Path) -> TraceIdentity:
        """Return the current identity of a trace."""
        files, is_whole = _native.identity_files(path)
        try:
            identity = _of_whole(files) if is_whole else _of_ends(files)
        except OSError:
            return cls(name, path.absolute())
        return cls(name, path.absolute(), *identity)

    def is_at(self, path: Path) -> bool:
        """Return whether an anchor file is that of the trace, as far as known."""
        if self.sha256 is None:
            return True
        other = self.of(self.name, path)
        return (other.size, other.sha256) == (self.size, self.sha256)


# A trace in text begins with what tells it from others, and ends with its last events.
_ENDS = 1 << 12


def _of_whole(files: Iterable[Path]) -> tuple[int, str]:
    """Return the size of files, and a hash of their content."""
    size, digest = 0, hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                size += len(chunk)
                digest.update(chunk)
    return size, digest.hexdigest()


def _of_ends(files: Iterable[Path]) -> tuple[int, str]:
    """Return the size of files, and a hash of their names, sizes, and ends."""
    size, digest = 0, hashlib.sha256()
    for file in files:
        length = file.stat().st_size
        size += length
        digest.update(f"{file.name}\0{length}\0".encode())
        with file.open("rb") as content:
            digest.update(content.read(_ENDS))
            content.seek(max(0, length - _ENDS))
            digest.update(content.read(_ENDS))
    return size, digest.hexdigest()


class Trace(Protocol):
    """A trace; `whywait.Run` implements it."""

    @property
    def path(self) -> Path:
        """The anchor file."""
        ...

    @property
    def name(self) -> str:
        """A name for the run."""
        ...

    @property
    def identity(self) -> TraceIdentity:
        """What identifies the trace."""
        ...

    @property
    def definitions(self) -> Mapping[str, pa.Table]:
        """The definition records, by kind."""
        ...

    @property
    def locations(self) -> pa.Table:
        """The locations."""
        ...

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """Definite errors in the definitions: kind, place and text of each."""
        ...

    @property
    def traces(self) -> dict[str, Any] | None:
        """What is known of the ranks of a profiler's traces besides events; None for others."""
        ...

    @property
    def nsight(self) -> dict[str, Any] | None:
        """What is known of reports of Nsight Systems besides events and ranks; None for others."""
        ...

    @property
    def paraver(self) -> dict[str, Any] | None:
        """What is known of a Paraver trace besides events; None for others."""
        ...

    def reopen(self) -> _native.Run:
        """Open the trace again."""
        ...

    def events(self, location: int) -> pa.Table:
        """Return the events of one location."""
        ...
