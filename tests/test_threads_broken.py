"""Records of threads that do not fit together: a clear note and a result, whatever is missing."""

import tempfile

import pytest
import whywait
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.task_programs import task_programs
from tests.team_programs import team_programs
from tests.thread_programs import thread_programs
from tests.tracedsl import trace_from_text

TEAM = """
0: fork [0, 10]
0: !$omp parallel @a:1 [0, 10]
0.1: !$omp parallel @a:1 [0, 10]
"""
RUN = """
threads 2
0: run [0, 10]
0.1: run [0, 10]
"""
CREATED = """
threads 3
0: run [0, 10]
0: pthread_create(1) [0.1, 0.2]
0.1: worker [0.15, 5]
0.2: worker [0.5, 5]
"""


def kinds(result):
    return {one["kind"] for one in result.warnings}


def waits(result):
    return {
        (row["kind"], row["thread"]): round(row["waiting"], 6)
        for row in result.wait_states().to_pylist()
        if row["kind"] != "omp_ibarrier_wait"
    }


def costs_equal_waiting(result):
    waiting = result.metrics["waiting"].total
    rows = result.delay_costs().to_pylist()
    costs = sum(row["short_term"] + row["long_term"] for row in rows if row["class"] != "ompidle")
    assert costs == pytest.approx(waiting, rel=1e-9, abs=1e-9)


ROWS = {
    "a lock without release": (
        TEAM
        + """
        0: omp_set_lock(lock=1, order=1) [1, 2]
        0.1: omp_set_lock(lock=1, order=2) [3, 5]
        0.1: omp_unset_lock(lock=1, order=2) [6, 7]
        """,
        {"open_lock"},
        {},
    ),
    "a release without acquisition": (
        TEAM + "0: omp_unset_lock(lock=1, order=1) [4, 5]\n0.1: omp_set_lock(lock=1, order=2) [3, 5]\n"
        "0.1: omp_unset_lock(lock=1, order=2) [6, 7]",
        {"open_lock"},
        {("omp_lock_contention_api", 1): 1.0},
    ),
    "one order twice": (
        TEAM
        + """
        0: !$omp critical @a:2(order=1) [1, 4] @1, 4
        0.1: !$omp critical @a:2(order=1) [2, 6] @4, 6
        """,
        {"lock_order"},
        {("omp_lock_contention_critical", 1): 2.0},
    ),
    "orders that begin anywhere": (
        TEAM
        + """
        0: !$omp critical @a:2(order=7) [1, 4] @1, 4
        0.1: !$omp critical @a:2(order=8) [2, 6] @4, 6
        """,
        set(),
        {("omp_lock_contention_critical", 1): 2.0},
    ),
    "an order that is missing": (
        TEAM
        + """
        0: !$omp critical @a:2(order=0) [1, 4] @1, 4
        0.1: !$omp critical @a:2(order=0) [2, 6] @4, 6
        """,
        {"lock_order"},
        {("omp_lock_contention_critical", 1): 2.0},
    ),
    "a gap in the orders": (
        TEAM
        + """
        0: !$omp critical @a:2(order=1) [1, 4] @1, 4
        0.1: !$omp critical @a:2(order=3) [2, 6] @4, 6
        """,
        {"lock_order"},
        {},
    ),
    "an acquisition before the release of the owner": (
        TEAM
        + """
        0: !$omp critical @a:2(order=1) [1, 4] @1, 4
        0.1: !$omp critical @a:2(order=2) [2, 6] @3, 6
        """,
        set(),
        {("omp_lock_contention_critical", 1): 2.0},
    ),
    "waits in a circle": (
        TEAM
        + """
        0: !$omp critical @a:2(lock=2, order=1) [0.5, 9] @0.6, 8
        0: !$omp critical @a:1(lock=1, order=2) [2, 7] @6, 6.5
        0.1: !$omp critical @a:1(lock=1, order=1) [0.5, 9] @0.6, 5.5
        0.1: !$omp critical @a:2(lock=2, order=2) [2, 5] @4, 4.5
        """,
        {"circular_waits"},
        {("omp_lock_contention_critical", 0): 3.5, ("omp_lock_contention_critical", 1): 3.0},
    ),
    "records of a lock outside of all calls": (
        """
        0: raw OmpAcquireLock(lock_id=1, acquisition_order=1) @1
        0: raw OmpReleaseLock(lock_id=1, acquisition_order=1) @4
        0: f [8, 9]
        0.1: omp_set_lock(lock=1, order=2) [2, 4.5]
        0.1: omp_unset_lock(lock=1, order=2) [6, 7]
        """,
        set(),
        {("omp_lock_contention_api", 1): 2.0},
    ),
    "a lock that is owned outside of all calls": (
        """
        threads 3
        0: main [0, 10]
        0.1: pthread_mutex_lock(lock=0, order=4) [2.5, 5.5]
        0.2: pthread_mutex_lock(lock=0, order=3) [1, 2]
        0.2: pthread_mutex_unlock(lock=0, order=3) [5, 6]
        """,
        {"open_lock"},
        {("pthread_lock_contention_mutex_lock", 1): 2.5},
    ),
    "a signal without waiter": (RUN + "0: pthread_cond_signal [1, 2]", set(), {}),
    "a wait without signal": (
        RUN
        + """
        0.1: pthread_mutex_lock(lock=1, order=1) [0.9, 1]
        0.1: pthread_cond_wait(lock=1, released=1, order=2) [1, 3]
        0.1: pthread_mutex_unlock(lock=1, order=2) [4, 4.1]
        """,
        {"no_signal"},
        {("pthread_cond_late_signal", 1): 2.0},
    ),
    "a thread that never begins": (
        "threads 1\n0: run [0, 10]\n0: pthread_create(7) [1, 2]",
        {"thread_life"},
        {},
    ),
    "a thread that nobody creates": (
        CREATED + "0.2: raw ThreadBegin(thread_contingent=threads, sequence_count=7) @1",
        {"thread_life"},
        {},
    ),
    "a thread that ends without having begun": (
        CREATED + "0.2: raw ThreadEnd(thread_contingent=threads, sequence_count=7) @4",
        {"thread_life"},
        {},
    ),
    "a join of a thread that never ends": (
        CREATED + "0: raw ThreadWait(thread_contingent=threads, sequence_count=7) @9",
        {"thread_life"},
        {},
    ),
    "a thread that two threads join": (
        CREATED + "0: pthread_join(1) [6, 7]\n0.2: g [6, 9]\n0.2: pthread_join(1) [2, 4.9]",
        {"thread_life"},
        {("pthread_join_wait", 2): 2.9},
    ),
    "a task that never begins": (
        TEAM + "0: !$omp create task @a:5(task=1) [1, 1.2]\n0: !$omp taskwait @a:6 [2, 5]\n"
        "0: !$omp implicit barrier @a:7 [6, 8]\n0.1: !$omp implicit barrier @a:7 [6, 8]",
        {"open_task"},
        {},
    ),
    "a task that never completes": (
        TEAM + "0: !$omp create task @a:5(task=1) [1, 1.2]\n"
        "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number=1) @2",
        {"open_task"},
        {},
    ),
    "a switch to an unknown task": (
        TEAM + "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number=9) @2\n0.1: f [3, 4]",
        {"unknown_task"},
        {},
    ),
    "a completion of a suspended task": (
        TEAM + "0: !$omp create task @a:5(task=1) [1, 1.2]\n"
        "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number=1) @2\n"
        "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=1, generation_number=0) @3\n"
        "0.1: raw ThreadTaskComplete(thread_team=team, creating_thread=0, generation_number=1) @4",
        {"open_task"},
        {},
    ),
    "a Leave of another task": (
        TEAM + "0: !$omp create task @a:5(task=1) [1, 1.2]\n0: !$omp create task @a:5(task=2) [1.3, 1.4]\n"
        "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number=1) @2\n"
        "0.1: raw Enter(region=f) @2.1\n0.1: raw Enter(region=g) @2.2\n"
        "0.1: raw ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number=2) @3\n"
        "0.1: raw Leave(region=f) @4\n"
        "0.1: raw ThreadTaskComplete(thread_team=team, creating_thread=0, generation_number=2) @5",
        {"never_left", "open_task"},
        {},
    ),
    "a fork without join, and a team without fork": (
        """
        0: raw ThreadFork(model=OPENMP, number_of_requested_threads=2) @1
        0: f [0, 3]
        0.1: !$omp parallel @a:1 [1, 2]
        """,
        {"unknown_team"},
        {},
    ),
    "unequal numbers of barriers": (
        TEAM + "0: !$omp barrier @a:3 [1, 4]\n0: !$omp implicit barrier @a:7 [5, 9]\n"
        "0.1: !$omp implicit barrier @a:7 [3, 9]",
        {"unknown_team"},
        {},
    ),
    "a request of a collective operation that never completes": (
        "0: MPI_Ibarrier(req=1) [1, 2]\n0: f [3, 4]\n1: MPI_Ibarrier(req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]",
        {"pending_request", "incomplete_collective"},
        {},
    ),
    "a request of a collective operation that is used again": (
        (
            "0: MPI_Ibarrier(req=1) [1, 2]\n0: MPI_Ibarrier(req=1) [2, 2.5]\n0: MPI_Wait(1) [3, 4]\n"
            "1: MPI_Ibarrier(req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]"
        ),
        {"pending_request"},
        {("mpi_nbc_completion", 0): 3.0},
    ),
    "a collective operation that completes without having begun": (
        (
            "0: MPI_Wait [2, 4]\n"
            "0: raw NonBlockingCollectiveComplete(collective_op=BARRIER, communicator=world, root=0, "
            "size_sent=0, size_received=0, request_id=5) @3\n1: MPI_Ibarrier(req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]"
        ),
        {"unknown_request", "incomplete_collective"},
        {},
    ),
    "members that disagree on the root": (
        (
            "0: MPI_Ibcast(root=0, req=1) [1, 2]\n0: MPI_Wait(1) [3, 4]\n"
            "1: MPI_Ibcast(root=1, req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]"
        ),
        {"mixed_collective"},
        {},
    ),
    "a member that is missing": (
        (
            "ranks 3\n0: MPI_Ibarrier(req=1) [1, 2]\n0: MPI_Wait(1) [3, 4]\n"
            "1: MPI_Ibarrier(req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]\n2: f [1, 2]"
        ),
        {"incomplete_collective"},
        {},
    ),
    "members that disagree on the operation": (
        "0: MPI_Ibarrier(req=1) [1, 2]\n0: MPI_Wait(1) [3, 4]\n1: MPI_Iallreduce(req=1) [2, 3]\n1: MPI_Wait(1) [3, 6]",
        {"mixed_collective"},
        {},
    ),
}


@pytest.mark.parametrize(("text", "notes", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_of_the_table_gives_a_note_and_a_result(text, notes, expected, tmp_path):
    result = whywait.analyze(trace_from_text(text, tmp_path))
    assert kinds(result) >= notes
    assert waits(result) == expected
    costs_equal_waiting(result)
    # What is asked later works as well.
    for table in (result.locks, result.tasks, result.work_span, result.loops):
        table()


def test_the_path_of_a_thread_that_begins_before_its_creation_is_no_longer_than_the_run(tmp_path):
    """The thread works from 1 to 9, but its creation is recorded at 5."""
    anchor = trace_from_text(EARLY, tmp_path)
    result = whywait.analyze(anchor)
    path = {tuple(row["callpath"])[-1]: row["value"] for row in result.severities("critical_path").to_pylist()}
    assert path == pytest.approx({"main": 1.5, "pthread_join": 0.5, "worker": 8})


EARLY = """
0: main [0, 10]
0: pthread_create(1) [5, 5.5]
0: pthread_join(1) [8, 9.5]
0.1: worker [1, 9]
"""

RAW = (
    "ThreadAcquireLock(model=OPENMP, lock_id=0, acquisition_order={})",
    "ThreadReleaseLock(model=OPENMP, lock_id=0, acquisition_order={})",
    "ThreadTaskSwitch(thread_team=team, creating_thread=0, generation_number={})",
    "ThreadTaskComplete(thread_team=team, creating_thread=0, generation_number={})",
    "ThreadTaskCreate(thread_team=team, creating_thread=0, generation_number={})",
    "ThreadTeamBegin(thread_team=team)",
    "ThreadTeamEnd(thread_team=team)",
    "ThreadFork(model=OPENMP, number_of_requested_threads={})",
    "ThreadJoin(model=OPENMP)",
    "ThreadCreate(thread_contingent=threads, sequence_count={})",
    "ThreadBegin(thread_contingent=threads, sequence_count={})",
    "ThreadEnd(thread_contingent=threads, sequence_count={})",
    "ThreadWait(thread_contingent=threads, sequence_count={})",
    "NonBlockingCollectiveRequest(request_id={})",
    (
        "NonBlockingCollectiveComplete(collective_op=BARRIER, communicator=world, root=0, "
        "size_sent=0, size_received=0, request_id={})"
    ),
)


@st.composite
def broken_programs(draw, programs):
    """Return a program some of whose calls are missing, with records that do not belong into it."""
    lines = draw(programs).splitlines()
    lines = [line for line in lines if draw(st.integers(0, 7)) != 0 or not line.startswith("0")]
    for _ in range(draw(st.integers(0, 4))):
        what = draw(st.sampled_from(RAW)).format(draw(st.integers(0, 4)))
        thread = draw(st.integers(0, 1))
        lines.append(f"{'0.1' if thread else '0'}: raw {what} @{draw(st.integers(1, 200)) / 1000:.3f}")
    return "\n".join([*lines, "0: pthread_create(1) [1, 1.001]", "0.1: f [1, 1.001]"])


@settings(max_examples=40)
@given(trace=broken_programs(task_programs()))
def test_damaged_programs_with_tasks_have_costs_equal_to_their_waiting(trace):
    costs_equal_waiting(sound(trace))


@settings(max_examples=25)
@given(trace=broken_programs(team_programs()))
def test_damaged_programs_with_messages_and_locks_have_a_result(trace):
    sound(trace)


@settings(max_examples=25)
@given(trace=broken_programs(thread_programs()))
def test_damaged_programs_with_all_kinds_of_waits_have_a_result(trace):
    sound(trace)


def sound(trace):
    """Return the result of a trace whose waits and tables are possible."""
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(trace_from_text(trace, directory))
        for state in result.wait_states().to_pylist():
            assert 0 <= state["waiting"] <= state["leave"] - state["enter"] + 1e-9
        assert result.metrics["critical_path"].total <= result.facts["length"] + 1e-9
        for table in (result.locks, result.tasks, result.work_span, result.loops):
            table()
        for row in result.work_span().to_pylist():
            assert row["span"] <= row["work"] + 1e-9
            assert row["span"] <= row["burdened_span"] + 1e-9
    return result
