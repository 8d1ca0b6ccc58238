"""Minimal XML for Cube files."""

from __future__ import annotations

# The one of xml.sax also loads network modules.
from html import escape
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

_BLANKS = str.maketrans({"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def element(name: str, text: object) -> str:
    """Return an element that holds text."""
    return f"<{name}>{escape(str(text), quote=False)}</{name}>"


def escaped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Escape texts for the content of elements."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        texts = pc.replace_substring(texts, character, entity)
    return texts


def attribute(text: str) -> str:
    """Return the value of an attribute in its quotes."""
    return f'"{escape(text).translate(_BLANKS)}"'
