"""What changes save, as predicted, is what they save: programs whose savings are known from their text.

`tests/data/savings/savings.c` says beside each program what its change saves; `record.py` there recorded them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import whywait
from whywait.hypotheses import Balance, Cut, Overlap, Scale

SAVINGS = Path(__file__).parent / "data/savings"
UNIT = 0.02
# The change of each program, and what it saves, in units. Where the first finding proposes a change: its rule, and what
# that saves.
KNOWN = {
    "imbalance": (Balance("imbalance"), 30, "imbalance", 30),
    "groups": (Balance("groups"), 10, "imbalance", 10),
    "staircase": (Balance("staircase"), 62.5, "imbalance", 62.5),
    "alone": (Scale("decide", 0.25), 30, "one_does_all", 30),
    "noise": (Cut("noise/MPI_Barrier"), 21, "varying", None),
    "faster": (Scale("kernel", 0.5), 20, None, None),
    # Balanced, rank 1 works as long as all do on average.
    "prepare": (Scale("prepare@0", 0.5), 0, "imbalance", 17.5),
    # Distributed over all ranks, rank 0 produces in a quarter of 2.
    "sender": (Scale("produce", 0.5), 10, "one_does_all", 15),
    "tail": (Scale("write_results", 0.75), 10, "one_does_all", 30),
    "overlap": (Overlap("overlap/MPI_Waitall"), 20, "late_partner", None),
    "pipeline": (Scale("stage", 0.5), 20, "pipeline", None),
    "master": (Scale("serve", 0.5), 15, "master_worker", None),
}


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def archives(request, tmp_path_factory):
    """All programs, recorded with an MPI."""
    directory = tmp_path_factory.mktemp(request.param)
    shutil.unpack_archive(SAVINGS / f"{request.param}.tar.xz", directory)
    return directory


def close(saved: float, known: float) -> bool:
    """Return whether a prediction is within 15% of what is known."""
    return abs(saved - known) <= max(0.15 * known, 0.1 * UNIT)


@pytest.mark.parametrize("program", KNOWN)
def test_what_a_change_saves_is_predicted(program, archives):
    change, units, rule, of_first = KNOWN[program]
    result = whywait.analyze(archives / program)
    simulated = whywait.whatif(result, [change])
    assert close(simulated.before - simulated.after, units * UNIT)
    found = result.findings(prices=True)
    # Where all work alike, the first finding is about the machine.
    if rule is not None:
        assert found[0].rule == rule
    if of_first is not None:
        assert close(found[0].price.saved, of_first * UNIT)
    assert "share 2 cores. " in found.verdict()
