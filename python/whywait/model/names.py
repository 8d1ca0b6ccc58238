"""How a name is shown to a person."""

from __future__ import annotations

import re


def short_name(name: str) -> str:
    """Return a C++ function without its return type, template arguments and parameters; other names as they are."""
    if "(" not in name or name.startswith("!$"):
        return name
    text = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator[call]")
    while (stripped := re.sub(r"<[^<>]*>", "", text)) != text:
        text = stripped
    words = text.partition("(")[0].split()
    return words[-1].replace("operator[call]", "operator()") if words else name
