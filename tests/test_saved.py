"""A result that was written and read back is the same result."""

from pathlib import Path

import pytest
import whywait
from whywait import load

from tests import fake_native
from tests.fake_native import small

DATA = Path(__file__).parent / "data"


def same(one, other):
    assert one.summary() == other.summary()
    assert one.tree.parents == other.tree.parents
    assert [one.tree.path(i) for i in range(len(one.tree))] == [other.tree.path(i) for i in range(len(other.tree))]
    assert one.severities().to_pylist() == other.severities().to_pylist()
    assert one.derived_severities().to_pylist() == other.derived_severities().to_pylist()
    assert one.wait_states() == other.wait_states()
    columns = ["location", "name", "type", "rank", "thread"]
    assert one.locations.select(columns).to_pylist() == other.locations.select(columns).to_pylist()
    assert one.tables.system.to_pylist() == other.tables.system.to_pylist()
    assert one.tables.topologies.to_pylist() == other.tables.topologies.to_pylist()


@pytest.mark.parametrize("name", ["stencil", "collectives", "rma_gats_rdma", "sor_locks", "intercomm"])
def test_shipped_traces(name, tmp_path, monkeypatch):
    result = whywait.analyze(DATA / name)
    result.write(tmp_path)
    # Reading it may take more memory than the analysis.
    monkeypatch.setattr("whywait._native.peak_memory", lambda: 1 << 60)
    back = load(tmp_path)
    same(result, back)
    assert result.critical_path() == back.critical_path()
    assert result.delay_costs() == back.delay_costs()
    # What only the trace knows is read from there.
    assert back.run.events(0) == result.run.events(0)
    assert back.run.definitions["Region"] == result.run.definitions["Region"]


def test_without_causes_and_with_several_programs(tmp_path):
    analysis = fake_native.FakeAnalysis(
        [None, None, 1],
        [('<one> & "two"', "COMPILER", "FUNCTION"), fake_native.MAIN, fake_native.RECV],
        [(0, 0), (0, 1), (1, 0)],
        {"time": {(0, 0): 1.0, (1, 1): 2.0, (2, 1): 3.0, (1, 2): 1.0}, "mpi_latesender": {(2, 1): 0.5}},
    )
    result = fake_native.result(analysis)
    result.write(tmp_path)
    back = load(tmp_path)
    same(result, back)
    assert not back.has_causes


def test_a_written_copy_is_a_copy(tmp_path):
    result = fake_native.result(small())
    result.write(tmp_path / "one")
    load(tmp_path / "one").write(tmp_path / "two")
    same(load(tmp_path / "two"), result)


def test_a_directory_without_a_result_is_refused(tmp_path):
    with pytest.raises(whywait.UsageError, match=r"a complete result of .*: manifest\.json is missing"):
        load(tmp_path)


def test_times_begin_at_the_origin():
    result = whywait.analyze(DATA / "stencil")
    facts, run = result.facts, result.run
    assert facts["origin"] == min(run.events(place)["time"][0].as_py() for place in range(facts["locations"]))
    wait = result.wait_states().slice(0, 1).to_pylist()[0]
    ticks = set(run.events(wait["location"])["time"].to_pylist())
    assert round(wait["enter"] * facts["resolution"]) + facts["origin"] in ticks
