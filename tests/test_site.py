"""The documentation site builds without a warning, with everything that its navigation promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.test_docs import ROOT

pytestmark = pytest.mark.docs


def test_the_site_builds(tmp_path):
    for package in ("sphinx", "myst_parser", "pydata_sphinx_theme"):
        pytest.importorskip(package, reason="the extra `docs` brings what builds the site")
    command = [sys.executable, ROOT / "docs/site/build.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index", "README", "api", "docs/specification", "tests/patterns/late-sender", "search"):
        assert (tmp_path / f"{page}.html").is_file(), page
    assert "stencil" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    interface = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert all(f'id="whywait.{name}"' in interface for name in ("analyze", "open", "load", "Result.wait_states"))
