"""Would a progress thread pay off? Bounds on the savings against the cores that it would take."""

from pathlib import Path

import pyarrow as pa
import pytest
import whywait
from whywait import _native
from whywait.analysis.progress import progress_thread
from whywait.report.terminal import progress_sentence

from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"

# Thesis, figure 3.13b and c: process 2 waits 4 to 5 s for two targets, of 3 x 10 s.
TWO_TARGETS = """
win w on world
*: main [0, 10]
2: MPI_Win_lock_all(w) [0.5, 0.6]
2: MPI_Put(0, win=w) [1, 1.1]
2: MPI_Put(1, win=w) [1.2, 1.3]
2: MPI_Win_flush_all(w) [2, 8.1]
2: MPI_Win_unlock_all(w) [9, 9.1]
0: MPI_Probe [4, 5]
1: MPI_Probe [7, 7.5]
"""


def test_bounds_are_those_of_the_two_heuristics(tmp_path):
    found = progress_thread(whywait.analyze(trace_from_text(TWO_TARGETS, tmp_path)))
    assert (found["lower"], found["upper"]) == (pytest.approx(4 / 30), pytest.approx(5 / 30))
    # Three processes on a node: a fourth core is more than can be gained.
    assert (found["processes"], found["node"], found["verdict_node"]) == (3, 0.25, "no")
    assert found["verdict_process"] == "no"


def test_without_waits_for_progress_nothing_is_said():
    result = whywait.analyze(DATA / "stencil")
    assert progress_thread(result) is None
    assert result.summary()["focus"]["progress"] is None


def test_a_product_gains_from_a_thread_of_a_node_but_not_of_a_process(tmp_path):
    """As decided in section 5.4 of the thesis, where threads could not share a core."""
    _native.generate("srumma-nb", tmp_path, ranks=64, iterations=1, seed=1)
    result = whywait.analyze(tmp_path, causes=False)
    found = result.summary()["focus"]["progress"]
    assert 0.2 < found["lower"] <= found["upper"] < 0.5
    assert (found["processes"], found["verdict_node"], found["verdict_process"]) == (64, "yes", "no")
    text = progress_sentence(found)
    assert "on its own core per node (64 processes; 1.5% of the cores) can pay off; one per process" in text
    assert text.endswith("one per process (50.0% of the cores) would not pay off.")


@pytest.mark.parametrize(
    ("lower", "upper", "node", "process"),
    [(0.01, 0.02, "no", "no"), (0.1, 0.3, "open", "no"), (0.3, 0.6, "yes", "open"), (0.6, 0.7, "yes", "yes")],
)
def test_verdicts_compare_the_bounds_with_the_cores(lower, upper, node, process):
    from whywait.analysis.progress import _verdict

    assert (_verdict(lower, upper, 0.2), _verdict(lower, upper, 0.5)) == (node, process)


@pytest.mark.parametrize(
    ("nodes", "processes"), [([0, 0, 1, 1], 2), ([0, 0, 1], None), ([0, 1, 2], None), ([0, 0, 0], 3)]
)
def test_processes_of_a_node_are_counted_where_all_have_as_many(nodes, processes):
    from whywait.analysis.progress import _processes_of_a_node

    ranks = [*range(len(nodes)), -1]
    system = pa.table({"kind": ["group"] * len(ranks), "rank": ranks, "parent": [*nodes, 7]})
    assert _processes_of_a_node(system) == processes


def test_nodes_that_differ_are_not_counted():
    found = {"lower": 0.3, "upper": 0.3, "processes": None, "node": None, "process": 0.5}
    text = progress_sentence({**found, "verdict_node": None, "verdict_process": "no"})
    assert text == (
        "Wait for Progress takes 30.0% of the time. A progress thread on its own core per process (50.0% of the cores) "
        "would not pay off."
    )
