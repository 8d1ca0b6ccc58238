"""The oracle itself is right: it reproduces Scalasca on every recorded case. The program agrees with the oracle."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given, note, settings

from tests import naive
from tests.compare_reference import DEVIATIONS, differences, report
from tests.programs import programs
from tests.results import UNRECORDED, cases, judged, outcome, scout
from tests.tracedsl import trace_from_text

CASES = cases()


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_reproduces_scalasca(case):
    rows = differences(scout(case), naive.analyze(naive.Trace(case / "archive" / "traces.otf2")).table())
    assert rows
    assert not [row for row in rows if not row.ok and row.metric not in DEVIATIONS], "\n" + report(rows)


def agreeing(trace):
    """Return what the oracle and the program find in a trace, in which all cells and violations are the same."""
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle, program = naive.analyze(naive.Trace(anchor)), outcome(anchor)
    rows = differences(oracle.table(), program.cells)
    assert all(row.ok for row in rows), "\n" + report(rows)
    assert program.facts["clock_violations_p2p"] == oracle.violations_p2p
    assert program.facts["clock_violations_coll"] == oracle.violations_coll
    return oracle, program


@settings(max_examples=150)
@given(trace=programs(partitions=True))
def test_program_agrees_with_oracle(trace):
    oracle, program = agreeing(trace)
    begin, scale = oracle.begin, oracle.resolution

    def seconds(w):
        return w._replace(enter=(w.enter - begin) / scale, leave=(w.leave - begin) / scale, waiting=w.waiting / scale)

    assert instances(judged(program.waits)) == instances(map(seconds, oracle.waits))


def instances(waits):
    """Wait states in an order of their own. Milliseconds are all that the traces have."""
    rows = [(*wait[:4], *(round(time, 6) for time in wait[4:7]), *wait[7:10]) for wait in waits]
    return sorted(rows, key=repr)
