"""Patterns, cost classes and tables as the core declares them: what the package knows of them by name."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pyarrow as pa

from whywait import _native


class Pattern(NamedTuple):
    """A wait state that the analysis looks for.

    Attributes
    ----------
    kind
        The metric that it is booked on, whose name is its own.
    display_name
        The name that people read below that of its parent in the metric tree.
    below
        Its parent in the metric tree.
    description
        What it is, in a sentence.
    waits_for
        The end of "8 ranks wait 459 ms in MPI_Waitall ..."; empty for what does not count by itself.
    look_at
        Where to look for the reason, in sentences; empty for what does not count by itself.
    paradigm
        In whose calls it occurs: ``MPI``, ``SHMEM``, ``ARMCI``, ``OPENMP``, ``PTHREAD`` or ``GPU``.
    cost_class
        What its costs are booked on; None if nobody is charged.
    part_of
        The wait state that it is a part of, or another bound of: it does not count beside that.
    is_bound
        Whether it is another bound, and not a part in the metric tree.
    is_completion
        Whether it is what an operation takes after all have come.
    is_idle
        Whether it lies where a device has nothing to run, so that it is no part of the time.
    is_balanced_away
        Whether a perfectly balanced run would not have it.
    document
        The name of its specification, which is its test, in ``tests/patterns``.
    source
        Where it is defined.
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


class CostClass(NamedTuple):
    """A kind of waiting that costs are paid for, and the metrics that it is booked on.

    Attributes
    ----------
    name
        As in the names of the metrics.
    short_term, long_term
        Costs of the delays that caused such a wait themselves, and through other waits.
    indirect, propagating
        The parts of such waits that earlier waits explain, and that made others wait; None where there are none.
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
        Its name.
    type
        What stands in it, in the words of Arrow.
    is_name
        Whether it is one of few texts that occur again and again, each of which is kept once.
    unit
        What it is measured in; empty if in nothing.
    meaning
        What it means.
    """

    name: str
    type: str
    is_name: bool
    unit: str
    meaning: str


class Table(NamedTuple):
    """A table of a result.

    Attributes
    ----------
    name
        That of its file, or what the methods return.
    is_stored
        Whether it is part of the dataset that is written.
    methods
        Methods of `whywait.Result` that return it.
    row
        What one row is.
    columns
        Its columns, in their order.
    """

    name: str
    is_stored: bool
    methods: tuple[str, ...]
    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([(column.name, _NAME if column.is_name else _TYPES[column.type]) for column in self.columns])


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
    """Return the columns of a table as Arrow has them."""
    return tables()[table].schema
