"""Reports of Nsight Systems that begin in the midst of the run, or say what cannot be: nothing is matched wrongly."""

from __future__ import annotations

import pytest
import whywait
from hypothesis import example, given, settings
from hypothesis import strategies as st
from whywait.cli import main
from whywait.model.selection import all_callpaths

from tests.nsight_cases import DATA, found
from tests.nsight_files import MS, WORLD, MpiReport, Report, process, thread, visits

# A clock that two sessions of a machine have in common.
SYSTEM = 1000


def analyzed(directory, *reports):
    directory.mkdir(exist_ok=True)
    for report in reports:
        report.write(directory / f"report.{report.rank}.sqlite")
    return whywait.analyze(directory)


def notes(result):
    return {what.split(":")[0].split(",")[0]: count for what, count in result.run.nsight["notes"]}


def in_window(rank, begin, calls, *, system=None):
    """Return a report with those of some calls that begin not before a time, in ms."""
    report = Report(rank, system=system)
    for name, at, until, values in calls:
        if at >= begin:
            report.mpi(name, at, until, **values)
    return report


BROADCASTS = [
    [("MPI_Bcast", 10, 25, {"rootRank": 1}), ("MPI_Bcast", 40, 55, {"rootRank": 1})],
    [("MPI_Bcast", 20, 20.1, {"rootRank": 1}), ("MPI_Bcast", 50, 50.1, {"rootRank": 1})],
]


@pytest.mark.parametrize("system", [SYSTEM, None])
@pytest.mark.parametrize("begins", [(0, 30), (30, 0)])
def test_a_member_of_a_broadcast_leaves_soon_after_its_root_came(begins, system, tmp_path):
    reports = [in_window(rank, begins[rank], BROADCASTS[rank], system=system) for rank in (0, 1)]
    assert found(analyzed(tmp_path, *reports)) == [("mpi_latebroadcast", 0, 1, 10_000_000)]


def test_operations_of_other_roots_and_sizes_are_others(tmp_path):
    # Nobody waits, and all clocks are apart: only what the calls say tells them apart.
    said = [{"rootRank": step % 3, "size": 8 << step % 5} for step in range(20)]
    calls = [("MPI_Bcast", 2 + 4 * step, 2.1 + 4 * step, values) for step, values in enumerate(said)]
    reports = [in_window(rank, begin, calls) for rank, begin in enumerate((20, 0, 9))]
    result = analyzed(tmp_path, *reports)
    (group,) = result.run.traces["groups"]
    assert (group["instances"], group["unmatched"]) == (15, 20 + 18 - 2 * 15)
    assert not found(result)


STEPS = 8


def halo(rank):
    """Return the calls of one of three ranks in a row: the first computes longer, the last is ahead of the second."""
    calls, ready = [], (24, 9, 9)[rank]
    for step in range(STEPS):
        begin = 25 * step - 15 * (rank == 2 and step > 0)
        end = 25 * step + (24.5, 24.5, 9.25)[rank]
        others = [other for other in (rank - 1, rank + 1) if 0 <= other < 3]
        for number, other in enumerate(others):
            calls.append(
                ("MPI_Irecv", begin, begin + 0.125, {"source": other, "size": 16, "requestHandle": 5 + number})
            )
        for number, other in enumerate(others):
            calls.append(
                ("MPI_Isend", begin + ready, begin + ready + 0.125, {"to": other, "requestHandle": 7 + number})
            )
        requests = [handle + number for handle in (5, 7) for number in range(len(others))]
        calls.append(("MPI_Waitall", begin + ready + 0.125, end, {"requests": requests}))
    return calls


# Where messages of the first are missing, whose they are that the others wait for may not be known.
BEGINS = st.tuples(*[st.integers(0, 25 * (STEPS - 3))] * 3).map(lambda begins: (min(begins), *begins[1:]))


@given(begins=BEGINS, system=st.sampled_from([SYSTEM, None]))
@example(begins=(25, 0, 0), system=SYSTEM)
@settings(max_examples=10, deadline=None)
def test_sends_that_return_at_once_meet_their_own_receives(begins, system, tmp_path_factory):
    reports = [in_window(rank, begins[rank], halo(rank), system=system) for rank in (0, 1, 2)]
    waits = found(analyzed(tmp_path_factory.mktemp("halo"), *reports))
    assert set(waits) == {("mpi_latesender", rank, rank - 1, 14_875_000) for rank in (1, 2)}
    assert len(waits) >= 2 * (STEPS - 2 - max(begins) // 25)


def test_sizes_tell_messages_that_are_long_on_their_way(tmp_path):
    sizes = [8, 800, 16, 40, 40, 8, 300, 24, 96, 8]
    of_size = list(enumerate(sizes))
    sends = [("MPI_Send", 10 * step, 10 * step + 0.1, {"to": 1, "size": size}) for step, size in of_size]
    receives = [("MPI_Recv", 10 * step + 35, 10 * step + 35.1, {"source": 0, "size": size}) for step, size in of_size]
    result = analyzed(tmp_path, in_window(0, 25, sends, system=SYSTEM), in_window(1, 0, receives, system=SYSTEM))
    messages = [event["msg_length"] for event in result.run.events(1).to_pylist() if event["type"] == "MpiRecv"]
    assert messages == sizes[3:]


@pytest.mark.parametrize("system", [SYSTEM, None])
def test_an_operation_that_some_left_before_others_came_is_none(system, tmp_path):
    # Barriers of two communicators of which nothing is recorded: each process has one handle only.
    spans = [(5, 11), (10, 11), (45, 51), (50, 51)]
    reports = [
        MpiReport(rank, system=system).mpi("MPI_Barrier", *span, commHandle=WORLD + rank)
        for rank, span in enumerate(spans)
    ]
    result = analyzed(tmp_path, *reports)
    assert not found(result)
    assert notes(result)["calls of operations that not all members take part in"] == 4


def test_what_times_exclude_once_is_unmatched_once(tmp_path):
    calls = [("MPI_Allreduce", 2 + 0.5 * step, 2.25 + 0.5 * step, {"recvSize": 8}) for step in range(120)]
    late = [
        (name, at + 0.3 * (place == 60), until + 0.2, values) for place, (name, at, until, values) in enumerate(calls)
    ]
    reports = []
    for rank, own in enumerate((calls, late)):
        report = MpiReport(rank, system=SYSTEM)
        for name, at, until, values in own:
            report.mpi(name, at, until, **values)
        reports.append(report)
    (group,) = analyzed(tmp_path, *reports).run.traces["groups"]
    assert (group["instances"], group["unmatched"]) == (119, 2)


def cut(report, table, name, begin, **values):
    """Add a row whose end the session cuts."""
    return report.add(table, start=round(begin * MS), end=None, **values, **name)


def test_what_the_session_cuts_ends_with_its_thread(tmp_path):
    report = MpiReport(0, system=SYSTEM)
    of_thread = {"globalTid": thread(0)}
    cut(report, "MPI_P2P_EVENTS", of_thread, 5, textId=report.name("MPI_Recv"), commHandle=WORLD, tag=0, remoteRank=1)
    cut(report, "OSRT_API", of_thread, 3, nameId=report.name("poll"))
    of_stream = {"globalPid": process(0), "deviceId": 0, "contextId": 1, "streamId": 7}
    for begin in (10, 20):
        cut(report, "CUPTI_ACTIVITY_KIND_KERNEL", of_stream, begin, shortName=report.name("kernel"))
    result = analyzed(tmp_path, report, MpiReport(1, system=SYSTEM).mpi("MPI_Send", 80, 80.5, to=0))
    assert found(result) == [("mpi_latesender", 0, 1, 75_000_000)]
    assert not [text for *_, text in result.run.oddities if "left out" in text]
    ends = {(name, begin): end for name, begin, end in visits(result.run)}
    assert (ends["MPI_Recv", 5], ends["poll", 3]) == (91, 91)
    locations = result.run.definitions["Location"].to_pylist()
    (stream,) = [place for place, row in enumerate(locations) if "7" in row["name"]]
    assert visits(result.run, stream) == [("kernel", 10, 20), ("kernel", 20, 91)]


def test_a_persistent_request_that_is_complete_is_not_completed_again(tmp_path):
    receiver, sender = MpiReport(0), MpiReport(1)
    receiver.mpi("MPI_Recv_init", 2, 2.1, source=1, requestHandle=7).mpi("MPI_Start", 3, 3.1, requests=[7])
    receiver.mpi("MPI_Wait", 4, 21, requests=[7]).mpi("MPI_Irecv", 30, 30.1, source=1, requestHandle=8, tag=4)
    receiver.mpi("MPI_Waitall", 31, 51, requests=[7, 8])
    sender.mpi("MPI_Send", 20, 20.1, to=0).mpi("MPI_Send", 50, 50.1, to=0, tag=4)
    waits = [(rank, cause, length) for kind, rank, cause, length in found(analyzed(tmp_path, receiver, sender))]
    assert waits == [(0, 1, 16_000_000), (0, 1, 19_000_000)]


@pytest.mark.parametrize("nobody", [-1, -2])
@pytest.mark.parametrize("says", [True, False])
def test_nothing_is_received_from_nobody(says, nobody, tmp_path):
    # A chain: the first receives from nobody, and the last sends to nobody, if that is recorded.
    reports = [MpiReport(0), MpiReport(1), MpiReport(2)]
    for rank, report in enumerate(reports):
        begin, end = (10, 20, 5)[rank], 30 + rank
        if rank < 2 or says:
            report.mpi("MPI_Sendrecv", begin, end, to=rank + 1 if rank < 2 else nobody)
        if rank == 2 and not says:
            report.mpi("MPI_Recv", begin, end, source=rank - 1)
        else:
            report.mpi("MPI_Sendrecv", begin, end, source=rank - 1 if rank else nobody)
    result = analyzed(tmp_path, *reports)
    assert ("mpi_latesender", 2, 1, 15_000_000) in found(result)
    assert "sends and receives without the other one" not in notes(result)


def checked(directory, capsys):
    """Return what `info --check` says, but for the last line, and that."""
    assert main(["info", "--check", str(directory)]) == 0
    *said, last = capsys.readouterr().out.splitlines()
    return said, last.removeprefix(f"{directory}: ")


def test_what_has_no_partner_is_a_finding(tmp_path, capsys):
    silent = Report(1, system=SYSTEM).range("work", 1, 80)
    calls = MpiReport(0, system=SYSTEM).mpi("MPI_Recv", 2, 31, source=1).mpi("MPI_Barrier", 40, 60)
    analyzed(tmp_path, calls, silent)
    said, verdict = checked(tmp_path, capsys)
    assert said[:3] == [
        "odd: sends and receives without the other one",
        "odd: calls of operations that not all members take part in",
        "odd: ranks without calls of MPI, which others have: nsys profile --trace=mpi,cuda,nvtx",
    ]
    assert verdict == "readable, with oddities"


def test_what_is_inferred_is_a_finding_with_its_number(capsys):
    said, _ = checked(DATA / "requests", capsys)
    assert "odd: receives from any source or with any tag, by when messages were sent (3 times)" in said
    assert "odd: requests whose completion is not traced: nobody waits for them (8 times)" in said


def test_reports_in_which_all_have_partners_are_clean(tmp_path, capsys):
    analyzed(tmp_path, *[MpiReport(rank, system=SYSTEM).mpi("MPI_Barrier", 5 + rank, 7) for rank in (0, 1)])
    assert checked(tmp_path, capsys)[1] == "clean"


def test_a_program_without_functions_of_its_own_has_those_of_libraries(tmp_path):
    result = analyzed(tmp_path, *[MpiReport(rank, system=SYSTEM).mpi("MPI_Barrier", 5, 7) for rank in (0, 1)])
    with pytest.raises(whywait.Error, match=r"the program has .*MPI_Barrier.*; whywait tree"):
        all_callpaths(result.tree, "work")
