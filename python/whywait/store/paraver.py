"""The files of a trace for Paraver."""

from __future__ import annotations

import gzip
import os
import shutil
from typing import TYPE_CHECKING

import whywait._native as _native
from whywait.store.staging import Staging

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ENDINGS = (".prv", ".prv.gz")
# Higher levels take several times as long for a few per cent.
_LEVEL = 4


def base_of(path: Path) -> str:
    """Return the name of a trace without its ending.

    Raises
    ------
    whywait.UsageError
        If it has none of a trace, or is a directory.
    """
    if path.is_dir():
        raise _native.UsageError(f"{path} is a directory, not a file to write to")
    for ending in _ENDINGS:
        if path.name.endswith(ending) and path.name != ending:
            return path.name.removesuffix(ending)
    raise _native.UsageError(f"{path}: the name of a Paraver trace ends with .prv or .prv.gz")


def write_files(path: Path, write: Callable[[Path], tuple[dict[str, int], dict[str, str]]]) -> dict[str, int]:
    """Write a trace and the files beside it; all of them appear at once.

    Parameters
    ----------
    path
        The trace.
    write
        Writes it to a file; returns how many items of each kind, and the texts of the files beside it by their endings.

    Returns
    -------
    dict
        The number of items of each kind, and of bytes.
    """
    base = base_of(path)
    with Staging(path.parent) as staging:
        if path.suffix == ".gz":
            # Beside the target, where there is room for it.
            plain = path.with_name(f".{base}.prv.{os.getpid()}.tmp")
            try:
                counts, texts = write(plain)
                with (
                    plain.open("rb") as source,
                    gzip.open(staging.path(path.name), "wb", compresslevel=_LEVEL) as packed,
                ):
                    shutil.copyfileobj(source, packed, 1 << 20)
            finally:
                plain.unlink(missing_ok=True)
        else:
            counts, texts = write(staging.path(path.name))
        for ending, text in texts.items():
            staging.path(base + ending).write_text(text, encoding="utf-8")
    return {**counts, "bytes": path.stat().st_size}
