"""Write the pages that are made from the program: ``python docs/make_pages.py DIRECTORY``."""

from __future__ import annotations

import sys
from pathlib import Path

import make_findings
import make_formulas
import make_metrics
import make_patterns
import make_tables

PAGES = {
    "findings": make_findings.page,
    "formulas": make_formulas.page,
    "metrics": make_metrics.page,
    "patterns": make_patterns.page,
    "tables": make_tables.page,
}


def write(directory: Path) -> None:
    """Write all pages to a directory."""
    for name, page in PAGES.items():
        (directory / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
