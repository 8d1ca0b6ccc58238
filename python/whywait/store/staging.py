"""Files that appear completely or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class Staging:
    """A directory with files under temporary names, which are renamed at the end if nothing failed.

    >>> with Staging(directory) as staging:
    ...     written = staging.path("summary.json").write_text("{}")
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[Path, Path] = {}
        self._made = False

    def path(self, name: str) -> Path:
        """Return the temporary path of the file with this final name."""
        temporary = self._directory / f".{name}.{os.getpid()}.tmp"
        self._files[temporary] = self._directory / name
        return temporary

    @property
    def files(self) -> list[Path]:
        """The final paths of the files, in the order of requests."""
        return list(self._files.values())

    def __enter__(self) -> Self:
        if not self._directory.is_dir():
            self._directory.mkdir(parents=True)
            self._made = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            for temporary, final in self._files.items():
                temporary.replace(final)
            return
        for temporary in self._files:
            temporary.unlink(missing_ok=True)
        if self._made:
            self._directory.rmdir()
