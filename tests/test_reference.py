"""The program's results are Scalasca's, in every cell of every recorded case, in memory and in the written report."""

from __future__ import annotations

from functools import cache

import pytest

from tests.compare_reference import DEVIATIONS, differences, report
from tests.results import FAMILIES, SHARED, cases, cube, outcome, scout

CASES = cases()

pytestmark = [pytest.mark.skipif(not CASES, reason=f"no recorded cases: {SHARED} is not there")]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def analysed(case):
    return outcome(case / "archive" / "traces.otf2")


@each_case
def test_equals_scalasca(case):
    rows = differences(scout(case), analysed(case).cells)
    assert rows
    assert not [row for row in rows if not row.ok and row.metric not in DEVIATIONS], "\n" + report(rows)


@each_case
def test_threads_and_window_do_not_change_the_result(case):
    """Time is counted in whole ticks, so any number of threads gives the same bits."""
    again = outcome(case / "archive" / "traces.otf2", threads=1)
    assert again.cells == analysed(case).cells
    assert again.waits == analysed(case).waits


@each_case
def test_wait_states_add_up_to_the_severities(case):
    """The instances are the severities, one by one."""
    cells = analysed(case).cells
    totals: dict[str, dict] = {}
    for wait in analysed(case).waits:
        by_place = totals.setdefault(wait.kind, {})
        place = wait.callpath, wait.rank, wait.thread
        by_place[place] = by_place.get(place, 0) + wait.waiting
    assert totals.keys() <= cells.keys()
    for row in differences(cells, totals, tuple(totals)):
        assert row.ok, report([row])


@each_case
def test_report_holds_the_same_numbers(case, tmp_path):
    import whywait

    whywait.analyze(whywait.open(case / "archive" / "traces.otf2")).write_cube(tmp_path / "report.cubex")
    rows = differences(analysed(case).cells, cube(tmp_path / "report.cubex", FAMILIES))
    assert rows
    assert all(row.ok for row in rows), "\n" + report(rows)
