"""How a name is shown to a person."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from whywait import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from whywait.model.metrics import MetricTree


def short_name(name: str) -> str:
    """Return a C++ function without its return type, template arguments and parameters; other names as they are."""
    if "(" not in name or name.startswith("!$"):
        return name
    text = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator[call]")
    while (stripped := re.sub(r"<[^<>]*>", "", text)) != text:
        text = stripped
    words = text.partition("(")[0].split()
    return words[-1].replace("operator[call]", "operator()") if words else name


def suggestion(metrics: MetricTree, text: str) -> str:
    """Return which metrics may be meant by a name that none has, as the end of a message; empty if none is close."""
    known = {metric.name.lower(): metric.name for metric in metrics}
    # Of several that are called the same, wait states are what people look for.
    for metric in sorted(metrics, key=lambda metric: metrics.wait_state(metric.name) is None):
        known.setdefault(metric.display_name.lower(), metric.name)
    close = dict.fromkeys(known[name] for name in get_close_matches(text.lower(), known, 3, 0.7))
    return f": did you mean {', '.join(close)}?" if close else ""


def called(metrics: MetricTree, text: str) -> list[str]:
    """Return the metrics that people call so: several can have one name below different parents."""
    return [metric.name for metric in metrics if metric.display_name.lower() == text.strip().lower()]


def metric_name(metrics: MetricTree, text: str, occurs: Callable[[str], bool] | None = None) -> str:
    """Return the unique name of the metric that a person means.

    Parameters
    ----------
    metrics
        The metrics there are.
    text
        A unique name, or the name that people read ("Late Sender").
    occurs
        Says whether a metric has a value: of several that are called the same those are meant.

    Raises
    ------
    whywait.UsageError
        If there is no such metric, or several are called so.
    """
    if text in metrics:
        return text
    same = called(metrics, text)
    if not same:
        raise _native.UsageError(f"there is no metric {text}{suggestion(metrics, text)}")
    # Wait states are what people ask for by such a name.
    for is_meant in (occurs, lambda name: metrics.wait_state(name) is not None):
        if is_meant is not None and len(same) > 1:
            same = [name for name in same if is_meant(name)] or same
    if len(same) > 1:
        raise _native.UsageError(f"several metrics are called {text}: name one of {', '.join(same)}")
    return same[0]
