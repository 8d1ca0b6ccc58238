"""Small answers: of commands to what is odd, and of the library to what users ask first."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
import whywait
from whywait.analysis.findings.finding import Finding, Price
from whywait.analysis.proposals.prices import NO_EVENTS, TOO_EXPENSIVE, UNKNOWN
from whywait.cli import main
from whywait.report.findings import _saves

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


@pytest.fixture(scope="module")
def written(stencil, tmp_path_factory):
    directory = tmp_path_factory.mktemp("small") / "stencil"
    stencil.write(directory)
    return str(directory)


def test_a_window_that_ends_before_it_begins_is_refused_as_such(stencil, written, capsys):
    assert main(["summary", written, "--focus", "5:1"]) == 2
    assert "the window from 5 to 1 s does not begin before it ends" in capsys.readouterr().err
    with pytest.raises(whywait.UsageError, match="does not begin before it ends"):
        stencil.window(0.5, 0.4)
    with pytest.raises(whywait.UsageError, match="outside the run"):
        stencil.window(5, 6)


def test_clocks_of_a_result_are_those_of_its_trace(written, capsys):
    assert main(["clocks", written]) == 0
    of_result = capsys.readouterr().out
    assert main(["clocks", str(DATA / "stencil")]) == 0
    assert capsys.readouterr().out == of_result != ""


def test_runs_of_different_programs_are_remarked(written, tmp_path, capsys):
    remark = "seem to be runs of different programs"
    whywait.analyze(DATA / "sor_p2p", causes=False).write(tmp_path / "sor")
    assert main(["diff", written, str(tmp_path / "sor")]) == 0
    assert remark in capsys.readouterr().out
    whywait.analyze(DATA / "sor_gats", causes=False).write(tmp_path / "other")
    for a, b in ((tmp_path / "sor", tmp_path / "other"), (written, written)):
        assert main(["diff", str(a), str(b)]) == 0
        assert remark not in capsys.readouterr().out


def test_what_a_change_saves_is_said_in_one_way():
    def saves(saved=None, unpriced=None, **options):
        prices = [] if saved is None else [Price("it", "balance", "Balanced", "--balance it", saved, **options)]
        return _saves(Finding("any", "It waits.", None, 1.0, 0.1, prices=prices, unpriced=unpriced), 10.0)

    assert saves(1.5) == ("1.50 s", "(balance)")
    assert saves(1.5, is_rough=True) == ("about 1.50 s", "(balance)")
    assert saves(0.001) == saves(-0.001) == ("nothing", "(balance)")
    assert saves(-0.02) == ("20.0 ms longer", "(balance)")
    assert saves(1.5, is_bound=True) == ("at best 1.50 s", "(balance)")
    assert saves(unpriced=TOO_EXPENSIVE) == ("not simulated", "(--prices)")
    assert saves(unpriced=NO_EVENTS) == ("not simulated", "")
    assert saves(unpriced=UNKNOWN) == saves() == ("none known", "")


def test_events_of_all_locations_are_one_table(stencil):
    every = stencil.run.events()
    assert every.column_names[:3] == ["location", "time", "type"]
    assert every.num_rows == stencil.run.info()["events"]
    for location in (0, 7):
        one = stencil.run.events(location)
        part = every.filter(pc.equal(every["location"], location)).select(one.column_names)
        assert part.to_pylist() == one.to_pylist()


def test_metrics_with_a_value_and_rows_that_add_up(stencil):
    found = stencil.metrics.nonzero()
    assert list(found) == [name for name in stencil.metrics if stencil.metrics[name].total]
    assert 0 < len(found) < len(stencil.metrics)
    waits = stencil.wait_states(parts=False)
    assert pc.sum(waits["waiting"]).as_py() == pytest.approx(stencil.metrics["waiting"].total, rel=1e-9)
    assert waits.num_rows < stencil.wait_states().num_rows


def test_findings_take_a_number(stencil):
    with pytest.raises(whywait.UsageError, match="how many findings to show"):
        stencil.findings("x")
