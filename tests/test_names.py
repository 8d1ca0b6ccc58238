"""Names that people give: of metrics, commands and choices."""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import whywait
from whywait import cli
from whywait.model.metric_names import metric_name
from whywait.model.metrics import metric_tree

TREE = metric_tree()
STENCIL = str(Path(__file__).parent / "data/stencil")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mpi_latesender", "mpi_latesender"), ("Late Sender", "mpi_latesender"), ("late sender", "mpi_latesender"),
        ("Waiting", "waiting"), ("Wait at Finalize", "mpi_finalize_wait"),
    ],
)  # fmt: skip
def test_metrics_are_known_by_both_names(text, name):
    assert metric_name(TREE, text) == name


def test_what_several_are_called_is_not_guessed():
    with pytest.raises(whywait.UsageError, match="mpi_rma_sync_late_post, mpi_rma_comm_late_post"):
        metric_name(TREE, "Late Post")


def test_what_is_nearly_a_name_is_suggested():
    with pytest.raises(whywait.UsageError, match="there is no metric mpi_latesendr: did you mean mpi_latesender"):
        metric_name(TREE, "mpi_latesendr")
    with pytest.raises(whywait.UsageError, match=r"there is no metric beauty$"):
        metric_name(TREE, "beauty")


def test_of_metrics_that_are_called_the_same_those_that_occur_are_meant():
    assert metric_name(TREE, "Late Post", {"mpi_rma_comm_late_post"}.__contains__) == "mpi_rma_comm_late_post"
    with pytest.raises(whywait.UsageError, match="mpi_rma_sync_late_post, mpi_rma_comm_late_post"):
        metric_name(TREE, "Late Post", lambda name: name.endswith("late_post"))


VERBS = (
    ["waits", "{}", "--metric", "Late Sender"],
    ["waits", "{}", "--metric", "point-to-point"],
    ["tree", "{}", "--metric", "Late Sender"],
    ["explain", "{}", "--metric", "Late Sender"],
    ["diff", "{}", "{}", "--metric", "Late Sender"],
    ["diff", "{}", "{}", "--fail-on", "Late Sender>5%"],
    ["diff", "{}", "{}", "--fail-on", "Late Sender > 5ms"],
    ["counters", "{}", "--metric", "Unexpected messages"],
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: f"{verb[0]} {verb[-1]}")
def test_verbs_know_metrics_by_both_names(verb, capsys):
    arguments = [word.format(STENCIL) for word in verb]
    assert cli.main(arguments) == 0
    by_label = capsys.readouterr().out
    labels = {"Late Sender": "mpi_latesender", "point-to-point": "mpi_point2point"}
    labels["Unexpected messages"] = "mpi_unexpected"
    for label, name in labels.items():
        arguments = [word.replace(label, name) for word in arguments]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == by_label


@pytest.mark.parametrize("verb", ["waits", "tree", "explain", "diff"])
def test_verbs_suggest_metrics(verb, capsys):
    assert cli.main([verb, STENCIL, *([STENCIL] if verb == "diff" else []), "--metric", "Late Sendr"]) == 2
    assert "did you mean mpi_latesender" in capsys.readouterr().err


def test_commands_are_suggested(capsys):
    with pytest.raises(SystemExit):
        cli.main(["analyse", "t"])
    assert "there is no 'analyse': did you mean analyze?" in capsys.readouterr().err


def test_what_has_keys_completes_and_suggests_them():
    result = whywait.analyze(STENCIL)
    for mapping, name, wrong in (
        (result.metrics, "mpi_latesender", "mpi_latesendr"),
        (result.profile.metrics, "mpi_latesender", "mpi_latesendr"),
        (result.window(0.5, 0.6), "mpi_latesender", "mpi_latesendr"),
        (result.efficiencies(), "load_balance", "load_balanc"),
        (result.run.definitions, "Region", "Regions"),
    ):
        assert name in mapping._ipython_key_completions_()
        assert mapping[name] is not None
        with pytest.raises(KeyError, match=f"{wrong}: did you mean {name}"):
            mapping[wrong]
    with pytest.raises(KeyError, match="did you mean mpi_latesender"):
        result.severities("mpi_latesendr")
    with pytest.raises(whywait.UsageError, match="no call path ends in solve/relx: did you mean relax"):
        result.efficiencies("solve/relx")
    with pytest.raises(whywait.UsageError, match="there is no rank 9: ranks are 0 to 7"):
        result.waits_between(rank=9)


def test_who_waits_for_whom_at_a_call():
    result = whywait.analyze(STENCIL)
    pairs = result.waits_between(callpath="exchange_halo/MPI_Waitall", count=3).to_pylist()
    waits = result.wait_states().to_pylist()
    here = [row for row in waits if row["path"].endswith("exchange_halo/MPI_Waitall") and row["part_of"] is None]
    sums = Counter()
    for row in here:
        sums[row["rank"], row["cause_rank"]] += row["waiting"]
    assert [((row["rank"], row["cause_rank"]), row["waiting"]) for row in pairs] == [
        (pair, pytest.approx(waiting)) for pair, waiting in sums.most_common(3)
    ]


def parsers(parser):
    yield parser
    for action in parser._actions:
        for inner in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            yield from parsers(inner)


def test_help_is_narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    texts = {parser.prog: parser.format_help() for parser in parsers(cli.parser())}
    assert {"whywait", "whywait bench generate", "whywait export html", "whywait counters"} <= texts.keys()
    assert {prog: line for prog, text in texts.items() for line in text.splitlines() if len(line) > 100} == {}


def test_shells_complete(tmp_path):
    pytest.importorskip("argcomplete", reason="shells complete with the package argcomplete")
    line = "whywait efficiency --sc"
    said = tmp_path / "said"
    environment = {**os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(said), "COMP_LINE": line,
                   "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}  # fmt: skip
    subprocess.run([sys.executable, "-m", "whywait"], env=environment, check=True, timeout=60)
    assert said.read_text().split() == ["--scaling"]
