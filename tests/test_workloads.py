"""Synthetic traces: the analysis finds exactly the waiting that their schedules contain."""

import csv
import itertools
import json
import math
import runpy
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
import whywait
from whywait import _native, cli
from whywait.bench import speed
from whywait.commands.bench import WORKLOADS
from whywait.model import schema

from tests import naive_causes, naive_rma, oracles
from tests.naive import Trace
from tests.results import is_cause, outcome
from tests.test_causes import compare
from tests.test_docs import ROOT
from tests.test_one_sided import assert_agreement

PLOT = runpy.run_path(str(ROOT / "benches/plot.py"))
# What the truth says nothing about: times and counts of calls, volumes.
VOLUMES = ("bytes", "rma_atomic_", "armci_bytes", "armci_rma_atomic_", "shmem_bytes")
OTHER = ("time", "visits", "syncs", "comms", "lock_", *VOLUMES)
# What causes are made of.
CAUSES = ("critical", "non_critical", "delay", "interval_delay", "mpi_wait_indirect", "mpi_wait_propagating", "inter_")


def is_other(metric):
    """Return whether the truth says nothing about a metric: of OpenMP it knows the waits, and it knows no bounds."""
    return (
        metric.startswith(OTHER + CAUSES)
        or "count" in metric
        or metric.endswith("_away")
        or (metric.startswith("omp_") and metric not in schema.patterns())
    )


def generate(directory, workload, ranks, iterations, **options):
    return _native.generate(workload, directory, ranks=ranks, iterations=iterations, seed=7, **options)


def truth_of(directory):
    with (directory / "truth.csv").open() as table:
        return {(row["metric"], row["callpath"], int(row["rank"])): int(row["ticks"]) for row in csv.DictReader(table)}


def found_in(trace, workload=""):
    """Return all waiting times in ticks, also of metrics that the metric tree does not show."""
    result = _native.analyze(_native.Run(trace))
    notes = {"mpi_on_thread"} if workload.startswith("multirate") else set()
    assert {warning["kind"] for warning in result.warnings()} <= notes
    names = {row["region"]: row["name"] for row in pa.table(result.regions()).to_pylist()}
    paths = []
    for row in pa.table(result.callpaths()).to_pylist():
        caller = f"{paths[row['parent']]}/" if row["parent"] is not None else ""
        paths.append(caller + names[row["region"]])
    ranks = pa.table(result.locations())["rank"].to_pylist()
    found = Counter()
    for row in pa.table(result.severities()).to_pylist():
        metric, path = row["metric"], paths[row["callpath"]]
        if is_other(metric):
            continue
        # The latency of a launch is unattributed.
        if metric == "wait_unexplained" and "hip" in path:
            continue
        # By chance, a call of the target begins in the few ticks of a get that waits for nobody.
        if path.endswith("ARMCI_NbGet") and "progress" in metric and row["value"] < 1e-6:
            continue
        found[metric, path, ranks[row["location"]]] += round(row["value"] * 1e9)
    return found


def test_the_names_are_those_of_the_native_module():
    assert list(WORKLOADS) == _native.workloads()


@pytest.mark.parametrize("ranks", [2, 7, 12])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_waits_are_the_truth(workload, ranks, tmp_path):
    generate(tmp_path, workload, ranks, 5)
    assert found_in(tmp_path, workload) == pytest.approx(truth_of(tmp_path), abs=1)


def queues_of(directory):
    """Return all counters of queues by construction and as analyzed, by metric, call path and rank."""
    with (directory / "queues.csv").open() as table:
        truth = {(row["metric"], row["callpath"], int(row["rank"])): int(row["value"]) for row in csv.DictReader(table)}
    result = whywait.analyze(directory, causes=False, queues="send")
    found = Counter()
    for metric in _native.queue_metrics():
        for row in result.severities(metric).to_pylist():
            value = round(row["value"] * (1e9 if "time" in metric else 1))
            found[metric, "/".join(row["callpath"]), row["rank"]] += value
    for row in result.queue_levels().to_pylist():
        # Not those of the whole run.
        if row["rank"] is not None:
            found[row["metric"], "", row["rank"]] += row["maximum"]
    return truth, found


def of_queues(truth, metric):
    return sum(value for (name, *_), value in truth.items() if name == metric)


@pytest.mark.parametrize("options", [{}, {"work": 20_000, "imbalance": 0.0}, {"imbalance": 30.0}])
@pytest.mark.parametrize("ranks", [2, 7, 30])
def test_a_flood_fills_queues_as_it_was_made(ranks, options, tmp_path):
    generate(tmp_path, "flood", ranks, 4, **options)
    truth, found = queues_of(tmp_path)
    assert found == truth
    assert of_queues(truth, "mpi_match_attempts") == 4 * 8 * (ranks - 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"threads": 3, "window": 5, "overlap": 0.4}, {"threads": 8, "overlap": 1.0, "size": 1}, {"threads": 1}],
)
@pytest.mark.parametrize(("workload", "ranks"), [("multirate", 2), ("multirate", 5), ("multirate-comms", 4)])
def test_windows_of_threads_fill_queues_as_they_were_made(workload, ranks, options, tmp_path):
    generate(tmp_path, workload, ranks, 5, **options)
    truth, found = queues_of(tmp_path)
    assert found == truth
    threads, window, overlap = options.get("threads", 2), options.get("window", 64), options.get("overlap", 0.25)
    shares = workload == "multirate" and threads > 1
    messages = ranks // 2 * threads * window
    assert of_queues(truth, "mpi_unexpected") == messages
    others = (threads - 1) * (window - 1) / 4 if shares else 0
    assert of_queues(truth, "mpi_match_attempts") == 5 * messages * (1 + others)
    assert of_queues(truth, "mpi_oos_possible") == (ranks // 2 * threads * int(5 * window * overlap) if shares else 0)


@pytest.mark.parametrize(
    "options", [{"threads": 0}, {"window": 0}, {"size": 0}, {"overlap": 1.5}, {"overlap": float("nan")}]
)
def test_windows_without_messages_are_refused(options, tmp_path):
    with pytest.raises(whywait.UsageError, match="overlap is a share"):
        generate(tmp_path, "multirate", 2, 2, **options)
    with pytest.raises(whywait.UsageError, match="only multirate"):
        generate(tmp_path, "flood", 2, 2, threads=3)
    with pytest.raises(whywait.UsageError, match="has messages"):
        generate(tmp_path, "omp-locks", 2, 2, size=3)
    with pytest.raises(whywait.UsageError, match="two threads"):
        generate(tmp_path, "omp-tasks", 2, 2, threads=1)


@pytest.mark.parametrize(
    "options", [{"threads": 2, "window": 1}, {"threads": 5, "window": 7}, {"threads": 40, "window": 3}]
)
@pytest.mark.parametrize("work", [20_000, 200_000])
@pytest.mark.parametrize("workload", ["omp-locks", "omp-tasks"])
def test_teams_of_any_size_wait_as_they_were_made(workload, work, options, tmp_path):
    generate(tmp_path, workload, 2, 6, work=work, imbalance=4.0, **options)
    truth = truth_of(tmp_path)
    assert found_in(tmp_path, workload) == pytest.approx(truth, abs=1)
    waits = {metric for metric, *_ in truth}
    if workload == "omp-tasks":
        # With many threads, tasks are over before the next one is created.
        assert {"omp_ibarrier_wait", "omp_ibarrier_starvation", "omp_taskwait_wait"} <= waits
    else:
        assert "omp_ibarrier_wait" in waits
        assert "omp_lock_contention_critical" in waits or options["window"] == 1


@pytest.mark.parametrize("options", [{"work": 20_000, "imbalance": 0.0}, {"work": 50_000, "imbalance": 30.0}])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_extreme_imbalance_matches_the_known_waits(workload, options, tmp_path):
    generate(tmp_path, workload, 16, 20, **options)
    assert found_in(tmp_path, workload) == pytest.approx(truth_of(tmp_path), abs=1)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_official_reader_accepts_them(workload, tmp_path):
    otf2 = pytest.importorskip("otf2")
    count = generate(tmp_path, workload, 7, 3)
    with otf2.reader.open(str(tmp_path / "traces.otf2")) as trace:
        times = [event.time for _, event in trace.events]
    assert len(times) == count
    assert times == sorted(times)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_oracles_find_the_truth(workload, tmp_path):
    generate(tmp_path, workload, 5, 6)
    found = Counter()
    for metric, cells in oracles.truth(tmp_path / "traces.otf2").cells.items():
        if not is_other(metric):
            for (callpath, rank, _), seconds in cells.items():
                if not (callpath[-1] == "ARMCI_NbGet" and "progress" in metric and seconds < 1e-7):
                    found[metric, "/".join(callpath), rank] += round(seconds * 1e9)
    assert found == pytest.approx(truth_of(tmp_path), abs=1)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_random_operations_agree_with_the_oracles(ranks, tmp_path):
    generate(tmp_path, "random-rma", ranks, 8, work=20_000, imbalance=1.0)
    anchor = tmp_path / "traces.otf2"
    assert_agreement(anchor)
    oracle = naive_causes.table(naive_causes.Analysis(naive_causes.read(anchor), "thesis").cells())
    ours = outcome(anchor).cells
    compare(*({name: cells for name, cells in table.items() if is_cause(name)} for table in (oracle, ours)))


def test_random_operations_wait_in_every_way(tmp_path):
    generate(tmp_path, "random-rma", 30, 20)
    waits = {(metric, path.split("/")[-1]) for metric, path, _ in truth_of(tmp_path)}
    operations = ("MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op")
    completing = ("flush", "flush_all", "flush_local", "flush_local_all", "unlock", "unlock_all")
    assert waits >= {
        ("mpi_rma_wait_at_fence", "MPI_Win_fence"),
        ("mpi_rma_early_fence", "MPI_Win_fence"),
        ("mpi_rma_sync_lock_competition", "MPI_Win_lock"),
        *(("mpi_rma_comm_lock_competition", name) for name in operations),
        *(("mpi_rma_sync_wait_for_progress", f"MPI_Win_{name}") for name in completing),
    }


def test_random_operations_keep_the_rules_of_mpi(tmp_path):
    """Operations are in an epoch, all are completed, locks exclude each other, and targets take part in progress."""
    generate(tmp_path, "random-rma", 6, 12, work=20_000, imbalance=1.0)
    trace = naive_rma.Analysis(Trace(tmp_path / "traces.otf2"))
    in_locks = [op for op in trace.ops if isinstance(op.epoch, naive_rma.LockEpoch)]
    assert 0 < len(in_locks) < len(trace.ops)
    for op in trace.ops:
        assert op.epoch is not None
        assert op.done_locally is not None
        assert (op.done_remotely is not None) == (op in in_locks or op.call.name == "MPI_Get")

    overlapping = 0
    for (_, target, _), epochs in trace.locks.items():
        held = []
        for epoch in epochs:
            first = next((op.call for op in epoch.ops if op.target == target), epoch.acquire)
            granted = epoch.acquire if epoch.target is not None else first
            held.append((granted.leave, epoch.release.leave, epoch.shared))
        for (a, b, shared), (c, d, also) in itertools.combinations(held, 2):
            assert (shared and also) or min(b, d) < max(a, c)
            overlapping += min(b, d) > max(a, c)
    assert overlapping > 0

    for op in trace.ops:
        # What is complete at the target; a local completion needs nobody.
        for call in filter(None, (op.done_remotely, op.done_locally if op.fetches else None)):
            if call not in trace.active:
                target = op.target
                assert any(c.enter < call.leave and c.leave >= call.enter for c in trace.library_calls(target))


def test_messages_in_wrong_order_occur(tmp_path):
    generate(tmp_path, "bt", 25, 10, imbalance=2.0)
    truth = truth_of(tmp_path)
    assert {"mpi_latesender_wo", "mpi_lswo_different", "mpi_latereceiver"} <= {metric for metric, *_ in truth}
    assert found_in(tmp_path) == truth


def test_contention_is_the_closed_form(tmp_path):
    """Of n equal epochs that are asked for at once, the k-th waits for the k before it."""
    generate(tmp_path, "contention", 9, 1, imbalance=0.0)
    truth = {rank: ticks for (metric, _, rank), ticks in truth_of(tmp_path).items() if "competition" in metric}
    waits = sorted(truth.values())
    # A lock that passes on takes as long each time; the ranks ask within a microsecond.
    steps = [late - early for early, late in itertools.pairwise(waits)]
    assert len(waits) == 7
    assert max(steps) - min(steps) <= 1_000
    assert found_in(tmp_path) == truth_of(tmp_path)


def test_kernels_are_the_load_of_comd(tmp_path):
    """The rank with the longest kernels is to blame for what the others wait, and its kernels are the critical path."""
    generate(tmp_path, "comd-gpu", 6, 4, imbalance=1.0)
    result = whywait.analyze(tmp_path)
    devices = result.gpu()
    kernels = devices.kernels.to_pylist()
    loads = [sum(row["end"] - row["begin"] for row in kernels if row["rank"] == rank) for rank in range(6)]
    mean = sum(loads) / 6
    summary = devices.summary()
    assert summary["imbalance"] == pytest.approx((max(loads) - mean) / mean, abs=1e-12)
    # A device runs waves of 0.1 ms; its efficiency is what is in them, and seven of eight threads of a warp.
    asked = [1e-3 * (1 + (rank / 5) ** 2) for rank in range(6)]
    assert loads == pytest.approx([4 * math.ceil(round(1e9 * load) / 1e5) * 1e-4 for load in asked], abs=1e-12)
    assert [one["adjusted"] for one in summary["devices"]] == pytest.approx(
        [4 * 0.875 * load for load in asked], rel=1e-9
    )
    assert summary["imbalance_adjusted"] == pytest.approx(max(asked) * 6 / sum(asked) - 1, abs=1e-12)
    assert devices.counts == {
        "launches": 24, "unmatched_launches": 0, "unmatched_kernels": 0, "clock_violations": 0,
    }  # fmt: skip
    # On the path a kernel is from its launch on.
    longest = [max(row["end"] - row["launch_enter"] for row in kernels[number::4]) for number in range(4)]
    on_path = [row for row in result.severities("critical_path").to_pylist() if row["callpath"] == ["force_kernel"]]
    assert sum(row["value"] for row in on_path) == pytest.approx(sum(longest), abs=1e-6)
    costs = {row["rank"]: 0.0 for row in kernels}
    for row in result.severities("delay_n2n").to_pylist():
        costs[row["rank"]] += row["value"] * (row["callpath"] == ["force_kernel"])
    assert sum(costs.values()) > 0.9 * result.metrics["mpi_wait_nxn"].total


def test_the_sums_are_those_of_the_table(tmp_path):
    generate(tmp_path, "sor-gats", 12, 5)
    sums = {}
    for (metric, *_), ticks in truth_of(tmp_path).items():
        sums[metric] = sums.get(metric, 0) + ticks
    assert json.loads((tmp_path / "truth.json").read_text())["ticks"] == sums


def test_an_archive_is_not_overwritten(tmp_path):
    generate(tmp_path, "sor-p2p", 4, 2)
    with pytest.raises(OSError, match="already exists"):
        generate(tmp_path, "sor-p2p", 4, 2)


@pytest.mark.parametrize(
    "options", [{"ranks": 1}, {"iterations": 0}, {"work": 5}, {"imbalance": -1.0}, {"workload": "lulesh"}]
)
def test_impossible_runs_are_refused(options, tmp_path):
    with pytest.raises(whywait.UsageError):
        generate(tmp_path, **{"workload": "sor-p2p", "ranks": 4, "iterations": 2, **options})


def whywait_bench(*arguments):
    command = [sys.executable, "-m", "whywait", "bench", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_the_command_line_generates_and_measures(tmp_path):
    done = whywait_bench("generate", "sor-locks", "--ranks", 6, "--iterations", 3, "-o", tmp_path / "trace", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ranks"] == 6

    arguments = ["run", "--workload", "sor-p2p", "--ranks", 2, 4, "--iterations", 2, "--repeat", 1]
    done = whywait_bench(*arguments, "-o", tmp_path / "first")
    assert done.returncode == 0, done.stderr
    done = whywait_bench(*arguments, "-o", tmp_path / "second", "--compare", tmp_path / "first" / "bench.json")
    assert "sum to earlier" in done.stdout
    assert "peak to earlier" in done.stdout
    report = json.loads((tmp_path / "second" / "bench.json").read_text())
    assert [(point["series"], point["ranks"], point["iterations"]) for point in report["points"]] == [
        ("per-rank", 2, 2),
        ("per-rank", 4, 2),
        ("total", 2, 4),
        ("total", 4, 2),
    ]
    assert all(point["peak_bytes"] > 0 and point["stages"] for point in report["points"])
    assert PLOT["svg"](report).count("<polyline") == 2


def test_measurements_say_what_load_was_asked_for(tmp_path):
    arguments = ["run", "--workload", "bt-rma-gats-single", "--ranks", 4, "--iterations", 1, "--repeat", 1, "--json"]
    done = whywait_bench(*arguments, "--work", 0.002, "--imbalance", 0.5, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["work"], report["imbalance"]) == (0.002, 0.5)
    assert "with causes, work 0.002 s, imbalance 0.5." in (tmp_path / "bench.md").read_text()
    done = whywait_bench(*arguments, "--work", 5, "-o", tmp_path)
    assert done.returncode == 2
    assert "5: work must take less than 4 seconds" in done.stderr


@pytest.mark.parametrize("text", ["[]", "{", '{"points": [{}], "threads": 1}'])
def test_a_report_that_is_none_cannot_be_compared_with(text, tmp_path):
    (tmp_path / "other.json").write_text(text)
    done = whywait_bench("run", "--compare", tmp_path / "other.json")
    assert done.returncode == 2
    assert "not a bench.json" in done.stderr


STAGES = {"open": 0.5, "decode": 2.0}
POINT = {"workload": "sor-gats", "series": "total", "ranks": 64, "iterations": 10, "events": 1_000, "cpu": 1.0}
REPORT = {
    "version": "1",
    "cores": 2,
    "threads": 1,
    "causes": True,
    "points": [{**POINT, "peak_bytes": 1, "stages": STAGES}],
}


def test_the_largest_runs_stand_beside_the_thesis():
    point = {**REPORT["points"][0], "ranks": 65_536}
    report = {**REPORT, "points": [{**point, "series": series} for series in speed.SERIES]}
    lines = speed.markdown(report).splitlines()
    (line,) = [line for line in lines if "sor-gats |" in line]
    assert line.split() == "| sor-gats | 10 | 0.25 | 0.0242 |".split()
    assert "thesis" not in speed.markdown(REPORT)


def test_stages_come_in_their_order_though_a_small_run_shows_few():
    first, last = (
        {**REPORT["points"][0], "stages": dict.fromkeys(names, 1.0)}
        for names in (["open", "causes"], ["open", "decode", "causes"])
    )
    (head,) = [line for line in speed.markdown({**REPORT, "points": [first, last]}).splitlines() if "ranks" in line]
    assert head.index("decode") < head.index("causes")


def test_tables_are_aligned():
    lines = [line for line in speed.markdown(REPORT, REPORT).splitlines() if line.startswith("|")]
    assert len({len(line) for line in lines}) == 1
    assert len({tuple(i for i, c in enumerate(line) if c == "|") for line in lines}) == 1


def test_a_comparison_tells_how_the_earlier_run_was_made():
    text = speed.markdown(REPORT, {**REPORT, "threads": 4, "causes": False})
    assert "with an earlier run: whywait 1, 4 threads on 2 cores, without causes." in text


def test_numbers_of_ranks_do_not_run_into_each_other():
    points = [{**REPORT["points"][0], "ranks": ranks} for ranks in (64, 32_768, 65_536)]
    plot = PLOT["svg"]({**REPORT, "points": points})
    assert ">64<" in plot
    assert ">65,536<" in plot
    assert ">32,768<" not in plot


def test_a_measurement_that_fails_says_why(tmp_path):
    with pytest.raises(whywait.Error, match=r"failed: .*nothing"):
        speed.measure(tmp_path / "nothing")


def test_what_was_measured_is_there_though_a_run_ends_early(tmp_path, monkeypatch):
    measured = [{key: value for key, value in REPORT["points"][0].items() if key not in {"workload", "series"}}]

    def measure(*_, **__):
        if not measured:
            raise whywait.Error("no memory")
        return measured.pop()

    monkeypatch.setattr(speed, "measure", measure)
    arguments = ["--workload", "bt", "--ranks", "2", "4", "--iterations", "1", "-o", str(tmp_path)]
    assert cli.main(["bench", "run", *arguments]) != 0
    assert [point["workload"] for point in json.loads((tmp_path / "bench.json").read_text())["points"]] == ["bt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.md"]


def test_smaller_runs_have_as_many_events():
    points = list(speed.points(["bt"], [8, 2], 10))
    assert [(p["series"], p["ranks"], p["iterations"]) for p in points] == [
        ("per-rank", 2, 10),
        ("per-rank", 8, 10),
        ("total", 2, 40),
        ("total", 8, 10),
    ]
