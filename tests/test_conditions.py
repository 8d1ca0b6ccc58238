"""Condition variables and joins: how their waits are told apart, and what the simulation shortens."""

import pytest
import whywait
from whywait.hypotheses import Scale

from tests.tracedsl import trace_from_text

# The consumer waits for the signal at 4, and for the mutex until 6; that makes the main thread wait for its end.
TEXT = """
0: main [0, 10]
0: pthread_create(1) [0.1, 0.2]
0: pthread_create(2) [0.3, 0.4]
0: pthread_join(1) [1, 6.3]
0: pthread_join(2) [6.3, 9.1]
0.1: producer [0.15, 6.2]
0.1: pthread_mutex_lock(lock=1, order=2) [3.9, 4]
0.1: pthread_cond_signal [4, 4.2]
0.1: pthread_mutex_unlock(lock=1, order=2) [6, 6.1]
0.2: consumer [0.35, 9]
0.2: pthread_mutex_lock(lock=1, order=1) [0.9, 1]
0.2: pthread_cond_wait(lock=1, released=1, order=3) [1, 6.2]
0.2: pthread_mutex_unlock(lock=1, order=3) [7, 7.1]
"""
# The same without a signal: nobody is known to have ended the wait.
UNSIGNALED = "".join(line for line in TEXT.splitlines(keepends=True) if "signal" not in line)


@pytest.mark.parametrize(("text", "of_signal", "of_mutex"), [(TEXT, 3, 2), (UNSIGNALED, 5.2, 0)])
def test_waits_for_signal_and_mutex_are_divided_alike(text, of_signal, of_mutex, tmp_path):
    profile = whywait.analyze(trace_from_text(text, tmp_path)).profile
    for views in (("direct", "indirect"), ("terminal", "propagating")):
        for of_class, expected in (("signal", of_signal), ("threadlock", of_mutex), ("join", 7.9)):
            parts = [profile.total(f"mpi_wait_{view}_{of_class}") for view in views]
            assert min(parts) >= 0, (views, of_class)
            assert sum(parts) == pytest.approx(expected), (views, of_class)
    assert profile.total("mpi_wait_propagating_threads") > 0


def test_a_join_ends_with_its_thread_in_the_simulation(tmp_path):
    result = whywait.analyze(trace_from_text(TEXT, tmp_path))
    # The producer releases the mutex 2.775 s earlier, so the consumer ends by as much earlier, and both joins.
    assert whywait.whatif(result, [Scale("producer", 0.5)]).saved == pytest.approx(2.775)
