"""The program of a page: JavaScript modules bundled into one script.

Every module is a regular one with imports and exports, so that editors and the type checker understand it:

```
import { make, fill } from "./dom.js";
export class TreeView { ... }
```

A page consists of all modules in its directory, and of those that they import from the common directory above it; its
module ``page`` runs last. A page is one file, so the modules are concatenated, each after those it imports, without
imports, exports, and lines that are comments. They share one scope, so no two modules may declare the same name at top
level; names are never changed. No template may have a line that begins with two slashes.
"""

from __future__ import annotations

import posixpath
import re
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The scripts, styles and template of the pages.
ASSETS = files("whywait.report").joinpath("assets")

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "(\.\.?/[\w/]+)\.js";\n', re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:const|let|class|(?:async )?function) (\w+)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|let|class|(?:async )?function) \w)", re.MULTILINE)
# Comments on lines of their own: those in the style of JSDoc are types for the checker.
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class _Module(NamedTuple):
    """A module: its imports by module, declarations, exports and text."""

    imports: dict[str, list[str]]
    declares: list[str]
    exports: frozenset[str]
    text: str


def program(page: str) -> str:
    """Return the script of a page, given its directory."""
    names = (file.name for file in ASSETS.joinpath(page).iterdir())
    modules = sorted(name.removesuffix(".js") for name in names if name.endswith(".js"))
    return bundle([f"{page}/{name}" for name in sorted(modules, key="page".__eq__)], read)


def read(name: str) -> str:
    """Return the text of a module of the pages."""
    return ASSETS.joinpath(f"{name}.js").read_text(encoding="utf-8")


def bundle(entries: Sequence[str], read: Callable[[str], str]) -> str:
    """Bundle modules with all modules that they need.

    Parameters
    ----------
    entries
        The names of the modules; the last one runs after all others.
    read
        A function that returns the text of a module by name.

    Returns
    -------
    str
        The text of all modules that are needed, each after those it imports.

    Raises
    ------
    ValueError
        If imports are circular, if a module imports a name that is not exported, if two modules declare the same name,
        or if an import or export has an unsupported form.
    """
    modules: dict[str, _Module] = {}
    needed = [*entries]
    while needed:
        name = needed.pop()
        if name not in modules:
            modules[name] = _parse(name, read(name))
            needed.extend(modules[name].imports)
    before = {name: sorted(module.imports) for name, module in modules.items()}
    before[entries[-1]] += entries[:-1]
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise ValueError(f"modules need each other: {' > '.join(error.args[1])}") from None
    home: dict[str, str] = {}
    for name in order:
        for declared in modules[name].declares:
            if (other := home.setdefault(declared, name)) != name:
                raise ValueError(f"{other}.js and {name}.js both declare {declared}")
        for other, taken in modules[name].imports.items():
            if missing := set(taken) - modules[other].exports:
                raise ValueError(f"{name}.js takes {', '.join(sorted(missing))}, which {other}.js does not export")
    return "\n".join(modules[name].text for name in order)


def _parse(name: str, text: str) -> _Module:
    imports: dict[str, list[str]] = {}
    for taken, path in _IMPORT.findall(text):
        other = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        imports.setdefault(other, []).extend(taken.split(", "))
    declared = _DECLARED.findall(text)
    exports = frozenset(one for exported, one in declared if exported)
    rest = _EXPORT.sub("", _IMPORT.sub("", text))
    if left := _LEFT.search(rest):
        raise ValueError(f"{name}.js: {left[0]!r} is not a supported form of import or export")
    return _Module(imports, [one for _, one in declared], exports, _COMMENT.sub("", rest))
