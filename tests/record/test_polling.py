"""Programs that ask again and again whether something has come: that is waiting, and few slots hold many such calls."""

import os
import sys
from pathlib import Path

import pytest
import whywait

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record, run
from .test_shmem import START
from .test_shmem import compiled as compiled_shmem

SHARED = os.environ.get("WHYWAIT_SHARED", "")
# The delay of polling.c, in seconds.
U = 0.04

# How often rank 0 waits for U in a case, in which call, and which wait state that is.
CASES = {
    "test": (1, "MPI_Test (polling)", "mpi_latesender"),
    "in_turns": (3, "MPI_Test (polling)", "mpi_latesender"),
    "testany": (2, "MPI_Testany (polling)", "mpi_latesender"),
    "testall": (2, "MPI_Testall (polling)", "mpi_latesender"),
    "testsome": (2, "MPI_Testsome (polling)", "mpi_latesender"),
    "get_status": (1, "MPI_Request_get_status (polling)", "mpi_latesender"),
    "iprobe": (1, "MPI_Iprobe (polling)", "mpi_probe_latesender"),
    "improbe": (1, "MPI_Improbe (polling)", "mpi_probe_latesender"),
    "collective": (1, "MPI_Test (polling)", "mpi_nbc_barrier_wait"),
    "exposure": (1, "MPI_Win_test (polling)", "mpi_rma_early_wait"),
    "sleeping": (1, "MPI_Test (polling)", "mpi_latesender"),
}


@pytest.fixture(params=MPIS[:2], ids=lambda mpi: mpi.name)
def mpi(request):
    if not request.param.is_here:
        pytest.skip(f"{request.param.name} is not installed")
    return request.param


@pytest.fixture
def program(mpi, tmp_path):
    return compiled(mpi, PROGRAMS / "polling.c", tmp_path)


def waits(directory):
    """Return the waits of rank 0 for rank 1 by case: kind, call, cause and length."""
    found = {}
    for row in whywait.analyze(directory).wait_states(parts=False).to_pylist():
        case = row["callpath"][-2]
        if row["rank"] == 0 and case in {*CASES, "computing", "in_vain"}:
            found.setdefault(case, []).append(row)
    return found


def test_polling_is_waiting(mpi, program, tmp_path):
    def check():
        done = record([*mpi.start(2), program], tmp_path, "--force")
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        found = waits(tmp_path / "out")
        assert set(found) >= set(CASES), found
        for case, (times, call, kind) in CASES.items():
            rows = [row for row in found[case] if row["callpath"][-1] == call]
            assert {row["kind"] for row in rows} == {kind}, (case, found[case])
            assert {row["cause_rank"] for row in rows} == {1}, case
            # A busy machine delays either rank. The first millisecond of sleep is not known to be one.
            assert 0.85 * times * U < sum(row["waiting"] for row in rows) < 1.5 * times * U, case
        # Rank 0 computes for a millisecond between its tests.
        assert sum(row["waiting"] for row in found.get("computing", [])) < 0.002
        assert all(row["callpath"][-1] == "MPI_Recv" for row in found.get("in_vain", []))

    on_schedule(check)


@pytest.mark.parametrize("mpi", MPIS[:1], indirect=True, ids=lambda mpi: mpi.name)
def test_few_slots_hold_many_tests(mpi, program, tmp_path):
    sizes, tests = [], []
    for output, options in (("folded", ()), ("whole", ("--keep-tests",))):
        done = record([*mpi.start(2), program, "test"], tmp_path, "--keep-spool", *options, output=output)
        assert done.returncode == 0, done.stderr
        spool = next((tmp_path / output / ".spool").glob("0.0.wws")).read_bytes()
        sizes.append(len(spool.rstrip(b"\0")))
        info = whywait.open(tmp_path / output).info(events=True)
        tests.append((info.get("polling"), whywait.analyze(tmp_path / output)))
    assert sizes[0] < 8192
    # They come after 20 microseconds or less, on a busy machine too.
    assert sizes[1] > 64 * U / 20e-6
    said, result = tests[0]
    assert "tests in 1 run, each a call such as MPI_Test (polling)" in said
    visits = {path[-1]: count for path, count in visited(result)}
    assert visits["MPI_Test (polling)"] == 1
    assert "MPI_Test" not in visits
    said, result = tests[1]
    assert said is None
    assert {path[-1]: count for path, count in visited(result)}["MPI_Test"] > U / 20e-6
    valid = run([sys.executable, "-m", "whywait", "info", "--check", tmp_path / "folded"], tmp_path)
    assert valid.returncode == 0, valid.stdout


def visited(result):
    table = result.metrics["visits"].by_callpath()
    return zip(table["callpath"].to_pylist(), table["value"].to_pylist(), strict=True)


@pytest.mark.parametrize("mpi", MPIS[:1], indirect=True, ids=lambda mpi: mpi.name)
def test_counters_of_tests_that_were_folded(mpi, program, tmp_path):
    done = record([*mpi.start(2), program, "test"], tmp_path, "--counters", "rusage", "--keep-spool")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out/.spool/0.0.wws").read_bytes().rstrip(b"\0")) < 16384
    result = whywait.analyze(tmp_path / "out")
    rows = result.wait_states(counters=True).to_pylist()
    used = [row["counter:ru_utime"] + row["counter:ru_stime"] for row in rows if row["path"].endswith("(polling)")]
    # In seconds. Another process may have the core, but not all the time.
    assert len(used) == 1
    assert 0 < used[0] < 1.5 * U


@pytest.mark.skipif(not Path(SHARED, "field4").is_dir(), reason="the cases are not here")
def test_a_program_that_polls_for_half_of_its_time(mpi, tmp_path):
    program = compiled(mpi, Path(SHARED, "field4/poll/poll.c"), tmp_path)

    def check():
        assert record([*mpi.start(2), program], tmp_path, "--force").returncode == 0
        result = whywait.analyze(tmp_path / "out")
        rows = [row for row in result.wait_states(parts=False).to_pylist() if row["rank"] == 0]
        late = [row for row in rows if row["kind"] == "mpi_latesender"]
        assert sum(row["waiting"] for row in late) == pytest.approx(1.5, rel=0.05)
        assert len(late) == 5
        shown = run(
            [sys.executable, "-m", "whywait", "analyze", tmp_path / "out", "-o", tmp_path / "results"], tmp_path
        )
        assert "Little is lost" not in shown.stdout, shown.stdout

    on_schedule(check)


def test_shmem_programs_wait_by_tests(tmp_path):
    program = compiled_shmem("shmem_polling.c", tmp_path)

    def check():
        done = record([*START, "2", program], tmp_path, "--force")
        assert done.returncode == 0, done.stderr
        rows = whywait.analyze(tmp_path / "out").wait_states(parts=False).to_pylist()
        found = [row for row in rows if row["callpath"][-1] == "shmem_int_test (polling)"]
        assert [(row["kind"], row["rank"], row["cause_rank"]) for row in found] == [("shmem_rma_wait_until", 0, 1)]
        assert found[0]["waiting"] == pytest.approx(U, rel=0.05, abs=0.002)

    on_schedule(check)
