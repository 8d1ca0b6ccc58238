"""Load imbalance with devices: worked examples and invariants."""

import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait.analysis.counters.correlation import pearson
from whywait.analysis.efficiency.load_balance import (
    Kernel,
    adjusted_load,
    geometry_efficiency,
    gpu_efficiency,
    imbalance,
    process_loads,
    share,
)

from tests.tracedsl import trace_from_text


def test_imbalance_of_loads():
    """Equation 4.1."""
    assert imbalance([10, 8, 6, 8]) == 0.25
    assert imbalance([0, 0]) is None
    assert imbalance([]) is None


def test_the_load_of_a_process_is_its_time_outside_of_mpi():
    """Equation 4.2."""
    loads = process_loads([100] * 4, [30, 20, 10, 40])
    assert loads.tolist() == [70, 80, 90, 60]
    assert imbalance(loads) == pytest.approx(0.2, abs=1e-15)


def test_efficiency_of_a_kernel():
    """Equation 4.3; percentages as well."""
    assert gpu_efficiency(0.9, 0.8) == pytest.approx(0.72, abs=1e-15)
    assert gpu_efficiency(90, 80) == pytest.approx(0.72, abs=1e-15)
    for value in (-0.1, 101, float("nan")):
        with pytest.raises(whywait.UsageError, match="sm_efficiency"):
            gpu_efficiency(value, 1)
    assert share("busy", 100) == 1


@pytest.mark.parametrize(
    ("measured", "efficiency", "plain", "adjusted"),
    [((10, 10), (0.9, 0.6), 0, 0.2), ((12, 8), (0.6, 0.9), 0.2, 0),
     ((10, 9, 8, 7), (0.95, 0.85, 0.72, 0.55), 0.17647058823529413, (9.5 - 6.69) / 6.69)],
)  # fmt: skip
def test_adjusted_imbalance(measured, efficiency, plain, adjusted):
    """Equations 4.4 and 4.5."""
    loads = [adjusted_load(0, [Kernel(0, t, e)]) for t, e in zip(measured, efficiency, strict=True)]
    assert imbalance([load for load, _ in loads]) == pytest.approx(plain, abs=1e-12)
    assert imbalance([load for _, load in loads]) == pytest.approx(adjusted, abs=1e-12)


def test_a_better_imbalance_is_no_better_correlation():
    work, measured, adjusted = (100, 80, 60, 40), (10, 9, 8, 7), (9.5, 7.65, 5.76, 3.85)
    assert imbalance(work) == pytest.approx(0.42857142857142855)
    assert pearson(work, measured) == pytest.approx(1)
    assert pearson(work, adjusted) == pytest.approx(0.99997, abs=5e-6)


def test_kernels_and_host_add_up():
    kernels = [Kernel(0, 2, 0.72), Kernel(3, 4, 0.5)]
    assert adjusted_load(0.4, kernels) == (pytest.approx(3.4, abs=1e-12), pytest.approx(2.34, abs=1e-12))


def test_kernels_that_overlap_count_once():
    """The later one from its start on; on another device it counts beside."""
    assert adjusted_load(0, [Kernel(0, 4, 1.0), Kernel(1, 3, 0.5)]) == (4, 3)
    assert adjusted_load(0, [Kernel(0, 4, 1.0), Kernel(1, 3, 0.5, device=1)]) == (6, 5)


def test_geometry_of_a_launch():
    assert geometry_efficiency(80, 1024, 80, 32) == 1
    assert geometry_efficiency(81, 1024, 80, 32) == 81 / 160
    assert geometry_efficiency(80, 48, 80, 32) == 0.75
    with pytest.raises(whywait.UsageError):
        geometry_efficiency(0, 32, 80, 32)


def test_pearson_matches_worked_values():
    assert pearson((10, 20, 30), (1, 2, 2.5)) == pytest.approx(0.98198, abs=5e-6)
    assert pearson((1, 1, 1), (1, 2, 3)) is None
    assert pearson((1, 2), (1, 2)) is None
    with pytest.raises(whywait.UsageError):
        pearson((1, 2, 3), (1, 2))


def test_ranks_are_correlated(tmp_path, capsys):
    """Of three ranks that wait 1, 2 and 4 s, by the messages that they received."""
    import json

    from whywait.cli import main

    lines = ["ranks 4"]
    for rank, number in ((1, 1), (2, 2), (3, 4)):
        for i in range(number):
            t = 10 * rank + 2 * i
            lines += [f"0: MPI_Send({rank}) [{t + 1}, {t + 1.1}]", f"{rank}: MPI_Recv(0) [{t}, {t + 1.2}]"]
    anchor = trace_from_text("\n".join(lines), tmp_path)
    result = whywait.analyze(anchor, causes=False)
    assert result.correlate("comms_recv", "mpi_latesender") == ("comms_recv", "mpi_latesender", 4, pytest.approx(1))
    assert result.correlate("comms_recv", "mpi_latereceiver").r is None
    with pytest.raises(whywait.UsageError, match="nix"):
        result.correlate("nix", "time")
    assert main(["counters", str(anchor), "--correlate", "comms_recv", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["correlations"]
    assert (row["y"], row["n"], row["r"]) == ("mpi_latesender", 4, pytest.approx(1))


kernel = st.builds(
    lambda begin, length, efficiency, device: Kernel(begin, begin + length, efficiency, device),
    st.integers(0, 20), st.integers(0, 9), st.floats(0, 1), st.integers(0, 1),
)  # fmt: skip


@given(kernels=st.lists(kernel, max_size=8))
def test_loads_second_by_second(kernels):
    measured = adjusted = 0.0
    for device in (0, 1):
        for second in range(30):
            running = [k for k in kernels if k.device == device and k.begin <= second < k.end]
            if running:
                measured += 1
                adjusted += max(running, key=lambda k: k.begin).efficiency
    assert adjusted_load(0, kernels) == (pytest.approx(measured), pytest.approx(adjusted))
