"""The script of a page: modules, type-checked and bundled into one script."""

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from whywait.report.html.bundle import bundle

ASSETS = Path(str(files("whywait.report").joinpath("assets")))
MODULES = sorted(path.stem for path in ASSETS.glob("*.js"))


def put_together(**modules):
    return bundle("app", modules.__getitem__)


def test_each_module_comes_once_and_after_what_it_takes():
    program = put_together(
        app='import { b } from "./b.js";\nimport { c, d } from "./c.js";\n\nb(c, d);\n',
        b='// About b.\nimport { c } from "./c.js";\nexport function b() { return c; }\n',
        c="export const c = 1;\nexport class d {}\nconst own = 2;\n",
    )
    assert program == (
        "const c = 1;\nclass d {}\nconst own = 2;\n"
        "\n// About b.\nfunction b() { return c; }\n"
        "\n\nb(c, d);\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("modules", "text"),
    [
        ({"app": 'import { b } from "./b.js";\n', "b": 'import { a } from "./app.js";\n'}, "modules need each other: "),
        ({"app": 'import { b, c } from "./b.js";\n', "b": "export const b = 1;\nconst c = 2;\n"},
         "app.js takes c, which b.js does not export"),
        ({"app": 'import { b } from "./b.js";\nconst c = 1;\n', "b": "export const b = 1;\nfunction c() {}\n"},
         "b.js and app.js both declare c"),
        ({"app": 'import b from "./b.js";\n'}, "app.js: .* is of a form that is not known here"),
        ({"app": 'import { b as c } from "./b.js";\n'}, "is of a form that is not known here"),
        ({"app": "export default 1;\n"}, "'export default 1;' is of a form that is not known here"),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_bundled_are_named(modules, text):
    with pytest.raises(ValueError, match=text):
        put_together(**modules)


@pytest.mark.parametrize("entry", ["app", "compare"])
def test_the_programs_of_the_pages(entry):
    program = bundle(entry, lambda name: (ASSETS / f"{name}.js").read_text(encoding="utf-8"))
    assert not re.search(r"^(import|export)\b", program, re.MULTILINE)
    assert program.count("openPage(") == 2  # declared once, called once


def test_every_module_is_part_of_a_page():
    used = set()
    for entry in ("app", "compare", "series"):
        bundle(entry, lambda name: used.add(name) or (ASSETS / f"{name}.js").read_text(encoding="utf-8"))
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
