"""The simulator knows what every wait state waits for: if others have nothing to compute, the wait becomes shorter.

Detection and simulation state separately who waits for whom (rust/core/src/waits, rust/core/src/whatif/arcs). These
tests remind of the second when the first learns something new.
"""

import pytest
import whywait
from whywait.hypotheses import Cpu

from tests.test_patterns import EXAMPLES
from tests.tracedsl import trace_from_text

# Examples whose waits stay, by document and heading, and why.
STAY = {
    "one-sided-pgas: GASPI: a barrier that is asked three times": "a call that a time limit ends lasts as long as that",
    "openmp: Wait at an implicit and at an explicit barrier": "the parallel region itself is no computation",
    "openmp: A critical section": "the critical section itself is no computation",
    "openmp: A lock as old measurement systems record it": "the parallel region itself is no computation",
}
EXAMPLES_WITH_WAITS = [example for example in EXAMPLES if example.values[1].waits and example.id not in STAY]


def duration(sim, location, enter, leave):
    """Return the measured and the simulated duration of a call, seconds."""
    facts = sim.measured.facts
    events = sim.events(location)
    seconds = [round((ticks - facts["origin"]) / facts["resolution"], 9) for ticks in events["measured"].to_pylist()]
    rows = seconds.index(round(enter, 9)), seconds.index(round(leave, 9))
    times = [[events[column][row].as_py() for row in rows] for column in ("measured", "simulated")]
    return [(last - first) / facts["resolution"] for first, last in times]


@pytest.mark.parametrize(("trace", "expected"), EXAMPLES_WITH_WAITS)
def test_a_wait_is_shorter_if_others_have_nothing_to_compute(trace, expected, tmp_path):
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    places = list(zip(result.places.rank, result.places.thread, strict=True))
    for kind, rank, thread, _, enter, leave, *_ in expected.waits:
        # A device waits before its kernel, not in it.
        if kind.startswith("gpu_device"):
            continue
        others = [f"{other}.{number}" for other, number in places if (other, number) != (rank, thread) and other >= 0]
        sim = whywait.whatif(result, [Cpu(1e9, ranks=",".join(others))])
        before, after = duration(sim, places.index((rank, thread)), enter, leave)
        assert after < before or "undecided_protocol" in sim.assumptions["assumption"].to_pylist(), (kind, enter, leave)


def test_every_exception_is_an_example():
    assert STAY.keys() <= {example.id for example in EXAMPLES}
    assert len(EXAMPLES_WITH_WAITS) > 50
