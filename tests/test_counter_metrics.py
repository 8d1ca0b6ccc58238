"""Counters in the metric tree: the same root in the result, on disk, in the terminal, the page and the Cube report."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import whywait
from otf2.enums import MetricMode
from whywait.analysis.runs.compare import differences, totals
from whywait.cli import main
from whywait.report.cube import write_cube
from whywait.report.html.places import Resolution
from whywait.report.trees import tree_data

from tests.browser import Viewer
from tests.test_counters import archive, counter

STENCIL = Path(__file__).parent / "data" / "stencil"


def trace(place):
    """A level: 4 in main and 8 in f of rank 0, 6 in main of rank 1. A total: 50 in f, 10 in main of rank 1."""
    counters = [counter("level", MetricMode.ABSOLUTE_NEXT), counter("total")]
    first = [(0, "enter", "main"), (0, 0, (4,)), (50, 0, (8,)), (50, 1, (0,)), (50, "enter", "f"), (100, 1, (50,)),
             (100, "leave", "f"), (100, "leave", "main")]  # fmt: skip
    second = [(0, "enter", "main"), (0, 0, (6,)), (0, 1, (0,)), (100, 1, (10,)), (100, "leave", "main")]
    return archive(place, counters, [first, second], [0, 1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("tree")
    assert main(["analyze", str(trace(place)), "-o", str(place / "result"), "--html", "--quiet"]) == 0
    return place / "result"


@pytest.fixture(scope="module")
def results(written):
    """The result of an analysis, and the same read from disk."""
    read = whywait.load(written)
    return whywait.analyze(read.run.path), read


def test_counters_have_a_root(results):
    for result in results:
        metrics = result.metrics
        assert metrics["counters"].children == ["total", "level", "max:level"]
        assert {metrics[name].parent for name in ("total", "level", "max:level")} == {"counters"}
        assert (metrics["total"].total, metrics["level"].total) == (60, 4 * 5 + 8 * 5 + 6 * 10)
        assert [metrics[name].unit for name in ("counters", "total", "level", "max:level")] == ["", "#", "# sec", "#"]


def test_what_a_level_needs_for_its_mean_is_not_shown(results, written):
    for result in results:
        assert "seconds:level" not in result.metrics
        assert result.profile.total("seconds:level") == 20
    assert "seconds:level" not in pq.read_table(written / "severities.parquet")["metric"].to_pylist()
    assert "seconds:level" not in pq.read_table(written / "metrics.parquet")["metric"].to_pylist()


def test_neighbors_share_a_place(results):
    """Two ranks in one place of a page: sums of totals, the largest of maxima."""
    resolution = Resolution(2, exact=True)
    columns = resolution.of_metric(results[0].profile, "max:level")
    assert (columns["place"].tolist(), columns["value"].tolist()) == ([0, 0], [6, 8])
    assert resolution.of_metric(results[0].profile, "level")["value"].tolist() == [80, 40]


def test_a_maximum_combines_to_the_largest_value(results):
    for result in results:
        largest = result.metrics["max:level"]
        assert largest.total == 8
        assert largest.by_rank()["value"].to_pylist() == [8, 6]
        rows = largest.by_callpath().select(["path", "value", "inclusive"]).to_pylist()
        assert [tuple(row.values()) for row in rows] == [("main", 6, 8), ("main/f", 8, 8)]


def test_a_largest_value_may_be_negative(tmp_path):
    streams = [[(0, "enter", "main"), (0, 0, (-7,)), (5, 0, (-3,)), (10, "leave", "main")]]
    result = whywait.analyze(archive(tmp_path, [counter("cold", MetricMode.ABSOLUTE_NEXT)], streams))
    assert result.metrics["max:cold"].total == -3
    assert result.metrics["max:cold"].by_callpath()["inclusive"].to_pylist() == [-3]


def test_the_terminal_shows_the_root(results, written, capsys):
    data = tree_data(results[0], "max:level")
    rows = {row["name"]: row for row in data["metrics"]}
    assert rows["counters"] == {
        "name": "counters", "label": "Counters", "unit": "", "depth": 0, "value": None, "share": None
    }  # fmt: skip
    assert [(rows[name]["depth"], rows[name]["share"]) for name in ("total", "level", "max:level")] == [(1, 1.0)] * 3
    assert [(row["name"], row["value"]) for row in data["callpaths"]] == [("main", 8), ("f", 8)]
    assert [row["value"] for row in data["ranks"]] == [8, 6]
    assert main(["tree", str(written), "--metric", "max:level", "--callpath", "f"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Counters" in lines
    assert any(line.split()[:2] == ["max:level", "8"] for line in lines)


def test_differences_have_the_root(written, tmp_path, capsys):
    other = archive(
        tmp_path, [counter("total")], [[(0, "enter", "main"), (0, 0, (0,)), (9, 0, (5,)), (9, "leave", "main")]]
    )
    assert main(["diff", str(written), str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Counters" in lines
    assert lines[lines.index("Counters") + 1].split() == ["total", "60", "5", "-55", "-91.7%"]


def test_the_integral_of_a_level_without_a_unit_is_no_time(tmp_path):
    level = counter("level", MetricMode.ABSOLUTE_NEXT) | {"unit": ""}
    stream = [(0, "enter", "main"), (0, 0, (3,)), (100, "leave", "main")]
    result = whywait.analyze(archive(tmp_path, [level], [stream]))
    assert (result.metrics["level"].unit, result.metrics["level"].total) == ("# sec", 30)


def test_a_run_without_counters_has_no_root():
    result = whywait.analyze(STENCIL)
    assert "counters" not in result.metrics
    assert "counters" not in {row["name"] for row in tree_data(result)["metrics"]}


def test_the_longest_queues_are_in_the_tree_of_a_written_result(tmp_path):
    assert main(["analyze", str(STENCIL), "-o", str(tmp_path / "result"), "--queues", "--quiet"]) == 0
    read, fresh = whywait.load(tmp_path / "result"), whywait.analyze(STENCIL, queues="progress")
    for result in (read, fresh):
        levels = [row for row in result.queue_levels().to_pylist() if row["metric"] == "mpi_requests"]
        of_ranks = {row["rank"]: row["maximum"] for row in levels if row["rank"] is not None}
        metric = result.metrics["mpi_max_requests"]
        assert metric.parent == "counters"
        assert metric.total == max(of_ranks.values())
        assert {row["rank"]: row["value"] for row in metric.by_rank().to_pylist()} == of_ranks
    assert read.queue_levels().equals(fresh.queue_levels())
    write_cube(read, tmp_path / "again.cubex", "report.stat")
    assert (tmp_path / "again.cubex").read_bytes() == (tmp_path / "result" / "report.cubex").read_bytes()


def test_differences_of_maxima(results, tmp_path):
    other = whywait.analyze(archive(tmp_path, [counter("level", MetricMode.ABSOLUTE_NEXT)],
        [[(0, "enter", "main"), (0, 0, (1,)), (100, "leave", "main")]]))  # fmt: skip
    for callpath in (None, "main"):
        found = {row["metric"]: row for row in totals(results[0], other, callpath=callpath)}
        assert (found["max:level"]["first"], found["max:level"]["second"]) == (8, 1)
    rows = differences(results[0], other, ["max:level"]).to_pylist()
    assert {tuple(row["callpath"]): (row["first"], row["second"]) for row in rows} == {
        ("main",): (6, 1),
        ("main", "f"): (8, 0),
    }


def test_the_explorer_has_the_root(browser, written):
    viewer = Viewer(browser, written / "report.html").open("#explore?metric=max:level")
    rows = viewer.rows("metrics")
    assert rows["Counters"] == ""
    assert [rows[name] for name in ("total", "level", "max:level")] == ["60", "120", "8"]
    assert viewer.rows("call-tree") == {"main": "8"}
    viewer.press("#tree-call-tree", "ArrowRight")
    assert viewer.rows("call-tree") == {"main": "6", "f": "8"}
    viewer.open("#explore?metric=max:level")
    viewer.until("document.querySelectorAll('#tree-system .value').length > 1")
    assert [value for value in viewer.rows("system").values() if value] == ["8", "6"]
    viewer.open("#explore?metric=level")
    assert viewer.text(".crumbs") == "level in main: 120 # sec, mean 6"
    assert viewer.rows("call-tree") == {"main": "120"}
    viewer.open("#explore?metric=level&call=1")
    assert viewer.text(".crumbs") == "level in f: 40 # sec, mean 8"
    viewer.open("#explore?metric=counters")
    assert viewer.text(".crumbs") == "Counters in main"
    viewer.is_well()


def test_maps_and_distributions_leave_metric_locations_out(browser, tmp_path):
    """A metric location between two threads: 0 to 40 of a counter of the process, half on each thread."""
    thread = [(0, "enter", "main"), (100, "leave", "main")]
    streams = [thread, [(0, 0, (0,)), (100, 0, (40,))], thread]
    result = whywait.analyze(archive(tmp_path, [counter("shared", scope="group")], streams, [0, 0, 0]))
    result.write_html(tmp_path / "page.html")
    viewer = Viewer(browser, tmp_path / "page.html").open("#explore?metric=shared")
    label = "document.querySelector('.map canvas').getAttribute('aria-label')"
    viewer.until(f"{label} !== null")
    assert viewer.js(f"return {label}") == "2 places, from 20 to 20"
    assert viewer.text(".legend .mean") == "mean 20"
    assert len(viewer.texts(".boxes .whole .dots i")) == 2
    viewer.is_well()


def test_the_front_page_leaves_metric_locations_out(browser, tmp_path):
    thread = [(0, "enter", "main"), (100, "leave", "main")]
    streams = [thread, [(0, 0, (0,)), (100, 0, (40,))], thread]
    result = whywait.analyze(archive(tmp_path, [counter("shared", scope="group")], streams, [0, 0, 0]))
    result.write_html(tmp_path / "page.html")
    viewer = Viewer(browser, tmp_path / "page.html").open("#overview")
    assert "by thread; highest" in viewer.text(".by-rank + figcaption")
    assert "and stays on one location" in viewer.text("main")
    viewer.is_well()
