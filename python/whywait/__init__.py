"""Find out why a parallel program waits.

>>> import whywait
>>> run = whywait.open("tests/data/stencil")  # reads only the definitions
>>> result = whywait.analyze(run)
>>> round(result.metrics["mpi_latesender"].total, 3)  # seconds
0.487
>>> result.wait_states().num_rows  # one row per wait state: what, where, when, how long, who caused it
988

Importing the package loads none of its dependencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whywait._analyze import analyze
    from whywait._api import Result
    from whywait._load import load
    from whywait._native import ArchiveError, Error, TraceError, UsageError
    from whywait._record import finish_recording, record
    from whywait._run import Definitions, Run, open  # noqa: A004
    from whywait.advise import advise
    from whywait.analysis.ranking import Choice
    from whywait.model.metric_values import MetricValues
    from whywait.series import Series, series
    from whywait.whatif import whatif

_HOME = {
    "Choice": "whywait.analysis.ranking",
    "Definitions": "whywait._run",
    "MetricValues": "whywait.model.metric_values",
    "Result": "whywait._api",
    "Run": "whywait._run",
    "Series": "whywait.series",
    "analyze": "whywait._analyze",
    "finish_recording": "whywait._record",
    "record": "whywait._record",
    "load": "whywait._load",
    "open": "whywait._run",
    "ArchiveError": "whywait._native",
    "Error": "whywait._native",
    "TraceError": "whywait._native",
    "UsageError": "whywait._native",
}

__all__ = [
    "ArchiveError",
    "Choice",
    "Definitions",
    "Error",
    "MetricValues",
    "Result",
    "Run",
    "Series",
    "TraceError",
    "UsageError",
    "__version__",
    "advise",
    "analyze",
    "finish_recording",
    "load",
    "open",
    "record",
    "series",
    "whatif",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from whywait import _native

        return _native.__version__
    from importlib import import_module

    if name in {"advise", "series", "whatif"}:
        # Modules that can be called: `whywait.whatif(run, [whywait.whatif.Scale(...)])`.
        return import_module(f"whywait.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'whywait' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
