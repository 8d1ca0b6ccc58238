"""The long tables of a result with names, as Parquet files for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whywait._native as _native
from whywait.model import tables
from whywait.model.schema import schema_of
from whywait.store.files import is_result
from whywait.store.staging import Staging

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from whywait.model.result import ResultData


def write_tables(result: ResultData, directory: Path) -> list[Path]:
    """Write the long tables; see `whywait.Result.write_tables`."""
    if is_result(directory):
        raise _native.UsageError(f"{directory} holds a result, whose tables would be overwritten")
    with Staging(directory) as staging:
        for name, schema, pieces in _named(result):
            tables.write(staging.path(f"{name}.parquet"), schema, pieces)
    return staging.files


def _named(result: ResultData) -> Iterator[tuple[str, pa.Schema, Iterable[pa.RecordBatch]]]:
    """Yield the name, the schema, and the pieces of each table that the result has."""
    tree, locations, dataset = result.tree, result.places, result.tables
    metrics = result.profile.metrics
    for name, is_derived in (("severities", False), ("derived", True)):
        chosen = [metric.name for metric in metrics if metric.derived == is_derived]
        yield name, tables.SEVERITIES, tables.severity_pieces(result.profile, locations, chosen)
    if result.is_profile:
        return
    yield "wait_states", tables.WAIT_STATES, tables.wait_state_pieces(tree, locations, dataset.wait_states)
    if result.has_causes:
        path = tables.named_pieces(tree, locations, dataset.critical_path, tables.CRITICAL_PATH)
        yield "critical_path", tables.CRITICAL_PATH, path
    try:
        transfers = dataset.transfers
    except _native.UsageError:
        # The result was written without them.
        return
    schema = schema_of("transfers")
    yield "transfers", schema, tables.named_pieces(tree, locations, transfers, schema)
