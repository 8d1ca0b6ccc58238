"""The factors of single waits are the cost model: they add up to the wait, and over all waits to the delay costs."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given, note, settings
from hypothesis import strategies as st
from whywait.analysis.causes import delay_costs

from tests.device_programs import communicating_programs, device_programs
from tests.programs import programs
from tests.results import UNRECORDED, cases
from tests.rma_programs import one_sided_programs
from tests.team_programs import team_programs
from tests.test_naive_causes import WORKED
from tests.test_patterns import examples
from tests.tracedsl import trace_from_text

DATA = sorted(path.parent for path in (Path(__file__).parent / "data").glob("*/traces.otf2"))
RELATIVE = 1e-9
# Below a tick of a nanosecond clock: sums of shares are not exact.
ABSOLUTE = 1e-10
OF_DEVICES = list(examples("**/device-collectives.md"))
assert OF_DEVICES
# Costs of which the short-term part is no share of a wait state.
UNTOLD = {"ompidle", "unattributed"}
# The classes of kinds that are not named after them.
CLASSES = {
    "mpi_latesender": "latesender",
    "mpi_latereceiver": "latereceiver",
    "mpi_barrier_wait": "barrier",
    "mpi_finalize_wait": "barrier",
    "mpi_wait_nxn": "n2n",
    "mpi_latebroadcast": "12n",
    "mpi_earlyreduce": "n21",
    "mpi_earlyscan": "n2n",
    "mpi_tree_wait": "tree",
    "omp_ebarrier_wait": "ompbarrier",
    "omp_ibarrier_wait": "ompbarrier",
    "mpi_comm_create_wait": "barrier",
    "mpi_file_open_wait": "barrier",
    "mpi_alltoallv_wait": "n2n",
    "mpi_neighbor_wait": "n2n",
    "mpi_probe_latesender": "latesender",
    "mpi_exchange_latereceiver": "latereceiver",
    "omp_ebarrier_task_wait": "interval_task",
    "omp_ibarrier_task_wait": "interval_task",
    "gpu_host_wait": "gpu_host",
    "gpu_device_starved": "gpu_device",
    "ccl_wait_nxn": "ccl",
    "ccl_wait_barrier": "ccl",
    "ccl_late_broadcast": "ccl",
    "ccl_early_reduce": "ccl",
    "ccl_latesender": "ccl",
    "ccl_latereceiver": "ccl",
}
OWNED = {"interval_lock", "interval_task"}
PARTS = {
    "wait_at_create": "rma_create",
    "wait_at_free": "rma_free",
    "late_post": "rma_late_post",
    "early_wait": "rma_early_wait",
    "wait_until": "rma_early_wait",
    "progress": "rma_progress",
    "lock_competition": "interval_lock",
    "lock_contention": "interval_lock",
    "ordered": "interval_lock",
}


def class_of(kind: str) -> str:
    found = CLASSES.get(kind) or next((name for part, name in PARTS.items() if part in kind), None)
    # Fences, and the collective operations of OpenSHMEM and ARMCI.
    return found or "rma_fence"


def summed(cells, values):
    """Add up values by cell, without zeros."""
    sums = defaultdict(float)
    for cell, value in zip(cells, values, strict=True):
        sums[cell] += value
    return {cell: value for cell, value in sums.items() if abs(value) > ABSOLUTE}


def compare(found, expected, what):
    off = {
        cell: (found.get(cell, 0), expected.get(cell, 0))
        for cell in found.keys() | expected.keys()
        if found.get(cell, 0) != pytest.approx(expected.get(cell, 0), rel=RELATIVE, abs=ABSOLUTE)
    }
    assert not off, what


class Explained:
    """All wait states of a trace with their factors, as arrays, and what these must add up to."""

    def __init__(self, anchor, cost_model="thesis"):
        self.result = whywait.analyze(anchor, cost_model=cost_model)
        waits = self.result.tables.wait_states.to_pydict()
        self.kinds, self.count = waits["kind"], len(waits["kind"])
        self.waiting = np.array(waits["waiting"])
        self.classes = np.array([class_of(kind) for kind in self.kinds])
        self.charged = np.array([value is not None for value in waits["indirect"]], bool)
        self.indirect = np.array([value or 0.0 for value in waits["indirect"]])
        tables = self.result.tables.factors(range(self.count))
        self.intervals, self.factors = (table.to_pydict() for table in tables)
        self.row, self.share = np.array(self.factors["wait"], int), np.array(self.factors["share"])
        kind = np.array(self.factors["kind"], object)
        self.is_wait, self.is_nobody = kind == "wait", kind == "unattributed"
        self.is_work = ~self.is_wait & ~self.is_nobody
        self.places = list(zip(self.factors["callpath"], self.factors["location"], strict=True))
        self.costs = delay_costs(self.result).to_pydict()
        self.cells = list(zip(self.costs["class"], self.costs["callpath"], self.costs["location"], strict=True))

    def cost(self, term, chosen):
        rows = [i for i, cell in enumerate(self.cells) if chosen(cell[0])]
        return summed([self.cells[i] for i in rows], [self.costs[term][i] for i in rows])

    def check_waits(self, *, classes=None):
        """Each wait is its factors, and what it exceeds them by is not explained."""
        assert np.bincount(self.row, self.share, self.count) == pytest.approx(self.waiting, rel=RELATIVE, abs=ABSOLUTE)
        assert (self.share > 0).all()
        assert not self.is_work[~self.charged[self.row]].any()
        indirect = np.bincount(self.row[self.is_wait], self.share[self.is_wait], self.count)
        known = self.charged if classes is None else self.charged & np.isin(self.classes, classes)
        assert indirect[known] == pytest.approx(self.indirect[known], rel=RELATIVE, abs=ABSOLUTE)
        works, waits = (set(self.row[kind].tolist()) for kind in (self.is_work, self.is_wait))
        columns = ("wait", "delay", "cause_waiting", "unexplained")
        for wait, delay, waited, unexplained in zip(*(self.intervals[name] for name in columns), strict=True):
            explained = delay * (wait in works) + waited * (wait in waits)
            assert unexplained == pytest.approx(max(self.waiting[wait] - explained, 0), rel=RELATIVE, abs=ABSOLUTE)

    def check_short_term(self):
        """All waits together are the short-term costs."""
        rows = np.flatnonzero(self.is_work)
        found = summed([(self.classes[self.row[i]], *self.places[i]) for i in rows], self.share[rows])
        compare(found, self.cost("short_term", lambda name: name not in UNTOLD), "short-term costs")

    def handed_on(self):
        """Return, by class, what each wait caused later: it gets its share of all that later waits hand on."""
        earlier = np.array([-1 if row is None else row for row in self.factors["earlier"]], int)
        handed = self.is_wait & (earlier >= 0)
        source, target = self.row[handed], earlier[handed]
        part = self.share[handed] / self.waiting[source]
        caused = {}
        for name in sorted(set(self.classes)):
            own = np.where((self.classes == name) & self.charged, self.waiting, 0.0)
            phi = np.zeros(self.count)
            for _ in range(self.count + 1):
                before, phi = phi, np.bincount(target, part * (phi + own)[source], self.count)
                if np.array_equal(before, phi):
                    break
            caused[name] = phi
        return caused

    def check_long_term(self):
        """What is handed on goes the same way, until only work is left."""
        caused = self.handed_on()
        part = self.share / self.waiting[self.row]
        rows = np.flatnonzero(self.is_work)
        found = defaultdict(float)
        for name, phi in caused.items():
            for i in rows:
                # Whoever owns a lock or a task pays for what it hands on as well.
                own = self.classes[self.row[i]]
                cell = own if own in OWNED else name.removeprefix("interval_")
                found[(cell, *self.places[i])] += part[i] * phi[self.row[i]]
        # Idle threads are no wait states, but their costs are also passed on, to locks and unattributed.
        mixed = OWNED | {"unattributed"} if any(cell[0] == "ompidle" for cell in self.cells) else set()
        found = {cell: value for cell, value in found.items() if value > ABSOLUTE and cell[0] not in mixed}
        compare(found, self.cost("long_term", lambda name: name not in UNTOLD | mixed), "long-term costs")
        if not mixed:
            every = sum(caused.values(), np.zeros(self.count))
            own = np.where(self.charged[self.row], self.share, 0.0) + part * every[self.row]
            nobody = np.flatnonzero(self.is_nobody)
            lost = summed([("unattributed", *self.places[i]) for i in nobody], own[nobody])
            compare(lost, self.cost("short_term", "unattributed".__eq__), "unattributed")


def check(anchor, cost_model="thesis"):
    explained = Explained(anchor, cost_model)
    explained.check_waits()
    explained.check_short_term()
    explained.check_long_term()
    return explained


@pytest.mark.parametrize("cost_model", ["thesis", "bounded"])
@pytest.mark.parametrize("case", DATA, ids=lambda case: case.name)
def test_factors_are_the_costs(case, cost_model):
    explained = check(case, cost_model)
    assert explained.count
    # From a release to the next acquisition, no thread owns a lock.
    is_ownerless = [explained.kinds[i].startswith("omp_lock_") for i in explained.row] & explained.is_nobody
    unexplained = sum(explained.intervals["unexplained"]) + explained.share[is_ownerless].sum()
    assert explained.result.metrics["wait_unexplained"].total == pytest.approx(unexplained, rel=RELATIVE, abs=ABSOLUTE)


# Scalasca charges for the whole time in a barrier, also that of the tasks that a thread runs there.
@pytest.mark.parametrize("case", [case for case in DATA if case.name != "workers"], ids=lambda case: case.name)
def test_factors_are_scalascas_short_term_costs(case):
    explained = Explained(case, "scalasca")
    explained.check_waits(classes=("latesender", "latereceiver"))
    explained.check_short_term()


def test_only_what_there_is_has_factors():
    result = whywait.analyze(DATA[0])
    with pytest.raises(whywait.UsageError, match="there is no wait state"):
        result.tables.factors([result.tables.wait_states.num_rows])
    with pytest.raises(whywait.UsageError, match="did not look for causes"):
        whywait.analyze(DATA[0], causes=False).tables.factors([0])
    assert [table.num_rows for table in result.tables.factors([])] == [0, 0]


@pytest.mark.skipif(not cases(), reason=UNRECORDED)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_factors_are_the_costs_of_recorded_cases(case):
    check(case / "archive" / "traces.otf2")


@pytest.mark.parametrize(("trace", "_expected"), WORKED)
def test_factors_are_the_costs_of_worked_examples(trace, _expected, tmp_path):
    anchor = trace_from_text(trace, tmp_path)
    for cost_model in ("thesis", "bounded"):
        check(anchor, cost_model)


@pytest.mark.parametrize(("trace", "_expected"), OF_DEVICES)
def test_factors_are_the_costs_where_devices_communicate(trace, _expected, tmp_path):
    """Also of what processes wait for through hosts that wait for their devices."""
    check(trace_from_text(trace, tmp_path))


@settings(max_examples=100)
@given(trace=programs(), cost_model=st.sampled_from(["thesis", "bounded"]))
def test_factors_are_the_costs_of_any_program(trace, cost_model):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, directory), cost_model)


@settings(max_examples=100)
@given(trace=one_sided_programs(), cost_model=st.sampled_from(["thesis", "bounded"]))
def test_factors_are_the_costs_of_any_one_sided_program(trace, cost_model):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, directory), cost_model)


@settings(max_examples=50)
@given(trace=team_programs(), cost_model=st.sampled_from(["thesis", "bounded"]))
def test_factors_are_the_costs_of_any_program_whose_threads_communicate(trace, cost_model):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, directory), cost_model)


@settings(max_examples=100)
@given(trace=device_programs(), cost_model=st.sampled_from(["thesis", "bounded"]))
def test_factors_are_the_costs_of_any_program_with_devices(trace, cost_model):
    """What a stream waits for another one of its device is no wait state, so what is passed on is not known here."""
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        explained = Explained(trace_from_text(trace, directory), cost_model)
    explained.check_waits()
    explained.check_short_term()
    # A host's wait for its device is work of the device, and no part of another wait.
    of_wait = [row for row in explained.factors["earlier"] if row is not None]
    assert "gpu_host_wait" not in {explained.kinds[row] for row in of_wait}


@settings(max_examples=150)
@given(trace=communicating_programs(), cost_model=st.sampled_from(["thesis", "bounded"]))
def test_factors_are_the_costs_of_any_program_whose_hosts_and_devices_communicate(trace, cost_model):
    """Costs go from waits of hosts to those of devices and back."""
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, directory), cost_model)
