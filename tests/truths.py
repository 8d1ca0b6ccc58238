"""What the oracle of causes finds in recorded traces, kept in the cache of pytest from run to run.

These traces take the oracle seconds each, and several tests want the same. What is kept depends on every byte of the
trace and of the oracle.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.naive_causes import LIMIT, Analysis, read, table

if TYPE_CHECKING:
    from tests.results import Table

ORACLE = (*sorted(path.name for path in Path(__file__).parent.glob("naive*.py")), "results.py", "truths.py")


class Costs(NamedTuple):
    """The costs and the critical path of a trace."""

    cells: Table
    broken: str  # what the definitions promise of traces with good clocks, and the oracle did not keep


class Kept:
    """Where truths are kept; nowhere without pytest's cache."""

    directory: Path | None = None


@cache
def oracle() -> bytes:
    """Return the digest of all that the oracle consists of."""
    digest = hashlib.sha256(f"{sys.version} {LIMIT}".encode())
    for name in ORACLE:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.digest()


def costs(anchor: Path, model: str, limit: int | None = LIMIT) -> Costs:
    """Return what the oracle finds, or found in an earlier run."""
    if Kept.directory is None:
        return _costs(anchor, model, limit)
    digest = hashlib.sha256(oracle() + f"{model} {limit if model == 'scalasca' else None}".encode())
    for file in sorted(path for path in anchor.parent.rglob("*") if path.is_file()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(anchor.parent)} {len(content)}\n".encode() + content)
    kept = Kept.directory / digest.hexdigest()
    if kept.exists():
        return pickle.loads(kept.read_bytes())  # noqa: S301
    found = _costs(anchor, model, limit)
    # Another process may be about to write the same.
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(found))
    part.replace(kept)
    return found


def _costs(anchor: Path, model: str, limit: int | None) -> Costs:
    analysis = Analysis(read(anchor), model, limit)
    broken = ""
    try:
        invariants(analysis)
    except AssertionError as error:
        broken = str(error) or "an invariant"
    return Costs(table(analysis.cells()), broken)


def invariants(analysis: Any) -> None:
    """Assert what the definitions promise for every trace with good clocks, in ticks."""
    values = analysis.values
    costs = {cell: v for cell, v in values.items() if cell[0].startswith(("delay_", "interval_delay_"))}
    waits = sum(wait for x in analysis.instances for _, wait in x.waiters)
    idle = sum(x.idle for x in analysis.instances if x.cls == "ompidle")
    assert sum(costs.values()) == pytest.approx(waits + idle, rel=1e-12)
    assert all(v > 0 for v in costs.values())

    # The path is as long as the run, so it has neither gaps nor waits.
    (first, begin, _), (_, _, end) = analysis.path[-1], analysis.path[0]
    begins = begin.event.call.E if begin else first.events[0].t
    ends = end.event.call.E if end.event.call else end.event.t
    length = sum(v for (metric, *_), v in values.items() if metric == "critical_path")
    assert length == ends - begins
    assert all(v >= 0 for (metric, *_), v in values.items() if metric == "critical_path")

    waiting = defaultdict(int)
    for x in analysis.instances:
        for point, wait in x.waiters:
            assert 0 <= wait <= point.wait <= point.event.call.L - point.event.call.E
            waiting[f"mpi_wait_indirect_{x.cls}", point.path, point.loc.rank, point.loc.thread] += wait
    for cell, v in values.items():
        if cell[0].startswith("mpi_wait_indirect_"):
            assert 0 < v <= waiting[cell] * (1 + 1e-12)
