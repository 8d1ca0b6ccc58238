"""Samples outside of the program's computation: inside calls of MPI, and on threads without recorded calls."""

import json
from math import sqrt

import pytest
import whywait
from whywait import cli
from whywait.analysis.findings import findings
from whywait.analysis.functions.inside_calls import inside, kind
from whywait.analysis.functions.sampled_threads import sampled_threads

from .tracedsl import trace_from_text

PLACES = {"libuct.so.0+0x18489": 30, "ucp_worker_progress": 12, "memcpy": 12, "sched_yield": 6}


def analyzed(directory, lines):
    directory.mkdir(exist_ok=True)
    return whywait.analyze(whywait.open(trace_from_text("\n".join(lines), directory)))


def waiting(header="contexts"):
    """Return a run in which a rank is in a barrier for 60 s, with a sample a second, and another one comes late."""
    lines = [header, "ranks 2", "frames main", "*: main [0, 62]", "0: MPI_Barrier [1, 61]", "1: MPI_Barrier [60.9, 61]"]
    places = [place for place, count in PLACES.items() for _ in range(count)]
    return lines + [f"0: sample main/MPI_Barrier(at='{place}') @{1.5 + at}" for at, place in enumerate(places)]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("libmpich.so.12+0x8e680", "polling"), ("opal_progress", "polling"), ("MPIDI_progress_test", "polling"),
        ("__memmove_avx512_unaligned_erms", "copying"), ("process_vm_readv", "copying"), ("MPIR_Localcopy", "copying"),
        ("epoll_wait", "system calls"), ("read", "system calls"), ("pthread_mutex_lock", "locks"),
        ("libm.so.6+0x12", "other"), ("spread", "other"), ("reduce_sum", "other"), (None, "other"),
    ],
)  # fmt: skip
def test_the_kind_of_a_place(address, expected):
    assert kind(address) == expected


def barrier(result):
    return next(number for number in range(len(result.tree)) if result.tree.path(number)[-1] == "MPI_Barrier")


def test_shares_of_what_a_call_does(tmp_path):
    result = analyzed(tmp_path, waiting())
    assert [row["address"] for row in result.samples().to_pylist()][::30] == [
        "libuct.so.0+0x18489",
        "ucp_worker_progress",
    ]
    found = inside(result, [barrier(result)])
    assert found["samples"] == 60
    assert {one["kind"]: one["share"] for one in found["parts"]} == pytest.approx(
        {"polling": 0.7, "copying": 0.2, "system calls": 0.1}
    )
    assert found["parts"][0]["error"] == pytest.approx(1.96 * sqrt(0.7 * 0.3 / 60))


def test_what_samples_do_not_stand_for_is_in_the_system_or_without_a_core(tmp_path):
    # Half of the 60.1 s in barriers is sampled, and 6 s are in the system.
    lines = [line.replace("(at='sched", "(stime=1, at='sched") for line in waiting("contexts perf 0.5")]
    result = analyzed(tmp_path, lines)
    found = inside(result, [barrier(result)])
    shares = {one["kind"]: one["share"] for one in found["parts"]}
    assert shares["polling"] == pytest.approx(0.7 * 30 / 60.1)
    assert shares["in the system"] == pytest.approx(6 / 60.1)
    errors = {one["kind"]: one["error"] for one in found["parts"]}
    assert errors["polling"] == pytest.approx(1.96 * 0.5 * sqrt(42) / 60.1)
    assert shares["asleep or without a core"] == pytest.approx(24.1 / 60.1)
    assert sum(shares.values()) == pytest.approx(1)


def test_few_samples_say_nothing(tmp_path):
    result = analyzed(tmp_path, waiting()[:30])
    assert inside(result, [barrier(result)]) is None


def test_the_account_tells_what_calls_do(tmp_path, capsys):
    # Of 40 barriers, one takes a second longer although nobody comes late.
    lines = ["contexts", "ranks 2", "frames main", "*: main [0, 102]"]
    begin = 1.0
    for number in range(40):
        length = 41 if number == 20 else 0.01
        lines.append(f"*: MPI_Barrier [{begin}, {begin + length}]")
        if number == 20:
            lines += [f"*: sample main/MPI_Barrier(at='memcpy') @{begin + 0.5 + at}" for at in range(40)]
        begin += length + 1
    result = analyzed(tmp_path, lines)
    assert cli.main(["account", str(tmp_path), "--by", "callpath", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["by_callpath"]
    found = next(row["inside"] for row in rows if row["row"] == "transfer.excess" and row["inside"])
    assert found["parts"][0]["kind"] == "copying"
    assert cli.main(["account", str(tmp_path), "--by", "callpath"]) == 0
    assert "in these calls, by 80 samples: copying 100.0% ±" in " ".join(capsys.readouterr().out.split())
    (words,) = (one.remarks["in_calls"] for one in findings(result) if "in_calls" in one.remarks)
    assert words == "By 80 samples in these calls: copying 100% ± 2.5% of their time."


def team(late=30):
    """Return a rank whose second and third thread record no calls; the third runs `lopsided` longer."""
    lines = ["contexts", "threads 3", "0: main [0, 100]", "frames g", "0.1: g [0, 0]", "0.2: g [0, 0]"]
    lines += [f"0: sample main/even @{1 + at}" for at in range(20)]
    lines += [f"0: sample main/lopsided @{31 + at}" for at in range(30)]
    for thread, count in ((1, 30), (2, late)):
        lines += [f"0.{thread}: sample main/even @{1 + at}" for at in range(20)]
        lines += [f"0.{thread}: sample main/lopsided @{31 + at * 0.5}" for at in range(count)]
    return lines


def test_threads_without_calls_have_shares_and_a_late_one(tmp_path, capsys):
    (row,) = sampled_threads(analyzed(tmp_path, team(90)))
    # Each sample stands for 10 ms.
    assert (row["rank"], row["threads"], row["samples"], row["time"]) == (0, 2, 160, pytest.approx(1.6))
    assert [(one["function"], one["share"]) for one in row["functions"]] == [("lopsided", 0.75), ("even", 0.25)]
    assert row["late"] == {
        "thread": 2, "function": "lopsided", "time": pytest.approx(0.9), "others": pytest.approx(0.3),
        "error": pytest.approx(1.96 * 0.01 * sqrt(90 + 60 / 4)),
    }  # fmt: skip
    assert cli.main(["threads", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 threads without recorded calls computed for 1.60 s, by 160 samples: lopsided 75.0% ± 6.7%, even" in text
    assert "Thread 2 spends 900 ms in lopsided, 600 ms ± 201 ms more than the others do on average." in text


def test_threads_that_differ_by_chance_are_not_late(tmp_path):
    (row,) = sampled_threads(analyzed(tmp_path, team(36)))
    assert row["late"] is None


def test_threads_with_calls_are_none_of_these(tmp_path):
    assert sampled_threads(analyzed(tmp_path, waiting())) == []
