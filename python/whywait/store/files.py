"""Read files of a result; errors name the file at fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.model.trace import TraceIdentity

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

#: The manifest, which describes the other files of a result.
MANIFEST = "manifest.json"
#: The summary.
SUMMARY = "summary.json"


def is_result(directory: str | PathLike[str]) -> bool:
    """Return whether a directory holds a result."""
    return (Path(directory) / MANIFEST).is_file()


def refuse_other(directory: Path, trace: TraceIdentity) -> None:
    """Refuse to write the result of a trace to the directory with that of another.

    A trace is the same at another place, and another run at the same place has the place of the result.

    Raises
    ------
    whywait.UsageError
        If the directory has the result of another trace.
    """
    other = trace_of(directory)
    if other is None or other.path.resolve() == trace.path.resolve():
        return
    if other.sha256 is None or other.sha256 != trace.sha256:
        raise _native.UsageError(
            f"{directory} has the result of another trace, {other.path}: choose another directory, or replace it "
            "with --force (in Python: force=True)"
        )


def trace_of(directory: Path) -> TraceIdentity | None:
    """Return the trace that a directory has the result of; None if there is no result, or it does not say."""
    for name, place in ((MANIFEST, "trace"), (SUMMARY, "run")):
        try:
            known = json.loads((directory / name).read_text(encoding="utf-8"))[place]
            return TraceIdentity(str(known.get("name")), Path(known["path"]), known.get("size"), known.get("sha256"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    whywait.UsageError
        If the file does not contain one.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _native.UsageError(f"{path} is damaged: {error}") from error
    if not isinstance(data, dict):
        raise _native.UsageError(f"{path} is damaged: it does not contain an object")
    return data


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet file, or some of its columns.

    Raises
    ------
    whywait.UsageError
        If the file is missing or damaged, or has no such columns.
    """
    # Import Arrow only when a table is read: it loads slowly.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns)
    except FileNotFoundError as error:
        raise _native.UsageError(f"{path} is missing: the result is incomplete") from error
    except (pa.ArrowException, OSError) as error:
        raise _native.UsageError(f"{path} is damaged: {error}") from error
