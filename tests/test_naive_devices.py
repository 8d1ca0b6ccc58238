"""The waiting between hosts and devices is that of a naive second implementation; see tests/test_patterns.py, too."""

from __future__ import annotations

import tempfile

import pytest
import whywait
from hypothesis import given, note, settings

from tests import naive
from tests.compare_reference import differences, report
from tests.device_programs import device_programs
from tests.naive_devices import Devices
from tests.results import DEVICES, SHARED, UNRECORDED, outcome
from tests.test_naive import instances
from tests.tracedsl import trace_from_text


def agree(anchor):
    trace = naive.Trace(anchor)
    devices, program = Devices(trace, naive.analyze(trace)), outcome(anchor)
    rows = differences(devices.table(), program.cells, DEVICES)
    assert all(row.ok for row in rows), "\n" + report(rows)
    assert instances(wait for wait in program.waits if wait.kind in DEVICES) == instances(devices.waits())
    counts = whywait.analyze(anchor, causes=False).gpu().counts
    assert counts["clock_violations"] == devices.clock_violations
    return devices


@settings(max_examples=150)
@given(trace=device_programs())
def test_program_agrees_with_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        agree(trace_from_text(trace, directory))


@pytest.mark.skipif(not (SHARED / "samples" / "mi300").exists(), reason=UNRECORDED)
def test_the_oracle_agrees_on_a_recorded_trace():
    """A synchronization with an event waits for each of two kernels, as long as is known of the trace."""
    (anchor,) = (SHARED / "samples" / "mi300").rglob("traces.otf2")
    waits = [wait for wait in agree(anchor).waits() if wait.kind == "gpu_host_wait"]
    longest = sorted((wait.waiting for wait in waits), reverse=True)[:2]
    assert longest == pytest.approx([4.735376, 1.628328], abs=1e-6)
