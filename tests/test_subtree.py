"""Part of a run: `delay`, `critical` and `diff` accept a call path, as `tree` and `waits` do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import whywait
from whywait.analysis.causes import costliest, critical, total_costs
from whywait.analysis.runs.compare import differences, totals
from whywait.cli import main
from whywait.hypotheses import Scale

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def result():
    return whywait.analyze(DATA / "stencil")


def test_costs_of_a_subtree_are_those_of_its_call_paths(result):
    everywhere = {tuple(place["callpath"]): place["costs"] for place in costliest(result, 1000)}
    inside = {tuple(place["callpath"]): place["costs"] for place in costliest(result, 1000, callpath="solve")}
    assert inside
    assert inside == {path: costs for path, costs in everywhere.items() if "solve" in path}
    assert sum(total_costs(result, callpath="solve").values()) == pytest.approx(sum(inside.values()))
    assert sum(place["share"] for place in costliest(result, 1000, callpath="solve")) == pytest.approx(1)


def test_the_path_of_a_subtree_is_what_it_has_of_the_whole(result):
    everywhere, inside = critical(result, 1000), critical(result, 1000, callpath="relax")
    expected = [place for place in everywhere["callpaths"] if "relax" in place["callpath"]]
    assert [place["time"] for place in inside["callpaths"]] == [place["time"] for place in expected]
    assert inside["length"] == pytest.approx(sum(place["time"] for place in expected))
    assert 0 < inside["length"] < everywhere["length"]


def test_a_subtree_of_two_runs(result):
    other = whywait.analyze(DATA / "p2p")
    inside = differences(result, other, ["time"], callpath="solve").to_pylist()
    everywhere = differences(result, other, ["time"]).to_pylist()
    assert inside == [row for row in everywhere if "solve" in row["callpath"]]
    (time,) = (row for row in totals(result, other, callpath="solve") if row["metric"] == "time")
    assert time["first"] == pytest.approx(sum(row["first"] for row in inside))
    assert time["second"] == 0  # the other run has no such call path
    with pytest.raises(whywait.UsageError, match="of either run"):
        differences(result, other, callpath="nowhere")


def test_hypotheses_about_a_subtree(result):
    """`work` is called below `relax` and elsewhere: chosen by a call path, or by a longer name."""
    half = [Scale("work", 0.5)]
    below = whywait.whatif(result, half, callpath="relax").after
    assert below == whywait.whatif(result, [Scale("relax/work", 0.5)]).after
    assert below != whywait.whatif(result, half).after
    with pytest.raises(whywait.UsageError, match="not in the selected"):
        whywait.whatif(result, [Scale("relax/work", 0.5)], callpath="collect_reports")


@pytest.mark.parametrize("verb", ["delay", "critical"])
def test_verbs_take_a_call_path(verb, capsys):
    assert main([verb, str(DATA / "stencil"), "--callpath", "solve", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["callpaths"]
    assert rows
    assert all("solve" in row["callpath"] for row in rows)
    assert main([verb, str(DATA / "stencil"), "--callpath", "solve"]) == 0
    assert "solve" in capsys.readouterr().out
    assert main([verb, str(DATA / "stencil"), "--callpath", "nowhere"]) == 2
    assert "no call path ends in nowhere" in capsys.readouterr().err


def test_diff_takes_a_call_path(capsys):
    both = [str(DATA / "stencil"), str(DATA / "p2p")]
    assert main(["diff", *both, "--callpath", "solve", "--json"]) == 0
    places = json.loads(capsys.readouterr().out)["places"]
    assert all("solve" in place["callpath"] for place in places)
