"""All oracles together, in the shape of the program's results.

tests/naive.py is that of most wait states, tests/naive_rma.py of those of one-sided communication,
tests/naive_devices.py of those between hosts and devices, and tests/naive_causes.py of the causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests import naive, naive_causes, naive_devices, naive_groups, naive_rma
from tests.results import WaitState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.results import Table


class Truth(NamedTuple):
    """The results of a trace by the definitions."""

    cells: Table
    waits: list[WaitState]
    transfers: list[naive_rma.Transfer]
    violations: tuple[int, int]
    unmatched: tuple[int, int]


def truth(anchor: Path | str, *, causes: bool = False) -> Truth:
    """Analyze an archive with the oracles."""
    trace = naive.Trace(anchor)
    others, one_sided = naive.analyze(trace), naive_rma.analyze(trace)
    naive_groups.add_waits(trace, others)
    devices = naive_devices.Devices(trace, others)
    begin, scale = others.begin, others.resolution

    def times(w: naive.Wait | naive_rma.RmaWait) -> tuple[float, float, float]:
        return (w.enter - begin) / scale, (w.leave - begin) / scale, w.waiting / scale

    cells = others.table() | devices.table()
    for metric, values in one_sided.table().items():
        cells[metric] = {(callpath, rank, 0): value for (callpath, rank), value in values.items()}
    if causes:
        cells |= naive_causes.table(naive_causes.Analysis(naive_causes.read(anchor), "thesis").cells())
    waits = [WaitState(*w[:4], *times(w), *w[7:10], None, None, w.inferred) for w in others.waits]
    for w in one_sided.waits:
        here, cause = (w.metric, w.rank, 0, w.callpath, *times(w)), (w.cause_rank, 0, w.cause_callpath, None)
        waits.append(WaitState(*here, *cause, w.last or None, w.inferred))
    waits += [WaitState(*w[:11]) for w in devices.waits()]
    in_seconds = [
        t._replace(
            start=(t.start - begin) / scale,
            origin=(t.origin - begin) / scale,
            end=None if t.end is None else (t.end - begin) / scale,
        )
        for t in one_sided.transfers
    ]
    violations = others.violations_p2p, others.violations_coll
    return Truth(cells, waits, in_seconds, violations, (others.unmatched_sends, others.unmatched_receives))
