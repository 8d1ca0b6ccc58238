"""The call tree as Hatchet reads it: the documented form, and Hatchet itself where it is installed."""

import math
from pathlib import Path

import pytest
import whywait

from tests import fake_native

DATA = Path(__file__).parent / "data"


def walk(nodes, path=()):
    for node in nodes:
        assert node.keys() == {"frame", "metrics", "children"}
        assert node["frame"].keys() == {"name", "type"}
        here = (*path, node["frame"]["name"])
        yield here, node
        yield from walk(node["children"], here)


def test_values_are_those_of_the_tables():
    result = whywait.analyze(DATA / "stencil")
    found = result.to_hatchet()
    names = {name for _, node in walk(found) for name in node["metrics"]}
    assert {"time", "time (inc)", "mpi_latesender", "mpi_latesender (inc)", "mpi_wait_nxn"} <= names
    for name in ("time", "mpi_latesender"):
        table = {tuple(row["callpath"]): row for row in result.metrics[name].by_callpath().to_pylist()}
        for path, node in walk(found):
            row = table.get(path, {"value": 0.0, "inclusive": 0.0})
            assert node["metrics"][name] == row["value"]
            assert node["metrics"][f"{name} (inc)"] == row["inclusive"]
    assert len(list(walk(found))) == len(result.tree)


def test_hatchet_of_one_rank_holds_its_values():
    result = whywait.analyze(DATA / "stencil")
    by_rank = dict(zip(*result.metrics["mpi_latesender"].by_rank().to_pydict().values(), strict=True))
    for rank in (0, 5):
        (root,) = result.to_hatchet(["mpi_latesender"], rank=rank)
        assert root["metrics"].keys() == {"mpi_latesender", "mpi_latesender (inc)"}
        assert math.isclose(root["metrics"]["mpi_latesender (inc)"], by_rank[rank], rel_tol=1e-9)
    with pytest.raises(whywait.UsageError, match="no rank 8"):
        result.to_hatchet(rank=8)
    with pytest.raises(whywait.UsageError, match="no metric beauty"):
        result.to_hatchet(["beauty"])


def test_several_roots_and_none():
    several = fake_native.FakeAnalysis(
        [None, None], [fake_native.MAIN, fake_native.SEND], [(0, 0)], {"time": {(0, 0): 1.0, (1, 0): 2.0}}
    )
    names = [node["frame"]["name"] for node in fake_native.result(several).to_hatchet()]
    assert sorted(names) == ["MPI_Send", "main"]
    assert fake_native.result(fake_native.FakeAnalysis([], [], [], {})).to_hatchet() == []


@pytest.mark.filterwarnings("ignore")
def test_hatchet_reads_it():
    hatchet = pytest.importorskip("hatchet")
    result = whywait.analyze(DATA / "stencil")
    frame = hatchet.GraphFrame.from_literal(result.to_hatchet(["time", "mpi_latesender"]))
    assert frame.exc_metrics == ["time", "mpi_latesender"]
    assert frame.inc_metrics == ["time (inc)", "mpi_latesender (inc)"]
    assert len(frame.graph) == len(result.tree)
    assert frame.dataframe["time"].sum() == pytest.approx(result.metrics["time"].total)
    waiting = frame.filter(lambda row: row["mpi_latesender"] > 0, squash=True)
    assert set(waiting.dataframe["name"]) == {"MPI_Waitall", "MPI_Recv"}
