"""What one thread of a process begins and another one completes."""

import whywait

from tests.results import outcome
from tests.tracedsl import trace_from_text

TEXT = """
    threads 2
    ranks 2
    0: main [0, 10]
    0.1: main [0, 10]
    1: main [0, 10]
"""


def analyzed(text, directory):
    return whywait.analyze(trace_from_text(TEXT + text, directory), queues="estimate")


def test_a_receive_that_another_thread_completes_is_no_oddity(tmp_path):
    text = """
        0: MPI_Irecv(1, req=7) [1, 2]
        0.1: MPI_Wait [3, 6]
        0.1: raw MpiIrecv(sender=1, communicator=world, msg_tag=0, msg_length=8, request_id=7) @ 6
        1: MPI_Send(0) [5, 6]
    """
    result = analyzed(text, tmp_path)
    assert not {one["kind"] for one in result.warnings} & {"unknown_request", "pending_request"}
    [wait] = [row for row in result.wait_states().to_pylist() if row["kind"] == "mpi_latesender"]
    assert (wait["rank"], wait["thread"], wait["waiting"]) == (0, 1, 2.0)


def test_the_thread_that_posts_late_is_the_cause(tmp_path):
    text = """
        1: MPI_Ssend(0) [1, 5]
        0: MPI_Irecv(1, req=7) [4, 4.5]
        0.1: MPI_Wait [4.6, 6]
        0.1: raw MpiIrecv(sender=1, communicator=world, msg_tag=0, msg_length=8, request_id=7) @ 6
    """
    result = analyzed(text, tmp_path)
    [wait] = [row for row in result.wait_states().to_pylist() if row["kind"] == "mpi_latereceiver"]
    assert (wait["rank"], wait["waiting"]) == (1, 3.0)
    assert (wait["cause_rank"], wait["cause_thread"], wait["cause_callpath"][-1]) == (0, 0, "MPI_Irecv")


def test_a_send_that_a_later_thread_completes_waits_there(tmp_path):
    text = """
        0: MPI_Isend(1, req=3) [1, 2]
        0.1: MPI_Wait [3, 6]
        0.1: raw MpiIsendComplete(request_id=3) @ 6
        1: MPI_Recv(0) [5, 6]
    """
    result = analyzed(text, tmp_path)
    assert not {one["kind"] for one in result.warnings} & {"unknown_request", "pending_request"}
    [wait] = [row for row in result.wait_states().to_pylist() if row["kind"] == "mpi_latereceiver"]
    assert (wait["rank"], wait["thread"], wait["callpath"][-1], wait["waiting"]) == (0, 1, "MPI_Wait", 2.0)


def test_an_earlier_thread_completes_as_well(tmp_path):
    text = """
        0.1: MPI_Isend(1, req=3) [1, 2]
        0: MPI_Wait [3, 4]
        0: raw MpiIsendComplete(request_id=3) @ 4
        1: MPI_Recv(0) [1, 6]
    """
    assert not {one["kind"] for one in analyzed(text, tmp_path).warnings} & {"unknown_request", "pending_request"}


def test_what_nobody_begins_or_completes_still_is(tmp_path):
    text = """
        0: MPI_Isend(1, req=3) [1, 2]
        0.1: MPI_Wait [3, 6]
        0.1: raw MpiIsendComplete(request_id=4) @ 6
        1: MPI_Recv(0) [1, 6]
    """
    kinds = {one["kind"]: one["count"] for one in analyzed(text, tmp_path).warnings}
    assert (kinds["unknown_request"], kinds["pending_request"]) == (1, 1)


def test_barriers_without_a_team_say_why_no_wait_is_found(tmp_path):
    text = "threads 2\n0: main [0, 9]\n0.1: main [0, 9]\n0: !$omp barrier [1, 5]\n0.1: !$omp barrier [4, 5]"
    result = whywait.analyze(trace_from_text(text, tmp_path))
    assert [(one["kind"], one["count"]) for one in result.warnings] == [("barrier_without_team", 2)]


def test_a_warning_says_how_much_rests_on_an_assumption(tmp_path):
    text = """
        0: main [0, 10]
        0: raw Enter(region=task) @ 2
        0: work [3, 4]
        0: MPI_Send(1) [5, 6]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    first = result.warnings[0]
    assert first["kind"] == "never_left"
    assert "; 1 case, of 8.00 s, rests on this assumption" in first["text"]


def test_nested_teams_idle_only_while_the_first_thread_is_alone(tmp_path):
    """Thread 0 works for 1 s outside of teams; between its inner teams it is a thread of the outer one."""
    trace = """
    threads 2
    0: f [0, 1]
    0: fork [1, 9]
    0: !$omp parallel @a:1 [1, 9]
    0: fork [2, 3]
    0: !$omp parallel @a:2 [2, 3]
    0: g [3, 5]
    0: fork [5, 6]
    0: !$omp parallel @a:2 [5, 6]
    0.1: !$omp parallel @a:1 [1, 1.5]
    0.1: !$omp parallel @a:2 [2, 3]
    0.1: !$omp parallel @a:2 [5, 6]
    """
    costs = outcome(trace_from_text(trace, tmp_path)).cells["delay_ompidle"]
    assert costs == {(("program", "f"), 0, 0): 1.0}
