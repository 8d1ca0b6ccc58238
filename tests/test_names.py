"""Names that people give: of metrics, commands and choices."""

import pytest
import whywait
from whywait import cli
from whywait.model.metrics import metric_tree
from whywait.model.names import metric_name

TREE = metric_tree()


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
