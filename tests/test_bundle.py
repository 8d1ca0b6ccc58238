"""The script of a page: modules, type-checked and bundled into one script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from whywait.report.html import bundle

ASSETS = Path(str(bundle.ASSETS))
PAGES = ("report", "compare", "series")
MODULES = sorted(path.relative_to(ASSETS).with_suffix("").as_posix() for path in ASSETS.rglob("*.js"))


def put_together(*entries, **modules):
    return bundle.bundle(entries or ["app"], modules.__getitem__)


def test_each_module_comes_once_and_after_what_it_takes():
    program = put_together(
        app='import { b } from "./b.js";\nimport { c, d } from "./c.js";\n\nb(c, d);\n',
        b='// About b.\nimport { c } from "./c.js";\nexport function b() {\n  // Why.\n  return "//" + c; // c\n}\n',
        c="export const c = 1;\nexport class d {}\nconst own = 2;\n",
    )
    assert program == (
        "const c = 1;\nclass d {}\nconst own = 2;\n"
        '\nfunction b() {\n  return "//" + c; // c\n}\n'
        "\n\nb(c, d);\n"
    )  # fmt: skip


def test_the_last_entry_runs_after_the_others():
    program = put_together(
        "b", "c", "app", app="last();\n", b="b();\n", c='import { d } from "./d.js";\n', d="export const d = 1;\n"
    )
    assert program.endswith("\nlast();\n")
    assert "b();\n" in program


def test_modules_are_found_from_the_directory_of_the_one_that_takes_them():
    texts = {
        "page/app": 'import { a } from "../a.js";\nimport { b } from "./b.js";\nstart();\n',
        "a": 'import { c } from "./page/c.js";\nexport const a = 1;\n',
        "page/b": "export const b = 1;\n",
        "page/c": "export const c = 1;\n",
    }
    assert bundle.bundle(["page/app"], texts.__getitem__).endswith("start();\n")


@pytest.mark.parametrize(
    ("modules", "text"),
    [
        ({"app": 'import { b } from "./b.js";\n', "b": 'import { a } from "./app.js";\n'}, "modules need each other: "),
        ({"app": 'import { b, c } from "./b.js";\n', "b": "export const b = 1;\nconst c = 2;\n"},
         "app.js takes c, which b.js does not export"),
        ({"app": 'import { b } from "./b.js";\nconst c = 1;\n', "b": "export const b = 1;\nfunction c() {}\n"},
         "b.js and app.js both declare c"),
        ({"app": 'import b from "./b.js";\n'}, "app.js: .* is not a supported form of import or export"),
        ({"app": 'import { b as c } from "./b.js";\n'}, "is not a supported form of import or export"),
        ({"app": "export default 1;\n"}, "'export default 1;' is not a supported form of import or export"),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_bundled_are_named(modules, text):
    with pytest.raises(ValueError, match=text):
        put_together(**modules)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_the_pages(page):
    program = bundle.program(page)
    assert not re.search(r"^(import|export)\b", program, re.MULTILINE)
    assert program.count("openPage(") == 2  # declared once, called once


def test_every_module_is_part_of_a_page(monkeypatch):
    used, read = set(), bundle.read
    monkeypatch.setattr(bundle, "read", lambda name: used.add(name) or read(name))
    for page in PAGES:
        bundle.program(page)
    assert sorted(used) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_no_module_is_too_long_to_have_one_idea(name):
    assert len((ASSETS / f"{name}.js").read_text(encoding="utf-8").splitlines()) <= 600


needs_tsc = pytest.mark.skipif(not shutil.which("tsc"), reason="tsc (Debian: node-typescript) checks types")


def check_types(directory):
    return subprocess.run(
        ["tsc", "--pretty", "false", "--project", str(directory)], capture_output=True, text=True, check=False
    )


@needs_tsc
def test_the_scripts_pass_the_type_checker():
    done = check_types(ASSETS)
    assert (done.returncode, done.stdout) == (0, "")


@needs_tsc
def test_the_type_checker_finds_errors(tmp_path):
    shutil.copytree(ASSETS, tmp_path / "assets")
    with (tmp_path / "assets" / "format.js").open("a") as file:
        file.write("const unused = seconds.nothing;\n")
    said = check_types(tmp_path / "assets").stdout
    assert "TS2339" in said  # no such property
    assert "TS6133" in said  # never read
