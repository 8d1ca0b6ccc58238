"""Traces of PyTorch's profiler: waits between devices, and their costs, are those of the programs."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
import whywait

from tests.results import SHARED, UNRECORDED

CASES = SHARED / "kineto"
if not CASES.is_dir():
    pytest.skip(UNRECORDED, allow_module_level=True)

ROWS = {
    "barrier": "ccl_wait_barrier",
    "broadcast": "ccl_late_broadcast",
    "scatter": "ccl_late_broadcast",
    "reduce": "ccl_early_reduce",
    "gather": "ccl_early_reduce",
    "recv": "ccl_latesender",
    "send": "ccl_latereceiver",
}
# Each has the right waits; those without group names agree to the microseconds of their times.
EXACT = (
    "late_loader",
    "late_loader_2.4",
    "overlap",
    "chain",
    "generic_names",
    "host_bound",
    "host_chain",
    "pipeline",
    "directions",
    "current_stream",
    "graph",
    "coalesced",
)
# Case, rank and the end of the call path that pay, and the waiting (ms) that they pay for.
CAUSES = [
    ("late_loader", 2, "DataLoader", 225),
    ("chain", 3, "attention_forward", 135),
    ("generic_names", 3, "attention_forward", 135),
    ("host_bound", 1, "gc_collect", 75),
    ("host_chain", 3, "gemm_forward", 108),
    ("overlap", 1, "gemm_head", 72),
    ("graph", 1, "gemm_b", 45),
    ("current_stream", 0, "gemm_a", 45),
    ("coalesced", 1, "gemm_forward", 60),
    ("directions", 0, "gemm_work", 90),
    ("directions", 1, "gemm_work", 60),
    ("directions", 2, "gemm_work", 60),
    ("directions", 3, "gemm_work", 90),
]


def right(case):
    return json.loads((CASES / case / "right.json").read_text(encoding="utf-8"))


@cache
def analyzed(case):
    return whywait.analyze(whywait.open(CASES / case / "traces"))


def expected(case):
    """Return the exposed waits of each metric and rank in nanoseconds, and the hidden ones of each rank."""
    exposed, hidden = defaultdict(list), defaultdict(int)
    for wait in right(case)["waits"]:
        if wait["exposed_ns"]:
            exposed[ROWS.get(wait["kind"], "ccl_wait_nxn"), wait["rank"]].append(wait["exposed_ns"])
        if wait["wait_ns"] > wait["exposed_ns"]:
            hidden[wait["rank"]] += wait["wait_ns"] - wait["exposed_ns"]
    return {key: sorted(values) for key, values in exposed.items()}, dict(hidden)


def found(result):
    exposed = defaultdict(list)
    for wait in result.wait_states().to_pylist():
        if wait["kind"].startswith("ccl_"):
            exposed[wait["kind"], wait["rank"]].append(round(wait["waiting"] * 1e9))
    rank, hidden = result.places.rank, defaultdict(int)
    if "ccl_hidden" in result.profile.metrics:
        key, value = result.profile.cells("ccl_hidden")
        for location, time in zip(np.mod(key, result.profile.locations), value, strict=True):
            hidden[int(rank[location])] += round(time * 1e9)
    return {key: sorted(values) for key, values in exposed.items()}, dict(hidden)


@pytest.mark.parametrize("case", EXACT)
def test_waits_are_those_of_the_program(case):
    assert found(analyzed(case)) == expected(case)


def test_waits_without_names_of_groups_agree_to_the_precision_of_their_times():
    (exposed, hidden), (of_program, _) = found(analyzed("late_loader_2.0")), expected("late_loader_2.0")
    assert exposed.keys() == of_program.keys()
    assert not hidden
    for key, values in of_program.items():
        assert exposed[key] == pytest.approx(values, abs=1000)


@pytest.mark.parametrize("case", ["windows", "windows_2.4"])
def test_only_operations_of_which_all_members_are_recorded_count(case):
    exposed, _ = found(analyzed(case))
    assert sum(map(sum, exposed.values())) == 225_000_000


def test_nobody_is_blamed_for_what_a_missing_rank_did():
    exposed, _ = found(analyzed("missing_rank"))
    assert not exposed


def costs(result):
    """Return the costs of waits between devices by rank and call path, in milliseconds."""
    found = defaultdict(float)
    for metric in ("delay_ccl", "delay_ccl_longterm"):
        if metric not in result.profile.metrics:
            continue
        key, value = result.profile.cells(metric)
        position, location = np.divmod(key, result.profile.locations)
        for callpath, where, cost in zip(result.profile.tree.preorder[position], location, value, strict=True):
            names = "/".join(result.tree.path(int(callpath)))
            found[int(result.places.rank[where]), names] += float(cost) * 1e3
    return found


@pytest.mark.parametrize(("case", "rank", "name", "waiting"), CAUSES)
def test_costs_go_to_what_made_the_rank_late(case, rank, name, waiting):
    of_all = costs(analyzed(case))
    charged = sum(cost for (here, path), cost in of_all.items() if here == rank and name in path)
    assert charged == pytest.approx(waiting, rel=0.01)


@pytest.mark.parametrize("case", EXACT)
def test_costs_add_up_to_the_waits(case):
    result = analyzed(case)
    waiting = sum(map(sum, found(result)[0].values())) / 1e6
    unattributed = (
        result.profile.total("delay_unattributed") * 1e3 if "delay_unattributed" in result.profile.metrics else 0
    )
    assert sum(costs(result).values()) + unattributed == pytest.approx(waiting, rel=1e-9, abs=1e-6)


def test_a_real_run_waits_as_its_kernels_begin():
    exposed, hidden = found(analyzed("dlrm8"))
    of_program = right("dlrm8")
    waits = np.sum([operation["wait_us"] for operation in of_program["operations"]], axis=0)
    shown = np.sum([operation["exposed_us"] for operation in of_program["operations"]], axis=0)
    for rank in range(8):
        ours = sum(sum(values) for (_, here), values in exposed.items() if here == rank)
        assert ours / 1000 == pytest.approx(shown[rank], abs=8)
        assert (ours + hidden.get(rank, 0)) / 1000 == pytest.approx(waits[rank], abs=8)
