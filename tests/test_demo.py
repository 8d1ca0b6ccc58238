"""`whywait demo`: the first minute of a user who has only installed the package."""

import json

import pytest
import whywait
from whywait.cli import main
from whywait.commands.demo import TRACE

from tests.test_data import DATA


def test_the_package_has_the_trace():
    """The package links to the trace, and wheels contain its files."""
    assert TRACE.is_relative_to(next(iter(whywait.__path__)))
    files = [path.relative_to(TRACE) for path in TRACE.rglob("*") if path.is_file()]
    assert len(files) == 18
    for file in files:
        assert (TRACE / file).read_bytes() == (DATA / "stencil" / file).read_bytes()


def test_it_leaves_a_trace_and_a_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("stencil: 8 ranks, 23,624 events; focus 339 ms of 742 ms")
    assert "\n31% of the CPU time is lost. Rank 5 works 1.5 times as long as the others in\nrelax/work" in printed
    assert "Open in a browser: whywait-demo/results/report.html" in printed
    assert (tmp_path / "whywait-demo/results/report.html").stat().st_size > 100_000
    assert whywait.load("whywait-demo/results").metrics["mpi_latesender"].total > 0.4
    offered = [line.split("   ")[1].split() for line in printed.split("Next\n")[1].splitlines()]
    assert [command[:2] for command in offered] == [
        ["whywait", verb] for verb in ("findings", "explain", "iterations", "messages", "advise")
    ]  # fmt: skip
    for command in offered[:4]:
        assert main(command[1:]) == 0


def test_the_demo_can_be_repeated_and_moved(tmp_path, capsys):
    for _ in range(2):
        assert main(["demo", "-o", str(tmp_path / "here"), "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert str(tmp_path / "here/results/report.html") in summary["files"]


def test_the_demo_refuses_to_overwrite_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert "is a file, not a directory" in capsys.readouterr().err


def fails(capsys, *arguments):
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    return code, capsys.readouterr().err.strip().splitlines()[-1]


def test_what_a_newcomer_types(tmp_path, capsys):
    """Each message says what to do next."""
    trace, other = DATA / "stencil", tmp_path / "other"
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert "whywait analyze scorep_run/traces.otf2" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["help", "waits"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: whywait waits ")
    assert "did you mean analyze?" in fails(capsys, "analize", trace)[1]
    assert "there is no 'causes': did you mean delay?" in fails(capsys, "causes", trace)[1]
    assert fails(capsys, "tree", trace, "--metrc", "time") == (
        2, "whywait tree: error: unrecognized arguments: --metrc time: did you mean --metric?"
    )  # fmt: skip
    assert fails(capsys, "advise", trace, "--html", "page") == (
        2, "whywait advise: error: unrecognized arguments: --html page"
    )  # fmt: skip
    assert fails(capsys, "tree", trace, "--metric", "latesender")[1].startswith(
        "whywait: there is no metric latesender: did you mean mpi_latesender"
    )
    for verb, option in (("tree", "--callpath"), ("iterations", "--iterations")):
        code, said = fails(capsys, verb, trace, option, "exchange_hallo")
        assert (code, said) == (2, "whywait: no call path ends in exchange_hallo: did you mean exchange_halo?")
    for path in (trace / "traces.def", trace / "traces"):
        code, said = fails(capsys, "info", path)
        assert code == 3
        assert f"(did you mean {trace / 'traces.otf2'}?)" in said
    other.mkdir()
    assert fails(capsys, "analyze", other) == (3, f"whywait: {other}: the directory holds no anchor file (*.otf2)")
    profile = other / "profile.cubex"
    profile.write_bytes(b"")
    for path, what in ((other, "it holds"), (profile, "it is")):
        code, said = fails(capsys, "analyze", path)
        assert code == 3
        assert f"({what} a profile, not a trace: run the program with SCOREP_ENABLE_TRACING=true" in said
        assert said.endswith(f"whywait tree {profile})")
    (other / "empty.otf2").write_bytes(b"")
    assert fails(capsys, "analyze", other / "empty.otf2")[1].endswith("(it is empty)")
