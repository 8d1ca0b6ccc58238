"""The oracle of root causes and critical path is right: it reproduces Scalasca in every cell of all recorded cases.

Where Scalasca has no answer (the definitions themselves, one-sided communication) it keeps the invariants.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.naive_causes import Analysis, read, table
from tests.results import UNRECORDED, cases, scout
from tests.test_patterns import NANOSECOND, examples
from tests.tracedsl import trace_from_text

CASES = cases()
# Only the order of summation differs.
TOLERANCE = 1e-12


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_reproduces_scalasca(case):
    ours = table(Analysis(read(case / "archive" / "traces.otf2"), "scalasca").cells())
    theirs = table({(metric, *cell): v for metric, cells in scout(case).items() for cell, v in cells.items()})
    assert theirs
    off = {
        (metric, cell): (ours.get(metric, {}).get(cell, 0), theirs.get(metric, {}).get(cell, 0))
        for metric in ours.keys() | theirs.keys()
        for cell in ours.get(metric, {}).keys() | theirs.get(metric, {}).keys()
    }
    assert not {cell: pair for cell, pair in off.items() if pair[0] != pytest.approx(pair[1], rel=0, abs=TOLERANCE)}


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_definitions_conserve_the_waiting_time(case):
    analysis = Analysis(read(case / "archive" / "traces.otf2"), "thesis")
    invariants(analysis)


WORKED = list(examples("**/causes-*.md"))
assert WORKED


@pytest.mark.parametrize(("trace", "expected"), WORKED)
def test_the_oracle_matches_hand_worked_traces(trace, expected, tmp_path):
    analysis = Analysis(read(trace_from_text(trace, tmp_path)), "thesis")
    found = {}
    for (metric, *cell), value in analysis.cells().items():
        found.setdefault(metric, {})[tuple(cell)] = value
    # Costs and waits must be complete, of the rest those that are named.
    ours = {m for m in expected.cells if m.startswith(OURS) and not m.endswith(OTHERS)}
    for metric in {m for m in found if m.startswith(COMPLETE)} | ours:
        assert found.get(metric, {}) == pytest.approx(expected.cells.get(metric, {}), rel=0, abs=NANOSECOND), metric
    invariants(analysis)


COMPLETE = ("delay_", "interval_delay_", "mpi_rma_", "mpi_late")
# A part of another wait, and upper bounds: nobody is charged for them, and the oracle of the waits checks them.
OTHERS = ("mpi_rma_late_complete", "_last_call")
OURS = (*COMPLETE, "critical_", "non_critical_", "mpi_wait_", "mpi_early", "mpi_barrier_wait", "mpi_finalize_wait")


def invariants(analysis):
    """What the definitions promise for every trace with good clocks, in ticks."""
    values = analysis.values
    costs = {cell: v for cell, v in values.items() if cell[0].startswith(("delay_", "interval_delay_"))}
    waits = sum(wait for x in analysis.instances for _, wait in x.waiters)
    idle = sum(x.idle for x in analysis.instances if x.cls == "ompidle")
    assert sum(costs.values()) == pytest.approx(waits + idle, rel=1e-12)
    assert all(v > 0 for v in costs.values())

    # The path is as long as the run, so it has neither gaps nor waits.
    (first, begin, _), (_, _, end) = analysis.path[-1], analysis.path[0]
    begins = begin.event.call.E if begin else first.events[0].t
    ends = end.event.call.E if end.event.call else end.event.t
    length = sum(v for (metric, *_), v in values.items() if metric == "critical_path")
    assert length == ends - begins
    assert all(v >= 0 for (metric, *_), v in values.items() if metric == "critical_path")

    waiting = defaultdict(int)
    for x in analysis.instances:
        for point, wait in x.waiters:
            assert 0 <= wait <= point.wait <= point.event.call.L - point.event.call.E
            waiting[f"mpi_wait_indirect_{x.cls}", point.path, point.loc.rank, point.loc.thread] += wait
    for cell, v in values.items():
        if cell[0].startswith("mpi_wait_indirect_"):
            assert 0 < v <= waiting[cell] * (1 + 1e-12)
