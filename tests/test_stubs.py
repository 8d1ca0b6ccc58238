"""The stub of the native module agrees with the module."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import whywait

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent


def test_the_stub_agrees_with_the_module(tmp_path):
    allowed = tmp_path / "allowed"
    # What the stub names is public enough; `Ranks` is what the module asks of its caller.
    allowed.write_text("whywait\\._native\\.(__all__|Ranks)")
    command = [sys.executable, "-m", "mypy.stubtest", "whywait._native", "--concise", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_architecture_lists_what_the_module_has():
    stub = ast.parse((Path(whywait.__file__).parent / "_native.pyi").read_text(encoding="utf-8"))
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`(?:\w*\.)?(\w+)[(`]", page))
    parts = [node for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    methods = [part for node in parts if isinstance(node, ast.ClassDef) and node.name != "Ranks" for part in node.body]
    named = {node.name for node in [*parts, *methods] if isinstance(node, ast.FunctionDef)}
    assert {name for name in named if not name.startswith("__")} - described == set()
