"""The simulator knows what every wait state waits for: if the cause has nothing to compute, the wait becomes shorter.

Detection and simulation state separately who waits for whom (rust/core/src/waits, rust/core/src/whatif/arcs). These tests
remind of the second when the first learns something new.
"""

import pytest
import whywait
from whywait.hypotheses import Cpu
from whywait.model.schema import patterns

from tests.test_patterns import EXAMPLES
from tests.tracedsl import trace_from_text

EXAMPLES_WITH_WAITS = [example for example in EXAMPLES if example.values[1].waits]


def duration(sim, location, enter, leave):
    """Return the measured and the simulated duration of a call, seconds."""
    facts = sim.measured.facts
    events = sim.events(location)
    ticks = {round((ticks - facts["origin"]) / facts["resolution"], 9): row for row, ticks in enumerate(events["measured"].to_pylist())}
    rows = ticks[round(enter, 9)], ticks[round(leave, 9)]
    times = [[events[column][row].as_py() for row in rows] for column in ("measured", "simulated")]
    return [(last - first) / facts["resolution"] for first, last in times]


@pytest.mark.parametrize(("trace", "expected"), EXAMPLES_WITH_WAITS)
def test_a_wait_is_shorter_if_its_cause_has_nothing_to_compute(trace, expected, tmp_path):
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    for kind, rank, thread, _, enter, leave, waiting, cause_rank, cause_thread, _ in expected.waits:
        sim = whywait.whatif(result, [Cpu(1e9, ranks=f"{cause_rank}.{cause_thread}" if cause_thread else f"{cause_rank}")])
        places = result.places
        [location] = [i for i in range(len(places)) if (places.rank[i], places.thread[i]) == (rank, thread)]
        before, after = duration(sim, location, enter, leave)
        assert after < before, (kind, enter, leave, waiting)
    assert patterns()
