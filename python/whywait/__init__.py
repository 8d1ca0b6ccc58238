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
    from whywait import hypotheses
    from whywait._native import ArchiveError, Error, TraceError, UsageError
    from whywait.analysis.ranking import Choice
    from whywait.analysis.threshold import Threshold
    from whywait.api.advise import Advice, AdviceList, advise
    from whywait.api.analyze import analyze
    from whywait.api.compare import Comparison, compare
    from whywait.api.load import load
    from whywait.api.result import Result
    from whywait.api.run import Definitions, Run, open  # noqa: A004
    from whywait.api.series import Series, find_runs, series
    from whywait.api.whatif import Simulation, fit_network, whatif
    from whywait.model.metric_values import MetricValues

# Where each name comes from.
_HOME = {
    "Advice": "whywait.api.advise",
    "AdviceList": "whywait.api.advise",
    "ArchiveError": "whywait._native",
    "Choice": "whywait.analysis.ranking",
    "Comparison": "whywait.api.compare",
    "Definitions": "whywait.api.run",
    "Error": "whywait._native",
    "MetricValues": "whywait.model.metric_values",
    "Result": "whywait.api.result",
    "Run": "whywait.api.run",
    "Series": "whywait.api.series",
    "Simulation": "whywait.api.whatif",
    "Threshold": "whywait.analysis.threshold",
    "TraceError": "whywait._native",
    "UsageError": "whywait._native",
    "__version__": "whywait._native",
    "advise": "whywait.api.advise",
    "analyze": "whywait.api.analyze",
    "compare": "whywait.api.compare",
    "find_runs": "whywait.api.series",
    "fit_network": "whywait.api.whatif",
    "load": "whywait.api.load",
    "open": "whywait.api.run",
    "series": "whywait.api.series",
    "whatif": "whywait.api.whatif",
}

__all__ = [
    "Advice",
    "AdviceList",
    "ArchiveError",
    "Choice",
    "Comparison",
    "Definitions",
    "Error",
    "MetricValues",
    "Result",
    "Run",
    "Series",
    "Simulation",
    "Threshold",
    "TraceError",
    "UsageError",
    "__version__",
    "advise",
    "analyze",
    "compare",
    "find_runs",
    "fit_network",
    "hypotheses",
    "load",
    "open",
    "series",
    "whatif",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "hypotheses":
        return import_module("whywait.hypotheses")
    if name not in _HOME:
        raise AttributeError(f"module 'whywait' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
