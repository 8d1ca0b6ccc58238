"""`whywait demo`: the first minute of somebody who has the package and nothing else."""

import json

import whywait
from whywait.cli import main
from whywait.commands.demo import TRACE

from tests.test_data import DATA


def test_the_package_has_the_trace():
    """The package links to the trace, and what is built of it has the files."""
    assert TRACE.is_relative_to(next(iter(whywait.__path__)))
    files = [path.relative_to(TRACE) for path in TRACE.rglob("*") if path.is_file()]
    assert len(files) == 18
    for file in files:
        assert (TRACE / file).read_bytes() == (DATA / "stencil" / file).read_bytes()


def test_it_leaves_a_trace_and_a_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("stencil: 8 ranks, 23,624 events, 742 ms\n27.7% of the time")
    assert "Open in a browser: whywait-demo/results/report.html" in printed
    assert (tmp_path / "whywait-demo/results/report.html").stat().st_size > 100_000
    assert whywait.load("whywait-demo/results").metrics["mpi_latesender"].total > 0.4
    offered = [line.split("   ")[1].split() for line in printed.split("Next\n")[1].splitlines()]
    assert [command[:2] for command in offered] == [
        ["whywait", verb] for verb in ("explain", "iterations", "messages", "advise")
    ]  # fmt: skip
    for command in offered[:3]:
        assert main(command[1:]) == 0


def test_again_and_elsewhere(tmp_path, capsys):
    for _ in range(2):
        assert main(["demo", "-o", str(tmp_path / "here"), "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert str(tmp_path / "here/results/report.html") in summary["files"]


def test_a_file_is_no_place(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert "is a file, not a directory" in capsys.readouterr().err
