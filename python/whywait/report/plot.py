"""The account of all CPU time as a picture of Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.account import account, groups, rows
from whywait.analysis.findings.words import percent, seconds
from whywait.report.html.shades import of_row

if TYPE_CHECKING:
    from whywait.model.result import ResultData

# The color of each group, as in the report; its rows have shades of it.
_COLORS = {
    "computation": "#41699b", "waiting": "#c8451a", "transfer": "#7c95ad", "threads": "#8a6ca8", "io": "#a8862f",
    "devices": "#4d8a6a", "idle": "#b9b4a7", "other": "#8d8d8d",
}  # fmt: skip
_LIGHTER = 0.18
# Smaller parts have no room for words.
_WORDS = 0.15


def plot_account(result: ResultData, ax: Any, focus: str | None) -> Any:
    """Draw the account of a result on some axes, or new ones; see `whywait.Result.plot`."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib.colors import to_rgb
    except ImportError as error:
        raise _native.UsageError("a plot needs Matplotlib: pip install matplotlib") from error
    found = account(result, focus)
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
    shown = [(name, time) for name, time in found.of_groups.items() if time > 0]
    shown.sort(key=lambda item: item[1])
    for place, (group, _) in enumerate(shown):
        left = 0.0
        of_group = [(name, time) for name, time in found.times.items() if rows()[name].group == group and time > 0]
        for name, time in sorted(of_group, key=lambda item: -item[1]):
            shade = of_row(name)
            color = [value + (1 - value) * _LIGHTER * shade for value in to_rgb(_COLORS[group])]
            ax.barh(place, time, left=left, color=color, edgecolor="white", label=rows()[name].label)
            if time >= _WORDS * found.time:
                at = (left + time / 2, place, rows()[name].label)
                ax.text(*at, ha="center", va="center", fontsize="small", color="black" if shade else "white")
            left += time
        ax.text(left, place, f" {seconds(left)}, {percent(left / found.time)}", va="center", fontsize="small")
    ax.set_yticks(range(len(shown)), [groups()[name].label for name, _ in shown])
    ax.set_xlabel("CPU time (s)")
    ax.set_title(f"Where the time went: {seconds(found.time)} of CPU time", loc="left")
    ax.margins(x=0.12)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
