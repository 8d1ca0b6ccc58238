"""The traces that ship with the project show the waiting which their programs' own delays must cause."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest
import whywait

DATA = Path(__file__).parent / "data"
# In rma_lock two ranks give back a lock of all without having used it: who took part cannot be known.
WARNINGS = {"rma_lock_sm": {"unknown_targets"}, "rma_lock_pt2pt": {"unknown_targets"}}
TRACES = sorted(path.parent.name for path in DATA.glob("*/expected.json"))


@pytest.fixture(scope="module", params=TRACES)
def trace(request):
    return DATA / request.param


@pytest.fixture(scope="module")
def result(trace):
    return whywait.analyze(trace)


@pytest.fixture(scope="module")
def known(trace, result):
    """The known waiting of the trace, in metrics of this version."""
    entries = json.loads((trace / "expected.json").read_text())
    computed = [entry for entry in entries if all(name in result.metrics for name in entry["metrics"])]
    if not computed:
        pytest.skip("this version computes none of the metrics that something is known of")
    return computed


def contains(callpath, regions):
    return f"/{regions}/" in f"/{'/'.join(callpath)}/"


def place(entry):
    return f"{'+'.join(entry['metrics'])} at {entry['callpath']} on rank {entry['rank']}"


def test_waiting_is_as_long_as_the_delay(result, known):
    rows = {name: result.severities(name).to_pylist() for entry in known for name in entry["metrics"]}
    differences = []
    for entry in known:
        found = sum(
            row["value"]
            for name in entry["metrics"]
            for row in rows[name]
            if row["rank"] == entry["rank"] and contains(row["callpath"], entry["callpath"])
        )
        if abs(found - entry["seconds"]) > entry["tolerance"]:
            differences.append(f"{place(entry)}: {found:.6f} s, expected {entry['seconds']:.6f} s")
    assert not differences, "\n".join(differences)


def test_the_delayed_rank_is_blamed(result, known):
    """Of a single metric: where several add up, a rank waits for neighbors that wait for the one to blame."""
    waits = result.wait_states().to_pylist()
    differences = []
    for entry in known:
        if entry["cause"] is None or not entry["seconds"] or len(entry["metrics"]) > 1:
            continue
        mine = [
            wait
            for wait in waits
            if wait["kind"] in entry["metrics"]
            and wait["rank"] == entry["rank"]
            and contains(wait["callpath"], entry["callpath"])
        ]
        # Wrong order is kept as a metric of the Late Sender, not as a wait state of its own.
        blamed = max(mine, key=lambda wait: wait["waiting"])["cause_rank"] if mine else entry["cause"]
        if blamed != entry["cause"]:
            differences.append(f"{place(entry)}: rank {blamed} is blamed, not {entry['cause']}")
    assert not differences, "\n".join(differences)


def test_recorded_traces_have_only_the_known_warnings(trace, result):
    assert whywait.open(trace).oddities == []
    assert {warning["kind"] for warning in result.warnings} == WARNINGS.get(trace.name, set())
    assert result.facts["clock_violations_p2p"] == 0


def test_wait_states_add_up(result):
    """Each wait state is kept as an instance, and together they are the metric."""
    waits = result.wait_states()
    assert pc.all(pc.greater(waits["waiting"], 0)).as_py() is not False
    assert not set(waits["kind"].to_pylist()) - set(result.metrics)
    for row in waits.group_by("kind").aggregate([("waiting", "sum")]).to_pylist():
        assert row["waiting_sum"] == pytest.approx(result.metrics[row["kind"]].total, abs=1e-9), row["kind"]


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="needs otf2-print (Debian's otf2-tools)")
def test_official_tool_reads_it_without_a_word(trace):
    printed = subprocess.run(
        ["otf2-print", "-A", trace / "traces.otf2"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "warning" not in (printed.stdout + printed.stderr).lower()
    assert "error" not in printed.stderr.lower()


def test_readme_shows_what_its_command_prints(tmp_path):
    readme = DATA.parents[1] / "README.md"
    shown = readme.read_text().split("```text\n")[1].split("```")[0]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "whywait", "demo"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == shown


@pytest.mark.parametrize(
    ("place", "name"), [("jacobi", "jacobi"), ("jacobi/archive", "jacobi"), ("traces/jacobi", "jacobi")]
)
def test_a_run_is_called_by_what_says_something(tmp_path, place, name):
    shutil.copytree(DATA / "stencil", tmp_path / place)
    assert whywait.open(tmp_path / place).name == name
