"""What goes wrong: the program goes on or ends as without the recorder, and what was recorded can be read."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import whywait
from whywait import _native

from .mpis import ENVIRONMENT, MPIS, PROGRAMS, compiled, record, run

WHYWAIT = [sys.executable, "-m", "whywait"]


@pytest.fixture
def faults(mpi, tmp_path):
    """The program that does what it is told, with two ranks."""
    program = compiled(mpi, PROGRAMS / "faults.c", tmp_path)

    def command(*arguments):
        return [*mpi.start(2), program, *arguments]

    return command


def ended(directory):
    """Return what the archive says of ranks that did not end well."""
    return [text for kind, _, text in whywait.open(directory).oddities if kind == "recording"]


INSIDE = r"rank {} ended inside {}, entered at \S+ s"
OPEN = "{} for 2 requests, still open: a receive from rank {}, tag 7"
EITHER = "a receive from rank {0}, tag 7; and a receive from rank {0}, tag 9"
DEADLOCK = "ranks 0 and 1 waited for each other when they ended: a deadlock"
# How the other rank ends is up to the launcher, which kills it wherever it is.
MPICH = MPIS[0]
ANYHOW = r"rank {} ended ((early|without MPI_Finalize), after MPI_\w+ at \S+ s|inside MPI_\w+.*, entered at \S+ s)"


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("abort", [r"rank 0 called MPI_Abort", ANYHOW.format(1)]),
        ("exit", [ANYHOW.format(0), ANYHOW.format(1)]),
        ("kill", [r"rank 0 ended early, after MPI_Sendrecv at \S+ s", ANYHOW.format(1)]),
        ("segv", [r"rank 0 ended early, after MPI_Sendrecv at \S+ s", ANYHOW.format(1)]),
        (
            "stuck",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Recv from rank 1, tag 7"),
                INSIDE.format(1, "MPI_Recv from rank 0, tag 7"),
            ],
        ),
        (
            "stuck in wait",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Wait for a receive from rank 1, tag 7"),
                INSIDE.format(1, "MPI_Wait for a receive from rank 0, tag 7"),
            ],
        ),
        (
            "stuck in waitall",
            [
                DEADLOCK,
                INSIDE.format(0, OPEN.format("MPI_Waitall", 1)),
                INSIDE.format(1, OPEN.format("MPI_Waitall", 0)),
            ],
        ),
        (
            # Either of both messages would do.
            "stuck in waitany",
            [
                INSIDE.format(0, f"MPI_Waitany for 2 requests, still open: {EITHER.format(1)}"),
                INSIDE.format(1, f"MPI_Waitany for 2 requests, still open: {EITHER.format(0)}"),
            ],
        ),
        (
            # What receives of Python's objects wait in.
            "stuck in mprobe",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Mprobe from rank 1, tag 7"),
                INSIDE.format(1, "MPI_Mprobe from rank 0, tag 7"),
            ],
        ),
        (
            "stuck in ssend",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Ssend to rank 1, tag 7"),
                INSIDE.format(1, "MPI_Ssend to rank 0, tag 7"),
            ],
        ),
        (
            "stuck in sendrecv",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Sendrecv to rank 1, tag 7, and from rank 1, tag 8"),
                INSIDE.format(1, "MPI_Sendrecv to rank 0, tag 7, and from rank 0, tag 8"),
            ],
        ),
        (
            "stuck in allreduce",
            [
                DEADLOCK,
                INSIDE.format(0, "MPI_Allreduce on MPI_COMM_WORLD of 2 ranks, where rank 1 is missing"),
                INSIDE.format(1, "MPI_Recv from rank 0, tag 7"),
            ],
        ),
        ("errors", []),
        ("fork", []),
        ("early", []),
        ("code", []),
    ],
)
def test_ends_are_told_apart(faults, tmp_path, way, expected, mpi, request):
    # Finishing judges the end, and knows no MPI.
    if mpi.name != "mpich" and way not in ("abort", "stuck") and not request.config.getoption("nightly"):
        pytest.skip("nightly: ./test all")
    plain = run(faults(way), tmp_path)
    done = record(faults(way), tmp_path)
    if way.startswith("stuck"):
        # The alarm of a rank, or that the launcher ended the other one: whichever it learns of first. Some add 128.
        assert {done.returncode % 128, plain.returncode % 128} <= {signal.SIGALRM, signal.SIGTERM}, done.stderr
    elif way == "exit":
        # The code of that rank, or that of the other one, if this learns first that its partner is gone.
        assert {done.returncode, plain.returncode} <= {5, 1}, done.stderr
    else:
        assert done.returncode == plain.returncode, done.stderr
    assert way != "code" or done.returncode == 42
    found = ended(tmp_path / "out")
    assert len(found) == len(expected), found
    for text, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, text), found
    if way == "exit":
        assert any("without MPI_Finalize" in text for text in found), found
    # All that had returned is there.
    result = whywait.analyze(tmp_path / "out")
    assert result.metrics["visits"].total > 20
    info = run([*WHYWAIT, "info", "out"], tmp_path)
    for text in found:
        assert text in info.stdout
    summary = " ".join(run([*WHYWAIT, "summary", "out"], tmp_path).stdout.split())
    assert "Call paths are unwound, not instrumented" in summary
    assert summary.count("rank 0 ended") == sum(text.startswith("rank 0 ended") for text in found)


def test_a_failed_send_is_no_message(faults, tmp_path):
    assert record(faults("errors"), tmp_path).returncode == 0
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert counts["MpiSend"] == counts["MpiRecv"] == 20


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("jump", {"Enter": 34, "Leave": 34, "MpiCollectiveBegin": 6, "MpiCollectiveEnd": 6}),
        ("throw", {"Enter": 34, "Leave": 34, "MpiCollectiveBegin": 6, "MpiCollectiveEnd": 6}),
        # Messages that were longer than their buffers did arrive, or the next ones would take their places.
        ("truncate", {"Enter": 20, "Leave": 20, "MpiSend": 6, "MpiIrecvRequest": 2, "MpiRecv": 4, "MpiIrecv": 2}),
    ],
)
def test_calls_that_do_not_return_or_fail_are_the_only_ones_without_messages(tmp_path, way, expected):
    """By `longjmp` or an exception out of an error handler, or with an error; see left.c."""
    for mpi in filter(lambda mpi: mpi.is_here, MPIS[:2]):
        source = PROGRAMS / "left.c"
        if way == "throw":
            source = Path(shutil.copy(source, tmp_path / "left.cpp"))
        path = compiled(mpi, source, tmp_path, "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX", "-lstdc++")
        done = record([*mpi.start(2), path, way], tmp_path, output=mpi.name)
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == ["rank 0 caught 3", f"rank 1 caught {0 if way == 'truncate' else 3}"]
        assert not re.search("ended (early|without)", done.stderr)
        counts = whywait.open(tmp_path / mpi.name).info(events=True)["events_by_type"]
        assert counts == expected | {"ProgramBegin": 2, "ProgramEnd": 2}


def test_nothing_is_recorded_while_it_is_off(faults, tmp_path):
    assert record(faults("pcontrol"), tmp_path).returncode == 0
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert counts["MpiSend"] == 22
    assert counts["MeasurementOnOff"] == 4


@pytest.mark.parametrize("attempt", range(5))
def test_what_was_killed_at_any_moment_can_be_read(faults, tmp_path, attempt):
    chance = random.Random(attempt)  # noqa: S311
    command = [*WHYWAIT, "record", "-o", "out", *faults("forever")]
    with subprocess.Popen(list(map(str, command)), cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        spool = tmp_path / "out" / ".spool"
        deadline = time.monotonic() + 60
        while len(list(spool.glob("*.wws"))) < 2:
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.01)
        time.sleep(chance.random() * 0.3)
        victims = [pid for pid in processes() if is_of(pid, tmp_path)]
        os.kill(chance.choice(victims), signal.SIGKILL)
        process.communicate(timeout=60)
    trace = whywait.open(tmp_path / "out")
    assert len(ended(tmp_path / "out")) >= 1
    counts = trace.info(events=True)["events_by_type"]
    # The last message of each rank may have no other end; a rank may have been killed before the first.
    assert abs(counts.get("MpiSend", 0) - counts.get("MpiRecv", 0)) <= 2
    assert counts.get("Enter") == counts.get("Leave")


def processes():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def is_of(pid, directory):
    """Whether a process runs a program of a directory."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().parent == directory
    except OSError:
        return False


@pytest.mark.parametrize("size", ["1m", "6m"])
def test_a_full_disk_ends_the_recording_and_not_the_program(faults, tmp_path, size):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        done = record(faults("many", "50000"), tmp_path, output="small/out")
        assert "stops recording: No space left" in done.stderr
        assert "BAD TERMINATION" not in done.stdout
        spool = small / "out" / ".spool"
        if done.returncode == 0:
            assert any("stopped recording: No space left" in text for text in ended(small / "out"))
        else:
            # There was no space for the archive either: it is written elsewhere.
            assert done.returncode == 3
            assert "try again with: whywait record --finish" in done.stderr
            shutil.copytree(spool, tmp_path / "elsewhere" / ".spool")
            assert whywait.open(tmp_path / "elsewhere").info()["events"] > 1000
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)


def test_a_limit_of_file_sizes_ends_the_recording_and_not_the_program(faults, tmp_path):
    """The system would end it with a signal. With 5,000 blocks of 1 KiB, the first 65,536 calls have a place."""
    # A launcher may have files of its own.
    program = faults("")[-2]
    limited = ["bash", "-c", 'ulimit -f 5000; exec "$@"', "bash"]
    if run([*limited, program, "many", "100000"], tmp_path).returncode:
        pytest.skip("MPI itself does not start with this limit")
    done = record([*limited, program, "many", "100000"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "stops recording: File too large" in done.stderr
    assert whywait.open(tmp_path / "out").info(events=True)["events_by_type"]["MpiSend"] >= 65000


def test_a_recording_ends_at_its_largest_size(faults, tmp_path):
    done = record(faults("many", "100000"), tmp_path, "--max-size", "5M")
    assert done.returncode == 0
    found = ended(tmp_path / "out")
    assert len(found) == 2
    assert all("the size given by --max-size is reached" in text for text in found)
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert counts["MeasurementOnOff"] == 2


def test_a_running_program_is_left_alone(faults, tmp_path):
    command = [*WHYWAIT, "record", "-o", "out", *faults("forever")]
    with subprocess.Popen(list(map(str, command)), cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        spool = tmp_path / "out" / ".spool"
        deadline = time.monotonic() + 60
        while len(list(spool.glob("*.wws"))) < 2:
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.01)
        with pytest.raises(whywait.UsageError, match="is still running"):
            whywait.open(tmp_path / "out")
        for pid in processes():
            if is_of(pid, tmp_path):
                os.kill(pid, signal.SIGKILL)
        process.wait(timeout=60)
    assert whywait.open(tmp_path / "out").info()["processes"] == 2


def test_missing_ranks_can_be_brought_later(faults, tmp_path):
    assert record(faults(), tmp_path, "--keep-spool").returncode == 0
    spool, away = tmp_path / "out" / ".spool", tmp_path / "away"
    away.mkdir()
    for path in spool.glob("1.*"):
        path.rename(away / path.name)
    finish = [*WHYWAIT, "record", "--finish", "out"]
    done = run(finish, tmp_path)
    assert "rank 1 left no recording" in done.stderr
    assert whywait.open(tmp_path / "out").info()["processes"] == 2
    for path in away.iterdir():
        path.rename(spool / path.name)
    done = run(finish, tmp_path)
    assert done.returncode == 0
    assert "recorded 2 ranks" in done.stderr
    assert ended(tmp_path / "out") == []
    assert not spool.exists()
    assert run(finish, tmp_path).returncode == 2


def test_a_launcher_may_come_first(mpi, faults, tmp_path):
    program = faults("")[-2]
    done = run([*mpi.start(2), *WHYWAIT, "record", "-o", "out", program], tmp_path)
    assert done.returncode == 0, done.stderr
    # Each process became the program, so the first reader finishes.
    assert _native.is_unfinished_recording(tmp_path / "out")
    assert whywait.open(tmp_path / "out").info()["processes"] == 2
    assert not (tmp_path / "out" / ".spool").exists()


def test_a_recording_in_a_recording(faults, tmp_path):
    *launcher, program, _ = faults("")
    done = record([*launcher, *WHYWAIT, "record", program], tmp_path)
    assert done.returncode == 0
    assert "inside of a recording" in done.stderr
    assert "recorded 2 ranks" in done.stderr


def test_another_tool_sees_the_calls_as_well(mpi, faults, tmp_path):
    tool = tmp_path / "tool.so"
    (tmp_path / "tool.c").write_text(
        """#include <mpi.h>
        #include <stdio.h>
        int MPI_Finalize(void) { puts("tool"); fflush(stdout); return PMPI_Finalize(); }"""
    )
    command = [mpi.compiler, "-shared", "-fPIC", tmp_path / "tool.c", "-o", tool]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    done = record(faults(), tmp_path, LD_PRELOAD=str(tool))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tool") == 2
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert counts["Enter"] == counts["Leave"]
    assert counts["MpiSend"] == 20


def test_what_a_program_hides_from_tools_is_not_recorded(mpi, tmp_path):
    """Its calls of PMPI_ functions, as with Score-P, but not those of a tool in it that has seen the MPI_ function."""
    (tmp_path / "plain.c").write_text(
        """#include <mpi.h>
        int main(int argc, char **argv) {
            int value = 0;
            MPI_Comm comm;
            MPI_Init(&argc, &argv);
            PMPI_Barrier(MPI_COMM_WORLD);
            PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Bcast(&value, 1, MPI_INT, 0, comm);
            MPI_Finalize();
        }
        #ifdef TOOL
        int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
            return PMPI_Bcast(data, count, type, root, comm);
        }
        #endif"""
    )
    for options in [(), ("-DTOOL",)]:
        command = [mpi.compiler, tmp_path / "plain.c", "-o", tmp_path / "plain", *options]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        done = record([*mpi.start(2), tmp_path / "plain"], tmp_path, "--force")
        assert done.returncode == 0, done.stderr
        visits = whywait.analyze(tmp_path / "out").metrics["visits"].by_callpath()
        names = {path[-1] for path in visits["callpath"].to_pylist()}
        assert {name for name in names if name.startswith("MPI_")} == {"MPI_Init", "MPI_Bcast", "MPI_Finalize"}


def program(directory, code, *options):
    """Compile a program without MPI."""
    (directory / "plain.c").write_text(code)
    subprocess.run(["gcc", directory / "plain.c", "-o", directory / "plain", *options], check=True)
    return directory / "plain"


def test_programs_that_do_not_exist(tmp_path):
    done = record(["./nothing"], tmp_path)
    assert (done.returncode, done.stderr) == (127, "whywait: ./nothing: not found\n")
    (tmp_path / "text").write_text("no program")
    done = record(["./text"], tmp_path)
    assert (done.returncode, done.stderr) == (126, "whywait: ./text: not executable\n")
    done = record(["true"], tmp_path, output="/proc/out")
    assert (done.returncode, "; -o chooses another directory" in done.stderr) == (3, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["./nothing", "input"], "there is no program ./nothing on this machine"),
        (["nothing", "input"], "nothing, input"),
        (["solve.py"], "solve.py is not executable; start it with: python solve.py"),
    ],
)
def test_launchers_without_a_program(mpi, tmp_path, words, why):
    """The launcher itself says so, in its own words, and how it ends counts."""
    (tmp_path / "solve.py").touch()
    command = [*mpi.start(2), *words]
    done = record(command, tmp_path)
    ends = {done.returncode, run(command, tmp_path).returncode}
    assert 0 not in ends
    # A race in MPICH's launcher: it ends by SIGPIPE now and then.
    assert len(ends) == 1 or ends & {-signal.SIGPIPE, 128 + signal.SIGPIPE}
    assert re.search(rf"^whywait: nothing was recorded: .*{re.escape(why)}$", done.stderr, re.MULTILINE), done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [(4, (), "ended with exit code 4"), (0, (), "not linked to MPI"), (0, ("-static",), "linked statically")],
)
def test_programs_without_mpi(tmp_path, code, options, text):
    done = record([program(tmp_path, f"int main(void) {{ return {code}; }}", *options)], tmp_path, "--quiet")
    assert done.returncode == (code or 3)
    assert re.fullmatch(rf"whywait: nothing was recorded: .*{text}.*\n", done.stderr)
    assert not (tmp_path / "out").exists()


def test_programs_of_other_libraries(tmp_path):
    library = tmp_path / "libGPI2.so.1"
    (tmp_path / "gaspi.c").write_text("int gaspi_proc_init(void) { return 0; }")
    options = ["-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["gcc", *options, tmp_path / "gaspi.c", "-o", library], check=True)
    calls = "int gaspi_proc_init(void); int main(void) { return gaspi_proc_init(); }"
    path = program(tmp_path, calls, str(library), f"-Wl,-rpath,{tmp_path}")
    done = record([path], tmp_path, "--quiet")
    assert done.returncode == 3
    words = "communicates by GASPI, which whywait does not record: waiting in its calls is not seen"
    assert re.fullmatch(rf"whywait: nothing was recorded: .*{words}\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("int main(void) { return 5; }", "exit code 5 before a process of .*/early.mpich had called MPI_Init"),
        ("int main(void) { return 0; }", "by way of the dynamic linker, though MPI was loaded"),
    ],
)
def test_programs_that_do_not_come_to_mpi(tmp_path, code, text):
    (tmp_path / "early.c").write_text(code)
    path = compiled(MPICH, tmp_path / "early.c", tmp_path, "-Wl,--no-as-needed", "-lmpich")
    done = record([path], tmp_path)
    assert done.returncode in (3, 5)
    assert re.search(text, done.stderr), done.stderr
    assert not (tmp_path / "out").exists()


def test_programs_with_rights_of_their_own(tmp_path):
    path = compiled(MPICH, PROGRAMS / "ring.c", tmp_path)
    if os.geteuid() != 0:
        pytest.skip("only root can make such a program")
    shutil.chown(path, 65534, 65534)
    path.chmod(0o6755)
    tmp_path.chmod(0o755)
    done = record([*MPICH.start(2), path], tmp_path)
    assert done.returncode != 0
    assert "runs with rights of its own" in done.stderr


TOOL = "#include <mpi.h>\nint MPI_Barrier(MPI_Comm c) { return PMPI_Barrier(c); }\n"


@pytest.mark.parametrize(
    ("launcher", "before", "after"),
    [
        ("mpich", [], ["env", "LD_PRELOAD={}"]),
        ("mpich", ["-env", "LD_PRELOAD", "{}"], []),
        ("openmpi", ["-x", "LD_PRELOAD={}"], []),
    ],
)
def test_a_tool_that_the_command_preloads(tmp_path, launcher, before, after):
    mpi = next(mpi for mpi in MPIS if mpi.name == launcher)
    (tmp_path / "tool.c").write_text(TOOL)
    tool = tmp_path / "libtool.so"
    subprocess.run([mpi.compiler, "-shared", "-fPIC", tmp_path / "tool.c", "-o", tool], check=True)
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    command = [*mpi.start(2)[:-2], *(word.format(tool) for word in before), "-n", 2]
    done = record([*command, *(word.format(tool) for word in after), program], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recorded 2 ranks" in done.stderr


def test_signals_are_those_of_the_program(tmp_path):
    """Also where whywait becomes the program: Python ignores some."""
    command = ["grep", "SigIgn", "/proc/self/status"]
    plain = run(command, tmp_path)
    assert record(command, tmp_path).stdout == record(command, tmp_path, PMI_RANK="0").stdout == plain.stdout


def test_programs_of_32_bits(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"\x7fELF\x01\x01\x01")
    path.chmod(0o755)
    done = record([path], tmp_path)
    assert done.returncode == 3
    assert "32-bit" in done.stderr


def test_an_archive_is_not_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    done = record(["true"], tmp_path)
    assert done.returncode == 2
    assert "out exists" in done.stderr
    done = record(["true"], tmp_path, "--force")
    assert done.returncode == 2
    assert "holds no recording" in done.stderr
    assert (tmp_path / "out" / "precious").exists()


def test_children_of_python(mpi, tmp_path):
    if mpi is not MPIS[2]:
        pytest.skip("mpi4py is for the MPI of this environment")
    (tmp_path / "children.py").write_text(
        """import multiprocessing
import threading

if __name__ == "__main__":
    from mpi4py import MPI

    thread = threading.Thread(target=MPI.COMM_WORLD.Barrier)
    thread.start()
    thread.join()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
"""
    )
    done = record([*mpi.start(2), sys.executable, "children.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    info = whywait.open(tmp_path / "out").info()
    assert (info["processes"], info["locations"]) == (2, 4)
