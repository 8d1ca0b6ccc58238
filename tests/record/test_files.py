"""Files of POSIX and of C's standard library in recordings: see files.c."""

import os
import sys
from pathlib import Path

import pytest
import whywait
from whywait.analysis.findings import findings
from whywait.analysis.io import summary

from tests.official import read as official

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record, run

TWO_MPIS = pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name, indirect=True)
ONE_MPI = pytest.mark.parametrize("mpi", MPIS[:1], ids=lambda mpi: mpi.name, indirect=True)

#: By hand from files.c: operations, bytes read, and bytes written, of each file.
EXPECTED = {
    "of_posix": (15, 26, 43),
    "of_posix.2": (1, 0, 9),
    "of_stdio": (16, 56, 61),
    "of_stdio.2": (2, 6, 6),
    "of_copy": (4, 20, 10),
    "of_copy.2": (4, 0, 23),
    "of_aio": (6, 11, 14),
    "of_child": (2, 0, 11),
    "before": (1, 0, 4),
    "pipe": (6, 17, 17),
    "stdout": (1, 0, 11),
}


@TWO_MPIS
def test_each_function_is_recorded_and_does_what_it_does_alone(mpi, tmp_path):
    # With checks of bounds, as distributions build programs, calls go to other functions.
    for options in ((), ("-O2", "-D_FORTIFY_SOURCE=2")):
        program = compiled(mpi, PROGRAMS / "files.c", tmp_path, *options)
        alone = run([*mpi.start(2), program], tmp_path)
        done = record([*mpi.start(2), program], tmp_path, "--groups=posix", "--force")
        assert (done.returncode, sorted(done.stdout.splitlines())) == (0, sorted(alone.stdout.splitlines()))
        assert "rank 0: 0 failures" in done.stdout
        result = whywait.analyze(tmp_path / "out")
        found = {Path(one["file"]).name: one for one in summary(result)["files"]}
        numbers = {
            name: (one["count"], one["bytes_read"], one["bytes_written"]) for name, one in found.items() if one["count"]
        }
        assert numbers == EXPECTED
        assert {one["file"] for one in found.values()} >= {str(tmp_path / "of_posix"), "stdout"}
        assert {one["paradigm"] for one in summary(result)["paradigms"]} == {"POSIX I/O", "ISO C I/O"}
        operations = {row["operation"] for row in result.io().to_pylist()}
        assert operations == {"open", "close", "read", "write", "flush", "seek", "duplicate", "status"}
        functions = {row["callpath"][-1] for row in result.io().to_pylist()}
        read_or_written = {"open", "pread", "fprintf", "fscanf", "fgets", "fread", "sendfile", "aio_read", "lio_listio"}
        assert read_or_written <= functions
        # UCX, which Debian's MPICH uses, takes its place in the program.
        assert ("mmap" in functions) == (mpi.name == "openmpi")
        assert not any(name.startswith("_") for name in functions)
        assert not result.warnings


@ONE_MPI
def test_records_are_what_the_official_reader_reads(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "files.c", tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--groups=posix")
    assert done.returncode == 0, done.stderr
    archive = official(tmp_path / "out" / "traces.otf2")
    definitions, events = archive.definitions, archive.events
    strings = {one["id"]: one["string"] for one in definitions["String"]}
    files = {one["id"]: strings[one["name"]] for one in definitions["IoRegularFile"]}
    handles = {one["id"]: one for one in definitions["IoHandle"]}
    # Names of standard streams are those of their handles.
    names = {number: files.get(one["file"], strings[one["name"]]) for number, one in handles.items()}
    [state] = definitions["IoPreCreatedHandleState"]
    assert (names[state["io_handle"]], state["mode"]) == ("stdout", "WRITE_ONLY")
    sums, open_operations, failed = {}, {}, []
    for one in events[0]:
        if one.kind == "IoOperationBegin":
            open_operations[one.fields["matching_id"]] = one.fields
        elif one.kind == "IoOperationComplete":
            begin = open_operations.pop(one.fields["matching_id"])
            assert begin["handle"] == one.fields["handle"]
            of_file = sums.setdefault(Path(names[begin["handle"]]).name, [0, 0, 0])
            place = {"READ": 1, "WRITE": 2, "FLUSH": 0}[begin["mode"]]
            of_file[0] += 1
            of_file[place] += one.fields["bytes_result"] if place else 0
        elif one.kind == "IoOperationCancelled":
            del open_operations[one.fields["matching_id"]]
            failed.append(Path(names[one.fields["handle"]]).name)
    assert not open_operations
    assert failed == ["of_aio"]
    sums["of_aio"][0] += 1
    assert {name: tuple(of_file) for name, of_file in sums.items()} == EXPECTED
    [created, *_] = [one.fields for one in events[0] if one.kind == "IoCreateHandle"]
    assert names[created["handle"]] == str(tmp_path / "of_posix")
    assert (created["mode"], created["creation_flags"], created["status_flags"]) == ("READ_WRITE", "3", "APPEND")


@TWO_MPIS
def test_rank_0_that_reads_while_others_wait_is_a_finding(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "files.c", tmp_path)
    file = tmp_path / "slow.fifo"
    os.mkfifo(file)

    def check():
        done = record([*mpi.start(2), program, "slow", "100"], tmp_path, "--groups=posix", "--force")
        assert done.returncode == 0, done.stderr
        result = whywait.analyze(tmp_path / "out")
        found = summary(result)
        assert (found["bytes_read"], found["bytes_written"]) == (5 * 32768, 0)
        # The first of five times begins in MPI_Init.
        assert 0.35 < found["time"] < 1
        first = findings(result)[0]
        assert first.sentence.startswith(f"Only rank 0 calls pass_on/read on {file}, for ")
        assert "; the other waits " in first.sentence
        assert first.loss > 0.6

    on_schedule(check)


@ONE_MPI
def test_files_are_not_recorded_unless_asked_for(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "files.c", tmp_path)
    assert record([*mpi.start(2), program], tmp_path).returncode == 0
    assert not summary(whywait.analyze(tmp_path / "out"))["paradigms"]


@ONE_MPI
def test_what_the_interpreter_of_python_does_with_files_is_the_programs(mpi, tmp_path):
    pytest.importorskip("mpi4py")
    (tmp_path / "program.py").write_text(
        "from mpi4py import MPI\n"
        "import subprocess, sys\n"
        "def write():\n"
        "    with open('of_python', 'wb', buffering=0) as file:\n"
        "        file.write(bytes(1000))\n"
        "        subprocess.run([sys.executable, '-c', ''], stdout=subprocess.PIPE)\n"
        "        file.write(bytes(500))\n"
        "write()\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    done = record([*mpi.start(1), sys.executable, "program.py"], tmp_path, "--groups=posix")
    if "cannot open shared object" in done.stderr or "ImportError" in done.stderr:
        pytest.skip("mpi4py is for another MPI")
    assert done.returncode == 0, done.stderr
    [found] = [one for one in summary(whywait.analyze(tmp_path / "out"))["files"] if one["file"].endswith("of_python")]
    assert (found["count"], found["bytes_written"]) == (2, 1500)
