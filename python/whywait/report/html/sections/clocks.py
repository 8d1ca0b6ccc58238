"""How well the clocks of the processes agree, and how they were corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.clocks import KINDS, sentences
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what is violated, by kind and over time, and what each clock is moved by, if anything is violated."""
    clocks = report.result.facts.get("clocks")
    if clocks is None or not clocks["violated"]:
        return
    table = report.result.tables.clock_table
    course, moves, processes = table("clock_course"), table("clock_moves"), table("clock_processes").to_pylist()
    bins = course["bin"].to_numpy()
    over_time = {name: np.bincount(bins, course[name].to_numpy()).astype(int).tolist() for name in ("violated", "left")}
    uncertain = {row["rank"]: row["uncertainty"] for row in processes}
    # All clocks have the same times.
    ranks = moves["rank"].to_numpy()
    times, moved = moves["time"].to_numpy(), moves["moved"].to_numpy()
    shown = [rank for rank in dict.fromkeys(ranks.tolist()) if moved[ranks == rank].any()]
    yield "clocks", blocks.document({
        "sentences": sentences(report.result),
        "left": clocks["left"],
        "kinds": [{**one, "name": KINDS[one["kind"]]} for one in clocks["kinds"] if one["violated"]],
        "over_time": over_time,
        "times": times[ranks == ranks[0]].tolist() if len(ranks) else [],
        "moves": [
            {"rank": rank, "moved": moved[ranks == rank].tolist(), "uncertainty": uncertain.get(rank)} for rank in shown
        ],
        "processes": len(processes),
    })  # fmt: skip
