"""The page docs/tables.md, made from the tables that the core declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.model.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.schema import Table

INTRODUCTION = """\
# Tables

This page lists the columns of all tables of [the dataset](dataset.md) and of those that `whywait.Result` returns,
with Arrow types. Times are seconds since the start of the trace; other quantities in `s` are durations.

Columns marked with * are not in the file, because they follow [from other tables](dataset.md#names). The methods return
them, and `whywait export tables` writes them.

`docs/make_tables.py` generates this page from `rust/core/src/schema/tables.rs`.
"""


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join("".join(_lines(table)) for table in tables().values())


def _lines(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n\nOne row is {table.row}.\n\n"
    homes = [f"`{table.name}.parquet`"] if table.is_stored else []
    homes += [f"`Result.{method}()`" for method in table.methods]
    yield f"In {', '.join(homes)}.\n\n"
    yield "| column | type | unit | meaning |\n|---|---|---|---|\n"
    for column in table.columns:
        mark = " *" if column.is_joined else ""
        yield f"| `{column.name}`{mark} | {column.type} | {column.unit} | {column.meaning} |\n"
