"""Generate synthetic traces, and measure the analysis on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Help, Progress, answers, positive

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.commands.common import Run
    from whywait.report.terminal import Line

#: Same as in the native module, repeated here because help does not load it.
WORKLOADS = (
    "sor-p2p",
    "sor-fence",
    "sor-gats",
    "sor-locks",
    "srumma",
    "bt",
    "contention",
    "random-rma",
    "lb-coll",
    "lb-p2p",
    "sweep",
    "xns",
    "bt-rma-fence",
    "bt-rma-gats-fence",
    "bt-rma-gats-single",
    "bt-rma-gats-multi",
    "cgpop-original",
    "cgpop-modified",
    "late-post",
    "put-gats",
    "lock-chain",
    "srumma-nb",
    "nwchem",
    "flood",
    "comd-gpu",
    "multirate",
    "multirate-comms",
    "omp-locks",
    "omp-tasks",
    "iallreduce",
)

_GENERATE = """\
Write the OTF2 archive of a synthetic workload, with its waiting times, which are known by
construction. truth.csv has one line for each metric, call path and rank that waits; truth.json
has the sums. Both are in ticks (nanoseconds).

workloads:
  sor-p2p      a stencil on a grid of ranks with Isend, Irecv and Waitall, and an Allreduce
               in each iteration
  sor-fence    the same with puts between fences
  sor-gats     the same with puts between post, start, complete and wait
  sor-locks    the same with puts between lock and unlock
  srumma       matrix multiplication with blocking ARMCI gets
  bt           sweeps along the three directions of a multi-partition, without collective operations
  contention   all ranks but the first lock the window of the first, once in each iteration
  random-rma   puts, gets and atomics of random number, size and target; iterations alternate
               between fences and locks (exclusive, shared, lock_all) with flushes
  lb-coll      foo, whose time depends on the rank, bar, whose time does not, and an Allreduce
  lb-p2p       the same before messages between ranks of equal parity, then between even and odd
               ranks
  sweep        wavefronts from the four corners of a grid, block by block
  xns          messages among many ranks, seven in ten of them empty
  omp-locks    the threads of each rank take turns in a critical section, then meet in barriers
  omp-tasks    one thread of each rank creates tasks, which all threads run in a barrier, the
               creating one in every other iteration in a taskwait construct
  iallreduce   work, MPI_Iallreduce, work, and MPI_Wait

programs of publications (docs/cases):
  bt-rma-...   BT with one-sided operations: both exchanges between fences (fence); the exchange of
               the solver between post, start, complete and wait (gats-fence); both exchanges that
               way (gats-single), or with a window for each buffer (gats-multi)
  cgpop-...    a halo along a line, with two ranks that have more work: after a barrier (original)
               or without it (modified)
  lock-chain   a chain of processes that wait for a lock
  srumma-nb    matrix multiplication with non-blocking ARMCI gets, whose number grows with the
               processes
  nwchem       irregular ARMCI operations between barriers
  late-post    a delay that makes a post late two processes away
  put-gats     puts between post, start, complete and wait
  flood        all ranks send to one that receives late; queues.csv has the counters of its queues
               (if messages arrive when they are sent) by metric, call path and rank, and the
               maximum of each level
  comd-gpu     each iteration runs a kernel on the device of each rank, as long as its load; the
               host waits for it, then for the others in an Allreduce; streams have counters of
               efficiency
  multirate... windows of messages from the threads of even ranks to those of odd ranks, on one
               communicator, or on one for each pair of threads (multirate-comms); with queues.csv

--balanced writes lb-coll, lb-p2p, sweep and xns the way an optimization would leave them: all ranks
work the mean of their times, or no message is empty (xns). Compare this with the predictions of
`whywait whatif`.
"""

_RUN = """\
Measure the analysis on synthetic traces of several sizes: once with the same work for each process,
once with the same number of events in all. Prints the tables and writes bench.json and bench.md,
again after each measurement. Times are processor times, which other work on the machine hardly
disturbs.

The temporary directory (TMPDIR) holds one trace at a time. The sor-... workloads with 10 iterations
take at most:

  largest run      disk         memory       time of a workload, one core
     4,096 ranks   60 MB        0.2 GB       10 seconds
    65,536 ranks   0.9 GB       2 GB         2 minutes

A trace of 65,536 ranks has 131,072 files. On a disk, creating and removing them can take longer
than everything else; TMPDIR=/dev/shm keeps them in memory.
"""


#: Workloads with an optimized form, and the option of `whywait whatif` that predicts it.
PREDICTED = {
    "lb-coll": ("balance", "foo"),
    "lb-p2p": ("balance", "foo"),
    "sweep": ("balance", "compute"),
    "xns": ("cut-messages", "size==0"),
}

_WHATIF = """\
Predict the optimized form of synthetic workloads, generate it, and compare: how far a simulation
without a change is from the run (identity), and how far the prediction is from the optimized run:
its length, and its computation, communication, and waiting separately (figure 5.5). The last column
of the first table has the result of the same experiment on a Blue Gene/L, where the simulator
replayed the program (M.-A. Hermanns, Jül-4297, 2008, chapter 5), that of the second says whether
the error estimate of `whywait whatif` holds.
"""


#: Same as in `whywait.bench.published`, repeated here because help does not load it.
CASES = (
    "sor",
    "bt-rma",
    "bt-rma-1024",
    "bt-rma-juqueen",
    "cgpop",
    "srumma",
    "nwchem",
    "lock",
    "late-post",
    "put-gats",
    "lb-coll",
    "lb-p2p",
    "sweep3d",
    "xns",
    "multirate",
    "flood",
    "comd-gpu",
    "comd-gpu-large",
)

_PAPER = """\
Repeat a published experiment: generate traces of its programs, analyze them, and print our numbers
beside the published table. docs/cases has a page for each case that says what can be compared.

cases:
  sor          time of the analysis by replay phase, 512 to 65,536 processes
  bt-rma       pairs that synchronize, and waiting times, in four variants of BT, 256 processes
  bt-rma-1024  the same on 1,024 processes of a Blue Gene/P
  bt-rma-juqueen
               the same on a Blue Gene/Q
  cgpop        a solver with and without a barrier, 60 processes
  srumma       matrix multiplication with ARMCI, 128 to 32,768 processes
  nwchem       irregular ARMCI operations, 4,096 processes
  lock         the microbenchmark of lock contention, 12 processes
  late-post    a delay that makes a post late two processes away
  put-gats     a put between post, start, complete and wait
  lb-coll, lb-p2p, sweep3d, xns
               predictions beside the optimized programs
  multirate    messages of threads that may be out of sequence, and their queues
  flood        unexpected messages at a rank that receives late
  comd-gpu, comd-gpu-large
               load imbalance of 64 GPUs, measured and adjusted by efficiency

Most cases run at the published scale, in seconds. Larger ones stop early:
  sor          8,192 processes; --processes 65536 runs all (2 GB). 10 of 500 iterations;
               --iterations 500 takes 5 GB with 4,096 processes, 15 GB and more with 16,384
  srumma       8,192 processes; --processes 32768 runs all (14 GB, some minutes)
  bt-rma...    3 of 251 iterations, from which the counts of all follow exactly
"""


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    summary = "generate synthetic traces, and measure the analysis on them"
    parser: argparse.ArgumentParser = verbs.add_parser(
        "bench", help=summary, description=f"{summary.capitalize()}.", formatter_class=Help
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    generate = _action(
        actions,
        "generate",
        "write the trace of a synthetic workload",
        _GENERATE,
        "whywait bench generate sor-gats --ranks 64 --iterations 100 -o sor",
        _generate,
    )
    generate.add_argument("workload", metavar="WORKLOAD", choices=WORKLOADS, help="what to generate")
    generate.add_argument("--ranks", type=positive, default=64, metavar="N", help="processes (default: %(default)s)")
    generate.add_argument(
        "--iterations", type=positive, default=100, metavar="N", help="iterations of each (default: %(default)s)"
    )
    generate.add_argument("--seed", type=int, default=1, metavar="N", help="another seed is another trace (default: 1)")
    _add_load(generate, work=1e-3, imbalance=0.2)
    generate.add_argument("--balanced", action="store_true", help="the optimized form of lb-coll, lb-p2p, sweep or xns")
    generate.add_argument(
        "--barriers", action="store_true", help="a barrier after each dimension of the solver of bt-rma-..."
    )
    generate.add_argument(
        "--machine",
        choices=("jump2", "jugene", "juqueen"),
        default="jump2",
        help="what calls of bt-rma-... take: as on an IBM Power6 (jump2), a Blue Gene/P (jugene) or a Blue Gene/Q "
        "(juqueen) of the thesis (default: %(default)s)",
    )
    generate.add_argument(
        "--threads", type=positive, metavar="N", help="threads of a process of multirate... and omp-... (default: 2)"
    )
    generate.add_argument(
        "--window",
        type=positive,
        metavar="N",
        help="messages (multirate...), critical sections or tasks (omp-...) of a thread in an iteration (default: 64)",
    )
    generate.add_argument("--size", type=positive, metavar="BYTES", help="of a message of multirate... (default: 64)")
    generate.add_argument(
        "--overlap",
        type=float,
        metavar="SHARE",
        help="in which share of their rounds all threads of a process of multirate... send at once (default: 0.25)",
    )
    generate.add_argument("-o", "--output", metavar="DIR", help="where to write to (default: the name of the workload)")

    run = _action(
        actions,
        "run",
        "measure the analysis on synthetic traces",
        _RUN,
        "whywait bench run --workload sor-p2p sor-gats --ranks 64 512 4096 -o results",
        _run,
    )
    run.add_argument(
        "--workload",
        nargs="+",
        default=["sor-p2p", "sor-fence", "sor-gats", "sor-locks"],
        choices=WORKLOADS,
        metavar="NAME",
        help="what to analyze (default: the four sor-...)",
    )
    run.add_argument(
        "--ranks",
        nargs="+",
        type=positive,
        default=[64, 512, 4096],
        metavar="N",
        help="processes (default: 64 512 4096)",
    )
    run.add_argument(
        "--iterations", type=positive, default=10, metavar="N", help="of the largest run (default: %(default)s)"
    )
    _add_load(run)
    run.add_argument("--seed", type=int, default=1, metavar="N", help="of the traces (default: %(default)s)")
    run.add_argument("--threads", type=positive, default=1, metavar="N", help="of the analysis (default: %(default)s)")
    run.add_argument(
        "--repeat", type=positive, default=3, metavar="N", help="measure so often, take the best (default: %(default)s)"
    )
    run.add_argument("--no-causes", action="store_true", help="leave out causes and critical path")
    run.add_argument("--compare", metavar="FILE", help="bench.json of an earlier run to compare with")
    where = "where to write to (default: %(default)s)"
    run.add_argument("-o", "--output", default="whywait-bench", metavar="DIR", help=where)

    whatif = _action(
        actions,
        "whatif",
        "measure how accurate predictions are",
        _WHATIF,
        "whywait bench whatif --ranks 32 128 512 2048",
        _whatif,
    )
    whatif.add_argument(
        "--workload",
        nargs="+",
        default=list(PREDICTED),
        choices=PREDICTED,
        metavar="NAME",
        help=f"what to predict (default: {' '.join(PREDICTED)})",
    )
    whatif.add_argument(
        "--ranks", nargs="+", type=positive, default=[32, 128, 512], metavar="N", help="processes (default: 32 128 512)"
    )
    whatif.add_argument(
        "--iterations", type=positive, default=100, metavar="N", help="of each run (default: %(default)s)"
    )
    whatif.add_argument("--seed", type=int, default=1, metavar="N", help="of the traces (default: %(default)s)")

    paper = _action(
        actions,
        "paper",
        "rerun published experiments and compare the figures",
        _PAPER,
        "whywait bench paper cgpop",
        _paper,
    )
    paper.add_argument("case", metavar="NAME", choices=CASES, help="one of the cases above")
    paper.add_argument(
        "--processes", type=positive, metavar="N", help="at most N processes (default: as published, or 8192)"
    )
    paper.add_argument("--iterations", type=positive, metavar="N", help="run N iterations (default: those of the case)")


def _action(actions: Any, name: str, summary: str, description: str, example: str, run: Run) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"example:\n  {example}\n",
        formatter_class=Help,
    )
    answers(parser, run)
    return parser


def _add_load(parser: argparse.ArgumentParser, *, work: float | None = None, imbalance: float | None = None) -> None:
    parser.add_argument(
        "--work",
        type=float,
        default=work,
        metavar="SECONDS",
        help="work between two exchanges (default: 0.001)",
    )
    parser.add_argument(
        "--imbalance",
        type=float,
        default=imbalance,
        metavar="SHARE",
        help="what is added to the work at most, half by rank and half at random (default: 0.2)",
    )


def _ticks(work: float) -> int:
    """Convert work to ticks (nanoseconds)."""
    from whywait import UsageError

    ticks = round(work * 1e9)
    if not 0 <= ticks < 2**32:
        raise UsageError(f"{work:g}: work must take less than 4 seconds")
    return ticks


def _generate(options: argparse.Namespace) -> Answer:
    from whywait import UsageError, _native

    directory = Path(options.output or options.workload)
    if options.seed < 0:
        raise UsageError(f"{options.seed}: a seed is not negative")
    with Progress() as progress:
        events = _native.generate(
            options.workload,
            directory,
            ranks=options.ranks,
            iterations=options.iterations,
            seed=options.seed,
            work=_ticks(options.work),
            imbalance=options.imbalance,
            balanced=options.balanced,
            barriers=options.barriers,
            machine=options.machine,
            threads=options.threads,
            window=options.window,
            size=options.size,
            overlap=options.overlap,
            progress=lambda share: progress("generate", share),
        )
    queues = " queues.csv" if (directory / "queues.csv").exists() else ""
    lines = (f"Written to {directory}/: {events:,} events", f"   traces.otf2 truth.csv truth.json{queues}")
    return Answer(json.loads((directory / "truth.json").read_text()), lambda _: ([(line, "")] for line in lines))


def _run(options: argparse.Namespace) -> Answer:
    from whywait import UsageError
    from whywait.bench import speed
    from whywait.store.staging import Staging

    if options.seed < 0:
        raise UsageError(f"{options.seed}: a seed is not negative")
    if options.work is not None:
        _ticks(options.work)
    earlier = speed.read(Path(options.compare)) if options.compare else None
    what = list(speed.points(options.workload, options.ranks, options.iterations))
    directory = Path(options.output)
    directory.mkdir(parents=True, exist_ok=True)
    report, text = {}, ""
    with Progress() as progress:
        for report in speed.run(
            what,
            seed=options.seed,
            threads=options.threads,
            repeat=options.repeat,
            causes=not options.no_causes,
            progress=progress,
            work=options.work,
            imbalance=options.imbalance,
        ):
            # Keep the measurements so far if a long run is interrupted.
            text = speed.markdown(report, earlier)
            with Staging(directory) as staging:
                staging.path("bench.json").write_text(json.dumps(report, indent=1) + "\n")
                staging.path("bench.md").write_text(text)
    lines = (*text.split("\n"), f"Written to {directory}/", "   bench.json bench.md")
    return Answer(report, lambda _: ([(line, "")] for line in lines))


def _whatif(options: argparse.Namespace) -> Answer:
    from whywait import UsageError
    from whywait.bench.predictions import predict

    if options.seed < 0:
        raise UsageError(f"{options.seed}: a seed is not negative")
    with Progress(quiet=options.json) as progress:
        rows = list(
            predict(
                {name: PREDICTED[name] for name in options.workload},
                options.ranks,
                options.iterations,
                seed=options.seed,
                progress=progress,
            )
        )
    return Answer(rows, lambda _: _predicted(rows))


def _paper(options: argparse.Namespace) -> Answer:
    from whywait.bench import published, rerun

    whole = published.named(options.case)
    case = whole.scaled(options.processes or whole.usual, options.iterations)
    with Progress(quiet=options.json) as progress:
        report = rerun.run(case, progress=progress)
    return Answer(report, lambda _: _beside(report, max(variant.processes for variant in whole.variants)))


def _beside(report: dict[str, Any], processes: int) -> Iterator[Line]:
    from whywait.bench.rerun import table
    from whywait.report.terminal import paragraph

    head, rows = table(report)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield [(report["title"], "bold")]
    yield from paragraph(report["source"], 98)
    yield [("", "")]
    for row, style in ((head, "bold"), *((row, "") for row in rows)):
        named = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        figures = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        yield [("  ".join([*named, *figures]).rstrip(), style)]
    yield [("", "")]
    yield from paragraph(report["remark"], 98)
    if report["left_out"]:
        yield from paragraph(f"Left out: {', '.join(report['left_out'])}; --processes {processes} includes them.", 98)


def _predicted(rows: list[dict[str, Any]]) -> Iterator[Line]:
    heads = ("measured", "predicted", "optimized", "identity", "deviation", "Jül-4297")
    yield [("workload    ranks" + "".join(head.rjust(13) for head in heads), "bold")]
    for row in rows:
        lengths = "".join(f"{row[name] * 1e3:.3f} ms".rjust(13) for name in ("measured", "predicted", "optimized"))
        deviations = "".join(f"{row[name]:.2g}%".rjust(13) for name in ("identity", "deviation"))
        yield [(f"{row['workload']:<10}{row['ranks']:>7,}{lengths}{deviations}{row['published']:>13}", "")]
    yield []
    yield [("Deviation by part, percent of the CPU time: identity, then prediction", "bold")]
    parts = ("computation", "communication", "waiting")
    titles = "".join(title.rjust(15) for title in (*parts, *parts, "error estimate"))
    yield [(f"workload    ranks{titles}   holds", "bold")]
    for row in rows:
        found = [row[of][part] for of in ("identity_parts", "deviation_parts") for part in parts]
        cells = "".join(("-" if value is None else f"{value:.2g}%").rjust(15) for value in found)
        estimate, holds = row["error_estimate"], {True: "yes", False: "no", None: "-"}[row["holds"]]
        cells += ("unknown" if estimate is None else f"{100 * estimate / row['predicted']:.2g}%").rjust(15)
        yield [(f"{row['workload']:<10}{row['ranks']:>7,}{cells}{holds:>8}", "")]
