"""Measure the report of a large run: how long it takes to write, how large it is, how fast it opens.

    python benches/report.py [--ranks 65536] [--callpaths 60] [--metrics 60] [--html FILE]

Run it in the root of the repository. The values are random: what repeats would compress too well. Times and visits are
at all call paths, wait states and counts at a few each, as in real runs. Without chromium, chromedriver and selenium
pages are not opened.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).parents[1]))

import whywait
from whywait.model.metrics import metric_tree

from tests import fake_native

EVERYWHERE = {"time", "visits"}
PLACES = 4
WAITS = 1_000_000


def result(ranks: int, callpaths: int, metrics: int, seed: int = 1) -> Any:
    """Make up what an analysis of such a run finds."""
    random = np.random.default_rng(seed)
    kinds = [fake_native.MAIN, fake_native.SEND, fake_native.RECV, fake_native.BARRIER]
    regions = [kinds[0] if c % 3 == 0 else kinds[1 + c % 3] for c in range(callpaths)]
    parents = [None if c == 0 else 3 * ((c - 1) // 6) for c in range(callpaths)]
    analysis = fake_native.FakeAnalysis(parents, regions, [(0, 0)], {}, facts={"length": 100.0})
    index = np.arange(ranks, dtype=np.uint32)
    stored = [m for m in metric_tree() if not m.derived][:metrics]
    parts = []
    for code, metric in enumerate(stored):
        places = range(callpaths) if metric.name in EVERYWHERE else random.choice(callpaths, PLACES, replace=False)
        for callpath in places:
            values = random.gamma(2.0, 1.0, ranks)
            parts.append((code, callpath, np.ceil(values) if metric.integer else values))
    metric, callpath, location, value = (
        np.repeat(np.array([code for code, _, _ in parts], np.int32), ranks),
        np.repeat(np.array([callpath for _, callpath, _ in parts], np.uint32), ranks),
        np.tile(index, len(parts)),
        np.concatenate([values for _, _, values in parts]),
    )
    names = [metric.name for metric in stored]
    analysis._severities = pa.table(
        {
            "metric": pa.DictionaryArray.from_arrays(metric, names),
            "callpath": callpath,
            "location": location,
            "value": value,
        }
    )
    analysis._locations = pa.table(
        {
            "name": pa.array([f"Master thread {rank}" for rank in range(ranks)]),
            "type": pa.array(["CPU_THREAD"] * ranks),
            "events": np.full(ranks, 1000, np.uint64),
            **dict.fromkeys(("location", "id", "group"), index),
            "rank": index.astype(np.int32),
            "thread": np.zeros(ranks, np.int32),
        }
    )
    kind = random.integers(0, 4, WAITS).astype(np.int32)
    labels = [metric.name for metric in stored if metric.kind == "wait"][:4]
    number = {
        name: pa.array(random.integers(0, ranks, WAITS).astype(np.uint32)) for name in ("location", "cause_location")
    }
    where = {
        name: pa.array(random.integers(0, callpaths, WAITS).astype(np.uint32))
        for name in ("callpath", "cause_callpath")
    }
    seconds = {
        name: random.gamma(2.0, 1e-3, WAITS)
        for name in ("enter", "leave", "waiting", "cause_time", "direct", "indirect", "propagating", "caused")
    }
    columns = {"kind": pa.DictionaryArray.from_arrays(kind, labels), **number, **where, **seconds}
    columns["last"] = pa.nulls(WAITS, pa.string())
    analysis._wait_states = pa.table(columns)
    return fake_native.result(analysis, stored=names)


def opened(page: Path) -> float | None:
    """Return how many seconds a browser takes until the page can be used."""
    chromium, driver = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        return None
    if not chromium or not driver:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        begin = time.monotonic()
        browser.get(page.as_uri())
        while not browser.execute_script("return document.documentElement.dataset.ready !== undefined"):
            time.sleep(0.01)
        return time.monotonic() - begin
    finally:
        browser.quit()


def main() -> int:
    """Measure, print, and say by the exit code whether it is as promised."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, number in (("ranks", 1 << 16), ("callpaths", 60), ("metrics", 60)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--html", type=Path, help="keep the page")
    options = parser.parse_args()
    runs = [result(options.ranks, options.callpaths, options.metrics, seed) for seed in (1, 2)]
    cells = sum(len(runs[0].profile.cells(m.name)) for m in runs[0].profile.metrics if not m.derived)
    print(f"{cells / 1e6:.1f} million values")
    with tempfile.TemporaryDirectory() as directory:
        page = options.html or Path(directory) / "report.html"
        good = measured("the report", page, lambda: runs[0].write_html(page))
        both = Path(directory) / "diff.html"
        good &= measured("two runs side by side", both, lambda: whywait.compare(*runs).write_html(both))
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")
    return 0 if good else 1


def measured(name: str, page: Path, write: Callable[[], None]) -> bool:
    """Write a page and say how it went."""
    before = time.process_time(), time.monotonic()
    write()
    processor, wall = time.process_time() - before[0], time.monotonic() - before[1]
    size, opening = page.stat().st_size / 1e6, opened(page.resolve())
    rows = [
        ("written in", f"{wall:.1f} s ({processor:.1f} s of processor time)", processor < 60),
        ("size", f"{size:.1f} MB", size < 50),
        ("opens in", "not measured" if opening is None else f"{opening:.1f} s", opening is None or opening < 3),
    ]
    print(name)
    for what, value, good in rows:
        print(f"   {what:12} {value}{'' if good else '   MORE THAN PROMISED'}")
    return all(good for *_, good in rows)


if __name__ == "__main__":
    sys.exit(main())
