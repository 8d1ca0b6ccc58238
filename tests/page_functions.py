"""A plugin that lists the functions of the pages that no test has run: ``python -m pytest -p tests.page_functions``.

It asks the browser what ran, before each page and after each test. Functions are told apart by their text.
"""

from __future__ import annotations

from typing import Any

import pytest

_runs: dict[str, int] = {}
_names: dict[str, str] = {}


def pytest_collection_finish() -> None:
    from tests.browser import Viewer

    opens = Viewer.open

    def open_and_count(viewer: Viewer, address: str = "") -> Viewer:
        _count(viewer.browser)
        viewer.browser.execute_cdp_cmd("Profiler.enable", {})
        viewer.browser.execute_cdp_cmd("Debugger.enable", {})
        viewer.browser.execute_cdp_cmd("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
        return opens(viewer, address)

    Viewer.open = open_and_count  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: Any) -> Any:
    if (browser := getattr(item, "funcargs", {}).get("browser")) is not None:
        _count(browser)
    return (yield)


def _count(browser: Any) -> None:
    from selenium.common.exceptions import WebDriverException

    try:
        scripts = browser.execute_cdp_cmd("Profiler.takePreciseCoverage", {})["result"]
        for script in scripts:
            if not script["url"].startswith(("file:", "http:")):
                continue
            source = browser.execute_cdp_cmd("Debugger.getScriptSource", {"scriptId": script["scriptId"]})
            for function in script["functions"]:
                whole = function["ranges"][0]
                text = " ".join(source["scriptSource"][whole["startOffset"] : whole["endOffset"]].split())
                _runs[text] = _runs.get(text, 0) + whole["count"]
                _names[text] = function["functionName"]
    except WebDriverException:
        # No page was opened yet.
        return


def pytest_terminal_summary(terminalreporter: Any) -> None:
    idle = sorted((name, text) for text, name in _names.items() if not _runs[text])
    terminalreporter.section(f"{len(idle)} of {len(_names)} functions of pages were not run")
    for name, text in idle:
        terminalreporter.line(f"{name or '(no name)'}: {text[:160]}")
