"""Tables for people and for pandas, polars or DuckDB: the results of an analysis with names instead of numbers.

No code here loops over rows. A piece of a table keeps each name once, in a dictionary; `table` and `write` spread it
over the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.model.metrics import metric_tree
from whywait.model.profile import Cells
from whywait.model.schema import schema_of
from whywait.model.schema import tables as declared_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from whywait.model.calltree import CallTree
    from whywait.model.profile import Profile

T = TypeVar("T")

SEVERITIES = schema_of("severities")
#: The same with numbers alone.
CELLS = schema_of("focus")
WAIT_STATES = schema_of("wait_states")
#: Columns of wait states and of the account that follow from others in the same file.
_DERIVED = frozenset({"part_of", "group"})
CRITICAL_PATH = schema_of("critical_path")
# The types of columns of wait states with numbers, as the native analysis has them; other columns hold seconds.
_NUMBERS = {
    "kind": pa.uint16(),
    **dict.fromkeys(("callpath", "location", "cause_callpath", "cause_location"), pa.uint32()),
}
# Rows per piece of a table: large enough to be fast, small enough to take little memory.
_PIECE = 1 << 18


class Locations:
    """Rank and thread of each location.

    Parameters
    ----------
    table
        The native table of this name; its rows are in order of the location index.
    lost
        Whether the events of each location are gone; None if they are all there.
    """

    def __init__(self, table: pa.Table, lost: npt.NDArray[np.bool_] | None = None) -> None:
        self.table = table
        self.rank: npt.NDArray[np.int32] = table["rank"].to_numpy()
        self.thread: npt.NDArray[np.int32] = table["thread"].to_numpy()
        #: Rank and thread as columns.
        self.ranks, self.threads = pa.array(self.rank), pa.array(self.thread)
        kind = table["type"].cast(pa.string())
        threads, metrics = pa.array(["CPU_THREAD", "UNKNOWN"]), pa.array(["METRIC"])
        #: Whether the events of each are gone. Nothing is known about it then, so it belongs in no average.
        self.lost = np.zeros(self.rank.size, np.bool_) if lost is None else lost
        is_thread: npt.NDArray[np.bool_] = pc.is_in(kind, value_set=threads).to_numpy() & (self.rank >= 0)
        #: Whether each is a thread of the program: others (metrics, streams of accelerators) share no work with these.
        self.works = is_thread & ~self.lost
        #: The ranks of processes of which no thread is known, in order.
        self.lost_ranks = np.setdiff1d(self.rank[is_thread], self.rank[self.works]).tolist()
        #: Whether each only records counters, which count for threads.
        self.measures: npt.NDArray[np.bool_] = pc.is_in(kind, value_set=metrics).to_numpy()
        #: Whether each is a stream of a device.
        self.is_stream: npt.NDArray[np.bool_] = pc.equal(kind, "ACCELERATOR_STREAM").to_numpy()

    def __len__(self) -> int:
        return int(self.table.num_rows)


def needed_columns(name: str) -> list[str]:
    """Return the columns of a table that do not follow from others."""
    columns = declared_tables()[name].columns
    return [column.name for column in columns if not column.is_joined and column.name not in _DERIVED]


def numbered(stored: pa.Table) -> pa.Table:
    """Return a table from a file as a dataset has it: numbers of call paths are called as the native analysis does."""
    return stored.rename_columns([name.removesuffix("_id") for name in stored.column_names])


def empty_numbered(name: str) -> pa.Table:
    """Return an empty table of a dataset: with numbers of call paths and locations instead of names."""
    return numbered(schema_of(name).empty_table().select(needed_columns(name)))


def severity_pieces(
    profile: Profile, locations: Locations, names: Iterable[str], *, inclusive: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the cells of metrics as rows of `SEVERITIES`, ordered by metric, call tree and location."""
    names = list(names)
    labels = pa.array(names, pa.string())

    def parts() -> Iterator[tuple[int, Cells]]:
        for code, name in enumerate(names):
            key, value = profile.inclusive_cells(name) if inclusive else profile.cells(name)
            for start in range(0, key.size, _PIECE):
                yield code, Cells(key[start : start + _PIECE], value[start : start + _PIECE])

    for group in _groups(parts(), lambda part: len(part[1])):
        yield _severity_piece(profile.tree, locations, labels, group)


def _severity_piece(
    tree: CallTree, locations: Locations, labels: pa.Array, cells: list[tuple[int, Cells]]
) -> pa.RecordBatch:
    codes = np.repeat(np.array([code for code, _ in cells], np.int32), [len(part) for _, part in cells])
    position, location = np.divmod(np.concatenate([part.key for _, part in cells]), len(locations))
    callpaths = pa.array(tree.preorder[position].astype(np.uint32))
    places = pa.array(location.astype(np.uint32))
    columns = [
        _dictionary_column(pa.array(codes), labels),
        _dictionary_column(callpaths, tree.paths),
        callpaths,
        places,
        _dictionary_column(places, locations.ranks),
        _dictionary_column(places, locations.threads),
        pa.array(np.concatenate([part.value for _, part in cells])),
    ]
    return pa.RecordBatch.from_arrays(columns, names=SEVERITIES.names)


def wait_state_pieces(tree: CallTree, locations: Locations, native: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield wait states as rows of `WAIT_STATES`, in the order of the native table."""
    direct = pa.schema([field for field in WAIT_STATES if field.name not in {"part_of", "path"}])
    for piece in named_pieces(tree, locations, native, direct):
        kinds = piece["kind"]
        wholes = [_part_of(name) for name in kinds.dictionary.to_pylist()]
        labels = pa.array(sorted({whole for whole in wholes if whole is not None}), pa.string())
        of_kind = pc.index_in(pa.array(wholes, pa.string()), labels)
        columns = dict(zip(piece.schema.names, piece.columns, strict=True))
        columns["part_of"] = _dictionary_column(of_kind.take(kinds.indices), labels)
        columns["path"] = _dictionary_column(piece["callpath_id"], tree.joined)
        yield pa.RecordBatch.from_arrays([columns[name] for name in WAIT_STATES.names], names=WAIT_STATES.names)


def numbered_waits(native: pa.Table, columns: Sequence[str]) -> tuple[list[str], pa.RecordBatchReader]:
    """Return the names of all kinds, and wait states as the core reads them: with ``kind`` as a number.

    Parameters
    ----------
    native
        All wait states from the native analysis.
    columns
        The columns to return, ``kind`` first.
    """
    waits = native.select(columns).unify_dictionaries()
    chunks = waits["kind"].chunks
    schema = pa.schema([(name, _NUMBERS.get(name, pa.float64())) for name in columns])

    def with_numbers(piece: pa.RecordBatch) -> pa.RecordBatch:
        return piece.set_column(0, "kind", piece["kind"].indices).cast(schema)

    # In pieces, because the table can be larger than memory.
    pieces = map(with_numbers, waits.to_batches(max_chunksize=_PIECE))
    return chunks[0].dictionary.to_pylist() if chunks else [], pa.RecordBatchReader.from_batches(schema, pieces)


def _part_of(kind: str) -> str | None:
    """Return the parent of a wait state: None if it counts itself, ``completion`` or ``idle`` if it is not waiting."""
    tree = metric_tree()
    whole = tree.wait_state(kind)
    if whole is None or whole.kind == "completion":
        return "completion"
    if whole.kind == "idle" and whole.name == kind:
        return "idle"
    return None if whole.name == kind else whole.name


def named_pieces(tree: CallTree, locations: Locations, native: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a native table with rank and thread of each location and the names of each call path.

    Parameters
    ----------
    tree, locations
        What the numbers in the table stand for.
    native
        The table, with numbers alone.
    schema
        The columns to return.
    """
    for piece in _split(native):
        columns = dict(zip(native.column_names, piece.columns, strict=True))
        for name in native.column_names:
            if name.endswith("location"):
                prefix = name.removesuffix("location")
                columns[f"{prefix}rank"] = _dictionary_column(columns[name], locations.ranks)
                columns[f"{prefix}thread"] = _dictionary_column(columns[name], locations.threads)
            elif name.endswith("callpath"):
                columns[f"{name}_id"] = columns[name]
                columns[name] = _dictionary_column(columns[name], tree.paths)
        arrays = [
            array if pa.types.is_dictionary(array.type) else array.cast(field.type)
            for field, array in ((field, columns[field.name]) for field in schema)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _dictionary_column(rows: pa.Array, values: pa.Array) -> pa.DictionaryArray:
    """Return a column that has each value once, and rows of these."""
    return pa.DictionaryArray.from_arrays(rows, values, safe=False)


def _split(native: pa.Table) -> Iterator[pa.RecordBatch]:
    """Cut a table into pieces, without a copy if it is contiguous."""
    for start in range(0, native.num_rows, _PIECE):
        piece = native.slice(start, _PIECE)
        batches = piece.to_batches()
        yield batches[0] if len(batches) == 1 else piece.combine_chunks().to_batches()[0]


def named(tree: CallTree, locations: Locations, native: pa.Table, name: str) -> pa.Table:
    """Return a native table as the table of this name: see `named_pieces`."""
    schema = schema_of(name)
    return table(schema, named_pieces(tree, locations, native, schema))


def table(schema: pa.Schema, pieces: Iterable[pa.RecordBatch]) -> pa.Table:
    """Join pieces into one table."""
    return pa.Table.from_batches([_decode(piece, schema) for piece in pieces], schema)


def _decode(piece: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a piece with values where the schema asks for them."""
    columns = [
        column.dictionary.take(column.indices)
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type)
        else column
        for column, field in zip(piece.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def write(path: Path, schema: pa.Schema, pieces: Iterable[pa.RecordBatch], repeating: Iterable[str] = ()) -> int:
    """Write pieces to a Parquet file.

    Parameters
    ----------
    path, schema, pieces
        The file, its schema and its content, which may have more columns.
    repeating
        Columns of real numbers with repeated values.

    Returns
    -------
    int
        The number of rows.
    """
    # Import what writes files only when there is something to write: it loads slowly.
    import pyarrow.parquet as pq

    # Whole numbers are stored as differences: locations and call paths often rise or stay. Real numbers seldom repeat;
    # split into their bytes, they take an eighth less time to compress.
    whole = {field.name for field in schema if pa.types.is_integer(field.type)}
    real = {field.name for field in schema if pa.types.is_floating(field.type)}.difference(repeating)
    names = [_leaf(field) for field in schema if field.name not in whole | real]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=names,
        use_byte_stream_split=list(real),
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        # Those of real numbers would take a seventh of the time, and rows are seldom in their order.
        write_statistics=[*names, *whole],
    )
    rows = 0
    with writer:
        for group in _groups(pieces, len):
            part = table(schema, (piece.select(schema.names) for piece in group))
            writer.write_table(part, row_group_size=_PIECE)
            rows += part.num_rows
    return rows


def _leaf(field: pa.Field) -> str:
    """Return the name that Parquet has for the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


def _groups(parts: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Combine small parts: each piece, and each row group of a file, has an overhead in time and space."""
    group: list[T] = []
    rows = 0
    for part in parts:
        if group and rows + size(part) > _PIECE:
            yield group
            group, rows = [], 0
        group.append(part)
        rows += size(part)
    if group:
        yield group


def by_rank(profile: Profile, locations: Locations, name: str) -> pa.Table:
    """Sum a metric over the call tree and the threads of each rank.

    Returns
    -------
    pyarrow.Table
        ``rank`` and ``value``; locations that belong to no process have rank -1.
    """
    ranks, group = np.unique(locations.rank, return_inverse=True)
    value = profile.combine(name)(group, profile.by_location(name), ranks.size)
    return pa.table({"rank": ranks, "value": value})


def by_callpath(profile: Profile, name: str) -> pa.Table:
    """Sum a metric over all locations.

    Returns
    -------
    pyarrow.Table
        ``callpath``, ``callpath_id``, ``path`` (its names in one text), ``value`` (exclusive) and ``inclusive``, in the
        order of the call tree, without call paths that have neither.
    """
    tree = profile.tree
    value, inclusive = profile.by_position(name), profile.inclusive_by_position(name)
    (shown,) = np.nonzero((value != 0) | (inclusive != 0))
    callpath = tree.preorder[shown]
    return pa.table(
        {
            "callpath": tree.paths.take(pa.array(callpath)),
            "callpath_id": callpath.astype(np.uint32),
            "path": tree.joined.take(pa.array(callpath)),
            "value": value[shown],
            "inclusive": inclusive[shown],
        }
    )


def callpaths(tree: CallTree) -> pa.Table:
    """List the call paths in the order of the call tree, with their regions."""
    regions = tree.regions.take(pa.array(np.array(tree.region_rows, dtype=np.int64)[tree.preorder]))
    parents = np.array(tree.parents, dtype=np.int64)[tree.preorder]
    return pa.table(
        {
            "callpath": tree.paths.take(pa.array(tree.preorder)),
            "callpath_id": tree.preorder.astype(np.uint32),
            "path": tree.joined.take(pa.array(tree.preorder)),
            "parent_id": pa.array(parents.clip(0).astype(np.uint32), mask=parents < 0),
            **{name: regions[name] for name in ("name", "paradigm", "role", "file", "begin_line", "end_line")},
        }
    )
