"""Recursive calls that are folded into the outer call of the same function."""

import subprocess
import sys
from collections import Counter

import otf2
import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from otf2 import events as ev

from tests.tracedsl import trace_from_text


def values(result, metric):
    """Return the values of a metric by the names of call paths, without the program."""
    rows = result.severities(metric).to_pylist()
    return {"/".join(row["callpath"][1:]): round(row["value"], 9) for row in rows if len(row["callpath"]) > 1}


def folded(text, directory):
    return whywait.analyze(trace_from_text(text, directory), fold_recursion=True)


def warnings(result):
    return {(one["kind"], one["count"]) for one in result.warnings}


def test_a_function_that_calls_itself_is_one_call_path(tmp_path):
    result = folded("0: f [0, 10]\n0: f [1, 9]\n0: f [2, 3]\n0: g [4, 5]", tmp_path)
    assert values(result, "time") == {"f": 9.0, "f/g": 1.0}
    assert values(result, "visits") == {"f": 3, "f/g": 1}
    assert warnings(result) == {("folded_recursion", 2)}


def test_functions_that_call_each_other_have_their_own_time(tmp_path):
    text = "0: f [0, 10]\n0: g [1, 9]\n0: f [2, 8]\n0: g [3, 4]\n0: h [5, 6]"
    result = folded(text, tmp_path)
    # f runs in [0, 1], [2, 3], [4, 5], [6, 8] and [9, 10], where it is innermost.
    assert values(result, "time") == {"f": 6.0, "f/g": 3.0, "f/h": 1.0}
    assert values(result, "visits") == {"f": 2, "f/g": 2, "f/h": 1}


def test_calls_of_libraries_are_not_folded(tmp_path):
    text = "0: f [0, 10]\n0: MPI_Barrier [1, 9]\n0: f [2, 8]\n1: MPI_Barrier [1, 9]"
    assert set(values(folded(text, tmp_path), "time")) == {"f", "f/MPI_Barrier", "f/MPI_Barrier/f", "MPI_Barrier"}


def test_waits_in_recursive_calls_are_found(tmp_path):
    text = """
        0: f [0, 10]
        0: f [1, 9]
        0: MPI_Recv(1) [2, 6]
        1: MPI_Send(0) [5, 6]
    """
    result = folded(text, tmp_path)
    assert values(result, "mpi_latesender") == {"f/MPI_Recv": 3.0}


def test_without_the_option_recursion_stays(tmp_path):
    result = whywait.analyze(trace_from_text("0: f [0, 10]\n0: f [1, 9]", tmp_path))
    assert values(result, "time") == {"f": 2.0, "f/f": 8.0}
    assert not result.warnings


def recursive(directory, depth, functions=("f",)):
    """Write a trace in which functions call each other, each level a microsecond after the one before."""
    with otf2.writer.open(str(directory), timer_resolution=1_000_000) as trace:
        group = trace.definitions.location_group("process", system_tree_parent=trace.definitions.system_tree_node("n"))
        regions = [trace.definitions.region(name) for name in functions]
        writer = trace.event_writer_from_location(trace.definitions.location("thread", group=group))
        for level in range(depth):
            writer(ev.Enter(1 + level, regions[level % len(regions)]))
        for level in range(depth):
            writer(ev.Leave(1 + depth + level, regions[(depth - 1 - level) % len(regions)]))
    return directory


@pytest.mark.parametrize("functions", [("f",), ("f", "g", "h")])
def test_deep_recursion_is_folded_and_told(tmp_path, functions):
    result = whywait.analyze(recursive(tmp_path, 3000, functions), causes=False)
    assert len(result.tree) <= 257 + len(functions)
    [warning] = result.warnings
    assert warning["kind"] == "folded_recursion"
    # Each folds those between it and the outer call of its function, too.
    assert (3000 - len(result.tree)) // len(functions) <= warning["count"] < 3000
    assert result.metrics["visits"].total == 3000
    assert result.metrics["time"].total == pytest.approx(5999e-6)


def peak(directory, *arguments):
    """Return the peak memory of an analysis in a process of its own, MiB."""
    code = "import resource, sys, whywait.cli; whywait.cli.main(sys.argv[1:]); "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", str(directory), *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1])


def test_memory_grows_with_the_events_not_with_the_depth_squared(tmp_path):
    flat, deep = recursive(tmp_path / "flat", 20), recursive(tmp_path / "deep", 20_000)
    before, after = (peak(trace, "-o", str(tmp_path / f"out{i}")) for i, trace in enumerate((flat, deep)))
    assert after - before < 100  # MiB; 40,000 events


@st.composite
def nests(draw):
    """Return a random sequence of calls that nest, as (name, enter, leave)."""
    calls, now, stack = [], 0, []
    for _ in range(draw(st.integers(1, 30))):
        now += 1
        if stack and draw(st.booleans()):
            name, enter = stack.pop()
            calls.append((name, enter, now))
        else:
            stack.append((draw(st.sampled_from("fgh")), now))
    while stack:
        now += 1
        name, enter = stack.pop()
        calls.append((name, enter, now))
    return calls


@given(nests())
def test_each_function_keeps_its_time_and_visits(tmp_path_factory, calls):
    text = "\n".join(f"0: {name} [{enter}, {leave}]" for name, enter, leave in calls)
    trace = trace_from_text(text, tmp_path_factory.mktemp("nest"))
    results = [whywait.analyze(trace, causes=False, fold_recursion=fold) for fold in (False, True)]
    for metric in ("time", "visits"):
        sums = []
        for result in results:
            of = Counter()
            for path, value in values(result, metric).items():
                of[path.split("/")[-1]] += value
            sums.append({name: round(value, 6) for name, value in of.items()})
        assert sums[0] == sums[1]
    # No function is twice on a path.
    assert all(len(set(path.split("/"))) == len(path.split("/")) for path in values(results[1], "visits"))
