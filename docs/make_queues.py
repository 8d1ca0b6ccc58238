"""Fill the table of unexpected messages in docs/counters.md: ``WHYWAIT_SPC_OPENMPI=PREFIX python docs/make_queues.py``.

It says what an Open MPI that counts (``--enable-spc``) says of its queues, and what the replay of the same runs has.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.record.unexpected import RUNS, measure  # noqa: E402

_TABLE = re.compile(r"(<!-- queues -->\n).*?(<!-- /queues -->)", re.DOTALL)
_HEADS = (
    "run", "messages", "at least", "`UNEXPECTED` of Open MPI", "at most", "longest queue", "in the replay",
    "`OUT_OF_SEQUENCE`", "`mpi_oos_possible`",
)  # fmt: skip


def table() -> str:
    """Record all runs; return the table in Markdown."""
    lines = ["| " + " | ".join(_HEADS) + " |", "|---" + "|---:" * (len(_HEADS) - 1) + "|"]
    for name, (what, *_) in RUNS.items():
        with tempfile.TemporaryDirectory() as directory:
            one, _, _ = measure(name, Path(directory))
        numbers = (
            one.messages, one.at_least, one.counted, one.at_most, one.longest, one.replayed, one.out_of_sequence,
            one.possible,
        )  # fmt: skip
        lines.append("| " + " | ".join([what, *(f"{number:,}" for number in numbers)]) + " |")
        sys.stderr.write(lines[-1] + "\n")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = DOCS / "counters.md"
    page.write_text(_TABLE.sub(rf"\g<1>{table()}\g<2>", page.read_text(encoding="utf-8")), encoding="utf-8")
