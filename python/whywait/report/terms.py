"""What the words of the first screen mean."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from whywait.analysis.account import account, groups, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings import Findings
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line

_GENERAL = {
    "CPU time": "The time of all threads together: eight ranks that run for a second have 8 s of it.",
    "Focus": "The part of the run that all shares refer to; by default without start-up and shutdown.",
    "Lost": "CPU time that is not computation. The losses of findings are parts of it.",
    "Critical path": "The sequence of work that decides how long the run takes. It leads from the end of the run back, "
    "and at each wait to whoever was waited for. Only less work on it makes the run shorter.",
    "Excess": "What a call takes beyond the fastest 5% of its kind: the same function, size, and number of ranks.",
}
_SAVES = "By how much the run becomes shorter if something changes, by simulation."
# Rows whose description needs another row.
_ROWS = {
    "transfer.needed": "What calls that transfer data take if they are as fast as the fastest 5% of their kind.",
    "transfer.excess": "What calls that transfer data take beyond the fastest 5% of their kind, without waiting.",
    "library.excess": "What other library calls take beyond the fastest 5% of their kind.",
}
#: What the changes mean that findings propose, by the word for each.
CHANGES = {
    "balance": "All ranks take the mean of their times for it: the same work, evenly distributed.",
    "balance threads": "All threads of a process take the mean of their times for it.",
    "without noise": "It always takes its median.",
    "as at first": "It always takes as long as in the first tenth of the iterations.",
    "as elsewhere": "The slow ranks take as long for it as the others.",
    "trim": "Calls take no longer than the fastest 5% of their kind.",
    "eager": "Messages up to this size are sent without waiting for their receiver.",
    "progress": "One-sided operations complete without a call of their target.",
    "cut": "It is left out.",
    "no lock": "It is left out: a bound of what the lock costs.",
    "ideal network": "Messages take no time: a bound of what a faster network saves.",
    "a quarter faster": "It takes three quarters of its time.",
    "twice as fast": "It takes half of its time.",
    "no time": "It takes no time: a bound.",
    "half latency": "The network that fits this run, with half its latency.",
    "twice bandwidth": "The network that fits this run, with twice its bandwidth.",
    "overlapped": "Copies take place while kernels run: a bound.",
    "no fill": "The pipeline neither fills nor drains: a bound.",
    "at once": "The devices work at the same time: a bound.",
    "together": "The changes of several findings at the same time.",
}


# The smallest share of a row that is shown.
_LEAST = 0.01


def terms(result: ResultData, found: Findings) -> Iterator[tuple[str, str]]:
    """Yield the words of the first screen, each with what it means."""
    yield from _GENERAL.items()
    where = account(result)
    for group in where.of_groups:
        inside = [
            row for row, time in where.times.items() if rows()[row].group == group and time >= _LEAST * where.time > 0
        ]
        if not inside:
            continue
        yield groups()[group].label, groups()[group].description
        for row in inside:
            if rows()[row].label != groups()[group].label:
                yield rows()[row].label, of_row(row)
    labels = [price.label for one in found.shown for price in one.prices if price.saved is not None]
    if labels:
        yield "Saves", _SAVES
    yield from ((label, CHANGES[label]) for label in dict.fromkeys(labels) if label in CHANGES)


def of_row(name: str) -> str:
    """Return what a row of the account means."""
    return _ROWS.get(name, rows()[name].description)


def term_lines(result: ResultData, found: Findings, width: int) -> Iterator[Line]:
    """Yield the words of the first screen, each with what it means, below an empty line."""
    yield []
    yield [("Terms", "bold")]
    for name, text in terms(result, found):
        lines = textwrap.wrap(f"{name}: {text}", width, initial_indent="   ", subsequent_indent="     ")
        yield from ([(line, "dim")] for line in lines)
