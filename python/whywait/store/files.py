"""Files of a result: read, or named in an error that says which one is at fault."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whywait import _native

if TYPE_CHECKING:
    from pathlib import Path


def read_json(path: Path) -> dict[str, Any]:
    """Read an object.

    Raises
    ------
    whywait.UsageError
        If the file holds none.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _native.UsageError(f"{path} is damaged: {error}") from error
    if not isinstance(data, dict):
        raise _native.UsageError(f"{path} is damaged: it holds no object")
    return data


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet file, or some columns of it.

    Raises
    ------
    whywait.UsageError
        If the file is missing or damaged, or has no such columns.
    """
    try:
        return pq.read_table(path, columns=columns)
    except FileNotFoundError as error:
        raise _native.UsageError(f"{path} is missing: the result is not complete") from error
    except (pa.ArrowException, OSError) as error:
        raise _native.UsageError(f"{path} is damaged: {error}") from error
