"""What threads lose, the locks and tasks that they wait for, and their loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.efficiency.efficiency import efficiencies
from whywait.analysis.efficiency.hybrid import LOSSES
from whywait.analysis.threads import summary
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report

# Number of locks, constructs and regions in the card.
_SHOWN = 6


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield losses in parallel regions, the locks waited for longest, the largest task constructs, and uneven loops.

    But for the losses, these are known only while the events are.
    """
    losses = _losses(report)
    found = summary(report.result)
    locks = [row for row in found["locks"] if row["contended"]]
    loops = [row for row in found["loops"] if row["loss"] > 0]
    if not losses and not locks and not found["tasks"] and not loops:
        return
    lists = found | {"locks": locks, "loops": loops}
    yield (
        "threads",
        blocks.document(
            {
                "losses": losses,
                "waiting": sum(row["waiting"] for row in locks),
                "all_locks": len(found["locks"]),
                "count": sum(row["tasks"] for row in found["tasks"]),
                "execution": sum(row["execution"] for row in found["tasks"]),
                "ranks": len({row["rank"] for rows in lists.values() for row in rows}),
                **{name: rows[:_SHOWN] for name, rows in lists.items()},
                **{f"more_{name}": max(0, len(rows) - _SHOWN) for name, rows in lists.items()},
            }
        ),
    )


def _losses(report: Report) -> list[dict[str, Any]]:
    """Return what threads lose in parallel regions of the focus, and why: seconds, and shares of the processor time."""
    focus = report.summary["focus"]
    found = efficiencies(report.result, focus["callpath"], window=focus["window"])
    names = {name for name, *_ in LOSSES}
    return [
        {"name": one.display_name, "value": one.value * one.inputs["whole"], "share": one.value}
        for one in found.hybrid
        if one.name in names and one.value and one.value > 0
    ]
