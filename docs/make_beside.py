"""Write the table of programs that were run alone and recorded into record.md.

It takes some minutes, and what it runs must be installed: MPICH and Open MPI of Debian with the compilers of C and
Fortran, the packages scalapack-mpi-test, netpipe-openmpi and netpipe-mpich2, and the cases (``WHYWAIT_SHARED``).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.record.beside import ASPECTS, SUBJECTS, differences  # noqa: E402 - found by then
from tests.record.mpis import MPIS  # noqa: E402

PAGE = ROOT / "docs/record.md"
BEGIN, END = "<!-- made by make_beside.py -->\n", "<!-- end -->\n"


def cell(found: dict[str, list[str]] | None) -> str:
    """Return what the comparison of a program says."""
    if found is None:
        return ""
    differing = [aspect for aspect, lines in found.items() if lines]
    return f"differs: {', '.join(differing)}" if differing else f"{len(found)} the same"


def table() -> str:
    """Run all programs and return the table."""
    mpis = MPIS[:2]
    lines = [f"| program | ranks | {' | '.join(mpi.name for mpi in mpis)} |", "|---|---|---|---|"]
    for program in SUBJECTS:
        cells = []
        for mpi in mpis:
            try:
                with tempfile.TemporaryDirectory() as directory:
                    found = differences(program, mpi, Path(directory))
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{program.name}, {mpi.name}: no time\n")
                found = None
            cells.append(cell(found))
            for aspect, differing in (found or {}).items():
                for line in differing:
                    sys.stderr.write(f"{program.name}, {mpi.name}, {aspect}: {line}\n")
        if any(cells):
            lines.append(f"| {program.name} | {program.ranks} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Replace the table in the page."""
    made = table()
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE} has no place for the table: {BEGIN}")
    aspects = ", ".join(ASPECTS.values())
    PAGE.write_text(f"{before}{BEGIN}What is compared: {aspects}.\n\n{made}{END}{after}")


if __name__ == "__main__":
    main()
