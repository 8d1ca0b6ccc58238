"""Fill the table of docs/whatif.md with predicted and measured changes: ``python docs/make_changes.py [PROGRAM ...]``.

Programs are recorded before and after a change with each MPI of tests/record/changes.py. Run it on an idle machine:
what disturbs a run is noise of the prediction. The nightly test tests/record/test_changes.py repeats a part of it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.record.changes import CHANGES, CHECKED, Pair, measure, median, mpis  # noqa: E402

_TABLE = re.compile(r"(<!-- changes -->\n).*?(<!-- /changes -->)", re.DOTALL)
_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}


def row(pairs: list[Pair]) -> str:
    """Return a program's cells for an MPI: medians in ms, and in how many pairs the estimate held."""
    before, saved, error, after = (1e3 * median(pairs, name) for name in ("before", "saved", "error", "after"))
    held = f"{sum(pair.holds for pair in pairs)} of {len(pairs)}"
    stated = f"± {error:.0f}" if error < float("inf") else "± unknown"
    return f"{before:.0f} | {before - saved:.0f} {stated} | {after:.0f} | {held}"


def table(programs: list[str]) -> str:
    """Record programs before and after their changes; return the table in Markdown, and what holds in all."""
    lines = ["| change | MPI | before | predicted | after | estimate holds |", "|---|---|---:|---:|---:|---:|"]
    held: dict[bool, list[bool]] = {False: [], True: []}
    for program in programs:
        for mpi in mpis():
            with tempfile.TemporaryDirectory() as directory:
                pairs = measure(mpi, program, Path(directory))
            held[program in CHECKED] += [pair.holds for pair in pairs]
            star = "*" * (program in CHECKED)
            lines.append(f"| {CHANGES[program][0]}{star} | {_NAMES[mpi.name]} | {row(pairs)} |")
            sys.stderr.write(lines[-1] + "\n")
    known, checked = (f"{sum(of)} of {len(of)}" for of in held.values())
    return "\n".join(
        [
            *lines,
            "",
            f"The estimate held in {known} pairs, and in {checked} of those that are only for the check (*).\n",
        ]
    )


if __name__ == "__main__":
    page = DOCS / "whatif.md"
    made = table(sys.argv[1:] or list(CHANGES))
    page.write_text(_TABLE.sub(rf"\g<1>{made}\g<2>", page.read_text(encoding="utf-8")), encoding="utf-8")
