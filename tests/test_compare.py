"""What differs between two runs."""

import json
from pathlib import Path

import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait import cli
from whywait.analysis.runs.compare import differences, totals
from whywait.analysis.runs.threshold import Threshold

from tests import fake_native

PATH = ["main", fake_native.SOLVE[0], "MPI_Recv"]


def changed(**values):
    """Return the small run with other values of some metrics."""
    analysis = fake_native.small()
    table = fake_native.pa.table(analysis.severities())
    rows = [row for row in table.to_pylist() if row["metric"] not in values]
    rows += [
        {"metric": metric, "callpath": callpath, "location": location, "value": value}
        for metric, cells in values.items()
        for (callpath, location), value in cells.items()
    ]
    rows.sort(key=lambda row: (row["metric"], row["callpath"], row["location"]))
    schema = fake_native.SEVERITIES
    plain = fake_native.pa.Table.from_pylist(
        rows, schema=schema.set(0, fake_native.pa.field("metric", fake_native.pa.string()))
    )
    analysis._severities = plain.cast(schema)
    return fake_native.result(analysis)


BEFORE = changed()
AFTER = changed(mpi_latesender={(1, 0): 0.006, (1, 2): 0.008}, mpi_barrier_wait={})


def test_by_call_path_and_metric():
    rows = differences(BEFORE, AFTER).to_pylist()
    assert [(row["metric"], row["callpath"], row["group"]) for row in rows] == [
        ("mpi_latesender", PATH, 0), ("mpi_barrier_wait", ["main", "MPI_Barrier"], 0),
    ]  # fmt: skip
    late, barrier = rows
    assert (late["first"], late["second"]) == pytest.approx((0.008, 0.014))
    assert (late["difference"], late["relative"]) == pytest.approx((0.006, 0.75))
    assert (barrier["second"], barrier["relative"]) == pytest.approx((0, -1))


def test_differences_sum_over_groups_of_ranks():
    rows = differences(BEFORE, AFTER, ["mpi_latesender"], groups=3).to_pylist()
    assert [(row["group"], row["relative"] and round(row["relative"], 6)) for row in rows] == [
        (2, None), (1, -1.0), (0, 0.2),
    ]  # fmt: skip
    # Neighbors are in one group.
    rows = differences(BEFORE, AFTER, ["mpi_latesender"], groups=2).to_pylist()
    assert [(row["group"], row["first"], row["second"]) for row in rows] == [
        (1, 0, 0.008), (0, pytest.approx(0.008), 0.006),
    ]  # fmt: skip


def test_seconds_come_before_counts():
    visits = changed(mpi_latesender={(1, 0): 0.005, (1, 1): 0.004}, visits={(3, 0): 1e6})
    rows = differences(BEFORE, visits, ["visits", "mpi_latesender"]).to_pylist()
    assert [row["metric"] for row in rows][:2] == ["mpi_latesender", "visits"]


def test_a_metric_that_neither_run_has():
    with pytest.raises(whywait.UsageError, match="neither run has a metric beauty"):
        differences(BEFORE, AFTER, ["beauty"])


def test_totals_are_those_of_the_metrics():
    rows = {row["metric"]: row for row in totals(BEFORE, AFTER)}
    for name, metric in AFTER.metrics.items():
        assert rows[name]["second"] == metric.total
    assert rows["mpi_latesender"]["difference"] == pytest.approx(0.006)
    assert rows["time"]["difference"] == 0


@given(st.integers(1, 5))
def test_a_run_does_not_differ_from_itself(groups):
    assert differences(BEFORE, changed(), list(BEFORE.metrics), groups=groups).num_rows == 0


def test_runs_of_different_size():
    one = fake_native.FakeAnalysis([None], [fake_native.MAIN], [(0, 0)], {"time": {(0, 0): 1.0}})
    two = fake_native.FakeAnalysis(
        [None], [fake_native.MAIN], [(rank, 0) for rank in range(4)], {"time": {(0, rank): 1.0 for rank in range(4)}}
    )
    one, two = fake_native.result(one), fake_native.result(two)
    (row,) = differences(one, two).to_pylist()
    assert (row["first"], row["second"]) == (1, 4)
    rows = differences(one, two, groups=2).to_pylist()
    assert sorted((row["group"], row["first"], row["second"]) for row in rows) == [(0, 1, 2), (1, 0, 2)]


def test_empty_runs_can_be_compared():
    nothing = fake_native.result(fake_native.FakeAnalysis([], [], [], {}))
    assert differences(nothing, nothing).num_rows == 0
    assert differences(nothing, AFTER).num_rows == differences(AFTER, nothing).num_rows > 0


@pytest.mark.parametrize(
    ("text", "exceeded"),
    [
        ("mpi_latesender>70%", True),
        ("mpi_latesender > 80%", False),
        ("mpi_latesender>0.005s", True),
        ("mpi_latesender>5.5ms", True),
        ("mpi_latesender>6.5ms", False),
        ("mpi_latesender>7e3us", False),
        ("mpi_barrier_wait>0%", False),
        ("visits>0", False),
    ],
)
def test_thresholds_are_parsed_and_checked(text, exceeded):
    assert Threshold.parse(text).exceeded(BEFORE, AFTER) is exceeded


def test_what_is_new_exceeds_any_share():
    assert Threshold.parse("mpi_barrier_wait>1000%").exceeded(AFTER, BEFORE)
    with pytest.raises(whywait.UsageError):
        Threshold.parse("beauty>1%").exceeded(AFTER, BEFORE)


@pytest.mark.parametrize("text", ["mpi_latesender", "mpi_latesender<5%", ">5%", "time>five", "time>5 h", "time>-1s"])
def test_thresholds_that_make_no_sense(text):
    with pytest.raises(ValueError, match="is not of the form"):
        Threshold.parse(text)


@pytest.mark.parametrize("text", ["mpi_latesender>5", "time>0.5", "visits>5s"])
def test_thresholds_in_no_unit_of_the_metric(text):
    with pytest.raises(whywait.UsageError, match=r"is a time|is not a time"):
        Threshold.parse(text).exceeded(BEFORE, AFTER)


def test_a_comparison_answers_as_the_analysis_does():
    both = whywait.compare(BEFORE, AFTER)
    assert both.names == (BEFORE.run.name, AFTER.run.name)
    assert both.differences(["mpi_latesender"], groups=3) == differences(BEFORE, AFTER, ["mpi_latesender"], groups=3)
    assert both.totals(callpath="MPI_Recv") == totals(BEFORE, AFTER, callpath="MPI_Recv")
    time = max(run.metrics["time"].total for run in (BEFORE, AFTER))
    assert both.differences().num_rows == 2
    assert both.differences(least=0.005 / time)["metric"].to_pylist() == ["mpi_latesender"]
    limits = [Threshold.parse("mpi_latesender>50%"), Threshold.parse("mpi_latesender>90%")]
    assert both.exceeded(limits) == limits[:1]


def test_compared_runs_are_read_or_analyzed(tmp_path):
    """A trace, and the directory of its result, have no differences."""
    data = Path(__file__).parent / "data"
    whywait.analyze(data / "p2p").write(tmp_path / "results")
    both = whywait.compare(data / "p2p", tmp_path / "results", names=("trace", "result"))
    assert both.names == ("trace", "result")
    assert both.differences().num_rows == 0
    assert repr(both) == "<whywait.Comparison of 'trace' and 'result'>"


def test_the_focus_says_which_run_is_slower(capsys):
    """The whole run with fences is shorter, because MPI_Init took less time; the program itself takes longer."""
    runs = [str(Path(__file__).parent / "data" / name) for name in ("sor_p2p", "sor_fence")]
    lengths = whywait.compare(*runs).lengths()
    assert lengths["focus"][1] > lengths["focus"][0]
    assert lengths["run"][1] < lengths["run"][0]
    assert cli.main(["diff", *runs]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "Focus: 53.6 ms -> 54.5 ms, 1.7% slower. (Whole run: 5.2% faster.)"
    assert cli.main(["diff", *runs, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["lengths"]
    assert {name: (both["first"], both["second"]) for name, both in told.items()} == lengths
