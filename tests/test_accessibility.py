"""Every view of every page can be used: axe-core finds nothing in light and in dark, and nothing is cut off."""

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
PAGES = ("report", "hybrid", "compare", "whatif", "series")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("axe")
    stencil, fence = (whywait.analyze(DATA / name) for name in ("stencil", "sor_fence"))
    found = {name: directory / f"{name}.html" for name in PAGES}
    stencil.write_html(found["report"])
    whywait.analyze(DATA / "omp_nested").write_html(found["hybrid"])
    whywait.compare(stencil, fence).write_html(found["compare"])
    whywait.whatif(stencil, [Balance("relax/work")]).write_html(found["whatif"])
    whywait.series([fence, stencil], names=["a", "b"]).write_html(found["series"])
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_has_no_findings(browser, pages, page, scheme):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    viewer = Viewer(browser, pages[page]).open()
    viewer.js(files(AXE).joinpath("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
    # This version of axe takes every link to a view for a skip link, which needs a target in the page.
    rules = "{ rules: { 'skip-link': { enabled: false } } }"
    findings = {}
    for view in viewer.views:
        viewer.show(view)
        viewer.js(f"window.found = undefined; axe.run(document, {rules}).then((all) => {{ window.found = all; }})")
        viewer.until("window.found !== undefined")
        findings[view] = [
            f"{finding['id']} ({finding['impact']}): {finding['help']}: "
            + "; ".join(node["html"][:160] for node in finding["nodes"][:3])
            for finding in json.loads(viewer.js("return JSON.stringify(window.found.violations)"))
        ]
    assert len(findings) > 1
    assert not any(findings.values()), findings


def test_skip_link(browser, pages):
    viewer = Viewer(browser, pages["report"]).open("#timeline")
    viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert viewer.js("return document.activeElement.textContent") == "Skip to the content"
    assert viewer.js("return document.activeElement.getBoundingClientRect().top") >= 0
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert viewer.js("return document.activeElement.id") == "view"
    # The view stays, and the next tab stop is inside it.
    assert viewer.js("return location.hash").startswith("#timeline")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert viewer.js("return document.activeElement.closest('#view .toolbar') !== null")


@pytest.mark.parametrize("page", PAGES)
def test_each_view_has_one_heading(browser, pages, page):
    viewer = Viewer(browser, pages[page]).open()
    for view in viewer.views:
        viewer.show(view)
        viewer.until("document.querySelectorAll('h1').length === 1")


@pytest.mark.parametrize("width", [400, 800])
@pytest.mark.parametrize("page", PAGES)
def test_narrow_windows_do_not_scroll_sideways(browser, pages, page, width):
    # Chromium's windows cannot be that narrow, but its emulated screens can.
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    viewer = Viewer(browser, pages[page]).open()
    for view in viewer.views:
        viewer.show(view)
        assert viewer.js("return document.documentElement.scrollWidth") <= width, view
    viewer.is_well()
