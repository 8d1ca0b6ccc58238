"""The public API: all names exist, and docstrings list all parameters."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import whywait

VERBS = {"advise", "analyze", "compare", "load", "open", "series", "whatif"}


def callables():
    """Yield the public functions, and the public methods of public classes, with their names."""
    for name in whywait.__all__:
        public = getattr(whywait, name)
        if inspect.isclass(public) and public.__module__.startswith("whywait.") and not issubclass(public, Exception):
            for method, member in inspect.getmembers(public, inspect.isfunction):
                if not method.startswith("_") and member.__module__.startswith("whywait"):
                    yield f"{name}.{method}", member
        elif inspect.isfunction(public):
            yield name, public


CALLABLES = dict(callables())


def documented(function):
    """Return the parameters that a docstring in the style of numpy names."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.getdoc(function) or "", re.DOTALL | re.MULTILINE
    )
    lines = section[1].splitlines() if section else []
    return {name.strip("* ") for line in lines if line[:1].strip() for name in line.partition(":")[0].split(",")}


def test_all_public_names_are_there_and_documented():
    assert {*VERBS, "Result", "Run"} <= set(whywait.__all__)
    for name in whywait.__all__:
        assert getattr(whywait, name).__doc__, name
    assert set(whywait.__all__) <= set(dir(whywait))
    assert {*whywait._HOME, "hypotheses"} == set(whywait.__all__)


def test_verbs_are_functions_whatever_is_imported():
    """A module of the name of a function would replace it in the package once it is imported."""
    for _, name, _ in pkgutil.walk_packages(whywait.__path__, "whywait."):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    assert all(inspect.isfunction(getattr(whywait, verb)) for verb in VERBS)


def test_the_check_sees_what_is_missing():
    def undocumented(a, b):
        """Do something.

        Parameters
        ----------
        a
            What it is.

        Returns
        -------
        b
            No parameter.
        """

    assert documented(undocumented) == {"a"}
    assert {"analyze", "Result.write", "Run.events"} <= set(CALLABLES)


def test_the_documentation_names_all_parameters():
    def parameters(function):
        return set(inspect.signature(function).parameters) - {"self", "cls"}

    found = {name: documented(function) for name, function in CALLABLES.items()}
    assert found == {name: parameters(function) for name, function in CALLABLES.items()}
