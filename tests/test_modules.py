"""The shape of the code: modules of the core use each other in one direction, and no file holds more than one idea."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "rust/core/src"
ROOMS = {path.stem if path.is_file() else path.name for path in SOURCE.iterdir()} - {"lib", "error"}


def text(path):
    """Return the code of a file without its tests and comments."""
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8").split("#[cfg(test)]")[0])


def used(code, word):
    """Yield the modules that a text names behind ``crate`` or ``super``."""
    for group, single in re.findall(rf"\b{word}::(?:\{{([^;]*)\}};|(\w+))", code, re.DOTALL):
        # Of a group only what stands at its top: a::{b, c::d} names b and c.
        yield from re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"::(?:\{[^}]*\}|\w+)", "", group)) if group else [single]


def rooms():
    arrows = {room: set() for room in ROOMS}
    for path in SOURCE.rglob("*.rs"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".rs")
        if room in ROOMS:
            arrows[room] |= (set(used(text(path), "crate")) & ROOMS) - {room}
    return arrows


def within(room):
    """Return the arrows between the files of a room; `mod.rs` is left out, which puts them together."""
    files = {path.stem: path for path in (SOURCE / room).glob("*.rs") if path.stem != "mod"}
    files |= {path.name: path / "mod.rs" for path in (SOURCE / room).iterdir() if path.is_dir()}
    arrows = {}
    for name, path in files.items():
        code = text(path)
        inner = set(used(code, "super")) | set(re.findall(rf"\bcrate::{room}::(\w+)", code))
        arrows[name] = (inner & files.keys()) - {name}
    return arrows


def circle(arrows):
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_the_check_finds_a_circle():
    assert set(used("use crate::{ids::A, trace::{B, C}, waits};\nlet a = crate::schema::X;", "crate")) == {
        "ids", "trace", "waits", "schema",
    }  # fmt: skip
    assert circle({"a": {"b"}, "b": {"a"}}) is not None
    assert circle({"a": {"b"}, "b": set()}) is None


def test_rooms_know_each_other_in_one_direction():
    arrows = rooms()
    assert "waits" in arrows["causes"]
    assert "trace" in arrows["matching"]
    assert circle(arrows) is None


@pytest.mark.parametrize("room", sorted(room for room in ROOMS if (SOURCE / room).is_dir()))
def test_files_of_a_room_know_each_other_in_one_direction(room):
    assert circle(within(room)) is None


# A file has one idea. These are longer than most, with the reason why they are not two.
LONG = {
    "tests/naive_causes.py": "an oracle is one text, to be read against the specification",
    "tests/tracedsl.py": "one language: what it says, read and written",
    "tests/test_whatif.py": "all hypotheses of one verb, against the same programs",
}
MOST_LINES = 900


def test_no_file_is_long_without_a_reason():
    suffixes = {".rs", ".py", ".pyi", ".js", ".mjs"}
    roots = [ROOT / name for name in ("rust", "python", "tests", "docs", "benches", "fuzz")]
    files = [
        path for root in roots for path in root.rglob("*") if path.suffix in suffixes and "target" not in path.parts
    ]
    assert len(files) > 200
    long = {
        str(path.relative_to(ROOT)) for path in files if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    assert long == LONG.keys()
