"""The documentation holds together: links lead somewhere, and what is made from the program is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/cases/*.md")])
SITE = "https://whywait.github.io/whywait/docs/"


@cache
def made() -> dict[Path, str]:
    """The pages that are made from the program, by where the site has them."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, ROOT / "docs/make_pages.py", directory], check=True)
        return {ROOT / "docs" / page.name: page.read_text(encoding="utf-8") for page in Path(directory).iterdir()}


def pages() -> dict[Path, str]:
    """The text of all pages of the documentation, by where the site has them."""
    return {page: page.read_text(encoding="utf-8") for page in PAGES} | made()


def headings(text: str) -> set[str]:
    """The anchors of a page, made from its headings as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    for page, text in pages().items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if path.startswith(SITE):
                there = ROOT / "docs" / Path(path).with_suffix(".md").name
                assert there in made(), target
            elif "://" in path:
                continue
            else:
                there = (page.parent / path).resolve() if path else page
                # Pages that are made are only on the site, where they link to each other by name.
                assert there.exists() or {page, there} <= made().keys(), (page.name, target)
            if anchor:
                assert anchor in headings(pages().get(there) or there.read_text()), (page.name, target)


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs/index.md").read_text()
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    linked |= {f"{name}.md" for name in re.findall(rf"\]\({SITE}(\w+)\.html\)", index)}
    assert {page.name for page in pages() if page.parent.name == "docs"} - linked == {"index.md"}


def test_every_document_is_in_the_index_of_patterns():
    index = made()[ROOT / "docs/patterns.md"]
    for document in ROOT.glob("tests/patterns/*.md"):
        assert f"tests/patterns/{document.name})" in index


def test_every_decision_on_one_sided_communication_has_an_example():
    section = (ROOT / "docs/one-sided.md").read_text().split("## Decisions")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert all("tests/patterns/" in example for *_, example in rows)
    numbers = {number for decision, *_ in rows for number in re.findall(r"\d+", decision)}
    heuristics = {"1", "2", "4", "8", "10", "11", "12", "13", "14"}
    assert numbers | heuristics == {str(number) for number in range(1, 17)}


def test_formulas_are_named_where_they_are_computed():
    script = (
        "import make_formulas as made; found = made.places(); "
        "assert not [formula for formula in made.FORMULAS if not found.get(formula)]"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT / "docs", check=True)


def test_pages_that_are_made_are_not_in_the_repository():
    assert len(made()) == 5
    assert not [page.name for page in made() if page.exists()]
