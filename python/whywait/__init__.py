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
    from whywait._record import finish_recording, record
    from whywait.analysis.ranking import Choice
    from whywait.analysis.runs.threshold import Threshold
    from whywait.api.advise import Advice, AdviceList, advise
    from whywait.api.analyze import analyze
    from whywait.api.compare import Comparison, compare
    from whywait.api.correct import correct
    from whywait.api.hang import hang
    from whywait.api.load import load
    from whywait.api.result import Result
    from whywait.api.run import Definitions, Run, open  # noqa: A004
    from whywait.api.series import Series, find_runs, series
    from whywait.api.whatif import Simulation, fit_network, whatif
    from whywait.model.metric_values import MetricValues

# Where the names come from.
_MODULES = {
    "whywait._record": "finish_recording record",
    "whywait._native": "ArchiveError Error TraceError UsageError __version__",
    "whywait.analysis.ranking": "Choice",
    "whywait.analysis.runs.threshold": "Threshold",
    "whywait.api.advise": "Advice AdviceList advise",
    "whywait.api.analyze": "analyze",
    "whywait.api.compare": "Comparison compare",
    "whywait.api.correct": "correct",
    "whywait.api.hang": "hang",
    "whywait.api.load": "load",
    "whywait.api.result": "Result",
    "whywait.api.run": "Definitions Run open",
    "whywait.api.series": "Series find_runs series",
    "whywait.api.whatif": "Simulation fit_network whatif",
    "whywait.model.metric_values": "MetricValues",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

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
    "correct",
    "find_runs",
    "finish_recording",
    "fit_network",
    "hang",
    "hypotheses",
    "load",
    "open",
    "record",
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
