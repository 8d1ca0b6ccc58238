"""Computational imbalance: hand-worked profiles, and invariants of every run."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from whywait import _native
from whywait.model.imbalance import NAMES, imbalance

from tests import fake_native

WORK = ("work", "USER", "FUNCTION")
PARALLEL = ("!$omp parallel @main.c:7", "OPENMP", "PARALLEL")
STORED = ("time", "visits")


def cells(regions, parents, ranks, time, visits=None):
    """Return {metric: {(callpath, location): value}}; who computes at a place has visited it unless told otherwise."""
    visits = {cell: 1.0 for cell, value in time.items() if value} if visits is None else visits
    analysis = fake_native.FakeAnalysis(parents, regions, ranks, {"time": time, "visits": visits})
    result = fake_native.result(analysis, stored=STORED)
    return {
        name: {
            (int(result.tree.preorder[key // len(ranks)]), int(key % len(ranks))): value
            for key, value in zip(*found, strict=True)
        }
        for name, found in imbalance(result.profile, result.places).items()
    }


RANKS = [(0, 0), (1, 0), (2, 0)]


def test_imbalance_matches_a_hand_worked_profile():
    # All visit the first place, on average for 3 s; only rank 1 visits the second; rank 2 misses the third.
    time = {(0, 0): 5.0, (0, 1): 3.0, (0, 2): 1.0, (1, 1): 6.0, (2, 0): 2.0, (2, 1): 4.0}
    found = cells([fake_native.MAIN, WORK, fake_native.SOLVE], [None, 0, 0], RANKS, time)
    assert found == {
        "imbalance": {
            (0, 0): 2, (0, 2): 2, (1, 0): 2, (1, 1): 4, (1, 2): 2, (2, 1): 2, (2, 2): 2,
        },
        "imbalance_above": {(0, 0): 2, (1, 1): 4, (2, 1): 2},
        "imbalance_above_single": {(1, 1): 4},
        "imbalance_below": {(0, 2): 2, (1, 0): 2, (1, 2): 2, (2, 2): 2},
        "imbalance_below_bypass": {(1, 0): 2, (1, 2): 2, (2, 2): 2},
        "imbalance_below_singularity": {(1, 0): 2, (1, 2): 2},
    }  # fmt: skip


def test_metric_locations_and_streams_have_no_imbalance():
    ranks = [(0, 0), (0, 1, "METRIC"), (1, 0), (1, 1, "ACCELERATOR_STREAM")]
    found = cells([fake_native.MAIN], [None], ranks, {(0, 0): 5.0, (0, 2): 3.0, (0, 3): 9.0})
    assert found["imbalance"] == {(0, 0): 1, (0, 2): 1}


def test_no_wait_is_work_in_the_imbalance_of_the_path():
    # Upper bounds of Wait for Progress, and what is a part of another wait, count as that; hidden waiting is none.
    parts = (
        "_last_call",
        "_away",
        "_served",
        "_hidden",
        "_wo",
        "early_fence",
        "late_complete",
        "_completion",
        "_count",
    )
    waits = [
        name
        for name in _native.stored_metrics()
        if re.match("(mpi|shmem|armci)_(?!wait_(in|propagat))", name)
        and re.search("wait|late|early|lock_competition", name)
        and not any(part in name for part in parts)
    ]
    assert len(waits) > 30
    for name in waits:
        # The path is 5 s of rank 0; of the 5 s of rank 1 it waited 2.
        values = {"time": {(0, 0): 5.0, (0, 1): 5.0}, "critical_path": {(0, 0): 5.0}, name: {(0, 1): 2.0}}
        analysis = fake_native.FakeAnalysis([None], [fake_native.MAIN], RANKS[:2], values)
        result = fake_native.result(analysis, stored=[*values])
        assert result.metrics["critical_path_imbalance"].total == pytest.approx(1.0), name


def test_imbalance_of_the_path_is_against_those_who_run_the_program():
    ranks = [(0, 0), (0, 1, "METRIC"), (1, 0), (1, 1, "ACCELERATOR_STREAM")]
    values = {"time": {(0, 0): 5.0, (0, 2): 3.0, (0, 3): 9.0}, "critical_path": {(0, 0): 5.0}}
    result = fake_native.result(fake_native.FakeAnalysis([None], [fake_native.MAIN], ranks, values), stored=[*values])
    assert result.metrics["critical_path_imbalance"].total == pytest.approx(1.0)


def test_waiting_is_no_computation():
    found = cells([fake_native.MAIN, fake_native.RECV], [None, 0], RANKS, {(1, 0): 5.0})
    assert all(not values for values in found.values())


def test_who_visits_without_taking_time_is_there():
    found = cells([fake_native.MAIN], [None], RANKS[:2], {(0, 0): 2.0}, {(0, 0): 1.0, (0, 1): 1.0})
    assert found["imbalance_below"] == {(0, 1): 1}
    assert not found["imbalance_below_bypass"]
    assert not found["imbalance_above_single"]


def test_workers_share_only_what_is_parallel():
    ranks = [(0, 0), (0, 1), (1, 0), (1, 1)]
    time = {(0, 0): 4.0, (0, 2): 2.0, (2, 0): 8.0, (2, 1): 4.0, (2, 2): 4.0}
    found = cells([fake_native.MAIN, PARALLEL, WORK], [None, 0, 1], ranks, time)
    assert found["imbalance"] == {(0, 0): 1, (0, 2): 1, (2, 0): 4, (2, 3): 4}


def test_one_location_has_no_imbalance():
    assert cells([fake_native.MAIN], [None], [(0, 0)], {(0, 0): 1.0}) == {}


@given(st.integers(2, 6).flatmap(lambda n: st.lists(st.lists(st.integers(0, 99), min_size=n, max_size=n), max_size=4)))
def test_excess_and_shortfall_balance(rows):
    ranks = [(rank, 0) for rank in range(len(rows[0]) if rows else 2)]
    time = {(callpath, rank): float(value) for callpath, row in enumerate(rows) for rank, value in enumerate(row)}
    found = {
        name: sum(values.values())
        for name, values in cells([WORK] * len(rows), [None] * len(rows), ranks, time).items()
    }  # fmt: skip
    assert set(found) == set(NAMES)
    assert found["imbalance"] == pytest.approx(found["imbalance_above"] + found["imbalance_below"])
    assert found["imbalance_above"] == pytest.approx(found["imbalance_below"])
    assert found["imbalance_above_single"] <= found["imbalance_above"]
    assert found["imbalance_below_singularity"] <= found["imbalance_below_bypass"] <= found["imbalance_below"] + 1e-9
    assert found["imbalance_below"] == pytest.approx(sum(np.clip(np.mean(row) - row, 0, None).sum() for row in rows))
