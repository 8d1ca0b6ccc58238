"""Ranks whose events are gone: nothing is known about them, so they are in no average, and every command says so."""

import json

import pytest
import whywait
from whywait.cli import main

from tests.browser import Page, Viewer
from tests.results import SHARED, UNRECORDED
from tests.tracedsl import trace_from_text

# Rank 2 of the four works longest; without rank 1 the others are as in a run of three.
TRACE = """
    *: MPI_Init [0, 1]
    0: work [1, 5]
    1: work [1, 2]
    2: work [1, 9]
    3: work [1, 6]
    *: MPI_Barrier [9.5, 10]
    *: step [10, 11]
    *: step [11, 12]
    *: step [12, 13]
    *: step [13, 14]
    *: step [14, 15]
    *: MPI_Finalize [16, 17]
"""
NOTE = "no events of rank 1: left out of all averages (1 of 4 processes)"


def gone(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def head(path):
    path.write_bytes(path.read_bytes()[:20])


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.fixture(scope="module", params=[gone, empty, head, zeros], ids=lambda damage: damage.__name__)
def trace(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trace")
    anchor = trace_from_text(TRACE, directory)
    request.param(directory / "traces" / "1.evt")
    return anchor


@pytest.fixture(scope="module")
def result(trace):
    return whywait.analyze(trace)


def test_it_is_in_no_average(result):
    assert result.places.lost_ranks == [1]
    found = result.efficiencies()
    assert found.processes == 3
    computation = result.metrics["comp"].total
    assert found["load_balance"].inputs["avg(comp)"] == pytest.approx(computation / 3)
    assert result.places.works.tolist() == [True, False, True, True]
    # The deviations from the mean of three that work for 17 s in all.
    of_work = {
        row["path"].rpartition("/")[2]: row["value"] for row in result.metrics["imbalance"].by_callpath().to_pylist()
    }
    mean = 17 / 3
    assert of_work["work"] == pytest.approx(abs(4 - mean) + abs(8 - mean) + abs(5 - mean))
    assert result.profile.by_location("imbalance")[1] == 0


def test_it_has_no_time(result):
    (row,) = [one for one in result.inconsistencies().to_pylist() if one["kind"] in {"unreadable", "truncated"}]
    assert (row["location"], row["time"]) == (1, None)
    places = {warning["kind"]: warning["place"] for warning in result.warnings}
    assert places[row["kind"]] == "rank 1"
    assert not any(place and "-" in place for place in places.values())


def test_the_main_loop_is_that_of_the_others(result):
    assert result.iterations("step").num_rows == 5


def test_a_written_result_and_a_simulated_run_know_it(result, tmp_path):
    result.write(tmp_path)
    stored = whywait.load(tmp_path)
    assert stored.notes == result.notes == [NOTE]
    assert stored.efficiencies()["load_balance"].value == result.efficiencies()["load_balance"].value
    assert whywait.whatif(result, network="ideal").result.places.lost_ranks == [1]
    assert whywait.analyze(result.run, window=(0, 2)).places.lost_ranks == [1]


COMMANDS = (
    "analyze", "summary", "summary --markdown", "tree", "efficiency", "waits", "waits --statistics", "critical",
    "delay", "delay --callpath work", "explain", "iterations --iterations step", "messages", "gpu", "counters",
    "advise --top 1 --rounds 0", "whatif --network ideal", "diff", "series", "export html", "export perfetto",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_so(command, trace, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    operands = [str(trace)] * (2 if command == "diff" else 1)
    options = ["-o", str(tmp_path / "out")] if command.startswith("export") else []
    assert main([*command.split(), *operands, *options]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(NOTE) == 1


def test_beside_json_on_standard_error(trace, capsys):
    assert main(["efficiency", str(trace), "--json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out)["methods"]["all"][0]["processes"] == 3
    assert NOTE in error


def test_the_report_shows_the_others(result, browser, tmp_path):
    result.write_html(tmp_path / "report.html")
    assert Page(tmp_path / "report.html").meta["left_out"] == [1]
    viewer = Viewer(browser, tmp_path / "report.html").open()
    assert NOTE in viewer.text("body")
    assert viewer.open("#timeline").js("return document.querySelectorAll('canvas').length") > 0
    viewer.is_well()


def test_validate_names_no_time(trace, capsys):
    assert main(["info", "--check", str(trace)]) == 3
    out = capsys.readouterr().out
    assert "location 1: " in out
    assert "at -" not in out


def test_info_tells_declared_from_counted(trace, capsys, monkeypatch):
    assert main(["info", str(trace), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    counted = facts["events_counted"]
    assert main(["info", str(trace)]) == 0
    out = capsys.readouterr().out
    if counted is None:  # where the file is damaged
        assert f"{facts['events']} declared\n" in out
    else:
        assert 0 < counted < facts["events"]
        assert f"{facts['events']} declared, {counted} counted" in out
    monkeypatch.setattr("whywait.commands.info._QUICK", -1)
    assert main(["info", str(trace)]) == 0
    assert f"{facts['events']} declared\n" in capsys.readouterr().out


def test_a_whole_trace_has_no_notes(tmp_path, capsys):
    anchor = trace_from_text(TRACE, tmp_path)
    assert main(["efficiency", str(anchor)]) == 0
    assert "no events" not in capsys.readouterr().out
    assert whywait.analyze(anchor).notes == []


def test_the_case_from_the_field(capsys):
    path = SHARED / "field/missing_rank"
    if not path.exists():
        pytest.skip(UNRECORDED)
    assert main(["efficiency", str(path)]) == 0
    out = capsys.readouterr().out
    balance = next(line for line in out.splitlines() if line.strip().startswith("Load balance"))
    assert balance.split()[-1] == "89.9%"
    assert "no events of rank 1" in out
    assert main(["info", "--check", str(path)]) == 3
    assert "at -" not in capsys.readouterr().out


def test_an_event_file_that_is_whole_but_empty(tmp_path):
    """No warning of the core: nothing is damaged."""
    anchor = trace_from_text(TRACE, tmp_path)
    gone(anchor.parent / "traces" / "1.evt")
    sim = whywait.whatif(whywait.analyze(anchor), network="ideal")
    # The archive of a simulated run has an empty event file where the run has none.
    sim.write(tmp_path / "empty")
    result = whywait.analyze(tmp_path / "empty")
    assert result.notes == [NOTE]
    assert result.efficiencies().processes == 3
