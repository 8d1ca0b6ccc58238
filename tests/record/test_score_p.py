"""Programs of which there is an archive by Score-P, or by the recorder of tests/data, its equal: no difference."""

import os
import re
from pathlib import Path

import otf2
import pytest
from otf2.enums import CartPeriodicity, Paradigm

from . import compare
from .mpis import MPIS, compiled, record, run

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
CASES = Path(os.environ.get("WHYWAIT_SHARED", HERE.parents[2] / "shared")) / "cases"
OPTIONS = ("--groups", "all", "--model", "scorep7")

# Debian's MPIs, and those in environments of their own.
EACH_MPI = pytest.mark.parametrize(
    "mpi", [mpi for mpi in MPIS if not mpi.name.startswith("mpich-wheel")], ids=lambda mpi: mpi.name
)
# Ranks of each program.
RECORDED_BY_SCORE_P = {
    "mpi_modes": 4,
    "mpi_mprobe": 4,
    "mpi_persistent": 4,
    "mpi_misc4": 4,
    "mpi_self": 4,
    "mpi_io": 4,
    "mpi_nbc": 4,
    "rma_fence_known": 4,
    "rma_gats_known": 4,
    "rma_progress_known": 3,
    "silas_p2p": 4,
    "skew_base": 4,
    "hyb_worker_comm": 4,
}
# Trace of tests/data: program, ranks, argument, Open MPI's component for one-sided communication. Not rma_lock and
# mixed, which do as many operations as it takes, nor intercomm, which the official reader cannot read.
OF_TEST_DATA = {
    "stencil": ("stencil", 8, "", ""),
    "collectives": ("collectives", 4, "", ""),
    "p2p": ("p2p", 4, "", ""),
    "flood": ("flood", 2, "", ""),
    "rma_fence": ("rma_fence", 4, "", "rdma"),
    "rma_gats_rdma": ("rma_gats", 4, "", "rdma"),
    "rma_gats_pt2pt": ("rma_gats", 4, "", "pt2pt"),
    "rma_progress": ("rma_progress", 3, "", "pt2pt"),
    "sor_p2p": ("sor", 4, "p2p", ""),
    "sor_fence": ("sor", 4, "fence", "pt2pt"),
    "sor_gats": ("sor", 4, "gats", "pt2pt"),
    "sor_locks": ("sor", 4, "locks", "rdma"),
}


def differences_from_score_p(mpi, name, ranks, tmp_path):
    """Record a program, and return what differs from its recording by Score-P."""
    if not CASES.is_dir():
        pytest.skip("the programs that Score-P has recorded are not here (../shared/cases)")
    if not mpi.is_here:
        pytest.skip(f"{mpi.name} is not installed")
    source = (CASES / name / f"{name}.c").read_text()
    # The file that it writes goes into its directory.
    (tmp_path / f"{name}.c").write_text(re.sub(r'"/\S+/', '"', source))
    options = (f"-I{CASES / name}", "-lm", "-lpthread", "-fopenmp")
    program = compiled(mpi, tmp_path / f"{name}.c", tmp_path, *map(str, options))
    command = [*mpi.start(ranks), program]
    # As many threads as then: Intel MPI gives each rank its share of the cores.
    done = record(command, tmp_path, *OPTIONS, OMP_NUM_THREADS="2")
    if done.returncode and run(command, tmp_path).returncode:
        pytest.skip(f"{mpi.name} fails in {name}, recorded or not")
    assert done.returncode == 0, done.stderr
    return list(compare.differences(CASES / name / "archive/traces.otf2", tmp_path / "out/traces.otf2"))


@pytest.mark.parametrize("name", RECORDED_BY_SCORE_P)
@EACH_MPI
def test_the_records_are_those_of_score_p(mpi, name, tmp_path):
    if name == "mpi_misc4" and mpi.name.startswith("openmpi"):
        pytest.skip("Open MPI 4.1 and 5.0 have not all functions of MPI 4")
    assert differences_from_score_p(mpi, name, RECORDED_BY_SCORE_P[name], tmp_path) == []


@EACH_MPI
def test_threads_that_call_mpi_at_the_same_time_lose_nothing(mpi, tmp_path):
    """Score-P 7.1 loses such calls: of the second thread of each rank, it has recorded some."""
    found = differences_from_score_p(mpi, "hyb_multiple", 4, tmp_path)
    assert [difference for difference in found if ": +1 " not in difference] == []
    second_threads = {f"location {(1 << 32) + rank}" for rank in range(4)}
    assert {difference.split(":")[0] for difference in found} <= second_threads


@pytest.mark.parametrize("name", OF_TEST_DATA)
def test_the_records_are_those_of_the_test_data(name, tmp_path):
    program, ranks, argument, component = OF_TEST_DATA[name]
    mpi = MPIS[1]
    if not mpi.is_here:
        pytest.skip("Debian's Open MPI is not installed")
    options = (f"-I{DATA / 'recorder'}", HERE / "stub.c", "-lm")
    binary = compiled(mpi, DATA / "programs" / f"{program}.c", tmp_path, *map(str, options))
    parameters = ["--mca", "osc", component] if component else []
    command = [*mpi.start(ranks), *parameters, binary, *argument.split()]
    done = record(command, tmp_path, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert list(compare.differences(DATA / name / "traces.otf2", tmp_path / "out/traces.otf2")) == []


def test_differences_are_found():
    found = list(compare.differences(DATA / "p2p/traces.otf2", DATA / "collectives/traces.otf2"))
    assert any(line.startswith("location 0: visits: -") for line in found)
    assert any("location 1: requests: -" in line for line in found)


@EACH_MPI
def test_topologies_are_those_of_score_p(mpi, tmp_path):
    differences_from_score_p(mpi, "mpi_nbc", 4, tmp_path)
    recorded = topologies(tmp_path / "out/traces.otf2")
    assert recorded == topologies(CASES / "mpi_nbc/archive/traces.otf2")
    assert recorded == {"MPI_Cartesian_4": ([(4, True)], [(0, (0,)), (1, (1,)), (2, (2,)), (3, (3,))])}


def topologies(anchor):
    """Return the topologies of processes by name: sizes, periodicity, and the coordinates of each rank."""
    with otf2.reader.open(str(anchor)) as trace:
        definitions = trace.definitions
        return {
            topology.name: (
                [(axis.size, axis.cart_periodicity == CartPeriodicity.TRUE) for axis in topology.dimensions],
                sorted((c.rank, c.coordinates) for c in definitions.cart_coordinates if c.topology is topology),
            )
            for topology in definitions.cart_topologies
            if topology.communicator.group.paradigm == Paradigm.MPI
        }
