"""Damaged archives: the analysis refuses them, or returns a partial result that says what is missing.

It never panics, hangs or dies, and a time stamp that cannot be does not spoil what stands around it.
"""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
import whywait
from whywait.hypotheses import Cpu, Scale

from tests.tracedsl import new_archive, ticks, trace_from_text

DATA = Path(__file__).parent / "data"
COPIES = 25  # of each archive
IMPOSSIBLE = (1 << 62, 1 << 63)


def flip(data: bytearray, dice: random.Random) -> None:
    for _ in range(dice.choice([1, 1, 2, 8, 64])):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def overwrite(data: bytearray, dice: random.Random) -> None:
    at, length = dice.randrange(len(data)), dice.choice([1, 8, 16])
    data[at : at + length] = bytes([dice.choice([0, 0xFF])]) * len(data[at : at + length])


def cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


def drop(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    del data[at : at + dice.randrange(1, 64)]


def repeat(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at:at] = data[at : at + dice.randrange(1, 64)]


def stamp(data: bytearray, dice: random.Random) -> None:
    """Move a time: the record has the number 5 and eight bytes."""
    found = [i for i in range(len(data) - 9) if data[i] == 5]
    if found:
        at = dice.choice(found) + 1
        data[at : at + 8] = struct.pack("<Q", dice.choice([*IMPOSSIBLE, dice.getrandbits(64), 1 << dice.randrange(64)]))


@pytest.mark.parametrize("name", ["p2p", "collectives", "mixed", "rma_lock_sm", "rma_progress_known", "omp_nested"])
def test_damaged_copies_are_refused_or_analysed(name, tmp_path):
    dice = random.Random(name)  # noqa: S311 - damage, no secrets
    copy = tmp_path / "copy"
    for number in range(COPIES):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(DATA / name, copy)
        files = sorted(path for path in copy.rglob("*") if path.suffix in {".otf2", ".def", ".evt"})
        for file in dice.sample(files, dice.choice([1, 1, 2])):
            data = bytearray(file.read_bytes())
            if data:
                dice.choice([flip, flip, overwrite, cut, drop, repeat, stamp, stamp])(data, dice)
            file.write_bytes(data)
        try:
            result = whywait.analyze(copy, threads=1, queues="estimate")
            result.write(tmp_path / "results", html=number % 5 == 0)
            faster = whywait.whatif(result, dice.choice([[], [Cpu(2)], [Scale("**", 0.5)]]), threads=1)
            faster.write(copy / "faster")
            assert faster.result.summary()
        except (whywait.Error, OSError) as error:
            # What is wrong with the archive, not with the analysis.
            assert "please report this" not in str(error), number  # noqa: PT017  (of any of many archives)
            continue
        waits = result.wait_states().to_pylist()
        assert all(wait["waiting"] <= wait["leave"] - wait["enter"] + 1e-9 for wait in waits), number
        assert result.summary()


@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_a_thread_that_begins_at_an_impossible_time_begins_with_the_run(impossible, tmp_path):
    anchor = trace_from_text("0: main [0, 3]\n0: pthread_create(1) [1, 2]\n0.1: f [1.5, 2.5]", tmp_path)
    (file,) = (file for file in (tmp_path / "traces").glob("*.evt") if file.name != "0.evt")
    data = file.read_bytes()
    good = b"\x05" + struct.pack("<Q", ticks(1.5))
    file.write_bytes(data.replace(good, b"\x05" + struct.pack("<Q", impossible), 1))
    result = whywait.analyze(anchor)
    assert {one["kind"] for one in result.warnings} >= {"impossible_time"}
    assert all(0 <= row["value"] <= 3 for row in result.severities("time").to_pylist())


@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_an_impossible_time_stamp_is_named_and_spoils_nothing_else(impossible, tmp_path):
    """Rank 0's `g` ends at its begin, because the stamp of its Leave is impossible; the next barrier is unchanged."""
    anchor = trace_from_text(
        """
        0: f [1, 2]
        0: g [3, 5]
        0: MPI_Barrier [6, 7.1]
        1: f [1, 3]
        1: MPI_Barrier [4, 7.1]
        """,
        tmp_path,
    )
    file = tmp_path / "traces" / "0.evt"
    data = file.read_bytes()
    good = b"\x05" + struct.pack("<Q", ticks(5))
    assert data.count(good) == 1
    file.write_bytes(data.replace(good, b"\x05" + struct.pack("<Q", impossible)))
    result = whywait.analyze(anchor)
    assert whywait.whatif(result).result.facts["length"] == pytest.approx(7.1)
    warning = next(warning for warning in result.warnings if warning["kind"] == "impossible_time")
    assert warning["count"] == 1
    row = next(row for row in result.inconsistencies().to_pylist() if row["kind"] == "impossible_time")
    assert (row["location"], row["time"]) == (0, pytest.approx(3))
    (wait,) = (wait for wait in result.wait_states().to_pylist() if wait["kind"] == "mpi_barrier_wait")
    assert (wait["rank"], wait["waiting"]) == (1, pytest.approx(2))
    assert result.facts["length"] == pytest.approx(7.1)
    times = {(row["callpath"][-1], row["rank"]): row["value"] for row in result.severities("time").to_pylist()}
    assert ("g", 0) not in times


def test_an_archive_without_definitions_is_a_bad_trace(tmp_path, capsys):
    from whywait.cli import main

    shutil.copytree(DATA / "p2p", tmp_path / "copy")
    (tmp_path / "copy" / "traces.def").unlink()
    with pytest.raises(whywait.ArchiveError, match="definitions are missing"):
        whywait.open(tmp_path / "copy")
    assert main(["info", str(tmp_path / "copy")]) == 3
    assert "traces.def" in capsys.readouterr().err
    assert main(["info", str(tmp_path / "nothing")]) == 3


def test_messages_before_the_cut_of_a_sender_still_match(tmp_path):
    """A file that is cut off lacks the last sends only, so the others keep their partners."""
    sends = "\n".join(f"0: MPI_Send(1) [{time}, {time}.1]" for time in (3, 5, 7))
    receives = "\n".join(f"1: MPI_Recv(0) [{time}, {time + 1}.1]" for time in (2, 4, 6))
    anchor = Path(trace_from_text(f"{sends}\n{receives}", tmp_path))
    assert whywait.analyze(anchor).metrics["mpi_latesender"].total == pytest.approx(3)
    events = anchor.with_suffix("") / "0.evt"
    whole = events.read_bytes()
    for length in range(len(whole) - 1, 0, -1):
        events.write_bytes(whole[:length])
        result = whywait.analyze(anchor)
        if result.metrics["comms_send"].total == 2:
            break
    assert result.metrics["mpi_latesender"].total == pytest.approx(2)
    assert "unmatched_receive" in result.inconsistencies()["kind"].to_pylist()


def test_the_first_receive_without_a_send_is_named(tmp_path):
    receives = "\n".join(f"1: MPI_Recv(0) [{time}, {time}.5]" for time in (2, 4, 6))
    result = whywait.analyze(trace_from_text(f"0: main [0, 8]\n{receives}", tmp_path))
    (row,) = [row for row in result.inconsistencies().to_pylist() if row["kind"] == "unmatched_receive"]
    assert row["time"] == pytest.approx(2.5)


def test_a_process_without_threads_has_no_iterations(tmp_path):
    with new_archive(tmp_path, timer_resolution=1000) as archive:
        definitions = archive.definitions
        node = definitions.system_tree_node("node")
        first, _ = (definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node) for rank in range(2))
        regions = [definitions.region(name) for name in ("main", "step")]
        location = definitions.location("Master thread", group=first)
        events = archive.event_writer_from_location(location)
        events.enter(1000, regions[0])
        for number in range(5):
            events.enter(2000 + 100 * number, regions[1])
            events.leave(2050 + 100 * number, regions[1])
        events.leave(3000, regions[0])
    result = whywait.analyze(tmp_path)
    assert result.iterations("main/step").num_rows == 5
