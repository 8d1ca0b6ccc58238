"""Build the documentation site: ``python docs/site/build.py OUTPUT``.

The pages are those of the repository, in its layout, so that links between them work there and here. Added are pages
that are made from the program, an interface reference from docstrings, and a report of the trace that ships with the
project. Every warning is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import whywait

ROOT = Path(__file__).parents[2]
#: Where the site is published: pages of the repository link there to those that only the site has.
SITE = "https://whywait.github.io/whywait"
#: Pages, and what they show or link to.
CONTENT = (
    "*.md",
    "docs/*.md",
    "docs/*.png",
    "docs/*.svg",
    "docs/cases/*",
    "docs/examples/*",
    "docs/examples/record/*",
    "tests/*.py",
    "tests/data/README.md",
    "tests/data/programs/*.c",
    "tests/patterns/*.md",
    "python/whywait/model/metrics.txt",
    "CITATION.cff",
    "LICENSE",
)


def copy(target: Path) -> None:
    """Copy the pages, in the layout of the repository."""
    for pattern in CONTENT:
        for path in ROOT.glob(pattern):
            if path.is_file():
                copied = target / path.relative_to(ROOT)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
    for path in (ROOT / "docs/site").glob("*.*"):
        shutil.copyfile(path, target / path.name)


def make(source: Path) -> None:
    """Write the pages that are made from the program, and let links to them lead there."""
    pages = source / "docs"
    subprocess.run([sys.executable, ROOT / "docs/make_pages.py", pages], check=True)  # noqa: S603
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        here = Path(os.path.relpath(pages, page.parent)).as_posix()
        page.write_text(re.sub(rf"\({SITE}/docs/(\w+)\.html", rf"({here}/\1.md", text), encoding="utf-8")


def name_new_pages(source: Path) -> None:
    """List pages of docs/ that no section names yet under *Reference*, so that every page is reached."""
    sections = {path: path.read_text(encoding="utf-8") for path in source.glob("*.md")}
    pages = sorted(f"docs/{page.stem}" for page in source.glob("docs/*.md"))
    lines = {line for text in sections.values() for line in text.splitlines()}
    new = [page for page in pages if not any(line == page or line.endswith(f"<{page}>") for line in lines)]
    reference = source / "reference.md"
    reference.write_text(sections[reference].replace("CHANGELOG\n", "\n".join([*new, "CHANGELOG\n"])), encoding="utf-8")


def plain_links_to_folders(source: Path) -> None:
    """Let links to folders lead nowhere: there are only pages here."""
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"\[([^\]]+)\]\((?!https?:)[^)#]*/\)", r"\1", text), encoding="utf-8")


def build(output: Path) -> None:
    """Build the site into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        copy(source)
        make(source)
        name_new_pages(source)
        plain_links_to_folders(source)
        whywait.analyze(ROOT / "tests/data/stencil").write_html(source / "demo.html")
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
        subprocess.run([*command, "-d", f"{scratch}/doctrees", source, output], check=True)  # noqa: S603
        shutil.copyfile(source / "demo.html", output / "demo.html")
        (output / ".nojekyll").touch()


if __name__ == "__main__":
    build(Path(sys.argv[1]))
