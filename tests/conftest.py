"""Fixtures shared by several test files."""

import shutil

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.browser")

# The same examples in every run, so that what fails is what was changed. To look for more of them:
# ./test --hypothesis-profile=explore, any number of times.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def chromium():
    """One Chromium for all tests. It needs Debian's `chromium` and `chromium-driver`, and the package `selenium`."""
    selenium = pytest.importorskip("selenium.webdriver", reason="the package selenium drives the browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium with chromedriver is installed")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield window
    window.quit()


@pytest.fixture
def browser(chromium):
    """A window of the browser as it was at first: empty, of its own size, and in its own theme."""
    yield chromium
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
