"""The figures of cases, measured in the trace of a variant."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from whywait.analysis.counters.correlation import by_rank, pearson
from whywait.analysis.efficiency.load_balance import imbalance
from whywait.api.analyze import analyze
from whywait.api.run import open as open_run
from whywait.bench import predictions, speed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from whywait.api.result import Result
    from whywait.bench.case import Case, Figures, Variant

    Make = Callable[[str], Path]
    Measure = Callable[[Case, Variant, Make], Figures]


def total(result: Result, metrics: str, callpath: str | None = None) -> float:
    """Return the sum of metrics, ``a+b``, over all processes, or over call paths that contain a function."""
    present = [name for name in metrics.split("+") if name in result.metrics]
    if callpath is None:
        return float(sum(result.metrics[name].total for name in present))
    rows = (row for name in present for row in result.severities(name).to_pylist())
    return float(sum(row["value"] for row in rows if callpath in row["callpath"]))


def by(result: Result, metric: str, *columns: str) -> Counter[Any]:
    """Return the sums of a metric by columns; ``callpath`` stands for the name of its last function."""
    sums: Counter[Any] = Counter()
    for row in result.severities(metric).to_pylist():
        row["callpath"] = row["callpath"][-1]
        sums[tuple(row[column] for column in columns)] += row["value"]
    return sums


def metrics(callpath: str | None = None) -> Measure:
    """Return what takes the metrics of the rows: from the call paths with a function in them, if one is named."""

    def measure(case: Case, variant: Variant, make: Make) -> Figures:
        result = analyze(make(variant.workload), causes=False)
        return {row.name: total(result, row.metric, callpath) for row in case.rows if row.metric}

    return measure


# --- BT-RMA -----------------------------------------------------------------------------------------------------------

#: Iterations of the published runs, after which faces are exchanged once more.
BT_ITERATIONS = 251
PAIRS = ("Pairwise synchronizations", "Unneeded synchronizations")
_COUNTS = ("mpi_rma_pairsync_count", "mpi_rma_pairsync_unneeded_count")
#: Two for the version of Scalasca on JUMP2, which counted 2 P pairs of a fence (tables A.5 and A.6 differ in that).
PAIRS_OF_A_FENCE = {256: 2}


def bt(case: Case, variant: Variant, make: Make) -> Figures:
    """Return times, and numbers of pairs in as many iterations as were published.

    What happens in an iteration is the same in each, so the numbers are exact: those of the solver are multiplied by
    251 over the iterations of the run, those of the faces by 252 over one more. Times are not, with the former factor.
    """
    result = analyze(make(variant.workload), causes=False)
    runs = BT_ITERATIONS / variant.iterations
    figures = {row.name: runs * total(result, row.metric) for row in case.rows if row.metric}
    visits: Counter[Any] = by(result, "visits", "callpath_id", "rank")
    more = PAIRS_OF_A_FENCE.get(variant.processes, 1) - 1
    for name, metric in zip(PAIRS, _COUNTS, strict=True):
        figures[name] = 0.0
        for row in result.severities(metric).to_pylist() if metric in result.metrics else ():
            value = row["value"]
            if row["callpath"][-1] == "MPI_Win_fence":
                # None of what that version counted more is needed.
                value += more * visits[row["callpath_id"], row["rank"]] * variant.processes
            once = "copy_faces" in row["callpath"]
            figures[name] += value * (BT_ITERATIONS + once) / (variant.iterations + once)
    return figures


def bt_pairs(variant: Variant, *, unneeded: bool = False) -> float:
    """Return the number of pairs, or of those that need not synchronize, by the structure of the program.

    In each of 251 iterations a process goes through 3 x 2 x (sqrt(P) - 1) exchanges of the solver with one neighbor,
    and 252 times it exchanges faces with six. A fence has P pairs of each process, a group its members.
    """
    processes = variant.processes
    stages = BT_ITERATIONS * 3 * 2 * (math.isqrt(processes) - 1)
    faces = BT_ITERATIONS + 1
    kind = variant.workload.removeprefix("bt-rma-")
    fences = {"fence": stages + faces, "gats-fence": faces}.get(kind, 0)
    groups = {"fence": 0, "gats-fence": stages}.get(kind, stages + 6 * faces)
    # In both directions, and never more than there are pairs.
    neighbors = min(12, processes) * faces
    needed = {"fence": 2 * stages + neighbors, "gats-fence": neighbors}.get(kind, 0)
    pairs = 2 * fences * processes * PAIRS_OF_A_FENCE.get(processes, 1)
    return float(processes * (pairs - needed if unneeded else pairs + 2 * groups))


# --- the lock ---------------------------------------------------------------------------------------------------------


def lock(_: Case, variant: Variant, make: Make) -> Figures:
    """Return contention by process, and figures of the critical path."""
    result = analyze(make(variant.workload))
    contention = by(result, "mpi_rma_sync_lock_competition", "rank")
    progress = by(result, "mpi_rma_sync_wait_for_progress", "rank")
    path = by(result, "critical_path", "callpath")
    imbalance = by(result, "critical_path_imbalance", "callpath")
    unlocking = {rank for name, rank in by(result, "critical_path", "callpath", "rank") if name == "MPI_Win_unlock"}
    others = [contention[rank,] for rank in range(3, variant.processes)]
    return {
        "Lock Contention, process 1": contention[1,],
        "Lock Contention and Wait for Progress, process 2": contention[2,] + progress[2,],
        "Lock Contention, processes 3 and above": sum(others) / len(others) if others else 0.0,
        "Processes with MPI_Win_unlock on the critical path": float(len(unlocking)),
        "bar on the critical path": path["bar",],
        "bar, if it were balanced": path["bar",] / variant.processes,
        "Critical-path imbalance": float(sum(imbalance.values())),
        "of bar": imbalance["bar",],
    }


def late_post(_: Case, variant: Variant, make: Make) -> Figures:
    """Return the wait of process 2, and what `foo` on process 0 pays of it."""
    result = analyze(make(variant.workload))
    costs: Counter[Any] = Counter()
    for row in result.delay_costs().to_pylist():
        if row["class"] == "rma_late_post":
            costs[row["callpath"][-1], row["rank"]] += row["short_term"] + row["long_term"]
    waiting = by(result, "mpi_rma_sync_late_post", "rank")
    return {
        "Late Post, process 2": waiting[2,],
        "of it for foo on process 0": waiting[2,] * costs["foo", 0] / sum(costs.values()),
    }


#: The calls of general active-target synchronization.
GATS = ("MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait")


def puts(variant: Variant) -> float:
    """Return the puts of a figure: one for each pair of processes."""
    return float(variant.processes // 2 * variant.iterations)


def put_gats(_: Case, __: Variant, make: Make) -> Figures:
    """Return how many calls there are, and with which of them transfers end."""
    trace = make("put-gats")
    result, run = analyze(trace, causes=False), open_run(trace)
    regions = {region["id"]: region["name"] for region in run.definitions["Region"].to_pylist()}
    # Ticks and location of the end of each call.
    left = {
        (location, event["time"]): regions[event["region"]]
        for location in range(result.facts["locations"])
        for event in run.events(location).to_pylist()
        if event["type"] == "Leave"
    }
    ends: Counter[Any] = Counter()
    for transfer in result.transfers().to_pylist():
        end = result.facts["origin"] + round(transfer["end"] * result.facts["resolution"])
        ends[left.get((transfer["destination_location"], end))] += 1
        ends[left.get((transfer["origin_location"], end))] += 1
    visits = by(result, "visits", "callpath")
    return {
        "Calls of post, start, complete and wait": float(sum(visits[name,] for name in GATS)),
        "Puts": float(visits["MPI_Put",]),
        "Transfers that end in MPI_Win_wait": float(ends["MPI_Win_wait"]),
        "Transfers that end with their put": float(ends["MPI_Put"]),
    }


# --- ARMCI ------------------------------------------------------------------------------------------------------------


def gets(variant: Variant) -> float:
    """Return the gets of a process: 8 sqrt(P) where P is a square, 7 sqrt(2 P) elsewhere, which is table A.9."""
    side = math.isqrt(variant.processes)
    count = 8 * side if side * side == variant.processes else 7 * math.isqrt(2 * variant.processes)
    # Puts come in pairs.
    return float(count // 2 * 2)


def srumma(case: Case, variant: Variant, make: Make) -> Figures:
    """Return metrics, gets, and gets analyzed per second of processor time."""
    trace = make(variant.workload)
    # One analysis for both, because two results may not fit in memory.
    begin = time.process_time()
    result = analyze(trace, causes=False, threads=1)
    spent = time.process_time() - begin
    figures = {row.name: total(result, row.metric) for row in case.rows if row.metric}
    count = by(result, "visits", "callpath")["ARMCI_NbGet",]
    return figures | {
        "Gets of a process": count / variant.processes / variant.iterations,
        "Analysis, phase 1": 1e3 * spent,
        "Gets analyzed in a second": count / spent,
    }


def nwchem(_: Case, variant: Variant, make: Make) -> Figures:
    """Return Wait for Progress as a share of communication, and the share of processes that have it."""
    result = analyze(make(variant.workload), causes=False)
    progress = by(result, "armci_rma_comm_wait_for_progress", "rank")
    return {
        "Wait for Progress, of ARMCI communication": 100
        * sum(progress.values())
        / total(result, "armci_rma_communication"),
        "Processes that wait for progress": 100 * len(progress) / variant.processes,
        "Wait at Barrier, of all waiting": 100
        * total(result, "armci_barrier_wait")
        / total(result, "armci_barrier_wait+armci_rma_comm_wait_for_progress"),
    }


# --- the analysis itself ----------------------------------------------------------------------------------------------

#: Implementations of SOR, and their tables in the thesis.
SOR = {"p2p": "A.1", "gats": "A.2", "fence": "A.3", "locks": "A.4"}
#: The stages that correspond to Scalasca's replays. One pass does the work of the second and third, and another that of
#: the fourth and fifth. None of them includes reading the trace (docs/scale.md).
PHASES = {
    "phase 1": ("messages", "collectives", "one-sided"),
    "phases 2 and 3": ("points",),
    "phases 4 and 5": ("causes",),
}


def sor(_: Case, variant: Variant, make: Make) -> Figures:
    """Return the processor time of the stages per iteration, ms."""
    figures: Figures = {}
    for name in SOR:
        measured = speed.measure(make(f"sor-{name}"), repeat=1)
        stages = measured["stages"]
        parts = {"": measured["cpu"]} | {
            f", {phase}": sum(stages.get(stage, 0) for stage in of) for phase, of in PHASES.items()
        }
        figures |= {f"{name}{part}": 1e3 * time / variant.iterations for part, time in parts.items()}
    return figures


def predicted(hypothesis: tuple[str, str]) -> Measure:
    """Measure how much a simulation differs from its run, and a prediction from the optimized run, percent."""

    def measure(_: Case, variant: Variant, __: Make) -> Figures:
        workloads = {variant.workload: hypothesis}
        (row,) = predictions.predict(workloads, [variant.processes], variant.iterations, seed=1)
        figures = {"Identity": abs(row["identity"]), "Prediction": abs(row["deviation"])}
        for function, saved in row["functions"].items():
            measured, guess = saved["measured"]["time"], saved["predicted"]["time"]
            figures[f"{function}, saved"] = measured
            figures[f"{function}, saved by prediction"] = guess
            figures[f"{function}, deviation"] = 100 * (guess - measured) / measured if measured else 0.0
        return figures

    return measure


# --- counters ---------------------------------------------------------------------------------------------------------

#: The last of this many windows of multirate is received late.
LATE = 4


def receives(variant: Variant) -> float:
    """Return the number of messages of multirate: a window per thread, pair of processes, and iteration."""
    return float(variant.processes // 2 * variant.iterations * _window(variant))


def _window(variant: Variant) -> int:
    """Return the number of messages of all threads in a window."""
    return (variant.threads or 1) * (variant.window or 1)


def _shares(variant: Variant) -> bool:
    """Whether threads share a communicator."""
    return variant.workload == "multirate" and (variant.threads or 1) > 1


def overlapping(variant: Variant) -> float:
    """Return the number of messages that threads send concurrently."""
    rounds = variant.iterations * (variant.window or 1)
    concurrent = math.floor(rounds * (variant.overlap or 0.0)) if _shares(variant) else 0
    return float(variant.processes // 2 * (variant.threads or 1) * concurrent)


def unexpected(variant: Variant) -> float:
    """Return the number of unexpected messages: those of every fourth window."""
    return float(variant.processes // 2 * (variant.iterations // LATE) * _window(variant))


def attempts(variant: Variant) -> float:
    """Return the match attempts per message: one, and half of the messages queued by half of the other threads."""
    others = ((variant.threads or 1) - 1) * ((variant.window or 1) - 1) / 4 if _shares(variant) else 0.0
    return 1.0 + others


def longest(variant: Variant) -> float:
    """Return the maximum number of posted receives of a process."""
    return float(_window(variant))


def multirate(_: Case, variant: Variant, make: Make) -> Figures:
    """Return the figures of messages and queues."""
    result = analyze(make(variant.workload), causes=False, queues="send")
    count = by(result, "visits", "callpath")["MPI_Irecv",]
    possible = total(result, "mpi_oos_possible")
    return {
        "Receives": float(count),
        "Possibly out of sequence": possible,
        "of the receives": 100 * possible / count,
        "Unexpected messages": total(result, "mpi_unexpected"),
        "Most posted receives": _highest(result, "mpi_posted_queue"),
        "Match attempts of a message": total(result, "mpi_match_attempts") / count,
    }


def _highest(result: Result, level: str) -> float:
    """Return the maximum of a level over all processes."""
    levels = result.queue_levels().to_pylist()
    return float(
        max((row["maximum"] for row in levels if row["metric"] == level and row["rank"] is not None), default=0)
    )


#: Messages per sender and iteration of flood.
FLOOD = 8


def flooded(variant: Variant) -> float:
    """Return the number of messages that arrive in an iteration before the first one is received."""
    return float(FLOOD * (variant.processes - 1))


def flood(_: Case, __: Variant, make: Make) -> Figures:
    """Return the figures of the queues of the late receiver."""
    result = analyze(make("flood"), causes=False, queues="send")
    return {
        "Receives": float(by(result, "visits", "callpath")["MPI_Recv",]),
        "Unexpected messages": total(result, "mpi_unexpected"),
        "Most unexpected messages": _highest(result, "mpi_unexpected_queue"),
        "Match attempts": total(result, "mpi_match_attempts"),
    }


def ramp(processes: int, imbalance: float) -> float:
    """Return the argument of comd-gpu for an imbalance of loads, as a share: (max - mean) / mean.

    Loads are work (1 + s x^2) at the positions x = 0 to 1 of ranks; with m the mean of x^2, the imbalance is
    s (1 - m) / (1 + s m).
    """
    mean = (2 * processes - 1) / (6 * (processes - 1))
    return imbalance / (1 - mean - imbalance * mean)


def comd(_: Case, variant: Variant, make: Make) -> Figures:
    """Return imbalances in percent: of the requested loads, of the measured ones, and of the adjusted ones."""
    places = [rank / (variant.processes - 1) for rank in range(variant.processes)]
    loads = imbalance([1 + variant.imbalance * place * place for place in places])
    result = analyze(make("comd-gpu"), causes=False)
    found = result.gpu().summary()
    figures = {"Atoms": loads, "GPU": found["imbalance"], "GPU, adjusted": found["imbalance_adjusted"]}
    atoms = [1 + variant.imbalance * place * place for place in places]
    correlations = {
        name: pearson(atoms, by_rank(result, of)) or 0.0
        for name, of in (("r of GPU time and atoms", "gpu_time"), ("r of adjusted time and atoms", "gpu_time_adjusted"))
    }
    return {name: 100 * (figure or 0.0) for name, figure in figures.items()} | correlations
