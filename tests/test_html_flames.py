"""The flame graph: where time and the critical path are, and what a late rank does more than the others."""

import json
import re
from importlib.resources import files
from math import sqrt

import pytest
import whywait

from tests.browser import Page, Viewer
from tests.test_sampling import deviation, steps
from tests.tracedsl import trace_from_text

BOXES = "return [...document.querySelectorAll('.boxes button')].map((box) => box.getAttribute('aria-label'))"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Rank 0 is half in a, half in b; rank 1 is as long in a, and three times as long in b, which calls x."""
    target = tmp_path_factory.mktemp("flames")
    text = steps(late="a b b/x b/x")
    whywait.analyze(whywait.open(trace_from_text(text, target))).write_html(target / "report.html")
    return target / "report.html"


def shown(browser, path, address):
    viewer = Viewer(browser, path).open(address)
    viewer.until("document.querySelector('.flames')?.dataset.shown !== undefined")
    return viewer


def boxes(viewer):
    return dict(label.split(": ", 1) for label in viewer.js(BOXES))


def test_boxes_are_as_wide_as_their_time(browser, report):
    viewer = shown(browser, report, "#flames")
    found = boxes(viewer)
    # Of 90 s in step, samples give b two thirds.
    whole = Page(report).columns("flames")["time"].sum()
    sd = sqrt(deviation(30, 0.5, 60) ** 2 + deviation(60, 0.75, 120) ** 2)
    assert found["b"] == f"60.0 s ± {1.96 * sd:.2f} s, {60 / whole:.1%}, 120 samples"
    assert found["x"].startswith("30.0 s ± ")
    assert list(found) == ["program", "main", "step", "b", "x", "MPI_Barrier", "a"]
    script = "return [...document.querySelectorAll('.boxes button')].map((box) => [box.textContent, box.style.width])"
    width = {name: float(share.rstrip("%")) for name, share in viewer.js(script)}
    assert width["x"] / width["b"] == pytest.approx(0.5)
    assert viewer.js("return document.querySelectorAll('.boxes .sampled').length") == 3
    viewer.is_well()


def test_the_critical_path_is_that_of_rank_1(browser, report):
    found = boxes(shown(browser, report, "#flames?source=critical"))
    assert found["b"].startswith(f"45.0 s ± {1.96 * deviation(60, 0.75, 120):.2f} s, ")
    assert found["a"].startswith("15.0 s ± ")


def test_the_difference_has_the_sign_and_the_error_of_the_late_rank(browser, report):
    viewer = shown(browser, report, "#flames?source=more")
    assert viewer.js("return document.querySelector('.flames select').selectedOptions[0].textContent") == "rank 1"
    found = boxes(viewer)
    sd = sqrt(deviation(30, 0.5, 60) ** 2 + deviation(60, 0.75, 120) ** 2)
    assert found["b"] == f"45.0 s on rank 1, 15.0 s on others: +30.0 s ± {1.96 * sd:.2f} s, 120 samples"
    assert "which may be chance" in found["a"]
    assert re.match(r"3.\d+ s on rank 1, 3\d.\d s on others: -\d+.\d s$", found["MPI_Barrier"])
    looks = viewer.js(
        "return Object.fromEntries([...document.querySelectorAll('.boxes button')]"
        ".map((box) => [box.textContent, box.className.trim()]))"
    )
    assert looks["b"] == "sampled more"
    assert looks["a"] == "sampled same"
    assert looks["MPI_Barrier"] == "less"
    # The other one does less.
    viewer.js(
        "const one = document.querySelector('.flames select'); one.value = '1'; one.dispatchEvent(new Event('change'))"
    )
    assert "15.0 s on rank 0, 45.0 s on others: -30.0 s" in boxes(viewer)["b"]
    assert "place=0" in viewer.js("return location.hash")
    viewer.is_well()


def test_a_click_shows_one_function_at_full_width(browser, report):
    viewer = shown(browser, report, "#flames")
    viewer.js("[...document.querySelectorAll('.boxes button')].find((box) => box.textContent === 'b').click()")
    assert list(boxes(viewer)) == ["program", "main", "step", "b", "x"]
    width = "return [...document.querySelectorAll('.boxes button')].at(-1).style.width"
    assert viewer.js(width) == "50%"
    # An address shows the same, and the button shows all again.
    again = shown(browser, report, viewer.js("return location.hash"))
    assert list(boxes(again)) == ["program", "main", "step", "b", "x"]
    viewer.js("[...document.querySelectorAll('.flames button')].find((one) => one.textContent === 'All').click()")
    assert len(boxes(viewer)) == 7
    viewer.is_well()


def test_arrow_keys_lead_from_box_to_box(browser, report):
    viewer = shown(browser, report, "#flames")
    viewer.js("document.querySelector('.boxes button').focus()")
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        viewer.js(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))",
            key,
        )
        walked.append(viewer.js("return document.activeElement.textContent"))
    assert walked == ["main", "step", "b", "MPI_Barrier", "b", "step"]
    assert viewer.text(".icicle [role=status]").startswith("step ")


def test_search_marks_functions_and_tells_their_share(browser, report):
    viewer = shown(browser, report, "#flames")
    whole = Page(report).columns("flames")["time"].sum()
    viewer.js(
        "const box = document.querySelector('.flames input'); box.value = 'X'; box.dispatchEvent(new Event('input'))"
    )
    assert viewer.js("return [...document.querySelectorAll('.boxes .found')].map((box) => box.textContent)") == ["x"]
    assert viewer.text(".flames .toolbar .hint") == f"1 box, {30 / whole:.1%}"
    viewer.is_well()


def test_the_statistics_of_a_window_have_its_samples(browser, report):
    viewer = Viewer(browser, report).open("#timeline?from=1&to=3.1&places=0-1")
    viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    viewer.js("document.querySelector('.statistics').open = true")
    viewer.until("document.querySelectorAll('.statistics .boxes button').length")
    # In the first step, rank 0 was seen twice and rank 1 four times.
    assert viewer.text(".of-samples h3") == "6 samples of the call path"
    error = 1.96 * sqrt(2 / 3 * 1 / 3 / 6)
    assert boxes(viewer)["b"] == f"66.7% ± {error:.1%}, 4 samples"
    assert boxes(viewer)["x"].endswith(", 2 samples")
    # Of rank 0 alone, two.
    viewer.js("location.hash = '#timeline?from=1&to=3.1&places=0-0'")
    viewer.until("document.querySelector('.of-samples h3').textContent.startsWith('2 ')")
    viewer.is_well()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_findings_in_the_difference(browser, report, scheme):
    axe = pytest.importorskip("axe_selenium_python", reason="the package axe-selenium-python brings axe-core")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    viewer = shown(browser, report, "#flames?source=more")
    viewer.js(files(axe).joinpath("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
    viewer.js("window.found = undefined; axe.run('.flames').then((all) => { window.found = all; })")
    viewer.until("window.found !== undefined")
    found = json.loads(viewer.js("return JSON.stringify(window.found.violations)"))
    assert [one["nodes"] for one in found] == []


def test_a_run_without_samples_has_a_flame_graph_of_its_events(tmp_path):
    path = trace_from_text("*: main [0, 9]\n0: work [0, 5]\n1: work [0, 8]", tmp_path)
    whywait.analyze(whywait.open(path)).write_html(tmp_path / "report.html")
    rows = Page(tmp_path / "report.html").columns("flames")
    assert (rows["time"].sum(), rows["samples"].sum(), rows["sampled"].sum()) == (18, 0, 0)
