"""Take the pictures of the documentation from traces that ship with the project: `python docs/make_pictures.py`.

It needs `chromium` and `chromium-driver` of the system, and `selenium`.
"""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait
from whywait import _native
from whywait.bench import published
from whywait.bench.case import Variant, options
from whywait.hypotheses import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent
DATA = DOCS.parent / "tests/data"


def pages(directory: Path) -> Iterator[tuple[str, Path, str, tuple[int, int]]]:
    """Yield name, page, address in it and size of each picture."""
    stencil, pair = directory / "stencil.html", directory / "diff.html"
    whywait.analyze(DATA / "stencil").write_html(stencil)
    names = ("sor_p2p", "sor_fence")
    whywait.compare(*(whywait.analyze(DATA / name) for name in names), names=names).write_html(pair)
    yield "report-overview", stencil, "#overview", (1280, 1060)
    yield "report-explorer", stencil, "#explore?metric=mpi_latesender&call=11", (1280, 900)
    yield "report-timeline", stencil, "#timeline?from=0.638&to=0.7&wait=0.654985348&rank=0&thread=0", (1280, 717)
    yield "compare-changes", pair, "#changes", (1280, 1130)
    yield "compare-differences", pair, "#differences", (1280, 820)


#: Shows the chart of parts of the time alone: what bars show, in what, and the count that is a line.
CHART = """
<script>addEventListener("load", () => setTimeout(() => {
  const [what, scale, count] = %s;
  const chart = document.querySelector("figure.stacks").closest("section");
  for (const key of [what, scale]) chart.querySelector(`[data-key=${key}]`).click();
  const counts = chart.querySelector("select[aria-label^=Count]");
  counts.value = count;
  counts.dispatchEvent(new Event("change"));
  for (let node = chart; node !== document.body; node = node.parentElement) {
    for (const other of node.parentElement.children) if (other !== node) other.style.display = "none";
  }
}, 500));</script>
"""


def analyzed(directory: Path, variant: Variant, *, causes: bool = True, queues: str | None = None) -> whywait.Result:
    """Analyze the trace of a variant."""
    trace = directory / "-".join(map(str, filter(None, (variant.workload, variant.processes, variant.machine))))
    _native.generate(variant.workload, trace, seed=1, **options(variant))
    return whywait.analyze(trace, causes=causes, queues=queues)


def pages_of_cases(directory: Path) -> Iterator[tuple[str, Path, str, tuple[int, int]]]:
    """Yield the same for the pages of docs/cases."""
    (lock,), (late_post,), (put_gats,) = (published.named(name).variants for name in ("lock", "late-post", "put-gats"))
    for name, variant, window, size in (
        ("lock", lock, "", (1280, 700)),
        ("late-post", late_post, "", (1280, 420)),
        ("put-gats", put_gats, "?from=0.0000364&to=0.0000388", (1280, 560)),
    ):
        page = directory / f"{name}.html"
        analyzed(directory, variant).write_html(page)
        yield f"cases/{name}", page, f"#timeline{window}", size
    # Wait for Progress over processes, as in figure 5.7 of the thesis; there are 4,096.
    (nwchem,) = published.named("nwchem").scaled(256).variants
    page = directory / "nwchem.html"
    analyzed(directory, nwchem).write_html(page)
    yield "cases/nwchem", page, "#explore?metric=armci_rma_comm_wait_for_progress", (1280, 700)
    # Searches of two threads of one process, of which one finds what the other one has posted.
    multirate = published.named("multirate").variants[0]
    page = directory / "multirate.html"
    analyzed(directory, multirate, queues="send").write_html(page)
    yield "cases/multirate", page, "#explore?metric=mpi_match_attempts", (1280, 700)
    comd = published.named("comd-gpu").scaled(6).variants[7]
    page = directory / "comd-gpu.html"
    analyzed(directory, comd).write_html(page)
    yield "cases/comd-gpu", page, "#timeline", (1280, 620)
    # A wavefront before and after the balancing of its work.
    (sweep, *_) = published.named("sweep3d").scaled(9, 1).variants
    page = directory / "sweep.html"
    whywait.whatif(analyzed(directory, sweep), [parse("balance", "compute")]).write_html(page)
    yield "cases/predictions", page, "#timelines", (1280, 900)
    page = directory / "cgpop.html"
    variants = published.named("cgpop").variants
    first, second = (analyzed(directory, variant) for variant in variants)
    whywait.compare(first, second, names=tuple(variant.name for variant in variants)).write_html(page)
    yield "cases/cgpop", page, "#changes", (1280, 900)
    # Figures 5.2a, 5.2b, 5.3 and 5.6 of the thesis, and the programs of figure 5.1.
    in_mpi, shares = ("communication", "total", "mpi_rma_pairsync_count"), ("share", "visits")
    sor = [Variant(name, f"sor-{name}", 512, 10) for name in ("p2p", "fence", "gats", "locks")]
    for variants, charts in (
        (sor, {"sor": ("communication", *shares)}),
        (published.named("bt-rma").variants, {"bt-rma": in_mpi}),
        (published.named("bt-rma-1024").scaled(iterations=1).variants, {"bt-rma-1024": in_mpi}),
        (published.named("bt-rma-juqueen").scaled(iterations=1).variants, {"bt-rma-juqueen": in_mpi}),
        (
            published.named("srumma").scaled(8192).variants,
            {"srumma": ("all", *shares), "srumma-communication": ("communication", *shares)},
        ),
    ):
        runs = [analyzed(directory, variant, causes=False) for variant in variants]
        series = whywait.series(runs, names=[variant.name for variant in variants], over="order")
        for name, chart in charts.items():
            page = directory / f"{name}.html"
            series.write_html(page)
            with page.open("a", encoding="utf-8") as out:
                out.write(CHART % json.dumps(chart))
            yield f"cases/{name}", page, "", (1280, 490)


@contextmanager
def browser() -> Iterator[Any]:
    """Open Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield window
    finally:
        window.quit()


def take(window: Any, address: str, width: int, height: int, target: Path) -> None:
    """Take the picture of a page, once it has drawn what has this size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.get("about:blank")
    window.get(address)
    ready = "return document.documentElement.dataset.ready !== undefined"
    while not window.execute_script(ready):
        time.sleep(0.05)
    time.sleep(1.5)
    target.write_bytes(base64.b64decode(window.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))


def main() -> None:
    """Take all of them, or those whose names are the arguments."""
    with tempfile.TemporaryDirectory() as directory, browser() as window:
        made = itertools.chain(pages(Path(directory)), pages_of_cases(Path(directory)))
        for name, page, address, (width, height) in made:
            if not sys.argv[1:] or name in sys.argv[1:]:
                take(window, page.as_uri() + address, width, height, DOCS / f"{name}.png")


if __name__ == "__main__":
    main()
