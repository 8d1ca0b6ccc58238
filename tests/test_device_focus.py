"""What devices do in a focus: kernels and calls are cut at its bounds, starving is that inside it."""

from __future__ import annotations

import json

import pytest
import whywait
from whywait.cli import main

from tests.tracedsl import trace_from_text

# A device is starved from 1.5 to 4 s, and runs beyond the Enter of MPI_Finalize.
PROGRAM = """
0: main [0, 11]
0: hipLaunchKernel [0.1, 0.2]
0/0: early [0.3, 1.5]
0: MPI_Init [0.4, 1]
0: prepare [1, 4]
0: solve [4, 9]
0: hipLaunchKernel [4, 4.1]
0/0: late [4.2, 9.6]
0: hipDeviceSynchronize [4.3, 8]
0: MPI_Finalize [9, 10]
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return trace_from_text(PROGRAM, tmp_path_factory.mktemp("run"))


def told(capsys, *arguments):
    assert main(["gpu", "--json", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("focus", "busy", "length", "starved", "by_main"),
    [
        (None, 0.5 + 4.8, 8.0, 2.5, {"prepare": 2.5}),
        ("all", 1.2 + 5.4, 11.0, 2.5, {"prepare": 2.5}),
        ("2:5", 0.8, 3.0, 2.5, {"prepare": 2.0}),
        ("5:6", 1.0, 1.0, 0.0, {}),
        ("main/solve", 4.8, 8.0, 2.5, {}),
    ],
)
def test_kernels_and_starving_are_those_in_the_focus(trace, capsys, focus, busy, length, starved, by_main):
    found = told(capsys, trace, *([] if focus is None else ["--focus", focus]))
    (device,) = found["devices"]
    assert device["busy"] == pytest.approx(busy)
    assert device["share"] == pytest.approx(busy / length)
    # What a kernel waited for belongs to the focus in which it begins.
    assert device["starved"] == pytest.approx(starved)
    starving = {row["callpath"][-1]: row["starving"] for row in found["starving"]}
    assert starving == pytest.approx(by_main)
    assert found["focus"]["end"] - found["focus"]["begin"] == pytest.approx(length)


def test_waits_for_devices_are_cut(trace, capsys):
    (call,) = told(capsys, trace, "--focus", "5:6")["synchronizations"]
    assert (call["waiting"], call["completion"]) == pytest.approx((1.0, 0.0))
    assert told(capsys, trace, "--focus", "main/prepare")["synchronizations"] == []


def test_a_device_that_does_nothing_in_the_focus_is_listed(trace, capsys):
    (device,) = told(capsys, trace, "--focus", "2:3")["devices"]
    assert (device["kernels"], device["busy"]) == (0, 0.0)
    assert device["account"] == pytest.approx({"starved.host": 1.0})


def test_adjacent_windows_add_up(trace):
    result = whywait.analyze(trace)
    parts = [whywait.analyze(trace, window=window).gpu() for window in ((0, 2), (2, 5), (5, 11))]
    whole = result.gpu().summary(focus="all")
    for name in ("busy", "starved", "latency", "queued"):
        assert sum(part.summary()["devices"][0][name] for part in parts) == pytest.approx(whole["devices"][0][name])
    assert sum(row["starving"] for part in parts for row in part.summary()["starving"]) == pytest.approx(2.5)
    assert sum(row["waiting"] for part in parts for row in part.summary()["synchronizations"]) == pytest.approx(
        sum(row["waiting"] for row in whole["synchronizations"])
    )
