"""Processes that others start or connect to, each with an MPI_COMM_WORLD of its own: one recording of all."""

import shutil
import sys
import textwrap

import pytest
import whywait

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record, run

OPENMPI = next(mpi for mpi in MPIS if mpi.name == "openmpi")
# Debian's MPICH can neither start processes nor connect to any.
WHEEL = next(mpi for mpi in MPIS if mpi.name == "mpich-wheel")
# The delay of worlds.c, in seconds.
U = 0.3


def program(mpi, directory):
    if not mpi.is_here:
        pytest.skip(f"{mpi.name} is not installed ({mpi.compiler})")
    return compiled(mpi, PROGRAMS / "worlds.c", directory)


def script(directory, text):
    path = directory / "both.sh"
    path.write_text(textwrap.dedent(text))
    return ["sh", path]


def waits(directory, kind):
    rows = whywait.analyze(directory).wait_states(parts=False).to_pylist()
    return [row for row in rows if row["kind"] == kind and row["waiting"] > U / 2]


def check(directory, worlds):
    """Check that ranks of both worlds wait for each other: for a message, and in what became of their communicator."""
    info = whywait.open(directory / "out").info()
    size = worlds * 2
    assert (info["processes"], info["worlds"]) == (size, f"ranks 0 to {worlds - 1}, {worlds} to {size - 1}")
    assert [path.name for path in directory.glob("out*")] == ["out"]
    (late,) = waits(directory / "out", "mpi_latesender")
    assert (late["rank"], late["cause_rank"], late["callpath"][-1]) == (0, worlds, "MPI_Wait")
    assert U * 0.9 < late["waiting"] < U * 1.5
    barriers = waits(directory / "out", "mpi_barrier_wait")
    assert sorted(row["rank"] for row in barriers) == list(range(size - 1))
    assert {row["cause_rank"] for row in barriers} == {size - 1}
    valid = run([sys.executable, "-m", "whywait", "info", "--check", directory / "out"], directory)
    assert valid.returncode == 0, valid.stdout


@pytest.mark.parametrize("mpi", [OPENMPI, WHEEL], ids=lambda mpi: mpi.name)
def test_processes_that_were_spawned_are_part_of_the_run(mpi, tmp_path):
    path = program(mpi, tmp_path)

    def once():
        done = record([*mpi.start(2), path, "spawn"], tmp_path, "--force")
        assert (done.returncode, done.stdout) == (0, "4 ranks, 42, 2\n"), done.stderr
        check(tmp_path, 2)

    on_schedule(once)


def test_programs_that_connect_are_one_run(tmp_path):
    if shutil.which("ompi-server") is None:
        pytest.skip("ompi-server is not installed")
    path = program(OPENMPI, tmp_path)
    start = " ".join([OPENMPI.launcher, "--ompi-server", "file:server", *OPENMPI.options, "-n 2", str(path)])
    command = script(
        tmp_path,
        f"""
        rm -f port server
        ompi-server --no-daemonize -r server >/dev/null 2>&1 &
        server=$!
        while [ ! -s server ]; do sleep 0.1; done
        {start} accept &
        first=$!
        while [ ! -s port ]; do sleep 0.1; done
        {start} connect
        wait $first
        kill $server
        """,
    )

    def once():
        done = record(command, tmp_path, "--force")
        assert "4 ranks, 42, 2\n" in done.stdout, done.stderr
        check(tmp_path, 2)

    on_schedule(once)


def test_programs_that_join_by_a_socket_are_one_run(tmp_path):
    path = program(WHEEL, tmp_path)
    start = f"{WHEEL.launcher} -n 1 {path}"
    # Worlds are numbered as their processes come, so the second starts when the first is there.
    command = script(
        tmp_path,
        f"""
        rm -f socket
        {start} wait &
        first=$!
        while [ ! -e socket ]; do sleep 0.1; done
        {start} join
        wait $first
        """,
    )

    def once():
        done = record(command, tmp_path, "--force")
        assert (done.returncode, done.stdout) == (0, "2 ranks, 42, 0\n"), done.stderr
        check(tmp_path, 1)

    on_schedule(once)


def test_time_with_processes_that_were_not_recorded_is_unknown(tmp_path):
    """It is neither a wait nor what a transfer needs, and the warning says how long it is."""
    path = program(OPENMPI, tmp_path)
    done = record([*OPENMPI.start(2), path, "unrecorded"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "with processes of another MPI_COMM_WORLD, which were not recorded" in done.stderr
    result = whywait.analyze(tmp_path / "out")
    account = {row["row"]: row["time"] for row in result.account().to_pylist()}
    # Rank 0 for the message, and both in the barrier.
    assert account["unknown"] > 2.5 * U, account
    assert sum(time for row, time in account.items() if row.startswith(("transfer", "wait"))) < U
    assert not waits(tmp_path / "out", "mpi_latesender")


def test_a_second_command_is_a_run_of_its_own(tmp_path):
    path = program(OPENMPI, tmp_path)
    ring = compiled(OPENMPI, PROGRAMS / "ring.c", tmp_path)
    start = " ".join([OPENMPI.launcher, *OPENMPI.options, "-n 2"])
    done = record(script(tmp_path, f"{start} {path} spawn && {start} {ring}"), tmp_path)
    assert done.returncode == 0, done.stderr
    # The spawned world has become part of the first; its number stays free.
    found = sorted(path.name for path in tmp_path.glob("out*"))
    assert found == ["out", "out-3"]
    assert [whywait.open(tmp_path / name).info()["processes"] for name in found] == [4, 2]
