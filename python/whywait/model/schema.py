"""Patterns, cost classes and tables, as declared by the core."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pyarrow as pa

import whywait._native as _native


class Pattern(NamedTuple):
    """A wait state that the analysis detects.

    Attributes
    ----------
    kind
        The name of the wait state and its metric.
    display_name
        The display name, shown below that of its parent in the metric tree.
    below
        Its parent in the metric tree.
    description
        The meaning in one sentence.
    waits_for
        The end of "8 ranks wait 459 ms in MPI_Waitall ..."; empty for patterns that do not count by themselves.
    look_at
        Advice on where to look for the reason; empty for patterns that do not count by themselves.
    paradigm
        The paradigm of its calls: ``MPI``, ``SHMEM``, ``ARMCI``, ``PGAS``, ``OPENMP``, ``PTHREAD`` or ``GPU``.
    cost_class
        The class of its delay costs; None if these are not attributed.
    part_of
        The wait state that it is a part or another bound of, and with which it is already counted.
    is_bound
        Whether it is another bound rather than a part in the metric tree.
    is_completion
        Whether it is the time of an operation after all participants have entered it.
    is_idle
        Whether it is idle time of a device, which is not part of the time.
    is_balanced_away
        Whether a perfectly balanced run would not have it.
    document
        The name of its specification and test in ``tests/patterns``.
    source
        The source of its definition.
    """

    kind: str
    display_name: str
    below: str
    description: str
    waits_for: str
    look_at: str
    paradigm: str
    cost_class: str | None
    part_of: str | None
    is_bound: bool
    is_completion: bool
    is_idle: bool
    is_balanced_away: bool
    document: str
    source: str

    @property
    def ends_with_cause(self) -> bool:
        """Whether its waits last until their cause ends (a release, a task, a kernel), not until that begins."""
        return self.cost_class in {"lock", "threadlock", "task", "join", "gpu_host"}


class CostClass(NamedTuple):
    """A class of delay costs by kind of waiting, and its metrics.

    Attributes
    ----------
    name
        The name, as in the names of the metrics.
    short_term, long_term
        Costs of delays that caused such waits directly, and through other waits.
    indirect, propagating
        The parts of such waits that are caused by earlier waits, and that cause later ones; None if there are none.
    is_known_to_scalasca
        Whether release 2.6 of Scalasca has it.
    """

    name: str
    short_term: str
    long_term: str
    indirect: str | None
    propagating: str | None
    is_known_to_scalasca: bool


@cache
def patterns() -> dict[str, Pattern]:
    """Return all patterns by their metric."""
    return {row["kind"]: Pattern(**row) for row in _native.patterns()}


@cache
def cost_classes() -> dict[str, CostClass]:
    """Return all cost classes by name."""
    return {row["name"]: CostClass(**row) for row in _native.cost_classes()}


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    name
        The name of the column.
    type
        The Arrow type of its values.
    is_name
        Whether it holds few distinct texts, which are dictionary-encoded.
    is_joined
        Whether the file of a stored table lacks it, because it follows from another column by a join.
    unit
        The unit; empty if it has none.
    meaning
        The meaning.
    """

    name: str
    type: str
    is_name: bool
    is_joined: bool
    unit: str
    meaning: str


class Table(NamedTuple):
    """A table of a result.

    Attributes
    ----------
    name
        The name of its file, or of the methods' return value.
    is_stored
        Whether it is part of the stored dataset.
    methods
        The methods of `whywait.Result` that return it.
    row
        The meaning of a row.
    columns
        The columns in order.
    """

    name: str
    is_stored: bool
    methods: tuple[str, ...]
    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([(column.name, _NAME if column.is_name else _TYPES[column.type]) for column in self.columns])

    @property
    def joined(self) -> frozenset[str]:
        """The columns that its file lacks."""
        return frozenset(column.name for column in self.columns if column.is_joined)


_NAME = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "double": pa.float64(),
    "string": pa.string(),
    "list<string>": pa.list_(_NAME),
    "list<int32>": pa.list_(pa.int32()),
    "list<struct<name: string, size: uint32, periodic: bool>>": pa.list_(
        pa.struct([("name", pa.string()), ("size", pa.uint32()), ("periodic", pa.bool_())])
    ),
    "list<struct<location: uint32, at: list<uint32>>>": pa.list_(
        pa.struct([("location", pa.uint32()), ("at", pa.list_(pa.uint32()))])
    ),
}


@cache
def tables() -> dict[str, Table]:
    """Return all tables by name."""
    rows = {}
    for row in _native.tables():
        columns = tuple(Column(**column) for column in row.pop("columns"))
        rows[row["name"]] = Table(row["name"], row["is_stored"], tuple(row["methods"]), row["row"], columns)
    return rows


def schema_of(table: str) -> pa.Schema:
    """Return the columns of a table as an Arrow schema."""
    return tables()[table].schema
