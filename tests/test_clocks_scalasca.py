"""Waits after correction of clocks, compared with those that Scalasca finds with its own correction.

The truth is the recording without its clock offsets: all processes of a node read one counter; for `skew_us` and
`skew_ms`, that of `skew_base`. Scalasca's waits are there for all of these, its times for the last two only.
"""

from __future__ import annotations

import pytest
import whywait

from tests.clocked import errors, event_times, with_offsets
from tests.results import FAMILIES, ONE_SIDED, SHARED, UNRECORDED, corrected_scout, is_time, outcome, scout

CASES = sorted(found.parent for found in SHARED.glob("*/*/scout-time-correct.json.gz"))
pytestmark = pytest.mark.skipif(not CASES, reason=UNRECORDED)

WAITS = [
    metric
    for metric in (*FAMILIES, *ONE_SIDED)
    if is_time(metric) and not metric.endswith("_completion") and metric not in ("time", "omp_management", "omp_fork")
]
VIOLATED = {"skew_base", "skew_us", "skew_ms", "mpi_nbc", "mpi_self", "hpcg", "npb_cg_flush"}
# Scalasca's results are written with fewer digits than ours.
SAME = 1e-6


def truth_of(case, directory):
    recording = SHARED / "cases" / "skew_base" if case.name.startswith("skew_") else case
    return with_offsets(recording / "archive", directory, lambda _: [])


def differ(cells, others, metrics):
    """Return by how much values differ: the sum over metrics, call paths, and processes, and the most, in seconds."""
    sizes = [
        abs(cells.get(metric, {}).get(cell, 0) - others.get(metric, {}).get(cell, 0))
        for metric in metrics
        for cell in cells.get(metric, {}).keys() | others.get(metric, {}).keys()
    ]
    return sum(sizes), max(sizes, default=0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_waits_are_nearer_to_the_truth_than_those_of_scalasca(case, tmp_path):
    anchor, plain = case / "archive" / "traces.otf2", scout(case)
    measured = outcome(anchor).cells
    # What differs before any correction does so for other reasons (deviations.md).
    metrics = [metric for metric in WAITS if metric in plain and differ(measured, plain, [metric])[1] <= SAME]
    assert len(metrics) >= 3
    truth, ours = outcome(truth_of(case, tmp_path / "truth")).cells, outcome(anchor, clocks="auto", census=True)
    of_ours, of_theirs = (differ(cells, truth, metrics) for cells in (ours.cells, corrected_scout(case)))
    before = differ(measured, truth, metrics)
    assert (case.name in VIOLATED) == (ours.facts["clocks"]["violated"] > 0)
    if case.name in VIOLATED:
        assert all(mine < its / 10 for mine, its in zip(of_ours, of_theirs, strict=True)), (of_ours, of_theirs)
    else:
        # Nothing contradicts the clocks, so neither changes them.
        assert of_ours == pytest.approx(of_theirs, abs=SAME)
        assert of_ours == before


@pytest.mark.parametrize(
    "case", [case for case in CASES if (case / "archive-corrected").exists()], ids=lambda c: c.name
)
@pytest.mark.parametrize("method", ["lines", "auto"])
def test_times_are_nearer_to_the_truth_than_those_of_scalasca(case, method, tmp_path):
    truth = event_times(truth_of(case, tmp_path / "truth"))
    found = whywait.correct(case / "archive", tmp_path / "corrected", clocks=method)
    ours, theirs = (
        errors(event_times(anchor), truth) for anchor in (found["written"], case / "archive-corrected" / "traces.otf2")
    )
    assert all(mine < its / 10 for mine, its in zip(ours, theirs, strict=True)), (ours, theirs)
