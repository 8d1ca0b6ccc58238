"""The cases: their programs, and the figures that were published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait._native import UsageError
from whywait.bench import measures, predictions
from whywait.bench.case import Case, Row, Variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def named(name: str) -> Case:
    """Return the case with a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    for case in CASES:
        if case.name == name:
            return case
    raise UsageError(f"{name}: no such case ({', '.join(case.name for case in CASES)})")


# --- SOR: thesis, section 5.1 -----------------------------------------------------------------------------------------

_SCALES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
#: Phases 1 to 5 by number of processes, s of 500 iterations: tables A.1 to A.4.
_SOR = {
    "p2p": (
        (1.53, 0.58, 0.35, 1.99, 0.35),
        (1.55, 0.58, 0.36, 2.09, 0.35),
        (1.64, 0.57, 0.35, 2.34, 0.34),
        (1.74, 0.57, 0.38, 2.64, 0.34),
        (1.84, 0.58, 0.35, 3.18, 0.35),
        (2.03, 0.58, 0.35, 4.05, 0.34),
        (2.41, 0.58, 0.35, 5.25, 0.34),
        (3.55, 0.57, 0.34, 9.87, 0.34),
    ),
    "gats": (
        (1.81, 0.52, 0.08, 1.30, 0.19),
        (1.85, 0.52, 0.08, 1.21, 0.20),
        (1.90, 0.52, 0.08, 1.46, 0.22),
        (1.99, 0.53, 0.08, 1.57, 0.22),
        (2.10, 0.52, 0.08, 1.99, 0.21),
        (2.41, 0.51, 0.08, 2.16, 0.20),
        (2.95, 0.51, 0.08, 3.62, 0.20),
        (4.48, 0.52, 0.08, 6.81, 0.19),
    ),
    "fence": (
        (1.11, 0.02, 0.07, 1.60, 0.07),
        (1.09, 0.02, 0.07, 1.80, 0.07),
        (1.17, 0.02, 0.07, 2.10, 0.07),
        (1.27, 0.02, 0.07, 2.61, 0.07),
        (1.35, 0.02, 0.07, 3.26, 0.07),
        (1.58, 0.02, 0.06, 4.26, 0.07),
        (2.06, 0.02, 0.07, 6.01, 0.07),
        (3.23, 0.02, 0.06, 9.49, 0.07),
    ),
    "locks": (
        (40.80, 0.33, 0.43, 2.56, 0.47),
        (40.91, 0.33, 0.43, 2.82, 0.46),
        (40.97, 0.33, 0.43, 3.01, 0.48),
        (41.10, 0.32, 0.42, 3.51, 0.48),
        (41.29, 0.34, 0.43, 4.06, 0.47),
        (41.60, 0.34, 0.43, 4.87, 0.49),
        (42.17, 0.34, 0.43, 7.07, 0.50),
        (43.50, 0.32, 0.43, 11.17, 0.50),
    ),
}


def _sor_rows() -> Iterator[Row]:
    for name, scales in _SOR.items():
        # Milliseconds of an iteration.
        phases = [[2 * seconds for seconds in phases] for phases in scales]
        yield Row(name, tuple(sum(times) for times in phases), "ms")
        yield Row(f"{name}, phase 1", tuple(times[0] for times in phases), "ms", depth=1)
        for first in (1, 3):
            both = f"{name}, phases {first + 1} and {first + 2}"
            yield Row(both, tuple(times[first] + times[first + 1] for times in phases), "ms", depth=1)
            for number in (first, first + 1):
                yield Row(f"{name}, phase {number + 1}", tuple(times[number] for times in phases), "ms", depth=2)


_SOR_CASE = Case(
    name="sor",
    title="SOR: time of the analysis for an iteration, by replay phase",
    source="thesis, section 5.1, figure 5.1, tables A.1 to A.4 (500 iterations on an IBM Blue Gene/Q)",
    variants=tuple(Variant(f"{scale:,}", "sor-p2p", scale, 10) for scale in _SCALES),
    rows=tuple(_sor_rows()),
    remark=(
        "Published: time by the clock on as many cores as processes. Here: processor time of one thread for all "
        "processes; the total includes reading the trace. One pass here does the work of phases 2 and 3, and "
        "another that of phases 4 and 5. Compare how the parts grow, not how long they take."
    ),
    measure=measures.sor,
    usual=8192,
)

# --- BT-RMA: thesis, section 5.2 --------------------------------------------------------------------------------------

_BT_VARIANTS = ("fence", "gats-fence", "gats-single", "gats-multi")
_BT_ROWS = (
    ("Total time", "time", 0),
    ("Execution time", "comp", 0),
    ("MPI time", "mpi", 0),
    ("Collective", "mpi_sync_collective", 1),
    ("Wait at Barrier", "mpi_barrier_wait", 2),
    ("RMA Synchronization", "mpi_rma_synchronization", 1),
    ("Wait at Fence", "mpi_rma_wait_at_fence", 2),
    ("Early Wait", "mpi_rma_early_wait", 2),
    ("Late Complete", "mpi_rma_late_complete", 3),
    ("Late Post in synchronization", "mpi_rma_sync_late_post", 2),
    ("RMA Communication", "mpi_rma_communication", 1),
    ("Late Post in communication", "mpi_rma_comm_late_post", 2),
)
_BT_REMARK = (
    "Counts of pairs follow from the structure and agree to the last digit. Every iteration has the same, so fewer "
    "than 251 are enough. Times depended on the machine: those of a put, of a call, and of a fence for a pair are "
    "taken from it; the waiting follows from the structure and a load that differs by a fifth."
)


def _bt(
    name: str,
    processes: int,
    source: str,
    times: Sequence[Sequence[float | None]],
    counts: Sequence[Sequence[float]],
    *,
    work: float,
    machine: str,
    barriers: bool = False,
) -> Case:
    variants = tuple(
        Variant(
            "fence-only" if kind == "fence" else kind,
            f"bt-rma-{kind}",
            processes,
            3,
            work,
            barriers=barriers,
            machine=machine,
        )
        for kind in _BT_VARIANTS
    )
    rows = [
        Row(row, tuple(published), metric=metric, depth=depth)
        for (row, metric, depth), published in zip(_BT_ROWS, times, strict=True)
    ]
    structures = (measures.bt_pairs, lambda variant: measures.bt_pairs(variant, unneeded=True))
    rows += [
        Row(row, tuple(published), "", structure=structure)
        for row, published, structure in zip(measures.PAIRS, counts, structures, strict=True)
    ]
    title = f"BT-RMA on {processes:,} processes"
    return Case(name, title, source, variants, tuple(rows), _BT_REMARK, measures.bt, shares=True)


_BT_256 = _bt(
    "bt-rma",
    256,
    "thesis, section 5.2, figure 5.2a, table A.5 (IBM Power6 575, JUMP2)",
    [
        (109_361.68, 61_197.15, 61_958.75, 60_503.99),
        (58_109.23, 54_420.63, 54_280.99, 54_219.74),
        (51_252.45, 6_776.52, 7_677.76, 6_284.25),
        (0.77, 1.37, 5.89, 1.53),
        (0.75, 1.34, 5.87, 1.51),
        (48_703.78, 3_701.09, 2_294.03, 3_476.01),
        (6_080.03, 878.34, None, None),
        (None, 1_536.29, 912.73, 1_923.75),
        (None, 1.84, 40.26, 1.99),
        (None, 0.47, 2.17, 0.92),
        (1_324.92, 1_881.20, 4_034.39, 1_603.23),
        (None, 797.09, 2_893.84, 848.56),
    ],
    [(5.988e9, 7.763e7, 1.234e7, 1.234e7), (5.976e9, 6.529e7, 0, 0)],
    work=8.0e-3,
    machine="jump2",
)
_BT_1024 = _bt(
    "bt-rma-1024",
    1024,
    "thesis, section 5.2, figure 5.2b, table A.6 (IBM Blue Gene/P, JUGENE)",
    [
        (862_852.50, 235_560.79, 233_595.01, 234_197.46),
        (220_392.94, 214_204.01, 213_868.62, 213_798.25),
        (642_459.56, 21_356.78, 19_726.39, 20_399.21),
        (246.88, 1_686.25, 2_088.60, 2_938.56),
        (238.62, 1_674.79, 2_076.28, 2_926.07),
        (639_439.77, 16_901.96, 13_675.91, 14_115.94),
        (16_302.48, 187.76, None, None),
        (None, 2_656.19, 2_661.14, 2_824.42),
        (None, 43.45, 40.92, 41.88),
        (None, None, None, None),
        (1_920.77, 1_980.18, 1_972.15, 1_981.52),
        (None, None, None, None),
    ],
    [(9.844e10, 6.241e8, 9.871e7, 9.871e7), (9.832e10, 5.253e8, 0, 0)],
    work=4.05e-3,
    machine="jugene",
    barriers=True,
)
_BT_JUQUEEN = _bt(
    "bt-rma-juqueen",
    1024,
    "thesis, section 5.2, figure 5.3, table A.7 (IBM Blue Gene/Q, JUQUEEN)",
    [
        (230_257.89, 176_749.02, 174_062.99, 174_520.64),
        (201_582.36, 161_964.02, 160_466.29, 160_584.66),
        (28_675.53, 14_784.99, 13_596.69, 13_935.98),
        (0.96, 1.92, 2.35, 2.07),
        (0.93, 1.88, 2.32, 2.03),
        (27_884.91, 14_137.09, 12_954.35, 13_216.67),
        (14_462.19, 473.45, None, None),
        (None, 2_795.67, 2_777.35, 2_927.43),
        (None, 16.48, 17.16, 16.53),
        (None, 404.98, 400.50, 441.50),
        (726.62, 572.44, 567.98, 605.03),
        (None, None, None, None),
    ],
    [(9.844e10, 6.241e8, 9.871e7, 9.871e7), (9.832e10, 5.253e8, 0, 0)],
    work=3.69e-3,
    machine="juqueen",
)

# --- CGPOP: thesis, section 5.3; EuroMPI'13, section 5.3 --------------------------------------------------------------

_CGPOP = Case(
    name="cgpop",
    title="CGPOP, the call tree of solver.esolver, on 60 processes",
    source="thesis, section 5.3, table A.8; EuroMPI'13, table 1 (a cluster at RWTH Aachen)",
    variants=tuple(Variant(name, f"cgpop-{name}", 60, 500, 2.14e-3, 0.828) for name in ("original", "modified")),
    rows=(
        Row("Total time", (125.21, 108.26), metric="time"),
        Row("MPI time", (59.78, 45.50), metric="mpi"),
        Row("Synchronization", (56.20, 34.28), metric="mpi_synchronization", depth=1),
        Row("Collective", (52.98, None), metric="mpi_sync_collective", depth=2),
        Row("Wait at Barrier", (51.95, None), metric="mpi_barrier_wait", depth=3),
        Row("Completion", (0.87, None), metric="mpi_barrier_completion", depth=3),
        Row("RMA Synchronization", (3.23, 34.28), metric="mpi_rma_synchronization", depth=2),
        Row("Late Post", (1.56, 26.21), metric="mpi_rma_sync_late_post", depth=3),
    ),
    remark=(
        "The load of the two processes, how unevenly the barrier ends, and the time of a call are chosen to match the "
        "times of the original and the total of the modified program; the rest follows. The MPI time of the modified "
        "program is from EuroMPI'13; in its place, the thesis repeats the synchronization time."
    ),
    measure=measures.metrics("solver.esolver"),
    sums=True,
)

# --- SRUMMA and NWChem: thesis, sections 5.4 and 5.5 ------------------------------------------------------------------

_SRUMMA_SCALES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
#: Gets of a process, and seconds of phase 1 of the analysis: table A.9.
_SRUMMA_GETS = (112, 128, 224, 256, 448, 512, 896, 1024, 1792)
_SRUMMA_PHASE_1 = (0.14, 0.23, 0.36, 0.46, 0.80, 1.01, 2.05, 2.49, 5.28)
_SRUMMA = Case(
    name="srumma",
    title="SRUMMA: two matrices of 4096 x 4096 elements",
    source="thesis, section 5.4, figures 5.5 and 5.6, tables A.9 and A.10 (IBM Blue Gene/P, JUGENE)",
    variants=tuple(Variant(f"{scale:,}", "srumma-nb", scale, 1, 1e-3, 0.02) for scale in _SRUMMA_SCALES),
    rows=(
        Row(
            "Total time",
            (4.583e4, 2.750e4, 3.193e4, 3.659e4, 4.656e4, 6.235e4, 1.072e5, 2.474e5, 9.474e5),
            metric="time",
        ),
        Row(
            "User",
            (1.517e4, 1.530e4, 1.551e4, 1.595e4, 1.694e4, 1.870e4, 2.209e4, 2.874e4, 4.458e4),
            metric="comp",
        ),
        Row(
            "Wait at Barrier",
            (1.148e3, 2.514e2, 6.897e2, 8.669e1, 6.156e2, 3.287e3, 1.516e4, 6.244e4, 2.701e5),
            metric="mpi_barrier_wait",
        ),
        Row(
            "ARMCI",
            (2.951e4, 1.192e4, 1.564e4, 2.048e4, 2.712e4, 3.484e4, 6.387e4, 1.378e5, 4.833e5),
            metric="armci",
        ),
        Row(
            "Wait for Progress",
            (1.696e4, 7.937e3, 1.042e4, 1.439e4, 1.843e4, 2.196e4, 2.999e4, 3.237e4, 4.360e4),
            metric="armci_rma_comm_wait_for_progress+armci_rma_sync_wait_for_progress",
            depth=1,
        ),
        Row("Gets of a process", _SRUMMA_GETS, "", structure=measures.gets),
        Row("Analysis, phase 1", tuple(1e3 * seconds for seconds in _SRUMMA_PHASE_1), "ms"),
        Row(
            "Gets analyzed in a second",
            tuple(
                scale * gets / seconds
                for scale, gets, seconds in zip(_SRUMMA_SCALES, _SRUMMA_GETS, _SRUMMA_PHASE_1, strict=True)
            ),
            "",
        ),
    ),
    remark=(
        "The number of gets follows from the structure. Times depended on the machine, and the benchmark did more than "
        "multiply. Analysis, published: phase 1, by the clock on as many cores as processes; here: processor "
        "time of one thread, with reading, without causes. Wait for Progress of non-blocking gets is in ARMCI_Wait."
    ),
    measure=measures.srumma,
    shares=True,
    usual=8192,
)
_NWCHEM = Case(
    name="nwchem",
    title="NWChem, SiOSi3, on 4,096 processes",
    source="thesis, section 5.5, figure 5.7 (IBM Blue Gene/P, JUGENE)",
    variants=(Variant("4,096", "nwchem", 4096, 3, 2e-2, 2.0),),
    rows=(
        Row("Wait for Progress, of ARMCI communication", (20.0,), "%"),
        Row("Processes that wait for progress", (None,), "%"),
        Row("Wait at Barrier, of all waiting", (None,), "%"),
    ),
    remark=(
        "The thesis gives the share of communication, and says that Wait at Barrier is most of the waiting and that "
        "Wait for Progress is scattered over the processes. This program has that structure; it simulates no molecules."
    ),
    measure=measures.nwchem,
)

# --- microbenchmarks --------------------------------------------------------------------------------------------------

_LOCK = Case(
    name="lock",
    title="The microbenchmark of lock contention on 12 processes",
    source="thesis, section 5.6, figures 5.8 and 5.9",
    variants=(Variant("12", "lock-chain", 12),),
    rows=(
        Row("Lock Contention, process 1", (2.0,)),
        Row("Lock Contention and Wait for Progress, process 2", (2.1,)),
        Row("Lock Contention, processes 3 and above", (2.1,)),
        Row("Processes with MPI_Win_unlock on the critical path", (11.0,), ""),
        Row("bar on the critical path", (2.0,)),
        Row("bar, if it were balanced", (0.17,), depth=1),
        Row("Critical-path imbalance", (1.93,)),
        Row("of bar", (1.83,), depth=1),
    ),
    remark="The text has both 100 microseconds and 0.1 s for the second call of foo; only 0.1 s fits the figures.",
    measure=measures.lock,
)
_LATE_POST = Case(
    name="late-post",
    title="A delay two processes away",
    source="EuroMPI'13, section 5.1, figure 3",
    variants=(Variant("3", "late-post", 3, 1, 0.11, 0.3 / 0.11),),
    rows=(
        Row("Late Post, process 2", (0.3,)),
        Row("of it for foo on process 0", (0.3,), depth=1),
    ),
    remark="The figure gives the waiting time of process 2 and shows foo on process 0 as its cause.",
    measure=measures.late_post,
)
_PUT_GATS = Case(
    name="put-gats",
    title="A put between post, start, complete and wait, on 4 processes",
    source="Euro-Par'05, section 4, figure 3",
    variants=(Variant("4", "put-gats", 4),),
    rows=(
        Row("Calls of post, start, complete and wait", (None,), "", structure=lambda of: 4 * measures.puts(of)),
        Row("Puts", (None,), "", structure=measures.puts),
        Row("Transfers that end in MPI_Win_wait", (None,), "", structure=measures.puts),
        Row("Transfers that end with their put", (None,), "", structure=lambda _: 0.0),
    ),
    remark=(
        "The figure shows two timelines without numbers. In the first, by another tool, these calls are missing and "
        "transfers end with their put. In the second, by the authors, they are there, and transfers end where the "
        "window is closed."
    ),
    measure=measures.put_gats,
)

# --- counters: Eberius, chapters 3 and 4 ------------------------------------------------------------------------------

#: By threads: messages that were received, and those that arrived out of sequence (table 3.4, with the warm-up).
_MULTIRATE_PUBLISHED = {2: (56_320, 16_633), 4: (112_640, 47_216), 8: (225_280, 112_813)}


def _multirate_variants() -> Iterator[Variant]:
    def variant(name: str, workload: str, processes: int, threads: int, overlap: float) -> Variant:
        # 100 iterations, and as many as are missing for the warm-up.
        return Variant(name, workload, processes, 110, 1e-4, 0.2, threads=threads, window=256, overlap=overlap)

    for threads, (received, late) in _MULTIRATE_PUBLISHED.items():
        yield variant(f"{threads} threads", "multirate", 2, threads, late / received)
    yield variant("8, own comms", "multirate-comms", 2, 8, late / received)
    yield variant("16 processes", "multirate", 16, 1, 0.0)


_MULTIRATE = Case(
    name="multirate",
    title="multirate, pairwise: 256 messages of 64 bytes from each thread of a process to one of another",
    source="Eberius, section 3.9, table 3.4 (two processes on a node with two 10-core Xeon E5-2650 v3)",
    variants=tuple(_multirate_variants()),
    rows=(
        Row("Receives", (56_320, 112_640, 225_280, None, None), "", structure=measures.receives),
        Row("Possibly out of sequence", (16_633, 47_216, 112_813, None, None), "", structure=measures.overlapping),
        Row("of the receives", (29.53, 41.92, 50.08, None, None), "%", depth=1),
        Row("Unexpected messages", (None,) * 5, "", structure=measures.unexpected),
        Row("Most posted receives", (None,) * 5, "", structure=measures.longest),
        Row("Match attempts of a message", (None,) * 5, "", structure=measures.attempts),
    ),
    remark=(
        "Published are the messages that did arrive out of sequence. A trace shows those that may have, because their "
        "sends overlap; the share of these is given. With a communicator for each pair of threads, or with processes "
        "instead of threads, there are none. Message rates and times were those of the machine."
    ),
    measure=measures.multirate,
    sums=True,
)
_FLOOD = Case(
    name="flood",
    title="A flood of messages to a rank that receives late",
    source="Eberius, sections 3.5 and 3.9",
    variants=tuple(Variant(f"{count}", "flood", count, 10, 1e-3, 0.0) for count in (8, 40, 256)),
    rows=(
        Row("Receives", (None,) * 3, "", structure=lambda of: of.iterations * measures.flooded(of)),
        Row("Unexpected messages", (None,) * 3, "", structure=lambda of: of.iterations * measures.flooded(of)),
        Row("Most unexpected messages", (None,) * 3, "", structure=measures.flooded),
        Row("Match attempts", (None,) * 3, "", structure=lambda of: of.iterations * measures.flooded(of)),
    ),
    remark=(
        "The dissertation describes these counters and prints them for applications. This program stands in for them: "
        "its counters are known by construction."
    ),
    measure=measures.flood,
)

#: Imbalance of atoms, of the time of kernels, and of the adjusted time, percent: table 4.1, problems 1 to 11.
_COMD = {
    "small": (
        (4.91, 10.04, 19.86, 29.99, 39.79, 50.15, 59.81, 70.18, 79.75, 90.34, 100.27),
        (7.91, 11.40, 21.35, 29.43, 39.86, 51.91, 63.28, 74.35, 85.88, 92.24, 106.49),
        (7.61, 12.65, 20.13, 30.67, 40.99, 50.79, 59.91, 68.78, 76.27, 82.62, 93.09),
    ),
    "large": (
        (4.91, 9.89, 20.19, 29.92, 39.82, 50.08, 60.24, 69.97, 80.03, 89.85, 99.92),
        (7.58, 12.94, 24.15, 30.35, 40.31, 50.40, 61.92, 67.76, 80.06, 86.38, 98.44),
        (8.00, 12.95, 22.89, 31.04, 40.66, 50.13, 60.77, 67.03, 74.44, 82.24, 92.35),
    ),
}


#: Pearson's r of the atoms with GPU time and with adjusted time: figure 4.9, the 60% problems.
_COMD_R = {"small": (0.93895349, 0.9949787), "large": (0.99616814, 0.99753709)}


def _comd(name: str, size: str, work: float) -> Case:
    atoms, measured, adjusted = _COMD[size]
    return Case(
        name=name,
        title=f"CoMD on 64 GPUs, {size} problems: imbalance of the load",
        source="Eberius, section 4.4, table 4.1 (16 nodes of Lassen with 4 V100 each)",
        variants=tuple(
            Variant(str(number), "comd-gpu", 64, 2, work, measures.ramp(64, percent / 100))
            for number, percent in enumerate(atoms, 1)
        ),
        rows=(
            Row("Atoms", atoms, "%"),
            Row("GPU", measured, "%"),
            Row("GPU, adjusted", adjusted, "%"),
            # Figure 4.9, of problem 7.
            *(
                Row(f"r of {what} time and atoms", (*(None,) * 6, r, *(None,) * 4), "r")
                for what, r in zip(("GPU", "adjusted"), _COMD_R[size], strict=True)
            ),
        ),
        remark=(
            "The imbalance of the atoms is given. The dissertation prints no loads; here they follow from a model: "
            "80 multiprocessors run 80 blocks of 128 atoms at a time, and the last wave is not full. In this model "
            "equation 4.5 recovers the imbalance of the atoms; on the machine it did not."
        ),
        measure=measures.comd,
    )


# --- predictions: SILAS, chapter 5 ------------------------------------------------------------------------------------


#: Seconds that two functions of XNS took less without empty messages on 128 processes, measured and predicted (5.2.2).
_SAVED = {"ewdscatter2": (363.0, 375.0), "ewdgather1": (332.0, 311.0)}


def _function_rows(workload: str) -> Iterator[Row]:
    for function in predictions.FUNCTIONS.get(workload, ()):
        measured, guess = _SAVED[function]
        yield Row(f"{function}, saved", (measured, None), "s")
        yield Row(f"{function}, saved by prediction", (guess, None), "s", depth=1)
        yield Row(f"{function}, deviation", (100 * (guess - measured) / measured, None), "%", depth=1)


def _predicted(
    name: str, title: str, section: str, hypothesis: tuple[str, str], figures: tuple[float | None, float | None]
) -> Case:
    workload = {"sweep3d": "sweep"}.get(name, name)
    # A trace of 1,024 processes was measured, but could not be simulated.
    processes = {"xns": (128, 1024)}.get(name, (32, 128, 512))
    identity, prediction = ((figure,) * len(processes) for figure in figures)
    return Case(
        name=name,
        title=title,
        source=f"SILAS, section {section} (IBM Blue Gene/L, JUBL)",
        variants=tuple(Variant(str(count), workload, count, 100) for count in processes),
        rows=(Row("Identity", identity, "%"), Row("Prediction", prediction, "%"), *_function_rows(workload)),
        remark=(
            "Identity: deviation of a simulation without a change from the run. Prediction: deviation of the simulated "
            "change from the optimized program. Published are upper bounds; that of lb-p2p is from the conclusion, the "
            "identity of xns is that of its computation. There the program ran again, here times are computed. The "
            "seconds of two functions of xns are those of another program: compare the deviations."
        ),
        measure=measures.predicted(hypothesis),
    )


CASES = (
    _SOR_CASE,
    _BT_256,
    _BT_1024,
    _BT_JUQUEEN,
    _CGPOP,
    _SRUMMA,
    _NWCHEM,
    _LOCK,
    _LATE_POST,
    _PUT_GATS,
    _predicted("lb-coll", "LB-COLL: foo balanced", "5.1.1", ("balance", "foo"), (0.0003, 0.003)),
    _predicted("lb-p2p", "LB-P2P: foo balanced", "5.1.2", ("balance", "foo"), (0.1, 0.1)),
    _predicted("sweep3d", "SWEEP3D: work balanced", "5.2.1", ("balance", "compute"), (0.1, None)),
    _predicted("xns", "XNS: without empty messages", "5.2.2", ("cut-messages", "size==0"), (0.6, 3.0)),
    _MULTIRATE,
    _FLOOD,
    # A wave of 80 x 128 atoms takes 0.1 ms, the least load is 80,000 and 200,000 atoms.
    _comd("comd-gpu", "small", 80_000 / (80 * 128) * 1e-4),
    _comd("comd-gpu-large", "large", 200_000 / (80 * 128) * 1e-4),
)
