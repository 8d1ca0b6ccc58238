"""Files that appear completely or not at all."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

# Of renameat2(2): paths relative to the working directory, and two names that change places.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


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
        temporary = self._temporary(name)
        self._files[temporary] = self._directory / name
        return temporary

    def _temporary(self, name: str) -> Path:
        return self._directory / f".{name}.{os.getpid()}.tmp"

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


class StagedDirectory(Staging):
    """A directory that is replaced at once by a new one, which has only the new files.

    A process that is killed leaves the old directory as it was. If the directory also has files of others, or cannot be
    renamed, it stays, and its files are replaced one after the other at the end, and those that are not written again
    removed.

    Parameters
    ----------
    directory
        The directory.
    is_own
        Returns whether a file of this name in the directory is one of ours.
    """

    def __init__(self, directory: Path, is_own: Callable[[str], bool]) -> None:
        super().__init__(directory)
        self._is_own = is_own
        # What a symbolic link leads to is replaced, not the link.
        self._target = directory.resolve()
        self._new = self._target
        self._lock = -1

    def _temporary(self, name: str) -> Path:
        return self._new / name

    def __enter__(self) -> Self:
        try:
            self._make()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise _native.UsageError(f"{self._directory} cannot be written: {reason}") from error
        self._lock = _locked(self._new)
        return self

    def _make(self) -> None:
        """Make the directory for the new files."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        beside = self._target.parent
        if self._target.is_dir() and not self._is_replaceable():
            beside = self._target
        _remove_abandoned(beside, self._prefix)
        self._new = beside / f"{self._prefix}{os.getpid()}.tmp"
        self._new.mkdir()

    @property
    def _prefix(self) -> str:
        return f".{self._target.name}."

    def _is_replaceable(self) -> bool:
        """Return whether an existing directory can be replaced by another."""
        return (
            all(self._is_own(file.name) and not file.is_dir() for file in self._target.iterdir())
            and not self._target.is_mount()
            and self._target != Path.cwd()
            and os.access(self._target.parent, os.W_OK)
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._put()
        finally:
            shutil.rmtree(self._new, ignore_errors=True)
            if self._lock >= 0:
                os.close(self._lock)

    def _put(self) -> None:
        """Put the new files in the place of the old ones."""
        if self._new.parent == self._target:
            for temporary in self._files:
                temporary.replace(self._target / temporary.name)
            for file in self._target.iterdir():
                if self._is_own(file.name) and self._directory / file.name not in self.files:
                    file.unlink()
        elif not self._target.is_dir():
            self._new.rename(self._target)
        else:
            shutil.copymode(self._target, self._new)
            _exchange(self._new, self._target)


def _locked(directory: Path) -> int:
    """Lock a directory as long as this process lives; return its descriptor, or -1 where that cannot be."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _remove_abandoned(directory: Path, prefix: str) -> None:
    """Remove what killed processes have left: what nobody has locked any more."""
    for left in directory.glob(f"{prefix}*.tmp"):
        with suppress(OSError):
            if left.is_dir() and (lock := _locked(left)) >= 0:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _exchange(new: Path, old: Path) -> None:
    """Let two directories change places: at once where the system can, as Linux does on most file systems."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old))
    if rename is not None and rename(*paths, _RENAME_EXCHANGE) == 0:
        return
    aside = new.with_suffix(".old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)
