"""What the stub of the native module promises is what the module has."""

from __future__ import annotations

import subprocess
import sys


def test_the_stub_agrees_with_the_module(tmp_path):
    allowed = tmp_path / "allowed"
    # What the stub names is public enough; `Ranks` is what the module asks of its caller.
    allowed.write_text("whywait\\._native\\.(__all__|Ranks)")
    command = [sys.executable, "-m", "mypy.stubtest", "whywait._native", "--concise", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
