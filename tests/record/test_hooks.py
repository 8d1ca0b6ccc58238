"""The recorder harms no program, whatever calls its hooks, and wherever its library lies."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import whywait
from whywait._record import fitted, launch

from .mpis import MPIS, PROGRAMS, compiled, record, run

ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")

TWO_MPIS = pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name, indirect=True)
ONE_MPI = pytest.mark.parametrize("mpi", MPIS[:1], ids=lambda mpi: mpi.name, indirect=True)
OPTIONS = pytest.mark.parametrize(
    "options", [(), ("--threads",), ("--groups=posix", "--threads")], ids=["", "threads", "threads and files"]
)


@TWO_MPIS
@OPTIONS
def test_hooks_work_where_little_is_allowed(mpi, tmp_path, options):
    """In malloc, in signal handlers, before and after constructors and destructors; see hooks.c."""
    library = tmp_path / "libaround.so"
    compile_library = [mpi.compiler, "-DLIBRARY", "-shared", "-fPIC", "-o", library, PROGRAMS / "hooks.c"]
    subprocess.run(compile_library, check=True, capture_output=True)
    program = compiled(mpi, PROGRAMS / "hooks.c", tmp_path, library, "-lpthread", "-ldl")
    done = record(["timeout", "30", *mpi.start(1), program], tmp_path, *options)
    assert (done.returncode, done.stdout) == (0, "0 failures, done\n"), done.stderr
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    # The timer of the program may ring seldom on a busy machine; what is in malloc is certain.
    assert counts["MpiCollectiveEnd"] == 10_001
    assert (counts.get("ThreadAcquireLock", 0) > 1000) == ("--threads" in options)
    assert (counts.get("IoOperationComplete", 0) > 1000) == ("--groups=posix" in options)


@ONE_MPI
@OPTIONS
def test_nothing_is_needed_of_the_user(mpi, tmp_path, options):
    """Without a cache, the library that fits lies in the recording, and goes with the spool."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    environment = {"XDG_CACHE_HOME": "/proc/none", "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loaded")}
    done = record([*mpi.start(2), program], tmp_path, *options, **environment)
    assert done.returncode == 0, done.stderr
    assert "recorded 2 ranks" in done.stderr
    logs = "".join(log.read_text() for log in tmp_path.glob("loaded.*"))
    loaded = set(re.findall(rf"file=(/\S*/{re.escape(fitted.LIBRARY.name)})", logs))
    assert len(loaded) == 1
    assert Path(loaded.pop()).is_relative_to(tmp_path / "out")
    assert not (tmp_path / "out" / launch.SPOOL).exists()


@ONE_MPI
@pytest.mark.parametrize("limit", ["-n 32", "-s 256", "-v 200000"])
def test_limits_of_the_user(mpi, tmp_path, limit):
    """Open files, the stack, and the address space: of which the recorder takes 10 MB."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    command = [*mpi.start(2), "bash", "-c", f"ulimit {limit}; exec {program}"]
    alone = run(command, tmp_path)
    if alone.returncode != 0:
        pytest.skip(f"the program itself does not run with ulimit {limit}")
    done = record(command, tmp_path)
    assert (done.returncode, sorted(done.stdout)) == (0, sorted(alone.stdout)), done.stderr
    assert whywait.open(tmp_path / "out").info()["processes"] == 2
    assert "stop" not in done.stderr


@ONE_MPI
def test_system_calls_that_are_refused(mpi, tmp_path):
    """As by the seccomp profile of a container: see limited.c."""
    limited = tmp_path / "limited"
    subprocess.run(["cc", "-o", limited, PROGRAMS / "limited.c"], check=True, capture_output=True)
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    command = [*mpi.start(2), limited, program]
    if run(command, tmp_path).returncode != 0:
        pytest.skip("the program itself does not run so")
    done = record(command, tmp_path, "--counters", "rusage,core,instructions")
    assert done.returncode == 0, done.stderr
    assert "the counter instructions was not recorded" in done.stderr
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert counts["Enter"] > 50


@ONE_MPI
def test_a_read_only_system_and_no_home(mpi, tmp_path):
    """Only the directory of the recording can be written to, and the environment is empty."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    words = [sys.executable, "-m", "whywait", "record", "-o", tmp_path / "out", *mpi.start(2), program]
    script = (
        f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro / && cd {tmp_path} || exit 77\n"
        f"exec env -i PATH={os.environ['PATH']} PYTHONPATH={os.pathsep.join(sys.path[1:])} {' '.join(map(str, words))}"
    )
    done = run(["unshare", "-m", "sh", "-c", script], tmp_path)
    if done.returncode in {1, 77} and "recorded" not in done.stderr:
        pytest.skip("mounts cannot be changed here")
    assert done.returncode == 0, done.stderr
    assert "recorded 2 ranks" in done.stderr


@ONE_MPI
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_allocators_with_locks_of_their_own(mpi, tmp_path, allocator):
    if allocator not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout:
        pytest.skip(f"{allocator} is not installed")
    program = compiled(mpi, PROGRAMS / "threads.c", tmp_path, "-lpthread", "-Wl,--no-as-needed", f"-l:{allocator}")
    done = record(["timeout", "60", *mpi.start(1), program], tmp_path, "--threads")
    assert done.returncode == 0, done.stderr
    assert "rank 0: 0 failures" in done.stdout
    assert "ThreadAcquireLock" in whywait.open(tmp_path / "out").info(events=True)["events_by_type"]


@TWO_MPIS
def test_the_sanitizer_of_addresses(mpi, tmp_path):
    """It refuses to start if another library comes first, unless it is told not to look."""
    try:
        program = compiled(mpi, PROGRAMS / "ring.c", tmp_path, "-fsanitize=address")
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no sanitizers")
    options = "detect_leaks=0:verify_asan_link_order=1"
    done = record([*mpi.start(2), program], tmp_path, ASAN_OPTIONS=options)
    assert done.returncode == 0, done.stderr
    assert "recorded 2 ranks" in done.stderr
    assert launch.environment(launch.Recording([str(program)]), tmp_path, Path("x"))["ASAN_OPTIONS"]
    assert "ASAN_OPTIONS" not in launch.environment(launch.Recording(["true"]), tmp_path, Path("x"))


def test_places_for_the_library(tmp_path, monkeypatch):
    """The cache of the user, else the recording; else, for a rank, a directory that is the user's alone."""

    def place(*, threads=True, spare=None):
        return fitted.recorder(["true"], threads=threads, spare=spare)

    cache, spare, temporary = (tmp_path / name for name in ("cache", "spare", "temporary"))
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(fitted.tempfile, "tempdir", str(temporary))
    assert place(spare=spare).is_relative_to(cache)
    # LD_PRELOAD cannot name it.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    assert place(spare=spare).is_relative_to(spare)
    own = temporary / f"whywait-{os.getuid()}"
    assert place().is_relative_to(own)
    assert own.stat().st_mode & 0o777 == 0o700
    # Others could write there.
    own.chmod(0o777)
    assert place(threads=False) == fitted.LIBRARY
    with pytest.raises(fitted.PlaceError, match="XDG_CACHE_HOME"):
        place()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(fitted.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert place(spare=spare).is_relative_to(spare)


def test_a_directory_without_programs_is_no_place(tmp_path, monkeypatch):
    """The dynamic linker maps no library from a file system that is mounted `noexec`."""
    status = os.statvfs(tmp_path)
    fields = list(status)
    fields[8] |= os.ST_NOEXEC
    monkeypatch.setattr(fitted.os, "statvfs", lambda _: os.statvfs_result(fields))
    assert fitted.recorder(["true"], spare=tmp_path) == fitted.LIBRARY
    assert not any(tmp_path.iterdir())


@ONE_MPI
def test_a_rank_without_a_cache(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    whywait_record = [sys.executable, "-m", "whywait", "record", "-o", "out", "--threads"]
    (tmp_path / "tmp").mkdir()
    environment = {"XDG_CACHE_HOME": "/proc/none", "TMPDIR": str(tmp_path / "tmp")}
    done = run([*mpi.start(2), *whywait_record, program], tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert "recorded 2 ranks" in done.stderr
    assert any((tmp_path / "tmp" / f"whywait-{os.getuid()}").iterdir())


@TWO_MPIS
@pytest.mark.parametrize("options", [(), ("--threads",), ("--sample=500",), ("--window=100:200",)], ids=" ".join)
@pytest.mark.parametrize("way", ["last", "later"])
def test_a_process_ends_with_the_last_thread_of_the_program(mpi, options, way, tmp_path):
    program = compiled(mpi, PROGRAMS / "left_by_main.c", tmp_path, "-lpthread")
    done = record([*mpi.start(1), program, way], tmp_path, *options)
    assert (done.returncode, done.stdout) == (0, "at exit\n"), done.stderr
