"""Loads of devices as quantities to correlate, and what each layer of a device uses (Eberius, chapter 4)."""

import re

import numpy as np
import pytest
import whywait
from whywait import UsageError, _native, cli
from whywait.analysis.counters.correlation import LOADS, by_rank, pearson
from whywait.bench import published

RANKS, WORK, IMBALANCE = 64, 800_000, 0.9


@pytest.fixture(scope="module")
def comd(tmp_path_factory):
    directory = tmp_path_factory.mktemp("comd")
    _native.generate("comd-gpu", directory, ranks=RANKS, iterations=2, seed=1, work=WORK, imbalance=IMBALANCE)
    return whywait.analyze(directory, causes=False)


def test_the_adjusted_load_follows_the_atoms_more_closely(comd):
    """Figure 4.9: r with the atoms rises from 0.939 to 0.995; here full waves make it rise to 1."""
    atoms = [1 + IMBALANCE * (rank / (RANKS - 1)) ** 2 for rank in range(RANKS)]
    plain, adjusted = (pearson(atoms, by_rank(comd, name)) for name in ("load_gpu", "load_gpu_adjusted"))
    assert 0.8 < plain < adjusted
    assert adjusted > 0.9949787


def test_published_correlations_are_those_of_problem_7():
    rows = {row.name: row.published for row in published.named("comd-gpu").rows}
    assert rows["r of GPU time and atoms"][6] == pytest.approx(0.939, abs=1e-3)
    assert rows["r of adjusted time and atoms"][6] == pytest.approx(0.995, abs=1e-3)


def test_loads_are_correlated_with_other_quantities(comd, capsys):
    found = comd.correlate("load_gpu", "gpu_host_wait")
    assert found.n == RANKS
    assert found.r > 0.99
    for name in LOADS:
        assert by_rank(comd, name).shape == (RANKS,)
    assert np.allclose(by_rank(comd, "load_gpu"), by_rank(comd, "load_host") + by_rank(comd, "gpu_time"))
    assert cli.main(["counters", str(comd.run.path), "--correlate", "load_gpu"]) == 0
    assert re.search(r"gpu_host_wait +1\.0000 +64", capsys.readouterr().out)


def test_a_run_without_devices_has_no_such_load():
    with pytest.raises(UsageError, match="load_gpu is unknown: the run has no accelerators"):
        whywait.analyze("tests/data/stencil", causes=False).correlate("load_gpu", "mpi_latesender")


def test_layers_multiply_to_the_adjusted_time(comd, capsys):
    found = comd.gpu().summary()
    layers = found["layers"]
    assert [one["layer"] for one in layers] == ["time", "multiprocessors", "threads of a warp"]
    whole = RANKS * (comd.facts["focus_end"] - comd.facts["focus_begin"])
    adjusted = sum(one["adjusted"] for one in found["devices"])
    assert whole * np.prod([one["efficiency"] for one in layers]) == pytest.approx(adjusted)
    assert sum(one["lost"] for one in layers) == pytest.approx(whole - adjusted)
    # The workload has 87.5% of the threads of a warp active.
    assert layers[2]["efficiency"] == pytest.approx(0.875, abs=1e-3)
    assert cli.main(["gpu", str(comd.run.path)]) == 0
    assert "Used by layer: time " in capsys.readouterr().out
