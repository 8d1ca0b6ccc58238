"""The oracle of root causes and critical path is right: it reproduces Scalasca in every cell of all recorded cases.

Where Scalasca has no answer (the definitions themselves, one-sided communication) it keeps the invariants.
"""

from __future__ import annotations

import pytest

from tests.naive_causes import Analysis, read, table
from tests.results import UNRECORDED, cases, scout
from tests.test_patterns import NANOSECOND, examples
from tests.tracedsl import trace_from_text
from tests.truths import costs, invariants

CASES = cases()
# Only the order of summation differs.
TOLERANCE = 1e-12


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_reproduces_scalasca(case):
    ours = costs(case / "archive" / "traces.otf2", "scalasca").cells
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
    assert not costs(case / "archive" / "traces.otf2", "thesis").broken


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
OTHERS = ("mpi_rma_late_complete", "_last_call", "_away", "_served")
OURS = (*COMPLETE, "critical_", "non_critical_", "mpi_wait_", "mpi_early", "mpi_barrier_wait", "mpi_finalize_wait")
