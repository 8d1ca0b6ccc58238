"""`--threads`: what the threads of a program do with each other, in the records of Score-P."""

import os
from collections import defaultdict
from pathlib import Path

import pytest
import whywait

from .mpis import PROGRAMS, compiled, record, run

# One delay of threads.c, in seconds, and how much longer a machine under load may take.
U = 0.03
SHARED = os.environ.get("WHYWAIT_SHARED", "")


@pytest.fixture
def threads(mpi, tmp_path):
    """A recording of threads.c."""
    program = compiled(mpi, PROGRAMS / "threads.c", tmp_path, "-lpthread")
    plain = run([*mpi.start(2), program], tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--threads")
    assert plain.returncode == done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    return tmp_path / "out"


def test_records_of_threads(threads):
    counts = whywait.open(threads).info(events=True)["events_by_type"]
    found = {name: count for name, count in counts.items() if name.startswith("Thread")}
    # Per rank: acquisitions by lock calls (of one, twice by its owner), and by waits for the signal.
    lives = {name: found.pop(name) for name in ("ThreadCreate", "ThreadBegin", "ThreadWait", "ThreadEnd")}
    assert set(lives.values()) == {2}
    assert found["ThreadAcquireLock"] == found["ThreadReleaseLock"] >= 2 * 12
    assert set(found) == {"ThreadAcquireLock", "ThreadReleaseLock"}


def test_waits_of_threads(threads):
    result = whywait.analyze(threads)
    totals = {name: result.metrics[name].total for name in result.metrics if name.startswith("pthread_lock_cont")}
    # In each of two ranks, 2 U for the mutex and 2 U for the writer, unless the thread that waits is late itself.
    for name in ("mutex_lock", "rwlock"):
        assert 2 * U < totals[f"pthread_lock_contention_{name}"] < 2 * 2 * U + 0.5
    assert whywait.open(threads).info()["location_types"] == {"CPU_THREAD": 4}


def test_nothing_of_threads_without_the_option(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "threads.c", tmp_path, "-lpthread")
    assert record([*mpi.start(2), program], tmp_path).returncode == 0
    run_ = whywait.open(tmp_path / "out")
    counts = run_.info(events=True)["events_by_type"]
    assert not [name for name in counts if name.startswith("Thread")]
    assert run_.info()["location_types"] == {"CPU_THREAD": 2}


def test_it_is_a_valid_trace(threads, tmp_path):
    import subprocess
    import sys

    done = run([sys.executable, "-m", "whywait", "validate", threads], tmp_path)
    assert (done.returncode, "clean" in done.stdout) == (0, True), done.stdout
    printed = subprocess.run(["otf2-print", str(threads / "traces.otf2")], capture_output=True, text=True, check=False)
    assert printed.returncode == 0
    assert printed.stdout.count("THREAD_WAIT ") == 2


def test_threads_that_never_ended_are_no_obstacle(mpi, tmp_path):
    """A rank that is cancelled in a condition wait, and one that exits with a thread running."""
    program = compiled(mpi, PROGRAMS / "cancelled.c", tmp_path, "-lpthread")
    done = record([*mpi.start(2), program], tmp_path, "--threads")
    assert (done.returncode, done.stdout.count("cancelled")) == (0, 2), done.stderr
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert (counts["ThreadCreate"], counts["ThreadEnd"], counts["ThreadWait"]) == (4, 2, 2)


def thread_records(archive):
    """Return the records of threads by location, locks numbered by their first use, and the orders of each lock."""
    otf2 = pytest.importorskip("otf2")
    found, locks, orders = defaultdict(list), {}, defaultdict(set)
    with otf2.reader.open(str(archive)) as trace:
        for location, event in trace.events:
            name = type(event).__name__
            if name in {"Enter", "Leave"}:
                region = event.region.name
                # Score-P names the wrapped ones by themselves; it knows no other functions of threads here.
                if region.startswith("pthread_"):
                    found[location.name].append((name, region))
            elif name in {"ThreadAcquireLock", "ThreadReleaseLock"}:
                lock = locks.setdefault(event.lock_id, len(locks))
                found[location.name].append((name, lock))
                orders[lock].add(event.acquisition_order)
            elif name in {"ThreadCreate", "ThreadWait", "ThreadBegin", "ThreadEnd"}:
                found[location.name].append((name, event.sequence_count))
    return sorted(found.values()), orders


@pytest.mark.skipif(not Path(SHARED, "cases/pthread_mutex").is_dir(), reason="recorded traces are not here")
def test_the_same_records_as_score_p(mpi, tmp_path):
    case = Path(SHARED, "cases/pthread_mutex")
    objects = PROGRAMS / "around_main.c"
    program = compiled(
        mpi, case / "pthread_mutex.c", tmp_path, "-Dmain=program", str(objects), f"-I{case}", "-lpthread"
    )
    done = record([*mpi.start(1), program], tmp_path, "--threads", "--model", "scorep7")
    assert done.returncode == 0, done.stderr
    theirs, their_orders = thread_records(next(case.rglob("traces.otf2")))
    ours, orders = thread_records(tmp_path / "out/traces.otf2")
    # Calls that make and destroy locks are not recorded: they wait for nobody.
    made = ("pthread_mutex_init", "pthread_mutex_destroy", "pthread_cond_init", "pthread_cond_destroy")
    assert ours == [[event for event in thread if event[1] not in made] for thread in theirs]
    # Who gets a lock first is not up to the program, but each acquisition has its number.
    assert orders == their_orders
    assert all(numbers == set(range(1, len(numbers) + 1)) for numbers in orders.values())
