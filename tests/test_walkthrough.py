"""Every command of the documentation runs, and prints what its page shows.

Commands run in a directory where the names that the pages use exist (``TRACE``, ``results``). What cannot run on the
traces that ship with the project is listed here, with the reason.
"""

from __future__ import annotations

import itertools
import pkgutil
import re
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
import whywait
import whywait.commands
from whywait import _native
from whywait.cli import main

from tests.test_docs import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = ROOT / "tests/data"
VERBS = [name for _, name, _ in pkgutil.iter_modules(whywait.commands.__path__)]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
#: Names of the reader's own program, and those of the trace that stand for them here.
STAND_IN = {
    "solve/step": "solve/exchange_halo", "PAPI_L2_TCM": "sm_efficiency", "10:25": "0.4:0.5", "1.5:2": "0.5:0.6",
    "0-3,8": "0-3,7", "scorep-*/t": "scorep_run/t", "scorep-*/p": "scorep-run/p",
}  # fmt: skip
#: Commands that are tested elsewhere, by how they begin.
ELSEWHERE = {
    "whywait serve": "test_serve: it runs until it is stopped",
    "whywait demo": "test_data",
    "whywait counters counted": "tests/record/test_counters: it needs an Open MPI that counts",
    "whywait counters import": "test_counters_import: it needs the files of Open MPI",
    "whywait iterations results --iterations step": "test_iterations: it needs a program with this parameter",
    "whywait iterations results --iterations parameter:step": "test_iterations: it needs a program with this parameter",
    "whywait bench paper": "test_cases: it takes minutes",
    "whywait record": "tests/record: it needs a program and an MPI",
    "whywait analyze whywait-": "tests/record: it needs what was recorded",
}


#: A fenced block, or an indented one.
BLOCK = re.compile(
    r"^(?P<fence>```)(?P<language>\w*)\n(?P<code>.*?)^```$|(?:(?<=\n\n)|\A)(?P<indented>(?:    .*\n(?:\n(?=    ))?)+)",
    re.DOTALL | re.MULTILINE,
)


def blocks(page) -> Iterator[tuple[str, str, bool]]:
    """Language and text of the code blocks of a page, and whether each follows the one before at once."""
    last = -1
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        code = found["code"] if found["fence"] else re.sub(r"^    ", "", found["indented"], flags=re.MULTILINE)
        yield found["language"] or "", code, found.start() - last < 3
        last = found.end()


def words(line: str) -> list[str]:
    """The words of a command, without its comment."""
    line = re.sub(r"\s{2,}\w[^'-].*$", "", line.removeprefix("$ "))
    for name, here in STAND_IN.items():
        line = line.replace(name, here)
    return shlex.split(line, comments=True)[1:]


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for _, code, _ in blocks(page):
            for line in code.splitlines():
                if re.match(rf"(\$ )?whywait ({'|'.join(VERBS)}) ", line) and not any(
                    line.removeprefix("$ ").startswith(begin) for begin in ELSEWHERE
                ):
                    yield page.name, line


def shown() -> Iterator[tuple[str, str, str]]:
    """Page, command and what the page shows that it prints."""
    for page in PAGES:
        before = ""
        for language, code, follows in blocks(page):
            first, *rest = code.splitlines()
            if first.startswith("$ whywait ") and rest:
                yield page.name, first, "\n".join(rest)
            elif language == "text" and follows and before.startswith("whywait "):
                yield page.name, before, code
            before = first if language == "sh" else ""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with everything that the pages name."""
    here = tmp_path_factory.mktemp("walkthrough")
    (here / "tests").symlink_to(ROOT / "tests")
    (here / "training").symlink_to(DATA / "kineto/late_loader/traces")
    (here / "dumps").symlink_to(DATA / "kineto/hang")
    (here / "reports").symlink_to(DATA / "nsight/nccl")
    for name in ("TRACE", "trace", "run", "scorep_run", "whywait-demo/stencil"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).symlink_to(DATA / "stencil")
    for path in (DATA / "stencil").iterdir():
        (here / path.name).symlink_to(path)
    whywait.analyze(DATA / "stencil").write(here / "results", html=True)
    main(["export", "paraver", str(DATA / "stencil"), "-o", str(here / "run.prv")])
    fence, messages = (whywait.analyze(DATA / name) for name in ("sor_fence", "sor_p2p"))
    for name in ("before", "after", *(f"run-{count}" for count in (4, 8, 16, 32, 64)), "history/a", "history/b"):
        (messages if name in {"before", "run-4", "history/a"} else fence).write(here / name)
    for name in ("scorep-run", "scorep-4", "scorep-8", "before", "after"):
        (here / name).mkdir(exist_ok=True)
        shutil.copy(DATA / "profile/profile.cubex", here / name)
    return here


@pytest.fixture(autouse=True)
def there(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize(("page", "line"), list(commands()), ids=lambda text: re.sub(r"\W+", "-", text)[:60])
def test_a_command_runs(page, line, tmp_path, monkeypatch):
    if page == "accelerators.md" or "PAPI" in line:
        # The trace of the stencil has no devices and no counters.
        _native.generate("comd-gpu", tmp_path, ranks=2, iterations=2, seed=1)
        monkeypatch.chdir(tmp_path)
    asked = words(line)
    for target in (one for flag, one in itertools.pairwise(asked) if flag == "-o" and one.endswith("/")):
        shutil.rmtree(target, ignore_errors=True)
    expected = {0, 1} if "--fail-on" in asked else {0}
    assert main(asked) in expected


def test_every_page_with_commands_is_walked():
    assert len(list(commands())) > 50
    assert {page for page, _ in commands()} >= {"README.md", "guide.md", "counters.md", "whatif.md", "series.md"}
    for begin, reason in ELSEWHERE.items():
        assert any(begin in page.read_text(encoding="utf-8") for page in PAGES), (begin, reason)


@pytest.mark.parametrize(
    ("page", "line", "text"), list(shown()), ids=lambda text: re.sub(r"\W+", "-", text.splitlines()[0])[:60]
)
def test_a_command_prints_what_its_page_shows(page, line, text, capsys):
    assert main(words(line)) == 0
    printed = [one.rstrip() for one in capsys.readouterr().out.rstrip("\n").splitlines()]
    expected = [one.rstrip() for one in text.rstrip("\n").splitlines()]
    if expected[-1] == "...":
        expected.pop()
        printed = printed[: len(expected)]
    assert printed == expected, page


def test_excerpts_of_the_guide_are_those_of_the_demo(capsys):
    assert main(["analyze", "whywait-demo/stencil", "-o", "excerpts"]) == 0
    printed = capsys.readouterr().out
    excerpts = [code for language, code, _ in blocks(ROOT / "docs/guide.md") if language == "text"]
    assert len(excerpts) == 2
    for excerpt in excerpts:
        assert excerpt in printed


@pytest.mark.parametrize(
    ("page", "number", "code"),
    [
        (page.name, number, code)
        for page in PAGES
        for number, (language, code, _) in enumerate(blocks(page))
        if language == "python"
    ],
    ids=lambda value: str(value) if len(str(value)) < 20 else "",
)
@pytest.mark.filterwarnings("ignore")
def test_python_on_a_page_runs(page, number, code):
    wanted = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)) - {"whywait"}
    if "to_pandas" in code:
        wanted.add("pandas")
    if code.startswith("duckdb"):
        wanted.add("duckdb")
    for name in sorted(wanted):
        pytest.importorskip(name, reason=f"the example of {page} uses {name}")
    if "whywait.record(" in code:
        pytest.skip("tests/record runs it: it needs a program and an MPI")
    shutil.rmtree("balanced", ignore_errors=True)
    exec(compile(code, f"{page}, block {number}", "exec"), {name: sys.modules[name] for name in wanted})  # noqa: S102
