"""Exports of Nsight Systems: calls of the operating system, OpenMP, OpenACC, and UCX."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import whywait
from whywait.cli import main

from tests.nsight_files import MpiReport, Report, thread, visits


def account(result):
    """Return the time of each row of the account, in ms."""
    return {row["row"]: row["time"] * 1e3 for row in result.account().to_pylist()}


def test_long_calls_of_the_system_are_on_call_paths(tmp_path):
    report = MpiReport(0).range("work", 1, 20)
    report.system("pread64", 2, 3).system("nanosleep", 4, 5).system("read", 6, 6.05)
    report.mpi("MPI_Barrier", 10, 12).system("poll", 10.5, 11.5)
    report.call("cudaDeviceSynchronize_v3020", 13, 15).system("sem_wait", 13.5, 14.5)
    report.range("other", 1, 2, number=2)
    # A thread, and a process, that only wait.
    report.system("poll", 1, 80, number=3)
    report.rank = 7
    report.system("waitpid", 1, 80)
    report.rank = 0
    run = whywait.open(report.write(tmp_path / "report.sqlite"))
    assert run.locations.num_rows == 2
    assert [name for name, *_ in visits(run)] == [
        "MPI_Init",
        "work",
        "pread64",
        "nanosleep",
        "MPI_Barrier",
        "cudaDeviceSynchronize",
        "MPI_Finalize",
    ]
    (region,) = [row for row in run.definitions["Region"].to_pylist() if row["name"] == "pread64"]
    assert region["region_role"] == "FILE_IO"


def test_calls_of_the_system_that_wait_are_no_computation(tmp_path):
    report = Report().range("work", 0, 100)
    report.system("poll", 10, 20).system("clock_nanosleep", 20, 25).system("sem_wait", 25, 26)
    report.system("pthread_cond_wait", 30, 37).system("pthread_join", 40, 42).system("__write", 50, 53)
    report.system("ioctl", 60, 64)
    times = account(whywait.analyze(report.write(tmp_path / "report.sqlite")))
    assert times == pytest.approx(
        {"computation.critical": 72, "unknown": 16, "threads.runtime": 7, "threads.fork_join": 2, "io": 3}
    )


def waits(result, kinds):
    """Return the waits of threads that begin with these words: kind, thread, causing thread, and ms."""
    rows = [row for row in result.wait_states().to_pylist() if row["kind"].startswith(kinds)]
    return sorted((row["kind"], row["thread"], row["cause_thread"], round(row["waiting"] * 1e3, 6)) for row in rows)


class TeamReport(Report):
    """A report with parallel regions of three threads: thread 1 forks, thread 3 is the last at the barrier."""

    def region(self, parallel, at, late=6):
        self.range("solve", at, at + late + 2)
        self.openmp("PARALLEL", 1, at, at + late + 1.5, parallelId=parallel)
        for number in (1, 2, 3):
            own = {"parallelId": parallel, "taskId": 10 * parallel + number}
            worked = at + (late if number == 3 else number)
            # Threads that do not fork stay in their last barrier until the next region.
            end = at + late + (1 if number == 1 else 8)
            self.openmp("TASK", number, at + 0.1, end, **own, kind=2)
            self.openmp("WORKSHARE", number, at + 0.2, worked, **own, kind=1)
            self.openmp("SYNC_REGION", number, worked, end, **own, kind=2)
            self.openmp("SYNC_REGION_WAIT", number, worked + 0.01, end, **own, kind=2)
        return self


def test_threads_wait_at_the_barriers_of_their_team(tmp_path):
    # Numbers of regions are used again.
    report = TeamReport().region(1, 10).region(2, 30).region(1, 50, late=8)
    path = report.write(tmp_path / "report.sqlite")
    result = whywait.analyze(path)
    assert result.run.locations.num_rows == 3
    expected = [("omp_ibarrier_wait", number, 2, late - number - 1) for late in (6, 6, 8) for number in (0, 1)]
    assert waits(result, "omp_") == sorted(expected)
    assert result.run.nsight["untested"] == ["OpenMP"]
    paths = {tuple(row["callpath"]) for row in result.callpaths().to_pylist()}
    assert ("solve", "parallel", "loop") in paths
    # Where only the waiting is recorded, that is the barrier.
    with closing(sqlite3.connect(path)) as base:
        base.execute("DROP TABLE OPENMP_EVENT_KIND_SYNC_REGION")
        base.commit()
    assert waits(whywait.analyze(path), "omp_") == sorted(expected)
    # From the last arrival to the end of each thread's barrier, which is that of the region at the latest.
    assert account(result)["threads.barrier"] == pytest.approx(3 * (1 + 2 * 1.5))


def test_threads_wait_for_locks(tmp_path):
    report = Report().range("work", 0, 60)
    report.openmp("PARALLEL", 1, 1, 50, parallelId=1)
    for number, wait, begin, end in ((2, 2, 2.1, 10), (1, 3, 10.1, 20), (2, 15, 20.2, 25)):
        report.openmp("MUTEX_WAIT", number, wait, begin, kind=5, waitId=0xAB)
        report.openmp("CRITICAL_SECTION", number, begin, end, kind=5, waitId=0xAB)
    for number, wait, begin, end in ((1, 30, 30.1, 35), (2, 31, 35.5, 40)):
        report.openmp("MUTEX_WAIT", number, wait, begin, kind=1, waitId=0xCD)
        report.openmp("MUTEX_RELEASED", number, end, end, kind=1, waitId=0xCD)
    # Who only tests a lock does not wait for it.
    report.openmp("MUTEX_WAIT", 1, 32, 32.1, kind=2, waitId=0xCD)
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    assert waits(result, "omp_") == [
        ("omp_lock_contention_api", 1, 0, 4),
        ("omp_lock_contention_critical", 0, 1, 7),
        ("omp_lock_contention_critical", 1, 0, 5),
    ]


def test_tasks_run_in_barriers(tmp_path):
    report = Report().range("work", 0, 60)
    report.openmp("PARALLEL", 1, 1, 21, parallelId=1)
    for number, arrives in ((1, 12), (2, 2)):
        report.openmp("SYNC_REGION", number, arrives, 20, parallelId=1, kind=2)
    for task in (7, 8):
        report.openmp("TASK_CREATE", 1, task - 5, task - 4.9, newTaskId=task)
        report.openmp("TASK", 2, task - 4, task - 3.5, parallelId=1, taskId=task, kind=3)
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    # Thread 1 is at the barrier from 2 on, but runs two tasks of 0.5 until thread 0 comes at 12.
    assert sum(wait for _, thread, _, wait in waits(result, "omp_") if thread == 1) == pytest.approx(9)


@pytest.mark.parametrize("is_created", [True, False])
def test_tasks_run_from_one_switch_to_the_next(is_created, tmp_path):
    report = Report().range("work", 0, 60)
    report.openmp("PARALLEL", 1, 1, 21, parallelId=1)
    for number, arrives in ((1, 12), (2, 2)):
        report.openmp("SYNC_REGION", number, arrives, 20, parallelId=1, kind=2)
        report.openmp("TASK", number, 1, 21, parallelId=1, taskId=number, kind=2)
    # Task 7 waits for task 8, which its thread runs meanwhile; then comes task 9.
    switches = [(3, 2, 7, 7), (4, 7, 7, 8), (6, 8, 1, 7), (7, 7, 1, 2), (8, 2, 7, 9), (9, 9, 1, 2)]
    for at, prior, status, following in switches:
        tasks = {"priorTaskId": prior, "priorTaskStatus": status, "nextTaskId": following}
        report.openmp("TASK_SCHEDULE", 2, at, at, parallelId=1, **tasks)
    if is_created:
        for task in (7, 8, 9):
            report.openmp("TASK_CREATE", 1, task - 5.5, task - 5.4, newTaskId=task)
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    # At the barrier from 2 to 12, of which the thread runs tasks from 3 to 7 and from 8 to 9.
    assert sum(wait for _, thread, _, wait in waits(result, "omp_") if thread == 1) == pytest.approx(5)
    times = {row["callpath"][-1]: row for row in result.callpaths().to_pylist()}
    assert "task" in times


def test_constructs_of_openacc_have_their_places(tmp_path):
    report = Report().range("work", 0, 60)
    place = {"srcFile": report.name("/home/me/solve.f90"), "lineNo": 12, "globalTid": thread()}
    report.add(
        "CUPTI_ACTIVITY_KIND_OPENACC_OTHER",
        start=10**6,
        end=9 * 10**6,
        nameId=report.name("Compute Construct"),
        **place,
    )
    report.add(
        "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
        start=2 * 10**6,
        end=3 * 10**6,
        nameId=report.name("Enqueue Launch"),
        **place,
    )
    report.call("cuLaunchKernel", 2.2, 2.8, 1).kernel("solve_12_gpu", 3, 8, 1).system("poll", 4, 5)
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    construct = ("work", "Compute Construct@solve.f90:12")
    paths = {tuple(row["callpath"]) for row in result.callpaths().to_pylist()}
    assert (*construct, "Enqueue Launch@solve.f90:12", "solve_12_gpu") in paths
    assert not any("poll" in path for path in paths)
    assert account(result)["device.call"] == pytest.approx(8)


def test_time_of_the_profiler_is_none_of_the_program(tmp_path):
    report = Report().range("work", 0, 100).range("inner", 25, 40)
    for begin, end, number in ((10, 15, 1), (20, 30, 1), (50, 60, 9)):
        at = {"start": begin * 10**6, "end": end * 10**6, "globalTid": thread(0, number)}
        report.add("PROFILER_OVERHEAD", **at, nameId=report.name("CUPTI buffer flush"))
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    # Nothing is inside of it, wherever it is recorded; a thread of its own is none of the program.
    assert account(result) == pytest.approx({"computation.critical": 90, "measurement": 10})
    assert result.run.locations.num_rows == 1


def test_samples_say_which_function_makes_a_rank_late(tmp_path):
    outer = ("_start", "__libc_start_main_impl", "main")
    for rank in range(2):
        report = MpiReport(rank).range("work", 1, 61 if rank else 21).range("again", 62, 63)
        report.mpi("MPI_Barrier", 61 if rank else 21, 62)
        for number in range(200):
            at = 1 + 0.1 * number + 0.05
            report.sample(at, *outer, "solve", "kernel_a" if number % 4 else None)
        for number in range(400 * rank):
            report.sample(21 + 0.1 * number + 0.05, *outer, "solve", "kernel_b")
        # What was seen when it stopped running takes no time, and calls of libraries are not divided.
        report.sample(5, *outer, "stopped", cycles=0)
        if rank == 0:
            report.sample(40, *outer, "MPI_Barrier", "poll")
        report.write(tmp_path / f"report.{rank}.sqlite")
    result = whywait.analyze(tmp_path)
    rows = [row for row in result.functions().to_pylist() if row["time"] > 0]
    assert {(row["rank"], *row["callpath"]): row["time"] * 1e3 for row in rows} == pytest.approx(
        {
            (0, "work", "solve", "kernel_a"): 15,
            (0, "work", "solve", "[libm.so.6]"): 5,
            (1, "work", "solve", "kernel_a"): 15,
            (1, "work", "solve", "[libm.so.6]"): 5,
            (1, "work", "solve", "kernel_b"): 40,
        }
    )
    assert any("the difference is in solve/kernel_b" in str(finding) for finding in result.findings())
    assert result.run.nsight["unread"] == []
    for file in tmp_path.iterdir():
        with closing(sqlite3.connect(file)) as base:
            base.execute("CREATE TABLE other AS SELECT * FROM SAMPLING_CALLCHAINS ORDER BY stackDepth, id DESC")
            base.execute("DROP TABLE SAMPLING_CALLCHAINS")
            base.execute("ALTER TABLE other RENAME TO SAMPLING_CALLCHAINS")
            base.commit()
    assert whywait.analyze(tmp_path).functions().equals(result.functions())


def test_time_without_a_core_is_counted(tmp_path):
    report = Report().range("step", 0, 100).range("work", 10, 40).range("rest", 50, 60)
    # Out and in, in any order of rows; it ends without a core.
    for at, gets in ((35, 1), (20, 0), (5, 1), (30, 0), (22, 1), (45, 0), (52, 1), (90, 0)):
        report.add("SCHED_EVENTS", start=at * 10**6, isSchedIn=gets, globalTid=thread())
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    counter = result.counters["time without a core"]
    rows = counter.by_callpath().to_pylist()
    assert {row["callpath"][-1]: round(row["value"] * 1e3) for row in rows} == {"step": 5, "work": 7, "rest": 2}


def test_calls_of_ucx_are_read_if_asked_for(tmp_path, capsys):
    report = MpiReport(0)
    report.mpi("MPI_Barrier", 10, 12)
    for begin in (5, 11):
        report.add(
            "UCP_SUBMIT_EVENTS",
            start=begin * 10**6,
            end=begin * 10**6 + 500_000,
            globalTid=thread(),
            textId=report.name("ucp_tag_send_nbx"),
        )
    path = report.write(tmp_path / "report.sqlite")
    assert [name for name, *_ in visits(whywait.open(path))] == ["MPI_Init", "MPI_Barrier", "MPI_Finalize"]
    assert main(["info", str(path)]) == 0
    assert "UCP_SUBMIT_EVENTS" in capsys.readouterr().out.split("not analyzed")[1]
    run = whywait.open(path, paths="all")
    # Those within MPI are its own.
    assert ("ucp_tag_send_nbx", 5, 5.5) in visits(run)
    assert sum(name.startswith("ucp") for name, *_ in visits(run)) == 1
    assert run.nsight["untested"] == ["MPI", "UCX"]
