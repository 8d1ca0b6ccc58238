"""Analyses that run out of memory, disk space, or time."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import otf2
import pyarrow as pa
import pytest
import whywait
from whywait import _native

from tests.clocked import with_offsets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a memory limit needs Linux")

MIB = 2**20
IN_MEMORY = "/dev/shm"  # noqa: S108
LIMIT = 104 * MIB

# Analyses a trace, notes the peak, and only then loads what can write the tables.
ANALYZE = """
import sys
from whywait import _native
trace, limit, directory = sys.argv[1:]
run = _native.Run(trace)
_native.limit_memory(run, int(limit) or None, directory, threads=2)
result = _native.analyze(run, threads=2)
peak = _native.peak_memory()
import pyarrow as pa
for name in ("callpaths", "severities", "wait_states", "delay_costs", "critical_path", "transfers", "inconsistencies"):
    table = pa.table(getattr(result, name)())
    with pa.OSFile(f"{directory}/{limit}-{name}.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
print(peak)
"""


# Opens a trace, and prints the peak.
OPEN = """
import sys, whywait
trace, limit, directory = sys.argv[1:]
run = whywait.open(trace, memory_limit=int(limit) or None, spill_directory=directory)
print(run.locations.num_rows, whywait._native.peak_memory())
"""


def generate(directory, ranks, iterations):
    _native.generate("sor-gats", directory, ranks=ranks, iterations=iterations, seed=3)
    return directory


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A trace with a few MiB of events."""
    return generate(tmp_path_factory.mktemp("small"), 16, 1_000)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A trace whose analysis takes some hundred MiB, and some seconds."""
    return generate(tmp_path_factory.mktemp("large"), 16, 18_000)


def test_a_trace_four_times_the_limit_gives_the_same(large, tmp_path):

    def peak(limit):
        command = [sys.executable, "-c", ANALYZE, str(large), str(limit), str(tmp_path)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    unlimited, limited = peak(0), peak(LIMIT)
    assert unlimited > 4 * LIMIT
    # Threads can outrun the watch over the limit for moments that no test can bound.
    assert limited < unlimited - LIMIT
    tables = {file.name.removeprefix("0-"): file for file in tmp_path.glob("0-*.arrow")}
    assert len(tables) == 7
    for name, file in tables.items():
        files = (file, tmp_path / f"{LIMIT}-{name}")
        one, other = (pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in files)
        assert one.equals(other), name


def test_a_trace_that_is_read_as_a_whole_keeps_the_limit_meanwhile(tmp_path):
    counters = "".join(f":{42_000_000 + kind}:{(kind + 1) * 3_141_592_653_589}" for kind in range(24))
    path = tmp_path / "run.prv"
    with path.open("w") as file:
        file.write("#Paraver (01/01/2026 at 00:00):1000000_ns:1(2):1:2(1:1,1:1),1\nc:1:1:2:1:2\n")
        for time in range(0, 480_000, 4):
            for task in (1, 2):
                at = f"2:{task}:1:{task}:1"
                file.write(f"{at}:{time}:50000002:8:50100004:1{counters}\n{at}:{time + 2}:50000002:0\n")

    def peak(limit):
        command = [sys.executable, "-c", OPEN, str(path), str(limit), str(tmp_path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        locations, bytes_ = map(int, done.stdout.split())
        assert locations == 2
        return bytes_

    unlimited, limited = peak(0), peak(LIMIT)
    assert unlimited > LIMIT + 32 * MIB
    assert limited < unlimited - 32 * MIB
    assert [file.name for file in tmp_path.iterdir()] == ["run.prv"], "nothing else is left"


def test_the_summary_reports_peak_memory(small, tmp_path):
    # A process of its own: this one keeps what tests before have taken.
    done = whywait_analyze(small, "--memory-limit", "1G", "--spill-dir", tmp_path, "-o", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    peak = json.loads((tmp_path / "results" / "summary.json").read_text())["peak_memory"]
    assert 10 * MIB < peak <= resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert [file.name for file in tmp_path.iterdir()] == ["results"], "nothing else is left"


def test_a_limit_that_cannot_be_kept_is_refused(small, tmp_path):
    with pytest.raises(whywait.UsageError, match=r"a memory limit of 5 MiB is too small: this trace needs \d+ MiB"):
        whywait.analyze(small, memory_limit=5 * MIB, spill_directory=tmp_path)


@pytest.mark.parametrize(
    "verb",
    ["waits", "explain", "efficiency", "clocks", "gpu", "advise --rounds 0 --only balance", "counters --arrival send"],
)
def test_every_verb_keeps_a_limit_and_says_the_same(small, verb):
    says_the_same(small, verb)


def test_clocks_that_are_corrected_keep_a_limit(small, tmp_path):
    """Those of odd ranks are half a millisecond ahead, and drift: the trace is read three times."""
    with otf2.reader.open(str(small / "traces.otf2")) as reader:
        clock = reader.definitions.clock_properties
        begin, end = clock.global_offset, clock.global_offset + clock.trace_length
    ahead = [(begin, -500_000), (end, -510_000)]
    anchor = with_offsets(small, tmp_path / "skewed", lambda location: ahead if location % 2 else [])
    assert whywait.analyze(anchor, clocks="both", causes=False).clocks["done"] == ["lines"]
    for how in ("lines", "clc"):
        says_the_same(anchor, f"clocks --clocks {how}")


def says_the_same(trace, verb):
    """About the least limit that the trace allows, with one thread: what does not fit goes to a file."""

    def run(*options):
        command = [sys.executable, "-m", "whywait", *verb.split(), str(trace), "--json", "--threads", "1", *options]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    refused = run("--memory-limit", "5M")
    assert refused.returncode == 2
    (least,) = re.findall(r"this trace needs (\d+) MiB", refused.stderr)
    # What Python itself has in memory varies by some MiB: pages of its files come and go.
    limited, free = run("--memory-limit", f"{int(least) + 16}M"), run()
    assert (limited.returncode, free.returncode) == (0, 0), limited.stderr
    assert limited.stdout == free.stdout


def whywait_analyze(trace, *options, largest_file=resource.RLIM_INFINITY):
    """Run the program where no file can be larger than this, as on a disk that is full."""
    return subprocess.run(
        [sys.executable, "-m", "whywait", "analyze", str(trace), *map(str, options)],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file)),
    )


@pytest.mark.skipif(not Path(IN_MEMORY).is_dir(), reason="needs a directory in memory")
def test_memory_is_no_place_for_what_does_not_fit_into_it(small):
    done = whywait_analyze(small, "--memory-limit", "1G", "--spill-dir", IN_MEMORY)
    assert done.returncode == 2
    assert "in memory, not on a disk" in done.stderr


def test_no_room_for_what_does_not_fit_into_memory(small, tmp_path):
    options = ["--memory-limit", "500M", "--spill-dir", tmp_path, "-o", tmp_path / "results"]
    done = whywait_analyze(small, *options, largest_file=2 * MIB)
    assert done.returncode == 2
    assert done.stderr == f"whywait: {tmp_path}: File too large\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_the_results(small, tmp_path):
    done = whywait_analyze(small, "-o", tmp_path / "results", largest_file=20_000)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(large, tmp_path):
    interrupt = "lambda *_: os.kill(os.getpid(), signal.SIGINT)"
    program = "import os, signal, sys; from whywait import cli; from whywait.commands import analyze; "
    # Shells ignore SIGINT in background jobs.
    program += "signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += f"analyze.Progress.__call__ = {interrupt}; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "analyze", str(large), "-o", str(tmp_path / "results")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


def test_an_event_file_that_goes_away_is_left_out(tmp_path):
    trace = generate(tmp_path, 4, 3)
    run = whywait.open(trace)
    (trace / "traces" / "2.evt").unlink()
    result = whywait.analyze(run)
    assert [warning["kind"] for warning in result.warnings if warning["kind"] == "unreadable"] == ["unreadable"]
    assert result.facts["locations"] == 4
    assert result.metrics["time"].total > 0


def test_a_trace_without_any_event_file_is_an_error(tmp_path):
    trace = generate(tmp_path, 4, 3)
    for file in (trace / "traces").glob("*.evt"):
        file.unlink()
    with pytest.raises(whywait.TraceError, match=r"no event file can be read: .*0\.evt"):
        whywait.analyze(trace)


# Prints the most memory that a command took, bytes.
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


@pytest.mark.parametrize(
    ("workload", "ranks", "iterations"),
    [("sor-p2p", 64, 1600), ("sor-gats", 64, 2000), ("contention", 64, 4000), ("srumma", 64, 3000)],
)
def test_the_estimate_is_near_what_an_analysis_takes(workload, ranks, iterations, tmp_path):
    _native.generate(workload, tmp_path / "trace", ranks=ranks, iterations=iterations, seed=1)
    # Each thread has shards in hand: with many of them an analysis takes more.
    options = ["-o", tmp_path / "results", "--quiet", "--threads", "2"]
    analyze = [sys.executable, "-m", "whywait", "analyze", tmp_path / "trace", *options]
    done = subprocess.run([sys.executable, "-c", PEAK, *analyze], check=True, capture_output=True, text=True)
    taken, estimate = int(done.stdout), whywait.open(tmp_path / "trace").info()["memory_estimate"]
    assert estimate == pytest.approx(taken, rel=0.2)
