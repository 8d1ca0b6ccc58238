"""Display of names, and suggestions for unknown names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names of files and directories that say nothing about the run.
GENERIC = frozenset({"archive", "trace", "traces", "results", "result", "profile"})


# What compilers append to the names of copies of a function.
_COPIES = re.compile(r"(\.(constprop|isra|part|cold|lto_priv)(\.\d+)?)+$")


def short_name(name: str) -> str:
    """Return a function without what compilers append, and of C++ without type, template arguments and parameters."""
    name = _COPIES.sub("", name)
    if "(" not in name or name.startswith("!$"):
        return name
    text = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator[call]")
    while (stripped := re.sub(r"<[^<>]*>", "", text)) != text:
        text = stripped
    words = text.partition("(")[0].split()
    return words[-1].replace("operator[call]", "operator()") if words else name


def close(text: str, known: Iterable[str]) -> str:
    """Return the known names close to a text, as the end of a message; empty if there are none."""
    from difflib import get_close_matches

    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.casefold(), name)
    found = [names[one] for one in get_close_matches(text.casefold(), list(names), 3, 0.6)]
    return f": did you mean {', '.join(found)}?" if found else ""
