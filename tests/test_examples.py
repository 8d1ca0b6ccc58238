"""The examples run, and their notebooks show the current output."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("make_examples", ROOT / "docs/make_examples.py")
make_examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_examples)


@pytest.mark.parametrize("script", make_examples.EXAMPLES, ids=lambda script: script.stem)
def test_notebooks_show_what_the_examples_say(script):
    stored = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    made = json.loads(make_examples.notebook(script))
    assert [cell["source"] for cell in stored["cells"]] == [cell["source"] for cell in made["cells"]]
    for cell, again in zip(stored["cells"], made["cells"], strict=True):
        assert cell.get("outputs") == again.get("outputs"), "run docs/make_examples.py"
    assert stored == made
    assert sum(bool(cell.get("outputs")) for cell in made["cells"]) >= 3


def test_every_example_is_in_the_gallery():
    gallery = (ROOT / "docs/gallery.md").read_text()
    assert len(make_examples.EXAMPLES) == 4
    for script in make_examples.EXAMPLES:
        assert f"](examples/{script.stem}.ipynb)" in gallery


def test_pictures_are_small():
    for picture in ROOT.glob("docs/*.png"):
        assert picture.stat().st_size < 200_000, picture.name


def test_the_measurement_of_reports_runs():
    command = [sys.executable, "benches/report.py", "--ranks", "64", "--callpaths", "12", "--metrics", "20"]
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert "two runs side by side" in run.stdout, run.stderr
    assert run.stdout.count("MB") == 2
