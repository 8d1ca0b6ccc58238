"""Formatting of values and small tables, independent of the output."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int) -> str:
    """Return a small table for a notebook.

    Parameters
    ----------
    title
        The title above the table.
    head
        The names of the columns.
    rows
        The texts of the rows.
    numbers
        The column of numbers, which is right-aligned; all others are left-aligned.
    """
    left = ' style="text-align: left"'
    styles = ["" if column == numbers else left for column in range(len(head))]
    top = "".join(f"<th{style}>{escape(name)}</th>" for style, name in zip(styles, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{style}>{escape(text)}</td>" for style, text in zip(styles, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<p>{escape(title)}</p><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
