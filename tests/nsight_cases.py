"""The exports of programs with known waits: where they are, their waits, and those that a result has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.results import SHARED, UNRECORDED

DATA = Path(__file__).parent / "data/nsight"
# What the waits between ranks begin with that the cases tell.
PATTERNS = ("mpi_latesender", "mpi_latereceiver", "mpi_barrier_wait", "mpi_wait_nxn", "mpi_latebroadcast", "ccl_")


def case(name):
    """Return the directory of a case; some are in the repository."""
    directory = DATA / name if (DATA / name).is_dir() else SHARED / "nsight" / name
    if not directory.is_dir():
        pytest.skip(UNRECORDED)
    return directory


def right(name):
    """Return the waits of a case: row, rank, cause, and length in ns."""
    waits = json.loads((case(name) / "right.json").read_text())["waits"]
    return sorted((wait["pattern"], wait["rank"], wait["cause"], wait["ns"]) for wait in waits)


def found(result):
    """Return the waits between ranks that a result has."""
    own = [row for row in result.wait_states().to_pylist() if row["kind"].startswith(PATTERNS)]
    return sorted((row["kind"], row["rank"], row["cause_rank"], round(row["waiting"] * 1e9)) for row in own)
