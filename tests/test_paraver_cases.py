"""Traces of Paraver whose waits are known by construction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import whywait

from tests.paraver_grammar import check
from tests.paraver_traces import Call, Trace

if TYPE_CHECKING:
    from pathlib import Path

A, B, C, D = ((1, task, 1) for task in (1, 2, 3, 4))


def trace(ranks: int, *comms: tuple[int, ...], threads: int = 1, unit: str = "_ns") -> Trace:
    """Return a trace of one application, with a world and further communicators."""
    world = tuple(range(1, ranks + 1))
    numbered = tuple((1, number, members) for number, members in enumerate((world, *comms), 1))
    return Trace(10000, (((threads, 1),) * ranks,), numbered, unit)


def waits(path: Path, **options: Any) -> dict[str, dict[str, int]]:
    """Return the waiting of each kind by rank, and thread where there are several, in ticks."""
    result = whywait.analyze(whywait.open(path, **options))
    resolution = result.run.info()["timer_resolution"]
    rows = [wait for wait in result.wait_states().to_pylist() if not wait["kind"].endswith("_completion")]
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for wait in rows:
        thread = f".{wait['thread']}" if wait["thread"] else ""
        found[wait["kind"]][f"{wait['rank']}{thread}"] += round(wait["waiting"] * resolution)
    return {kind: dict(ranks) for kind, ranks in found.items()}


def said(path: Path, **options: Any) -> list[str]:
    return [text for _, _, text in whywait.open(path, **options).oddities if "no .pcf" not in text]


def test_the_second_of_two_waitalls_completes_the_sends(tmp_path):
    run = trace(2)
    send = run.call(A, "Isend", 1000, 1100)
    post = run.call(A, "Irecv", 1200, 1300)
    run.message(run.call(B, "Send", 500, 600), post, run.call(A, "Waitall", 1400, 1500))
    run.call(A, "Waitall", 1600, 5100)
    run.message(send, run.call(B, "Irecv", 5000, 5050), run.call(B, "Wait", 5060, 5100))
    path = run.write(tmp_path)
    assert waits(path) == {"mpi_latereceiver": {"0": 3400}}
    assert waits(path, inference=False) == {}
    # What begins between them can be what the second completes.
    run.call(A, "Iallreduce", 1550, 1560)
    assert waits(run.write(tmp_path)) == {}


def test_findings_say_which_waiting_is_inferred(tmp_path):
    run = Trace(100_000_000, (((1, 1),) * 2,), ((1, 1, (1, 2)),))
    send = run.call(A, "Isend", 1_000_000, 1_100_000)
    run.call(A, "Wait", 2_000_000, 52_100_000)
    receive = run.call(B, "Recv", 52_000_000, 52_100_000)
    run.message(send, receive, receive)
    run.collective("Barrier", {A: (99_000_000, 99_100_000), B: (99_000_000, 99_100_000)}, 1)
    path = run.write(tmp_path)
    assert waits(path) == {"mpi_latereceiver": {"0": 50_000_000}}
    found = whywait.analyze(path).findings()
    assert [words.text for words in found.caveats] == [
        "25% of the CPU time is waiting for late receivers in calls of which it is inferred which sends they complete."
    ]
    assert "inferred" in found.verdict()
    assert not whywait.analyze(whywait.open(path, inference=False)).findings().caveats


def test_single_waits_complete_sends_after_all_receives(tmp_path):
    run = trace(2)
    sends = [run.call(A, "Isend", begin, begin + 50) for begin in (1000, 1100)]
    post = run.call(A, "Irecv", 1200, 1300)
    run.message(run.call(B, "Send", 500, 600), post, run.call(A, "Waitall", 1400, 1500))
    run.call(A, "Wait", 2000, 3100)
    run.call(A, "Wait", 3200, 5100)
    for send, begin in zip(sends, (3000, 5000), strict=True):
        run.message(send, run.call(B, "Recv", begin, begin + 90), run.call(B, "Recv", begin, begin + 90))
    assert waits(run.write(tmp_path)) == {"mpi_latereceiver": {"0": 1000 + 1800}}


def test_threads_that_communicate_at_once_do_so_on_communicators_of_their_own(tmp_path):
    run = trace(2, threads=2)
    for task, first, second in ((1, (1000, 6100), (1500, 3100)), (2, (6000, 6100), (3000, 3100))):
        run.collective("Allreduce", {(1, task, 1): first}, 1)
        run.collective("Allreduce", {(1, task, 2): second}, 1)
    assert waits(run.write(tmp_path)) == {"mpi_wait_nxn": {"0": 5000, "0.1": 1500}}


def test_calls_that_are_not_whole_or_missing_do_not_shift_others(tmp_path):
    def allreduces(*missing: int) -> Trace:
        run = trace(2)
        for number in range(9):
            begin = 1000 * number
            run.collective("Allreduce", {A: (begin, begin + 500)}, 1)
            if number not in missing:
                run.collective("Allreduce", {B: (begin + 300, begin + 500)}, 1)
        return run

    run = allreduces()
    # Recording was off in the third call of the second rank.
    run.records = [record for record in run.records if ":2300:2500:13" not in record[2]]
    run.state(B, 2300, 2500, 14)
    assert waits(run.write(tmp_path)) == {"mpi_wait_nxn": {"0": 8 * 300}}
    assert said(tmp_path / "trace.prv") == [
        "call in which recording was off: 1, whose waiting is unknown",
        "collective call without those of all other members: 1, whose waiting is unknown",
    ]
    assert waits(allreduces(2, 6).write(tmp_path)) == {"mpi_wait_nxn": {"0": 7 * 300}}


def test_sizes_say_which_call_is_missing(tmp_path):
    run = trace(2)
    for number in range(6):
        begin = 1000 * number
        run.collective("Bcast", {A: (begin + 300, begin + 310)}, 1, root=1, size=8 << number)
        if number != 1:
            run.collective("Bcast", {B: (begin, begin + 400)}, 1, root=1, size=8 << number)
    # A multiple of what it is for the next one as well.
    path = run.write(tmp_path)
    path.write_text(path.read_text().replace(":50100001:16:", ":50100001:24:"))
    assert waits(path) == {"mpi_latebroadcast": {"1": 5 * 300}}


@pytest.mark.parametrize("order", [1, -1])
def test_ends_of_an_instant_come_before_begins(order, tmp_path):
    run = trace(2)
    run.collective("Barrier", {A: (9000, 9500), B: (9400, 9500)}, 1)
    run.state(A, 0, 10000, 1)
    # A call that takes no time, and functions one after the other around which one ends too.
    instants = {
        100: [(60000019, 1)],
        200: [(60000019, 2)],
        5000: [(50000001, 3), (50000001, 0), (60000019, 0), (60000019, 3)],
        6000: [(60000019, 0), (60000019, 0), (60000019, 4), (50000001, 1)],
        6500: [(60000019, 0), (50000001, 0)],
    }
    for time, events in instants.items():
        for event in events[::order]:
            run.records.append((time, 1, f"2:{run.place(A)}:{time}:{event[0]}:{event[1]}"))
    path = run.write(tmp_path)
    rows = whywait.analyze(path, causes=False).severities("time").to_pylist()
    times = {"/".join(row["callpath"]): round(row["value"] * 1e9) for row in rows if row["rank"] == 0}
    names = {number: f"type 60000019: value {number}" for number in (1, 2, 3, 4)}
    expected = {
        f"main/{names[1]}": 100,
        f"main/{names[1]}/{names[2]}": 4800,
        f"main/{names[1]}/{names[3]}": 1000,
        f"main/{names[4]}/MPI_Send": 500,
        "main/MPI_Barrier": 500,
    }
    assert {path: time for path, time in times.items() if time and path != "main"} == expected
    assert not [text for text in said(path) if "end" in text]


@pytest.mark.parametrize("order", [1, -1])
def test_locks_that_take_no_time(order, tmp_path):
    run = Trace(10000, (((2, 1),),))
    first, second = ((1, 1, thread) for thread in (1, 2))
    run.events(first, 500, (60000001, 3))
    run.events(first, 9000, (60000001, 0))
    instants = {
        first: {1000: [3, 6], 3000: [5, 0]},
        second: {2000: [3], 3000: [6, 5, 0], 4000: [3, 6, 5, 0], 5000: [3, 6]},
    }
    for thread, times in instants.items():
        for time, values in times.items():
            for value in values[::order]:
                run.records.append((time, 1, f"2:{run.place(thread)}:{time}:60000006:{value}:60000032:16"))
    path = run.write(tmp_path)
    assert waits(path) == {"omp_lock_contention_critical": {"0.1": 1000}}


def test_calls_within_one_tick_take_a_message_each(tmp_path):
    run = Trace(100, (((1, 1),) * 2,), ((1, 1, (1, 2)),), "_us")
    for tag in range(2):
        receive = run.call(A, "Recv", 50, 50)
        run.message(run.call(B, "Send", 5, 5), receive, receive, tag=tag)
    # The message that is sent last was posted first, and what completes it begins where the other post ends.
    posts = [run.call(A, "Irecv", 60, 60), run.call(A, "Irecv", 60, 61)]
    ends = [run.call(A, "Wait", 61, 90), run.call(A, "Wait", 90, 90)]
    for begin, number in ((63, 1), (82, 0)):
        run.message(run.call(B, "Isend", begin, begin + 1), posts[number], ends[number], tag=number)
    # Calls of one tick have sizes and a communicator of their own.
    run.collective("Bcast", {A: (95, 95), B: (95, 95)}, 1, root=2)
    run.collective("Allreduce", {A: (95, 98), B: (97, 98)}, 1, size=16)
    path = run.write(tmp_path)
    assert waits(path) == {
        "mpi_latesender": {"0": 21},
        "mpi_lswo_same": {"0": 21},
        "mpi_wait_nxn": {"0": 2},
    }
    assert said(path) == []


def test_operations_of_groups_with_roots(tmp_path):
    run = trace(4, (1, 3), (4, 2))
    run.collective("Gather", {A: (1000, 4100), C: (4000, 4100)}, 2, root=1)
    run.collective("Scatterv", {D: (3000, 3100), B: (1000, 3150)}, 3, root=4)
    run.collective("Reduce", {A: (5000, 5050), B: (7000, 7010), C: (5500, 7100), D: (6000, 6010)}, 1, root=3)
    run.collective("Scan", {A: (8300, 8310), B: (8000, 8320), C: (8100, 8330), D: (8400, 8410)}, 1)
    assert waits(run.write(tmp_path)) == {
        "mpi_earlyreduce": {"0": 3000, "2": 1500},
        "mpi_latebroadcast": {"1": 2000},
        "mpi_earlyscan": {"1": 300, "2": 200},
    }


def test_a_ring_of_calls_that_send_and_receive(tmp_path):
    run = trace(4)
    times = {A: (1000, 4100), B: (2000, 2100), C: (1500, 2100), D: (4000, 4100)}
    calls = [run.call(thread, "Sendrecv", *time) for thread, time in times.items()]
    for rank, call in enumerate(calls):
        receive = calls[(rank + 1) % 4]
        run.message(call, receive, receive)
    assert waits(run.write(tmp_path)) == {"mpi_latesender": {"0": 3000, "2": 500}}


def test_calls_that_complete_some_requests(tmp_path):
    run = trace(4)
    posts = [run.call(A, "Irecv", begin, begin + 10) for begin in (100, 200, 300, 400)]
    run.message(run.call(B, "Send", 3000, 3050), posts[0], run.call(A, "Waitany", 1000, 3100), tag=1)
    some = run.call(A, "Waitsome", 4000, 6100)
    run.message(run.call(C, "Send", 5000, 5050), posts[1], some, tag=2)
    run.message(run.call(D, "Send", 6000, 6050), posts[2], some, tag=3)
    # Who tests does not wait, whatever arrives meanwhile.
    run.message(run.call(B, "Send", 7500, 7550), posts[3], run.call(A, "Test", 7000, 7600), tag=4)
    assert waits(run.write(tmp_path)) == {"mpi_latesender": {"0": 2000 + 2000}}


def test_requests_that_are_started_again(tmp_path):
    run = trace(2)
    for base in (0, 4000):
        run.message(
            run.call(A, "Start", base + 100, base + 200),
            run.call(B, "Irecv", base + 2000, base + 2010),
            run.call(B, "Wait", base + 2100, base + 2200),
        )
        run.call(A, "Wait", base + 500, base + 2150)
    assert waits(run.write(tmp_path)) == {"mpi_latereceiver": {"0": 2 * 1500}}


def test_applications_with_other_threads_and_equal_numbers_of_communicators(tmp_path):
    run = Trace(10000, (((2, 1), (1, 1)), ((1, 2), (3, 2), (1, 1))), ((1, 1, (1, 2)), (2, 1, (1, 2, 3))))
    run.collective("Barrier", {(1, 1, 1): (1000, 3100), (1, 2, 1): (3000, 3100)}, 1)
    run.collective("Barrier", {(2, 1, 1): (1000, 2100), (2, 2, 1): (2000, 2100), (2, 3, 1): (1800, 2100)}, 1)
    receive = run.call((2, 3, 1), "Recv", 5000, 7100)
    run.message(run.call((2, 2, 3), "Send", 7000, 7050), receive, receive)
    path = run.write(tmp_path)
    assert waits(path) == {"mpi_barrier_wait": {"0": 2000, "2": 1000, "4": 200}, "mpi_latesender": {"4": 2000}}
    assert waits(path, application=2) == {"mpi_barrier_wait": {"0": 1000, "2": 200}, "mpi_latesender": {"2": 2000}}
    (tmp_path / "trace.row").write_text("LEVEL NODE SIZE 2\nlogin\ncompute\n\nLEVEL THREAD SIZE 1\nfirst\n")
    nodes = whywait.open(path).definitions["SystemTreeNode"].to_pylist()
    assert {node["name"] for node in nodes} == {"machine", "login", "compute"}


def test_threads_with_names_of_streams_are_streams(tmp_path):
    run = Trace(10000, (((1, 1),), ((2, 1), (2, 1))), ((2, 1, (1, 2)),))
    run.collective("Barrier", {(2, 1, 1): (1000, 3100), (2, 2, 1): (3000, 3100)}, 1)
    run.events((1, 1, 1), 100, (46000001, 5))
    for thread in ((2, 1, 2), (2, 2, 2)):
        run.state(thread, 0, 10000, 0)
    names = ["THREAD 1.1.1", "THREAD 2.1.1", "CUDA-D1.S1-node1", "THREAD 2.2.1", "CUDA-D1.S1-node1"]
    (tmp_path / "trace.row").write_text("LEVEL THREAD SIZE 5\n" + "\n".join(names) + "\n")
    path = run.write(tmp_path)
    # The first application only counts, and is left out with its names.
    opened = whywait.open(path)
    locations = [(row["name"], row["location_type"]) for row in opened.definitions["Location"].to_pylist()]
    kinds = ["CPU_THREAD", "ACCELERATOR_STREAM"] * 2
    assert locations == list(zip(names[1:], kinds, strict=True))
    result = whywait.analyze(path)
    assert result.metrics["time"].total == pytest.approx(2 * 10000e-9)
    assert waits(path) == {"mpi_barrier_wait": {"0": 2000}}
    result.write_paraver(tmp_path / "again.prv")
    assert (tmp_path / "again.row").read_text().count("\nCUDA-D1.S1-node1\n") == 2


def test_barriers_and_parallel_regions_by_newer_numbers(tmp_path):
    run = Trace(10000, (((3, 1),),))
    master, *others = ((1, 1, thread) for thread in (1, 2, 3))
    for begin in (1000, 5000):
        run.events(master, begin, (60002, 3))
        run.events(master, begin + 3100, (60002, 0))
        for delay, thread in enumerate((master, *others), 1):
            run.events(thread, begin + 100, (60000018, 7))
            run.events(thread, begin + 100 + 500 * delay, (60004, 1))
            run.events(thread, begin + 2000, (60004, 0))
            run.events(thread, begin + 3000, (60000018, 0))
    assert waits(run.write(tmp_path)) == {"omp_ebarrier_wait": {"0": 2 * 1000, "0.1": 2 * 500}}


def test_critical_sections_by_newer_numbers_are_no_barriers(tmp_path):
    run = Trace(10000, (((2, 1),),))
    first, second = ((1, 1, thread) for thread in (1, 2))
    run.events(first, 1000, (60002, 1))
    for thread, asks, has, gives in ((first, 2000, 2010, 4000), (second, 2500, 4005, 5000)):
        # Each thread says that it is inside.
        run.events(thread, 1050, (60002, 2))
        run.events(thread, 1100, (60011, 7))
        run.events(thread, asks, (60004, 31), (60005, 37), (60006, 77))
        run.events(thread, has, (60005, 38), (60006, 77), (60004, 0))
        run.events(thread, gives, (60005, 39), (60006, 77))
        run.events(thread, gives + 10, (60005, 0))
        run.events(thread, 8000, (60011, 0))
        run.events(thread, 8050, (60002, 0))
    run.events(first, 9000, (60002, 0))
    path = run.write(tmp_path)
    assert waits(path) == {"omp_lock_contention_critical": {"0.1": 4000 - 2500}}
    assert said(path) == []


def test_a_lock_that_a_thread_has_twice_is_free_when_it_gave_it_back_twice(tmp_path):
    run = Trace(10000, (((2, 1),),))
    first, second = ((1, 1, thread) for thread in (1, 2))
    run.events(first, 500, (60000001, 3))
    run.events(first, 9000, (60000001, 0))

    def lock(thread: tuple[int, int, int], asks: int, has: int) -> None:
        run.events(thread, asks, (60000006, 3))
        run.events(thread, has, (60000006, 6), (60000032, 77))

    def unlock(thread: tuple[int, int, int], time: int) -> None:
        run.events(thread, time, (60000006, 5))
        run.events(thread, time + 10, (60000006, 0))

    lock(first, 1000, 1010)
    lock(first, 2000, 2010)
    lock(second, 2500, 5005)
    unlock(first, 3000)
    unlock(first, 5000)
    unlock(second, 6000)
    assert waits(run.write(tmp_path)) == {"omp_lock_contention_critical": {"0.1": 2500}}


def test_nobody_knows_who_waits_where_threads_work_in_barriers(tmp_path):
    run = Trace(10000, (((2, 1),),))
    first, second = ((1, 1, thread) for thread in (1, 2))
    for begin, works in ((1000, False), (5000, True)):
        run.events(first, begin, (60000001, 3))
        for thread, arrives in ((first, begin + 100), (second, begin + 1100)):
            run.events(thread, begin + 10, (60000018, 7))
            run.events(thread, arrives, (60000005, 1))
            run.events(thread, begin + 2000, (60000005, 0))
            run.events(thread, begin + 2100, (60000018, 0))
            run.state(thread, begin, arrives, 1)
            run.state(thread, arrives, begin + 2000, 1 if works and thread == first else 5)
        run.events(first, begin + 2200, (60000001, 0))
    path = run.write(tmp_path)
    assert waits(path) == {"omp_ebarrier_wait": {"0": 1000}}
    assert said(path) == [
        "parallel region whose waiting is unknown: 1, as another is in or around it, or threads work in its barriers",
        "barrier in which a thread works: 1, as on tasks: the waiting of its team is unknown",
    ]


def test_counters_count_since_their_last_reading(tmp_path):
    run = trace(2)
    run.collective("Barrier", {A: (1000, 2000), B: (1500, 2000)}, 1)
    for thread, begin in ((A, 1000), (B, 1500)):
        run.state(thread, 0, begin, 1)
        run.state(thread, 2000, 10000, 1)
    for time, value in ((0, 5), (1000, 100), (2000, 7), (3000, 200)):
        run.events(A, time, (42000050, value))
    run.events(B, 1500, (42000050, 40), (42000059, -3))
    run.events(B, 1600, (42000050, 1 << 60))
    (tmp_path / "trace.pcf").write_text("EVENT_TYPE\n7 42000050 PAPI_TOT_INS [Instr completed]\n")
    path = run.write(tmp_path)
    result = whywait.analyze(path)
    by_path: dict[str, float] = defaultdict(float)
    for row in result.severities("PAPI_TOT_INS").to_pylist():
        by_path[row["callpath"][-1]] += row["value"]
    # The first reading of a thread counts since nobody knows when.
    assert by_path == {"main": 100 + 200, "MPI_Barrier": 7}
    assert said(path) == ["value of a counter that cannot be: 2, left out"]


@pytest.mark.parametrize(("unit", "seconds"), [("_ns", 1e-9), ("_us", 1e-6), ("", 1e-6), ("_ms", 1e-3)])
def test_times_have_the_unit_of_the_header(unit, seconds, tmp_path):
    run = trace(2, unit=unit)
    run.collective("Barrier", {A: (1000, 3000), B: (2500, 3000)}, 1)
    path = run.write(tmp_path)
    assert whywait.open(path).info()["length"] == pytest.approx(10000 * seconds)
    assert whywait.analyze(path).metrics["mpi_barrier_wait"].total == pytest.approx(1500 * seconds)


def test_nobody_waits_while_nothing_is_recorded(tmp_path):
    run = trace(2)
    receive = run.call(A, "Recv", 1000, 5000)
    run.message(run.call(B, "Send", 4000, 4100), receive, receive)
    run.records = [record for record in run.records if not record[2].startswith("1:1:")]
    run.state(A, 0, 1000, 1)
    run.state(A, 1000, 3000, 14)
    run.state(A, 3000, 5000, 3)
    path = run.write(tmp_path)
    assert waits(path) == {}
    assert said(path) == [
        "call in which recording was off: 1, whose waiting is unknown",
        "message of a call that is not whole: 1, left out",
    ]


@pytest.mark.parametrize(("kind", "off", "on"), [(40000012, 0, 1), (40000018, 2, 1)])
@pytest.mark.parametrize("has_states", [True, False])
def test_nobody_waits_while_events_say_that_nothing_is_recorded(kind, off, on, has_states, tmp_path):
    run = trace(2)
    receive = run.call(A, "Recv", 1000, 5000)
    run.message(run.call(B, "Send", 4000, 4100), receive, receive)
    run.events(A, 2000, (kind, off))
    run.events(A, 3000, (kind, on))
    run.events(A, 7000, (kind, off))
    run.state(A, 0, 1000, 1)
    run.state(A, 5000, 10000, 1)
    if not has_states:
        run.records = [record for record in run.records if not record[2].startswith("1:")]
    path = run.write(tmp_path)
    assert waits(path) == {}
    assert said(path) == [
        "call in which recording was off: 1, whose waiting is unknown",
        "message of a call that is not whole: 1, left out",
    ]
    rows = whywait.analyze(path, causes=False).severities("time").to_pylist()
    times = {row["callpath"][-1]: round(row["value"] * 1e9) for row in rows if row["rank"] == 0}
    assert (times["main"], times["tracing disabled"]) == (1000 + 2000, 3000)


def test_a_flush_that_only_events_tell_is_no_computation(tmp_path):
    run = trace(2)
    run.collective("Barrier", {A: (1000, 2000), B: (1500, 2000)}, 1)
    run.events(A, 3000, (40000003, 1))
    run.events(A, 3500, (40000003, 0))
    run.events(B, 3000, (54000000, 1), (54001000, 10))
    for thread, begin in ((A, 1000), (B, 1500)):
        run.state(thread, 0, begin, 1)
        run.state(thread, 2000, 10000, 1)
    path = run.write(tmp_path)
    rows = whywait.analyze(path, causes=False).severities("time").to_pylist()
    times = {row["callpath"][-1]: round(row["value"] * 1e9) for row in rows if row["rank"] == 0}
    assert times == {"main": 1000 + 7500, "MPI_Barrier": 1000, "flush": 500}
    assert said(path) == ["event that says what calls did, instead of the calls: 2, whose waiting is unknown"]


def test_calls_for_files_have_names_without_labels(tmp_path):
    run = trace(1)
    for number, value in enumerate((150, 195, 210)):
        run.events(A, 100 + 100 * number, (50000005, value))
        run.events(A, 150 + 100 * number, (50000005, 0))
    names = set(whywait.open(run.write(tmp_path)).definitions["Region"]["name"].to_pylist())
    assert names >= {
        "MPI_File_write_at_all",
        "MPI_File_... begin or end (195)",
        "MPI_File_... ordered or shared (210)",
    }


def test_a_late_receiver_of_an_exchange_is_inferred_with_its_completion(tmp_path):
    run = trace(2)
    send, post = run.call(A, "Issend", 1000, 1100), run.call(A, "Irecv", 1200, 1300)
    run.message(run.call(B, "Send", 3000, 3100), post, run.call(A, "Waitall", 1400, 5100))
    receive = run.call(B, "Recv", 5000, 5100)
    run.message(send, receive, receive)
    result = whywait.analyze(run.write(tmp_path))
    (wait,) = [wait for wait in result.wait_states().to_pylist() if wait["kind"] == "mpi_exchange_latereceiver"]
    assert (wait["inferred"], round(wait["waiting"] * 1e9)) == (True, 2000)
    (note,) = [note for note in result.warnings if note["kind"] == "inferred_completion"]
    assert "1 case, of 2.00 us, rests on this assumption" in note["text"]


def test_states_are_calls_where_no_call_is_recorded(tmp_path):
    run = trace(2)
    run.collective("Barrier", {A: (1000, 2000), B: (1500, 2000)}, 1)
    for begin, end, state in ((0, 1000, 1), (2000, 3000, 1), (3000, 4500, 3), (4500, 10000, 1)):
        run.state(A, begin, end, state)
    (tmp_path / "trace.pcf").write_text("STATES\n3    Waiting a message\n")
    path = run.write(tmp_path)
    result = whywait.analyze(path)
    rows = result.severities("time").to_pylist()
    times = {row["callpath"][-1]: row["value"] for row in rows if row["rank"] == 0}
    assert times["state: Waiting a message"] == pytest.approx(1500e-9)
    assert result.metrics["comp"].total * 1e9 == pytest.approx(1000 + 1000 + 5500)
    assert said(path) == ["state of communication without a call: 1, a region of its own"]


def test_states_and_calls_that_contradict_each_other_are_noted(tmp_path):
    run = trace(2)
    for thread, begin in ((A, 1000), (B, 1500)):
        run.collective("Barrier", {thread: (begin, 2000)}, 1)
        run.records = [record for record in run.records if not record[2].startswith(f"1:{run.place(thread)}")]
        run.state(thread, 0, 10000, 1)
        run.state(thread, 10000, 10001, 0)
    path = run.write(tmp_path)
    assert waits(path) == {"mpi_barrier_wait": {"0": 500}}
    assert "threads run in calls, by their states, for 7% of the time: calls count" in said(path)


def test_what_such_traces_do_not_say_is_said(tmp_path):
    run = trace(2)
    run.call(A, "Put", 1000, 2000, (50001000, 8), (50001001, 1))
    run.call(A, "Iallreduce", 3000, 3100)
    run.call(A, "Wait", 3200, 4000)
    run.collective("Barrier", {A: (5000, 6000), B: (5500, 6000)}, 1)
    path = run.write(tmp_path)
    lines = path.read_text().replace("c:1:1", "i:1:9:1:2\nc:1:1")
    path.write_text(lines)
    assert waits(path) == {"mpi_barrier_wait": {"0": 500}}
    assert said(path) == ["one-sided call: 1, whose waiting is unknown: such traces have no windows"]


def threads(*lives: tuple[int, int], older: bool = True) -> tuple[Trace, list[tuple[int, int, int]]]:
    """Return a trace of a process that makes threads at the begin of their lives, and its threads.

    In the `older` form, each call has a type of its own.
    """
    run = Trace(10000, (((1 + len(lives), 1),),))
    first, *others = names = [(1, 1, number) for number in range(1, 2 + len(lives))]
    run.events(first, 0, (60000019, 3))
    run.events(first, 10000, (60000019, 0))
    for number, (thread, (begin, end)) in enumerate(zip(others, lives, strict=True)):
        created = 100 + 20 * number
        run.pthread(first, "create", created, created + 10, 7 if older else 0)
        # With the function of the new thread, as Extrae records it.
        run.events(first, created, (60000020, 7))
        run.events(first, created + 10, (60000020, 0))
        run.life(thread, begin, end)
    return run, names


def test_who_waits_for_the_end_of_a_thread(tmp_path):
    run, (first, second, third) = threads((200, 6000), (210, 8000), older=False)
    run.pthread(second, "exit", 6000, 6000)
    # In the other order: the second call returns at once.
    run.pthread(first, "join", 3000, 8010)
    run.pthread(first, "join", 8100, 8110)
    labels = [(60000019, "User function", "3 main"), (60000020, "pthread function", "7 work")]
    blocks = [f"EVENT_TYPE\n0 {kind} {name}\nVALUES\n{value}\n" for kind, name, value in labels]
    (tmp_path / "trace.pcf").write_text("\n".join(blocks))
    path = run.write(tmp_path)
    result = whywait.analyze(path)
    (wait,) = result.wait_states().to_pylist()
    assert (wait["kind"], wait["thread"], wait["cause_thread"]) == ("pthread_join_wait", 0, third[2] - 1)
    assert (wait["path"], wait["cause_callpath"]) == ("main/pthread_join", ["work"])
    assert round(wait["waiting"] * 1e9) == 5000
    # It leads through the thread back to its creation.
    assert round(result.metrics["critical_path"].total * 1e9) == 10000
    assert said(path) == ["call that makes or awaits a thread: 4, of which it is inferred which"]


def test_a_lock_of_posix_threads_by_its_address(tmp_path):
    run, (first, second, third) = threads((200, 9000), (210, 9000))
    for thread, asks, has, gives in ((first, 1000, 1010, 3000), (second, 1500, 3005, 5000), (third, 2000, 5005, 6000)):
        run.pthread(thread, "mutex_lock", asks, has, 0x10)
        run.pthread(thread, "mutex_unlock", gives, gives + 10, 0x10)
        # Others have the other lock at once.
        run.pthread(thread, "mutex_lock", 7000 + asks // 10, 7001 + asks // 10, 0x20 + asks)
        run.pthread(thread, "mutex_unlock", 7500, 7510, 0x20 + asks)
    # Who has it already does not wait, and gives it back last; who only tries does not have it.
    run.pthread(first, "mutex_lock", 1100, 1110, 0x10)
    run.pthread(first, "mutex_unlock", 1200, 1210, 0x10)
    run.pthread(third, "mutex_lock", 1300, 1310, 0x10)
    path = run.write(tmp_path)
    assert waits(path) == {"pthread_lock_contention_mutex_lock": {"0.1": 3000 - 1500, "0.2": 5000 - 2000}}
    assert said(path) == ["call that makes or awaits a thread: 2, of which it is inferred which"]


def test_readers_have_a_lock_together(tmp_path):
    run, (first, second, third) = threads((200, 9000), (210, 9000))
    for thread, kind, asks, has, gives in (
        (first, "rd", 1000, 1010, 3000),
        (second, "rd", 1100, 1110, 4000),
        (third, "wr", 2000, 4010, 6000),
        (first, "rd", 5000, 6010, 6500),
    ):
        run.pthread(thread, f"rwlock_{kind}lock", asks, has, 0x10)
        run.pthread(thread, "rwlock_unlock", gives, gives + 10, 0x10)
    # It tries while a writer has it.
    run.pthread(second, "rwlock_rdlock", 4500, 4510, 0x10)
    expected = {"0.2": 4000 - 2000, "0": 6000 - 5000}
    assert waits(run.write(tmp_path)) == {"pthread_lock_contention_rwlock": expected}


def test_a_condition_variable_goes_with_the_lock_that_the_thread_has(tmp_path):
    run, (first, second) = threads((200, 9000))
    run.pthread(second, "mutex_lock", 900, 1000, 0x10)
    run.pthread(second, "cond_wait", 1000, 6200, 0x99)
    run.pthread(second, "mutex_unlock", 7000, 7100, 0x10)
    run.pthread(first, "mutex_lock", 3900, 4000, 0x10)
    run.pthread(first, "cond_signal", 4000, 4200, 0x99)
    run.pthread(first, "mutex_unlock", 6000, 6100, 0x10)
    kinds = {"pthread_lock_contention_conditional": {"0.1": 5000}, "pthread_cond_mutex_wait": {"0.1": 2000}}
    path = run.write(tmp_path)
    assert waits(path) == kinds
    assert said(path) == ["call that makes or awaits a thread: 1, of which it is inferred which"]


def test_newer_versions_do_not_say_for_which_lock_a_call_is(tmp_path):
    run, (first, second) = threads((200, 9000), older=False)
    run.pthread(first, "mutex_lock", 1000, 1010)
    run.pthread(second, "mutex_lock", 1500, 3005)
    run.pthread(first, "mutex_unlock", 3000, 3010)
    run.pthread(second, "mutex_unlock", 4000, 4010)
    # Which calls for a barrier go together is inferred in any trace.
    run.pthread(first, "barrier_wait", 5000, 7010)
    run.pthread(second, "barrier_wait", 7000, 7020)
    path = run.write(tmp_path)
    assert waits(path) == {"pthread_barrier_wait": {"0": 2000}}
    assert said(path) == [
        "call for a lock of POSIX threads: 2, whose waiting is unknown: the trace does not say for which",
        "call that makes or awaits a thread: 1, of which it is inferred which",
    ]
    # Both forms in one trace: the older one adds the addresses.
    for thread, *times in ((first, 1000, 1010, 3000, 3010), (second, 1500, 3005, 4000, 4010)):
        for kind, time, value in zip((61000008, 61000008, 61000009, 61000009), times, (16, 0, 16, 0), strict=True):
            run.events(thread, time, (kind, value))
    path = run.write(tmp_path)
    assert waits(path)["pthread_lock_contention_mutex_lock"] == {"0.1": 1500}


@pytest.mark.parametrize(("between", "waiting"), [(10_000, 1_800_000), (300_000, 0)])
def test_who_asks_again_and_again_waits(between, waiting, tmp_path):
    """Five tests find nothing; between two of them, the thread does something else for so long."""
    run = Trace(4_000_000, (((1, 1),) * 2,), ((1, 1, (1, 2)),))
    post = run.call(A, "Irecv", 100, 200)
    run.events(A, 1_000_000, (50000304, 0))
    found = 2_900_000
    run.events(A, found, (50000305, found - 1_000_000 - 5 * between), (50000304, 5), (50000003, 39))
    run.events(A, found + 1000, (50000003, 0))
    test = Call(A, "Test", found, found + 1000)
    run.state(A, 0, 4_000_000, 1)
    run.message(run.call(B, "Send", 2_800_000, 2_801_000), post, test)
    path = run.write(tmp_path)
    assert waits(path) == ({"mpi_latesender": {"0": waiting}} if waiting else {})
    tests = "call that found nothing: 5, while the thread did something else: not shown"
    assert said(path) == ([] if waiting else [tests])
    names = whywait.open(path).definitions["Region"]["name"].to_pylist()
    assert ("MPI_Test (polling)" in names) == bool(waiting)
    whywait.analyze(path).write_paraver(tmp_path / "again.prv")
    check(tmp_path / "again.prv")
    assert waits(tmp_path / "again.prv") == waits(path)
    assert "\n39   MPI_Test\n" in (tmp_path / "again.pcf").read_text()


def test_who_does_something_else_between_tests_does_not_wait(tmp_path):
    run = trace(2)
    post = run.call(A, "Irecv", 100, 200)
    run.events(A, 1000, (50000304, 0))
    run.call(A, "Put", 1500, 1600)
    run.events(A, 3900, (50000305, 2000), (50000304, 100), (50000003, 39))
    run.events(A, 4000, (50000003, 0))
    run.message(run.call(B, "Send", 3000, 3100), post, Call(A, "Test", 3900, 4000))
    path = run.write(tmp_path)
    assert waits(path) == {}
    assert "call that found nothing: 100, while the thread did something else: not shown" in said(path)
