"""No page has an accessibility finding: axe-core, in light and in dark, in every view."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
import whywait
from whywait.hypotheses import Balance

from tests.browser import Viewer

Keys = pytest.importorskip("selenium.webdriver.common.keys", reason="the package selenium drives the browser").Keys
AXE = pytest.importorskip("axe_selenium_python", reason="the package axe-selenium-python brings axe-core")
DATA = Path(__file__).parent / "data"
VIEWS = {
    "report": ("overview", "explore?metric=mpi_wait_nxn", "functions", "timeline", "communication"),
    "hybrid": ("overview", "explore", "timeline"),
    "compare": ("changes", "differences"),
    "whatif": ("changes", "timelines"),
    "series": ("runs", "scaling"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("axe")
    stencil, fence = (whywait.analyze(DATA / name) for name in ("stencil", "sor_fence"))
    found = {name: directory / f"{name}.html" for name in VIEWS}
    stencil.write_html(found["report"])
    whywait.analyze(DATA / "omp_nested").write_html(found["hybrid"])
    whywait.compare(stencil, fence).write_html(found["compare"])
    whywait.whatif(stencil, [Balance("relax/work")]).write_html(found["whatif"])
    whywait.series([fence, stencil], names=["a", "b"]).write_html(found["series"])
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("page", "view"), [(page, view) for page, views in VIEWS.items() for view in views])
def test_axe_finds_nothing(browser, pages, page, view, scheme):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        viewer = Viewer(browser, pages[page]).open(f"#{view}")
        viewer.until("document.querySelector('#view').childElementCount")
        if view in {"timeline", "timelines"}:
            viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
        viewer.js(files(AXE).joinpath("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
        # This version of axe takes every link to a view for a skip link, which needs a target in the page.
        rules = "{ rules: { 'skip-link': { enabled: false } } }"
        viewer.js(f"axe.run(document, {rules}).then((found) => {{ window.found = JSON.stringify(found.violations); }})")
        viewer.until("window.found !== undefined")
        findings = [
            f"{finding['id']} ({finding['impact']}): {finding['help']}: "
            + "; ".join(node["html"][:160] for node in finding["nodes"][:3])
            for finding in json.loads(viewer.js("return window.found"))
        ]
        assert findings == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_keyboard_skips_what_is_on_top(browser, pages):
    viewer = Viewer(browser, pages["report"]).open("#timeline")
    viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert viewer.js("return document.activeElement.textContent") == "Skip to the content"
    assert viewer.js("return document.activeElement.getBoundingClientRect().top") >= 0
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert viewer.js("return document.activeElement.id") == "view"
    # The view stays, and the next stop is in it.
    assert viewer.js("return location.hash").startswith("#timeline")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert viewer.js("return document.activeElement.closest('#view .toolbar') !== null")


@pytest.mark.parametrize(("page", "view"), [(page, view) for page, views in VIEWS.items() for view in views])
def test_each_view_has_one_heading_of_its_own(browser, pages, page, view):
    viewer = Viewer(browser, pages[page]).open(f"#{view}")
    viewer.until("document.querySelectorAll('h1').length === 1")
