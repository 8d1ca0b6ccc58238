"""Counters of messages and queues: the documents of tests/queues, and random programs against a naive second one."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import whywait
import whywait._native as native
from hypothesis import given, note, settings
from hypothesis import strategies as st
from whywait.cli import main

from tests.naive_queues import Queues
from tests.programs import programs
from tests.test_patterns import path, place
from tests.tracedsl import trace_from_text

BLOCK = re.compile(r"^#+ ([^\n]+)$|^```(trace|queues)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENT = Path(__file__).parent / "queues" / "queues.md"
NANOSECOND = 1e-9
METRICS = set(native.queue_metrics())


def examples():
    """Every expectation with the trace before it."""
    heading, trace = "", ""
    for block in BLOCK.finditer(DOCUMENT.read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[4]
        else:
            options = dict(option.split("=") for option in block[3].split())
            yield pytest.param(trace, options, block[4], id=" ".join([heading, *options.values()]))


def found(anchor, arrival="progress", match="pair", bins=0):
    """The results of the program, in the shape of the oracle's tables."""
    analysis = native.analyze(native.Run(str(anchor)), queues=(arrival, match, bins, True), causes=False)
    regions = {row["region"]: row["name"] for row in pa.table(analysis.regions()).to_pylist()}
    rows = {row["callpath"]: row for row in pa.table(analysis.callpaths()).to_pylist()}

    def names(node):
        parent = rows[node]["parent"]
        return (*(names(parent) if parent is not None else ()), regions[rows[node]["region"]])

    places = {row["location"]: (row["rank"], row["thread"]) for row in pa.table(analysis.locations()).to_pylist()}
    cells = {}
    for row in pa.table(analysis.severities()).to_pylist():
        if row["metric"] not in METRICS:
            continue
        cell = cells.setdefault(row["metric"], {})
        key = names(row["callpath"]), *places[row["location"]]
        cell[key] = cell.get(key, 0) + row["value"]
    levels = {}
    for row in pa.table(analysis.queue_levels()).to_pylist():
        rank = None if row["location"] is None else places[row["location"]][0]
        levels[row["metric"], rank] = row["maximum"], row["time"], row["mean"]
    return cells, levels, analysis


def in_seconds(oracle: Queues):
    begin, scale, length = oracle.trace.begin, oracle.trace.resolution, oracle.end - oracle.trace.begin
    return {
        key: (most, (time - begin) / scale, integral / length) for key, (most, time, integral) in oracle.levels.items()
    }


def same(a, b):
    assert a.keys() == b.keys()
    for key, values in a.items():
        assert values == pytest.approx(b[key], abs=NANOSECOND), key


@pytest.mark.parametrize(("trace", "options", "text"), list(examples()))
def test_queues_match_the_documents_and_the_oracle(trace, options, text, tmp_path):
    anchor = trace_from_text(trace, tmp_path)
    cells, levels, _ = found(anchor, **options)
    oracle = Queues(anchor, **options)
    expected, expected_levels = {}, {}
    for line in text.splitlines():
        if m := re.fullmatch(r"level (\w+) (\w+) (\S+) at (\S+) mean (\S+)", line):
            rank = None if m[2] == "run" else int(m[2])
            expected_levels[m[1], rank] = float(m[3]), float(m[4]), float(m[5])
        elif m := re.fullmatch(r"(\w+) none", line):
            expected[m[1]] = {}
        else:
            m = re.fullmatch(r"(\w+) ([\d.]+) (.+) (\S+)", line)
            expected.setdefault(m[1], {})[path(m[3]), *place(m[2])] = float(m[4])
    for metric, values in expected.items():
        same(values, oracle.table().get(metric, {}))
        same(values, cells.get(metric, {}))
    for key, values in expected_levels.items():
        assert in_seconds(oracle)[key] == pytest.approx(values)
        assert levels[key] == pytest.approx(values)
    if expected_levels:
        assert levels.keys() == expected_levels.keys()


def test_an_estimated_arrival(tmp_path):
    """The messages of the first example, when those of another pair say that a transfer takes 0.6 s."""
    lines = """
        ranks 4
        0: MPI_Bsend(1, bytes=100) [1, 1.1]
        0: MPI_Bsend(1, bytes=100) [2, 2.1]
        0: MPI_Bsend(1, bytes=100, tag=1) [3, 3.1]
        1: MPI_Recv(0, bytes=100) [2.5, 2.6]
        1: MPI_Irecv(0, bytes=100, tag=1, req=1) [2.8, 2.9]
        1: MPI_Wait(1) [3.1, 3.2]
        1: MPI_Recv(0, bytes=100) [4, 4.1]
    """.splitlines()
    for i in range(5):
        t = 10 * i
        # Late: 0.7 s from the start of the send to the end of the receive.
        lines += [f"2: MPI_Bsend(3, bytes=100) [{t + 2}, {t + 2.1}]", f"3: MPI_Recv(2, bytes=100) [{t + 1}, {t + 2.7}]"]
        # There already: 0.1 s, for either kind of call.
        lines += [f"2: MPI_Bsend(3, bytes=100) [{t + 3}, {t + 3.1}]", f"3: MPI_Recv(2, bytes=100) [{t + 5}, {t + 5.1}]"]
        lines += [f"2: MPI_Bsend(3, bytes=100) [{t + 6}, {t + 6.1}]"]
        lines += [
            f"3: MPI_Irecv(2, bytes=100, req={i}) [{t + 5.5}, {t + 5.6}]",
            f"3: MPI_Wait({i}) [{t + 7}, {t + 7.1}]",
        ]
    anchor = trace_from_text("\n".join(lines), tmp_path)
    cells, levels, _ = found(anchor, arrival="estimate")
    oracle = Queues(anchor, arrival="estimate")
    receive, post = (("program", "MPI_Recv"), 1, 0), (("program", "MPI_Irecv"), 1, 0)
    for table in (cells, oracle.table()):
        assert table["mpi_unexpected"][receive] == 2
        assert table["mpi_unexpected_time"][receive] == pytest.approx(2.3)
        assert table["mpi_posted_time"][post] == pytest.approx(0.4)
        assert table["mpi_match_attempts"][receive] + table["mpi_match_attempts"][post] == 4
        # 2 arrives at 2.6, when 1 has just been taken.
    for found_levels in (levels, in_seconds(oracle)):
        assert found_levels["mpi_unexpected_queue", 1][0] == 1
    for metric, values in oracle.table().items():
        same(values, cells[metric])


@settings(max_examples=60, deadline=None)
@given(
    trace=programs(), arrival=st.sampled_from(("progress", "estimate", "send")), match=st.sampled_from(("pair", "list"))
)
def test_program_agrees_with_oracle(trace, arrival, match):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(trace, directory)
        oracle = Queues(anchor, arrival=arrival, match=match)
        cells, levels, analysis = found(anchor, arrival, match, bins=7)
    expected = oracle.table()
    assert cells.keys() == expected.keys()
    for metric, values in expected.items():
        same(values, cells[metric])
    same(in_seconds(oracle), levels)
    grown = defaultdict(float)
    for row in pa.table(analysis.queue_moments()).to_pylist():
        grown[row["metric"], row["callpath"], row["location"]] += row["value"]
    sums = {
        (row["metric"], row["callpath"], row["location"]): row["value"]
        for row in pa.table(analysis.severities()).to_pylist()
        if row["metric"] in native.queue_metrics()
    }
    assert grown == pytest.approx(sums, abs=NANOSECOND)
    invariants(oracle, arrival, cells, analysis, levels)


def invariants(oracle, arrival, cells, analysis, levels):
    """Check the invariants of every trace."""

    def total(metric):
        return sum(cells.get(metric, {}).values())

    messages = len(oracle.messages)
    assert total("mpi_unexpected") <= total("mpi_unexpected_possible") <= messages
    if arrival != "estimate":
        assert total("mpi_unexpected_at_least") <= total("mpi_unexpected")
    assert total("mpi_match_attempts") >= messages
    assert total("mpi_eager") + total("mpi_rendezvous") + total("mpi_protocol_unknown") == messages
    sizes = ("0", "64", "1ki", "8ki", "64ki", "1mi", "more")
    assert sum(total(f"mpi_message_size_{size}") for size in sizes) == messages
    series = pa.table(analysis.queue_series()).to_pylist()
    assert len(series) == 7 * len(levels)
    assert all(a["begin"] < b["begin"] for a, b in pairwise(series) if a["bin"] < b["bin"])
    for first in range(0, len(series), 7):
        rows = series[first : first + 7]
        level = pa.table(analysis.queue_levels()).to_pylist()[first // 7]
        assert max(row["maximum"] for row in rows) == level["maximum"]
        assert sum(row["mean"] for row in rows) / 7 == pytest.approx(level["mean"])


def test_queue_sums_are_metrics_and_levels_a_table(tmp_path):
    """The sums are metrics like all others; the levels are a table."""
    anchor = trace_from_text("0: MPI_Bsend(1) [1, 1.1]\n1: MPI_Recv(0) [2, 2.1]", tmp_path)
    result = whywait.analyze(anchor, queues="send", queue_bins=4)
    assert result.metrics["mpi_unexpected"].total == 1
    assert result.metrics["mpi_unexpected_time"].total == pytest.approx(1)
    levels = result.queue_levels().to_pylist()
    assert [row["maximum"] for row in levels if row["metric"] == "mpi_unexpected_queue"] == [1]
    assert result.queue_series().num_rows == 4 * len(levels)
    assert "mpi_unexpected" not in whywait.analyze(anchor).metrics
    with pytest.raises(whywait.UsageError, match="queues"):
        whywait.analyze(anchor).queue_levels()
    with pytest.raises(whywait.UsageError, match="arrival"):
        whywait.analyze(anchor, queues="never")


# Rank 0 sends at 1, 2 and 3 s; rank 1 posts receives at 2.5, 2.8 and 4 s, in two steps.
STEPS = """
    0: MPI_Bsend(1, bytes=100) [1, 1.1]
    0: MPI_Bsend(1, bytes=200) [2, 2.1]
    0: MPI_Bsend(1, bytes=300, tag=1) [3, 3.1]
    1: step [2.4, 3.5]
    1: MPI_Recv(0, bytes=100) [2.5, 2.6]
    1: MPI_Irecv(0, bytes=300, tag=1, req=1) [2.8, 2.9]
    1: MPI_Wait(1) [3.1, 3.2]
    1: step [3.9, 5]
    1: MPI_Recv(0, bytes=200) [4, 4.1]
"""


def of(table, metric):
    return [row["value"] for row in table.to_pylist() if row["metric"] == metric]


def test_queues_of_a_result(tmp_path):
    """Queues are replayed on request, unless the analysis already did."""
    anchor = trace_from_text(STEPS, tmp_path)
    plain = whywait.analyze(anchor, causes=False)
    queues = plain.queues("send")
    assert of(queues.sums, "mpi_unexpected") == [2]
    assert pa.table(queues).equals(queues.sums)
    (longest,) = (row for row in queues.maxima.to_pylist() if row["metric"] == "mpi_max_unexpected_queue")
    assert (longest["rank"], longest["maximum"], longest["time"]) == (1, 2, pytest.approx(2))
    assert queues.series.num_rows == 0
    assert {row["bin"] for row in plain.queues("send", bins=4).series.to_pylist()} == {0, 1, 2, 3}
    replayed = whywait.analyze(anchor, causes=False, queues="send", queue_bins=4)
    assert replayed.queues().sums.equals(queues.sums)
    assert replayed.queues().series.equals(plain.queues("send", bins=4).series)
    # Bins need a new replay.
    without = whywait.analyze(anchor, causes=False, queues="send")
    assert without.queues(bins=4).series.equals(replayed.queues().series)
    edges = [0, 2.5, 2.6, 5]
    cut = [row for row in without.queues(bins=edges).series.to_pylist() if row["metric"] == "mpi_unexpected_queue"]
    assert [(row["begin"], row["mean"], row["maximum"]) for row in cut] == [
        (0, pytest.approx((1 + 2 * 0.5) / 2.5), 2), (2.5, 1, 1), (2.6, pytest.approx(1.4 / 2.4), 1)
    ]  # fmt: skip
    with pytest.raises(whywait.UsageError, match="increase"):
        without.queues(bins=[0, 1, 1]).replay()
    with pytest.raises(whywait.UsageError, match="arrival"):
        plain.queues("never").window(0, 1)


def test_sums_of_queues_in_windows_and_iterations(tmp_path):
    queues = whywait.analyze(trace_from_text(STEPS, tmp_path), causes=False).queues("send")
    assert of(queues.window(0, 2.6), "mpi_unexpected") == [1]
    assert of(queues.window(2.6, 9), "mpi_unexpected") == [1]
    assert of(queues.window(0, 9), "mpi_unexpected_time") == pytest.approx([1.5 + 2])
    assert queues.window(0, 9).equals(queues.sums)
    assert queues.window(7, 9).num_rows == 0
    # Sends count when they begin.
    assert of(queues.window(0, 2), "mpi_message_size_1ki") == [1]
    found = queues.by_iteration("mpi_unexpected", "step").to_pylist()
    assert [(row["iteration"], row["rank"], row["value"]) for row in found] == [(0, 1, 1), (1, 1, 1)]
    course = queues.by_bin("mpi_unexpected", np.linspace(1, 5, 5)).to_pylist()
    assert [(row["rank"], row["bin"], row["value"]) for row in course] == [(1, 0, 0), (1, 1, 1), (1, 2, 0), (1, 3, 1)]


@settings(max_examples=15, deadline=None)
@given(trace=programs(), cuts=st.lists(st.floats(0, 1), max_size=3))
def test_windows_that_tile_a_run_add_up(trace, cuts):
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(trace_from_text(trace, directory), causes=False)
        queues = result.queues()
        edges = [0.0, *sorted(cut * result.facts["length"] for cut in cuts), math.inf]
        tiles, sums = pa.concat_tables([queues.window(*pair) for pair in pairwise(edges)]), queues.sums
    keys = ["metric", "callpath_id", "location"]
    added = tiles.group_by(keys).aggregate([("value", "sum")]).to_pylist()
    whole = {tuple(row[key] for key in keys): row["value"] for row in sums.to_pylist()}
    assert {tuple(row[key] for key in keys): row["value_sum"] for row in added} == pytest.approx(whole)


def test_the_command_shows_sums_of_queues_in_parts(tmp_path, capsys):
    anchor = str(trace_from_text(STEPS, tmp_path))

    def rows(*options):
        command = ["counters", anchor, "--arrival", "send", "--metric", "mpi_unexpected", *options, "--json"]
        assert main(command) == 0
        return json.loads(capsys.readouterr().out)["rows"]

    assert [row["value"] for row in rows("--by", "iteration=step")] == [1, 1]
    assert [row["value"] for row in rows("--by", "time=5")] == [0, 0, 1, 0, 1]
    assert rows("--by", "time=5") == rows("--bins", "5")
    assert rows("--by", "rank", "--window", "0:2.6") == [{"rank": 1, "value": 1}]
    assert rows("--by", "callpath") == [{"callpath": "program/step/MPI_Recv", "value": 2}]
    assert main(["counters", anchor, "--arrival", "send", "--window", "0:2.6", "--queues", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sums"]["mpi_unexpected"]["total"] == 1
    # One message waits from 1 s on, two from 2 s on; one of them is received at 2.5 s.
    level = {"maximum": 2, "rank": 1, "mean": pytest.approx(2.1 / 2.6), "unit": "messages"}
    assert found["levels"]["mpi_unexpected_queue"] == level
    assert main(["counters", anchor, "--window", "0:2.6"]) == 0
    out = capsys.readouterr().out
    assert "Sum in the window" in out
    assert "Unexpected messages in the queue" in out
    assert main(["counters", anchor, "--metric", "mpi_unexpected_queue", "--by", "callpath"]) == 2
    assert "no call paths" in capsys.readouterr().err


def test_queues_are_correlated(tmp_path):
    """Three steps of rank 1, which posts more and more receives late, and works as long as it has late messages."""
    lines, sends = [], []
    for k in range(4):
        lines.append(f"1: step [{10 * k}, {10 * k + 9}]")
        for m in range(k + 1):
            sends.append(f"0: MPI_Bsend(1, bytes=8) [{10 * k + 0.1 * m}, {10 * k + 0.1 * m + 0.05}]")
            lines.append(f"1: MPI_Recv(0, bytes=8) [{10 * k + 2 + 0.1 * m}, {10 * k + 2.05 + 0.1 * m}]")
        # Late Senders that grow as well.
        sends.append(f"0: MPI_Bsend(1, bytes=8) [{10 * k + 4 + k}, {10 * k + 4.1 + k}]")
        lines.append(f"1: MPI_Recv(0, bytes=8) [{10 * k + 3}, {10 * k + 4.2 + k}]")
    result = whywait.analyze(
        trace_from_text("\n".join(["2: main [0, 39]", *sends, *lines]), tmp_path), causes=False, queues="send"
    )
    found = result.correlate("mpi_unexpected", "mpi_latesender", "iterations", loop="step")
    assert (found.n, found.r) == (4, pytest.approx(1))
    assert result.correlate("mpi_unexpected", "mpi_latesender", "bins", bins=4).n == 4
    assert result.correlate("mpi_max_unexpected_queue", "mpi_unexpected").r == pytest.approx(1)
    assert whywait.analyze(result.run, causes=False).correlate("mpi_unexpected_queue", "mpi_latesender").n == 3


def test_clocks_that_disagree_are_noted(tmp_path):
    anchor = trace_from_text("0: MPI_Bsend(1) [3, 3.1]\n1: MPI_Recv(0) [1, 2]", tmp_path)
    warnings = whywait.analyze(anchor, causes=False, queues="send").warnings
    assert [(one["kind"], one["count"]) for one in warnings] == [("clock_violation_p2p", 1)]


def test_messages_without_a_partner_are_noted(tmp_path):
    anchor = trace_from_text("0: MPI_Send(1) [1, 1.1]\n1: work [0, 2]", tmp_path)
    result = whywait.analyze(anchor, causes=False, queues="send")
    assert sum(one["count"] for one in result.warnings if "unmatched" in one["kind"]) == 1
    assert result.metrics["mpi_match_attempts"].total == 0


def test_a_receiver_finds_the_first_message_of_a_flood_expected():
    """It posts that receive before it looks for messages, and sees the others in this call."""
    result = whywait.analyze(Path(__file__).parent / "data" / "flood", causes=False, queues="progress")
    found = {row["callpath"][-2]: row["value"] for row in result.severities("mpi_unexpected").to_pylist()}
    assert {call: value for call, value in found.items() if value} == {"late_receiver": 19, "in_reverse": 19}


@pytest.mark.parametrize("arrival", ["send", "estimate"])
def test_a_recorded_flood_has_the_counters_of_its_text(arrival):
    """The program sends 20 messages of 64 bytes thrice, and one of 1 MiB: see tests/data/programs/flood.c."""
    result = whywait.analyze(Path(__file__).parent / "data" / "flood", causes=False, queues=arrival)

    def of(metric):
        return {row["callpath"][-2]: row["value"] for row in result.severities(metric).to_pylist() if row["value"]}

    assert of("mpi_unexpected") == {"late_receiver": 20, "in_reverse": 20, "rendezvous": 1}
    # The data of the large message stays at its sender.
    assert of("mpi_unexpected_bytes") == {"late_receiver": 1280, "in_reverse": 1280}
    assert of("mpi_unexpected_time")["late_receiver"] == pytest.approx(20 * 0.02, rel=0.1)
    assert of("mpi_posted_time") == {"late_sender": pytest.approx(20 * 0.02, rel=0.1)}
    # In reverse each search goes through all messages that are left: 20 + 19 + ... + 1.
    attempts = {"late_receiver": 20, "in_reverse": 210, "late_sender": 20, "rendezvous": 1}
    assert of("mpi_match_attempts") == attempts
    assert of("mpi_overtaken") == {"in_reverse": 19}
    assert of("mpi_eager") == {"late_receiver": 20, "in_reverse": 20}
    assert of("mpi_rendezvous") == {"rendezvous": 1}
    # Of the others each receive was posted before its send began.
    assert of("mpi_protocol_unknown") == {"late_sender": 20}
    levels = {row["metric"]: row["maximum"] for row in result.queue_levels().to_pylist() if row["rank"] == 1}
    assert levels == {
        "mpi_unexpected_queue": 20, "mpi_unexpected_data": 1280, "mpi_posted_queue": 20, "mpi_receive_requests": 20,
        "mpi_requests": 20, "mpi_bytes_in_flight": 1 << 20,
    }  # fmt: skip
