"""The oracle of root causes and the critical path is right: it reproduces Scalasca in every cell of the recorded cases."""

from __future__ import annotations

import pytest

from tests.naive_causes import Analysis, read, table
from tests.results import SHARED, cases, scout

CASES = cases()
# Only the order of summation differs.
TOLERANCE = 1e-12


@pytest.mark.skipif(not CASES, reason=f"no recorded cases: {SHARED} is not there")
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
