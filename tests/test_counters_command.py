"""`whywait counters` as a user asks it: by axis, in windows, correlated over ranks, iterations and bins."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import whywait
from whywait.analysis.counters.expected_traffic import recursive_doubling
from whywait.cli import main
from whywait.model.selection import edges_of_bins

from tests.test_counters import STRICT, TWO_RANKS, archive, counter, values
from tests.tracedsl import trace_from_text

# Rank 1 works longer from step to step, and rank 0 waits for it.
STEPS = "\n".join(
    ["counters INS", "ranks 3"]
    + [
        line
        for k in range(4)
        for line in (
            f"0: step [{10 * k}, {10 * k + 9}]",
            f"0: MPI_Recv(1, INS={k}) [{10 * k + 1}, {10 * k + 2 + k}]",
            f"1: step [{10 * k}, {10 * k + 9}]",
            f"1: work(INS={100 * (k + 1)}) [{10 * k + 0.5}, {10 * k + 1.5 + k}]",
            f"1: MPI_Send(0) [{10 * k + 1.5 + k}, {10 * k + 2 + k}]",
            f"2: step [{10 * k}, {10 * k + 9}]",
        )
    ]
)


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return trace_from_text(STEPS, tmp_path_factory.mktemp("steps"))


def rows(capsys, anchor, *options):
    assert main(["counters", str(anchor), "--metric", "INS", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def test_by_call_path_and_rank(steps, capsys):
    found = {row["callpath"]: (row["value"], row["inclusive"]) for row in rows(capsys, steps, "--by", "callpath")}
    assert found["program/step/work"] == (1000, 1000)
    assert found["program/step"] == (0, 1006)
    assert [(row["rank"], row["value"]) for row in rows(capsys, steps, "--by", "rank", "--top", "2")] == [
        (1, 1000), (0, 6),
    ]  # fmt: skip
    by_rank = whywait.analyze(steps, causes=False).counters["INS"].by_rank().to_pylist()
    assert [(row["rank"], row["value"]) for row in by_rank] == [(0, 6), (1, 1000), (2, 0)]


def test_by_iteration_and_time(steps, capsys):
    found = rows(capsys, steps, "--by", "iteration=step")
    assert [row["value"] for row in found if row["rank"] == 1] == [100, 200, 300, 400]
    assert found == rows(capsys, steps, "--iterations", "step")
    by_time = rows(capsys, steps, "--by", "time=10s")
    assert [(row["begin"], row["value"]) for row in by_time if row["rank"] == 1] == [
        (0, 100), (10, 200), (20, 300), (30, 400),
    ]  # fmt: skip
    assert rows(capsys, steps, "--by", "time=3") == rows(capsys, steps, "--bins", "3")
    in_window = rows(capsys, steps, "--by", "time=2", "--window", "10:30")
    assert [(row["begin"], row["value"]) for row in in_window if row["rank"] == 1] == [(10, 200), (20, 300)]


def test_sums_are_cut_to_the_window(steps, capsys):
    assert [row["value"] for row in rows(capsys, steps, "--by", "rank", "--window", "10:30")] == [500, 3, 0]
    assert main(["counters", str(steps), "--window", "10:30", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["total"]) for one in found["counters"]] == [("INS", 503)]
    assert found["sums"]["mpi_match_attempts"]["total"] == 2
    assert found["window"] == [10, 30]
    assert found["levels"]["mpi_bytes_in_flight"]["maximum"] == 8
    assert main(["counters", str(steps), "--window", "10:30"]) == 0
    assert "INS" in capsys.readouterr().out


def test_queues_leaves_out_the_counters_of_the_trace(steps, capsys):
    assert main(["counters", str(steps), "--queues", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "counters" not in found
    assert found["sums"]["mpi_match_attempts"]["total"] == 4
    assert main(["counters", str(steps), "--queues"]) == 0
    assert "INS" not in capsys.readouterr().out


def test_correlated_over_iterations(steps, capsys):
    """The Late Senders of the steps last 0.5, 1.5, 2.5 and 3.5 s: as linear as the instructions."""
    result = whywait.analyze(steps)
    found = result.correlate("INS", "mpi_latesender", "iterations", loop="step")
    assert (found.n, found.r) == (4, pytest.approx(1))
    assert main(["counters", str(steps), "--correlate", "INS", "--over", "iterations", "--iterations", "step"]) == 0
    assert "mpi_latesender" in capsys.readouterr().out
    with pytest.raises(whywait.UsageError, match="is not known by iterations"):
        result.correlate("INS", "visits", "iterations", loop="step")
    with pytest.raises(whywait.UsageError, match="no metric and no counter"):
        result.correlate("nix", "time", "iterations", loop="step")


def test_columns_without_values_are_left_out(steps, capsys):
    """A total over time has no mean and no maximum."""
    assert main(["counters", str(steps), "--metric", "INS", "--by", "time=2"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["rank", "thread", "bin", "begin", "value"]
    assert len(first.split()) == 5


def test_correlated_over_bins(steps, capsys):
    result = whywait.analyze(steps, causes=False)
    found = result.correlate("INS", "mpi_latesender", "bins", bins=9)
    edges = np.linspace(0, result.facts["length"], 10)
    waits = [result.window(a, b)["mpi_latesender"].total for a, b in pairwise(edges)]
    course = result.counters["INS"].series(9)
    ins = np.bincount(course["bin"].to_numpy(), course["value"].to_numpy())
    assert (found.n, found.r) == (9, pytest.approx(np.corrcoef(ins, waits)[0, 1]))
    assert main(["counters", str(steps), "--correlate", "--over", "bins", "--bins", "9", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {"x": "INS", "y": "mpi_latesender", "n": 9, "r": pytest.approx(found.r)} in said["correlations"]


def test_all_counters_are_correlated(steps, capsys):
    assert main(["counters", str(steps), "--correlate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["correlations"]
    strength = [abs(one["r"] or 0) for one in found]
    assert strength == sorted(strength, reverse=True)
    assert main(["counters", str(steps), "--correlate", "--top", "1000", "--json"]) == 0
    names = {one["x"] for one in json.loads(capsys.readouterr().out)["correlations"]}
    assert {"INS", "mpi_unexpected"} <= names


@pytest.mark.parametrize(
    "options",
    [
        ["--by", "rank"],
        ["--metric", "INS", "--by", "rank", "--bins", "2"],
        ["--metric", "mpi_unexpected_queue", "--by", "rank", "--bins", "2"],
        ["--metric", "INS", "--by", "iteration=step", "--window", "0:1"],
        ["--metric", "INS", "--window", "500:600"],
        ["--over", "bins"],
        ["--queues", "--metric", "INS"],
        ["--correlate", "--window", "0:1"],
    ],
)
def test_conflicting_options_are_refused(steps, capsys, options):
    assert main(["counters", str(steps), *options]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("axis", ["time=0", "time=0s", "time=x", "iteration=", "rank=3", "nothing"])
def test_an_axis_that_there_is_not(steps, capsys, axis):
    with pytest.raises(SystemExit) as ended:
        main(["counters", str(steps), "--metric", "INS", "--by", axis])
    assert ended.value.code == 2
    assert "iteration=PATH" in capsys.readouterr().err


@pytest.mark.parametrize("scope", [None, "group"])
def test_nothing_is_counted_while_the_measurement_is_off(tmp_path, scope):
    """80 in 8 s, of which it is off for 4: main and foo run for 2 s each."""
    calls = [(0, "enter", "main"), (10, "enter", "foo"), (20, "off", None), (60, "on", None), (70, "leave", "foo"),
             (80, "leave", "main")]  # fmt: skip
    samples = [(0, 0, (0,)), (80, 0, (80,))]
    if scope is None:
        streams, processes = [[samples[0], *calls[:-1], samples[1], calls[-1]]], [0]
    else:
        streams, processes = [calls, samples], [0, 0]
    anchor = archive(tmp_path, [counter(occurrence=STRICT, scope=scope)], streams, processes)
    result = whywait.analyze(anchor, causes=False)
    found = result.counters["c"]
    assert values(found) == {"main": 40, "foo": 40}
    parts = [result.counters.window(a, b) for a, b in ((0, 1), (1, 3), (3, 5), (5, 8))]
    assert [part["c"].total if "c" in part else 0 for part in parts] == [20, 20, 0, 40]


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (["--counters"], ["counter:INS", "counter:MISS"]),
        (["--counters", "all"], ["counter:INS", "counter:MISS"]),
        (["--counters", "MISS"], ["counter:MISS"]),
        ([], []),
    ],
)
@pytest.mark.parametrize("behind", [False, True])
def test_counters_in_the_tables_of_waits_are_chosen_by_name(tmp_path, given, columns, behind):
    anchor = str(trace_from_text(TWO_RANKS, tmp_path))
    options = ["-o", str(tmp_path / "out"), "--quiet"]
    words = [anchor, *options, *given] if behind else [*given, anchor, *options]
    assert main(["analyze", *words]) == 0
    found = pq.read_schema(tmp_path / "out" / "wait_states.parquet").names
    assert [name for name in found if name.startswith("counter:")] == columns


def test_counters_to_add_must_exist(tmp_path, capsys):
    anchor = str(trace_from_text(TWO_RANKS, tmp_path))
    assert main(["analyze", anchor, "-o", str(tmp_path / "out"), "--quiet", "--counters", "INS,nix"]) == 2
    assert "no counter 'nix'; there are INS, MISS" in capsys.readouterr().err


def test_the_command_takes_modes_of_counters(tmp_path, capsys):
    anchor = str(trace_from_text(TWO_RANKS, tmp_path))
    assert main(["counters", anchor, "--counter-mode", "INS=absolute", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["counters"]}
    assert [found[name]["used_mode"] for name in ("INS", "MISS")] == ["ABSOLUTE_POINT", "ACCUMULATED_START"]
    assert (found["INS"]["kind"], found["INS"]["notes"]) == ("level", ["taken as ABSOLUTE_POINT"])
    assert found["INS"]["scopes"] == ["location"]
    with pytest.raises(SystemExit):
        main(["counters", anchor, "--counter-mode", "absolute"])


STENCIL = Path(__file__).parent / "data" / "stencil"


def test_the_overview_names_what_occurs_and_says_what_is_missing(steps, capsys):
    assert main(["counters", str(STENCIL), "--arrival", "estimate"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The trace has no recorded counters. These are derived from its messages:\n")
    assert re.search(r"^Bytes of unexpected messages +111 KiB  mpi_unexpected_bytes$", out, re.MULTILINE)
    assert re.search(r"^Messages by size: Up to 1 KiB +2,000  mpi_message_size_1ki$", out, re.MULTILINE)
    assert re.search(
        r"^Bytes in flight \(run\) +2\.25 KiB +608 ms +all +202 B  mpi_bytes_in_flight$", out, re.MULTILINE
    )
    assert not re.search("  mpi_overtaken$", out, re.MULTILINE)
    assert main(["counters", str(STENCIL), "--arrival", "estimate", "--json"]) == 0
    sums = json.loads(capsys.readouterr().out)["sums"]
    zeros = [name for name, row in sums.items() if not row["total"]]
    assert "mpi_overtaken" in zeros
    assert f"\n{len(zeros)} more are zero" in out
    assert main(["counters", str(steps)]) == 0
    assert "no recorded counters" not in capsys.readouterr().out


def test_the_overview_only_names_counters_that_are_always_zero(tmp_path, capsys):
    """Open MPI has 161 counters, of which a program needs few."""
    text = """
        counters OMPI_SPC_WAIT OMPI_SPC_SEND OMPI_SPC_MATCH_TIME
        0: work(OMPI_SPC_WAIT=2) [0, 1]
        0: work(OMPI_SPC_SEND=3) [1, 2]
    """
    anchor = str(trace_from_text(text, tmp_path))
    assert main(["counters", anchor]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^OMPI_SPC_WAIT +2 ", out, re.MULTILINE)
    assert "\n1 more is zero (--json has all): OMPI_SPC_MATCH_TIME\n" in out
    assert main(["counters", anchor, "--spc"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^WAIT +2  calls \(recorded: OMPI_SPC_WAIT; visits of MPI_WAIT: 0\)$", out, re.MULTILINE)
    assert not re.search("^(TEST|MATCH_TIME) ", out, re.MULTILINE)
    assert re.search(r"^\d+ more are zero \(--json has all\): BSEND, RSEND, ", out, re.MULTILINE)


def test_a_run_without_counters_and_messages(tmp_path, capsys):
    assert main(["counters", str(trace_from_text("0: work [0, 1]", tmp_path))]) == 0
    assert capsys.readouterr().out == "The trace has no recorded counters.\nThe run has no messages.\n"


@pytest.mark.parametrize("metric", ["INS", "mpi_match_attempts"])
def test_bins_of_a_width(steps, capsys, metric):
    assert main(["counters", str(steps), "--metric", metric, "--by", "time=0.5s", "--json"]) == 0
    expected = capsys.readouterr().out
    assert main(["counters", str(steps), "--metric", metric, "--bin", "500ms", "--json"]) == 0
    assert capsys.readouterr().out == expected
    assert json.loads(expected)["rows"]


# One message waits from 1 to 2.5 s, another one from 2 to 4 s, in a run of 5 s.
QUEUE = """
    0: MPI_Bsend(1, bytes=100) [1, 1.1]
    0: MPI_Bsend(1, bytes=200) [2, 2.1]
    1: work [0, 0.5]
    1: MPI_Recv(0, bytes=100) [2.5, 2.6]
    1: MPI_Recv(0, bytes=200) [4, 4.1]
    *: work [4.5, 5]
"""


def test_a_queue_in_bins_of_a_width(tmp_path, capsys):
    anchor = trace_from_text(QUEUE, tmp_path)

    def level(*options, metric="mpi_unexpected_queue"):
        assert main(["counters", str(anchor), "--metric", metric, "--arrival", "send", *options, "--json"]) == 0
        return [tuple(row.values()) for row in json.loads(capsys.readouterr().out)["rows"]]

    bins = [
        (1, 0, 0.0, pytest.approx(0.2 / 1.2), 1),
        (1, 1, 1.2, pytest.approx((0.8 + 2 * 0.4) / 1.2), 2),
        (1, 2, 2.4, pytest.approx((2 * 0.1 + 1.1) / 1.2), 2),
        (1, 3, 3.6, pytest.approx(0.4 / 1.2), 1),
        (1, 4, 4.8, 0, 0),
    ]
    assert level("--bin", "1.2s") == bins
    assert level("--by", "time=1200ms") == bins
    assert level("--by", "time=5") == level("--bins", "5") == level("--bin", "1s")
    assert level("--bin", "1s", "--window", "2:4") == [(1, 0, 2, 1.5, 2), (1, 1, 3, 1, 1)]
    assert level("--bins", "2", "--window", "2:4") == level("--bin", "1s", "--window", "2:4")
    assert level("--window", "2:4") == [(1, 2, 1.25)]
    assert level("--window", "0:2") == [(1, 1, 0.5)]
    assert level("--by", "rank") == level() == [(1, 2, 2, pytest.approx(3.5 / 5))]
    assert level("--bin", "2.5s", metric="mpi_bytes_in_flight")[-1][0] is None


@pytest.mark.parametrize("options", [["--by", "callpath"], ["--by", "iteration=work"], ["--iterations", "work"]])
def test_a_queue_has_no_call_path(tmp_path, capsys, options):
    anchor = trace_from_text(QUEUE, tmp_path)
    assert main(["counters", str(anchor), "--metric", "mpi_unexpected_queue", *options]) == 2
    assert "has no call paths and no iterations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("width", "edges"),
    [(0.1, [0, 0.1, 0.2, 0.3]), (0.2, [0, 0.2, 0.3]), (0.3, [0, 0.3]), (9, [0, 0.3]), (None, [0, 0.15, 0.3])],
)
def test_bins_have_the_requested_width(width, edges):
    assert edges_of_bins((0.0, 0.3), 2, width).tolist() == pytest.approx(edges)
    # The end may be rounded up.
    spans = [(count * step, step) for count in (3, 11) for step in (0.1, 0.3, 1e-6, 7.7)]
    assert all(np.diff(edges_of_bins((0.0, end), 1, step)).min() > 0.9 * step for end, step in spans)


@pytest.mark.parametrize(
    "options",
    [
        ["--bin", "1s"],
        ["--bin", "1s", "--metric", "INS", "--bins", "3"],
        ["--expected-traffic", "recursive-doubling", "--spc"],
    ],
)
def test_bins_and_traffic_stand_alone(steps, capsys, options):
    assert main(["counters", str(steps), *options]) == 2
    assert "--bin" in (said := capsys.readouterr().err) or "--expected-traffic" in said


@pytest.mark.parametrize("width", ["0s", "1", "s", "-1s", "1h"])
def test_a_wrong_bin_width_is_a_usage_error(steps, capsys, width):
    with pytest.raises(SystemExit) as ended:
        main(["counters", str(steps), "--metric", "INS", f"--bin={width}"])
    assert ended.value.code == 2
    assert "is not a time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("processes", "expected"), [(40, {1: 8, 6: 8, 5: 24}), (10, {1: 2, 4: 2, 3: 6}), (8, {3: 8}), (1, {0: 1})]
)
def test_round_trips_of_recursive_doubling(processes, expected):
    found = recursive_doubling(processes).tolist()
    assert Counter(found) == expected
    rest = processes - 2 ** (processes.bit_length() - 1)
    assert all(found[rank] == 1 for rank in range(0, 2 * rest, 2))


def test_expected_traffic_is_beside_what_open_mpi_sent(tmp_path, capsys):
    """Three processes: rank 0 hands its data to rank 1, ranks 1 and 2 exchange."""
    anchor = trace_from_text(
        """
        counters OMPI_SPC_BYTES_SENT_MPI
        0: MPI_Allreduce(OMPI_SPC_BYTES_SENT_MPI=8) [1, 2]
        1: MPI_Allreduce(OMPI_SPC_BYTES_SENT_MPI=16) [1, 2]
        2: MPI_Allreduce(OMPI_SPC_BYTES_SENT_MPI=8) [1, 2]
        *: MPI_Allreduce [3, 4]
        *: MPI_Barrier [5, 6]
        """,
        tmp_path,
    )
    words = ["counters", str(anchor), "--expected-traffic", "recursive-doubling"]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [tuple(row.values()) for row in rows] == [(0, 1, 2, 2, 8), (1, 2, 2, 4, 16), (2, 1, 2, 2, 8)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["1", "2", "2", "4", "16"]
    assert main(["counters", str(STENCIL), *words[2:]]) == 0
    assert "BYTES_SENT_MPI" not in capsys.readouterr().out


def test_analyze_prints_both_counts_of_unexpected_messages(tmp_path, capsys):
    anchor = trace_from_text(
        """
        counters OMPI_SPC_UNEXPECTED
        0: MPI_Send(1, bytes=8) [1, 1.1]
        1: MPI_Probe(0) [2, 2.1]
        1: MPI_Recv(0, bytes=8, OMPI_SPC_UNEXPECTED=3) [3, 3.1]
        """,
        tmp_path,
    )
    words = ["analyze", str(anchor), "-o", str(tmp_path / "out")]
    assert main([*words, "--queues"]) == 0
    capsys.readouterr()
    assert main(["summary", str(tmp_path / "out")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Unexpected messages: between 0 and 1 in the replay (mpi_unexpected_at_least, mpi_unexpected); 3 counted by"
        in said
    )
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    counted = summary["unexpected"]
    assert [counted[name] for name in ("at_least", "derived", "recorded")] == [0, 1, 3]
    assert (counted["name"], counted["arrival"]) == ("OMPI_SPC_UNEXPECTED", "progress")
    assert main(words) == 0
    capsys.readouterr()
    assert main(["summary", str(tmp_path / "out")]) == 0
    assert "counted by Open MPI" not in capsys.readouterr().out
