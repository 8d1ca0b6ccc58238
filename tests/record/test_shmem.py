"""OpenSHMEM: recorded, finished and analyzed, with waits of known length."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import whywait
from whywait._record import fitted, libmpi
from whywait._record.elf import Elf
from whywait.bench.measures import by

from .mpis import OPEN_MPI, PROGRAMS, on_schedule, record, run

# Its hooks into the memory of the process crash some programs of OpenSHMEM when they exit, recorded or not.
START = ("oshrun", *OPEN_MPI, "--mca", "memory", "^patcher", "-n")
ROOT = Path(__file__).resolve().parents[2]
# The shortest delay of shmem.c, in seconds.
U = 0.02

# In which metric a case waits, and in which call.
COLLECTIVE = {
    "barrier_late": ("shmem_barrier_wait", "shmem_barrier_all"),
    "barrier_set": ("shmem_barrier_wait", "shmem_barrier"),
    "broadcast_late": ("shmem_latebroadcast", "shmem_broadcast64"),
    "sum_late": ("shmem_wait_nxn", "shmem_long_sum_to_all"),
    "allocation_late": ("shmem_rma_wait_at_create", "shmem_calloc"),
}
# Who waits for a signal, or for a lock.
SINGLE = {
    "signal_put": (0, "shmem_rma_wait_until", "shmem_long_wait_until"),
    "signal_atomic": (2, "shmem_rma_wait_until", "shmem_long_wait_until"),
    "signal_nbi": (1, "shmem_rma_wait_until", "shmem_long_wait_until"),
    "lock_late": (0, "shmem_rma_sync_lock_competition", "shmem_set_lock"),
}


def compiled(source, directory):
    if shutil.which("oshcc") is None or shutil.which("oshrun") is None:
        pytest.skip("Open MPI's OpenSHMEM is not installed (oshcc)")
    program = directory / Path(source).stem
    command = ["oshcc", "-g", "-O1", "-w", str(PROGRAMS / source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled("shmem.c", tmp_path_factory.mktemp("shmem"))


@pytest.fixture(scope="module")
def recorded(program):
    done = record([*START, "3", program], program.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout, program.parent / "out"


def values(output):
    return sorted(line for line in output.splitlines() if line.startswith("values"))


def test_the_program_computes_the_same(program, recorded):
    """Also where values travel in registers for floating-point numbers."""
    plain = run([*START, "3", program], program.parent)
    assert plain.returncode == 0, plain.stderr
    assert values(recorded[0]) == values(plain.stdout)
    assert len(values(plain.stdout)) == 3


def test_waits_are_those_that_the_program_measured(program, tmp_path):
    def check():
        done = record([*START, "3", program], tmp_path, "--force")
        assert done.returncode == 0, done.stderr
        check_waits(done.stdout, whywait.analyze(tmp_path / "out"))

    # A PE that loses its core between its own clock and the call waits for less than it measured.
    on_schedule(check)


def check_waits(printed, result):
    marks = re.findall(r"mark (\d) (\w+) (\S+)", printed)
    times = {(case, int(pe)): float(time) for pe, case, time in marks}
    assert {case for case, _ in times} == {*COLLECTIVE, *SINGLE}
    for case, (metric, call) in COLLECTIVE.items():
        pes = [pe for name, pe in times if name == case]
        late, latest = max((times[case, pe], pe) for pe in pes)[::-1]
        assert all(latest - times[case, pe] > U for pe in pes if pe != late)
        for pe in pes:
            check_wait(result, metric, (case, call), pe, latest - times[case, pe])
    for case, (pe, metric, call) in SINGLE.items():
        other = next(time for (name, of), time in times.items() if name == case and of != pe)
        assert other - times[case, pe] > U
        check_wait(result, metric, (case, call), pe, other - times[case, pe])


def check_wait(result, metric, path, pe, expected):
    rows = (row for row in result.severities(metric).to_pylist() if tuple(row["callpath"][-2:]) == path)
    waited = sum(row["value"] for row in rows if row["rank"] == pe)
    assert waited == pytest.approx(expected, rel=0.05, abs=0.002), (metric, path, pe)


def test_the_archive_is_valid_for_other_readers(recorded):
    valid = run([sys.executable, "-m", "whywait", "info", "--check", recorded[1]], recorded[1].parent)
    assert valid.returncode == 0, valid.stdout
    if shutil.which("otf2-print") is None:
        pytest.skip("otf2-print is not installed")
    text = subprocess.run(
        ["otf2-print", recorded[1] / "traces.otf2"], capture_output=True, text=True, check=True
    ).stdout
    count = {name: text.count(f"\n{name} ") for name in ("RMA_PUT", "RMA_GET", "RMA_ATOMIC", "RMA_ACQUIRE_LOCK")}
    # signal_put, signal_nbi, and three of each PE; the values that they print.
    assert count == {"RMA_PUT": 11, "RMA_GET": 9, "RMA_ATOMIC": 13, "RMA_ACQUIRE_LOCK": 3}
    # Open MPI gives a lock once more to the one that has it.
    assert (text.count("RMA_TRY_LOCK"), text.count("RMA_REQUEST_LOCK")) == (2, 1)
    assert 'Window: "Active set 0:1:2"' in text


def test_programs_of_mpi_and_openshmem_have_both(tmp_path):
    program = compiled("shmem_and_mpi.c", tmp_path)
    done = record([*START, "2", program], tmp_path)
    assert done.returncode == 0, done.stderr
    result = whywait.analyze(tmp_path / "out")
    visits = {name: count for (name,), count in by(result, "visits", "callpath").items()}
    assert visits["MPI_Allreduce"] == visits["shmem_barrier_all"] == visits["shmem_finalize"] == 2
    assert "ended" not in done.stderr


def test_an_old_program_ends_without_finalizing(tmp_path):
    """What the library calls then is no part of the program."""
    program = compiled("shmem_old.c", tmp_path)
    done = record([*START, "2", program], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ended" not in done.stderr
    visits = {name: count for (name,), count in by(whywait.analyze(tmp_path / "out"), "visits", "callpath").items()}
    assert visits["start_pes"] == visits["shmem_barrier_all"] == 2
    assert not any(name.startswith("MPI_") for name in visits)


def test_other_programs_keep_their_own_functions_of_such_names(program):
    """Not all that is called shmem_init is OpenSHMEM's."""
    libraries = libmpi.libraries_of([str(program)])
    assert {path.name.partition(".")[0] for path in libraries} == {"libmpi", "liboshmem"}
    names = {name for name in Elf(fitted.recorder([], libraries)).exports() if "shm" in name}
    assert {"shmem_init", "shmem_long_p", "shmem_ctx_double_g"} <= names <= libmpi.exports(libraries)
    assert not any("shm" in name for name in Elf(fitted.recorder([], libraries[:1])).exports())
    assert not any("shm" in name for name in Elf(fitted.recorder([])).exports())


def test_the_table_has_all_functions_that_move_data_or_synchronize(program):
    """Of Open MPI, but for extensions, queries of versions, and operations on caches of old machines."""
    libraries = libmpi.libraries_of([str(program)])
    here = {
        name
        for name in libmpi.exports(libraries)
        if re.match(r"shmem_|start_pes$|sh(mem)?(alloc|align|realloc|free)$", name)
    }
    others = r"cache|udcflush|info|query|_ds_|lock_(init|final)|_(api|internal)_|_$"
    left = {name for name in here - Elf(fitted.LIBRARY).exports() if not re.search(others, name)}
    assert left == set()
    table = tomllib.loads((ROOT / "rust/record/shmem.toml").read_text())
    assert len({entry["name"] for entry in table["function"]}) == len(table["function"])
