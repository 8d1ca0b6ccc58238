"""How a name is shown to a person."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from whywait import _native

if TYPE_CHECKING:
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
    display = {metric.display_name.lower(): metric.name for metric in metrics}
    known = {**{name.lower(): name for name in (metric.name for metric in metrics)}, **display}
    close = dict.fromkeys(known[name] for name in get_close_matches(text.lower(), known, 3, 0.7))
    return f": did you mean {', '.join(close)}?" if close else ""


def metric_name(metrics: MetricTree, text: str) -> str:
    """Return the unique name of the metric that a person means.

    Parameters
    ----------
    metrics
        The metrics there are.
    text
        A unique name, or the name that people read ("Late Sender").

    Raises
    ------
    whywait.UsageError
        If there is no such metric, or several are called so.
    """
    if text in metrics:
        return text
    same = [metric.name for metric in metrics if metric.display_name.lower() == text.strip().lower()]
    if len(same) > 1:
        # Wait states are what people ask for by that name.
        waits = [name for name in same if metrics.wait_state(name) is not None]
        same = waits if len(waits) == 1 else same
    if len(same) == 1:
        return same[0]
    if same:
        raise _native.UsageError(f"several metrics are called {text}: name one of {', '.join(same)}")
    raise _native.UsageError(f"there is no metric {text}{suggestion(metrics, text)}")
