"""The documentation of methods that return tables, from the declaration of the tables."""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import fill
from typing import TypeVar

from whywait.model.schema import tables

T = TypeVar("T", bound=type)

_WIDTH = 112
_REFERENCE = re.compile(r"^( *)See docs/tables\.md#(\w+)\.\n", re.MULTILINE)


def with_columns(cls: T) -> T:
    """Add the columns of a table to the docstrings of a class that refer to it.

    A line ``See docs/tables.md#locks.`` becomes what a row of that table is, and its columns; outside of a section, it
    becomes the section of what is returned.

    >>> "``kind``: ``message``, ``put``, ``get`` or ``atomic``." in whywait.Result.message_sizes.__doc__
    True
    """
    for member in vars(cls).values():
        if "docs/tables.md#" in (text := getattr(member, "__doc__", None) or ""):
            member.__doc__ = _REFERENCE.sub(_columns, cleandoc(text) + "\n")
    return cls


def _columns(reference: re.Match[str]) -> str:
    """Return what stands for a reference to a table: the reference, and the columns."""
    margin, name = reference.groups()
    table = tables()[name]
    heading = "" if margin else "Returns\n-------\npyarrow.Table\n"
    margin = margin or "    "
    lines = [f"One row is {table.row}: docs/tables.md#{name}.", ""]
    for column in table.columns:
        unit = f" ({column.unit})" if column.unit else ""
        lines.append(f"* ``{column.name}``{unit}: {column.meaning.replace('`', '``')}.")
    return heading + "".join(_filled(line, margin) + "\n" for line in lines)


def _filled(line: str, margin: str) -> str:
    """Return a line within the width of the other documentation."""
    if len(margin) + len(line) <= _WIDTH:
        return (margin + line).rstrip()
    hanging = margin + "  " * line.startswith("* ")
    return fill(line, _WIDTH, initial_indent=margin, subsequent_indent=hanging, break_on_hyphens=False)
