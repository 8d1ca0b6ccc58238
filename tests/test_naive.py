"""The oracle itself is right: it reproduces Scalasca on every recorded case. The program agrees with the oracle."""

from __future__ import annotations

import pytest

from tests import naive
from tests.compare_reference import DEVIATIONS, differences, report
from tests.results import SHARED, cases, scout

CASES = cases()


@pytest.mark.skipif(not CASES, reason=f"no recorded cases: {SHARED} is not there")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_reproduces_scalasca(case):
    rows = differences(scout(case), naive.analyze(case / "archive" / "traces.otf2").table())
    assert rows
    assert not [row for row in rows if not row.ok and row.metric not in DEVIATIONS], "\n" + report(rows)
