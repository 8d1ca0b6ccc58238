"""How good a prediction is: the deviation of each part of the time, and the error estimate."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait import cli
from whywait.hypotheses import Cpu, IdealNetwork, Network, Scale, parse

from tests.results import UNRECORDED
from tests.test_whatif import PAIRS, length_as_recorded
from tests.tracedsl import trace_from_text

ROOT = Path(__file__).parents[1]


def loop(durations) -> str:
    """Return a run of two ranks: work of these durations on rank 0, a tenth less on rank 1, and a barrier of 0.1 s."""
    lines, time = [], 0.0
    for own in durations:
        for rank, end in ((0, time + own), (1, time + 0.9 * own)):
            lines += [f"{rank}: work [{time}, {end}]", f"{rank}: MPI_Barrier [{end}, {time + own + 0.1}]"]
        time += own + 0.1
    return "\n".join([f"*: main [0, {time}]", *lines])


def simulated(tmp_path, durations, factor=0.5):
    return whywait.whatif(whywait.analyze(trace_from_text(loop(durations), tmp_path)), [Scale("work", factor)])


def test_iterations_of_equal_length_have_no_noise(tmp_path):
    found = simulated(tmp_path, [2] * 6).error_estimate
    assert found.noise == pytest.approx(0, abs=1e-6)
    assert (found.iterations, found.assumptions, found.untimed) == (6, 0, [])


def test_what_one_iteration_takes_from_the_next_is_no_noise(tmp_path):
    """The first iteration ends late, and the next one is shorter: every two take as long."""
    assert simulated(tmp_path, [2, 1] * 4).error_estimate.noise == pytest.approx(0, abs=1e-6)


def test_what_every_few_iterations_do_is_no_noise(tmp_path):
    """Every third iteration works longer."""
    lines, time = [], 0.0
    for number in range(12):
        own = 5 if number % 3 == 2 else 1
        lines += [f"*: work [{time}, {time + own}]", f"*: MPI_Barrier [{time + own}, {time + own + 0.1}]"]
        time += own + 0.1
    trace = trace_from_text("\n".join(["ranks 2", f"*: main [0, {time}]", *lines]), tmp_path)
    found = whywait.whatif(whywait.analyze(trace), [Scale("work", 0.5)]).error_estimate
    assert (found.iterations, found.noise) == (12, pytest.approx(0, abs=1e-6))


def test_a_marker_at_the_end_of_steps_cuts_the_last_one(tmp_path):
    """Iterations begin with the barrier behind the work of each step: the last one has no work."""
    text = "ranks 2\n*: main [0, 20]\n" + "".join(f"*: MPI_Barrier [{t + 1.8}, {t + 2}]\n" for t in range(0, 20, 2))
    result = whywait.analyze(trace_from_text(text, tmp_path))
    assert whywait.whatif(result, [Scale("main", 0.5)]).error_estimate.noise == pytest.approx(0, abs=1e-6)


def test_noise_as_computed_by_hand(tmp_path):
    """The sums of two are 2, 4, 6, 4, 2. Their variance is 2.8, that of the run n/2 = 3 times as much."""
    found = simulated(tmp_path, [1, 1, 3, 3, 1, 1], 1.0).error_estimate
    assert found.noise == pytest.approx(3 * np.sqrt(2) * np.sqrt(3 * 2.8))
    assert found.total == found.noise


def test_the_noisier_of_both_runs_counts(tmp_path):
    """Work twice as fast has half of the noise in the simulated run; the changed program may have all of it."""
    durations = [1, 1, 3, 3, 1, 1]
    whole = simulated(tmp_path / "a", durations, 1.0).error_estimate
    assert simulated(tmp_path / "b", durations, 0.5).error_estimate.noise == pytest.approx(whole.noise)
    slower = simulated(tmp_path / "c", durations, 2.0).error_estimate
    assert slower.noise == pytest.approx(2 * whole.noise)


def test_the_estimate_holds_for_other_runs_of_a_noisy_program(tmp_path):
    """Each run predicts the program with half of the work, whose runs have noise of their own."""
    random = np.random.default_rng(42)
    iterations, spread = 40, 0.1
    estimates, misses = [], []
    for number in range(12):
        sim = simulated(tmp_path / str(number), 2 + random.normal(0, spread, iterations))
        estimates.append(sim.error_estimate.total)
        others = (random.normal(2, spread, (100, iterations)) * 0.5 + 0.1).sum(axis=1)
        misses += (np.abs(others - sim.after) > sim.error_estimate.total).tolist()
    assert np.mean(misses) < 0.01
    # Three standard deviations of the difference of two runs, within what 40 iterations tell about them.
    assert np.median(estimates) == pytest.approx(3 * np.sqrt(2 * iterations) * spread, rel=0.3)


def test_without_iterations_the_noise_is_unknown(tmp_path, capsys):
    anchor = trace_from_text("*: main [0, 9]\n0: work [0, 5]\n1: work [0, 8]", tmp_path)
    found = whywait.whatif(whywait.analyze(anchor), [Scale("work", 0.5)]).error_estimate
    assert (found.noise, found.total, found.iterations) == (None, None, 0)
    assert cli.main(["whatif", str(anchor), "--scale", "work=0.5"]) == 0
    assert "Error estimate: unknown" in capsys.readouterr().out


def test_without_causes_the_noise_is_unknown(tmp_path):
    result = whywait.analyze(trace_from_text(loop([2] * 6), tmp_path), causes=False)
    assert whywait.whatif(result, [Scale("work", 0.5)]).error_estimate.noise is None


def test_assumptions_count_with_their_mean_time(capsys):
    stencil = whywait.analyze(ROOT / "tests/data/stencil")
    sim = whywait.whatif(stencil, [Scale("relax", 0.5)])
    found = sim.error_estimate
    rows = sim.assumptions.to_pylist()
    assert found.assumptions == pytest.approx(sum(row["time"] or 0 for row in rows) / len(stencil.places))
    assert found.total == found.noise + found.assumptions > found.noise > 0
    assert found.untimed == [row["assumption"] for row in rows if row["time"] is None] == ["undecided_protocol"]
    assert cli.main(["whatif", str(stencil.run.path), "--scale", "relax=0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error_estimate"] == found._asdict() | {"total": found.total}
    assert cli.main(["whatif", str(stencil.run.path), "--scale", "relax=0.5"]) == 0
    assert "(100 iterations) + assumptions 92.7 us" in capsys.readouterr().out


def test_deviations_as_computed_by_hand(tmp_path, capsys):
    """Work 5 s and 2 s, a message of 0.2 s for which rank 1 waits 3 s, both to 10 s; then work of 2 s and no wait."""
    trace = """
    *: main [0, 10]
    0: work [0, 5]
    0: MPI_Send(1) [5, 5.2]
    1: work [0, 2]
    1: MPI_Recv(0) [2, 5.3]
    """
    anchor = trace_from_text(trace, tmp_path)
    sim = whywait.whatif(whywait.analyze(anchor), [Scale("work@0", 0.4)])
    expected = {
        "time": (20, 14, -30),
        "computation": (16.5, 13.5, -15),
        "communication": (0.5, 0.5, 0),
        "waiting": (3, 0, -15),
    }
    assert list(sim.deviations) == list(expected)
    for name, values in expected.items():
        assert tuple(sim.deviations[name]) == pytest.approx(values), name
    assert cli.main(["whatif", str(anchor), "--scale", "work@0=0.4"]) == 0
    line = "CPU time -30.00%: computation -15.00%, communication +0.00%, waiting -15.00%"
    assert line in capsys.readouterr().out
    assert cli.main(["whatif", str(anchor), "--scale", "work@0=0.4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["deviations"]
    assert told["waiting"] == pytest.approx({"before": 3, "after": 0, "percent": -15})


@pytest.mark.parametrize("change", [Cpu(2.0), IdealNetwork(), Network(1e-3)], ids=str)
@pytest.mark.parametrize("name", ["stencil", "mixed", "rma_fence", "omp_nested"])
def test_deviations_of_the_parts_add_up(name, change):
    total, *parts = whywait.whatif(ROOT / "tests/data" / name, [change]).deviations.values()
    for number in range(3):
        assert sum(part[number] for part in parts) == pytest.approx(total[number], abs=1e-9)


def test_without_a_change_no_part_deviates():
    for deviation in whywait.whatif(ROOT / "tests/data/mixed").deviations.values():
        assert deviation.percent == 0


def test_the_network_alone_has_its_own_deviation(tmp_path, capsys):
    anchor = trace_from_text(loop([2] * 6), tmp_path)
    assert cli.main(["whatif", str(anchor), "--scale", "work=0.5", "--network", "latency=0.2"]) == 0
    out = capsys.readouterr().out
    assert out.index("On this network alone, CPU time +") < out.index("\nCPU time -")


def test_generated_pairs_deviate_in_no_part_and_keep_their_estimate(capsys):
    command = ["bench", "whatif", "--ranks", "16", "--iterations", "10"]
    assert cli.main([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for row in rows:
        assert set(row["identity_parts"].values()) == {0}
        assert row["holds"] == (None if row["error_estimate"] is None else True), row["workload"]
    parts = {row["workload"]: row["deviation_parts"] for row in rows}
    assert all(set(parts[name].values()) == {0} for name in ("lb-coll", "lb-p2p"))
    # 50 ns around each call of an empty message stay with the caller as computation.
    assert 0 < parts["xns"]["computation"] < 0.2
    assert all(abs(parts["xns"][name]) < 0.1 for name in ("communication", "waiting"))
    known = [row["workload"] for row in rows if row["holds"] is not None]
    assert known == ["lb-coll", "lb-p2p", "sweep", "xns"]
    assert cli.main([*command, "--workload", "xns"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"xns +16 +0% +0% +0% +0\.0\d+% .* yes$", out, re.MULTILINE)


@pytest.mark.skipif(not PAIRS, reason=UNRECORDED)
def test_the_estimate_holds_for_recorded_pairs():
    """Each side of a pair predicts the five recordings of the other: nine of ten estimates hold."""
    held, shares = [], []
    for pair in PAIRS:
        line = re.search(r"^options: --scale '(.*)=(.*)'$", (pair / "hypothesis.txt").read_text(), re.MULTILINE)
        lengths = json.loads((pair / "lengths.json").read_text())
        for source, other, factor in (("before", "after", float(line[2])), ("after", "before", 1 / float(line[2]))):
            result = whywait.analyze(pair / source)
            sim = whywait.whatif(result, [parse("scale", f"{line[1]}={factor}")])
            estimate = sim.error_estimate.total
            recorded = [run.get("init_to_finalize_s", run["whole_s"]) for run in lengths[other]]
            held += [abs(own - length_as_recorded(sim)) <= estimate for own in recorded]
            shares.append(estimate / length_as_recorded(sim))
    assert len(held) == 30
    assert sum(held) >= 27
    # An estimate that is too large says nothing.
    assert max(shares) < 0.06
