"""The timeline of the HTML report in a file: `timeline.parquet` holds the name and the text of each block of the page.

It is made from the events, which a written result has not; so it is packed once, and kept for a later page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = pa.schema({"block": pa.string(), "content": pa.large_string()})


def write(path: Path, packed: Mapping[str, str], facts: Mapping[str, Any]) -> None:
    """Write the blocks to a file, which knows by its facts what run they are of."""
    schema = SCHEMA.with_metadata({"run": _identity(facts)})
    table = pa.table({"block": list(packed), "content": list(packed.values())}, schema=schema)
    # The content is compressed already.
    pq.write_table(table, path, compression="none", use_dictionary=False)


def read(path: Path, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the blocks that were written; none if they are of another run, written before to the same place."""
    table = pq.read_table(path)
    if (table.schema.metadata or {}).get(b"run") != _identity(facts).encode():
        return {}
    return dict(zip(table["block"].to_pylist(), table["content"].to_pylist(), strict=True))


def _identity(facts: Mapping[str, Any]) -> str:
    return json.dumps([facts[name] for name in ("length", "resolution", "locations", "events", "callpaths")])
