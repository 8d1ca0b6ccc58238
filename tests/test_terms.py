"""The words of the first screen are explained, and what a part of the time is decides its color."""

import json
import re
from pathlib import Path

import pytest
import whywait
from whywait.analysis.account import account, rows
from whywait.cli import main
from whywait.model.schema import patterns
from whywait.report.html import shades
from whywait.report.html.sections import Report, overview
from whywait.report.terms import CHANGES, of_row, terms

from tests.browser import unpack_document

DATA = Path(__file__).parent / "data"
SOURCES = Path(whywait.__file__).parent / "analysis"


@pytest.fixture(scope="module")
def stencil():
    result = whywait.analyze(DATA / "stencil")
    result.findings(prices=True)
    return result


def test_each_word_of_the_first_screen_has_a_meaning(stencil, capsys, tmp_path):
    stencil.write(tmp_path / "r")
    assert main(["findings", str(tmp_path / "r"), "--explain-terms"]) == 0
    text, _, said = capsys.readouterr().out.partition("\nTerms\n")
    words = {name for name, _ in terms(stencil, stencil.findings())}
    shown = set(re.findall(r"\((\w[\w ]*)\)$", text, re.MULTILINE))
    assert {"balance", "trim"} <= shown <= words
    where = account(stencil)
    assert {rows()[row].label for row, time in where.times.items() if time >= 0.01 * where.time} <= words
    assert {"Late Sender", "Wait at N x N", "Excess", "Critical path", "Lost", "Focus"} <= words
    joined = " ".join(said.split())
    for name, meaning in terms(stencil, stencil.findings()):
        assert f"{name}: {meaning}" in joined
    assert all(len(line) <= 80 for line in said.splitlines())
    assert main(["findings", str(tmp_path / "r")]) == 0
    assert capsys.readouterr().out.rstrip() == text.rstrip()
    assert main(["analyze", str(DATA / "stencil"), "-o", str(tmp_path / "r"), "--explain-terms"]) == 0
    assert "Late Sender: Time a receiver waited" in " ".join(capsys.readouterr().out.split())


def test_words_of_changes_are_those_that_are_used():
    text = "".join(file.read_text() for file in SOURCES.rglob("*.py"))
    assert [label for label in CHANGES if f'"{label}"' not in text] == []


def test_no_row_is_explained_by_another():
    for name in rows():
        assert not re.search(r"\b(they|that)\b.*beyond that|^What they", of_row(name)), name


def test_a_part_has_the_same_shade_whatever_its_size(stencil):
    story = dict(overview.data(Report(stencil, stencil.summary(), {})))["story"]
    parts = unpack_document(story)["parts"]
    assert {part["label"]: part["shade"] for part in parts if part["family"] in ("work", "waiting")} == {
        "Computation on the critical path": 0,
        "Computation off the critical path": 2,
        "Late Sender": 0,
        "Wait at N x N": 1,
        "Wait at Finalize": 2,
        "Wait at Barrier": 2,
    }
    assert all(part["about"] for part in parts)
    # Sorted by size, the largest comes first.
    assert parts[0]["label"] == "Computation off the critical path"


def test_each_row_and_wait_state_has_a_shade():
    assert {shades.of_row(name) for name in rows()} == set(range(5))
    assert {shades.of_wait(kind) for kind in patterns()} == set(range(5))
    for metric in ("comp", "mpi", "mpi_communication", "overhead", "io"):
        assert 0 <= shades.of_metric(metric) <= shades.OTHERS


def test_the_evidence_of_findings_is_an_object(stencil, capsys, tmp_path):
    stencil.write(tmp_path / "r")
    assert main(["findings", str(tmp_path / "r"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert found[0]["evidence"] == json.loads(json.dumps(stencil.findings()[0].evidence)) != {}
