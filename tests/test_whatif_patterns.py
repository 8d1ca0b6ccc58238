"""The simulator knows what every wait state waits for: if others have nothing to compute, the wait becomes shorter.

Detection and simulation take who waits for whom from the same place (rust/core/src/matching), but each says what
follows from it (rust/core/src/waits, rust/core/src/whatif/arcs). These tests remind of one when the other learns
something new.
"""

import numpy as np
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
# Examples in which calls get shorter by more than they wait, and why.
SHORTER = {
    "barrier: The stamps of the records count": "a wait begins with its record, the simulated call before",
    "causes-delays: Threads: between two teams, a worker is its master": "a thread without work is in no call",
    "device-collectives: The wait is hidden by a kernel on another stream": "what is hidden is no wait",
    "gpu: Two streams share a device": "a kernel that waits for its device is queued, which is no wait of a call",
    "late-receiver: Calls that cannot wait for a receiver": "a test is polled until it succeeds",
    "late-sender: MPI_Test and its kind never wait": "a test is polled until it succeeds",
    "nonblocking-collectives: A test never waits": "a test is polled until it succeeds",
    "openmp: Teams of different sizes": "a thread without work is in no call",
    "one-sided-served: MPI_Win_complete": "progress without evidence is simulated, and not booked",
    "one-sided-shmem: Locks: a queue, a test, and one address on all PEs": "a test is polled until it succeeds",
    "one-sided-shmem: A test that got the lock, as the thesis records it": "a test is polled until it succeeds",
}


def duration(sim, location, enter, leave):
    """Return the measured and the simulated duration of a call, seconds."""
    facts = sim.measured.facts
    events = sim.events(location)
    seconds = [round((ticks - facts["origin"]) / facts["resolution"], 9) for ticks in events["measured"].to_pylist()]
    rows = seconds.index(round(enter, 9)), seconds.index(round(leave, 9))
    times = [[events[column][row].as_py() for row in rows] for column in ("measured", "simulated")]
    return [(last - first) / facts["resolution"] for first, last in times]


@pytest.mark.parametrize(("trace", "expected"), EXAMPLES)
def test_calls_get_shorter_by_what_they_wait_if_others_have_nothing_to_compute(trace, expected, tmp_path, request):
    """Each wait gets shorter, and the calls of a location by no more than all of its waits."""
    example = request.node.callspec.id
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    places = list(zip(result.places.rank.tolist(), result.places.thread.tolist(), strict=True))
    waits = result.wait_states().select(["rank", "thread", "waiting"]).to_pylist()
    for location, place in enumerate(places):
        others = [f"{rank}.{number}" for rank, number in places if (rank, number) != place and rank >= 0]
        if place[0] < 0 or not others:
            continue
        try:
            sim = whywait.whatif(result, [Cpu(1e9, ranks=",".join(others))])
        except whywait.UsageError:
            # The others have nothing to compute.
            continue
        for kind, rank, thread, _, enter, leave, *_ in expected.waits:
            # A device waits before its kernel, not in it.
            if (rank, thread) != place or kind.startswith("gpu_device") or example in STAY:
                continue
            before, after = duration(sim, location, enter, leave)
            assert after < before or "undecided_protocol" in sim.assumptions["assumption"].to_pylist(), (kind, enter)
        events = sim.events(location)
        measured, simulated = (events[column].to_numpy() for column in ("measured", "simulated"))
        shorter = (np.ptp(measured) - np.ptp(simulated)) / sim.measured.facts["resolution"] if len(measured) else 0
        waited = sum(wait["waiting"] for wait in waits if (wait["rank"], wait["thread"]) == place)
        assert shorter <= waited + 1e-9 or example in SHORTER, place


def test_every_exception_is_an_example():
    assert (STAY | SHORTER).keys() <= {example.id for example in EXAMPLES}
    assert len(EXAMPLES) > 50
