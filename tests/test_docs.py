"""The documentation holds together: links lead somewhere, and what is made from the program is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/cases/*.md")])


def headings(page: Path) -> set[str]:
    """The anchors of a page, made from its headings as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in headings(there), target


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs/index.md").read_text()
    assert [page.name for page in PAGES if page.parent.name == "docs" and f"]({page.name})" not in index] == [
        "index.md"
    ]


def test_every_document_is_in_the_index_of_patterns():
    index = (ROOT / "docs/patterns.md").read_text()
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
    """After a change that moves one, `python docs/make_formulas.py` writes the page anew."""
    script = (
        "import make_formulas as made; found = made.places(); "
        "assert not [formula for formula in made.FORMULAS if not found.get(formula)]; "
        "assert made.TARGET.read_text(encoding='utf-8') == made.page()"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT / "docs", check=True)


@pytest.mark.parametrize("page", ["findings", "metrics", "patterns", "tables"])
def test_pages_that_are_made_are_up_to_date(page):
    script = f"import make_{page} as made; assert made.TARGET.read_text(encoding='utf-8') == made.page()"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT / "docs", check=True)
