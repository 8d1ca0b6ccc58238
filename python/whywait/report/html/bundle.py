"""The program of a page: modules of JavaScript, put together to one script.

Every module stands on its own and says what it takes from others, so that editors and the type checker understand it:

```
import { make, fill } from "./dom.js";
export class TreeView { ... }
```

A page is one file, so the modules are written one after the other, each after those it takes from, without these words.
All of them then share one scope: a name may be declared at the top of only one of them, and is never renamed.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:const|let|class|(?:async )?function) (\w+)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|let|class|(?:async )?function) \w)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class _Module(NamedTuple):
    """A module: what it takes from each other, what it declares, what of it others may take, and its text."""

    imports: dict[str, list[str]]
    declares: list[str]
    exports: frozenset[str]
    text: str


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """Put a program together.

    Parameters
    ----------
    entry
        The name of the module to begin with.
    read
        Returns the text of a module by its name.

    Returns
    -------
    str
        The text of all modules that are needed, in an order in which each finds what it takes.

    Raises
    ------
    ValueError
        If modules need each other in a circle, if one takes what another does not export, if two declare the same
        name, or if an import or export is of a form that is not known here.
    """
    modules: dict[str, _Module] = {}
    needed = [entry]
    while needed:
        name = needed.pop()
        if name not in modules:
            modules[name] = _parse(name, read(name))
            needed.extend(modules[name].imports)
    try:
        order = list(
            TopologicalSorter({name: sorted(module.imports) for name, module in modules.items()}).static_order()
        )
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
    for taken, other in _IMPORT.findall(text):
        imports.setdefault(other, []).extend(taken.split(", "))
    declared = _DECLARED.findall(text)
    exports = frozenset(one for exported, one in declared if exported)
    rest = _EXPORT.sub("", _IMPORT.sub("", text))
    if left := _LEFT.search(rest):
        raise ValueError(f"{name}.js: {left[0]!r} is of a form that is not known here")
    return _Module(imports, [one for _, one in declared], exports, rest)
