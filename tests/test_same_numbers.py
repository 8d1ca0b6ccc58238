"""However a result is shown, its numbers are the same: Python, Parquet, Cube, HTML, terminal, JSON, Perfetto."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import whywait
from whywait import load
from whywait.cli import main
from whywait.report.values import quantity

from tests.browser import Page
from tests.test_html import check_numbers

DATA = Path(__file__).parent / "data"
TRACES = ["stencil", "collectives", "p2p", "rma_gats_rdma", "rma_lock_sm", "sor_fence", "sor_locks"]


@pytest.fixture(scope="module", params=TRACES)
def run(request, tmp_path_factory):
    result = whywait.analyze(DATA / request.param)
    directory = tmp_path_factory.mktemp(request.param)
    result.write(directory, html=True)
    return result, directory


def cells_of(result):
    """Every metric at every call path and location, of the tables that Python gives."""
    found = {}
    for name in result.metrics:
        rows = result.severities(name).to_pylist()
        if rows:
            found[name] = {(row["callpath_id"], row["location"]): row["value"] for row in rows}
    return found


def test_tables_have_the_numbers_of_the_analysis(run):
    result, _ = run
    for name, cells in cells_of(result).items():
        metric = result.metrics[name]
        total = math.fsum(cells.values())
        assert math.isclose(metric.total, total, rel_tol=1e-9), name
        assert math.isclose(sum(metric.by_rank()["value"].to_pylist()), total, rel_tol=1e-9, abs_tol=1e-12), name
        assert math.isclose(sum(metric.by_callpath()["value"].to_pylist()), total, rel_tol=1e-9, abs_tol=1e-12), name
    waits = defaultdict(float)
    for row in result.wait_states().to_pylist():
        waits[row["kind"]] += row["waiting"]
    assert waits
    for kind, value in waits.items():
        assert math.isclose(result.metrics[kind].total, value, rel_tol=1e-9), kind


def test_parquet_and_what_is_read_back(run):
    result, directory = run
    found = defaultdict(dict)
    for name in ("severities", "derived"):
        for row in pq.read_table(directory / f"{name}.parquet").to_pylist():
            found[row["metric"]][row["callpath_id"], row["location"]] = row["value"]
    assert found == cells_of(result)
    assert cells_of(load(directory)).keys() == found.keys()
    for name, cells in cells_of(load(directory)).items():
        assert cells == pytest.approx(found[name], rel=1e-12, abs=1e-15), name


def test_cube_has_the_numbers_of_the_analysis(run):
    pycubexr = pytest.importorskip("pycubexr")
    result, directory = run
    expected = cells_of(result)
    with pycubexr.CubexParser(str(directory / "report.cubex")) as cube:
        names = {metric.name for metric in cube.all_metrics()}
        assert expected.keys() <= names == set(result.metrics)
        for name in names - result.profile.void:
            values = cube.get_metric_values(cube.get_metric_by_name(name))
            cells = {}
            for node in cube.all_cnodes():
                for location, value in enumerate(values.cnode_values(node, convert_to_exclusive=True)):
                    cells[node.id, location] = value
            own = expected.get(name, {})
            scale = max(map(abs, own.values()), default=0.0)
            for cell in cells.keys() | own.keys():
                # Inclusive values of derived metrics are stored, so exclusive ones are differences.
                assert math.isclose(
                    cells.get(cell, 0.0), own.get(cell, 0.0), rel_tol=1e-9, abs_tol=1e-9 * scale + 1e-9
                ), name


def test_the_page_has_the_numbers_of_the_analysis(run):
    result, directory = run
    check_numbers(result, Page(directory / "report.html"))


def test_the_summary_has_the_numbers_of_the_analysis(run):
    result, directory = run
    summary = json.loads((directory / "summary.json").read_text())
    assert {name: one["total"] for name, one in summary["metrics"].items()} == {
        name: metric.total for name, metric in result.metrics.items() if not metric.void
    }


def test_the_terminal_has_the_numbers_of_the_analysis(run, capsys):
    result, directory = run
    assert main(["tree", str(directory), "--focus", "all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    shown = {row["name"]: row["value"] for row in said["metrics"]}
    assert len(shown) > 10
    for name, value in shown.items():
        assert math.isclose(value, result.metrics[name].total, rel_tol=1e-12), name
    ranks = {row["rank"]: row["value"] for row in said["ranks"]}
    by_rank = result.metrics["time"].by_rank().to_pydict()
    assert ranks == pytest.approx(dict(zip(by_rank["rank"], by_rank["value"], strict=True)), rel=1e-12)

    assert main(["tree", str(directory), "--focus", "all"]) == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()[1:]
    assert max(map(len, lines)) <= 80
    # The value of a long name is on the next line.
    printed = re.sub(r"([^%█])\n", r"\1", "\n".join(lines)).splitlines()
    for line, row in zip(printed, said["metrics"], strict=True):
        value = quantity(result.metrics[row["name"]].total, row["unit"])
        assert re.fullmatch(rf" *{re.escape(row['label'])}\s+{re.escape(value)}\s+>?\d+\.\d%[ █]*", line), line


def test_efficiencies_are_equal_everywhere(run, capsys):
    result, directory = run
    assert main(["efficiency", str(directory), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["methods"]["all"][0]["efficiencies"]
    page = {one["name"]: one for one in Page(directory / "report.html").story["efficiencies"]}
    for one in result.efficiencies(window=result.summary()["focus"]["window"]):
        assert said[one.name]["value"] == pytest.approx(one.value, rel=1e-12)
        assert page[one.name]["value"] == one.value


def test_the_perfetto_trace_has_the_numbers_of_the_analysis(run, tmp_path):
    pytest.importorskip("perfetto")
    from tests.test_perfetto import Timeline

    result, _ = run
    result.write_timeline(tmp_path / "run.pftrace")
    timeline = Timeline(tmp_path / "run.pftrace")
    waits, calls = defaultdict(float), defaultdict(int)
    for slice_ in timeline.of("wait_state"):
        waits[slice_.arguments["metric"]] += slice_.arguments["waiting"]
    assert waits
    for kind, value in waits.items():
        assert math.isclose(value, result.metrics[kind].total, rel_tol=1e-9), kind
    path = sum(slice_.end - slice_.begin for slice_ in timeline.of("critical_path"))
    table = result.critical_path()
    length = sum(b - a for a, b in zip(table["from"].to_pylist(), table["to"].to_pylist(), strict=True))
    assert path / 1e9 == pytest.approx(length, abs=2e-9 * max(1, table.num_rows))
    for slice_ in timeline.of("region"):
        calls[slice_.name] += 1
    visits = defaultdict(int)
    for row in result.severities("visits").to_pylist():
        visits[row["callpath"][-1]] += round(row["value"])
    assert calls == visits
