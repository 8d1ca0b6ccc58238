"""Statements of the documentation that no other test covers: each test finds its statement and checks it.

If what is stated changes, the test fails, and both have to be changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import whywait
from whywait import _native
from whywait.analysis.waiting import account
from whywait.hypotheses import Scale, Set

from tests.test_mpi import mpiexec
from tests.test_whatif import instances
from tests.tracedsl import trace_from_text

DOCS = Path(__file__).parents[1] / "docs"
DATA = Path(__file__).parent / "data"


def states(page: str, statement: str) -> None:
    """Check that a page has a statement, however its lines are broken."""
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert " ".join(statement.split()) in text, f"{page} no longer states: {statement}"


def section(page: str, title: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]


def test_all_processes_run_a_program_until_its_first_analysis(tmp_path):
    states("mpi.md", "What it does before its first analysis is done by all ranks.")
    program = section("mpi.md", "Who prints and writes").split("```python\n")[1].split("```")[0]
    program = program.replace("scorep_run/", str(DATA / "sor_gats")).replace('"results"', repr(str(tmp_path)))
    file = tmp_path / "program.py"
    file.write_text(f"open('before', 'a').write('x')\n{program.replace('0.3, 0.6', '0, 1')}")
    done = mpiexec(3, file, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "before").read_text() == "xxx"
    assert done.stdout == f"{whywait.analyze(DATA / 'sor_gats').metrics['mpi_latesender'].total}\n"
    assert (tmp_path / "transfers.parquet").is_file()


def test_advice_proposes_kernels(tmp_path):
    states("whatif.md", "Kernels of accelerators are proposed to be faster")
    _native.generate("comd-gpu", tmp_path, ranks=4, iterations=5, seed=1)
    result = whywait.analyze(tmp_path)
    advice = whywait.advise(result, top=100, rounds=0)
    # No kernel takes no time: that is a bound, and no advice.
    assert not any(one.option == "--scale 'force_kernel=0'" and not one.is_bound for one in advice)
    half = next(one for one in advice if one.option == "--scale 'force_kernel=0.5'")
    assert whywait.whatif(result, [Scale("force_kernel", 0.5)]).saved == half.saved > 0


TASKS = """
0: fork [0, 10]
0: !$omp parallel @a.c:1 [0, 10]
0: !$omp implicit barrier @a.c:3 [2, 10]
0: raw ThreadTaskSwitch(thread_team="team 0", creating_thread=0, generation_number=1) @3
0: !$omp task @a.c:5 [3, 4.5]
0: raw ThreadTaskComplete(thread_team="team 0", creating_thread=0, generation_number=1) @4.5
0.1: !$omp parallel @a.c:1 [0, 10]
0.1: !$omp implicit barrier @a.c:3 [7, 10]
"""


def test_barriers_with_tasks(tmp_path):
    states("causes.md", "Thread 0 waits for 7 - 2 - 1.5 = 3.5 s, and thread 1 is charged 3.5 s")
    states("causes.md", "With `--cost-model scalasca`, it is charged 5 s.")
    trace = trace_from_text(TASKS, tmp_path)
    result = whywait.analyze(trace)
    found = account(result.profile)
    assert found["waiting"] == found["known"] == pytest.approx(3.5)
    assert sum(costs_of(result)) == pytest.approx(3.5)
    assert path_parts(result) == result.metrics["critical_path"].total == pytest.approx(10)
    assert sum(costs_of(whywait.analyze(trace, cost_model="scalasca"))) == pytest.approx(5)


def costs_of(result: whywait.Result) -> list[float]:
    """Return the delay costs of all waiting, unattributed ones included."""
    rows = result.delay_costs().to_pylist()
    return [row["short_term"] + row["long_term"] for row in rows if row["class"] != "ompidle"]


def path_parts(result: whywait.Result) -> float:
    path = result.critical_path()
    return sum(end - begin for begin, end in zip(path["from"].to_pylist(), path["to"].to_pylist(), strict=True))


@pytest.mark.parametrize("name", ["stencil", "collectives", "mixed", "omp_nested", "rma_lock_sm"])
def test_costs_equal_the_waiting_that_has_any(name):
    states("causes.md", "Together, all these costs equal the waiting time, with one exception:")
    states("causes.md", "waits before MPI_Init have no costs.")
    result = whywait.analyze(DATA / name)
    waits = account(result.profile)["wait_states"]
    assert sum(costs_of(result)) == pytest.approx(sum(waits.values()), rel=1e-9)


@pytest.mark.parametrize(("leave", "parts"), [(5.3, 10), (3, 10)])
def test_the_critical_path_where_clocks_disagree(leave, parts, tmp_path):
    """The message is sent at 5, and received then, or at 3: 2 s before it was sent."""
    states("specification.md", "so parts never overlap, and the path is never longer than the run")
    trace = f"0: main [0, 6]\n1: main [0, 10]\n0: work [0, 5]\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, {leave}]"
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    assert result.facts["clock_violations_p2p"] == (leave < 5)
    assert path_parts(result) == result.metrics["critical_path"].total == pytest.approx(parts)


NONBLOCKING = """
*: main [0, 8]
0: MPI_Ibarrier [1, 1.1]
0: raw NonBlockingCollectiveRequest(request_id=1) @1.05
0: MPI_Wait [2, 5.3]
0: raw NonBlockingCollectiveComplete(collective_op="BARRIER", communicator="world", root=4294967295, size_sent=0, size_received=0, request_id=1) @5.2
1: MPI_Ibarrier [5, 5.1]
1: raw NonBlockingCollectiveRequest(request_id=1) @5.05
1: MPI_Wait [5.2, 5.4]
1: raw NonBlockingCollectiveComplete(collective_op="BARRIER", communicator="world", root=4294967295, size_sent=0, size_received=0, request_id=1) @5.3
"""  # noqa: E501


@pytest.mark.parametrize("is_recorded", [True, False])
def test_nonblocking_collective_operations_are_not_counted(is_recorded, tmp_path):
    states("specification.md", "have time and visits, but are not counted")
    states(
        "specification.md", "they count as requests in flight (`mpi_requests`), and the what-if simulation uses them"
    )
    lines = [line for line in NONBLOCKING.splitlines() if is_recorded or " raw " not in line]
    result = whywait.analyze(trace_from_text("\n".join(lines), tmp_path))
    assert result.metrics["time"].total == pytest.approx(16)
    assert result.metrics["visits"].total == 8
    for metric in ("syncs_coll", "comms_cxch", "comms_csrc", "comms_cdst"):
        assert result.metrics[metric].total == 0
    assert result.metrics["waiting"].total == pytest.approx(3 * is_recorded)
    assert result.warnings == []
    # Rank 1 comes 4 s earlier; without records, the call that completes the operation keeps its length.
    times = instances(whywait.whatif(result, [Set("main~0@1", 1.0)]))
    assert times["0", "MPI_Wait"] == [pytest.approx((2, 2.3 if is_recorded else 5.3))]
