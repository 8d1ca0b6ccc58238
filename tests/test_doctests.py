"""The examples in docstrings run, on a trace that ships with the project."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import whywait

from tests.test_docs import ROOT

MODULES = [name for _, name, _ in pkgutil.walk_packages(whywait.__path__, "whywait.") if not name.endswith("__main__")]


@pytest.fixture(scope="module")
def names():
    """What examples may take for granted: ``run``, ``result`` and an empty ``directory`` besides."""
    run = whywait.open(ROOT / "tests/data/stencil")
    return {"whywait": whywait, "run": run, "result": whywait.analyze(run)}


def test_examples_in_docstrings_run(names, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for module in ["whywait", *MODULES]:
        directory = tmp_path / module
        directory.mkdir()
        for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), module):
            example.globs |= names | {"directory": directory}
            runner.run(example)
    assert not runner.failures


def test_the_public_functions_have_examples():
    finder = doctest.DocTestFinder()
    for name in ("analyze", "open", "load", "Result"):
        public = getattr(whywait, name)
        assert any(found.examples for found in finder.find(public, name, module=False)), name
