"""The oracle of one-sided communication is right: it agrees with Scalasca where this has an answer, and with what the
recorded programs are known to wait for. (tests/test_patterns.py holds it to the documents.)
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive, naive_owners, naive_rma
from tests.results import SHARED, UNRECORDED
from tests.rma_programs import one_sided_programs
from tests.test_patterns import PATTERNS
from tests.tracedsl import trace_from_text

CASES = sorted(path.parent for path in SHARED.glob("re*/*/scout-rma.json.gz"))
DATA = Path(__file__).parent / "data"
# Scalasca's analysis of these traces measures the collectives from their records.
STAMPED = {"mpi_rma_wait_at_create", "mpi_rma_wait_at_free", "mpi_rma_wait_at_fence", "mpi_rma_early_fence"}


def scalasca(case: Path) -> dict:
    table = {}
    for metric, rows in json.loads(gzip.decompress((case / "scout-rma.json.gz").read_bytes()))["data"].items():
        if "_rma_" in metric or metric in {"bytes_put", "bytes_get"}:
            cells = defaultdict(float)
            for row in rows:
                cells[tuple(row["callpath"]), row["rank"]] += row["exclusive"]
            table[metric] = {cell: value for cell, value in cells.items() if value}
    return table


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_reproduces_scalasca(case):
    expected = scalasca(case)
    assert expected["mpi_rma_pairsync_count"]
    trace = naive.Trace(case / "archive" / "traces.otf2")
    stamped, ours = (naive_rma.analyze(trace, stamps=stamps).table() for stamps in (True, False))
    for metric, cells in expected.items():
        found = (stamped if metric in STAMPED else ours).get(metric, {})
        assert found.keys() == cells.keys(), metric
        assert list(found.values()) == pytest.approx([cells[cell] for cell in found], rel=0, abs=1e-12), metric


RECORDED = sorted(path.parent for path in DATA.glob("*/expected.json") if "mpi_rma_" in path.read_text())


def contains(callpath, names) -> bool:
    rest = iter(callpath)
    return all(name in rest for name in names)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_the_oracle_finds_the_injected_delays(case):
    """The oracle finds the delays that the recorded programs inject: where, who waits, and for whom."""
    recorded = naive.Trace(case / "traces.otf2")
    one_sided, others = naive_rma.analyze(recorded), naive.analyze(recorded)
    waits = [(w.metric, w.rank, w.callpath, w.waiting / one_sided.resolution, w.cause_rank) for w in one_sided.waits]
    waits += [(w.kind, w.rank, w.callpath, w.waiting / others.resolution, w.cause_rank) for w in others.waits]
    for row in json.loads((case / "expected.json").read_text()):
        names = row["callpath"].split("/")
        if not any(metric.startswith("mpi_rma_") for metric in row["metrics"]):
            continue
        found = [w for w in waits if w[0] in row["metrics"] and w[1] == row["rank"] and contains(w[2], names)]
        assert sum(w[3] for w in found) == pytest.approx(row["seconds"], rel=0, abs=row["tolerance"]), row
        if row["seconds"] and row["cause"] is not None:
            assert max(found, key=lambda w: w[3])[4] == row["cause"], row


def test_the_last_factor_takes_it_all(tmp_path):
    """By process the split changes nothing: thesis, section 5.6, gives a whole wait to what was waited for last."""
    text = (PATTERNS / "one-sided-contention-and-progress.md").read_text()
    trace = re.findall(r"^```trace\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[-1]
    result = naive_rma.analyze(naive.Trace(trace_from_text(trace, tmp_path)))
    waits = [w for w in result.waits if not w.metric.endswith(("last_call", "away"))]
    by_last, by_rank = defaultdict(set), defaultdict(int)
    for w in waits:
        by_last[w.last].add(w.rank)
        by_rank[w.rank] += w.waiting
    assert by_last == {"contention": {1, *range(3, 12)}, "progress": {2}}
    assert by_rank[1] == pytest.approx(1.992 * result.resolution)
    assert by_rank[2] == pytest.approx(2.082 * result.resolution)


class Epoch(NamedTuple):
    """What the order of epochs depends on."""

    number: int
    shared: bool
    release: Interval
    order: int


class Interval(NamedTuple):
    enter: int
    leave: int


@settings(max_examples=200)
@given(
    drawn=st.lists(
        st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 4), st.integers(0, 12)), min_size=2, max_size=5
    )
)
def test_the_first_order_is_found_without_trying_all(drawn):
    """Choosing the first of those that none has to precede finds the first of all orders."""
    epochs, proofs = [], {}
    for number, (shared, begin, length, proof) in enumerate(drawn):
        epoch = Epoch(number, shared, Interval(begin, begin + length), begin + length)
        epochs.append(epoch)
        proofs[epoch] = min(proof, begin + length)
    tried = naive_owners.first_order(epochs, proofs)
    assert naive_owners.first_order(epochs, proofs, few=0) == tried


@settings(max_examples=60)
@given(trace=one_sided_programs())
def test_waits_of_random_programs_keep_the_invariants(trace):
    """Invariants of every correct program."""
    with tempfile.TemporaryDirectory() as directory:
        result = naive_rma.analyze(naive.Trace(trace_from_text(trace, directory)))
    by_call = defaultdict(lambda: defaultdict(int))
    for w in result.waits:
        assert 0 < w.waiting <= w.leave - w.enter, w
        by_call[w.rank, w.callpath, w.enter, w.leave][w.metric] += w.waiting
        assert w.rank != w.cause_rank, w
    for call, waits in by_call.items():
        both = [v for metric, v in waits.items() if metric.endswith(("lock_competition", "wait_for_progress"))]
        assert sum(both) <= call[-1] - call[-2], call
        parts = [("early_fence", "wait_at_fence"), ("late_complete", "early_wait")]
        parts += [(f"{kind}_wait_for_progress_served", f"{kind}_wait_for_progress") for kind in ("sync", "comm")]
        for part, whole in parts:
            assert waits[f"mpi_rma_{part}"] <= waits[f"mpi_rma_{whole}"], call
        for kind in ("sync", "comm"):
            no_overlap = waits[f"mpi_rma_{kind}_wait_for_progress"]
            last_call = waits[f"mpi_rma_{kind}_wait_for_progress_last_call"]
            served = waits[f"mpi_rma_{kind}_wait_for_progress_served"]
            assert no_overlap <= last_call, call
            assert bool(no_overlap) == bool(last_call), call
            assert no_overlap - served <= waits[f"mpi_rma_{kind}_wait_for_progress_away"], call
    for (metric, *cell), value in result.cells.items():
        if metric == "mpi_rma_pairsync_unneeded_count":
            assert 0 <= value <= result.cells["mpi_rma_pairsync_count", *cell]
    # Every epoch of these programs comes to its end, so every transfer does.
    assert all(transfer.end is not None for transfer in result.transfers)
