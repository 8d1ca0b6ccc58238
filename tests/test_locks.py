"""The locks of threads: `Result.locks` and `whywait threads`."""

import json

import pytest
import whywait
from whywait import cli

from tests.tracedsl import trace_from_text

CRITICAL = """
0: fork [0, 9]
0: !$omp parallel @a:1 [0, 9]
0: !$omp critical @a:2(lock=7, order=1) [1, 4] @1, 4
0: !$omp implicit barrier @a:7 [5, 9]
0.1: !$omp parallel @a:1 [0, 9]
0.1: !$omp critical @a:2(lock=7, order=2) [2, 6] @4.5, 6
0.1: !$omp implicit barrier @a:7 [8, 9]
0.2: !$omp parallel @a:1 [0, 9]
0.2: omp_set_lock(lock=1, order=1) [1, 1.1]
0.2: omp_unset_lock(lock=1, order=1) [3, 3.1]
0.2: !$omp critical @a:2(lock=7, order=3) [3.5, 7] @6, 6.5
0.2: !$omp implicit barrier @a:7 [7.5, 9]
"""


def test_locks_are_counted_by_use_and_on_the_critical_path(tmp_path):
    locks = whywait.analyze(trace_from_text(CRITICAL, tmp_path)).locks().to_pylist()
    assert [(lock["rank"], lock["paradigm"], lock["lock"]) for lock in locks] == [(0, "OPENMP", 7), (0, "OPENMP", 1)]
    first, second = locks
    assert first["callpath"][-1] == "!$omp critical @a:2"
    assert (first["acquisitions"], first["contended"], first["longest_queue"]) == (3, 2, 2)
    # The waits last from 2 to 4, and from 3.5 to 6; the sections are [1, 4], [4.5, 6], [6, 6.5].
    assert [first[name] for name in ("waiting", "holding", "gap")] == pytest.approx([4.5, 5.0, 0.5])
    # The path: thread 0 to the release at 4, then thread 1 to the barrier at 8.
    assert first["critical"] == pytest.approx(4.5)
    assert (first["critical_acquisitions"], first["critical_contended"]) == (2, 1)
    assert (second["acquisitions"], second["contended"], second["waiting"], second["critical"]) == (1, 0, 0, 0)
    assert second["holding"] == pytest.approx(1.9)


def test_threads_shows_the_locks_in_eighty_columns(tmp_path, capsys):
    trace = str(trace_from_text(CRITICAL, tmp_path))
    assert cli.main(["threads", trace, "--json", "--top", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["count"], len(data["locks"]), data["locks"][0]["lock"]) == (2, 1, 7)
    assert cli.main(["threads", trace]) == 0
    text = capsys.readouterr().out
    assert "Threads wait 4.50 s for 1 of 2 locks." in text
    assert "1. OPENMP lock 7 of rank 0, in !$omp parallel @a:1" in text
    assert all(len(line) <= 90 for line in text.splitlines())


POOL = """
threads 4
0: main [0, 10]
0: pthread_mutex_lock(lock=1, order=4) [5.9, 6]
0: pthread_cond_broadcast [6, 6.1]
0: pthread_mutex_unlock(lock=1, order=4) [6.2, 6.3]
0.1: work [0, 10]
0.1: pthread_mutex_lock(lock=1, order=1) [0.9, 1]
0.1: pthread_cond_wait(lock=1, released=1, order=5) [1, 6.3]
0.1: pthread_mutex_unlock(lock=1, order=5) [6.4, 6.5]
0.2: work [0, 10]
0.2: pthread_mutex_lock(lock=1, order=2) [1.9, 2]
0.2: pthread_cond_wait(lock=1, released=2, order=6) [2, 6.5]
0.2: pthread_mutex_unlock(lock=1, order=6) [6.6, 6.7]
0.3: work [0, 10]
0.3: pthread_mutex_lock(lock=1, order=3) [2.9, 3]
0.3: pthread_cond_wait(lock=1, released=3, order=7) [3, 6.7]
0.3: pthread_mutex_unlock(lock=1, order=7) [6.8, 6.9]
"""


def test_threads_that_wait_for_a_signal_do_not_queue_for_the_mutex(tmp_path):
    result = whywait.analyze(trace_from_text(POOL, tmp_path))
    (mutex,) = result.locks().to_pylist()
    # Awake at 6, they wait up to the releases at 6.2, 6.4, and 6.6.
    assert mutex["waiting"] == pytest.approx(0.2 + 0.4 + 0.6)
    assert (mutex["contended"], mutex["longest_queue"]) == (3, 3)
    waits = [row for row in result.wait_states().to_pylist() if row["kind"] == "pthread_lock_contention_conditional"]
    assert {row["cause_callpath"][-1] for row in waits} == {"pthread_cond_broadcast"}
    assert not [one for one in result.findings() if one.rule == "lock_convoy"]


def test_a_run_without_locks_says_so(tmp_path, capsys):
    assert cli.main(["threads", str(trace_from_text("0: main [0, 1]", tmp_path))]) == 0
    assert "No locks of threads, no tasks, and no loops" in capsys.readouterr().out


def test_a_stored_result_reads_its_trace_again(tmp_path, capsys):
    trace = trace_from_text(CRITICAL, tmp_path / "trace")
    whywait.analyze(trace).write(tmp_path / "result")
    with pytest.raises(whywait.UsageError, match="no locks"):
        whywait.load(tmp_path / "result").locks()
    assert cli.main(["threads", str(tmp_path / "result")]) == 0
    assert "Threads wait 4.50 s" in capsys.readouterr().out
