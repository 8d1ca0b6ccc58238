"""Metrics by unique name or display name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from whywait.model.metrics import MetricTree


def metric_name(metrics: MetricTree, text: str, occurs: Callable[[str], bool] | None = None) -> str:
    """Return the unique name of a metric.

    Parameters
    ----------
    metrics
        The metric tree.
    text
        A unique name or a display name ("Late Sender").
    occurs
        Returns whether a metric has a value; of several with the same display name, those with values are preferred.

    Raises
    ------
    whywait.UsageError
        If there is no such metric, or the name is ambiguous.
    """
    if text in metrics:
        return text
    same = metrics.called(text)
    if not same:
        raise _native.UsageError(f"there is no metric {text}{metrics.suggestion(text)}")
    # A display name most likely refers to a wait state.
    for is_meant in (occurs, lambda name: metrics.wait_state(name) is not None):
        if is_meant is not None and len(same) > 1:
            same = [name for name in same if is_meant(name)] or same
    if len(same) > 1:
        raise _native.UsageError(f"several metrics are called {text}: use one of {', '.join(same)}")
    return same[0]
