"""How well the clocks of the processes agree, and how they were corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.clocks import KINDS, sentences
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from whywait.report.html.sections import Report


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what is violated, by kind and over time, and what each clock is moved by, if anything is violated."""
    clocks = report.result.facts.get("clocks")
    if clocks is None or not clocks["violated"]:
        return
    table = report.result.tables.clock_table
    course, moves, processes = table("clock_course"), table("clock_moves"), table("clock_processes").to_pylist()
    devices = {row["location"]: row for row in table("clock_domains").to_pylist() if row["device"]}
    bins = course["bin"].to_numpy()
    over_time = {name: np.bincount(bins, course[name].to_numpy()).astype(int).tolist() for name in ("violated", "left")}
    uncertain = {row["rank"]: row["uncertainty"] for row in processes}
    names = report.result.tables.locations["name"]
    # All clocks have the same times.
    clock, times, moved = (moves[name].to_numpy() for name in ("location", "time", "moved"))
    rank = dict(zip(clock.tolist(), moves["rank"].to_pylist(), strict=True))

    def one(location: int) -> dict[str, Any]:
        device = devices.get(location)
        return {
            "name": f"device of {names[location]}" if device else f"rank {rank[location]}",
            "moved": moved[clock == location].tolist(),
            "uncertainty": device["uncertainty"] if device else uncertain.get(rank[location]),
        }

    yield "clocks", blocks.document({
        "sentences": sentences(report.result),
        "left": clocks["left"],
        "kinds": [{**one, "name": KINDS[one["kind"]]} for one in clocks["kinds"] if one["violated"]],
        "over_time": over_time,
        "times": times[clock == clock[0]].tolist() if len(clock) else [],
        "moves": [one(location) for location in rank if moved[clock == location].any()],
    })  # fmt: skip
