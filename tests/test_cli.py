"""The command line."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import whywait
from whywait import _native, cli
from whywait.commands import analyze, common

from tests import fake_native

DATA = Path(__file__).parent / "data"


@pytest.fixture
def native(monkeypatch, tmp_path):
    """Let the native module know one trace and nothing else."""
    analysis = fake_native.small()
    asked = {}
    info = {"trace_format": 2, "length": 1.5, "events": 300, "event_bytes": 4_096, "memory_estimate": 7_200}
    info |= {"location_types": {"CPU_THREAD": 3}, "definitions": {"Region": 2, "Comm": 1}}
    definitions = {"Region": [{"id": 1, "name": "main"}, {"id": 2, "name": "solve"}], "Comm": [{"id": 0}]}
    oddities = [("duplicate", "traces.def at byte 17", "region 3 is defined twice")]

    def run(path):
        if str(path) == "missing":
            raise FileNotFoundError(2, "No such file or directory", "missing")
        if str(path) == "broken":
            raise _native.ArchiveError("broken/traces.otf2 at byte 9:\nnot an anchor file")
        if str(path) == "two":
            raise _native.UsageError("two holds two archives: name one")
        return fake_native.FakeRun(analysis.locations(), definitions, oddities, info)

    def analyze(_, **options):
        asked.update(options)
        options["progress"]("decode", 0.5)
        return analysis

    def limit_memory(_, size, directory, **__):
        asked.update(memory_limit=size, spill_directory=str(directory))

    monkeypatch.setattr(_native, "Run", run)
    monkeypatch.setattr(_native, "limit_memory", limit_memory)
    monkeypatch.setattr(_native, "analyze", analyze)
    monkeypatch.setattr(_native, "stored_metrics", lambda: fake_native.STORED)
    monkeypatch.chdir(tmp_path)
    return asked


FILES = [
    "account.parquet", "callpaths.parquet", "derived.parquet", "findings.parquet", "inconsistencies.parquet",
    "locations.parquet", "manifest.json", "metrics.parquet", "network.parquet", "regions.parquet",
    "report.cubex", "report.stat", "severities.parquet", "summary.json", "system.parquet", "topologies.parquet",
    "wait_states.parquet",
]  # fmt: skip


def test_analyze_writes_and_says_where(native, tmp_path, capsys):
    assert cli.main(["analyze", "scorep/traces.otf2"]) == 0
    directory = tmp_path / "whywait-lulesh"
    assert sorted(file.name for file in directory.iterdir()) == FILES
    out, err = capsys.readouterr()
    assert "Where the time went" in out
    assert "Written to whywait-lulesh/" in out
    assert err == ""
    assert native["threads"] is None
    assert native["wrong_order_window"] == 100


@pytest.mark.parametrize(("text", "size"), [("17", 17), ("64K", 2**16), ("1.5 GiB", 3 * 2**29), ("2tb", 2**41)])
def test_memory_limit_accepts_units(text, size, native, tmp_path):
    assert cli.main(["analyze", "scorep", "--quiet", "--memory-limit", text]) == 0
    assert native["memory_limit"] == size
    assert native["spill_directory"] == str(tmp_path)


def test_a_wrong_memory_limit_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["analyze", "scorep", "--memory-limit", "much"])
    assert "much is not a size" in capsys.readouterr().err
    assert cli.main(["analyze", "scorep", "--spill-dir", "here"]) == 2


def test_analyze_options(native, tmp_path, capsys):
    arguments = ["analyze", "t", "-o", "deep/out", "--threads", "2", "--wrong-order-window", "7", "--quiet"]
    assert cli.main(arguments) == 0
    assert (tmp_path / "deep/out/report.cubex").exists()
    assert capsys.readouterr() == ("", "")
    assert (native["threads"], native["wrong_order_window"]) == (2, 7)


@pytest.mark.usefixtures("native")
def test_transfers_are_written_if_asked_for(tmp_path):
    assert cli.main(["analyze", "t", "-o", "out", "--transfers", "--quiet"]) == 0
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == sorted([*FILES, "transfers.parquet"])


@pytest.mark.usefixtures("native")
def test_analyze_as_json(capsys):
    assert cli.main(["analyze", "t", "--json", "-o", "out"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["metrics"]["mpi_latesender"]["total"] == pytest.approx(0.008)
    assert sorted(summary["files"]) == sorted(f"out/{name}" for name in FILES)
    assert summary["files"][0] == "out/report.cubex"


@pytest.mark.usefixtures("native")
def test_analyze_again_replaces(tmp_path):
    assert cli.main(["analyze", "t", "-o", "out", "--quiet"]) == 0
    (tmp_path / "out/summary.json").write_text("old")
    assert cli.main(["analyze", "t", "-o", "out", "--quiet"]) == 0
    assert json.loads((tmp_path / "out/summary.json").read_text())["run"]["name"] == "lulesh"


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("verb", ["analyze", "info"])
@pytest.mark.parametrize(
    ("trace", "code", "text"),
    [
        ("missing", 3, "whywait: missing: No such file or directory\n"),
        ("broken", 3, "whywait: broken/traces.otf2 at byte 9: not an anchor file\n"),
        ("two", 2, "whywait: two holds two archives: name one\n"),
    ],
)
def test_errors_are_one_line(verb, trace, code, text, capsys):
    assert cli.main([verb, trace]) == code
    assert capsys.readouterr() == ("", text)


@pytest.mark.usefixtures("native")
def test_output_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "out").write_text("precious")
    assert cli.main(["analyze", "t", "-o", "out"]) == 2
    assert (tmp_path / "out").read_text() == "precious"
    assert capsys.readouterr().err == "whywait: out is a file, not a directory to write to\n"


@pytest.mark.usefixtures("native")
def test_ctrl_c(monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_native, "analyze", interrupted)
    assert cli.main(["analyze", "t"]) == 130
    assert list(tmp_path.iterdir()) == []


# Runs the program, and interrupts it when it first looks for a module.
INTERRUPTED = """
import os, signal, sys

MODULE = sys.argv[1]

class Interrupt:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt)
from whywait.__main__ import main
sys.argv[:2] = ["whywait"]
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("whywait.cli", -signal.SIGINT),
        ("whywait.commands.delay", -signal.SIGINT),
        ("whywait._native", -signal.SIGINT),
        ("pyarrow.lib", -signal.SIGINT),
        ("whywait.analysis.native", 130),
    ],
)
def test_ctrl_c_at_any_time_is_no_traceback(module, code):
    # Shells ignore SIGINT in background jobs.
    listening = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{INTERRUPTED}"
    command = [sys.executable, "-c", listening, module, "delay", str(DATA / "stencil")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_verbs_below_verbs_run_as_a_program(tmp_path):
    command = [sys.executable, "-m", "whywait", "bench", "generate", "bt", "--ranks", "4", "--iterations", "1"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "t")], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert whywait.open(tmp_path / "t").locations.num_rows == 4


def test_ctrl_c_is_not_taken_from_who_ignores_it():
    """As in background jobs of a shell."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED}"
    command = [sys.executable, "-c", ignoring, "pyarrow.lib", "info", str(DATA / "stencil")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stencil" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["analyse", "t"], ["analyze"], ["analyze", "t", "--threads", "0"]])
def test_wrong_usage_exits_with_2_and_prints_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: whywait" in capsys.readouterr().err


def test_all_files_of_a_run_may_be_named(tmp_path, capsys):
    reports = shutil.copytree(DATA / "nsight/requests", tmp_path / "reports")
    files = sorted(map(str, reports.glob("*.sqlite")))
    assert cli.main(["info", "--json", *files]) == 0
    named = json.loads(capsys.readouterr().out)
    assert cli.main(["info", "--json", str(reports)]) == 0
    assert named == json.loads(capsys.readouterr().out)


def test_files_that_are_not_all_of_a_run_are_an_error_that_names_another(tmp_path, capsys):
    reports = shutil.copytree(DATA / "nsight/requests", tmp_path / "reports")
    first, *_, last = sorted(map(str, reports.glob("*.sqlite")))
    with pytest.raises(SystemExit, match="2"):
        cli.main(["info", first, last])
    assert "is not named: name just" in capsys.readouterr().err


@pytest.mark.usefixtures("native")
def test_info_lists_definitions_and_oddities(capsys):
    assert cli.main(["info", "t"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^locations +3 CPU_THREAD$", out, re.MULTILINE)
    assert re.search(r"^memory estimate +7\.03 KiB$", out, re.MULTILINE)
    assert re.search(r"^  Region +2$", out, re.MULTILINE)
    assert "Enter" not in out
    assert "region 3 is defined twice" in out
    assert cli.main(["info", "t", "--events"]) == 0
    assert re.search(r"^  Enter +7$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.usefixtures("native")
def test_info_as_json(capsys):
    assert cli.main(["info", "t", "--json", "--events"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["definitions"] == {"Region": 2, "Comm": 1}
    assert facts["locations"] == {"CPU_THREAD": 3}
    assert facts["events_by_type"] == {"Enter": 7}
    assert facts["oddities"][0]["kind"] == "duplicate"


@pytest.mark.usefixtures("native")
def test_validate_lists_oddities(capsys):
    assert cli.main(["info", "--check", "t"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "odd: region 3 is defined twice",
        "   traces.def at byte 17",
        "odd: messages were sent and never received (3 times)",
        "   location 0 at 0.000000 s: rank 1",
        "t: readable, with oddities",
    ]


@pytest.mark.usefixtures("native")
def test_validate_says_what_is_broken(capsys, monkeypatch):
    assert cli.main(["info", "--check", "broken", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["broken"] is True
    assert "byte 9" in report["findings"][0]["text"]
    cut = fake_native.FakeAnalysis(
        [], [], [(0, 0)], {}, warnings=[{"kind": "truncated", "count": 1, "text": "file ends early", "place": "0.evt"}]
    )
    monkeypatch.setattr(_native, "analyze", lambda *_, **__: cut)
    assert cli.main(["info", "--check", "t"]) == 3
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "broken: file ends early",
        "   location 0 at 0.000000 s: 0.evt",
        "t: broken",
    ]


def test_progress_is_for_people_only(capsys, monkeypatch):
    with common.Progress() as progress:
        progress("decode", 0.5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with common.Progress() as progress:
        progress("decode", 0.5)
    err = capsys.readouterr().err
    assert "decode" in err
    assert "50%" in err
    assert err.endswith("\r\x1b[K")


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_import_is_light():
    code = "import sys, whywait; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = set(python("-c", code).stdout.split())
    assert "whywait" in loaded
    assert not loaded & {"pyarrow", "numpy", "rich", "mpi4py"}


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom whywait import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
    )
    run = python("-c", code)
    assert not set(run.stderr.split()) & {"pyarrow", "numpy", "rich"}
    for verb in ("analyze", "info", "clocks"):
        assert verb in run.stdout
    assert "exit codes" in run.stdout


@pytest.mark.parametrize("verb", ["analyze", "info", "clocks"])
def test_every_verb_has_an_example(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([verb, "--help"])
    assert stop.value.code == 0
    assert f"whywait {verb} " in capsys.readouterr().out.partition("example:")[2]


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize(
    ("old", "new"), [("correct", "clocks -o DIR"), ("report", "tree"), ("validate", "info --check")]
)
def test_old_names_stay_for_one_release(old, new, is_terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with pytest.raises(SystemExit) as stop:
        cli.main([old, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr()
    assert text.out.startswith(f"usage: whywait {new.split()[0]} ")
    assert text.err == (f"whywait {old} is now: whywait {new}\n" if is_terminal else "")


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert re.fullmatch(r"whywait \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_result_in_a_notebook():
    html = fake_native.result(fake_native.small())._repr_html_()
    assert "<td>Late Sender" not in html
    assert "Late Sender</td>" in html
    assert html.count("<tr") == html.count("</tr>")


def test_runs_show_themselves_in_notebooks():
    html = whywait.open(DATA / "stencil")._repr_html_()
    assert '<td style="text-align: left">8</td>' in html
    assert "23,624" in html
    assert "Region (" in html


def test_efficiencies_show_themselves_in_notebooks():
    result = whywait.analyze(DATA / "stencil")
    found = result.efficiencies("main", window=(0.1, 0.5))
    html = found._repr_html_()
    assert "stencil, main, 0.1 s to 0.5 s" in html
    for one in found:
        assert f"<td>{one.value:.3f}</td>" in html
        assert one.formula in html
    assert "None" not in result.efficiencies("MPI_Comm_rank")._repr_html_()


def test_the_facade_is_complete():
    run = whywait.open(DATA / "stencil")
    result = whywait.analyze(run)
    assert run.definitions["Region"].num_rows > 5
    assert result.metrics["mpi_latesender"].total == pytest.approx(0.487, rel=1e-2)
    assert result.severities("mpi_latesender").column_names[:2] == ["metric", "callpath"]
    for table in (result.wait_states(), result.delay_costs(), result.critical_path()):
        assert table.num_rows > 0
        assert hasattr(table, "__arrow_c_stream__")
    for name in ("efficiencies", "window", "write_cube", "write_html", "write_timeline", "to_hatchet", "summary"):
        assert callable(getattr(result, name))
    assert whywait.load.__module__ == "whywait.api.load"


@pytest.mark.usefixtures("native")
def test_results_of_another_trace_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = whywait.open("t")
    first = analyze.default_directory(trace)
    assert first == Path(f"whywait-{trace.name}")
    first.mkdir()
    assert analyze.default_directory(trace) == first
    (first / "manifest.json").write_text(json.dumps({"trace": {"path": str(trace.path)}}))
    assert analyze.default_directory(trace) == first
    (first / "manifest.json").write_text(json.dumps({"trace": {"path": "/elsewhere/traces.otf2"}}))
    assert analyze.default_directory(trace) == Path(f"whywait-{trace.name}-2")
    recorded = SimpleNamespace(name="whywait-solver.1", path=tmp_path)
    assert analyze.default_directory(recorded) == Path("whywait-solver.1-results")


def test_an_error_of_the_program_itself_says_where_it_was(monkeypatch, capsys):
    """A panic is `whywait.Error` with its place (rust/core/src/failure.rs): one line, without a traceback."""

    def fail(*_, **__):
        raise whywait.Error("the analysis failed, panicked at rust/core/src/x.rs:7:1: overflow; please report this")

    monkeypatch.setattr(whywait, "analyze", fail)
    assert cli.main(["analyze", str(DATA / "p2p")]) == 3
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "x.rs:7" in said.err
    assert not said.out


def test_a_look_at_a_trace_does_not_wait_for_arrow():
    code = "import sys; from whywait import cli; cli.main(sys.argv[1:]); print('numpy' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, "info", DATA / "stencil"], capture_output=True, text=True, check=True
    )
    assert done.stderr == "False\n"


@pytest.mark.parametrize(("change", "documented"), [("pass", False), ("cli.defaultdict = None", True)])
def test_functions_of_arrow_are_loaded_without_their_documentation(change, documented):
    """And as usual, if an Arrow of other structure refuses that."""
    code = f"from whywait import cli; {change}; cli._import_compute(); import pyarrow.compute as pc; "
    code += "print(pc.max_element_wise([1, 5], 3, skip_nulls=False), 'skip_nulls :' in pc.max_element_wise.__doc__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[", "3,", "5", "]", str(documented)]


def loaded_by_arrow(directory, change, interrupt="SIG_DFL"):
    """Return which of the packages that no command needs an analysis tries to import."""
    for package in ("pandas", "dateutil"):
        text = f"import sys; sys.stderr.write('{package}\\n'); raise ImportError"
        (directory / f"{package}.py").write_text(text)
    program = f"import runpy, signal; signal.signal(signal.SIGINT, signal.{interrupt}); {change}; "
    program += "runpy.run_module('whywait', run_name='__main__', alter_sys=True)"
    analysis = [sys.executable, "-c", program, "analyze", "-q", DATA / "stencil", "-o", directory / "results"]
    path = os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(analysis, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("interrupt", ["SIG_DFL", "SIG_IGN"])
def test_arrow_loads_no_more_than_needed(tmp_path, interrupt):
    """Shells ignore SIGINT in background jobs."""
    assert not loaded_by_arrow(tmp_path, "pass", interrupt)


def test_arrow_alone_would_load_more(tmp_path):
    """If this fails, a newer Arrow loads them on demand: delete `_OnlyArrow`."""
    change = "from whywait import cli; cli._OnlyArrow.find_spec = staticmethod(lambda *_: None)"
    assert loaded_by_arrow(tmp_path, change) == {"pandas", "dateutil"}


def test_documentation_of_arrow_takes_modules_to_compose():
    """If this fails, a newer Arrow composes it otherwise: delete `_import_compute`."""
    spared = []
    for how in ("cli._import_compute()", "import pyarrow.compute"):
        code = f"import sys; from whywait import cli; {how}; print(*sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        spared.append(set(found.stdout.split()))
    light, usual = spared
    assert light < usual
    assert {"pydoc", "pyarrow.vendored.docscrape"} <= usual - light


def test_the_help_lists_commands_by_question(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    titles = re.findall(r"^([a-z ]+):$", text, re.MULTILINE)
    assert titles == ["options", *cli._GROUPS, "examples"]
    for group, verbs in cli._GROUPS.items():
        section = text.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        assert tuple(re.findall(r"^  ([a-z]+) ", section, re.MULTILINE)) == verbs
    assert text.startswith("usage: whywait [-h] [--version] COMMAND ...")
