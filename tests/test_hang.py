"""Dumps of PyTorch's flight recorder: who is waited for."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait.cli import main

# Recorded with Gloo: after three all_reduce of all and one of each half, rank 2 does not come to a broadcast.
RECORDED = Path(__file__).parent / "data/kineto/hang"


def entry(rank, number, kind="all_reduce", group=("0", "default_pg"), complete=False, **others):
    return {
        "record_id": number + 100 * (group[0] != "0"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "is_p2p": False,
        "process_group": group,
        "profiling_name": f"nccl:{kind}",
        "state": "completed" if complete else "scheduled",
        "retired": complete,
        "frames": [{"filename": "train.py", "line": 10 + rank, "name": "step"}],
        **others,
    }


def found(directory, dumps, groups=None, form=pickle):
    directory.mkdir(exist_ok=True)
    config = {name: {"name": name, "desc": desc, "ranks": str(ranks)} for (name, desc), ranks in (groups or {}).items()}
    for rank, entries in dumps.items():
        content = {"version": "2.10", "pg_config": config, "entries": entries}
        data = form.dumps(content)
        (directory / f"nccl_trace_rank_{rank}").write_bytes(data if isinstance(data, bytes) else data.encode())
    return whywait.hang(directory)


def test_a_recorded_program_waits_for_the_rank_that_does_not_come():
    answer = whywait.hang(RECORDED)
    assert [one["rank"] for one in answer["causes"]] == [2]
    (stuck,) = answer["stuck"]
    assert (stuck["operation"], stuck["number"], stuck["group"], stuck["late"]) == ("broadcast", 4, "default_pg", [2])
    # A broadcast is over for a leaf that has the data.
    assert stuck["waiting"] == [0]
    assert answer["causes"][0]["last"] == {
        "group": "default_pg",
        "number": 3,
        "operation": "all_reduce",
        "place": "train.py:7 (step)",
        "complete": True,
    }


@pytest.mark.parametrize("form", [pickle, json])
def test_who_waits_in_another_operation_is_not_the_cause(form, tmp_path):
    tp, dp = ("1", "tp"), ("2", "dp")
    dumps = {
        0: [entry(0, 1, group=dp)],
        1: [entry(1, 1, "all_gather", group=tp)],
        2: [],
        3: [],
    }
    answer = found(tmp_path, dumps, {tp: [1, 3], dp: [0, 1]}, form)
    assert [one["rank"] for one in answer["causes"]] == [3]
    assert {tuple(one["waiting"]) + tuple(one["late"]) for one in answer["stuck"]} == {(0, 1), (1, 3)}
    assert not answer["circle"]


def test_ranks_that_call_operations_in_another_order_wait_in_a_circle(tmp_path):
    a, b = ("1", "a"), ("2", "b")
    dumps = {0: [entry(0, 1, group=a)], 1: [entry(1, 1, group=b)]}
    answer = found(tmp_path, dumps, {a: [0, 1], b: [0, 1]})
    assert answer["circle"]
    assert answer["causes"] == []


def test_ranks_that_call_different_operations_are_told(tmp_path, capsys):
    dumps = {0: [entry(0, 1, "all_reduce")], 1: [entry(1, 1, "broadcast")]}
    assert found(tmp_path, dumps)["stuck"][0]["kinds"] == {0: "all_reduce", 1: "broadcast"}
    assert main(["hang", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "rank 0 calls all_reduce, rank 1 calls broadcast" in printed


def test_a_member_without_a_dump_is_waited_for(tmp_path):
    group = ("0", "default_pg")
    answer = found(tmp_path, {0: [entry(0, 1)], 1: [entry(1, 1)]}, {group: [0, 1, 2]})
    assert answer["missing"] == [2]
    assert answer["causes"] == [{"rank": 2, "last": None}]


def test_a_receive_waits_for_a_sender_that_does_not_send(tmp_path):
    def message(rank, kind):
        return entry(rank, 0, kind, is_p2p=True, p2p_seq_id=1)

    answer = found(tmp_path / "a", {0: [entry(0, 1, complete=True)], 1: [message(1, "recv 1<-0")]})
    assert [one["rank"] for one in answer["causes"]] == [0]
    # Both have come: the transfer hangs, and nobody is late.
    dumps = {0: [entry(0, 1, complete=True), message(0, "send 0->1")], 1: [message(1, "recv 1<-0")]}
    assert found(tmp_path / "b", dumps)["stuck"] == []


def test_all_is_complete(tmp_path, capsys):
    found(tmp_path, {rank: [entry(rank, 1, complete=True)] for rank in range(3)})
    assert main(["hang", str(tmp_path)]) == 0
    assert "all operations that they have begun are complete" in " ".join(capsys.readouterr().out.split())


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/should-not-exist",)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"entries": 3}', pickle.dumps(Evil()), pickle.dumps([1]), b"\x80\x04\x95\xff"],
    ids=["empty", "cut", "list", "entries", "code", "pickled list", "damaged"],
)
def test_what_is_no_dump_is_refused(content, tmp_path, capsys):
    (tmp_path / "rank_0").write_bytes(content)
    with pytest.raises(whywait.ArchiveError, match="rank_0"):
        whywait.hang(tmp_path)
    assert main(["hang", str(tmp_path)]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_directory_without_dumps_is_refused(tmp_path):
    with pytest.raises(whywait.ArchiveError, match="no dumps"):
        whywait.hang(tmp_path)
    with pytest.raises(whywait.ArchiveError, match="not a directory"):
        whywait.hang(tmp_path / "none")


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(1, 4),
                st.sampled_from("ab"),
                st.booleans(),
                st.sampled_from(["x", "recv 0<-1", "send 1->?"]),
            ),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_dumps_have_an_answer(tmp_path_factory, ranks):
    dumps = {
        rank: [
            entry(rank, number, kind, (group, group), complete, is_p2p=kind != "x")
            for number, group, complete, kind in entries
        ]
        for rank, entries in enumerate(ranks)
    }
    answer = found(tmp_path_factory.mktemp("dumps"), dumps)
    late = {rank for one in answer["stuck"] for rank in one["late"]}
    assert {one["rank"] for one in answer["causes"]} <= late
    for one in answer["stuck"]:
        assert not set(one["waiting"]) & set(one["late"])
