"""What to say about the clocks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.model.clocks import CLOCK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whywait.model.result import ResultData

# What is less than this share of all waiting, or of that on a location, needs no correction.
_OF_ALL, _OF_LOCATION = 0.001, 0.01

# What was done, by the name of the correction.
_DONE = {
    "nodes": "the processes of a node share one clock offset",
    "lines": "each clock has an offset and a drift",
    "clc": "controlled logical clock",
}


def sentences(result: ResultData) -> list[str]:
    """Return what readers of corrected, or contradictory, times must know."""
    clocks = result.facts.get("clocks")
    if clocks is None or not clocks["violated"]:
        return []
    found = []
    if clocks["done"]:
        left = f"{clocks['left']:,} are left" if clocks["left"] else "none is left"
        how = "; ".join(_DONE[step] for step in clocks["done"])
        found.append(
            f"The clocks are corrected ({how}): {clocks['violated']:,} of {clocks['checked']:,} constraints of time "
            f"were violated by up to {_time(clocks['worst'])}, {left}; times moved by up to {_time(clocks['moved'])}. "
            "--clocks measured keeps the times as they were measured."
        )
    else:
        violated = (
            f"{clocks['violated']:,} of {clocks['checked']:,} constraints of time are violated by up to "
            f"{_time(clocks['worst'])}"
        )
        if is_recommended(result):
            found.append(f"{violated}, and waits are wrong by as much: --clocks auto corrects the clocks.")
        else:
            found.append(f"{violated}, which is too little to matter: the clocks need no correction.")
    return found


def is_recommended(result: ResultData) -> bool:
    """Return whether the clocks should be corrected: what they violate is not small compared with the waiting."""
    clocks = result.facts.get("clocks")
    if clocks is None or clocks["verdict"] in ("none", "noise") or clocks["done"]:
        return False
    waiting = [metric.name for metric in result.profile.metrics.waiting]
    if clocks["sum"] > _OF_ALL * sum(result.profile.total(name) for name in waiting):
        return True
    of_location = np.zeros(result.profile.locations)
    for name in waiting:
        of_location += result.profile.by_location(name)
    return any(
        row["worst"] > _OF_LOCATION * of_location[row["worst_location"]]
        for row in result.tables.clock_table("clock_violations").to_pylist()
    )


def clocks_differ(results: Iterable[ResultData]) -> str | None:
    """Return a warning if the clocks of results were corrected differently, which makes times differ."""
    results = list(results)
    asked = {tuple(getattr(result.tables.options, name) for name in CLOCK_OPTIONS) for result in results}
    if len(asked) < 2 or not any("clocks" in result.facts for result in results):
        return None
    done = {", ".join((result.facts.get("clocks") or {}).get("done", ())) or "not corrected" for result in results}
    how = f" ({'; '.join(sorted(done))})" if len(done) > 1 else ""
    return f"The clocks of these runs are not corrected in the same way{how}: analyze all with the same --clocks."


def census_lines(clocks: Mapping[str, Any]) -> list[str]:
    """Return the census as lines of text: what is violated, by kind, and what corrects it."""
    if not clocks["violated"]:
        return [f"Clocks: none of {clocks['checked']:,} constraints violated"]
    counts = f"{clocks['violated']:,} of {clocks['checked']:,} constraints violated"
    lines = [f"Clocks: {counts}, up to {_time(clocks['worst'])} ({_VERDICTS[clocks['verdict']]})"]
    lines += [
        f"   {KINDS[one['kind']]:<18}{one['violated']:>7,} of {one['checked']:<9,}{_time(one['worst']):>10}"
        for one in clocks["kinds"]
        if one["violated"]
    ]
    nodes, processes, offsets = clocks["contradicting"]
    for step in clocks["steps"][1:]:
        what = (
            f"{step['violated']:,} {'is' if step['violated'] == 1 else 'are'} left"
            if step["violated"]
            else "none is left"
        )
        kept = "" if step["kept"] else ": not applied"
        if step["name"] == "nodes":
            where = "one node" if nodes == 1 else f"{nodes:,} nodes"
            lines.append(f"   {processes:,} processes on {where} use {offsets:,} different clock offsets")
        lines.append(f"   corrected by {step['name']}: {what}{kept}")
    if clocks["done"]:
        lines.append(f"   {clocks['moved_processes']:,} processes moved by up to {_time(clocks['moved'])}")
    if clocks["left"] and clocks["verdict"] != "noise":
        lines.append("   --clocks auto corrects what is left")
    return lines


#: What kinds of constraints are called.
KINDS = {
    "p2p": "messages",
    "ssend": "synchronous sends",
    "barrier": "barriers",
    "n_to_n": "N-to-N",
    "one_to_n": "1-to-N",
    "n_to_one": "N-to-1",
    "prefix": "prefix operations",
    "nonblocking": "non-blocking",
    "window": "windows",
    "fence": "fences",
    "post": "posts",
    "complete": "completed epochs",
    "lock": "locks",
    "notify": "notifications",
    "shmem": "PGAS collectives",
    "fork": "forks",
    "join": "joins",
    "thread_barrier": "thread barriers",
    "thread_lock": "thread locks",
    "device": "devices",
}
_VERDICTS = {
    "noise": "less than clocks resolve",
    "measured offsets": "the measured offsets of processes on one node contradict each other",
    "differ": "the clocks of the processes differ",
    "offset": "the clocks of the processes differ by constant offsets",
    "drift": "the clocks of the processes drift apart",
    "not linear": "the clocks of the processes drift unevenly",
    "impossible": "no times satisfy all constraints: events were matched wrongly",
}


def _time(seconds: float) -> str:
    """Return a length of time with a unit that fits it."""
    unit, name = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
    return f"{seconds / unit:.3g} {name}"


_UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
