"""A simulated run analyzed in memory has the same result as its archive (whatif.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait import UsageError, _native
from whywait.api.whatif import SimulatedRun, Simulation
from whywait.hypotheses import Balance, Cut, CutMessages, Hypothesis, IdealNetwork, Overlap, Scale, Split

from tests.programs import programs
from tests.rma_programs import one_sided_programs
from tests.tracedsl import trace_from_text

ROOT = Path(__file__).parents[1]
TABLES = (
    "severities", "wait_states", "critical_path", "callpaths", "regions", "locations", "system", "topologies",
    "counters", "counter_cells", "inconsistencies", "transfers",
)  # fmt: skip


def differences(sim: Simulation, directory: Path) -> list[str]:
    """Tables in which the run in memory differs from its archive."""
    memory = sim.result
    written = whywait.analyze(sim.write(directory), **memory.options)
    found = [name for name in TABLES if not getattr(memory.tables, name).equals(getattr(written.tables, name))]
    whole = [name for name in ("facts", "warnings") if getattr(memory, name) != getattr(written, name)]
    return found + whole


def busiest(result: whywait.Result) -> list[str]:
    """The call paths of two regions that take long, by number."""
    time = result.profile.by_position("time")[result.tree.position]
    return [str(number) for number in sorted(range(len(time)), key=lambda number: -time[number])[:2]]


def changes(result: whywait.Result) -> list[list[Hypothesis]]:
    """Lists of changes that a run may allow."""
    first, second = (busiest(result) * 2)[:2]
    return [
        [],
        [Scale(first, 0.3)],
        [Scale(first, 0.0), Scale(second, 1.7)],
        [Balance(first, mode="scaled")],
        [IdealNetwork()],
        [Cut(f"{second}")],
        [CutMessages("size>=0")],
        [CutMessages("tag==1"), Scale(first, 0.5)],
        [Overlap("MPI_Recv"), Scale(first, 0.5)],
        [Overlap("MPI_Send"), Overlap("MPI_Wait")],
        [Overlap("MPI_Waitall")],
        [Overlap("MPI_Sendrecv")],
        [Split("MPI_Sendrecv")],
    ]


@pytest.mark.parametrize("hidden", ["estimate", "remainder"])
@pytest.mark.parametrize("archive", sorted(path.parent for path in ROOT.glob("tests/data/*/traces.otf2")), ids=str)
def test_the_run_in_memory_is_the_one_in_the_archive(archive, hidden, tmp_path):
    result = whywait.analyze(archive)
    for number, hypotheses in enumerate(changes(result)):
        try:
            sim = whywait.whatif(result, hypotheses, hidden=hidden)
        except UsageError:
            continue
        assert differences(sim, tmp_path / str(number)) == [], hypotheses


@given(st.one_of(programs(), one_sided_programs()), st.data())
@settings(max_examples=30, deadline=None)
def test_random_runs_in_memory_are_those_in_archives(tmp_path_factory, program, data):
    """Twice: the second change is one of the simulated run."""
    directory = tmp_path_factory.mktemp("run")
    result = whywait.analyze(trace_from_text(program, directory))
    for step in range(2):
        try:
            sim = whywait.whatif(result, data.draw(st.sampled_from(changes(result))))
        except UsageError:
            continue
        assert differences(sim, directory / str(step)) == []
        result = sim.result


def test_nothing_is_written_unless_it_is_read(tmp_path, monkeypatch):
    _native.generate("sor-gats", tmp_path, ranks=8, iterations=2, seed=1)
    sim = whywait.whatif(whywait.analyze(tmp_path), [Scale("compute", 0.5)])
    with monkeypatch.context() as patch:
        patch.setattr(Simulation, "write", None)
        assert sim.result.facts["length"] == pytest.approx(sim.after)
        assert sim.result.run.definitions["Region"].num_rows
        sim.result.summary()
    run = sim.result.run
    assert isinstance(run, SimulatedRun)
    assert run.events(0).num_rows == whywait.open(tmp_path).events(0).num_rows
    assert run.path == run.identity.path
    clock = run.definitions["ClockProperties"].to_pylist()[0]
    assert clock["trace_length"] < whywait.open(tmp_path).definitions["ClockProperties"]["trace_length"][0].as_py()


def test_a_change_of_a_simulated_run_is_noted_behind_the_first(tmp_path):
    _native.generate("sor-p2p", tmp_path / "run", ranks=8, iterations=2, seed=1)
    first = whywait.whatif(whywait.analyze(tmp_path / "run"), [Scale("compute", 0.5)])
    second = whywait.whatif(first.result, [Scale("compute", 0.5)])
    content = second.write(tmp_path / "out").read_bytes()
    assert content.count(b"WHYWAIT::HYPOTHESES") == 2


@pytest.mark.parametrize("workload", ["comd-gpu", "sor-gats"])
def test_the_records_of_a_simulated_run_can_be_read_again(workload, tmp_path):
    _native.generate(workload, tmp_path / "run", ranks=4, iterations=2, seed=1)
    result = whywait.analyze(tmp_path / "run")
    sim = whywait.whatif(result, [Scale(busiest(result)[0], 0.5)])
    assert isinstance(sim.result.run, SimulatedRun)
    assert differences(sim, tmp_path / "written") == []
    written = whywait.open(tmp_path / "written")
    for location in range(sim.result.run.locations.num_rows):
        assert sim.result.run.events(location).equals(written.events(location))
