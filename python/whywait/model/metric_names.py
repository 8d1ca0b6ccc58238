"""Metrics by the names that people give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from whywait.model.metrics import MetricTree


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
    same = metrics.called(text)
    if not same:
        raise _native.UsageError(f"there is no metric {text}{metrics.suggestion(text)}")
    # Wait states are what people ask for by such a name.
    for is_meant in (occurs, lambda name: metrics.wait_state(name) is not None):
        if is_meant is not None and len(same) > 1:
            same = [name for name in same if is_meant(name)] or same
    if len(same) > 1:
        raise _native.UsageError(f"several metrics are called {text}: use one of {', '.join(same)}")
    return same[0]
