"""What `whywait record` does before the program runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from whywait._record import fitted, launch, libmpi
from whywait._record.command import preloading, program_name, why_no_program, why_unloaded
from whywait._record.elf import Elf, ElfError

from .mpis import MPIS, PROGRAMS, compiled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p2p,coll", ["p2p", "coll"]),
        ("coll,p2p", ["p2p", "coll"]),
        ("all,-io,-misc", ["env", "p2p", "coll", "cg", "rma", "spawn", "shmem", "armci", "cg_query"]),
        ("posix", ["env", "p2p", "coll", "cg", "rma", "io", "spawn", "shmem", "armci", "posix"]),
        ("coll,posix", ["coll", "posix"]),
        ("posix,all,-misc", ["env", "p2p", "coll", "cg", "rma", "io", "spawn", "shmem", "armci", "cg_query", "posix"]),
        ("-io", ["env", "p2p", "coll", "cg", "rma", "spawn", "shmem", "armci"]),
    ],
)
def test_groups(text, expected):
    assert launch.chosen_groups(text) == expected


@pytest.mark.parametrize(
    ("window", "known"),
    [
        *(("1.5:3", True), (":3", True), ("1:", True), ("call:2..", True), ("call:2..5", True)),
        *(("3", False), ("5:2", False), ("2:2", False), ("call:5..2", False), ("call:..2", False)),
    ],
)
def test_windows(window, known):
    given = {"groups": "p2p", "callpaths": True, "depth": 1, "max_size": 1, "model": "full", "sync": True}
    if known:
        assert launch.recorder_options(**given, window=window)["window"] == window
    else:
        with pytest.raises(ValueError, match=f"'{window}' is no window"):
            launch.recorder_options(**given, window=window)


@pytest.mark.parametrize(("expression", "why"), [("(", "is no regular expression"), ("a;b", "has a semicolon")])
def test_wrong_expressions(expression, why):
    given = {"groups": "p2p", "callpaths": True, "depth": 1, "max_size": 1, "window": "", "model": "full", "sync": True}
    for option in ("only", "filter"):
        with pytest.raises(ValueError, match=why):
            launch.recorder_options(**given, **{option: expression})


def test_unknown_groups():
    with pytest.raises(ValueError, match="there is no group 'p3p'"):
        launch.chosen_groups("p3p")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["./solver", "input"], "solver"),
        (["mpiexec", "-n", "4", "true"], "true"),
        ([sys.executable, "-X", "dev", "solve.py", "x"], "solve"),
        ([sys.executable, "-m", "solver.heat"], "heat"),
        (["./my solver"], "my_solver"),
        (["env", "-u", "HOME", "A=1", "B=ls", "cat", "x"], "cat"),
        (["timeout", "-s", "KILL", "10", "mpiexec", "-n", "4", "taskset", "-c", "0,1", "cat"], "cat"),
        (["mpiexec", "-genv", "LD_PRELOAD", "/bin/true", "-launcher", "ls", "-n", "2", "cat"], "cat"),
        (["nice", "-n", "5", sys.executable, "-m", "solver.heat"], "heat"),
        (["perf", "stat", "-e", "cycles", "cat"], "cat"),
        (["bash", "-c", "cd /tmp && A=1 mpiexec -n 2 cat x > y; echo"], "cat"),
        (["bash", "-c", "exec cat x"], "cat"),
        (["mpiexec", "bash", "-lc", "cat"], "cat"),
        (["unshare", "-n", "chroot", "/", "sudo", "-u", "nobody", "cat"], "cat"),
        (["bash", "-c", "'"], "bash"),
        (["bash"], "bash"),
        (["timeout", "5"], "timeout"),
    ],
)
def test_the_archive_is_named_after_the_program(command, name):
    assert program_name(command) == name


def test_a_script_of_the_shell_is_the_program(tmp_path):
    (tmp_path / "job.sh").write_text("./solver")
    assert program_name(["bash", "-e", str(tmp_path / "job.sh"), "x"]) == "job.sh"


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("env LD_PRELOAD=/t.so cat", "env LD_PRELOAD=/r.so:/t.so cat"),
        ("mpiexec -x LD_PRELOAD=/t.so:/u.so -n 2 cat", "mpiexec -x LD_PRELOAD=/r.so:/t.so:/u.so -n 2 cat"),
        ("mpiexec -env LD_PRELOAD /t.so -n 2 cat", "mpiexec -env LD_PRELOAD /r.so:/t.so -n 2 cat"),
        ("srun --export=ALL,LD_PRELOAD=/t.so,A=1 cat", "srun --export=ALL,LD_PRELOAD=/r.so:/t.so,A=1 cat"),
        # The program's own arguments are its own.
        ("mpiexec -x LD_PRELOAD -n 2 cat LD_PRELOAD=/t.so", "mpiexec -x LD_PRELOAD -n 2 cat LD_PRELOAD=/t.so"),
        ("cat LD_PRELOAD=/t.so", "cat LD_PRELOAD=/t.so"),
    ],
)
def test_the_recorder_comes_first_among_preloaded_libraries(command, changed):
    assert preloading(command.split(), Path("/r.so")) == changed.split()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["mpiexec", "-n", "2", "env", "-i", "cat"], "`env -i` removes LD_PRELOAD"),
        (["env", "-u", "LD_PRELOAD", "cat"], "`env -u LD_PRELOAD` removes"),
        (["bash", "-c", "LD_PRELOAD=/t.so cat"], "was replaced by the command: LD_PRELOAD=/t.so cat"),
        (
            ["mpiexec", "setpriv", "--reuid", "9", "cat"],
            "record it there: mpiexec setpriv --reuid 9 whywait record cat",
        ),
        (["su", "nobody", "-s", "/bin/sh", "-c", "cat"], "su runs it as another user"),
        (["env", "-u", "HOME", "cat"], ""),
        (["cat", "-i"], ""),
    ],
)
def test_why_the_recorder_is_not_loaded(command, reason):
    assert reason in why_unloaded(command)
    assert bool(reason) == bool(why_unloaded(command))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("heat.py 100", "heat"),
        ("-uX dev -Wignore ./runs/heat.v2.py -m x", "heat.v2"),
        ("-m mpi4py.bench -x", "bench"),
        ("-Imsolver", "solver"),
        ("--check-hash-based-pycs never -- -odd.py", "-odd"),
        *((words, Path(sys.executable).name) for words in ("-c pass", "-i", "-", "-W")),
    ],
)
def test_what_python_runs(words, name):
    """The same as in rust/record/src/title.rs."""
    assert program_name([sys.executable, *words.split()]) == name


def test_a_launcher_alone():
    assert why_no_program(["mpiexec", "-n", "4"]) == "mpiexec was given no program"


def test_the_first_free_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("whywait-true.1").mkdir()
    assert launch.directory_for(launch.Recording(["true"])) == Path("whywait-true.2")


@pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name)
def test_the_recorder_has_what_the_mpi_has(mpi, tmp_path, monkeypatch):
    if not mpi.is_here:
        pytest.skip(f"{mpi.name} is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    libraries = libmpi.libraries_of([str(program)])
    assert len(libraries) == 1
    trimmed = fitted.recorder([str(program)])
    assert trimmed.is_relative_to(tmp_path)
    ours = {name for name in Elf(trimmed).exports() if "MPI_" in name}
    assert ours <= libmpi.exports(libraries)
    assert {"MPI_Send", "PMPI_Send"} <= ours
    assert ("MPI_Send_c" in ours) == (mpi.name == "mpich")
    # The second time, it is there.
    monkeypatch.setattr(Elf, "exporting", None)
    assert fitted.recorder([str(program)]) == trimmed


def test_the_recorder_stays_whole_for_an_unknown_mpi():
    def functions(library):
        return {name for name in Elf(library).exports() if name.startswith("MPI_")}

    assert functions(fitted.recorder([])) == functions(fitted.LIBRARY) != set()


def test_the_cache_keeps_the_recorders_used_last(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fitted, "_KEPT", 2)
    monkeypatch.setattr(libmpi, "exports", lambda _: frozenset({"MPI_Init"}))
    made = []
    for number in range(4):
        (tmp_path / f"libmpi.so.{number}").write_bytes(bytes(number))
        made.append(fitted.recorder([], [tmp_path / f"libmpi.so.{number}"]))
        os.utime(made[-1], (number, number))
    assert [library.is_file() for library in made] == [False, False, True, True]
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_dir()) == ["whywait"]
    # What is used is kept.
    assert fitted.recorder([], [tmp_path / "libmpi.so.2"]) == made[2]
    fitted.recorder([], [tmp_path / "libmpi.so.0"])
    assert [library.is_file() for library in made[1:]] == [False, True, False]


def test_no_more_than_the_system_is_needed():
    allowed = {"libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libm.so.6"}
    assert set(Elf(fitted.LIBRARY).needed()) <= allowed


def test_other_files_are_no_programs(tmp_path):
    for content in (b"", b"text", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + bytes(50)):
        (tmp_path / "file").write_bytes(content)
        if len(content) < 50:
            with pytest.raises(ElfError):
                Elf(tmp_path / "file")
    (tmp_path / "file").write_bytes(fitted.LIBRARY.read_bytes()[:-1000])
    with pytest.raises(ElfError):
        Elf(tmp_path / "file").exports()


def test_starting_takes_no_heavy_imports():
    code = (
        "import sys; from whywait import cli; cli.main(['record', '-o', 'x', './nothing'])\n"
        "heavy = {'numpy', 'pyarrow'} & sys.modules.keys(); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
