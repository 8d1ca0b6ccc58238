"""Fill the table of docs/one-sided.md: ``python docs/make_one_sided.py [MPI ...]``.

It says what programs have waited, and what is found in their recordings, with the MPIs of tests/record/mpis.py or
those that are named. Run it on an idle machine: MPICH polls, and its ranks wait for a core rather than for each other
where there are too few. So a program is recorded again, up to five times in all, if something else is found than it
has waited, as tests do. A part of tests/record/test_truth.py makes sure in each run of CI that the table stays true,
the nightly tests repeat all of it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.record.truth import SCENARIOS, cells, measure  # noqa: E402

_TABLE = re.compile(r"(<!-- truth -->\n).*?(<!-- /truth -->)", re.DOTALL)
_ATTEMPTS = 5
_NAMES = {"mpich": "MPICH (Debian)", "mpich-wheel": "MPICH (wheel)", "openmpi": "Open MPI (Debian)"}


def table(names: list[str]) -> str:
    """Record all programs; return the table in Markdown, a line for each way to wait and a column for each MPI."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for mpi, variant, scenario in cells():
        if names and mpi.name not in names:
            continue
        column = (_NAMES[mpi.name], variant)
        for _ in range(_ATTEMPTS):
            with tempfile.TemporaryDirectory() as directory:
                one = measure(mpi, variant, scenario, Path(directory))
            if one.is_right:
                break
        text = f"{1e3 * one.found:.1f} of {1e3 * one.truth:.1f}"
        if not one.is_right:
            text += f", at most {1e3 * one.most:.1f}" if one.is_bounded else " (!)"
        found.setdefault(column, {})[scenario] = text
        sys.stderr.write(" ".join([*filter(None, column), scenario, text]) + "\n")
    heads = [", ".join(filter(None, column)) for column in found]
    lines = ["| rank 0 waits for | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for scenario, (what, _) in SCENARIOS.items():
        lines.append("| " + " | ".join([what, *(of.get(scenario, "") for of in found.values())]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = DOCS / "one-sided.md"
    page.write_text(_TABLE.sub(rf"\g<1>{table(sys.argv[1:])}\g<2>", page.read_text(encoding="utf-8")), encoding="utf-8")
