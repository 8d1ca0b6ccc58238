"""The little XML that a Cube file needs."""

from __future__ import annotations

from xml.sax.saxutils import escape


def element(name: str, text: object) -> str:
    """Return an element that holds text."""
    return f"<{name}>{escape(str(text))}</{name}>"
