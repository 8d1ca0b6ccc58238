"""The shape of the code: files use each other in one direction, and none holds more than one idea."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "rust/core/src"
# `crate::Error` and `crate::Result` are for everyone.
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


def folders():
    """Return the folders with modules of all crates, as paths below `rust`."""
    return sorted(str(path.parent.relative_to(ROOT / "rust")) for path in ROOT.glob("rust/*/src/**/mod.rs"))


def within(folder):
    """Return the arrows between the files of a folder; whatever is no module in it belongs to its `mod.rs`."""
    place = ROOT / "rust" / folder
    files = {path.stem: path for path in place.glob("*.rs")}
    inner_folders = [path for path in place.iterdir() if path.is_dir()]
    files |= {path.name: path / "mod.rs" for path in inner_folders}
    below = "crate::" + folder.partition("/src/")[2].replace("/", "::")
    # A name that `mod.rs` passes on belongs to its module.
    passed_on = {
        name: module
        for module, group, single in re.findall(
            r"\bpub(?:\([\w ]+\))? use (?:self::)?(\w+)::(?:\{([^}]*)\}|(\w+))", text(files["mod"])
        )
        for name in (re.findall(r"\w+", group) or [single])
    }
    arrows = {}
    for name, path in files.items():
        code = text(path)
        if path.stem == "mod" and path.parent == place:
            names = set(re.findall(r"^\s*(?:pub(?:\([\w :]*\))? )?mod (\w+);", code, re.MULTILINE))
        else:
            names = set(used(code, "super")) if path.parent == place else set()
            names |= set(used(code, below))
        modules = {passed_on.get(each, each) for each in names}
        arrows[name] = {each if each in files else "mod" for each in modules} - {name}
    return arrows


def binding():
    """Return the arrows between the files of the binding."""
    files = {path.stem: path for path in (ROOT / "rust/python/src").glob("*.rs") if path.stem != "lib"}
    return {name: (set(used(text(path), "crate")) & files.keys()) - {name} for name, path in files.items()}


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


@pytest.mark.parametrize("folder", folders())
def test_files_of_a_folder_know_each_other_in_one_direction(folder):
    arrows = within(folder)
    if not folder.startswith("core/"):
        # Elsewhere, `mod.rs` may have what its files use.
        arrows = {name: others - {"mod"} for name, others in arrows.items() if name != "mod"}
    assert circle(arrows) is None


def test_files_of_the_binding_know_each_other_in_one_direction():
    arrows = binding()
    assert "arrow" in arrows["tables"]
    assert circle(arrows) is None


CRATES = sorted(path.name for path in (ROOT / "rust").iterdir() if path.name not in {"core", "python"})


def crate(name):
    """Return the arrows between the files and folders at the top of a crate."""
    source = ROOT / "rust" / name / "src"
    files = {path.stem: [path] for path in source.glob("*.rs") if path.stem not in {"lib", "error"}}
    files |= {path.name: list(path.rglob("*.rs")) for path in source.iterdir() if path.is_dir()}
    return {
        place: {module for path in paths for module in used(text(path), "crate")} & files.keys() - {place}
        for place, paths in files.items()
    }


@pytest.mark.parametrize("name", CRATES)
def test_files_of_a_crate_know_each_other_in_one_direction(name):
    assert circle(crate(name)) is None


# A file has one idea. These are longer than most, with the reason why they are not two.
LONG = {
    "python/whywait/api/result.py": "one class: what users call, each method a line of code and its documentation",
    "tests/naive_findings.py": "a check for each figure of each finding, in one table",
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
