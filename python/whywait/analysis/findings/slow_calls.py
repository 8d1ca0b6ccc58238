"""Calls take longer than others of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.findings.words import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.analysis.losses import Bearer

NAME = "slow_calls"
TITLE = "Slow calls"
DOCUMENT = """\
Calls of a library take longer than the fastest 5% of their kind, and the trace does not show why. Look at the
distribution of their times, repeat the run with one rank per core, and record counters of the network. The loss
is this excess, and the waiting that library calls pass on.
"""

# A smaller part of the loss than this is not named beside the largest.
_SHARE = 0.1


def slow_loss(bearers: list[Bearer]) -> float:
    """Return what slow calls cost: their excess, the runtime of threads, and the waits that they pass on."""
    needed = ("transfer.needed", "library.needed")
    spent = sum(time for bearer in bearers for row, time in bearer.spent.items() if row not in needed)
    return spent + sum(bearer.waiting + bearer.idle for bearer in bearers)


def passed_on(bearers: list[Bearer]) -> float:
    """Return the waiting that slow calls pass on, and the threads that are idle because of them."""
    return sum(bearer.waiting + bearer.idle for bearer in bearers)


def take_slow(bearers: list[Bearer]) -> None:
    """Take the excess of calls as explained; what they need remains."""
    for bearer in bearers:
        needed = {row: time for row, time in bearer.spent.items() if row.endswith(".needed")}
        bearer.spent, bearer.of_classes, bearer.idle = needed, {}, 0.0
        bearer.costs = np.zeros_like(bearer.costs)


def slowest_kind(run: Run) -> dict[str, object] | None:
    """Return the kind of calls with the largest excess, from the table `network`."""
    network = run.result.tables.network
    if not network.num_rows:
        return None
    row = int(np.argmax(network["excess"].to_numpy()))
    return dict(network.slice(row, 1).to_pylist()[0])


def detect(run: Run) -> Iterator[Finding]:
    """Yield the excess of all calls, with the kind that has most of it."""
    bearers = run.slow()
    loss = slow_loss(bearers)
    if loss <= 0:
        return
    calls = int(pc.sum(run.losses.account.cells["calls"]).as_py() or 0)
    kind = slowest_kind(run)
    excess = sum(time for row, time in run.losses.account.times.items() if row.endswith(".excess"))
    waiting = passed_on(bearers)
    runtime = sum(time for bearer in bearers for row, time in bearer.spent.items() if row.startswith("threads"))
    evidence: dict[str, object] = {"excess": excess, "waiting": waiting, "runtime": runtime}
    parts = []
    if kind is not None and excess:
        share = percent(float(str(kind["excess"])) / excess)
        longer = f"take {seconds(excess)} longer than the fastest 5% of their kind ({share} of it in {kind['region']})"
        parts.append((excess, f"library calls {longer}"))
        evidence["kind"] = kind
    parts.append((runtime, f"the runtime of threads takes {seconds(runtime)}"))
    parts.append((waiting, f"others wait {seconds(waiting)} for library calls"))
    # The largest comes first, and what is small beside it is not worth a word.
    parts.sort(key=lambda part: -part[0])
    text = " and ".join(words for time, words in parts if time >= _SHARE * parts[0][0])
    sentence = f"{text[0].upper()}{text[1:]}; the trace does not show why."
    yield run.finding(
        NAME,
        sentence,
        "Look at the distribution of their times, and repeat the run with one rank or thread per core.",
        loss,
        instances=calls,
        evidence=evidence,
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    take_slow(bearers)


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
