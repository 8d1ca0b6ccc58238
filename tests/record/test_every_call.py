"""A call of each function of MPI: the program does the same as without the recorder, and the trace has its records."""

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import whywait

from . import every_call
from .mpis import compiled, record, run

TABLE = tomllib.loads((Path(__file__).parents[2] / "rust/record/mpi.toml").read_text())["function"]
# Functions of these groups are all called, but for those that need what a test cannot have.
GROUPS = ("p2p", "coll", "cg", "rma", "io")
REASONS = {
    "MPI_Parrived": "within Psend_init's call",
    "MPI_Pready": "within Psend_init's call, as a range",
    "MPI_Pready_list": "within Psend_init's call, as a range",
    "MPI_Pready_range": "within Psend_init's call",
    "MPI_Precv_init": "within Psend_init's call",
    "MPI_Request_get_status_all": "MPI 4.1, in no MPI here",
    "MPI_Request_get_status_any": "MPI 4.1, in no MPI here",
    "MPI_Request_get_status_some": "MPI 4.1, in no MPI here",
    "MPI_Comm_idup_with_info": "as Comm_idup",
    "MPI_File_delete": "removes a file that nobody opened",
    "MPI_Win_attach": "of dynamic windows",
    "MPI_Win_detach": "of dynamic windows",
}


@pytest.fixture
def every(mpi, tmp_path):
    """The functions that are called, the archive, and their results without and with the recorder."""
    functions = every_call.declared(mpi.compiler) & every_call.CALLS.keys()
    if mpi.name.startswith("openmpi"):
        # So many operations on files one after the other hang in Open MPI 4.1 and 5.0 now and then, recorded or not.
        functions -= {row["name"] for row in TABLE if row["group"] == "io"}
    if mpi.name == "intel":
        # Intel MPI 2021.18 crashes in the MPI_Wait for these after so many other calls, recorded or not.
        functions -= {row["name"] for row in TABLE if row["class"] in {"rma_request", "atomic_request"}}
    source = tmp_path / "every.c"
    source.write_text(every_call.program(functions))
    program = compiled(mpi, source, tmp_path)
    plain = run([*mpi.start(2), program], tmp_path)
    if plain.returncode:
        pytest.skip(f"the program fails with {mpi.name} as it is: {plain.stdout[-200:]}{plain.stderr[-300:]}")
    expected = results(tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--groups", "all")
    assert done.returncode == 0, done.stderr
    return functions, tmp_path / "out", expected, results(tmp_path)


def results(directory):
    """Return what the ranks wrote, and remove it."""
    lines = []
    for path in sorted(directory.glob("results.*")):
        lines += path.read_text().splitlines()
        path.unlink()
    return lines


def test_the_program_does_the_same(every):
    functions, _, plain, recorded = every
    assert recorded == plain
    # In each rank a line for each function, but for four of which one rank sends and the other receives, and the sum.
    assert len(plain) == 2 * len(functions) - 4 + 2


def test_each_call_is_a_region(every):
    functions, archive, _, recorded = every
    expected = Counter(line.split(maxsplit=1)[1].partition("(")[0] for line in recorded if "(" in line)
    result = whywait.analyze(archive)
    visits = Counter()
    for path, count in zip(
        result.metrics["visits"].by_callpath()["callpath"].to_pylist(),
        result.metrics["visits"].by_callpath()["value"].to_pylist(),
        strict=True,
    ):
        visits[path[-1]] += int(count)
    # Pcontrol switches, and is no region.
    missing = {name: (count, visits[name]) for name, count in expected.items() if visits[name] < count}
    assert missing == {"MPI_Pcontrol": (2, 0)}
    assert len(functions) >= 150


def test_records_are_complete(every):
    """What begins ends: requests, collective operations, one-sided and file operations."""
    functions, archive, _, _ = every
    counts = Counter(whywait.open(archive).info(events=True)["events_by_type"])
    assert counts["Enter"] == counts["Leave"]
    assert counts["MpiIsend"] == counts["MpiIsendComplete"] > 20
    assert counts["MpiIrecvRequest"] == counts["MpiIrecv"] + counts["MpiRequestCancelled"] > 20
    assert counts["MpiSend"] + counts["MpiIsend"] == counts["MpiRecv"] + counts["MpiIrecv"]
    assert counts["MpiCollectiveBegin"] == counts["MpiCollectiveEnd"] > 2 * len(every_call.COLLECTIVE)
    assert counts["NonBlockingCollectiveRequest"] == counts["NonBlockingCollectiveComplete"]
    operations = counts["RmaPut"] + counts["RmaGet"] + counts["RmaAtomic"]
    rma = {row["name"] for row in TABLE if row["class"] in {"rma", "rma_request", "atomic", "atomic_request"}}
    assert operations == 2 * len(rma & functions) == counts["RmaOpCompleteRemote"]
    assert counts["RmaWinCreate"] == counts["RmaWinDestroy"]
    assert counts["RmaRequestLock"] == counts["RmaReleaseLock"]
    files = {row["name"] for row in TABLE if row["class"] in {"io", "iio", "io_begin", "io_end"}} & functions
    # Beginning and end have a call each in which the other one is made, too.
    assert counts["IoOperationBegin"] == counts["IoOperationComplete"] == 2 * len(files)
    assert counts["IoSeek"] == 2 * len({"MPI_File_seek", "MPI_File_seek_shared"} & functions)
    assert counts["IoCreateHandle"] == counts["IoDestroyHandle"]


def test_readers_take_it(every, tmp_path):
    archive = every[1]
    done = run([sys.executable, "-m", "whywait", "info", "--check", archive], tmp_path)
    assert done.returncode == 0, done.stdout
    assert "never completed" not in done.stdout
    printed = subprocess.run(["otf2-print", str(archive / "traces.otf2")], capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr


def test_no_function_is_forgotten():
    """Each function of the groups that make records is called, or there is a reason."""
    wanted = {row["name"] for row in TABLE if row["group"] in GROUPS and row["class"] != "file_plain"}
    assert wanted - every_call.CALLS.keys() == REASONS.keys() & wanted
    assert not every_call.CALLS.keys() & REASONS.keys()
    assert {row["name"] for row in TABLE} >= every_call.CALLS.keys()
