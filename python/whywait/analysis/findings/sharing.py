"""What takes longer while others use the same resource: what the three rules about contention have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

import whywait.mpi as mpi
from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Run

# A smaller share of the CPU time is not worth a sentence.
_LEAST = 0.01
# The most events for which contention is looked for.
_MOST = 1_000_000


def shared(run: Run, resource: str) -> list[dict[str, Any]]:
    """Return the call paths that take longer while others use a resource in the focus, largest excess first.

    Parameters
    ----------
    run
        The run. There are none without events, or if they are more than a million: all messages are matched once more
        for this.
    resource
        ``network``, ``files`` or ``memory``.

    Returns
    -------
    list of dict
        The rows of the native table ``sharing`` with at least 1% of the CPU time, those of all nodes together.
    """
    analysis = run.result.tables.analysis
    if analysis is None or not run.time or run.result.facts["events"] > _MOST:
        return []
    if run.shared is None:
        run.shared = pa.table(mpi.together(analysis.sharing, *run.losses.account.window)).to_pylist()
    sums: dict[int | None, dict[str, Any]] = {}
    for row in run.shared:
        if row["resource"] != resource:
            continue
        of_path = sums.setdefault(row["callpath"], {**row, "excess": 0.0, "samples": 0, "nodes": 0})
        of_path["excess"] += row["excess"]
        of_path["samples"] += row["samples"]
        of_path["nodes"] += 1
    return [row for row in sums.values() if row["excess"] >= _LEAST * run.time]


def evidence(row: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that a sentence rests on."""
    names = ("samples", "nodes", "others_quiet", "others_crowded", "ratio", "r", "excess")
    return {name: row[name] for name in names}


#: What all of them say.
FIGURES = Figures(
    place=("name", "the call path that takes longer"),
    longer=("share", "how much longer it takes with many others than with few: `ratio` - 1 of the table `sharing`"),
    crowded=("name", "how many others there are on average at the third of its instances with the most"),
    quiet=("name", "the same at the third with the fewest"),
)


def slower(row: dict[str, Any], others: str) -> Words:
    """Return how much longer something takes beside how many others, to follow its name."""
    return FIGURES.say(
        f" takes {{longer}} longer beside {{crowded}} {others} than beside {{quiet}}",
        longer=row["ratio"] - 1,
        crowded=f"{row['others_crowded']:.1f}",
        quiet=f"{row['others_quiet']:.1f}",
    )
