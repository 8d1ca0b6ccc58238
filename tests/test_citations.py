"""Every citation resolves: sections of the specification exist, and so do the numbers cited of other works."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from tests.test_docs import ROOT, headings, pages

WORKS = tomllib.loads((ROOT / "tests/data/works.toml").read_text())

FILES = sorted(
    path
    for pattern in (
        "rust/**/*.rs",
        "python/**/*.py*",
        "tests/*.py",
        "tests/patterns/*.md",
        "docs/*.md",
        "docs/*.py",
        "*.md",
    )
    for path in ROOT.glob(pattern)
    if path != Path(__file__) and "__pycache__" not in path.parts
)

NUMBER = r"[A-Z0-9]+(?:\.\d+)*[a-c]?"
KIND = (
    r"chapters?|sections?|equations?|definitions?|corollar(?:y|ies)|wait-state patterns?|patterns?|algorithms?|"
    r"figures?|tables?"
)
LIST = rf"{NUMBER}(?:(?:, and |, | and | to ){NUMBER})*"
# Names of works, whatever surrounds them, and what is cited of them.
WORK = re.compile("|".join(re.escape(name) for name in sorted(WORKS, key=len, reverse=True)), re.IGNORECASE)
CITED = re.compile(rf"\b({KIND})\s+({LIST})(?![\w%])")
# Kinds of numbers that only a work can have; sections and patterns are found in much else.
ITS_OWN = ("equation", "definition", "wait-state pattern", "algorithm", "corollar")


def prose(path: Path) -> str:
    """The text of a file with its line breaks and comment marks taken out, code and tables left as they are."""
    text = re.sub(r"^[ \t]*(//[!/]?|#:?)(?= |$)", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(r"[ \t]*\n(?![ \t]*[\n|*#-])[ \t]*", " ", text)


def numbers(ranges: list[str]) -> set[str]:
    """All numbers of ranges such as ``4.1-4.19``."""
    found = set()
    for item in ranges:
        first, _, last = item.partition("-")
        prefix, _, begin = first.rpartition(".")
        end = last.rpartition(".")[2] or begin
        found |= {f"{prefix}.{n}" if prefix else str(n) for n in range(int(begin), int(end) + 1)}
    return found


def kind_of(word: str) -> str:
    """The key of a kind of number in the list of works."""
    plural = word if word.endswith("s") else f"{word}s"
    return {"corollarys": "corollaries", "patterns": "wait-state patterns"}.get(plural, plural)


def spelled_out(listed: str) -> set[str]:
    """The numbers of a list such as ``4.1 to 4.3, 4.5 and 4.7a``, ends of ranges included."""
    return {number.rstrip("abc") for number in re.findall(NUMBER, listed)}


def citations(path: Path) -> list[tuple[str, str, set[str]]]:
    """Work, kind and numbers of each citation of a file; of the thesis where a sentence names no work."""
    found = []
    for sentence in re.split(r"(?<=[\w)`])[.;](?=\s|$)|\n", prose(path)):
        for match in CITED.finditer(sentence):
            word, listed = match.groups()
            before = WORK.findall(sentence[: match.start()])
            if not before and not word.startswith(ITS_OWN):
                continue
            work = next(name for name in WORKS if name.lower() == (before or ["thesis"])[-1].lower())
            found.append((work, kind_of(word), spelled_out(listed)))
    return found


def test_lists_and_ranges_of_sections_are_parsed():
    assert numbers(["4.1-4.3", "7", "1-2"]) == {"4.1", "4.2", "4.3", "7", "1", "2"}
    assert spelled_out("4.1 to 4.3, 4.5, and 4.7a") == {"4.1", "4.3", "4.5", "4.7"}


def test_the_list_of_works_and_the_references_agree():
    references = (ROOT / "docs/references.md").read_text(encoding="utf-8")
    assert all(f"**{work['reference']}**" in references for work in WORKS.values())


@cache
def sections() -> dict[str, set[str]]:
    """The anchors of the pages of the documentation."""
    return {page.name: headings(text) for page, text in pages().items() if page.parent.name == "docs"}


def unresolved(path: Path) -> list[str]:
    """What a file cites that does not exist, and numbers that do not say what they are the numbers of."""
    text = path.read_text(encoding="utf-8")
    # Documents of the patterns are no pages of the documentation; test_docs follows links to them.
    anchors = re.findall(r"\b(\w+\.md)#([\w-]+)", text)
    found = [f"{page}#{anchor}" for page, anchor in anchors if anchor not in sections().get(page, {anchor})]
    for work, kind, cited in citations(path):
        found += [f"{work}, {kind} {number}" for number in sorted(cited - numbers(WORKS[work].get(kind, [])))]
    found += re.findall(r"\b[Tt]hesis,? (?:eqs?\.|§|\d)", prose(path))
    internal = r"\b(?:PATTERNS|WHATIF|COUNTERS|ACCOUNT|RECORD|THREADS|CLOCKS)(?:\.md)?,? (?:section |decision )?\d"
    return found + re.findall(rf"{internal}|EVENT_MODEL", text)


def test_citations_resolve():
    assert {str(path.relative_to(ROOT)): found for path in FILES if (found := unresolved(path))} == {}


def test_every_work_is_cited():
    """The test above finds something: every work is cited, and the thesis from Rust, from Python and from patterns."""
    of = {path: citations(path) for path in FILES}
    for folder in ("rust", "tests", "docs"):
        assert any(work == "thesis" for path, found in of.items() if folder in path.parts for work, *_ in found), folder
    assert sum(len(found) for found in of.values()) > 50
