"""What waiting is, and that all that is said of it adds up: on every trace that ships, and on those beside this
checkout."""

import re
from pathlib import Path

import pytest
import whywait
from whywait import _native
from whywait.analysis.waiting import PARTS, account

from tests.fake_native import SHARED
from tests.results import UNRECORDED
from tests.tracedsl import trace_from_text

ROOT = Path(__file__).parents[1]
SHIPPED = sorted(anchor.parent for anchor in (ROOT / "tests/data").glob("*/traces.otf2"))
BESIDE = sorted(anchor.parent for kind in ("cases", "real") for anchor in SHARED.glob(f"{kind}/*/archive/traces.otf2"))
# Delay costs at barriers pay for the tasks in them as well.
TASKS = {"omp_tasks"}
# The barriers of a nested team are waited for in those of the outer one.
NESTED = {"omp_nested"}


def name(directory: Path) -> str:
    return directory.parent.name if directory.name == "archive" else directory.name


def adds_up(result: whywait.Result, case: str) -> None:
    found = account(result.profile)
    close = pytest.approx
    time = result.metrics["time"].total
    assert found["time"] == time
    assert tuple(found["parts"]) == PARTS
    assert sum(found["parts"].values()) == close(time, rel=1e-9)
    assert min(found["parts"].values()) >= -1e-9 * time or case in NESTED
    assert sum(found["wait_states"].values()) == close(found["waiting"], rel=1e-9)
    assert found["parts"]["waiting"] == close(found["waiting"], rel=1e-9)
    assert result.metrics["waiting"].total == close(found["waiting"], rel=1e-9)
    assert found["known"] + found["unknown"] == close(found["waiting"], rel=1e-9)
    # Nothing is charged twice: all costs of waiting add up to the known waiting.
    costs = [(row["class"], row["short_term"] + row["long_term"]) for row in result.delay_costs().to_pylist()]
    known = sum(cost for kind, cost in costs if kind not in {"unattributed", "ompidle"})
    if case not in TASKS:
        assert known == close(found["known"], rel=1e-9, abs=1e-12)
        unattributed = sum(cost for kind, cost in costs if kind == "unattributed")
        assert found["unknown"] <= unattributed + 1e-9 * time
    summary = result.summary(focus="all")
    assert summary["focus"]["account"] == found
    places = summary["focus"]["worst"]
    assert sum(place["waiting"] for place in places) <= found["waiting"] * (1 + 1e-9)
    assert {place["metric"] for place in places} <= found["wait_states"].keys()
    causes = summary["focus"]["causes"]
    assert sum(cause["share"] for cause in causes) <= 1 + 1e-9
    assert found["charged"] <= found["waiting"] * (1 + 1e-9) or case in TASKS
    assert all(cause["costs"] == close(cause["share"] * max(found["waiting"], found["charged"])) for cause in causes)
    focus_adds_up(result, case, found)


def focus_adds_up(result: whywait.Result, case: str, whole: dict) -> None:
    focus = result.summary()["focus"]
    found = focus["account"]
    close = pytest.approx
    time = whole["time"]
    assert sum(found["parts"].values()) == close(found["time"], rel=1e-9)
    assert found["time"] + focus["outside"]["time"] == close(time, rel=1e-9)
    assert found["waiting"] + focus["outside"]["waiting"] == close(whole["waiting"], rel=1e-9)
    assert sum(found["wait_states"].values()) == close(found["waiting"], rel=1e-9)
    told = found["known"] + found["elsewhere"] + found["unknown"]
    assert told == close(found["waiting"], rel=1e-9, abs=1e-15)
    assert min(found[name] for name in ("known", "elsewhere", "unknown")) >= -1e-12 * time
    if case not in TASKS:
        # Costs are paid for the waits in the focus, for all of them that have a cause, and for no others.
        assert found["charged"] == close(found["known"] + found["elsewhere"], rel=1e-9, abs=1e-9 * time)
        unattributed = sum(
            row["short_term"] + row["long_term"]
            for row in result.delay_costs().to_pylist()
            if row["class"] == "unattributed"
        )
        assert found["unknown"] <= unattributed + 1e-9 * time
        assert found["known"] + found["elsewhere"] <= whole["known"] * (1 + 1e-9) + 1e-12
        told = sum(cause["costs"] for cause in focus["causes"]) + focus["passed_on"]
        assert told <= found["known"] * (1 + 1e-9) + 1e-12
        assert sum(cause["share"] for cause in focus["causes"]) <= 1 + 1e-9
    assert not any(cause["callpath"][-1].startswith("MPI_") for cause in focus["causes"])
    assert sum(place["waiting"] for place in focus["worst"]) <= found["waiting"] * (1 + 1e-9)
    path = focus["critical_path"]
    # Threads of a team can be on the path side by side.
    if focus["window"] and "openmp" not in result.tree.paradigms:
        begin, end = focus["window"]
        assert path["length"] <= end - begin + overlaps(result) + 1e-9 * (1 + end - begin)
    assert not any(re.search("MPI_(Init|Finalize)", place["callpath"][-1]) for place in path["callpaths"])


def overlaps(result: whywait.Result) -> float:
    """How much later the path leaves locations than it comes to the next: nothing, unless clocks disagree."""
    path = result.critical_path()
    ends, begins = path["to"].to_numpy()[:-1], path["from"].to_numpy()[1:]
    overlap = float((ends - begins).clip(min=0).sum())
    assert overlap <= 1e-9 or any(result.facts[f"clock_violations_{kind}"] for kind in ("p2p", "coll"))
    return overlap


@pytest.mark.parametrize("directory", SHIPPED, ids=name)
def test_shipped_traces_add_up(directory):
    adds_up(whywait.analyze(directory), name(directory))


def test_traces_beside_this_checkout_add_up():
    if not BESIDE:
        pytest.skip(UNRECORDED)
    for directory in BESIDE:
        adds_up(whywait.analyze(directory), name(directory))


def test_kernels_are_time_of_devices_and_no_computation(tmp_path):
    _native.generate("comd-gpu", tmp_path, ranks=2, iterations=2, seed=1)
    result = whywait.analyze(tmp_path)
    metrics, parts = result.metrics, account(result.profile)["parts"]
    assert sum(parts.values()) == pytest.approx(metrics["time"].total)
    kernels = metrics["hip_kernel_executions"].total
    assert 0 < parts["computation"] == pytest.approx(metrics["comp"].total - kernels)


def test_idle_threads_are_time_but_no_waiting():
    directory = SHARED / "cases/hyb_imbalance/archive"
    if not directory.is_dir():
        pytest.skip(UNRECORDED)
    without, found = (account(whywait.analyze(directory, idle_threads=idle).profile) for idle in (False, True))
    assert found["parts"]["idle_threads"] > 0
    assert found["time"] == pytest.approx(without["time"] + found["parts"]["idle_threads"])
    assert found["waiting"] == without["waiting"]
    assert sum(found["parts"].values()) == pytest.approx(found["time"])


def test_causes_that_were_not_looked_for_are_not_known():
    result = whywait.analyze(SHIPPED[0], causes=False)
    found = account(result.profile)
    assert (found["known"], found["unknown"], found["idle_costs"]) == (None, None, None)
    assert (result.summary()["focus"]["causes"], result.summary()["focus"]["idle"]) == (None, None)


def test_completion_is_no_waiting():
    result = whywait.analyze(ROOT / "tests/data/collectives")
    waiting = result.metrics["waiting"].total
    completion = sum(result.metrics[m].total for m in result.metrics if m.endswith("_completion"))
    assert completion > 0
    assert result.summary()["waiting"] == pytest.approx(
        {"total": waiting, "share": waiting / result.metrics["time"].total, "completion": completion}
    )
    assert account(result.profile)["parts"]["completion"] == pytest.approx(completion)


def test_the_table_of_the_guide_is_what_its_trace_gives(tmp_path):
    guide = (ROOT / "docs/guide.md").read_text(encoding="utf-8").split("### How the numbers add up")[1]
    guide = guide.split("\n## ")[0]
    result = whywait.analyze(trace_from_text(re.search(r"```trace\n(.*?)```", guide, re.DOTALL)[1], tmp_path))
    rows = [line.strip("| ").replace("`", "") for line in guide.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in re.split(r"\s*\|\s*", row)] for row in rows]
    columns = [{row[i]: float(row[i + 1]) for row in cells if len(row) > i + 1 and row[i]} for i in (0, 2, 4)]
    sums = [column.pop("**sum**") for column in columns]
    found = result.summary(focus="all")["focus"]
    parts, states = found["account"]["parts"], found["account"]["wait_states"]
    assert columns[0] == pytest.approx({part: value for part, value in parts.items() if value})
    assert columns[1] == pytest.approx(states)
    causes = {"/".join(cause["callpath"][1:]): cause["costs"] for cause in found["causes"]}
    assert columns[2] == pytest.approx({**causes, "no known cause": found["account"]["unknown"]}, abs=5e-4)
    assert sums == pytest.approx([found["account"]["time"], *[found["account"]["waiting"]] * 2], abs=5e-4)
    assert f"{found['account']['share']:.1%}" in guide
    assert f"cost another {found['account']['idle_costs']:.1f} s" in guide
