"""Time windows: adjacent ones add up to the run, and each agrees with the events."""

import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait.analysis.causes import IDLE, UNATTRIBUTED, critical, delay_costs, total_costs
from whywait.analysis.efficiency.efficiency import scaling
from whywait.cli import main

from tests.programs import programs
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
TRACES = sorted(path.parent for path in DATA.glob("*/traces.otf2"))
THREADS = """
0: main [0, 10]
0: fork [2, 6]
0: !$omp parallel @a.c:1 [2.1, 5.8]
0: !$omp implicit barrier @a.c:3 [5, 5.8]
0.1: !$omp parallel @a.c:1 [2.3, 5.6]
0.1: !$omp implicit barrier @a.c:3 [5.5, 5.6]
"""


def check_tiles(result, cuts):
    """Windows between the cuts add up to the whole run."""
    last = result.facts["length"]
    if last <= 0:
        return
    # A window has at least a tick.
    ticks = {round(cut * last * result.facts["resolution"]) / result.facts["resolution"] for cut in cuts}
    bounds = [0.0, *sorted(cut for cut in ticks if 1e-9 < cut < last - 1e-9), last]
    parts = [result.window(begin, end) for begin, end in pairwise(bounds)]
    for metric in parts[0].metrics:
        if metric.name == "critical_path_imbalance":
            # By how much the path exceeds the average work: what one part has less does not make up for another.
            continue
        sums = defaultdict(float)
        for part in parts:
            cells = part.cells(metric.name)
            for key, value in zip(cells.key.tolist(), cells.value.tolist(), strict=True):
                sums[key] += value
        whole = result.profile.cells(metric.name)
        expected = dict(zip(whole.key.tolist(), whole.value.tolist(), strict=True))
        for key in sums.keys() | expected.keys():
            assert math.isclose(sums[key], expected.get(key, 0.0), rel_tol=1e-9, abs_tol=1e-9 * last), metric.name


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_the_whole_run_is_a_window(trace):
    result = whywait.analyze(trace)
    window = result.window(0, result.facts["length"])
    assert {"comp", "mpi", "mpi_latesender", "mpi_rma_wait_at_fence", "omp_time"} <= {m.name for m in window.metrics}
    for metric in window.metrics:
        part, whole = window.cells(metric.name), result.profile.cells(metric.name)
        assert np.array_equal(part.key, whole.key), metric.name
        assert np.array_equal(part.value, whole.value), metric.name
    for method in ("all", "cube"):
        found = result.efficiencies(method=method, window=(-1, 1e9))
        assert found.values == result.efficiencies(method=method).values
    check_tiles(result, [0.1, 0.25, 0.5, 0.77])


def test_threads_are_moved_to_their_region_in_a_window(tmp_path):
    result = whywait.analyze(trace_from_text(THREADS, tmp_path))
    check_tiles(result, [i / 40 for i in range(40)])
    fork = result.window(2.0, 2.1)
    # The master forks for 0.1 s, and the other thread is on its way.
    assert fork.total("time") == pytest.approx(0.2)
    assert fork.total("omp_fork") == fork.total("omp_management") == pytest.approx(0.2)
    barrier = result.window(5.2, 5.5)
    assert barrier.total("omp_ibarrier_wait") == pytest.approx(0.3)
    assert barrier.total("time") == pytest.approx(0.6)


@settings(max_examples=60)
@given(trace=programs(), cuts=st.lists(st.floats(0, 1), max_size=5))
def test_adjacent_windows_add_up_to_the_run(trace, cuts):
    with tempfile.TemporaryDirectory() as directory:
        check_tiles(whywait.analyze(trace_from_text(trace, directory)), cuts)


@pytest.mark.parametrize("name", ["stencil", "collectives", "sor_locks"])
@pytest.mark.parametrize("window", [(0.32, 0.34), (0.05, 0.6)])
def test_a_window_is_what_the_events_say(name, window):
    """The same from the events themselves, and from the table of wait states."""
    result = whywait.analyze(DATA / name)
    scale = result.facts["resolution"]
    events = [result.run.events(location) for location in range(result.locations.num_rows)]
    zero = min(table["time"][0].as_py() for table in events)
    names = result.run.definitions["Region"]
    region = dict(zip(names["id"].to_pylist(), names["name"].to_pylist(), strict=True))
    expected = defaultdict(float)
    for location, table in enumerate(events):
        stack, since = [], 0.0
        for time, kind, number in zip(*(table[c].to_pylist() for c in ("time", "type", "region")), strict=True):
            now = (time - zero) / scale
            if stack:
                expected[tuple(stack), location] += max(0.0, min(now, window[1]) - max(since, window[0]))
            since = now
            if kind in {"Enter", "ProgramBegin"}:
                stack.append(region.get(number, result.tree.path(0)[0]))
            elif kind in {"Leave", "ProgramEnd"}:
                stack.pop()
    part = result.window(*window)
    cells = part.cells("time")
    found = defaultdict(float)
    for key, value in zip(cells.key.tolist(), cells.value.tolist(), strict=True):
        position, location = divmod(key, part.locations)
        found[tuple(result.tree.path(int(result.tree.preorder[position]))), location] += value
    assert found == pytest.approx({cell: value for cell, value in expected.items() if value > 1e-12})

    waits = defaultdict(float)
    for row in result.wait_states().to_pylist():
        begin = row["leave"] - row["waiting"] if row["kind"].endswith("_completion") else row["enter"]
        waits[row["kind"]] += max(0.0, min(begin + row["waiting"], window[1]) - max(begin, window[0]))
    assert sum(waits.values()) > 0 or window[0] == 0.32
    for kind, value in waits.items():
        # In a collective call a wait begins with the record in it.
        assert part.total(kind) == pytest.approx(value, rel=1e-3, abs=1e-5), kind


FORKED = """
import os, sys, whywait
from whywait import _native

_native.generate("sor-p2p", sys.argv[1], ranks=64, iterations=250, seed=1)  # more than fits into one piece of work
result = whywait.analyze(sys.argv[1], causes=False)
expected = result.window(0.1, 0.5).total("time")
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0 if result.window(0.1, 0.5).total("time") == expected else 1)
"""


def test_a_window_after_a_fork(tmp_path):
    """Threads do not survive a fork, so none may be kept."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "trace")]
    subprocess.run(command, check=True, timeout=120)


def test_metrics_of_a_window_have_values():
    window = whywait.analyze(DATA / "stencil").window(0.5, 0.6)
    late = window["mpi_latesender"]
    assert isinstance(late, whywait.MetricValues)
    assert late.total == window.total("mpi_latesender") > 0
    assert sum(late.by_rank()["value"].to_pylist()) == pytest.approx(late.total)
    assert "mpi_latesender" in window._ipython_key_completions_()
    with pytest.raises(KeyError, match="did you mean mpi_latesender"):
        window["mpi_latesendr"]


def test_efficiencies_of_a_window():
    result = whywait.analyze(DATA / "stencil")
    begin, end = 0.5, 0.6
    found = result.efficiencies("work", window=(begin, end))
    assert found.window == (begin, end)
    assert found.as_dict()["window"] == (begin, end)
    assert found["communication_efficiency"].value == 1
    assert 0.5 < found["load_balance"].value < 1
    part = result.window(begin, end)
    whole = result.efficiencies(window=(begin, end))
    assert whole["load_balance"].inputs["avg(comp)"] == pytest.approx(part.total("comp") / 8)
    assert whole["parallel_efficiency"].inputs["max(elapsed)"] == pytest.approx(end - begin)
    for value in whole:
        formula = value.formula
        for name, number in value.inputs.items():
            formula = formula.replace(name, repr(number))
        assert eval(formula) == pytest.approx(value.value)  # noqa: S307
    first, second = scaling([result, result], windows=[(0.5, 0.6), (0.5, 0.7)])
    assert second["speedup"].value == pytest.approx(0.5, rel=1e-6)
    assert first["speedup"].value == 1


@pytest.mark.parametrize("window", [(1, 1), (2, 1), (5, 9), (-2, -1), (math.nan, 1), (0, math.nan)])
def test_windows_that_make_no_sense(window):
    with pytest.raises(whywait.UsageError, match=r"outside the run|does not begin before it ends"):
        whywait.analyze(DATA / "stencil").efficiencies(window=window)


def test_efficiency_of_a_window_equals_the_api(capsys, tmp_path):
    trace = str(DATA / "stencil")
    assert main(["efficiency", trace, "--window", "500ms:0.6", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["methods"]["all"][0]
    expected = whywait.analyze(trace).efficiencies(window=(0.5, 0.6)).as_dict()
    assert said["window"] == [0.5, 0.6]
    assert {name: one["value"] for name, one in said["efficiencies"].items()} == {
        name: one["value"] for name, one in expected["efficiencies"].items()
    }
    assert main(["efficiency", trace, str(DATA / "sor_p2p"), "--window", "50%:"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["from", "371", "ms", "205", "ms"] in lines
    assert ["to", "742", "ms", "410", "ms"] in lines
    for text in ("1", "a:b", "1:2:3", "1m:2", "-1:2"):
        with pytest.raises(SystemExit, match="2"):
            main(["efficiency", trace, f"--window={text}"])
        assert "is not of the form FROM:TO" in capsys.readouterr().err
    whywait.analyze(trace).write(tmp_path)
    # Of a written result the trace has the events.
    assert main(["efficiency", str(tmp_path), "--window", "500ms:0.6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"]["all"][0]["efficiencies"] == said["efficiencies"]


def costs_of(result, left_out=IDLE):
    """Delay costs by class, call path and location, without idle threads."""
    rows = delay_costs(result).to_pylist()
    cells = {(row["class"], row["callpath"], row["location"]): row["short_term"] + row["long_term"] for row in rows}
    return {cell: cost for cell, cost in cells.items() if cell[0] not in left_out and cost > 1e-12}


def path_of(result):
    cells = result.profile.cells("critical_path")
    return dict(zip(cells.key.tolist(), cells.value.tolist(), strict=True))


def added(parts):
    sums = defaultdict(float)
    for part in parts:
        for cell, value in part.items():
            sums[cell] += value
    return sums


@pytest.mark.parametrize("model", ["thesis", "bounded"])
@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_costs_and_path_of_parts_add_up(trace, model):
    """What is paid for the waiting of a part of the run, and what it has of the critical path."""
    whole = whywait.analyze(trace, cost_model=model)
    last = whole.facts["length"]
    # What waits cost idle threads may be unattributed; parts leave these costs out.
    left_out = {*IDLE, UNATTRIBUTED} if IDLE & total_costs(whole).keys() else IDLE
    expected = costs_of(whole, left_out)
    all_of_it = whywait.analyze(trace, cost_model=model, window=(0, last))
    assert costs_of(all_of_it, left_out) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert path_of(all_of_it) == pytest.approx(path_of(whole), rel=1e-9, abs=1e-9)
    assert all_of_it.tables.wait_states.num_rows == whole.tables.wait_states.num_rows
    bounds = [0, 0.3 * last, 0.55 * last, last]
    parts = [whywait.analyze(trace, cost_model=model, window=window) for window in pairwise(bounds)]
    found = added(costs_of(part, left_out) for part in parts)
    assert found == pytest.approx(expected, rel=1e-5, abs=2e-9)
    assert added(map(path_of, parts)) == pytest.approx(path_of(whole), rel=1e-9, abs=1e-9)
    assert sum(critical(part, 9)["length"] for part in parts) == pytest.approx(critical(whole, 9)["length"])


PART = """
*: MPI_Init [0, 1]
0: f [1, 3]
0: MPI_Send(1) [3, 3]
1: MPI_Recv(0) [1, 3]
1: MPI_Send(2) [3, 3]
2: MPI_Recv(1) [1, 3]
0: g [3, 7]
1: g [3, 5]
0: MPI_Send(1) [7, 7]
1: MPI_Recv(0) [5, 7]
*: MPI_Finalize [8, 9]
"""


def test_what_is_paid_for_lies_in_the_window_what_pays_need_not(tmp_path):
    """In [2, 6]: 1 s of each of the first two waits, for f; 1 s of the last, for g. The path is on rank 0 all along."""
    result = whywait.analyze(trace_from_text(PART, tmp_path), window=(2, 6))
    tree = result.tree
    costs = {(kind, tree.path(path)[-1]): cost for (kind, path, _), cost in costs_of(result).items()}
    assert costs == pytest.approx({("latesender", "f"): 2, ("latesender", "g"): 1})
    assert result.profile.total("mpi_latesender") == pytest.approx(3)
    path = {place["callpath"][-1]: place["time"] for place in critical(result, 9)["callpaths"]}
    assert path == pytest.approx({"f": 1, "g": 3})
    # Two of three ranks do not wait for g in it: an average of (3 + 2) / 3 s.
    imbalance = {place["callpath"][-1]: place["imbalance"] for place in critical(result, 9)["callpaths"]}
    assert imbalance == pytest.approx({"f": 1 - 1 / 3, "g": 3 - 5 / 3})
    assert result.tables.wait_states.num_rows == 3
    assert whywait.analyze(tmp_path, window=(0, 3)).tables.wait_states.num_rows == 2


def test_owners_of_a_lock_pay_for_the_part_of_the_waits_in_the_window(tmp_path):
    """Two threads wait for the master until 3, one for the next owner from 3.5 on."""
    trace = trace_from_text(
        """
        0: fork [0, 10]
        0: !$omp parallel @a.c:1 [0, 10]
        0: !$omp critical @a.c:2(order=1) [1, 3] @1, 3
        0.1: !$omp parallel @a.c:1 [0, 10]
        0.1: !$omp critical @a.c:2(order=2) [1.5, 5] @3.5, 5
        0.2: !$omp parallel @a.c:1 [0, 10]
        0.2: !$omp critical @a.c:2(order=3) [2, 6] @5, 6
        """,
        tmp_path,
    )
    part = whywait.analyze(trace, window=(2.5, 4))
    costs = part.profile.cells("interval_delay_lock")
    assert dict(zip((costs.key % 3).tolist(), costs.value.tolist(), strict=True)) == pytest.approx({0: 1.0, 1: 0.5})
    assert part.metrics["delay_unattributed"].total == pytest.approx(0.5)


def test_a_window_cannot_be_written_or_explained(tmp_path):
    part = whywait.analyze(DATA / "stencil", window=(0.5, 0.6))
    for write in (part.write, part.write_html):
        with pytest.raises(whywait.UsageError, match="whole run can be written"):
            write(tmp_path / "x")
    with pytest.raises(whywait.UsageError, match="analyze the whole"):
        part.explain(0)
    with pytest.raises(whywait.UsageError, match="is empty"):
        whywait.analyze(DATA / "stencil", window=(2, 1))


def test_the_report_of_a_window_names_it(capsys):
    assert main(["tree", str(DATA / "stencil"), "--window", "0.5:600ms"]) == 0
    assert capsys.readouterr().out.startswith("Focus: 500 ms to 600 ms (a window), 100 ms.\n\nMetrics  ")


@pytest.mark.parametrize("verb", ["tree", "waits", "delay", "critical"])
def test_verbs_take_a_window(verb, capsys, tmp_path):
    trace = str(DATA / "stencil")
    assert main([verb, trace, "--window", "50%:", "--json"]) == 0
    part = capsys.readouterr().out
    assert main([verb, trace, "--json"]) == 0
    assert json.loads(part) != json.loads(capsys.readouterr().out)
    whywait.analyze(trace).write(tmp_path)
    assert main([verb, str(tmp_path), "--window", "50%:", "--json"]) == 0
    assert capsys.readouterr().out == part
    assert main([verb, trace, "--window", "50%:", "--callpath", "solve"]) == 0
    assert capsys.readouterr().out
    assert main([verb, trace, "--window", "5:9"]) == 2
    assert "outside the run" in capsys.readouterr().err


def test_two_runs_are_compared_in_a_window(capsys):
    trace = str(DATA / "stencil")
    assert main(["diff", trace, trace, "--window", "0.5:0.6", "--json"]) == 0
    metrics = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["metrics"]}
    assert metrics["time"]["first"] == metrics["time"]["second"] == pytest.approx(0.8)
    assert metrics["critical_path"]["first"] == pytest.approx(0.1, rel=0.01)
