"""docs/json.md has each key of each answer."""

import json
import re
from pathlib import Path

import pytest
from whywait.cli import main

DATA = Path(__file__).parent / "data"
DOCUMENT = Path(__file__).parents[1] / "docs/json.md"
ROWS = dict(
    re.findall(r"^\| `([\w -]+)` \| (.*) \|$", DOCUMENT.read_text().partition("## The answer")[2], re.MULTILINE)
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("json") / "r")
    assert main(["analyze", str(DATA / "stencil"), "-o", directory, "-q"]) == 0
    return directory


@pytest.mark.parametrize("verb", ROWS)
def test_the_document_has_the_keys_of_the_answer(verb, result, capsys):
    about = str(DATA / "stencil") if verb.split()[0] in {"clocks", "info"} else result
    about = str(DATA / "kineto/hang") if verb == "hang" else about
    capsys.readouterr()
    assert main([*verb.split(), about, *([result] if verb == "diff" else []), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    named = re.findall(r"`(\w+)`", ROWS[verb])
    assert [key for key in found if key not in named] == []
    inner = {key for row in found.get("findings", []) + found.get("prices", []) for key in row}
    if verb == "findings":
        assert [key for key in inner if key not in named] == []
        assert isinstance(found["findings"][0]["evidence"], dict)


def test_the_focus_has_the_documented_keys(result, capsys):
    assert main(["findings", result, "--json"]) == 0
    focus = json.loads(capsys.readouterr().out)["focus"]
    row = next(line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `focus` |"))
    assert [key for key in focus if f"`{key}`" not in row] == []
