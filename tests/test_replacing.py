"""A result is replaced as a whole, by the result of the same trace, or not at all."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import whywait
from whywait.cli import main
from whywait.store import staging as staging_module
from whywait.store.dataset import is_own
from whywait.store.staging import StagedDirectory

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def results():
    """The results of two traces."""
    return whywait.analyze(DATA / "stencil", causes=False), whywait.analyze(DATA / "flood", causes=False)


def names(directory):
    return {file.name for file in directory.iterdir()}


def write(directory, **files):
    with StagedDirectory(directory, is_own) as staging:
        for name, text in files.items():
            staging.path(f"{name}.json").write_text(text)


def test_another_trace_is_refused_by_name(results, tmp_path, capsys):
    first, second = results
    first.write(tmp_path / "r", html=True)
    before = {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()}
    command = ["analyze", str(DATA / "flood"), "-o", str(tmp_path / "r")]
    assert main(command) == 2
    err = capsys.readouterr().err
    assert f"{tmp_path / 'r'} has the result of another trace, {first.run.path}" in err
    assert "--force" in err
    with pytest.raises(whywait.UsageError, match="another trace"):
        second.write(tmp_path / "r")
    assert {file.name: file.read_bytes() for file in (tmp_path / "r").iterdir()} == before
    assert main([*command, "--force", "-q"]) == 0
    # Nothing of the other trace is left: no report, no timeline.
    assert not [name for name in names(tmp_path / "r") if name.startswith(("report.html", "timeline"))]
    assert whywait.load(tmp_path / "r").run.name == "flood"


def test_the_same_trace_is_replaced_wherever_it_is(results, tmp_path):
    shutil.copytree(DATA / "stencil", tmp_path / "moved")
    results[0].write(tmp_path / "r")
    whywait.analyze(tmp_path / "moved", causes=False).write(tmp_path / "r")
    # Recorded anew, it is another run, but the result is that of this place.
    shutil.rmtree(tmp_path / "moved")
    shutil.copytree(DATA / "flood", tmp_path / "moved")
    whywait.analyze(tmp_path / "moved", causes=False).write(tmp_path / "r")
    assert whywait.load(tmp_path / "r").tables.trace.sha256 == results[1].tables.trace.sha256


def test_what_is_not_written_again_is_removed(results, tmp_path):
    files = results[0].write(tmp_path / "r", html=True)
    assert {"report.html", "timeline.parquet"} <= names(tmp_path / "r") == {file.name for file in files}
    files = results[0].write(tmp_path / "r")
    assert "report.html" not in names(tmp_path / "r") == {file.name for file in files}
    assert names(tmp_path) == {"r"}


@pytest.mark.parametrize(
    "kind", ["renamed", "beside others", "without exchange", "link", "working directory", "above is read-only"]
)
def test_a_result_changes_as_a_whole(tmp_path, monkeypatch, kind):
    place = tmp_path / "r"
    write(place, manifest="old", summary="old")
    if kind == "beside others":
        (place / "notes.txt").write_text("mine")
        (place / "more").mkdir()
    if kind == "without exchange":
        monkeypatch.setattr(staging_module.ctypes, "CDLL", lambda _: object())
    if kind == "link":
        (tmp_path / "link").symlink_to(place)
    if kind == "above is read-only":
        monkeypatch.setattr(os, "access", lambda *_: False)
    if kind == "working directory":
        monkeypatch.chdir(place)
    target = {"link": tmp_path / "link", "working directory": Path()}.get(kind, place)
    with suppress(ZeroDivisionError), StagedDirectory(target, is_own) as staging:
        staging.path("manifest.json").write_text("new")
        assert (place / "manifest.json").read_text() == "old"
        raise ZeroDivisionError
    assert (place / "manifest.json").read_text() == (place / "summary.json").read_text() == "old"
    write(target, manifest="new")
    kept = {"notes.txt", "more"} if kind == "beside others" else set()
    assert names(place) == {"manifest.json", *kept}
    assert (place / "manifest.json").read_text() == "new"
    assert names(tmp_path) <= {"r", "link"}
    if kind == "link":
        assert target.is_symlink()


KILLED = """
import os, signal, sys
from pathlib import Path
from whywait.store.dataset import is_own
from whywait.store.staging import StagedDirectory
with StagedDirectory(Path(sys.argv[1]), is_own) as staging:
    staging.path("manifest.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_the_old_result_whole(tmp_path):
    write(tmp_path / "r", manifest="old", summary="old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "r")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "r" / "manifest.json").read_text() == "old"
    assert names(tmp_path / "r") == {"manifest.json", "summary.json"}
    left = names(tmp_path) - {"r"}
    assert len(left) == 1
    # What it has left goes with the next result; what another process is writing stays.
    with StagedDirectory(tmp_path / "r", is_own) as other:
        other.path("manifest.json").write_text("other")
        assert not left & names(tmp_path)
        being_written = names(tmp_path) - {"r"}
        command = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "")
        subprocess.run([sys.executable, "-c", command, str(tmp_path / "r")], check=True)
        assert names(tmp_path) == {"r", *being_written}
    assert (tmp_path / "r" / "manifest.json").read_text() == "other"


def test_nothing_is_written_elsewhere(tmp_path):
    shutil.copytree(DATA / "flood", tmp_path / "trace")
    (tmp_path / "trace").chmod(0o755)
    before = names(tmp_path / "trace")
    elsewhere = {name: str(tmp_path / name) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for directory in elsewhere.values():
        Path(directory).mkdir()
    for arguments in (["analyze", "trace", "-o", "r", "--html"], ["explain", "trace", "--memory-limit", "1G"]):
        command = [sys.executable, "-m", "whywait", *arguments]
        subprocess.run(command, cwd=tmp_path, env=os.environ | elsewhere, check=True, stdout=subprocess.DEVNULL)
    assert names(tmp_path) == {"trace", "r", *elsewhere}
    assert names(tmp_path / "trace") == before
    assert not any(names(tmp_path / name) for name in elsewhere)


def test_what_does_not_fit_into_memory_goes_beside_the_trace_or_into_the_cache(monkeypatch, tmp_path):
    asked = []

    def stop(*_, memory, **__):
        asked.append(memory)
        raise InterruptedError

    monkeypatch.setattr("whywait.mpi.analyze", stop)
    shutil.copytree(DATA / "flood", tmp_path / "trace")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for writable in (True, False):
        monkeypatch.setattr(os, "access", lambda *_, writable=writable: writable)
        with pytest.raises(InterruptedError):
            whywait.analyze(tmp_path / "trace", memory_limit=1 << 30)
    with pytest.raises(InterruptedError):
        whywait.analyze(tmp_path / "trace")
    assert asked == [(1 << 30, tmp_path / "trace"), (1 << 30, tmp_path / "cache" / "whywait"), (None, None)]


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    for place, reason in (
        (tmp_path / "file" / "r", f"{tmp_path / 'file'} is a file"),
        (Path("/proc/none/r"), "No such file or directory"),
    ):
        assert main(["analyze", str(DATA / "flood"), "-o", str(place), "--no-causes"]) == 2
        assert capsys.readouterr().err == f"whywait: {place} cannot be written: {reason}\n"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert main(["analyze", str(DATA / "flood"), "-o", str(tmp_path / "r")]) == 2
    assert capsys.readouterr().err == f"whywait: {tmp_path / 'r'} cannot be written: {tmp_path} is read-only\n"
