"""Take the pictures of the documentation from traces that ship with the project: `python docs/make_pictures.py`.

It needs the `chromium` of the system.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import whywait
from whywait.compare import write_html

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent
DATA = DOCS.parent / "tests/data"


def pages(directory: Path) -> Iterator[tuple[str, Path, str, tuple[int, int]]]:
    """Yield name, page, address in it and size of each picture."""
    stencil, pair = directory / "stencil.html", directory / "diff.html"
    whywait.analyze(DATA / "stencil").write_html(stencil)
    names = ("sor_p2p", "sor_fence")
    write_html(*(whywait.analyze(DATA / name) for name in names), pair, names=names)
    yield "report-overview", stencil, "#overview", (1280, 1060)
    yield "report-explorer", stencil, "#explore?metric=mpi_latesender&call=11", (1280, 900)
    yield "report-timeline", stencil, "#timeline?from=0.638&to=0.7&wait=0.654985348&at=0", (1280, 717)
    yield "compare-changes", pair, "#changes", (1280, 1130)
    yield "compare-differences", pair, "#differences", (1280, 820)


def main() -> None:
    """Take all of them."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise SystemExit("no chromium is installed")
    with tempfile.TemporaryDirectory() as directory:
        for name, page, address, (width, height) in pages(Path(directory)):
            options = [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--virtual-time-budget=5000",
                f"--window-size={width},{height}",
                f"--screenshot={DOCS / name}.png",
            ]
            # Where the browser is run from, and what it is asked for, is all known here.
            subprocess.run([chromium, *options, page.as_uri() + address], check=True, stderr=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    main()
