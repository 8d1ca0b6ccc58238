"""`--threads`: what the threads of a program do with each other, in the records of Score-P."""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import whywait

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record, run

# One delay of threads.c and of openmp.c, in seconds: it may take longer, but not less.
U, V = 0.03, 0.02
SHARED = os.environ.get("WHYWAIT_SHARED", "")


@pytest.fixture
def threads(mpi, tmp_path):
    """A recording of threads.c, and the most that each rank can have waited for the mutex and the read-write lock."""
    program = compiled(mpi, PROGRAMS / "threads.c", tmp_path, "-lpthread")
    plain = run([*mpi.start(2), program], tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--threads")
    assert plain.returncode == done.returncode == 0, done.stderr
    most = [[float(word) for word in line.split()[2:]] for line in done.stdout.splitlines() if "at most" in line]
    said = [sorted(line for line in text.stdout.splitlines() if "at most" not in line) for text in (plain, done)]
    assert said[0] == said[1] == ["rank 0: 0 failures", "rank 1: 0 failures"]
    return tmp_path / "out", most


def test_records_of_threads(threads):
    counts = whywait.open(threads[0]).info(events=True)["events_by_type"]
    found = {name: count for name, count in counts.items() if name.startswith("Thread")}
    # Per rank: acquisitions by lock calls (of one, twice by its owner), and by waits for the signal (also in vain).
    lives = {name: found.pop(name) for name in ("ThreadCreate", "ThreadBegin", "ThreadWait", "ThreadEnd")}
    assert set(lives.values()) == {2}
    assert found["ThreadAcquireLock"] == found["ThreadReleaseLock"] >= 2 * 12
    assert set(found) == {"ThreadAcquireLock", "ThreadReleaseLock"}


def test_waits_of_threads(threads):
    archive, most = threads
    result = whywait.analyze(archive)
    totals = {name: result.metrics[name].total for name in result.metrics if name.startswith("pthread_lock_cont")}
    # In each of two ranks, at least 2 U for the mutex and 2 U for the writer.
    for name, bounds in zip(("mutex_lock", "rwlock"), zip(*most, strict=True), strict=True):
        assert 0.9 * 2 * 2 * U < totals[f"pthread_lock_contention_{name}"] < 1.001 * sum(bounds) + 1e-4
    assert whywait.open(archive).info()["location_types"] == {"CPU_THREAD": 4}


def test_a_thread_is_in_its_function_from_its_begin(mpi, tmp_path):
    """And until its end, not only from its first recorded call to its last."""
    (tmp_path / "worker.c").write_text(
        """#include <mpi.h>
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        __attribute__((noinline)) static void note(void) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        static void *worker(void *argument) {
            usleep(60000);
            note();
            usleep(40000);
            return argument;
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            MPI_Init(&argc, &argv);
            pthread_create(&thread, 0, worker, 0);
            pthread_join(thread, 0);
            MPI_Finalize();
        }"""
    )
    program = compiled(mpi, tmp_path / "worker.c", tmp_path, "-lpthread")
    done = record([*mpi.start(1), program], tmp_path, "--threads")
    assert done.returncode == 0, done.stderr
    times = whywait.analyze(tmp_path / "out").metrics["time"].by_callpath()
    of_worker = [
        time
        for path, time in zip(times["callpath"].to_pylist(), times["value"].to_pylist(), strict=True)
        if path[-1].startswith("worker")
    ]
    assert sum(of_worker) >= 0.1


@pytest.mark.parametrize("compiler", ["gcc", "clang-14", "clang"])
@pytest.mark.parametrize("options", [(), ("--threads",)])
def test_calls_in_the_bodies_of_constructs_have_call_paths(tmp_path, compiler, options):
    """Compilers make functions of these bodies, which threads other than the first call outside of any other."""
    mpi = next((mpi for mpi in MPIS[:2] if mpi.is_here), None)
    if mpi is None or shutil.which(compiler) is None:
        pytest.skip(f"{compiler} or MPI is not installed")
    program = compiled(mpi, PROGRAMS / "bodies.c", tmp_path, "-fopenmp", cc=compiler)
    done = record([*mpi.start(2), program], tmp_path, *options)
    assert done.returncode == 0, done.stderr
    rows = whywait.analyze(tmp_path / "out").severities("visits").to_pylist()
    calls = [row for row in rows if row["callpath"][-1] in {"MPI_Allreduce", "MPI_Sendrecv"}]
    # Without what is recorded of OpenMP itself, and what only the first thread has around these functions.
    left_out = {"main", program.name}
    own = [
        tuple(name for name in row["callpath"] if name not in left_out and not name.startswith("!$omp"))
        for row in calls
    ]
    assert {row["thread"] for row in calls} == {0, 1}
    wanted = {("solve", "MPI_Allreduce"), ("solve", "exchange", "MPI_Allreduce"), ("tasks", "MPI_Sendrecv")}
    assert set(own) == wanted
    for rank in (0, 1):
        for thread in (0, 1):
            found = {
                path for path, row in zip(own, calls, strict=True) if (row["rank"], row["thread"]) == (rank, thread)
            }
            assert found == wanted, (rank, thread)


@pytest.mark.skipif(not Path(SHARED, "field4").is_dir(), reason="the cases are not here")
def test_computing_in_the_body_of_a_parallel_region_is_a_cause(tmp_path):
    mpi = next((mpi for mpi in MPIS[:2] if mpi.is_here), None)
    if mpi is None:
        pytest.skip("MPI is not installed")
    program = compiled(mpi, Path(SHARED, "field4/omp_direct/direct.c"), tmp_path, "-fopenmp")

    def check():
        assert record([*mpi.start(2), program], tmp_path, "--force").returncode == 0
        result = whywait.analyze(tmp_path / "out")
        waits = [row for row in result.wait_states(parts=False).to_pylist() if (row["rank"], row["thread"]) == (0, 1)]
        late = [row for row in waits if row["waiting"] > 0.1]
        assert len(late) == 5
        assert {row["cause_rank"] for row in late} == {1}
        # After the first call of a thread, nothing is unknown.
        assert all(row["direct"] > 0.9 * row["waiting"] for row in late[1:])

    on_schedule(check)


def test_nothing_of_threads_without_the_option(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "threads.c", tmp_path, "-lpthread")
    assert record([*mpi.start(2), program], tmp_path).returncode == 0
    run_ = whywait.open(tmp_path / "out")
    counts = run_.info(events=True)["events_by_type"]
    assert not [name for name in counts if name.startswith("Thread")]
    assert run_.info()["location_types"] == {"CPU_THREAD": 2}


def test_it_is_a_valid_trace(threads, tmp_path):
    done = run([sys.executable, "-m", "whywait", "info", "--check", threads[0]], tmp_path)
    assert (done.returncode, "clean" in done.stdout) == (0, True), done.stdout
    printed = subprocess.run(
        ["otf2-print", str(threads[0] / "traces.otf2")], capture_output=True, text=True, check=False
    )
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
    theirs, their_orders = thread_records(next(case.rglob("traces.otf2")))

    def check():
        done = record([*mpi.start(1), program], tmp_path, "--threads", "--model", "scorep7", "--force")
        assert done.returncode == 0, done.stderr
        ours, orders = thread_records(tmp_path / "out/traces.otf2")
        # Calls that make and destroy locks are not recorded: they wait for nobody.
        made = ("pthread_mutex_init", "pthread_mutex_destroy", "pthread_cond_init", "pthread_cond_destroy")
        assert ours == [[event for event in thread if event[1] not in made] for thread in theirs]
        # Who gets a lock first is not up to the program, but each acquisition has its number.
        assert orders == their_orders
        assert all(numbers == set(range(1, len(numbers) + 1)) for numbers in orders.values())

    # Whether it gets a lock that it tries depends on its timetable.
    on_schedule(check)


@pytest.fixture(scope="module")
def clang():
    """The compiler and the runtime of OpenMP that tells tools what it does: LLVM's."""
    found = next((path for name in ("clang", "clang-14", "clang-15", "clang-16") if (path := shutil.which(name))), None)
    library = next(iter(sorted(Path("/usr/lib").glob("llvm-*/lib/libomp.so"))), None)
    if found is None or library is None:
        pytest.skip("clang with libomp is not installed")
    return found, library.parent


@pytest.fixture
def openmp(mpi, clang, tmp_path):
    """A recording of openmp.c."""
    compiler, library = clang
    options = ("-fopenmp", f"-L{library}", f"-Wl,-rpath,{library}")
    program = compiled(mpi, PROGRAMS / "openmp.c", tmp_path, *options, cc=compiler)
    done = record([*mpi.start(2), program], tmp_path, "--threads")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0: 8", "rank 1: 8"]
    return tmp_path / "out"


def test_records_of_openmp(openmp):
    counts = whywait.open(openmp).info(events=True)["events_by_type"]
    found = {name: count for name, count in counts.items() if name.startswith("Thread")}
    resumed = found.pop("ThreadTaskSwitch")
    assert found == {
        # Three regions in two ranks, with two threads each.
        "ThreadFork": 6,
        "ThreadJoin": 6,
        "ThreadTeamBegin": 12,
        "ThreadTeamEnd": 12,
        # A critical section and a lock, twice.
        "ThreadAcquireLock": 16,
        "ThreadReleaseLock": 16,
        "ThreadTaskCreate": 8,
        "ThreadTaskComplete": 8,
    }
    # To each task, and back from the last one on a thread.
    assert 8 < resumed <= 12
    assert counts["Enter"] == counts["Leave"]


def test_constructs_have_their_places(openmp):
    result = whywait.analyze(openmp)
    names = {name for path in result.callpaths()["callpath"].to_pylist() for name in path}
    lines = (PROGRAMS / "openmp.c").read_text().splitlines()
    for construct in ("parallel", "for", "critical", "single", "master", "barrier", "create task", "task", "taskwait"):
        pragma = re.compile(rf"#pragma omp {construct.removeprefix('create ')}\b")
        wanted = {number for number, line in enumerate(lines, 1) if pragma.match(line.lstrip())}
        found = {int(name.rpartition(":")[2]) for name in names if name.startswith(f"!$omp {construct} @openmp.c:")}
        # Some compilers name the line of the block.
        assert found, construct
        assert all(min(abs(line - at) for at in wanted) <= 1 for line in found), (construct, found, wanted)
    assert not [name for name in names if "outlined" in name]


def test_waits_of_openmp(openmp):
    """Thread 1 waits at the end of two regions while thread 0 works for two delays, in each of two ranks."""
    result = whywait.analyze(openmp)
    by_thread = defaultdict(float)
    for row in result.severities("omp_ibarrier_wait").to_pylist():
        by_thread[row["thread"]] += row["value"]
    # In the loops, thread 0 waits for two delays.
    assert by_thread[0] > 0.95 * 2 * 2 * 2 * V
    assert by_thread[1] > 0.95 * 2 * 2 * 2 * V
    # One of two threads waits for a delay.
    assert result.metrics["omp_lock_contention_critical"].total > 0.95 * 2 * 2 * V


def test_openmp_is_a_valid_trace(openmp, tmp_path):
    done = run([sys.executable, "-m", "whywait", "info", "--check", openmp], tmp_path)
    # The only oddity is that tasks belong to the call paths of the threads that ran them.
    odd = [line for line in done.stdout.splitlines() if line.startswith(("odd:", "broken:"))]
    assert done.returncode == 0
    assert [line for line in odd if "explicit tasks are attributed" not in line] == [], done.stdout
