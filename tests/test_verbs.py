"""The verbs that show results: report, waits, efficiency, diff."""

import json
import re

import pytest
import whywait
from whywait import cli
from whywait.analysis.ranking import Choice, choose, groups, longest
from whywait.report.trees import tree_data, tree_lines
from whywait.report.values import group_name, quantity

from tests import fake_native
from tests.test_compare import AFTER, BEFORE


@pytest.fixture
def result():
    return fake_native.result(fake_native.small())


@pytest.fixture(autouse=True)
def _runs(monkeypatch):
    """Provide two traces."""
    monkeypatch.setattr(whywait, "analyze", lambda path, **_: {"before": BEFORE, "after": AFTER}[path])


def out(capsys, *arguments, code=0):
    assert cli.main(list(arguments)) == code
    text = capsys.readouterr().out
    assert "\x1b" not in text
    return text


def is_narrow(text):
    return all(len(line) <= 80 for line in text.splitlines())


# report


def test_report_shows_three_trees(capsys):
    text = out(capsys, "tree", "before", "--metric", "mpi_latesender")
    assert is_narrow(text)
    focus, metrics, calls, ranks = text.split("\n\n")
    assert focus == "Focus: 0 s to 1.50 s (the whole run), 1.50 s."
    assert re.search(r"^Time +\S+ m?s +100\.0%  █{16}$", metrics, re.MULTILINE)
    assert re.search(r"^          Late Sender +8\.00 ms +1\.\d%$", metrics, re.MULTILINE)
    assert [line.split()[0] for line in calls.splitlines()[1:]] == ["main", "solver::solve", "MPI_Recv"]
    assert re.search(r"^    MPI_Recv +8\.00 ms +100\.0%  █{16}$", calls, re.MULTILINE)
    assert re.search(r"^rank 0 +5\.00 ms +100\.0%  █{16}$", ranks, re.MULTILINE)
    assert re.search(r"^rank 1 +3\.00 ms +60\.0%  █{10}$", ranks, re.MULTILINE)
    assert re.search(r"^rank 2 +0 s +0\.0%$", ranks, re.MULTILINE)


def test_report_of_a_part(capsys):
    text = out(capsys, "tree", "before", "--callpath", "MPI_Barrier")
    _, metrics, calls, _ = text.split("\n\n")
    assert "Late Sender" not in metrics
    assert "Wait at Barrier" in metrics
    assert len(calls.splitlines()) == 2
    shallow = out(capsys, "tree", "before", "--depth", "2")
    assert "  Computation " not in shallow
    assert "MPI_Recv" not in shallow


def test_report_names_its_part(capsys):
    assert out(capsys, "tree", "before").startswith("Focus: 0 s to 1.50 s (the whole run), 1.50 s.\n\nMetrics  ")


def test_report_does_not_cut_names_of_metrics(result):
    data = tree_data(result)
    name = data["metrics"][1]["label"] = "Wait states whose name does not leave room for a value and a bar"
    lines = ["".join(text for text, _ in line) for line in tree_lines(data)]
    assert f"  {name}" in lines
    assert max(map(len, lines)) <= 80


def test_report_values_are_those_of_the_metrics(result):
    data = tree_data(result, "visits")
    for row in data["metrics"]:
        assert row["value"] == pytest.approx(result.metrics[row["name"]].total)
    assert data["callpaths"][0]["value"] == sum(row["value"] for row in data["ranks"]) == result.metrics["visits"].total
    json.dumps(data)


def test_report_in_ascii_with_names_that_do_not_fit():
    long = ("x" * 100, "USER", "FUNCTION")
    analysis = fake_native.FakeAnalysis(
        [None, *range(59)], [long] * 60, [(rank, 0) for rank in range(100)], {"time": {(59, 3): 1.0, (59, 99): 2.0}}
    )
    lines = ["".join(text for text, _ in line) for line in tree_lines(
        tree_data(fake_native.result(analysis)), unicode=False)]  # fmt: skip
    assert all(len(line) <= 80 and line.isascii() for line in lines)
    assert sum("xxxx~" in line for line in lines) == 60
    ranks = lines[lines.index("", lines.index("") + 1) + 2 :]
    assert len(ranks) == 16
    assert ranks[0].startswith("ranks 0-6 ")


def test_report_of_nothing():
    empty = fake_native.result(fake_native.FakeAnalysis([], [], [], {}))
    lines = ["".join(text for text, _ in line) for line in tree_lines(tree_data(empty))]
    assert lines.count("nowhere") == 2


def test_unknown_names_get_suggestions(capsys):
    there = "solver::solve, main, TRACE BUFFER FLUSH"
    unknown = f"no call path ends in nowhere: the program has {there}; whywait tree lists call paths"
    for arguments, text in (
        (["tree", "before", "--metric", "beauty"], "there is no metric beauty"),
        (["tree", "before", "--callpath", "nowhere"], unknown),
        (["waits", "before", "--metric", "beauty"], "there is no metric beauty"),
        (["waits", "before", "--metric", "visits"], "visits has no wait states below it"),
        (["waits", "before", "--rank", "9"], "there is no rank 9: ranks are 0 to 2"),
        (["diff", "before", "after", "--fail-on", "beauty>5%"], "neither run has a metric beauty"),
    ):
        assert cli.main(arguments) == 2
        assert capsys.readouterr().err == f"whywait: {text}\n"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.5, "sec", "500 ms"), (2.0**40, "bytes", "1.00 TiB"), (12345, "occ", "12,345"), (2.5e9, "occ", "2.50 G"),
     (12811, "bytes", "12.5 KiB"), (9.996e9, "occ", "10.0 G"),
     (-512, "bytes", "-512 B"), (2.0**70, "bytes", "1,048,576 PiB")],
)  # fmt: skip
def test_quantities_print_in_a_fitting_unit(value, unit, text):
    assert quantity(value, unit) == text


def test_groups_of_ranks_have_names():
    ranks = fake_native.np.array([0, 1, 2, 5])
    assert [group_name(ranks, group, 2) for group in range(2)] == ["ranks 0-1", "ranks 2-5"]
    assert [group_name(ranks[:1], group, 2) for group in range(2)] == ["rank 0", "no rank"]


# waits


def test_the_longest_waits_first(result):
    rows = longest(result, choose(result, Choice()), 10).to_pylist()
    assert [(row["kind"], row["rank"], row["waiting"]) for row in rows] == [
        ("mpi_latesender", 0, 0.004), ("mpi_latesender", 1, 0.003), ("mpi_barrier_wait", 0, 0.002),
        ("mpi_latesender", 0, 0.001), ("mpi_barrier_wait", 2, 0.001),
    ]  # fmt: skip
    assert rows[0]["cause_callpath"] == ["main", fake_native.SOLVE[0], "MPI_Send"]


@pytest.mark.parametrize(
    ("choice", "count"),
    [
        (Choice("mpi_lswo_same"), 1),
        (Choice("mpi_communication"), 3),
        (Choice(rank=0), 3),
        (Choice(callpath="main/MPI_Barrier"), 2),
        (Choice(callpath="main", rank=1), 1),
        (Choice("mpi_barrier_wait", rank=1), 0),
    ],
)
def test_waits_can_be_chosen(result, choice, count):
    assert choose(result, choice).num_rows == count


def test_waits_in_groups(result):
    rows = groups(result, choose(result, Choice()), 10)
    assert [(row["kind"], row["instances"], row["ranks"], row["cause_ranks"]) for row in rows] == [
        ("mpi_latesender", 2, 1, 2), ("mpi_latesender", 1, 1, 0), ("mpi_barrier_wait", 2, 2, 1),
    ]  # fmt: skip
    assert (rows[0]["waiting"], rows[0]["longest"]) == pytest.approx((0.005, 0.004))
    assert sum(row["waiting"] for row in rows) == pytest.approx(result.summary()["waiting"]["total"])


def test_waits_are_readable(capsys):
    text = out(capsys, "waits", "before", "--top", "1")
    assert is_narrow(text)
    assert re.split(r" {2,}", text.splitlines()[2]) == ["5 wait states, 11.0 ms", "waiting", "share"]
    assert "1. Late Sender, rank 0 at 0.100000 s" in text
    assert "   for rank 1, which arrived at 0.150000 s" in text
    assert "2. " not in text
    text = out(capsys, "waits", "before", "--groups")
    assert is_narrow(text)
    assert "2 waits on 1 rank, up to 4.00 ms; for 2 ranks" in text
    text = out(capsys, "waits", "before", "--rank", "1", "--metric", "mpi_barrier_wait")
    assert text.endswith("\n\nNo wait states.\n")


def test_waits_as_json(capsys):
    data = json.loads(out(capsys, "waits", "before", "--json", "--top", "2"))
    assert (data["instances"], len(data["waits"])) == (5, 2)
    assert data["waiting"] == pytest.approx(0.011)
    assert data["waits"][0]["cause_rank"] == 1


# efficiency


def test_efficiency_is_readable(capsys):
    text = out(capsys, "efficiency", "before")
    assert is_narrow(text)
    assert re.search(r"^  Load balance +\d+\.\d%$", text, re.MULTILINE)
    assert re.search(r"^    Transfer +\d+\.\d%$", text, re.MULTILINE)
    assert "as Cube has it" not in text
    assert "Load balance = avg(comp) / max(comp)" in text
    assert "Speedup" not in text


def test_efficiency_of_many_runs(capsys):
    text = out(capsys, "efficiency", *["before"] * 6, "--scaling", "weak")
    assert is_narrow(text)
    assert text.count("Speedup  ") == 2
    data = json.loads(out(capsys, "efficiency", "before", "after", "--json"))
    assert data["scaling"] == "strong"
    assert set(data["methods"]) == {"cube", "all"}
    assert data["methods"]["all"][1]["efficiencies"]["speedup"]["value"] == 1


# diff


def test_diff_is_readable(capsys):
    text = out(capsys, "diff", "before", "after", "--rank-groups", "3")
    assert is_narrow(text)
    assert re.search(r"^          Late Sender +8\.00 ms +14\.0 ms +\+6\.00 ms +\+75\.0%$", text, re.MULTILINE)
    assert re.search(r"^1\. Late Sender, rank 2 +\+8\.00 ms +new$", text, re.MULTILINE)
    assert "   main → solver::solve → MPI_Recv" in text


def test_a_run_does_not_differ_from_itself(capsys):
    text = out(capsys, "diff", "before", "before", "--fail-on", "time>0%")
    assert text == (
        "Focus: 1.50 s -> 1.50 s, the same.\n\n"
        "No metric differs by as much as 0.1% of the time.\nNo call path differs noticeably.\n"
    )
    data = json.loads(out(capsys, "diff", "before", "before", "--json"))
    assert data["places"] == data["failed"] == []


def test_small_differences_are_left_out(capsys):
    everything = json.loads(out(capsys, "diff", "before", "after", "--json", "--least", "0"))
    whole = max(row["second"] for row in everything["metrics"] if row["metric"] == "time")
    places = everything["places"]
    middle = sorted(abs(row["difference"]) for row in places)[len(places) // 2]
    shown = json.loads(out(capsys, "diff", "before", "after", "--json", "--least", str(0.999 * middle / whole)))
    assert shown["metrics"] == everything["metrics"]
    assert [row for row in places if abs(row["difference"]) >= middle] == shown["places"]
    text = out(capsys, "diff", "before", "after", "--least", "100%")
    assert "\n\nNo metric differs by as much as 100% of the time.\nNo call path differs noticeably.\n" in text
    assert f"left out: {len(places)} that differ by less than 100% (--least 0)" in text


def test_a_share_that_is_no_number_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["diff", "before", "after", "--least", "few"])
    assert stop.value.code == 2
    assert "few is not a share" in capsys.readouterr().err


def test_diff_can_fail(capsys):
    limits = ["--fail-on", "mpi_latesender>5%", "--fail-on", "time>5%", "--fail-on", "mpi_latesender>1ms"]
    text = out(capsys, "diff", "before", "after", *limits, code=1)
    assert text.splitlines()[-2:] == ["failed: mpi_latesender>5%", "failed: mpi_latesender>1ms"]
    data = json.loads(out(capsys, "diff", "before", "after", "--json", *limits, code=1))
    assert data["failed"] == ["mpi_latesender>5%", "mpi_latesender>1ms"]
    assert out(capsys, "diff", "after", "before", "--fail-on", "mpi_latesender>0%", code=0)


def test_a_limit_that_makes_no_sense_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["diff", "before", "after", "--fail-on", "late"])
    assert stop.value.code == 2
    assert "is not of the form METRIC>5%" in capsys.readouterr().err


def test_places_beyond_the_top_are_counted(capsys):
    text = out(capsys, "diff", "before", "after", "--top", "1")
    assert text.splitlines()[-1] == "   and 1 more (--top)"


# written results


@pytest.mark.parametrize("verb", ["tree", "waits", "efficiency"])
def test_a_written_result_is_as_good_as_a_fresh_one(verb, result, tmp_path, capsys):
    result.write(tmp_path / "before")
    fresh = json.loads(out(capsys, verb, "before", "--json"))
    assert json.loads(out(capsys, verb, str(tmp_path / "before"), "--json")) == fresh


def test_a_written_result_does_not_differ_from_a_fresh_one(result, tmp_path, capsys):
    result.write(tmp_path / "before")
    data = json.loads(out(capsys, "diff", "before", str(tmp_path / "before"), "--json"))
    assert data["places"] == []
    assert all(row["difference"] == 0 for row in data["metrics"])


@pytest.mark.parametrize("verb", ["tree", "waits", "efficiency", "diff"])
def test_every_verb_has_an_example(verb, capsys):
    with pytest.raises(SystemExit):
        cli.main([verb, "--help"])
    assert f"whywait {verb} " in capsys.readouterr().out.partition("example:")[2]
