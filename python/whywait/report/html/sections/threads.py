"""The locks and tasks that threads wait for, and their loops; only while the events are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.threads import summary
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report

# Number of locks, constructs and regions in the card.
_SHOWN = 6


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the locks that threads wait for longest, the largest task constructs, their regions, and uneven loops."""
    found = summary(report.result)
    locks = [row for row in found["locks"] if row["contended"]]
    loops = [row for row in found["loops"] if row["loss"] > 0]
    if not locks and not found["tasks"] and not loops:
        return
    lists = found | {"locks": locks, "loops": loops}
    yield (
        "threads",
        blocks.document(
            {
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
