"""ARMCI: recorded by preloading or by linking, and analyzed, with waits of known length."""

import re
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest
import whywait
from whywait._record import linked
from whywait._record.elf import Elf
from whywait.bench.measures import by

from .mpis import PROGRAMS, built, on_schedule, record, run

# The unit of armci.c, in seconds.
U = 0.05
RANKS = 3
PROGRESS = "armci_rma_{}_wait_for_progress"
# The case, the wait, the call, its process and the cause.
WAITS = [
    ("get", PROGRESS.format("comm"), "ARMCI_Get", 0, 1),
    ("put", PROGRESS.format("comm"), "ARMCI_PutS", 0, 1),
    ("accumulate", PROGRESS.format("comm"), "ARMCI_AccV", 0, 1),
    ("counter", PROGRESS.format("comm"), "ARMCI_Rmw", 0, 1),
    ("fence", PROGRESS.format("sync"), "ARMCI_Fence", 0, 1),
    ("nonblocking", PROGRESS.format("sync"), "ARMCI_Wait", 0, 1),
    ("locked", "armci_rma_sync_lock_competition", "ARMCI_Lock", 2, 1),
    ("message", "mpi_wait_nxn", "MPI_Allreduce", 0, 2),
]


def program(mpi, directory, *options, is_linked):
    """Compile the program with ARMCI beside it, or inside."""
    library = built(mpi.compiler, "armci_library.c", ("-fPIC", "-c", *options), None)
    path = directory / f"armci.{mpi.name}"
    if is_linked:
        archive = directory / "libarmci.a"
        subprocess.run(["ar", "rcs", archive, library], check=True)
        flags = linked.flags("armci").split()
        command = [mpi.compiler, "-g", "-O1", PROGRAMS / "armci.c", "-o", path, *flags, archive]
    else:
        shared = directory / "libarmci.so"
        subprocess.run([mpi.compiler, "-shared", "-Wl,-soname,libarmci.so", library, "-o", shared], check=True)
        command = [mpi.compiler, "-g", "-O1", PROGRAMS / "armci.c", "-o", path, shared, f"-Wl,-rpath,{directory}"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=120)
    return path


@pytest.fixture(params=[False, True], ids=["beside the program", "inside"])
def is_linked(request):
    if request.param and shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    return request.param


def test_waits_have_the_lengths_of_the_program(mpi, tmp_path, is_linked):
    path = program(mpi, tmp_path, is_linked=is_linked)

    def check():
        done = record([*mpi.start(RANKS), path], tmp_path, "--force")
        assert done.returncode == 0, done.stderr
        result = whywait.analyze(tmp_path / "out")
        assert not [one for one in result.warnings if "clock" not in one["kind"]]
        table = pa.table(result.wait_states()).to_pylist()
        marks = re.findall(r"mark (\d) (\w+) (\S+)", done.stdout)
        times = {(case, int(rank)): float(time) for rank, case, time in marks}
        for case, kind, call, rank, cause in WAITS:
            expected = times[case, cause] - times[case, rank]
            assert expected > U / 2, case
            found = [row for row in table if row["kind"] == kind and row["callpath"][-2:] == [case, call]]
            own = [row["waiting"] for row in found if row["rank"] == rank and row["cause_rank"] == cause]
            # A process that loses its core between its own clock and the call waits for less than it measured.
            assert max(own, default=0) == pytest.approx(expected, rel=0.05, abs=0.002), case

    on_schedule(check)
    done = run([*mpi.start(RANKS), path], tmp_path)
    values = sorted(line for line in done.stdout.splitlines() if line.startswith("values"))
    assert values == ["values 0 3 2.5", "values 1 3 0", "values 2 3 0"]


def test_calls_have_the_records_of_armci(mpi, tmp_path):
    """Calls of MPI below them have none, and no regions: a library that polls would make millions."""
    path = program(mpi, tmp_path, is_linked=False)
    done = record([*mpi.start(RANKS), path], tmp_path)
    assert done.returncode == 0, done.stderr
    valid = run([sys.executable, "-m", "whywait", "validate", tmp_path / "out"], tmp_path)
    assert valid.returncode == 0, valid.stdout
    result = whywait.analyze(tmp_path / "out")
    visits = {name: count for (name,), count in by(result, "visits", "callpath").items()}
    assert {name for name in visits if name.startswith("MPI_")} == {"MPI_Init", "MPI_Allreduce", "MPI_Finalize"}
    # Six of each process without a fence, and six with one.
    assert visits["ARMCI_Barrier"] == 2 * 6 * RANKS
    counts = whywait.open(tmp_path / "out").info(events=True)["events_by_type"]
    assert [counts[f"Rma{name}"] for name in ("Put", "Get", "Atomic")] == [2, 3, 2]
    assert [counts[f"RmaOpComplete{name}"] for name in ("Blocking", "NonBlocking", "Remote")] == [5, 2, 3]
    # 1,000 and 16 + 32; 8 x 10 x 3 and one double.
    assert result.metrics["armci_bytes_get"].total == 1048
    assert result.metrics["armci_bytes_put"].total == 248


@pytest.mark.parametrize(
    ("options", "completed"), [((), ["ARMCI_Wait", "ARMCI_Wait"]), (("-DWINDOWS",), ["ARMCI_Wait"])]
)
def test_a_wait_completes_one_operation_or_all_on_windows(mpi, tmp_path, options, completed):
    """Windows of MPI are flushed for all that is under way."""
    otf2 = pytest.importorskip("otf2")
    path = program(mpi, tmp_path, *options, is_linked=False)
    done = record([*mpi.start(RANKS), path], tmp_path)
    assert done.returncode == 0, done.stderr
    calls, stack = [], []
    with otf2.reader.open(str(tmp_path / "out" / "traces.otf2")) as trace:
        for location, event in trace.events:
            if location.group.name != "MPI Rank 0":
                continue
            if isinstance(event, otf2.events.Enter):
                stack.append(event.region.name)
            elif isinstance(event, otf2.events.Leave):
                stack.pop()
            elif isinstance(event, otf2.events.RmaOpCompleteNonBlocking):
                calls.append((stack[-1], event.time, event.matching_id))
    assert [name for name, *_ in calls] == ["ARMCI_Wait"] * 2
    assert len({time for _, time, _ in calls}) == len(completed)
    matching = [number for *_, number in calls]
    # The second one was waited for first.
    assert (matching == sorted(matching)) == bool(options)


def test_without_the_group_calls_of_mpi_are_recorded(mpi, tmp_path):
    path = program(mpi, tmp_path, is_linked=False)
    done = record([*mpi.start(RANKS), path], tmp_path, "--groups=-armci")
    assert done.returncode == 0, done.stderr
    visits = {name for (name,) in by(whywait.analyze(tmp_path / "out"), "visits", "callpath")}
    assert "MPI_Ibarrier" in visits
    assert not any(name.startswith("ARMCI_") for name in visits)


def test_a_program_with_armci_inside_is_told_to_link(mpi, tmp_path):
    path = program(mpi, tmp_path, is_linked=True)
    assert not linked.hides_armci(path)
    plain = tmp_path / "plain"
    command = [mpi.compiler, PROGRAMS / "armci.c", "-o", plain, tmp_path / "libarmci.a"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=120)
    done = record([*mpi.start(RANKS), plain], tmp_path)
    assert "whywait record --link-flags armci" in done.stderr
    assert "--link-flags" not in record([*mpi.start(RANKS), path], tmp_path, "--force").stderr
    if shutil.which("strip"):
        subprocess.run(["strip", plain], check=True)
        assert not Elf(plain).has_symbol("PARMCI_Put")
