"""The cases: their programs, and the figures that were published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait._native import UsageError
from whywait.cases import measures
from whywait.cases.case import Case, Row, Variant

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
        yield Row(f"{name}, phases 2 to 5", tuple(sum(times[1:]) for times in phases), "ms", depth=1)


_SOR_CASE = Case(
    name="sor",
    title="SOR: time of the analysis for an iteration, by replay phase",
    source="thesis, section 5.1, figure 5.1, tables A.1 to A.4 (500 iterations on an IBM Blue Gene/Q)",
    variants=tuple(Variant(f"{scale:,}", "sor-p2p", scale, 10) for scale in _SCALES),
    rows=tuple(_sor_rows()),
    remark=(
        "Published: time by the clock on as many cores as processes. Here: processor time of one thread for all of "
        "them, with that to read the trace in the total. Compare how the parts grow, not how long they take."
    ),
    measure=measures.sor,
    usual=8192,
)

# --- BT-RMA: thesis, section 5.2 --------------------------------------------------------------------------------------

_BT_VARIANTS = ("fence", "gats-fence", "gats-single", "gats-multi")
_BT_ROWS = (
    ("Total time", "time", 0),
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
    "Counts of pairs are structure, and come out to the last digit; those of 251 iterations are computed from fewer, "
    "as each has the same. Times were those of the machine. Here the times of a put, of a call, and of a fence for a "
    "pair are those of the machine; the waiting follows from the structure and a load that differs by a fifth."
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
        "The load of the two processes, how unevenly the barrier ends, and the time of a call are chosen so that the "
        "times of the original come out, and the total of the modified program; the rest follows. MPI time of the "
        "modified program is that of EuroMPI'13: the thesis prints its synchronization in that place."
    ),
    measure=measures.metrics("solver.esolver"),
)

# --- SRUMMA and NWChem: thesis, sections 5.4 and 5.5 ------------------------------------------------------------------

_SRUMMA_SCALES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
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
        Row("Gets of a process", (112, 128, 224, 256, 448, 512, 896, 1024, 1792), "", structure=measures.gets),
        Row("Gets analyzed in a second", (None, None, None, None, None, None, None, None, 11e6), ""),
    ),
    remark=(
        "Gets are structure. Times were those of the machine, and of more than the product. The published rate is that "
        "of 32,768 cores, here it is that of one thread; Wait for Progress of non-blocking gets lies in ARMCI_Wait."
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
        "Published are the share of communication, that Wait at Barrier is most of the waiting, and that Wait for "
        "Progress is scattered over the processes. The program here has that structure; it simulates no molecules."
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
    remark="The text has both 100 microseconds and 0.1 s for the second call of foo; only 0.1 s gives the figures.",
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
    remark="The figure prints the waiting time of process 2, and shows foo on process 0 as its cause.",
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
        "The figure is two timelines without numbers. In that of another tool these calls are missing, and "
        "transfers end with their put; in the authors' own the calls are there, and transfers end where the window is "
        "closed."
    ),
    measure=measures.put_gats,
)

# --- predictions: SILAS, chapter 5 ------------------------------------------------------------------------------------


def _predicted(
    name: str, title: str, section: str, hypothesis: tuple[str, str], figures: tuple[float | None, float | None]
) -> Case:
    workload = {"sweep3d": "sweep"}.get(name, name)
    processes = {"xns": (128,)}.get(name, (32, 128, 512))
    identity, prediction = ((figure,) * len(processes) for figure in figures)
    return Case(
        name=name,
        title=title,
        source=f"SILAS, section {section} (IBM Blue Gene/L, JUBL)",
        variants=tuple(Variant(str(count), workload, count, 100) for count in processes),
        rows=(Row("Identity", identity, "%"), Row("Prediction", prediction, "%")),
        remark=(
            "How far the simulation is from the run that it is of (identity), and how far the prediction is from the "
            "run of the optimized program; published are upper bounds. There the program ran again, here times are "
            "computed."
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
    _predicted("lb-p2p", "LB-P2P: foo balanced", "5.1.2", ("balance", "foo"), (None, None)),
    _predicted("sweep3d", "SWEEP3D: work balanced", "5.2.1", ("balance", "compute"), (0.1, None)),
    _predicted("xns", "XNS: without empty messages", "5.2.2", ("cut-messages", "size==0"), (None, 3.0)),
)
