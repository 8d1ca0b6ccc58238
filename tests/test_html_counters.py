"""Counters below the timeline of a page: lanes of locations, aggregated by pixel."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import whywait
from otf2.enums import MetricMode
from whywait.cli import main

from tests.browser import Page, Viewer, unpack_document
from tests.test_counters import ASYNC, STRICT, archive, counter
from tests.test_html_timeline import SHOWN, settle


def streams():
    """Two ranks: one counts 100 a second, the other 300 in the second half; a level of the first is 4, then 8."""
    first = [(0, 0, (0,)), (0, "enter", "main"), (0, 1, (4,)), (50, 1, (8,)), (100, 0, (1000,)), (100, "leave", "main")]
    second = [(0, 0, (0,)), (0, "enter", "main"), (50, 0, (0,)), (50, "enter", "late"), (100, 0, (1500,)),
              (100, "leave", "late"), (100, 0, (1500,)), (100, "leave", "main")]  # fmt: skip
    return [first, second]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("lanes")
    counters = [counter(occurrence=STRICT), counter("level", MetricMode.ABSOLUTE_NEXT, occurrence=ASYNC)]
    anchor = archive(place, counters, streams(), [0, 1])
    assert main(["analyze", str(anchor), "-o", str(place / "result"), "--html", "--quiet"]) == 0
    return anchor, place / "result"


def values(page):
    courses = page.blocks["timeline-courses"]
    shape = unpack_document(courses)
    columns = page.columns("timeline-counters")
    return shape, {
        name: columns[str(number)].reshape(shape["rows"], shape["bins"])
        for number, (name, _) in enumerate(shape["counters"])
    }


def test_counter_bins_are_means(written):
    shape, found = values(Page(written[1] / "report.html"))
    assert shape["counters"] == [["c", "#/s"], ["level", "#"]]
    assert (shape["merged"], shape["rows"]) == (1, 2)
    bins = shape["bins"]
    assert found["c"][0] == pytest.approx(100, rel=1e-6)
    assert found["c"][1, : bins // 2] == pytest.approx(0)
    assert found["c"][1, bins // 2 :] == pytest.approx(300)
    assert found["level"][0, : bins // 2] == pytest.approx(4)
    assert found["level"][0, bins // 2 :] == pytest.approx(8)
    assert np.isnan(found["level"][1]).all()


def test_counter_bins_add_up_to_totals(written, tmp_path):
    anchor, result = written
    table = pq.read_table(result / "timeline_counters.parquet")
    result_counters = whywait.load(result).counters
    assert set(table["counter"].to_pylist()) == {found.number for found in result_counters.values()}
    sums = {}
    for row in table.to_pylist():
        key = row["counter"], row["location"]
        sums[key] = sums.get(key, 0) + row["value"] * (row["end"] - row["begin"])
    assert sums == pytest.approx({(0, 0): 1000, (0, 1): 1500, (1, 0): 60})
    assert main(["export", "html", str(result), "-o", str(tmp_path / "again.html")]) == 0
    first, again = Page(result / "report.html"), Page(tmp_path / "again.html")
    assert first.blocks == again.blocks
    assert main(["export", "html", str(anchor), "-o", str(tmp_path / "trace.html")]) == 0
    assert Page(tmp_path / "trace.html").blocks["timeline-counters"] == first.blocks["timeline-counters"]


def test_neighbors_share_a_lane(written, monkeypatch, tmp_path):
    from whywait.report.html import timeline

    monkeypatch.setattr(timeline, "_COUNTER_CELLS", 16)
    whywait.analyze(written[0]).write_html(tmp_path / "page.html")
    shape, found = values(Page(tmp_path / "page.html"))
    assert shape["rows"] * shape["bins"] * len(found) <= 16
    whole = [np.nanmean(found["c"], axis=1).mean(), np.nanmean(found["level"])]
    assert whole == pytest.approx([125, 6])


def test_a_run_without_counters_has_no_lanes(browser, tmp_path):
    whywait.analyze(archive(tmp_path, [], [[(0, "enter", "main"), (10, "leave", "main")]])).write_html(
        tmp_path / "page.html"
    )
    assert not {"timeline-courses", "timeline-counters"} & Page(tmp_path / "page.html").blocks.keys()
    viewer = Viewer(browser, tmp_path / "page.html").open("#timeline")
    viewer.until(SHOWN)
    assert viewer.text(".counters-of") is None


def test_counters_are_drawn_as_lanes(browser, written):
    viewer = Viewer(browser, written[1] / "report.html").open("#timeline")
    viewer.until(SHOWN)
    viewer.click(".counters-of summary")
    viewer.until("document.querySelector('.lanes canvas').dataset.lanes !== undefined")
    lanes = "document.querySelector('.lanes canvas').dataset"
    assert viewer.js(f"return [{lanes}.lanes, Number({lanes}.least), Number({lanes}.most)]") == [
        "2",
        0,
        pytest.approx(300),
    ]
    assert "300 #/s" in viewer.text(".counters-of .scale")
    tones = viewer.js(
        "const canvas = document.querySelector('.lanes canvas');"
        "const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');"
        "copy.drawImage(canvas, 0, 0);"
        "const at = (x, y) => copy.getImageData(Math.round(x * canvas.width), Math.round(y * canvas.height), 1, 1)"
        "  .data.slice(0, 3).join();"
        "return [at(0.4, 0.25), at(0.9, 0.25), at(0.4, 0.75), at(0.9, 0.75)]"
    )
    # The rate of the first rank is constant, between the two rates of the second one.
    assert tones[0] == tones[1]
    assert len(set(tones)) == 3
    # Pointing at a lane shows its value there.
    said = viewer.js(
        "const canvas = document.querySelector('.lanes canvas'); const box = canvas.getBoundingClientRect();"
        "return [[0.9, 0.25], [0.9, 0.75]].map(([x, y]) => {"
        "  canvas.dispatchEvent(new MouseEvent('mousemove', { bubbles: true,"
        "    clientX: box.left + x * box.width, clientY: box.top + y * box.height }));"
        "  return document.getElementById('tip').textContent; })"
    )
    assert said[0].startswith("rank 0 at ")
    assert said[0].endswith("100 #/s")
    assert said[1].startswith("rank 1 at ")
    assert said[1].endswith("300 #/s")
    viewer.js("document.querySelector('.lanes canvas').dispatchEvent(new MouseEvent('mouseleave'))")
    assert viewer.js("return document.getElementById('tip').hidden")
    viewer.js(
        "const list = document.querySelector('.counters-of select'); list.value = '1';"
        "list.dispatchEvent(new Event('change'))"
    )
    settle(viewer)
    assert viewer.js(f"return [{lanes}.lanes, Number({lanes}.most)]") == ["1", 8]
    viewer.js("location.hash = '#timeline?from=1&to=4'")
    viewer.until(f"Number({lanes}.most) === 4")
