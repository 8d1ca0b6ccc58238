"""The stub of the native module agrees with the module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import whywait

pytestmark = pytest.mark.docs


def test_the_stub_agrees_with_the_module(tmp_path):
    allowed = tmp_path / "allowed"
    # What the stub names is public enough; `Ranks` is what the module asks of its caller.
    allowed.write_text("whywait\\._native\\.(__all__|Ranks)")
    command = [sys.executable, "-m", "mypy.stubtest", "whywait._native", "--concise", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_describes_what_the_module_has():
    """Its docstrings say what native tables hold, or which table of docs/tables.md they are."""
    stub = ast.parse((Path(whywait.__file__).parent / "_native.pyi").read_text(encoding="utf-8"))
    parts = [(node.name, node) for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    classes = [(name, node) for name, node in parts if isinstance(node, ast.ClassDef)]
    methods = [(f"{name}.{part.name}", part) for name, node in classes for part in node.body if hasattr(part, "name")]
    named = {name: ast.get_docstring(part) for name, part in [*parts, *methods] if "__" not in name}
    assert len(named) > 70
    assert [name for name, text in named.items() if not text] == []
