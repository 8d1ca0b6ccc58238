"""Fixtures shared by several test files, the tier of a test, and what the files cost."""

import gc
import os
import shutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.browser", "tests.truths")

from tests import truths  # noqa: E402 - rewritten by then
from tests.results import UNRECORDED  # noqa: E402

# The oracles hold a million objects and no cycles; looking for these as often as usual takes a third of their time.
gc.set_threshold(200_000, 20, 100)

# The same examples in every run, so that what fails is what was changed. To look for more of them:
# ./test --hypothesis-profile=explore, any number of times.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED, print_blob=True)
settings.load_profile("same")


# The files that take longest begin first: no process is left with one of them when the others have nothing to do.
LONG = ("damage", "clocks", "naive", "clock_properties", "mpi", "tasks", "causes", "naive_devices", "memory", "matrix")


def pytest_collection_modifyitems(items):
    """Sort the files by how long they take."""
    place = {f"test_{name}.py": number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG)))


def pytest_addoption(parser):
    """Let `./test all` ask for the nightly tests."""
    parser.addoption("--nightly", action="store_true", help="run the tests that are marked as nightly, too")


def pytest_runtest_setup(item):
    """Leave nightly tests out of every other run."""
    if item.get_closest_marker("nightly") and not item.config.getoption("nightly"):
        pytest.skip("nightly: ./test all")


def processor_time():
    """Return the processor time of this process and of those that it has started and awaited, seconds."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note what a test costs: processor time, because machines are shared."""
    begin = processor_time()
    done = yield
    item.config.stash.setdefault(COSTS, Counter())[item.path.name] += processor_time() - begin
    return done


COSTS = pytest.StashKey()


def pytest_sessionfinish(session):
    """Hand the costs of a worker to the process that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["costs"] = dict(session.config.stash.get(COSTS, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the costs of a worker that ends."""
    node.config.stash.setdefault(COSTS, Counter()).update(getattr(node, "workeroutput", {}).get("costs", {}))


def pytest_terminal_summary(terminalreporter, config):
    """Say which files cost most."""
    costs = config.stash.get(COSTS, Counter())
    terminalreporter.section(f"{sum(costs.values()):.0f} s of processor time, most of it in")
    for name, seconds in costs.most_common(20):
        terminalreporter.line(f"{seconds:7.1f} s  {name}")


def pytest_configure(config):
    """Keep the truths of recorded traces."""
    if cache := getattr(config, "cache", None):
        truths.Kept.directory = cache.mkdir("truths")


def pytest_collection_finish():
    """Leave what lives until the end out of the search for garbage."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail the tests that are skipped for lack of recorded traces where these are said to be there."""
    report = yield
    if report.skipped and os.environ.get("WHYWAIT_SHARED"):
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (str(report.longrepr),)
        if UNRECORDED in reason or "empty parameter set" in reason:
            report.outcome, report.longrepr = "failed", reason
    return report


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
