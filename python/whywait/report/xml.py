"""The little XML that a Cube file needs."""

from __future__ import annotations

# That of xml.sax loads what talks to servers.
from html import escape

_BLANKS = str.maketrans({"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def element(name: str, text: object) -> str:
    """Return an element that holds text."""
    return f"<{name}>{escape(str(text), quote=False)}</{name}>"


def attribute(text: str) -> str:
    """Return the value of an attribute in its quotes."""
    return f'"{escape(text).translate(_BLANKS)}"'
