"""Exports of Nsight Systems: waits are those of the programs, nothing of the environment is shown, damage is said."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections import defaultdict
from contextlib import closing

import numpy as np
import pytest
import whywait
from whywait.cli import main
from whywait.hypotheses import Scale

from tests.nsight_cases import DATA, case, found, right
from tests.nsight_files import PHRASE, START, MpiReport, Report, process, thread, visits

NCCL = DATA / "nccl"


def copied(source, to):
    shutil.copytree(source, to)
    for file in to.iterdir():
        file.chmod(0o644)
    return to


def costs(result, metrics=("delay_ccl", "delay_ccl_longterm")):
    """Return the costs of waits by rank and call path, in ms."""
    of_all = defaultdict(float)
    for metric in metrics:
        key, value = result.profile.cells(metric)
        position, location = np.divmod(key, result.profile.locations)
        for callpath, where, cost in zip(result.profile.tree.preorder[position], location, value, strict=True):
            rank, path = int(result.places.rank[where]), "/".join(result.tree.path(int(callpath)))
            of_all[rank, path] += float(cost) * 1e3
    return of_all


@pytest.mark.parametrize(
    "name", ["nccl", "requests", "late_sender", "late_sender_2023", "late_sender_2022", "halo", "subcomms"]
)
def test_waits_are_those_of_the_program(name):
    assert found(whywait.analyze(case(name))) == right(name)


def test_the_loader_of_the_late_rank_pays_for_all_waits_of_nccl():
    result = whywait.analyze(NCCL)
    of_all = costs(result)
    assert of_all[2, "loader"] == pytest.approx(225, rel=0.01)
    assert "Rank 2 makes the other 3 GPUs wait 25.0 ms in each of 3 iterations" in str(result.findings()[0])
    # Two kernels and one more, an operation, all without waiting.
    assert {group["instances"] for group in result.run.traces["groups"]} == {3}


@pytest.mark.parametrize("name", ["late_sender", "late_sender_2023", "late_sender_2022"])
def test_the_slow_rank_pays_for_late_messages(name):
    of_all = costs(whywait.analyze(case(name)), ["delay_latesender", "delay_latesender_longterm"])
    assert of_all[1, "work"] == pytest.approx(225, rel=0.01)


def test_the_slow_rank_pays_for_late_operations():
    metrics = [f"delay_{kind}{term}" for kind in ("n2n", "12n", "barrier") for term in ("", "_longterm")]
    assert costs(whywait.analyze(case("subcomms")), metrics)[3, "assemble"] == pytest.approx(135, rel=0.01)


def test_the_slow_kernel_pays_for_what_it_takes_longer_than_those_of_other_ranks():
    metrics = [f"delay_{kind}{term}" for kind in ("latesender", "barrier") for term in ("", "_longterm")]
    assert costs(whywait.analyze(case("halo")), metrics)[2, "stencil"] == pytest.approx(180, rel=0.01)


@pytest.mark.parametrize(
    ("name", "place", "factor", "saved"),
    [("late_sender", "work@1", 5 / 30, 75), ("halo", "stencil@2", 9 / 24, 60), ("nccl", "loader@2", 5 / 30, 75)],
)
def test_without_what_is_late_the_run_is_as_much_shorter(name, place, factor, saved):
    result = whywait.analyze(case(name))
    assert whywait.whatif(result, [Scale(place, factor)]).saved * 1e3 == pytest.approx(saved, rel=0.01)


def test_the_answer_is_why_hosts_wait_and_not_that_their_devices_do():
    verdict = whywait.analyze(case("halo")).findings().verdict()
    assert "stencil takes up to 1.9 times as long as on average (on rank 2)" in verdict


def test_what_mpi_does_not_say_is_said(capsys):
    assert main(["info", str(DATA / "requests")]) == 0
    said = capsys.readouterr().out
    for words in (
        "MPI                 read by NVIDIA's published schema, not yet tested with a recorded file",
        "3 receives from any source or with any tag, by when messages were sent",
        "4 processes whose MPI_COMM_WORLD is the handle that no record explains",
        "8 requests whose completion is not traced: nobody waits for them",
    ):
        assert words in said


def test_own_code_with_calls_that_are_not_traced_is_said_to_have_them(capsys):
    assert main(["explain", str(DATA / "requests")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(
        "Rank 1 completes requests in calls that are not traced, such as MPI_Test: their time may be part of this work."
    )
    assert main(["explain", str(case("late_sender"))]) == 0
    assert "not traced" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["nccl", "requests", "late_sender_2022", "late_sender_2023"])
def test_no_output_has_variables_of_the_environment(name, tmp_path, capsys):
    trace, result = str(case(name)), str(tmp_path / "result")
    for arguments in (
        ["info", trace, "--json"],
        ["info", "--check", trace],
        ["analyze", trace, "-o", result],
        ["findings", trace, "--json"],
        ["explain", trace],
        ["export", "tables", trace, "-o", str(tmp_path / "tables")],
        ["export", "paraver", trace, "-o", str(tmp_path / "run.prv")],
        ["export", "speedscope", trace, "-o", str(tmp_path / "run.speedscope.json")],
        ["export", "html", result, "-o", str(tmp_path / "page.html")],
        ["clocks", trace, "-o", str(tmp_path / "archive")],
        ["export", "perfetto", trace, "-o", str(tmp_path / "run.pftrace")],
    ):
        assert main(arguments) == 0, arguments
    said = capsys.readouterr()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 10
    for content in (said.out.encode(), said.err.encode(), *(file.read_bytes() for file in files)):
        assert not any(secret in content for secret in (PHRASE.encode(), b"API_KEY", b"TOKEN="))


# Files


def test_two_runs_in_one_directory_are_refused(tmp_path):
    for rank in range(2):
        Report(rank).range("work", 1, 4).write(tmp_path / f"a.{rank}.sqlite")
    Report(1).range("work", 2, 3).write(tmp_path / "b.1.sqlite")
    with pytest.raises(whywait.UsageError, match=r"rank 1 is in a.1.sqlite and in b.1.sqlite"):
        whywait.open(tmp_path)
    Report(2, start=START + 10**12).range("work", 2, 3).write(tmp_path / "b.1.sqlite")
    with pytest.raises(
        whywait.UsageError, match=r"different runs: a.[01].sqlite ends 999.998 s before b.1.sqlite begins"
    ):
        whywait.open(tmp_path)


def test_a_report_without_the_program_is_refused(tmp_path):
    path = Report(says_rank=False).write(tmp_path / "report.sqlite")
    with pytest.raises(whywait.UsageError, match="record with nsys profile --trace=mpi,cuda,nvtx"):
        whywait.open(path)


def test_ranks_are_those_of_mpi_or_of_names(tmp_path):
    for number in (2, 10, 9):
        Report(number, says_rank=False).range("work", 1, 4).write(tmp_path / f"report.{number}.sqlite")
    run = whywait.open(tmp_path)
    assert [rank["rank"] for rank in run.traces["ranks"]] == [2, 9, 10]
    assert run.traces["missing"] == [0, 1, 3, 4, 5, 6, 7, 8]
    Report(5).range("work", 1, 4).write(tmp_path / "report.9.sqlite")
    run = whywait.open(tmp_path)
    assert [(rank["rank"], rank["file"]) for rank in run.traces["ranks"]] == [
        (0, "report.10.sqlite"),
        (1, "report.2.sqlite"),
        (5, "report.9.sqlite"),
    ]
    assert sum("is a guess by the order of names" in text for _, _, text in run.oddities) == 2


def test_sessions_of_a_node_are_as_far_apart_as_on_its_clock(tmp_path):
    Report(0, start=START, system=5_000).range("work", 1, 4).write(tmp_path / "report.0.sqlite")
    Report(1, start=START + 77, system=6_000).range("work", 1, 4).write(tmp_path / "report.1.sqlite")
    run = whywait.open(tmp_path)
    begins = [run.events(location).to_pylist()[0]["time"] - START for location in range(2)]
    assert begins == [1_000_000, 1_001_000]
    assert not run.nsight["separate_clocks"]
    Report(1, start=START + 77).range("work", 1, 4).write(tmp_path / "report.1.sqlite")
    Report(0, start=START).range("work", 1, 4).write(tmp_path / "report.0.sqlite")
    assert whywait.open(tmp_path).nsight["separate_clocks"]


# Threads and devices


def test_ranges_and_calls_are_nested(tmp_path):
    report = Report()
    report.range("epoch", 0, 20).range("step 1", 1, 9).range("step 2", 10, 19).range("aten::add, op_id = 7", 2, 3)
    report.range("aten::add, op_id = 9", 11, 12).range("open", 19.5, None)
    report.call("cudaLaunchKernel_v7000", 4, 5, 1).kernel("gemm", 5, 8, 1)
    report.range("loose", 13, 14, kind=60).range("across", 8, 12, kind=60).range(
        "of another", 16, 17, kind=60, endGlobalTid=1
    )
    report.range("mark", 2, None, kind=34)
    run = whywait.open(report.write(tmp_path / "report.sqlite"))
    add = "aten::add, op_id = N"
    assert visits(run) == [
        ("epoch", 0, 20),
        ("step", 1, 9),
        (add, 2, 3),
        ("cudaLaunchKernel", 4, 5),
        ("step", 10, 19),
        (add, 11, 12),
        ("loose", 13, 14),
        ("open", 19.5, 20),
    ]
    assert run.traces["steps"] == [1, 2]
    assert visits(run, 1) == [("gemm", 5, 8)]
    paths = {tuple(row["callpath"]) for row in whywait.analyze(run).callpaths().to_pylist()}
    assert ("epoch", "step", "gemm") in paths
    assert ("aten::add, op_id = 7", 2, 3) in visits(whywait.open(run.path, paths="all"))


def test_work_is_launched_by_the_call_of_its_own_process(tmp_path):
    report = Report()
    report.range("mine", 0, 9).call("cudaLaunchKernel_v7000", 1, 2, 7).kernel("of rank 0", 3, 4, 7)
    report.rank = 1
    report.add("MPI_RANKS", globalTid=thread(1), rank=1)
    report.range("other", 0, 9).call("cudaLaunchKernel_v7000", 2, 3, 7).kernel("of rank 1", 4, 5, 7)
    report.kernel("without a launch", 6, 7, 8)
    result = whywait.analyze(report.write(tmp_path / "report.sqlite"))
    paths = {tuple(row["callpath"]) for row in result.callpaths().to_pylist()}
    assert {("mine", "of rank 0"), ("other", "of rank 1"), ("without a launch",)} <= paths
    assert [rank["unlaunched"] for rank in result.run.traces["ranks"]] == [0, 1]


def test_synchronizations_name_streams_and_events(tmp_path):
    report = Report()
    where = {"deviceId": 0, "globalPid": process()}
    report.call("cudaLaunchKernel", 0, 1, 1).kernel("first", 1, 5, 1, stream=7)
    report.call("cudaEventRecord", 1, 2, 2).add(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT", **where, streamId=7, correlationId=2, eventId=3, eventSyncId=40
    )
    report.call("cudaLaunchKernel", 2, 3, 3).kernel("second", 5, 15, 3, stream=7)
    report.call("cudaLaunchKernel", 3, 3.5, 6).kernel("elsewhere", 4, 20, 6, stream=9)
    report.call("cudaEventSynchronize", 4, 6, 4).add(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **where, correlationId=4, syncType=1, eventId=3, eventSyncId=40
    )
    report.call("cudaStreamSynchronize", 7, 16, 5).add(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **where, correlationId=5, syncType=3, streamId=7
    )
    path = report.write(tmp_path / "report.sqlite")

    def waits(run):
        rows = whywait.analyze(run).wait_states().to_pylist()
        own = [row for row in rows if row["kind"] == "gpu_host_wait"]
        return [(row["path"], row["cause_callpath"][-1]) for row in own]

    # Not for the second kernel or for the other stream, which run longer.
    right = [("cudaEventSynchronize", "first"), ("cudaStreamSynchronize", "second")]
    assert sorted(waits(path)) == right
    with closing(sqlite3.connect(path)) as base:
        for table in ("CUDA_EVENT", "SYNCHRONIZATION"):
            base.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET eventSyncId = NULL")
        base.commit()
    assert sorted(waits(path)) == right


def test_each_process_may_call_its_device_the_first(tmp_path):
    def uuids(*, is_said):
        report = Report(0)
        for number in range(2):
            report.add("TARGET_INFO_GPU", id=number, name="H100", uuid=f"GPU-{number}")
        for rank in range(2):
            report.rank = rank
            report.add("MPI_RANKS", globalTid=thread(rank), rank=rank)
            report.kernel("ncclDevKernel_AllReduce", 1, 9 - rank)
            if is_said:
                number = 100 + rank
                report.add("TARGET_INFO_CUDA_DEVICE", gpuId=rank, cudaId=0, pid=number, uuid=f"GPU-{rank}")
        run = whywait.open(report.write(tmp_path / "report.sqlite"))
        return {row["string_value"] for row in run.definitions["SystemTreeNodeProperty"].to_pylist()}

    assert uuids(is_said=True) == {"GPU-0", "GPU-1"}
    assert uuids(is_said=False) == {"node0/0 of rank 0", "node0/0 of rank 1"}


def test_a_range_that_the_session_cuts_ends_with_its_thread(tmp_path):
    report = MpiReport().range("solve", 2, None).mpi("MPI_Barrier", 50, 60)
    run = whywait.open(report.write(tmp_path / "report.sqlite"))
    assert ("solve", 2, 91) in visits(run)
    assert ("MPI_Barrier", 50, 60) in visits(run)


def test_copies_have_the_names_of_other_formats(tmp_path):
    report = Report().range("work", 0, 1)
    for number, kind in enumerate((1, 2, 8, 10)):
        at = {"start": number * 10**6, "end": number * 10**6 + 5, "globalPid": process()}
        report.add("CUPTI_ACTIVITY_KIND_MEMCPY", **at, deviceId=0, contextId=1, streamId=7, copyKind=kind)
    run = whywait.open(report.write(tmp_path / "report.sqlite"))
    assert [name for name, _, _ in visits(run, 1)] == [
        "copy to device",
        "copy to host",
        "copy on device",
        "copy between devices",
    ]


# NCCL


COMM = 0xABCDEF
LAYOUTS = {
    1: [("NCCL communicator ID", 18, None), ("No. of ranks", 5, 8), ("Rank", 5, 12)],
    2: [("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Root", 5, 16)],
    3: [("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Peer rank", 5, 16)],
}


def payload(layout, form, *values):
    data = struct.pack("<" + form, *values)
    return struct.pack("<QQQQ", 1, layout, len(data), 32) + data


class NcclReport(Report):
    """A report with calls of NCCL: a call, its launch, and its kernel, in ms."""

    def __init__(self, rank, *, size=None, comm_rank=None):
        super().__init__(rank)
        self.add("NVTX_EVENTS", start=0, eventType=75, text="NCCL", domainId=1, globalTid=thread(rank))
        for layout, entries in LAYOUTS.items():
            for number, (name, kind, offset) in enumerate(entries):
                self.add(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                    domainId=1,
                    schemaId=layout,
                    idx=number,
                    type=kind,
                    name=name,
                    offset=offset,
                )
        self.correlation = 0
        if size is not None:
            self.said("ncclCommInitRank", 0.1, 0.2, payload(1, "Qii", COMM, size, comm_rank))

    def said(self, name, begin, end, data=None):
        return self.range(name, begin, end, domainId=1, binaryData=data)

    def launched(self, kernel, at, begin, end):
        self.correlation += 1
        return self.call("cuLaunchKernelEx", at, at + 0.1, self.correlation).kernel(
            kernel, begin, end, self.correlation, stream=20
        )


def test_a_broadcast_waits_for_its_root_in_the_communicator(tmp_path):
    # The communicator has the ranks in the other order.
    for rank in range(3):
        report = NcclReport(rank, size=3, comm_rank=2 - rank)
        report.said("ncclBroadcast", 1, 1.5, payload(2, "QQi", COMM, 64, 2)).launched(
            "ncclDevKernel_Broadcast", 1.1, 2, 11
        )
        if rank == 0:
            report.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["start"] = 10_000_000
        report.write(tmp_path / f"report.{rank}.sqlite")
    result = whywait.analyze(tmp_path)
    assert found(result) == [("ccl_late_broadcast", 1, 0, 8_000_000), ("ccl_late_broadcast", 2, 0, 8_000_000)]
    assert not result.run.nsight["notes"]


def test_messages_of_a_group_wait_for_the_longest(tmp_path):
    # A ring: each sends to the next one and receives from the one before, rank 1 late.
    for rank in range(3):
        report = NcclReport(rank, size=3, comm_rank=rank)
        report.said("ncclSend", 1, 1.1, payload(3, "QQi", COMM, 64, (rank + 1) % 3))
        report.said("ncclRecv", 1.2, 1.3, payload(3, "QQi", COMM, 64, (rank - 1) % 3))
        report.said("ncclGroupEnd", 1.4, 2).launched("ncclDevKernel_SendRecv", 1.5, 10 if rank == 1 else 2, 11)
        report.write(tmp_path / f"report.{rank}.sqlite")
    result = whywait.analyze(tmp_path)
    (group,) = result.run.traces["groups"]
    assert (group["messages"], group["message_parts"]) == (3, 6)
    waits = {(rank, cause): waiting for _, rank, cause, waiting in found(result)}
    assert waits[2, 1] == waits[0, 1] == 8_000_000


def test_a_group_has_a_kernel_for_each_communicator(tmp_path):
    for rank in range(2):
        report = NcclReport(rank)
        for comm in (COMM, COMM + 1):
            report.said("ncclAllReduce", 1 + (comm > COMM) / 10, 1.05, payload(2, "QQi", comm, 64, 0))
        report.said("ncclGroupEnd", 1.4, 3)
        for number in range(2):
            report.launched("ncclDevKernel_AllReduce", 1.5 + number, 2 + rank + 10 * number, 9 + 10 * number)
        report.write(tmp_path / f"report.{rank}.sqlite")
    run = whywait.open(tmp_path)
    assert sorted((group["name"], group["instances"]) for group in run.traces["groups"]) == [
        (f"group {COMM:#x}", 1),
        (f"group {COMM + 1:#x}", 1),
    ]


def test_kernels_that_say_nothing_are_matched_by_order(tmp_path):
    moved = copied(NCCL, tmp_path / "moved")
    for file in moved.glob("*.sqlite"):
        with closing(sqlite3.connect(file)) as base:
            base.execute("UPDATE NVTX_EVENTS SET binaryData = NULL")
            base.commit()
    result = whywait.analyze(moved)
    assert found(result) == right("nccl")
    assert {group["method"] for group in result.run.traces["groups"]} == {"order of all operations (inferred)"}
    assert any("--include-blobs=true" in text for _, _, text in result.run.oddities)


def test_of_a_run_with_one_report_no_rank_is_blamed(tmp_path):
    report = NcclReport(0, size=2, comm_rank=0)
    for at in (1, 31):
        report.said("ncclAllReduce", at, at + 0.5, payload(2, "QQi", COMM, 8, 0))
        report.launched("ncclDevKernel_AllReduce", at + 0.1, at + 1, at + 29)
    report.write(tmp_path / "report.0.sqlite")
    result = whywait.analyze(tmp_path)
    assert not found(result)
    assert (result.run.traces["world_size"], result.run.traces["missing"]) == (2, [1])
    assert result.run.traces["groups"][0]["partial"]
    account = [(line["row"], line["time"]) for line in result.device_account().to_pylist()]
    assert ("comm.unseen", pytest.approx(0.028)) in account


def test_users_name_kernels_that_communicate(tmp_path):
    for rank in range(2):
        report = Report(rank).range("work", 0, 1).kernel("my_sum", 2 + 3 * rank, 9)
        report.write(tmp_path / f"report.{rank}.sqlite")
    assert not found(whywait.analyze(tmp_path))
    run = whywait.open(tmp_path, comm_kernels=["my_.*=all_reduce"])
    assert found(whywait.analyze(run)) == [("ccl_wait_nxn", 0, 1, 3_000_000)]


def test_what_a_report_has_is_said(tmp_path, capsys):
    report = Report().range("work", 1, 4)
    report.add("UCP_SUBMIT_EVENTS", start=1, end=1, globalTid=thread())
    assert main(["info", str(report.write(tmp_path / "report.sqlite"))]) == 0
    said = capsys.readouterr().out
    report.add("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", start=2, end=3, globalTid=thread(), nameId=report.name("acc"))
    assert not whywait.open(report.write(tmp_path / "report.sqlite")).oddities
    for words in (
        "Nsight Systems      2025.1.1.1",
        "not analyzed        UCP_SUBMIT_EVENTS",
        "NVTX_EVENTS 1",
        "1 of 1",
    ):
        assert words in said


# Clocks


def totals(result):
    """Return the waiting of each rank by pattern, in us."""
    of_all = defaultdict(float)
    for pattern, rank, _, waiting in found(result):
        of_all[pattern, rank] += waiting / 1000
    return of_all


def test_clocks_of_nodes_are_corrected():
    result = whywait.analyze(case("clocks"))
    assert result.clocks["done"] == ["lines"]
    truth = defaultdict(float)
    for pattern, rank, _, waiting in right("clocks"):
        truth[pattern, rank] += waiting / 1000
    ours = totals(result)
    assert {key: ours[key] for key in truth} == pytest.approx(truth, abs=30)
    uncorrected = totals(whywait.analyze(case("clocks"), clocks="measured"))
    assert abs(uncorrected["mpi_latesender", 1] - truth["mpi_latesender", 1]) > 20_000


def test_reports_that_nothing_relates_are_refused(tmp_path):
    def reports(*, meet):
        # As before nsys 2022: no report says when its session began.
        both = [
            MpiReport(0, start=None).mpi("MPI_Send", 2, 3, to=1),
            MpiReport(1, start=None).mpi("MPI_Recv", 1, 4, source=0),
        ]
        return [report.mpi("MPI_Barrier", 5, 6) if meet else report for report in both]

    with pytest.raises(
        whywait.UsageError, match=r"report.0.sqlite does not say when its session began.*export it again"
    ):
        whywait.open(written(tmp_path, *reports(meet=False)))
    whywait.open(tmp_path / "report.0.sqlite")
    assert whywait.open(written(tmp_path, *reports(meet=True))).nsight["separate_clocks"]


@pytest.mark.parametrize("late", [5_000_000, -40_000_000])
def test_sessions_that_no_clock_relates_are_corrected(late, tmp_path):
    moved = copied(case("late_sender_2022"), tmp_path / "moved")
    with closing(sqlite3.connect(moved / "report.2.sqlite")) as base:
        base.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", [late])
        base.commit()
    result = whywait.analyze(moved)
    assert result.clocks["done"] == ["lines"]
    assert found(result) == right("late_sender_2022")
    assert found(whywait.analyze(moved, clocks="measured")) != right("late_sender_2022")


# MPI


def written(directory, *reports):
    for report in reports:
        report.write(directory / f"report.{report.rank}.sqlite")
    return directory


def notes(result):
    known = {what.split(":")[0].split(",")[0]: count for what, count in result.run.nsight["notes"]}
    # No export has a record of this handle.
    known.pop("processes whose MPI_COMM_WORLD is the handle that no record explains", None)
    return known


def test_sessions_of_a_node_that_no_clock_relates_have_one_each(tmp_path):
    # Two nodes. Within each, sessions differ by less than barriers take, so that no constraint shows it.
    late = [0, 900_000, 5_000_000, 5_700_000]
    reports = [MpiReport(rank, start=START + by) for rank, by in enumerate(late)]
    for rank, report in enumerate(reports):
        (host,) = [row for row in report.rows["TARGET_INFO_SYSTEM_ENV"] if row["name"] == "Hostname"]
        host["value"] = f"node{rank // 2}"
        for step in range(4):
            report.mpi("MPI_Barrier", 5 + 20 * step + (step + rank) % 4 * 3, 15 + 20 * step)
    result = whywait.analyze(written(tmp_path, *reports))
    waits = [wait for _, _, _, wait in found(result)]
    assert sorted(waits) == sorted([3_000_000, 6_000_000, 9_000_000] * 4)
    # An archive has them as well.
    assert main(["clocks", str(tmp_path), "--clocks", "measured", "-o", str(tmp_path / "archive")]) == 0
    assert found(whywait.analyze(tmp_path / "archive", clocks="lines")) == found(result)


def test_messages_meet_in_the_order_of_posting_not_of_completion(tmp_path):
    receiver = MpiReport(0)
    receiver.mpi("MPI_Irecv", 1, 1.1, source=1, requestHandle=50).mpi("MPI_Irecv", 1.2, 1.3, source=1, requestHandle=51)
    receiver.mpi("MPI_Wait", 10, 31, requests=[51]).mpi("MPI_Wait", 32, 33, requests=[50])
    sender = MpiReport(1)
    sender.mpi("MPI_Isend", 5, 5.1, to=0, requestHandle=7).mpi("MPI_Isend", 30, 30.1, to=0, requestHandle=8)
    sender.mpi("MPI_Waitall", 31, 32, requests=[7, 8])
    result = whywait.analyze(written(tmp_path, receiver, sender))
    # The request that is waited for first gets the second message.
    assert ("mpi_latesender", 0, 1, 20_000_000) in found(result)
    assert sum(kind == "mpi_latesender" for kind, *_ in found(result)) == 1
    assert not notes(result)


def test_a_handle_that_is_used_again_is_another_request(tmp_path):
    receiver, sender = MpiReport(0), MpiReport(1)
    for step in range(3):
        at = 1 + 20 * step
        receiver.mpi("MPI_Irecv", at, at + 0.1, source=1, requestHandle=50)
        receiver.mpi("MPI_Waitany", at + 1, at + 2, requests=[50, 99]).mpi("MPI_Wait", at + 3, at + 11, requests=[50])
        sender.mpi("MPI_Send", at + 8 + step, at + 9 + step, to=0)
    result = whywait.analyze(written(tmp_path, receiver, sender))
    assert [waiting for kind, _, _, waiting in found(result) if kind == "mpi_latesender"] == [5e6, 6e6, 7e6]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_either_of_the_two_rows_of_a_call_may_send(is_swapped, tmp_path):
    rows = [{"to": 1}, {"source": 2}]
    both = MpiReport(0)
    for row in rows[:: -1 if is_swapped else 1]:
        both.mpi("MPI_Sendrecv", 3, 12, **row)
    receiver, sender = MpiReport(1).mpi("MPI_Recv", 1, 4, source=0), MpiReport(2).mpi("MPI_Send", 11, 11.5, to=0)
    result = whywait.analyze(written(tmp_path, both, receiver, sender))
    assert found(result) == [("mpi_latesender", 0, 2, 8_000_000), ("mpi_latesender", 1, 0, 2_000_000)]
    assert notes(result) == ({"order of the two rows of MPI_Sendrecv": 1} if is_swapped else {})


def test_a_receive_from_any_source_takes_what_was_sent_first(tmp_path):
    receiver = MpiReport(0)
    receiver.mpi("MPI_Recv", 1, 11, source=-2, tag=-1).mpi("MPI_Recv", 12, 21, source=-2, tag=5)
    receiver.mpi("MPI_Recv", 22, 22.001, source=-1)  # from MPI_PROC_NULL
    first, second = (
        MpiReport(1).mpi("MPI_Send", 20, 20.1, to=0, tag=5),
        MpiReport(2).mpi("MPI_Send", 10, 10.1, to=0, tag=3),
    )
    result = whywait.analyze(written(tmp_path, receiver, first, second))
    assert [wait for wait in found(result) if wait[0] == "mpi_latesender"] == [
        ("mpi_latesender", 0, 1, 8_000_000),
        ("mpi_latesender", 0, 2, 9_000_000),
    ]
    assert notes(result) == {"receives from any source or with any tag": 2}


def test_nobody_waits_for_a_request_whose_completion_is_not_traced(tmp_path):
    receiver = MpiReport(0).mpi("MPI_Irecv", 1, 1.1, source=1, requestHandle=50)
    for at in (5, 40):
        receiver.mpi("MPI_Allreduce", at, 41 if at == 40 else 30)
    sender = MpiReport(1).mpi("MPI_Allreduce", 29, 30).mpi("MPI_Send", 35, 36, to=0).mpi("MPI_Allreduce", 40, 41)
    result = whywait.analyze(written(tmp_path, receiver, sender))
    assert found(result) == [("mpi_wait_nxn", 0, 1, 24_000_000)]
    assert notes(result) == {"requests whose completion is not traced": 1}


def test_operations_that_are_awaited_later_are_counted_with_the_others(tmp_path):
    reports = []
    for rank in range(2):
        begin = 20 if rank else 2
        report = MpiReport(rank).mpi("MPI_Iallreduce", begin, begin + 0.1, requestHandle=9)
        report.mpi("MPI_Wait", 21, 21.5, requests=[9]) if rank else report.mpi("MPI_Wait", 5, 21, requests=[9])
        report.mpi("MPI_Bcast", 30 if rank else 40, 41, rootRank=0)
        reports.append(report)
    result = whywait.analyze(written(tmp_path, *reports))
    waits = [
        row for row in result.wait_states().to_pylist() if row["waiting"] > 1e-3 and row["kind"].startswith("mpi_")
    ]
    assert {(row["rank"], round(row["waiting"] * 1e3)) for row in waits} >= {(0, 15), (1, 10)}
    assert not notes(result)


def test_an_operation_without_a_root_is_counted_only(tmp_path):
    reports = [MpiReport(rank).mpi("MPI_Bcast", 1 + rank, 30) for rank in range(2)]
    result = whywait.analyze(written(tmp_path, *reports))
    assert not found(result)
    assert notes(result) == {"operations whose root is not known": 1}


def test_all_processes_wait_at_fences_that_all_call_equally_often(tmp_path):
    reports = []
    for rank in range(2):
        report = MpiReport(rank).mpi("MPI_Win_create", 1 + rank, 3)
        reports.append(report.mpi("MPI_Win_fence", 4 + 5 * rank, 10).mpi("MPI_Win_fence", 20 - rank, 21))
    result = whywait.analyze(written(tmp_path, *reports))
    waits = [row for row in result.wait_states().to_pylist() if row["kind"] == "mpi_comm_create_wait"]
    assert sorted((row["rank"], row["path"].split("/")[-1], round(row["waiting"] * 1e3)) for row in waits) == [
        (0, "MPI_Win_create", 1),
        (0, "MPI_Win_fence", 5),
        (1, "MPI_Win_fence", 1),
    ]
    assert notes(result) == {"operations on windows": 3}
    reports[1].mpi("MPI_Win_fence", 30, 31)
    result = whywait.analyze(written(tmp_path, *reports))
    assert notes(result) == {"operations on windows": 1}


def test_operations_whose_names_do_not_agree_are_not_matched(tmp_path):
    reports = []
    for rank, names in enumerate((["MPI_Allreduce", "MPI_Bcast"], ["MPI_Barrier", "MPI_Allgather"])):
        report = MpiReport(rank)
        for number in range(20):
            report.mpi(names[number % 2], 2 + 4 * number + rank, 5 + 4 * number, rootRank=0)
        reports.append(report)
    result = whywait.analyze(written(tmp_path, *reports))
    assert not found(result)
    assert notes(result) == {"calls of operations that not all members take part in": 40}


def test_a_process_alone_and_unknown_communicators_make_nobody_wait(tmp_path):
    reports = []
    for rank in range(2):
        report = MpiReport(rank)
        report.mpi("MPI_Allreduce", 1, 2, commHandle=0x44000001).mpi("MPI_Allreduce", 3, 4, commHandle=0x44000000)
        reports.append(report.mpi("MPI_Allreduce", 5 + 3 * rank, 9, commHandle=77))
    result = whywait.analyze(written(tmp_path, *reports))
    assert not found(result)
    assert notes(result) == {"calls on communicators that are not known": 2}
    (group,) = result.run.traces["groups"]
    assert (group["name"], group["instances"], group["method"]) == ("MPI_COMM_WORLD", 1, "the order of calls")


@pytest.mark.parametrize("members", ["0,2;0,-1,1,-1", "0,2;0,2", "7,9;9,7,5"])
def test_members_of_communicators_are_read_in_either_form(members, tmp_path):
    # Of four ranks, 0 and 2 have a communicator; the report of rank 2 is missing in one case.
    by_local, by_world = members.split(";")
    for directory, text in (("local", by_local), ("world", by_world)):
        (tmp_path / directory).mkdir()
        reports = []
        for rank in (0, 1, 2, 3):
            report = MpiReport(rank).mpi("MPI_Barrier", 1, 2)
            if rank in (0, 2):
                made = {
                    "rank": rank,
                    "timestamp": 2_500_000,
                    "commHandle": 77 + rank,
                    "localRank": rank // 2,
                    "size": 2,
                }
                report.add("MPI_COMMUNICATORS", **made, groupRoot=0, groupRootUid=1, members=text)
                report.mpi("MPI_Barrier", 3 + 4 * rank, 12, commHandle=77 + rank)
            reports.append(report)
        result = whywait.analyze(written(tmp_path / directory, *reports))
        assert found(result) == [("mpi_barrier_wait", 0, 2, 8_000_000)]
        assert (notes(result) == {"lists of members that cannot be read": 2}) == (members == "7,9;9,7,5")


def test_of_one_report_of_many_no_rank_is_blamed(tmp_path, capsys):
    path = shutil.copy(case("late_sender") / "report.1.sqlite", tmp_path / "report.1.sqlite")
    result = whywait.analyze(path)
    assert not found(result)
    assert not costs(result, ["delay_latesender", "delay_barrier"])
    # It sends to rank 2, so there are three at least.
    assert (result.run.traces["world_size"], result.run.traces["missing"]) == (3, [0, 2])
    assert result.findings().verdict().startswith("2 of 3 ranks have no trace.")
    assert main(["info", str(path)]) == 0
    assert "ranks               1 of 3; no trace of 0, 2" in capsys.readouterr().out


def test_without_a_report_of_a_rank_nobody_is_blamed_for_it(tmp_path):
    moved = copied(case("late_sender"), tmp_path / "moved")
    (moved / "report.1.sqlite").unlink()
    result = whywait.analyze(moved)
    assert result.run.traces["missing"] == [1]
    assert {(rank, cause) for kind, rank, cause, _ in found(result) if kind == "mpi_latesender"} == {(0, 3), (3, 2)}
    assert notes(result)["sends and receives whose partner has no report"] == 6


@pytest.mark.parametrize("begin", [26, 50.47])
def test_reports_that_begin_in_the_midst_of_the_run_are_aligned(begin, tmp_path):
    moved = copied(case("late_sender"), tmp_path / "moved")
    with closing(sqlite3.connect(moved / "report.2.sqlite")) as base:
        for (table,) in base.execute("SELECT name FROM sqlite_schema WHERE name GLOB '*_EVENTS'").fetchall():
            base.execute(f"DELETE FROM {table} WHERE start < ?", [int(begin * 1e6)])
        base.commit()
    whole, cut = found(whywait.analyze(case("late_sender"))), found(whywait.analyze(moved))
    assert len(cut) >= 5
    assert set(cut) <= set(whole)


def test_reports_of_one_run_in_any_order_and_form_give_the_same(tmp_path):
    shuffled = tmp_path / "shuffled"
    shuffled.mkdir()
    for rank, name in enumerate("zmaq"):
        shutil.copy(case("late_sender") / f"report.{rank}.sqlite", shuffled / f"{name}.sqlite")
    assert found(whywait.analyze(shuffled)) == right("late_sender")
