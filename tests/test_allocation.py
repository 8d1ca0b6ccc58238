"""Idle threads: by hand, and as an addition to the time that changes nothing else."""

from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait import load
from whywait.analysis.efficiency.efficiency import efficiencies
from whywait.cli import main
from whywait.model.idle_threads import NAMES, allocation

from tests import fake_native
from tests.fake_native import MAIN
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
PARALLEL = ("!$omp parallel @a.c:1", "OPENMP", "PARALLEL")
WORK = ("work", "USER", "FUNCTION")
SMALL_TEAM = """
0: main [0, 10]
0: fork [2, 4]
0: !$omp parallel @a.c:1 [2, 4]
0.1: !$omp parallel @a.c:1 [2, 4]
0: fork [5, 8]
0: !$omp parallel @a.c:2 [5, 8]
"""


def table(result, name):
    return {("/".join(row["callpath"][1:]), row["rank"], row["thread"]): pytest.approx(row["value"])
            for row in result.severities(name).to_pylist()}  # fmt: skip


def test_idle_threads_match_a_hand_worked_team(tmp_path):
    trace = trace_from_text(SMALL_TEAM, tmp_path)
    result, plain = whywait.analyze(trace, idle_threads=True), whywait.analyze(trace)
    second = "main/!$omp parallel @a.c:2"
    # The master is in main for 5 s and in the second region for 3 s, the other thread of its process in neither.
    assert table(result, "omp_limited_parallelism") == {(second, 0, 1): 3}
    assert table(result, "omp_idle_threads") == {("main", 0, 1): 5, (second, 0, 1): 3}
    assert result.metrics["time"].total == pytest.approx(10 + 10)
    assert plain.metrics["time"].total == pytest.approx(10 + 2)
    assert result.metrics["omp_idle_threads"].parent == "time"
    assert not set(NAMES) & set(plain.metrics)
    # Nothing else changes.
    for name, metric in plain.metrics.items():
        if name != "time":
            assert result.metrics[name].total == pytest.approx(metric.total), name
    # Efficiencies count idle threads in any case.
    for one, other in zip(result.efficiencies(), plain.efficiencies(), strict=True):
        assert one.value == pytest.approx(other.value)
    assert plain.efficiencies()["parallel_efficiency"].inputs["max(elapsed)"] == pytest.approx(20)
    window = result.window(0, 10)
    for name in ("time", *NAMES):
        assert window.total(name) == result.metrics[name].total


def test_idle_threads_are_saved_and_reported(tmp_path, capsys):
    trace = trace_from_text(SMALL_TEAM, tmp_path)
    assert main(["analyze", str(trace), "-o", str(tmp_path / "out"), "--idle-threads", "--html"]) == 0
    assert "Idle threads" in capsys.readouterr().out
    found = load(tmp_path / "out")
    assert found.metrics["omp_idle_threads"].total == pytest.approx(8)
    assert found.metrics["time"].total == pytest.approx(20)


def test_without_threads_nothing_is_added():
    result, plain = (whywait.analyze(DATA / "stencil", idle_threads=idle) for idle in (True, False))
    assert set(NAMES) <= result.profile.void
    assert result.metrics["time"].total == plain.metrics["time"].total
    assert result.metrics["omp_idle_threads"].total == 0


cells = st.lists(st.floats(0, 100), min_size=4, max_size=4)


@given(st.lists(cells, min_size=1, max_size=6), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_against_the_definition(rows, ranks):
    """main > (work, parallel > work), each location with a time at each."""
    ranks = sorted(ranks[: len(rows)])
    threads = [ranks[:i].count(rank) for i, rank in enumerate(ranks)]
    values = {"time": {(c, l): value for l, row in enumerate(rows) for c, value in enumerate(row) if value}}  # noqa: E741
    analysis = fake_native.FakeAnalysis(
        [None, 0, 0, 2], [MAIN, WORK, PARALLEL, WORK], list(zip(ranks, threads, strict=True)), values
    )
    result = fake_native.result(analysis, stored=("time",))
    found = allocation(result.profile, result.places)
    idle, limited, time = (fake_native.dense(found, name) for name in (*NAMES, "time"))
    before = fake_native.dense(result.profile, "time")
    for location, (rank, thread) in enumerate(zip(ranks, threads, strict=True)):
        master = ranks.index(rank)
        expected = np.zeros(4)
        if thread:
            expected[:2] = before[:2, master]
            missing = before[2:, master].sum() - before[2:, location].sum()
            expected[2] = missing if missing >= 1e-10 else 0
        np.testing.assert_allclose(idle[:, location], expected, atol=1e-12)
        np.testing.assert_allclose(limited[:, location], [0, 0, expected[2], 0], atol=1e-12)
    np.testing.assert_allclose(time, before + idle)
    assert (
        efficiencies(result)["parallel_efficiency"].value is None
        or efficiencies(result)["parallel_efficiency"].value <= 1
    )
