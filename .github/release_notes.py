"""Print what CHANGELOG.md says of a version: ``release_notes.py v0.2.0``. The version must be that of Cargo.toml."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str) -> str:
    """Return the section of a version, without its heading."""
    version = tag.removeprefix("v")
    own = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    if version != own:
        sys.exit(f"the tag says {version}, Cargo.toml {own}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[?{re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if section is None:
        sys.exit(f"CHANGELOG.md has no section for {version}")
    return section[1].strip()


if __name__ == "__main__":
    sys.stdout.write(notes(sys.argv[1]) + "\n")
