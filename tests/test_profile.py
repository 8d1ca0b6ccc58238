"""Profiles of Score-P as results: equal to the trace of the same run, and silent about what only events say."""

import io
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait.analysis.runs.compare import differences, totals
from whywait.analysis.runs.threshold import Threshold
from whywait.cli import main
from whywait.store.profile import is_profile

from tests.browser import Viewer
from tests.fake_native import SHARED

PROFILE = Path(__file__).parent / "data/profile/profile.cubex"
CASES = [PROFILE.parent, *sorted(path.parent for path in SHARED.glob("cases/*/profile.cubex"))]


def trace_of(case):
    return case / "archive" if (case / "archive").is_dir() else case


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def pair(request):
    return whywait.load(request.param / "profile.cubex"), whywait.analyze(trace_of(request.param))


def by_path(result, name):
    metric = result.metrics[name]
    return {row["path"]: row["value"] for row in metric.by_callpath().to_pylist() if abs(row["value"]) > 1e-6}


METRICS = (
    "time comp mpi mpi_init_exit mpi_communication mpi_point2point mpi_collective mpi_synchronization "
    "omp_synchronization visits bytes_sent bytes_rcvd bytes_cout bytes_cin bytes_put bytes_get"
).split()


@pytest.mark.parametrize("name", METRICS)
def test_it_has_the_values_of_the_trace(pair, name):
    profile, trace = pair
    expected, found = by_path(trace, name), by_path(profile, name)
    if trace.metrics["omp_management"].total:
        # Only in a trace a parallel region begins with the fork of its threads and ends with their join.
        for path in [path for path in expected if "!$omp parallel" in path.rpartition("/")[2]]:
            for values in (expected, found):
                values.pop(path, None)
                values.pop(path.rpartition("/")[0], None)
    # The trace rounds to ticks.
    assert found == pytest.approx(expected, rel=1e-3, abs=2e-5)


def test_bytes_of_one_sided_operations(tmp_path):
    """The shipped program has none: what it sends is called put."""
    with tarfile.open(PROFILE) as archive, tarfile.open(tmp_path / "put.cubex", "w") as renamed:
        for member in archive:
            content = archive.extractfile(member).read()
            if member.name == "anchor.xml":
                content = content.replace(b">bytes_put<", b">bytes_old<").replace(b">bytes_sent<", b">bytes_put<")
            member.size = len(content)
            renamed.addfile(member, io.BytesIO(content))
    before, after = (whywait.load(path).metrics for path in (PROFILE, tmp_path / "put.cubex"))
    assert after["bytes_put"].total == before["bytes_sent"].total + before["bytes_cout"].total > 0
    assert after["bytes_rma"].total == after["bytes_put"].total
    assert before["bytes_put"].total == before["bytes_get"].total == 0
    assert "bytes_sent" not in after
    assert "shmem_bytes_put" not in before


def test_it_has_the_locations_of_the_trace(pair):
    profile, trace = pair
    for column in ("location", "name", "type", "rank", "thread"):
        assert profile.locations[column].to_pylist() == trace.locations[column].to_pylist(), column
    kinds = [row["kind"] for row in profile.tables.system.to_pylist()]
    assert kinds[:2] == ["node", "node"]
    assert kinds.count("location") == len(trace.locations)
    assert profile.tables.system["location"].drop_null().to_pylist() == list(range(len(trace.locations)))


def test_counters_are_metrics(pair):
    profile, trace = pair
    counters = [m.name for m in profile.profile.metrics if m.kind == "counter"]
    assert counters
    for name in counters:
        # What the runtime itself counts between two calls is booked on either.
        assert profile.metrics[name].total == pytest.approx(trace.metrics[name].total, rel=2e-3), name


def test_efficiencies_are_those_of_the_whole_run(pair):
    profile, trace = pair
    found, expected = profile.efficiencies(), trace.efficiencies()
    for name in ("load_balance", "parallel_efficiency", "communication_efficiency"):
        assert found[name].value == pytest.approx(expected[name].value, rel=2e-2), name
    for name in ("serialization", "transfer"):
        assert found[name].value is None
        assert "max(ideal)" not in found[name].inputs
    assert "wait" not in found.definitions


def test_parameters_do_not_split_call_paths():
    result = whywait.load(PROFILE)
    paths = result.callpaths()["path"].to_pylist()
    assert len(paths) == len(set(paths)) == 12
    visits = by_path(result, "visits")
    assert visits["counters_user/main/region/iteration"] > 2


def test_a_path_that_is_a_profile(tmp_path):
    assert is_profile(PROFILE)
    # Beside a trace the directory is that of the trace.
    assert not is_profile(PROFILE.parent)
    shutil.copy(PROFILE, tmp_path / "profile.cubex")
    assert is_profile(tmp_path)
    assert whywait.load(tmp_path).run.name == tmp_path.name
    assert not is_profile(tmp_path / "none")


# What it cannot say


@pytest.mark.parametrize("ask", [
    lambda result: result.wait_states(), lambda result: result.critical_path(), lambda result: result.delay_costs(),
    lambda result: result.window(0, 0.1), lambda result: result.communication(), lambda result: result.transfers(),
    lambda result: result.run.definitions, lambda result: result.iterations("iteration"),
    lambda result: result.summary(),
])  # fmt: skip
def test_what_needs_events_is_refused(ask):
    with pytest.raises(whywait.UsageError):
        ask(whywait.load(PROFILE))


def test_it_has_no_metric_that_it_cannot_know():
    result = whywait.load(PROFILE)
    assert result.is_profile
    for name in ("waiting", "mpi_wait_nxn", "critical_path", "delay", "omp_management", "comms", "syncs"):
        assert name not in result.metrics, name
    assert [warning["kind"] for warning in result.warnings] == ["profile"]


def test_only_what_both_know_is_compared():
    profile, trace = whywait.load(PROFILE), whywait.analyze(PROFILE.parent)
    assert "mpi_wait_nxn" not in {row["metric"] for row in totals(profile, trace)}
    assert set(differences(profile, trace)["metric"].to_pylist()) <= {"time"}
    with pytest.raises(whywait.UsageError, match="has no mpi_wait_nxn"):
        differences(profile, trace, ["mpi_wait_nxn"])
    with pytest.raises(whywait.UsageError, match="has no mpi_wait_nxn"):
        Threshold.parse("mpi_wait_nxn>1%").exceeded(profile, trace)
    assert not Threshold.parse("time>1%").exceeded(profile, trace)


def test_truncated_profiles_are_refused(tmp_path, capsys):
    whole = PROFILE.read_bytes()
    for size in (0, 100, 3000, 100_000):
        cut = tmp_path / "cut.cubex"
        cut.write_bytes(whole[:size])
        with pytest.raises(whywait.ArchiveError, match="cannot be read as a profile"):
            whywait.load(cut)
    assert main(["tree", str(cut)]) == 3
    assert main(["tree", str(tmp_path / "none.cubex")]) == 3
    whywait.analyze(PROFILE.parent).write(tmp_path / "results")
    with pytest.raises(whywait.ArchiveError, match="it is the report of an analysis"):
        whywait.load(tmp_path / "results/report.cubex")
    # Data of a metric are missing altogether: others are still there.
    with tarfile.open(PROFILE) as archive, tarfile.open(tmp_path / "less.cubex", "w") as less:
        for member in archive:
            if not member.name.startswith("0."):
                less.addfile(member, archive.extractfile(member))
    assert whywait.load(tmp_path / "less.cubex").metrics["time"].total > 0
    capsys.readouterr()


# The verbs


def out(capsys, *arguments, code=0):
    assert main([str(argument) for argument in arguments]) == code
    return capsys.readouterr().out


def test_report_reads_a_profile(capsys):
    text = out(capsys, "tree", PROFILE)
    assert "MPI_Allreduce" in text
    assert "this is a profile" in text
    assert "Waiting" not in text
    data = json.loads(out(capsys, "tree", PROFILE, "--json"))
    assert data["metrics"][0]["value"] == pytest.approx(whywait.load(PROFILE).metrics["time"].total)
    out(capsys, "tree", PROFILE, "--window", "0:0.1", code=2)


def test_efficiency_reads_a_profile(capsys):
    text = out(capsys, "efficiency", PROFILE, PROFILE.parent)
    row = next(line for line in text.splitlines() if line.strip().startswith("Serialization "))
    assert row.split()[1] == "-"
    assert row.split()[2].endswith("%")
    out(capsys, "efficiency", PROFILE, "--simulate", code=2)


def test_series_reads_a_profile(capsys, browser, tmp_path):
    text = out(capsys, "series", PROFILE, PROFILE.parent, "--html", tmp_path / "s.html")
    row = next(line for line in text.splitlines() if line.strip().startswith("Waiting"))
    assert row.split()[1] == "-"
    assert row.split()[2].endswith("%")
    accounts = whywait.series([PROFILE]).accounts()
    assert accounts[0]["waiting"] is None
    parts = {name: value for name, value in accounts[0]["parts"].items() if value is not None}
    assert sum(parts.values()) == pytest.approx(accounts[0]["time"])
    viewer = Viewer(browser, tmp_path / "s.html").open()
    assert "this is a profile" in viewer.text(".series .soft:last-of-type")
    viewer.is_well()


def test_diff_reads_a_profile(capsys, browser, tmp_path):
    text = out(capsys, "diff", PROFILE, PROFILE.parent, "--html", tmp_path / "d.html")
    assert "Wait at N x N" not in text
    assert "this is a profile" in text
    viewer = Viewer(browser, tmp_path / "d.html").open("#differences?metric=time&call=0")
    viewer.until("document.querySelectorAll('#tree-call-tree .row').length")
    total = np.sum([row["value"] for row in whywait.load(PROFILE).metrics["time"].by_rank().to_pylist()])
    assert total == pytest.approx(whywait.load(PROFILE).profile.total("time"))
    viewer.is_well()


@pytest.mark.parametrize("command", ["critical", "delay", "explain", "waits", "summary", "iterations", "messages"])
def test_commands_that_need_events_say_so(command, capsys):
    assert main([command, str(PROFILE)]) == 2
    said = capsys.readouterr().err
    assert "is a profile, which has no" in said
    assert "trace" in said
    # Another analysis would not help.
    assert "--no-causes" not in said


def test_a_result_beside_a_profile_comes_first(tmp_path):
    whywait.analyze(PROFILE.parents[1] / "p2p").write(tmp_path)
    shutil.copy(PROFILE, tmp_path)
    assert not whywait.load(tmp_path).is_profile
    assert whywait.load(tmp_path / "profile.cubex").is_profile
