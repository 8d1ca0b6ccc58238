"""Programs whose functions have known shares of the time: what samples and findings say of them."""

import os
import re
import sys
from collections import Counter
from math import sqrt

import pytest
import whywait
from whywait.analysis.functions.functions import divided

from tests.results import SHARED

from .mpis import MPIS, compiled, record

CASES = SHARED / "cases_sampling"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason=f"no sampled programs: {CASES} is not there")
# What a share may be off by: so many standard deviations, and at most so many percentage points.
DEVIATIONS, POINTS = 3.3, 0.05
RATE = 250


@pytest.fixture
def recorded(tmp_path):
    """Record a program of the cases with some arguments, and return its output and its result."""
    mpi = next((mpi for mpi in MPIS if mpi.name == "mpich" and mpi.is_here), None)
    if mpi is None:
        pytest.skip("MPICH is not installed")

    def run(name, *arguments, ranks=0, options=(), **environment):
        program = compiled(mpi, CASES / f"{name}.c", tmp_path, "-O2", *options, "-lm")
        return sampled(tmp_path, [*(mpi.start(ranks) if ranks else []), program, *map(str, arguments)], **environment)

    return run


def sampled(directory, command, **environment):
    output = f"out{len(list(directory.glob('out*')))}"
    done = record(command, directory, f"--sample={RATE}", output=output, **environment)
    assert done.returncode == 0, done.stderr
    if "perf is not allowed" in done.stderr or "(timer" in done.stderr:
        pytest.skip("perf is not allowed, and with timers ranks need cores of their own")
    return done.stdout, whywait.analyze(directory / output)


def counts(result, names):
    """Return how many samples of time saw each of some functions."""
    found = Counter()
    for row in result.samples().to_pylist():
        if row["kind"] == "time" and not row["in_call"]:
            found.update(name for name in names if name in (row["callpath"] or ()))
    return found


def are(found, shares, *, n=None):
    """Check the shares of functions in the samples of all of them, or in so many."""
    total = n or sum(found.values())
    assert total >= 100, found
    for name, share in shares.items():
        tolerance = min(DEVIATIONS * sqrt(share * (1 - share) / total), POINTS)
        assert found[name] / total == pytest.approx(share, abs=tolerance), (name, found)


def test_shares(recorded):
    _, result = recorded("shares", 3)
    found = counts(result, ["alpha", "beta", "gamma_"])
    assert sum(found.values()) >= 0.7 * 3 * RATE
    are(found, {"alpha": 0.6, "beta": 0.3, "gamma_": 0.1})


@pytest.mark.nightly
@pytest.mark.parametrize("period", [10, 4])
def test_work_in_step_with_the_clock(recorded, period):
    _, result = recorded("phases", 3, period)
    are(counts(result, ["alpha", "beta"]), {"alpha": 0.25, "beta": 0.75})


@pytest.mark.nightly
def test_signals_of_the_program_and_blocked_ones(recorded):
    _, result = recorded("signals", 3)
    are(counts(result, ["alpha", "beta"]), {"alpha": 0.75, "beta": 0.25})
    _, result = recorded("signals", 3, "block")
    found = counts(result, ["alpha", "beta", "[signals blocked]"])
    are(found, {"alpha": 0.75})
    output, _ = recorded("signals", 1, "sleep")
    assert "calls ended early 0 of" in output


@pytest.mark.nightly
def test_functions_of_libraries_have_the_names_of_their_calls(recorded):
    output, result = recorded("library", 1000)
    names = ["copies", "powers", "memory"]
    shares = {name: float(re.search(rf"{name} ([\d.]+)", output)[1]) for name in names}
    found = counts(result, [*names, "memcpy", "pow", "malloc", "free"])
    are({name: found[name] for name in names}, shares)
    assert found["memcpy"] >= 0.95 * found["copies"]
    assert found["pow"] >= 0.9 * found["powers"]
    assert found["malloc"] + found["free"] >= 0.9 * found["memory"]


@pytest.mark.nightly
def test_threads_of_a_team(recorded):
    _, result = recorded("threads", 200, options=["-fopenmp"], OMP_NUM_THREADS="3")
    names = ["even", "lopsided", "serial"]
    are(counts(result, names), {"even": 120 / 360, "lopsided": 200 / 360, "serial": 40 / 360})


@pytest.mark.nightly
def test_deep_recursion_and_other_stacks(recorded):
    _, result = recorded("deep", 3)
    are(counts(result, ["bottom", "fiber"]), {"bottom": 0.5, "fiber": 0.5})
    paths = {tuple(row["callpath"]) for row in result.samples().to_pylist() if "bottom" in (row["callpath"] or ())}
    assert {path[-2] for path in paths} == {"down"}


def blamed(result, rank):
    """Return the functions in the cost of a rank by name, with what they call: cost and standard deviation."""
    recorded = {row["recorded_callpath_id"] for row in result.delay_functions().to_pylist()}
    found = {}

    def add(functions):
        for one in functions:
            name = None if one.callpath is None else result.tree.path(one.callpath)[-1]
            found[name] = one
            add(one.calls)

    division = divided(result, recorded, [rank])
    add(division.functions)
    return division, found


def is_no_cause(one, cost):
    """Whether a function has none of a cost: by its error, or within 15%, where ranks share cores."""
    return one is None or abs(one.value) <= max(DEVIATIONS * one.deviation, 0.15 * cost)


@pytest.mark.nightly
def test_the_late_rank_is_late_in_one_function(recorded):
    _, result = recorded("hidden", 1000, ranks=3)
    division, found = blamed(result, 2)
    assert found["kernel_b"].is_certain
    assert found["kernel_b"].value > 0
    assert is_no_cause(found.get("kernel_a"), division.cost)
    assert is_no_cause(found.get("pack"), division.cost)
    if len(os.sched_getaffinity(0)) < 4:
        pytest.skip("three ranks need cores of their own: where they share two, shares were off by eight points")
    rows = result.functions().to_pylist()
    last = Counter()
    for row in rows:
        if row["rank"] == 2 and row["callpath"]:
            last[row["callpath"][-1]] += row["samples"]
    are(
        {name: last[name] for name in ("kernel_a", "kernel_b", "pack")},
        {"kernel_a": 0.375, "kernel_b": 0.5, "pack": 0.125},
    )


@pytest.mark.nightly
def test_where_nobody_is_late_no_function_is_named(recorded):
    _, result = recorded("hidden", 400, 2, ranks=3)
    for rank in range(3):
        division, _ = blamed(result, rank)
        assert [one for one in division.named if one.callpath is not None] == []


@pytest.mark.nightly
def test_page_faults_make_a_function_late(recorded):
    _, result = recorded("faults", 100, ranks=2)
    division, found = blamed(result, 1)
    assert found["fill"].is_certain
    assert found["fill"].value > 0
    assert is_no_cause(found.get("compute"), division.cost)
    # Where the rank had no core for longer than its faults took, that is the cause.
    named = [None if one.callpath is None else result.tree.path(one.callpath)[-1] for one in division.named]
    away = found[None].value if None in found else 0.0
    assert "fill" in named or away > found["fill"].value


@pytest.mark.nightly
def test_the_same_instructions_take_longer(recorded):
    _, result = recorded("memory", 20, ranks=2)
    division, found = blamed(result, 1)
    walk = next(one for name, one in found.items() if name and name.startswith("walk"))
    assert walk.is_certain
    assert walk.value > 0
    assert is_no_cause(found.get("compute"), division.cost)


@pytest.mark.nightly
def test_functions_of_python(tmp_path):
    pytest.importorskip("mpi4py")
    command = [MPIS[2].launcher, "-n", "2", sys.executable, CASES / "late.py", "200"]
    output, result = sampled(tmp_path, command, OPENBLAS_NUM_THREADS="1")
    names = {"refine": "Model.refine", "loop": "loop", "dot": "dot"}
    for rank in range(2):
        line = next(line for line in output.splitlines() if line.startswith(f"{rank} "))
        spent = {name: float(re.search(rf"'{name}': ([\d.]+)", line)[1]) for name in names}
        # With the work of the kernel at the memory that numpy gets anew.
        times = Counter()
        for row in result.functions().to_pylist():
            for name, function in names.items():
                if row["rank"] == rank and function in (row["callpath"] or ()):
                    times[name] += row["time"]
        for name, time in spent.items():
            assert times[name] / sum(times.values()) == pytest.approx(time / sum(spent.values()), abs=2 * POINTS), times
    division, found = blamed(result, 1)
    assert is_no_cause(found.get("loop"), division.cost)
    assert is_no_cause(found.get("dot"), division.cost)
