"""Plant the faults of mutants.toml, and check that the test named with each finds it.

    python tests/mutants.py [NAME...] [--part rust|python] [--list] [--scratch DIR]

NAME is a fault, or a pattern of names (`late-*`). All happens in a copy of the working tree. One build holds all faults
in Rust, each behind a switch that an environment variable sets, so a fault costs its test and no build. Faults in
Python and JavaScript are written into the copy one after the other. In the same copy, each test must pass without a
fault.

The exit code is 1 if a fault survives or a test does not pass without it, and 2 if an entry does not fit the code.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from functools import cache
from importlib.util import cache_from_source
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "mutants.toml"

# An example of a document in tests/patterns stands for the test of it.
EXAMPLE = re.compile(r"tests/patterns/([\w-]+)\.md: (.+)")
OF_EXAMPLE = "tests/test_patterns.py::test_oracle_and_analysis_match_the_document[{}: {}]"
# A test in Rust is named by the folder of its crate, and by its path in it.
IN_RUST = re.compile(r"rust/(\w+): ([\w:]+)")

# The variable that switches a fault on, and the function by which the code asks for it.
SWITCH = "WHYWAIT_MUTANT"
ASK = f"""
pub(crate) fn is_mutant(number: u32) -> bool {{
    static ON: std::sync::LazyLock<u32> =
        std::sync::LazyLock::new(|| std::env::var("{SWITCH}").ok().and_then(|on| on.parse().ok()).unwrap_or(0));
    *ON == number
}}
"""
# What stands before and after an expression.
BEFORE = re.compile(r"(?:(?<![=!<>])= |=> |: |, |\(|\[|\{ |\bif |\bin |\breturn |\bwhile |&& |\| )$")
AFTER = re.compile(r"\s*(?:[;,)\]}]|\{|=>|else |&& |\|\| )")

# Not optimized: that would take longer than it saves.
PROFILE = {"CARGO_PROFILE_DEV_DEBUG": "false", "RUSTFLAGS": "--cap-lints=allow"}
# What was built for other crates stays from one run to the next.
TARGET = ROOT / "target" / "mutants"
LIBRARIES = {"lib_native.so": "_native.abi3.so", "libwhywait_record.so": "_record/lib/libwhywait_record.so"}
# A test that takes longer, in seconds, does not end by itself, which is found as well.
PATIENCE = 600


class Mutant(NamedTuple):
    """A fault: where `find` is replaced in a file, `test` fails."""

    number: int
    name: str
    fault: str
    file: str
    find: str
    replace: str
    test: str

    @property
    def is_rust(self) -> bool:
        """Whether it is switched on instead of written."""
        return self.file.endswith(".rs")

    @property
    def in_rust(self) -> tuple[str, str] | None:
        """Crate and path of a test in Rust; None if pytest runs the test."""
        found = IN_RUST.fullmatch(self.test)
        return (found[1], found[2]) if found else None

    @property
    def node(self) -> str:
        """The name by which pytest knows the test."""
        found = EXAMPLE.fullmatch(self.test)
        return OF_EXAMPLE.format(*found.groups()) if found else self.test


def mutants() -> list[Mutant]:
    """Return all faults."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return [Mutant(number, name, **entry) for number, (name, entry) in enumerate(entries.items(), 1)]


def misfits(mutant: Mutant) -> Iterator[str]:
    """Yield what is wrong with an entry: its text must occur once, and its test must exist."""
    path = ROOT / mutant.file
    count = path.read_text(encoding="utf-8").count(mutant.find) if path.is_file() else 0
    if count != 1:
        yield f"{mutant.name}: its text occurs {count} times in {mutant.file}"
    if mutant.find == mutant.replace:
        yield f"{mutant.name}: it changes nothing"
    if not exists(mutant):
        yield f"{mutant.name}: there is no test {mutant.test}"


def exists(mutant: Mutant) -> bool:
    """Return whether the test of a fault exists."""
    if mutant.in_rust:
        crate, test = mutant.in_rust
        return test.rpartition("::")[2] in functions_of_crate(crate)
    path, _, name = mutant.node.partition("::")
    name, _, example = name.removesuffix("]").partition("[")
    return name in functions_of_file(path) and (not example or example in examples(path, name))


@cache
def functions_of_crate(crate: str) -> set[str]:
    """Return the names of the functions of a crate."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "rust" / crate).rglob("*.rs"))
    return {name for text in texts for name in re.findall(r"\bfn (\w+)", text)}


@cache
def functions_of_file(path: str) -> set[str]:
    """Return the names of the functions of a file of tests; none if there is no such file."""
    text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
    return set(re.findall(r"^def (\w+)", text, re.MULTILINE))


@cache
def examples(path: str, name: str) -> set[str]:
    """Return the names of the examples of a test."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    found: set[str] = set()
    for mark in getattr(module, name).pytestmark:
        if mark.name == "parametrize":
            ids = mark.kwargs.get("ids") or (lambda value: getattr(value, "id", value))
            found.update(map(str, map(ids, mark.args[1]) if callable(ids) else ids))
    return found


def with_switches(text: str, found: list[Mutant]) -> str:
    """Return the text of a file in Rust with its faults, each behind a switch."""
    places = sorted((text.index(mutant.find), mutant) for mutant in found)
    for (before, first), (after, second) in pairwise(places):
        if before + len(first.find) > after:
            sys.exit(f"{first.name} and {second.name} are at the same place: choose shorter texts")
    for place, mutant in reversed(places):
        text = text[:place] + switched(mutant) + text[place + len(mutant.find) :]
    return text


def switched(mutant: Mutant) -> str:
    """Return the text of a fault behind its switch: a choice of two statements, or of the expressions that differ."""
    find, replace = mutant.find, mutant.replace
    asks = f"if crate::is_mutant({mutant.number})"
    if not find.startswith("let ") and find.endswith(";") and is_whole(find):
        return f"{asks} {{ {replace} }} else {{ {find} }}"
    begin, end = common(find, replace)
    wrong, right = (text[begin : len(text) - end] for text in (replace, find))
    return f"{find[:begin]}({asks} {{ {wrong} }} else {{ {right} }}){find[len(find) - end :]}"


def common(first: str, second: str) -> tuple[int, int]:
    """Return how much of two texts is the same, before and after expressions that differ."""
    longest = shared(first, second)
    for begin in range(longest, -1, -1):
        if begin and not BEFORE.search(first[:begin]):
            continue
        rests = first[begin:], second[begin:]
        for end in range(shared(*(rest[::-1] for rest in rests)), -1, -1):
            is_after = not end or AFTER.match(first[len(first) - end :])
            if is_after and all(is_whole(rest[: len(rest) - end]) for rest in rests):
                return begin, end
    return 0, 0


def shared(first: str, second: str) -> int:
    """Return how many letters two texts have in common at their begin."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(first), len(second)))


def is_whole(text: str) -> bool:
    """Return whether a text is not empty, all of its brackets are closed, and no comma is outside of them."""
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (letter == "," and not depth):
            return False
    return depth == 0 and bool(text.strip())


class Copy:
    """A copy of the working tree, with faults in Rust behind switches.

    Parameters
    ----------
    place
        The directory.
    chosen
        The faults.
    """

    def __init__(self, place: Path, chosen: Iterable[Mutant]) -> None:
        self.place = place
        self.executables: dict[str, list[str]] = {}
        in_rust = [mutant for mutant in chosen if mutant.is_rust]
        changed = {}
        for name in {mutant.file for mutant in in_rust}:
            text = (ROOT / name).read_text(encoding="utf-8")
            changed[name] = with_switches(text, [mutant for mutant in in_rust if mutant.file == name])
        for crate in {name.split("/")[1] for name in changed}:
            name = f"rust/{crate}/src/lib.rs"
            changed[name] = changed.get(name, (ROOT / name).read_text(encoding="utf-8")) + ASK
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0"):
            if name and (ROOT / name).is_file():
                self._take(ROOT / name, name, changed.get(name))

    def _take(self, path: Path, name: str, text: str | None = None) -> None:
        """Copy a file, unless the copy is the same: then what was built from it stays as it is."""
        content = path.read_bytes() if text is None else text.encode()
        copy = self.place / name
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            shutil.copymode(path, copy)

    def take_libraries(self) -> None:
        """Take the native module and the recorder that the installed package has."""
        import whywait

        for name in LIBRARIES.values():
            if (path := Path(whywait.__file__).parent / name).is_file():
                self._take(path, f"python/whywait/{name}")

    def build(self, tests: Iterable[Mutant]) -> None:
        """Build the native module, the recorder, and the tests in Rust that are named."""
        built = self._cargo("build", ["python", "record"])
        for path in (Path(name) for artifact in built for name in artifact["filenames"]):
            if path.name in LIBRARIES:
                self._take(path, f"python/whywait/{LIBRARIES[path.name]}")
        crates = sorted({mutant.in_rust[0] for mutant in tests if mutant.in_rust})
        for artifact in self._cargo("test", crates, "--no-run") if crates else ():
            if artifact["executable"] and artifact["profile"]["test"]:
                crate = Path(artifact["manifest_path"]).parent.name
                self.executables.setdefault(crate, []).append(artifact["executable"])

    def _cargo(self, command: str, crates: list[str], *more: str) -> list[dict]:
        packages = [argument for crate in crates for argument in ("--package", f"whywait-{crate}")]
        arguments = ["cargo", command, "--locked", "--message-format=json-render-diagnostics", *packages, *more]
        variables = os.environ | PROFILE | {"CARGO_TARGET_DIR": str(TARGET)}
        done = subprocess.run(arguments, cwd=self.place, env=variables, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(arguments)} failed: an entry does not compile")
        return [one for one in map(json.loads, done.stdout.splitlines()) if one["reason"] == "compiler-artifact"]

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[dict[str, str]]:
        """Plant a fault; yield the variables that its test needs."""
        if mutant.is_rust:
            yield {SWITCH: str(mutant.number)}
            return
        path = self.place / mutant.file
        compiled = Path(cache_from_source(str(path)))
        whole = path.read_text(encoding="utf-8")
        try:
            path.write_text(whole.replace(mutant.find, mutant.replace), encoding="utf-8")
            compiled.unlink(missing_ok=True)
            yield {}
        finally:
            path.write_text(whole, encoding="utf-8")
            compiled.unlink(missing_ok=True)

    def is_found(self, mutant: Mutant, variables: dict[str, str]) -> bool:
        """Return whether the test of a fault fails."""
        if not mutant.in_rust:
            return bool(self.failures([mutant.node], variables))
        crate, name = mutant.in_rust
        done = [self._run([path, name], variables, crate) for path in self.executables[crate]]
        if not any(re.search(r"^running [1-9]", one.stdout, re.MULTILINE) for one in done):
            sys.exit(f"{mutant.name}: there is no test {mutant.test}")
        return any(one.returncode for one in done)

    def failures(self, nodes: list[str], variables: dict[str, str]) -> list[str]:
        """Return the tests that do not pass, each with the reason."""
        report = self.place / "report.xml"
        report.unlink(missing_ok=True)
        done = self._run(
            [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *nodes], variables, tests=len(nodes)
        )
        if done.returncode in {3, 4, 5}:
            sys.exit(f"pytest does not know these tests:\n{done.stdout}{done.stderr}")
        if not report.is_file():
            return [f"{nodes[0]} ended with {done.returncode}"]
        cases = ET.parse(report).iter("testcase")  # noqa: S314  (pytest's own)
        broken = ((case, case.find(kind)) for case in cases for kind in ("failure", "error", "skipped"))
        return [f"{case.get('name')}: {one.get('message')}" for case, one in broken if one is not None]

    def _run(
        self, command: list[str], variables: dict[str, str], crate: str = "", tests: int = 1
    ) -> subprocess.CompletedProcess[str]:
        variables = {"PYTHONPATH": str(self.place / "python"), "PROPTEST_RNG_SEED": "1", **variables}
        place = self.place / "rust" / crate if crate else self.place
        options = {"cwd": place, "env": os.environ | variables, "timeout": PATIENCE * tests}
        try:
            return subprocess.run(command, **options, capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "running 1 test", "it does not end")


def judge(copy: Copy, chosen: list[Mutant]) -> int:
    """Run the tests without a fault, then with each; return the exit code."""
    if any(mutant.is_rust for mutant in chosen):
        copy.build(chosen)
    else:
        copy.take_libraries()
    built = seconds()
    nodes = sorted({mutant.node for mutant in chosen if not mutant.in_rust})
    broken = copy.failures(nodes, {}) if nodes else []
    broken += [f"{mutant.test} fails" for mutant in chosen if mutant.in_rust and copy.is_found(mutant, {})]
    if broken:
        print("These tests do not pass without a fault:", *broken, sep="\n", file=sys.stderr)
        return 1
    survivors = 0
    for mutant in chosen:
        with copy.planted(mutant) as variables:
            is_found = copy.is_found(mutant, variables)
        survivors += not is_found
        print(f"{'killed' if is_found else 'SURVIVES'} {mutant.name}: {mutant.fault}", flush=True)
    times = f"{built:.0f} s of processor time to build, {seconds() - built:.0f} s to test"
    print(f"{survivors} of {len(chosen)} faults survive ({times})")
    return int(survivors > 0)


def seconds() -> float:
    """Return the processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults, or patterns of their names (default: all)")
    parser.add_argument("--part", choices=["rust", "python"], help="only the faults in Rust, or only the others")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="the directory of the copy, which is kept")
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if options.part in (None, "rust" if mutant.is_rust else "python")]
    if options.names:
        chosen = [one for one in chosen if any(fnmatch.fnmatch(one.name, name) for name in options.names)]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name}: {mutant.fault}\n    {mutant.file}; {mutant.test}")
        return 0
    if wrong := [why for mutant in chosen for why in misfits(mutant)] if chosen else ["no fault has such a name"]:
        print(*wrong, sep="\n", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        place = options.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
        return judge(Copy(place.resolve(), chosen), chosen)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
