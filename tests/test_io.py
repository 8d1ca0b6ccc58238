"""Files: operations, bytes, and time by file, call path, and rank."""

import json
from collections import Counter
from pathlib import Path

import otf2
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from otf2 import events as ev
from otf2.enums import IoOperationFlag, IoOperationMode
from whywait.analysis.findings import findings
from whywait.analysis.findings.io import advice
from whywait.analysis.io import summary
from whywait.analysis.waiting import account
from whywait.cli import main

from tests.results import SHARED, UNRECORDED
from tests.tracedsl import trace_from_text

MIB = 1 << 20


def shared(path):
    if not (SHARED / path).exists():
        pytest.skip(UNRECORDED)
    return SHARED / path


def analyzed(text, directory, **options):
    return whywait.analyze(trace_from_text(text, directory), **options)


def rows(result, *columns):
    """Return rows of the table as tuples; a call path is its last function."""
    table = result.io().to_pylist()
    for row in table:
        row["callpath"] = row["callpath"][-1]
        row["time"], row["in_calls"] = round(row["time"], 9), round(row["in_calls"], 9)
    return sorted(tuple(row[column] for column in columns) for row in table)


# Five rounds in which each of two ranks reads 1 MiB, rank 1 for 1.1 s instead of 0.2 s.
ROUNDS = "".join(
    f"""
    0: read(file=input, bytes={MIB}) [{1.0 + 1.5 * n}, {1.2 + 1.5 * n}]
    1: read(file=input, bytes={MIB}) [{1.0 + 1.5 * n}, {2.1 + 1.5 * n}]
    0: MPI_Barrier [{1.2 + 1.5 * n}, {2.15 + 1.5 * n}]
    1: MPI_Barrier [{2.1 + 1.5 * n}, {2.15 + 1.5 * n}]
    """
    for n in range(5)
)


def right_values_of_posix_io(result):
    """By the times in the text: 5 x 0.2 s and 5 x 1.1 s of I/O; rank 0 waits 5 x 0.9 s at the barrier."""
    found = summary(result)
    assert (found["count"], found["bytes_read"], found["bytes_written"]) == (10, 10 * MIB, 0)
    assert found["time"] == pytest.approx(6.5)
    assert [(one["rank"], one["count"], one["bytes_read"]) for one in found["ranks"]] == [
        (0, 5, 5 * MIB),
        (1, 5, 5 * MIB),
    ]
    assert [one["time"] for one in found["ranks"]] == pytest.approx([1.0, 5.5])
    [file] = found["files"]
    assert (file["count"], file["bytes_read"], file["in_calls"]) == (10, 10 * MIB, pytest.approx(6.5))
    [callpath] = found["callpaths"]
    assert (callpath["callpath"][-1], callpath["count"], callpath["time"]) == ("read", 10, pytest.approx(6.5))
    metrics = result.metrics
    assert metrics["io"].total == pytest.approx(6.5)
    assert metrics["mpi_barrier_wait"].total == pytest.approx(4.5)
    assert metrics["comp"].total == pytest.approx(metrics["time"].total - 5.0 - 6.5)
    account = dict(zip(*(result.account()[name].to_pylist() for name in ("row", "time")), strict=True))
    assert account["io"] == pytest.approx(6.5)
    assert not result.warnings


def test_posix_io_has_the_right_values(tmp_path):
    result = analyzed(f"0: main [0, 10]\n1: main [0, 10]\n{ROUNDS}", tmp_path)
    right_values_of_posix_io(result)
    assert result.io()["file"].unique().to_pylist() == ["input"]


def test_the_case_from_the_field_has_the_right_values():
    result = whywait.analyze(shared("field/posix_io"))
    right_values_of_posix_io(result)
    assert result.io()["file"].unique().to_pylist() == ["/scratch/input.dat"]


def test_io_is_neither_computation_nor_mpi(tmp_path):
    result = analyzed("0: work [0, 4]\n0: fwrite(file=out) [1, 2]\n0: MPI_File_write_at(file=out) [2, 3]", tmp_path)
    metrics = result.metrics
    assert metrics["io"].total == pytest.approx(1.0)
    assert metrics["mpi_io"].total == pytest.approx(1.0)
    assert metrics["mpi"].total == pytest.approx(1.0)
    assert metrics["comp"].total == pytest.approx(2.0)


def test_what_posix_does_for_mpi_io_is_counted_once(tmp_path):
    text = """
        0: MPI_File_open(file=data) [0, 2]
        0: open(file=data, of=mpi) [0.5, 1]
        0: MPI_File_write_at(file=data, bytes=100) [2, 5]
        0: pwrite(file=data, of=mpi, bytes=60) [2.5, 3]
        0: pwrite(file=data, of=mpi, bytes=40) [3, 4.5]
        0: MPI_File_iwrite_at(file=data, bytes=7, req=1) [5, 5.5]
        0: MPI_Wait(1) [6, 7]
        0: pwrite(file=data, of=mpi, bytes=7) [6.2, 6.7]
    """
    result = analyzed(text, tmp_path)
    found = summary(result)
    assert (found["count"], found["bytes_written"]) == (2, 107)
    # The call that waits counts as MPI, the write inside it as I/O.
    assert found["time"] == pytest.approx(2 + 3 + 0.5 + 0.5)
    paradigms = [(one["paradigm"], one["nested"], one["count"], one["bytes_written"]) for one in found["paradigms"]]
    assert paradigms == [("MPI-IO", False, 2, 107), ("POSIX I/O", True, 3, 107)]
    own = result.io().filter(pc.invert(result.io()["nested"]))
    assert pc.sum(own["in_calls"]).as_py() == pytest.approx(2 + 3 + 0.5 + 1)


def test_nested_operations_need_no_parent_handle(tmp_path):
    text = "0: MPI_File_read_at(file=data, bytes=9) [0, 2]\n0: read(file=data, bytes=9) [0.5, 1]"
    assert summary(analyzed(text, tmp_path))["bytes_read"] == 9


def test_time_that_does_not_block_is_only_that_in_calls(tmp_path):
    text = """
        0: aio_read(file=data, bytes=10, req=1) [1, 1.5]
        0: aio_read(file=data, bytes=20, req=2) [2, 2.5]
        0: aio_suspend(1, 2) [5, 7] @ 6
        0: aio_write(file=data, bytes=30, req=3) [8, 8.5]
        0: aio_suspend(3, cancelled) [9, 9.25]
    """
    result = analyzed(text, tmp_path)
    found = rows(result, "operation", "callpath", "count", "incomplete", "bytes", "time", "in_calls")
    # Of the second, [5, 6] is already counted for the first.
    assert found == [
        ("read", "aio_read", 2, 0, 30, 5.0 + 4.0, 0.5 + 0.5 + 1.0),
        ("write", "aio_write", 1, 1, 0, 0.0, 0.0),
    ]
    assert not result.warnings


def test_tests_without_success_change_nothing(tmp_path):
    text = """
        0: MPI_File_iread_at(file=data, bytes=10, req=1) [1, 2]
        0: MPI_Test(1, failed) [3, 3.5]
        0: MPI_Test(1) [4, 4.5]
    """
    assert rows(analyzed(text, tmp_path), "count", "bytes", "time", "in_calls") == [(1, 10, 3.5, 1.5)]


def test_other_uses_of_files_have_the_time_of_their_call(tmp_path):
    text = """
        0: open(file=data) [0, 1]
        0: lseek(file=data) [1, 1.5]
        0: dup(file=data) [2, 2.25]
        0: fsync(file=data) [3, 5]
        0: flock(file=data) [5, 5.5]
        0: fcntl(file=data) [5.5, 5.75]
        0: close(file=data) [6, 6.5]
        0: unlink(file=data) [7, 8]
    """
    result = analyzed(text, tmp_path)
    assert rows(result, "operation", "count", "in_calls") == [
        ("close", 1, 0.5), ("delete", 1, 1.0), ("duplicate", 1, 0.25), ("flush", 1, 2.0), ("lock", 1, 0.5),
        ("open", 1, 1.0), ("seek", 1, 0.5), ("status", 1, 0.25),
    ]  # fmt: skip
    assert {row["file"] for row in result.io().to_pylist()} == {"data"}
    assert result.metrics["io"].total == pytest.approx(6.0)


def test_records_outside_of_calls_for_io_count_as_io(tmp_path):
    text = """
        0: load [1, 5]
        0: raw IoOperationBegin(handle=data, mode=READ, operation_flags=NONE, bytes_request=5, matching_id=1) @ 2
        0: raw IoOperationComplete(handle=data, bytes_result=5, matching_id=1) @ 3.5
        0: helper [4, 5]
    """
    result = analyzed(text, tmp_path)
    assert rows(result, "callpath", "count", "bytes", "time") == [("I/O", 1, 5, 1.5)]
    [callpath] = summary(result)["callpaths"]
    assert callpath["callpath"][-2:] == ["load", "I/O"]
    assert result.metrics["io"].total == pytest.approx(1.5)
    assert result.metrics["comp"].total == pytest.approx(3.5)
    assert not result.warnings


def test_incomplete_records_are_told(tmp_path):
    text = """
        0: load [1, 5]
        0: raw IoOperationBegin(handle=data, mode=WRITE, operation_flags=NONE, bytes_request=5, matching_id=1) @ 2
        0: raw IoOperationComplete(handle=data, bytes_result=5, matching_id=7) @ 3
        0: next [6, 7]
        0: read(file=data, bytes=3) [6, 7]
    """
    result = analyzed(text, tmp_path)
    assert {(one["kind"], one["count"]) for one in result.warnings} == {("unknown_io", 1), ("pending_io", 1)}
    found = rows(result, "operation", "count", "incomplete", "bytes", "nested")
    assert found == [("read", 1, 0, 3, False), ("write", 1, 1, 0, False)]


def test_work_before_a_collective_write_causes_the_wait(tmp_path):
    text = """
        0: work [0, 1]
        1: work [0, 3]
        0: MPI_File_write_all(file=data, bytes=100) [1, 4]
        1: MPI_File_write_all(file=data, bytes=100) [3, 4]
    """
    result = analyzed(text, tmp_path)
    [cost] = [row for row in result.delay_costs().to_pylist() if row["short_term"]]
    assert (cost["class"], cost["rank"], cost["callpath"][-1], cost["short_term"]) == ("io", 1, "work", 2.0)
    # Whoever waits for the last writer is not the one who determines the run.
    path = [(row["rank"], row["callpath"][-1]) for row in result.critical_path().to_pylist()]
    assert (1, "work") in path
    assert summary(result)["waiting"] == pytest.approx(2.0)
    # They are neither messages nor synchronizations.
    assert "comms_coll" not in result.metrics or result.metrics["comms_coll"].total == 0
    assert "syncs_coll" not in result.metrics or result.metrics["syncs_coll"].total == 0


def test_the_slow_reader_is_a_finding(tmp_path):
    result = analyzed(f"0: main [0, 10]\n1: main [0, 10]\n{ROUNDS}", tmp_path)
    [found] = [one for one in findings(result) if one.rule == "io"]
    assert found.loss == pytest.approx(6.5 + 4.5)
    assert found.sentence == (
        "main/read takes 6.50 s for 10 MiB in 10 operations on input, 85% of it on rank 1; "
        "the other waits 4.50 s for it."
    )
    assert found.ranks == [1]
    assert "MPI-IO" in found.advice


def test_small_operations_are_to_be_collected(tmp_path):
    lines = [f"{rank}: write(file=log, bytes=100) [{n}, {n + 1}]" for n in range(5) for rank in (0, 1)]
    [found] = [one for one in findings(analyzed("\n".join(lines), tmp_path)) if one.rule == "io"]
    assert found.sentence == "write takes 10.0 s for 0.98 KiB in 10 operations on log."
    assert found.advice.startswith("Collect data in a buffer")


def test_a_written_result_keeps_its_io(tmp_path):
    result = analyzed(f"0: main [0, 10]\n1: main [0, 10]\n{ROUNDS}", tmp_path / "trace")
    result.write(tmp_path / "result")
    back = whywait.load(tmp_path / "result")
    assert back.io().equals(result.io())
    assert summary(back) == summary(result)


def test_the_verb_shows_files_call_paths_and_ranks(tmp_path, capsys):
    trace = trace_from_text(f"0: main [0, 10]\n1: main [0, 10]\n{ROUNDS}", tmp_path)
    assert main(["io", str(trace)]) == 0
    text = capsys.readouterr().out
    for part in ("6.50 s in I/O", "10 operations: 10.0 MiB read", "input", "main/read"):
        assert part in text, part
    assert main(["io", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_read"] == 10 * MIB


def test_a_run_without_io_says_so(capsys):
    assert main(["io", str(Path(__file__).parent / "data/stencil")]) == 0
    assert "no calls for I/O" in capsys.readouterr().out


# The same sums by another program: the official reader, and a plain loop over its events.


def official(anchor):
    """Return (count, bytes, ticks) of completed operations by file, operation, rank, and whether they are nested."""
    sums, open_operations, stack = {}, {}, Counter()
    modes = {IoOperationMode.READ: "read", IoOperationMode.WRITE: "write", IoOperationMode.FLUSH: "flush"}
    with otf2.reader.open(str(anchor)) as trace:
        for location, event in trace.events:
            rank = int(location.group.name.split()[-1])
            if isinstance(event, ev.IoOperationBegin):
                handle = event.handle
                blocks = not event.operation_flags & IoOperationFlag.NON_BLOCKING
                nested = stack[rank] > 0 or handle.parent is not None
                open_operations[rank, id(handle), event.matching_id] = event, nested, blocks
                stack[rank] += blocks
            elif isinstance(event, (ev.IoOperationComplete, ev.IoOperationCancelled)):
                begin, nested, blocks = open_operations.pop((rank, id(event.handle), event.matching_id))
                stack[rank] -= blocks
                if isinstance(event, ev.IoOperationComplete):
                    key = event.handle.file.name, modes[begin.mode], rank, nested
                    count, moved, ticks = sums.get(key, (0, 0, 0))
                    sums[key] = count + 1, moved + event.bytes_result, ticks + event.time - begin.time
        return sums, trace.timer_resolution


def agrees_with_the_official_reader(anchor):
    expected, resolution = official(anchor)
    result = whywait.analyze(anchor, causes=False)
    table = result.io()
    table = table.filter(pc.is_in(table["operation"].cast(pa.string()), pa.array(["read", "write", "flush"])))
    found = {}
    for row in table.to_pylist():
        key = row["file"], row["operation"], row["rank"], row["nested"]
        count, moved, time = found.get(key, (0, 0, 0.0))
        found[key] = count + row["count"] - row["incomplete"], moved + row["bytes"], time + row["time"]
    found = {key: value for key, value in found.items() if value[0]}
    assert {key: value[:2] for key, value in found.items()} == {key: value[:2] for key, value in expected.items()}
    for key, (_, _, ticks) in expected.items():
        assert found[key][2] == pytest.approx(ticks / resolution, abs=1e-8), key
    return len(expected)


def test_the_official_reader_agrees_on_recorded_mpi_io():
    assert agrees_with_the_official_reader(shared("cases/mpi_io/archive") / "traces.otf2") == 8


KINDS = ["read", "pwrite", "fsync", "aio_read", "MPI_File_iwrite", "MPI_File_write_at", "wait"]


@st.composite
def programs(draw):
    """Return a random program of some ranks that read and write some files, with and without blocking."""
    lines, request = [], 0
    for rank in range(draw(st.integers(1, 3))):
        now, waiting = 0, []
        for _ in range(draw(st.integers(0, 8))):
            length = 2 * draw(st.integers(1, 5))
            file, size = draw(st.sampled_from(["a", "b"])), draw(st.integers(0, 1000))
            kind = draw(st.sampled_from(KINDS))
            span = f"[{now}, {now + length}]"
            if kind == "wait":
                if waiting:
                    of, number = waiting.pop(0)
                    word = draw(st.sampled_from(["", ", cancelled"]))
                    call = "aio_suspend" if of == "aio_read" else "MPI_Wait"
                    lines.append(f"{rank}: {call}({number}{word}) {span}")
            elif kind in {"aio_read", "MPI_File_iwrite"}:
                request += 1
                waiting.append((kind, request))
                lines.append(f"{rank}: {kind}(file={file}, bytes={size}, req={request}) {span}")
            else:
                lines.append(f"{rank}: {kind}(file={file}, bytes={size}) {span}")
                if kind == "MPI_File_write_at" and draw(st.booleans()):
                    lines.append(f"{rank}: pwrite(file={file}, bytes={size}) [{now + 0.5}, {now + length - 0.5}]")
            now += length + draw(st.integers(0, 2))
        lines.append(f"{rank}: end [{now}, {now + 1}]")
    return "\n".join(lines)


@given(programs())
def test_the_official_reader_agrees_on_random_programs(tmp_path_factory, text):
    agrees_with_the_official_reader(trace_from_text(text, tmp_path_factory.mktemp("io")))


def test_parts_of_the_time_have_io_beside_devices(tmp_path):
    result = analyzed("0: work [0, 4]\n0: fwrite(file=out) [1, 2]", tmp_path)
    parts = account(result.profile)["parts"]
    assert {name: round(value, 9) for name, value in parts.items() if value} == {"computation": 3.0, "io": 1.0}


@pytest.mark.parametrize(
    ("read", "written", "operations", "is_one", "begins"),
    [
        (0, 0, 0, False, "Call it less often, or on fewer ranks."),
        (0, 0, 5, True, "Call it less often, or do it on a thread of its own."),
        (5 << 20, 0, 5, False, "Read less"),
        (0, 5 << 20, 5, False, "Write less"),
        (5 << 20, 1, 5, False, "Read and write less"),
        (5 << 20, 0, 5, True, "Let all ranks read and write (MPI-IO)"),
        (5 << 10, 0, 5, False, "Collect data in a buffer, or use collective operations"),
        (5 << 10, 0, 5, True, "Collect data in a buffer, or let all ranks take part (MPI-IO)"),
    ],
)
def test_advice_is_about_what_is_done(read, written, operations, is_one, begins):
    found = {"bytes_read": read, "bytes_written": written, "count": operations}
    assert advice(found, is_one=is_one).startswith(begins)
