"""Names that people give: of metrics, commands and choices."""

from pathlib import Path

import pytest
import whywait
from whywait import cli
from whywait.model.metrics import metric_tree
from whywait.model.names import metric_name

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
    ["report", "{}", "--metric", "Late Sender"],
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


@pytest.mark.parametrize("verb", ["waits", "report", "explain", "diff"])
def test_verbs_suggest_metrics(verb, capsys):
    assert cli.main([verb, STENCIL, *([STENCIL] if verb == "diff" else []), "--metric", "Late Sendr"]) == 2
    assert "did you mean mpi_latesender" in capsys.readouterr().err


def test_commands_are_suggested(capsys):
    with pytest.raises(SystemExit):
        cli.main(["analyse", "t"])
    assert "there is no analyse: did you mean analyze?" in capsys.readouterr().err


def test_help_is_narrow(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    for verb in ("analyze", "waits", "delay", "efficiency", "critical", "report", "info", "validate"):
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 100, verb
