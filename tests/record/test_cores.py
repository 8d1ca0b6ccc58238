"""The cores that processes may use go into the archive, and are said first if there are too few."""

import os
import shutil

import pytest
import whywait

from .mpis import MPIS, compiled, record

pytestmark = [
    pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset is not installed"),
    pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name, indirect=True),
]

PROGRAM = """
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int k = 0; k < 60; k++) {
        int mine = k, all;
        volatile double x = 0;
        for (int i = 0; i < 500000; i++) x += i;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""


@pytest.fixture
def program(mpi, tmp_path):
    """All ranks compute alike, so whatever is lost is due to the cores."""
    (tmp_path / "alike.c").write_text(PROGRAM)
    return compiled(mpi, tmp_path / "alike.c", tmp_path)


def test_more_ranks_than_cores_are_said_first(mpi, program, tmp_path):
    core = min(os.sched_getaffinity(0))
    done = record([*mpi.start(4), "taskset", "-c", core, program], tmp_path)
    assert done.returncode == 0, done.stderr
    result = whywait.analyze(tmp_path / "out")
    online, host = os.sysconf("SC_NPROCESSORS_ONLN"), os.uname().nodename
    assert result.facts["cores"] == f"4 ranks with 4 threads may use 1 of {online} cores on {host}"
    found = result.findings()
    assert "4 ranks share 1 core. " in found.verdict()
    [one] = [one for one in found if one.rule == "few_cores"]
    assert one.sentence.startswith("4 ranks share 1 core. ")
    otf2 = pytest.importorskip("otf2")
    with otf2.reader.open(str(tmp_path / "out" / "traces.otf2")) as trace:
        properties = trace.definitions.location_group_properties
        assert {(one.name, one.value) for one in properties} == {("affinity", str(core))}
        nodes = trace.definitions.system_tree_node_properties
        assert [(one.system_tree_node.name, one.name, one.value) for one in nodes] == [(host, "cores", str(online))]


def test_a_core_for_each_rank_is_enough(mpi, program, tmp_path):
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("there is only one core")
    done = record([*mpi.start(2), "taskset", "-c", f"{cores[0]},{cores[1]}", program], tmp_path)
    assert done.returncode == 0, done.stderr
    result = whywait.analyze(tmp_path / "out")
    assert result.facts["cores"].startswith("2 ranks with 2 threads may use 2 of ")
    assert not any(finding.evidence.get("shared") for finding in result.findings())
