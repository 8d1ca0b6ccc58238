"""Every pattern document in tests/patterns is a test: its traces have exactly the results that it expects.

A document holds pairs of fenced blocks, ```trace (tests/tracedsl.py) and ```expect. In the latter one line is

    mpi_latesender 1 MPI_Recv 3.0            metric, rank (0.1: thread 1 of rank 0), call path, value
    mpi_latereceiver none                    the metric has no non-zero value
    wait mpi_latesender 1 MPI_Recv [2, 5.3] 3.0 for 0 MPI_Send
                                             a wait state: where, its call's Enter and Leave, how long, and its cause
    violations 1 0                           clock-condition violations: point-to-point, collective
    unmatched 1 0                            sends and receives without a partner
    warning unmatched                        the program's warnings mention the word

Call paths stand without the program at their root (`.` is the program itself); those of streams, which are below no
program, with a slash ahead. The values of a metric that is named are
complete: no other cell may differ from zero. Wait-state metrics that are not named must be zero everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from whywait.model.schema import patterns

from tests import naive
from tests.oracles import truth
from tests.results import DEVICES, FAMILIES, ONE_SIDED, is_cause, is_time, outcome
from tests.tracedsl import trace_from_text

PATTERNS = Path(__file__).parent / "patterns"
BLOCK = re.compile(r"^#+ ([^\n]+)$|^```(trace|expect)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NANOSECOND = 1e-9
NO_WAITS = {"time", "omp_management", "omp_fork"}
WAITS = [metric for metric in (*FAMILIES, *ONE_SIDED) if is_time(metric) and metric not in NO_WAITS]


@dataclass
class Expectation:
    """An ```expect block."""

    cells: dict[str, dict] = field(default_factory=dict)
    waits: list[tuple] = field(default_factory=list)
    violations: tuple[int, int] = (0, 0)
    unmatched: tuple[int, int] = (0, 0)
    warnings: list[str] = field(default_factory=list)

    def without_causes(self) -> Expectation:
        return replace(self, cells={metric: values for metric, values in self.cells.items() if not is_cause(metric)})

    def without_new_patterns(self) -> Expectation:
        """What the oracles are asked: wait states that they do not know are left to the program."""
        new = {*patterns(), "pthread_cond_timeout", "ccl_hidden"} - {*FAMILIES, *ONE_SIDED, *DEVICES}
        cells = {metric: values for metric, values in self.cells.items() if metric not in new}
        return replace(self, cells=cells, waits=[wait for wait in self.waits if wait[0] not in new])


def path(text: str) -> tuple[str, ...]:
    if text.startswith("/"):
        return tuple(text[1:].split("/"))
    return ("program",) if text == "." else ("program", *text.split("/"))


def place(text: str) -> tuple[int, int]:
    rank, _, thread = text.partition(".")
    return int(rank), int(thread or 0)


def expectation(text: str) -> Expectation:
    # How long targets were away is an upper bound that goes with most of their waits; its document lists it.
    expected = Expectation({metric: {} for metric in (*WAITS, *DEVICES) if not metric.endswith("_away")})
    number = r"-?[\d.]+(?:e-?\d+)?"
    for line in filter(None, (line.split("  #")[0].strip() for line in text.splitlines())):
        if m := re.fullmatch(
            rf"wait (\w+) ([\d.]+) (.+) \[({number}), ({number})\] ({number}) for ([\d.]+) (.+?)( \(inferred\))?", line
        ):
            times = tuple(float(m[i]) for i in (4, 5, 6))
            cause = (*place(m[7]), path(m[8]))
            expected.waits.append((m[1], *place(m[2]), path(m[3]), *times, *cause, None, None, bool(m[9])))
        elif m := re.fullmatch(r"violations (\d+) (\d+)", line):
            expected.violations = int(m[1]), int(m[2])
        elif m := re.fullmatch(r"unmatched (\d+) (\d+)", line):
            expected.unmatched = int(m[1]), int(m[2])
        elif m := re.fullmatch(r"warning (\S+)", line):
            expected.warnings.append(m[1])
        elif m := re.fullmatch(r"(\w+) none", line):
            expected.cells[m[1]] = {}
        elif m := re.fullmatch(rf"(\w+) ([\d.]+) (.+) ({number})", line):
            expected.cells.setdefault(m[1], {})[path(m[3]), *place(m[2])] = float(m[4])
        else:
            raise ValueError(f"not an expectation: {line!r}")
    return expected


def examples(documents="*.md"):
    """Yield every trace with its expectation, named by document and heading."""
    # These have expectations of their own: tests/test_account.py, tests/test_clock_patterns.py,
    # tests/test_finding_rules.py.
    others = {PATTERNS / "account.md", PATTERNS / "clocks.md", PATTERNS / "findings.md"}
    for document in sorted(set(PATTERNS.glob(documents)) - others):
        heading, trace = "", None
        for block in BLOCK.finditer(document.read_text()):
            if block[1]:
                heading = block[1]
            elif block[2] == "trace":
                assert trace is None, f"{document.name}: a trace without expectations under {heading}"
                trace = block[3]
            else:
                assert trace is not None, f"{document.name}: expectations without a trace under {heading}"
                yield pytest.param(trace, expectation(block[3]), id=f"{document.stem}: {heading}")
                trace = None


EXAMPLES = list(examples())
each_example = pytest.mark.parametrize(("trace", "expected"), EXAMPLES)


def compare(expected: Expectation, cells, waits) -> None:
    for metric, values in expected.cells.items():
        found = cells.get(metric, {})
        assert found.keys() == values.keys(), metric
        for cell, value in values.items():
            tolerance = NANOSECOND if is_time(metric) else 0
            assert found[cell] == pytest.approx(value, rel=0, abs=tolerance), (metric, cell)
    for row in expected.waits:
        times = slice(4, 7)
        same = [
            wait for wait in waits
            if wait[:4] == row[:4] and wait[7:10] == row[7:10] and wait.inferred == row[-1]
            and wait[times] == pytest.approx(row[times], rel=0, abs=NANOSECOND)
        ]  # fmt: skip
        assert len(same) == 1, f"{row} among {waits}"


@each_example
def test_oracle_and_analysis_match_the_document(trace, expected, tmp_path):
    """The numbers worked out by hand are those of the oracle, too."""
    anchor = trace_from_text(trace, tmp_path)
    of_oracle = expected
    if re.search(r"^ *\d+/\d+:|task=", trace, re.MULTILINE):
        # The oracle of causes does not know devices and tasks.
        of_oracle = expected.without_causes()
    result = truth(anchor, causes=any(map(is_cause, of_oracle.cells)))
    compare(of_oracle.without_new_patterns(), result.cells, result.waits)
    assert result.violations == expected.violations
    assert result.unmatched == expected.unmatched
    result = outcome(anchor)
    compare(expected, result.cells, result.waits)
    assert (result.facts["clock_violations_p2p"], result.facts["clock_violations_coll"]) == expected.violations
    told = " ".join(f"{warning['kind']} {warning['text']}" for warning in result.warnings).lower()
    for word in expected.warnings:
        assert word in told
    if not any((*expected.violations, *expected.unmatched, *expected.warnings)):
        assert not result.warnings
    invariants(result)


def invariants(result) -> None:
    """What must hold for every trace, whatever it shows."""
    idle = {pattern.kind for pattern in patterns().values() if pattern.is_idle}
    for wait in result.waits:
        # What waits ahead of a kernel has all of the time before it.
        longest = wait.enter if wait.kind in idle else wait.leave - wait.enter
        assert 0 < wait.waiting <= longest + NANOSECOND, wait
        assert (wait.cause_rank, wait.cause_thread, wait.cause_callpath) != (wait.rank, wait.thread, wait.callpath), (
            wait
        )
        is_unknown = wait.cause_rank is None and wait.kind == "pthread_cond_late_signal"
        assert is_unknown or (wait.cause_rank is None) == wait.kind.endswith(("completion", "latency")), wait
    for metric in WAITS:
        for cell, value in result.cells.get(metric, {}).items():
            assert 0 < value <= result.cells["time"][cell] + NANOSECOND, (metric, cell)
    for part, whole in CONTAINED.items():
        for cell, value in result.cells.get(part, {}).items():
            assert value <= result.cells[whole][cell] + NANOSECOND, (part, whole, cell)
    total, begin_to_end = {}, result.facts["length"]
    for (_, rank, thread), value in result.cells["time"].items():
        total[rank, thread] = total.get((rank, thread), 0) + value
    for (_, thread), value in total.items():
        assert thread or value <= begin_to_end + NANOSECOND


CONTAINED = {
    "mpi_latesender_wo": "mpi_latesender",
    "mpi_lswo_same": "mpi_latesender_wo",
    "mpi_lswo_different": "mpi_latesender_wo",
    "mpi_cls_count": "comms_recv",
    "mpi_sls_count": "syncs_recv",
    "mpi_clswo_count": "mpi_cls_count",
    "mpi_slswo_count": "mpi_sls_count",
    "omp_fork": "omp_management",
    "mpi_rma_early_fence": "mpi_rma_wait_at_fence",
    "mpi_rma_late_complete": "mpi_rma_early_wait",
    **{
        f"{library}_rma_pairsync_unneeded_count": f"{library}_rma_pairsync_count"
        for library in ("mpi", "shmem", "armci", "pgas")
    },
    **{
        f"{library}_rma_{kind}_wait_for_progress_served": f"{library}_rma_{kind}_wait_for_progress"
        for library in ("mpi", "shmem", "armci", "pgas")
        for kind in ("sync", "comm")
    },
    **{
        f"{library}_rma_{kind}_wait_for_progress": f"{library}_rma_{kind}_wait_for_progress_last_call"
        for library in ("mpi", "shmem", "armci", "pgas")
        for kind in ("sync", "comm")
    },
}


def test_wrong_order_window(tmp_path):
    """Only so many of the latest Late Senders are remembered: with one, the first of two is not found."""
    trace = """
        0: MPI_Recv(1, tag=1) [2, 3.2]
        0: MPI_Recv(1, tag=2) [4, 6.2]
        0: MPI_Recv(2) [6.4, 6.5]
        1: MPI_Send(0, tag=1) [3, 3.1]
        1: MPI_Send(0, tag=2) [6, 6.1]
        2: MPI_Send(0) [1, 1.1]
    """
    anchor = trace_from_text(trace, tmp_path)
    cell = ("program", "MPI_Recv"), 0, 0
    for window, expected in ((2, 3), (1, 2)):
        assert outcome(anchor, wrong_order_window=window).cells["mpi_lswo_different"][cell] == expected
        assert naive.analyze(naive.Trace(anchor), window).table()["mpi_lswo_different"][cell] == expected


def test_locks_claim_no_more_than_the_call(tmp_path):
    """The clocks of two threads disagree: the first seems to release the lock when the second already had it."""
    trace = """
        threads 2
        0: fork [0, 10]
        0: !$omp parallel @a.c:1 [0, 10]
        0: !$omp critical @a.c:2(order=1) [1, 4.2] @1.1, 4
        0.1: !$omp parallel @a.c:1 [0, 10]
        0.1: !$omp critical @a.c:2(order=2) [2, 3] @2.5, 2.9
    """
    cells = outcome(trace_from_text(trace, tmp_path), causes=False).cells["omp_lock_contention_critical"]
    assert list(cells.values()) == pytest.approx([1])


def test_a_master_without_the_parallel_region_of_its_team(tmp_path):
    """Filtered out, or the trace is broken: what the worker does is judged all the same, and the critical path ends."""
    trace = """
        0: main [0, 10]
        0: fork [0.5, 2]
        0: !$omp parallel @a.c:1 [0.6, 1.9]
        0.1: !$omp parallel @a.c:1 [0.6, 1.9]
        0: fork [3, 9]
        0: raw ThreadTeamBegin(thread_team="team 0") @3.1
        0: raw ThreadTeamEnd(thread_team="team 0") @8
        0.1: !$omp parallel @a.c:2 [4, 7]
        0.1: MPI_Send(1) [6, 6.1]
        1: MPI_Recv(0) [5, 6.2]
        1: main [7, 12]
    """
    result = outcome(trace_from_text(trace, tmp_path))
    assert result.cells["mpi_latesender"] == {(("program", "MPI_Recv"), 1, 0): pytest.approx(1)}
    worker = ("program", "main", "!$omp parallel @a.c:2"), 0, 1
    # From the fork on, which belongs to the region, up to the send.
    assert result.cells["critical_path"][worker] == pytest.approx(3)
