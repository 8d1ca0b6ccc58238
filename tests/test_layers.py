"""Imports of the package only go down, those for type checking too, and never in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "whywait"

# From the bottom to the top: a module imports from its own floor and from those below.
FLOORS = (
    ("whywait._native",),
    ("whywait.model", "whywait.mpi"),
    ("whywait.hypotheses",),
    ("whywait.analysis",),
    ("whywait.store",),
    ("whywait.report",),
    ("whywait._record",),
    ("whywait.api",),
    ("whywait",),
    ("whywait.bench",),
    ("whywait.commands",),
    ("whywait.cli", "whywait.__main__"),
)


def modules():
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), PACKAGE / "_native.pyi"]):
        name = ".".join(["whywait", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        found[name] = path
    return found


MODULES = modules()


def imports(name, text):
    """Return the modules that one imports; what is no module of the package is taken from the one it stands in."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: a relative import"
            if node.module in MODULES:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {one if one in MODULES else node.module for one in inner}
    return found - {name}


ARROWS = {name: imports(name, path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def floor(name):
    """Return the floor of a module: its own, or that of its package."""
    while not any(name in names for names in FLOORS):
        name, _, rest = name.rpartition(".")
        assert rest, name
    return next(number for number, names in enumerate(FLOORS) if name in names)


def test_every_module_has_a_floor_of_its_own():
    # Without this, a new module next to the facade would be taken for a part of it.
    known = {name for names in FLOORS for name in names}
    assert [name for name in MODULES if name.count(".") == 1 and name not in known] == []


def test_imports_go_down():
    assert [(name, other) for name in MODULES for other in ARROWS[name] if floor(other) > floor(name)] == []


FACE = "whywait"


def test_nothing_below_the_face_imports_from_it():
    """Not even a module: `from whywait import _native` reads as if the names of the package were needed."""
    below = [name for name in MODULES if floor(name) < floor(FACE)]
    trees = {name: ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))) for name in below}
    of_face = [
        (name, node.lineno)
        for name, tree in trees.items()
        for node in tree
        if isinstance(node, ast.ImportFrom) and node.module == FACE
    ]
    assert of_face == []


def test_nothing_goes_in_a_circle():
    try:
        TopologicalSorter(ARROWS).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_an_arrow_that_goes_up_is_seen():
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from whywait import Result, _native\n"
    assert imports("whywait.model.tables", text) == {"whywait", "whywait._native"}
    assert imports("whywait.model.tables", "def f():\n    from whywait.report import cube\n") == {"whywait.report.cube"}
    assert floor("whywait.report.html.page") > floor("whywait.model.tables")
