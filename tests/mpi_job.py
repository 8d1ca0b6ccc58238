"""What the ranks of the tests of MPI do: analyze runs together, and compare with what one of them finds alone.

mpiexec -n K python tests/mpi_job.py compare TRACE...
mpiexec -n K python tests/mpi_job.py clocks|circle|reasons TRACE...
mpiexec -n K python tests/mpi_job.py simulate DIRECTORY TRACE...
mpiexec -n K python tests/mpi_job.py raise TRACE
mpiexec -n K python tests/mpi_job.py result TRACE
mpiexec -n K python tests/mpi_job.py exchanges TRACE...
mpiexec -n K python tests/mpi_job.py remove TRACE
mpiexec -n K python tests/mpi_job.py everywhere DIRECTORY TRACE...
mpiexec -n K python tests/mpi_job.py command kill|fill|wait ARGUMENT...
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
import zlib
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import whywait
from whywait import _native, cli, mpi
from whywait.hypotheses.kinds import parse
from whywait.hypotheses.lengths import Lengths
from whywait.model.clocks import CLOCK_TABLES

if TYPE_CHECKING:
    from typing_extensions import Buffer

TABLES = ("regions", "callpaths", "locations", "severities", "delay_costs", "critical_path", "wait_states",
          "inconsistencies", "counters", "counter_cells", "account", "device_account", "network", "io")  # fmt: skip
# Commands by name: every one that takes a trace, and all that an analysis can write.
COMMANDS = [
    line.split()
    for line in """
    analyze analyze {trace} -o {to}/result --json --html --prices --advise --queues --transfers --factors=all
        --counters=all --idle-threads
    small analyze {trace} -o {to}/result --iterations=main --focus=all --cost-model=scalasca --clocks=auto
    recursion analyze {trace} -o {to}/result --fold-recursion --no-causes --wrong-order-window=3
    summary summary {trace}
    findings findings {trace} --json
    account account {trace} --json
    account-by account {trace} --by location
    waits waits {trace} --json
    explain explain {trace} --json
    delay delay {trace} --json
    window delay {trace} --window=0:1 --json
    critical critical {trace} --json
    efficiency efficiency {trace} --window=0:1 --json
    iterations iterations {trace} --json
    messages messages {trace} --json
    gpu gpu {trace} --json
    io io {trace} --json
    threads threads {trace} --json
    counters counters {trace} --json --arrival=send
    counters-time counters {trace} --metric=mpi_unexpected --by=time=7 --json
    clocks clocks {trace} --json
    correct correct {trace} -o {to}/archive
    whatif whatif {trace} --scale main=0.5 -o {to}/archive --json
    html whatif {trace} --cpu 2 --html {file}.html
    advise advise {trace} --json --limit 600
    validate validate {trace} --json
    info info {trace} --events --json
    report report {trace}
    export export html {trace} -o {file}.html
    tables export tables {trace} -o {to}/tables
    perfetto export perfetto {trace} -o {file} --queues
    diff diff {trace} {trace} --json
    series series {trace} {trace} --json
    """.replace("\n        ", " ")
    .strip()
    .splitlines()
]
# Changes of a run, as options of the command line; those of a line are made together. {path} computes most.
CHANGES = [
    [option.split(" ", 1) for option in line.strip().split("; ") if option]
    for line in """
    scale {path}=0.5
    balance {path}:scaled; cpu 1.5
    balance {path}:instance,uneven=average
    set {path}=1us
    trim {path}
    network latency=1us,bandwidth=1GB/s,local_latency=0.5us,local_bandwidth=2GB/s
    network ideal
    eager-limit 100
    progress asynchronous
    overhead 1us
    cut {path}
    cut {path}@0
    cut MPI_Barrier
    cut MPI_Win_fence; cpu 2
    cut-messages from==0
    cut-messages size>=0
    overlap {path}
    overlap MPI_Recv
    overlap MPI_Wait
    split MPI_Sendrecv
    scale nothing=0
    """.splitlines()[:-1]
]
# Sums of shares of waiting, which depend on the order of their terms by rounding.
SHARES = {"direct", "indirect", "propagating", "caused"}


def same(together: pa.Table, alone: pa.Table, what: str) -> int:
    """Compare two tables row by row; return how many there are."""
    assert together.schema == alone.schema, what
    assert together.num_rows == alone.num_rows, (what, together.num_rows, alone.num_rows)
    is_cost = what.endswith(("severities", "delay_costs"))
    for name in together.column_names:
        left, right = together[name], alone[name]
        if name in SHARES or (name == "value" and is_cost):
            assert pc.is_null(left).equals(pc.is_null(right)), (what, name)
            error = pc.abs(pc.subtract(left, right))
            assert not pc.any(pc.greater(error, pc.add(pc.multiply(pc.abs(right), 1e-12), 1e-21))).as_py(), (what, name)
        else:
            assert left.to_pylist() == right.to_pylist(), (what, name)
    return together.num_rows


def compare(
    traces: list[str], all_choices: tuple[dict[str, str], ...] = ({"cost_model": "thesis"}, {"cost_model": "scalasca"})
) -> None:
    """Compare analyses in small shards on all ranks with the usual one, for several choices and numbers of threads."""
    ranks = mpi.ranks()
    rows = 0
    for number, trace in enumerate(traces):
        run = _native.Run(trace)
        for choices in all_choices:
            threads = 1 + number % 2
            together = _native.analyze(run, **choices, threads=threads, shard_events=1, ranks=ranks)
            transfers, sharing = together.transfers(), together.sharing(0, 1e6)
            if not mpi.first():
                continue
            alone = _native.analyze(run, **choices, threads=threads)
            rows += same(pa.table(transfers), pa.table(alone.transfers()), f"{trace}: transfers")
            rows += same(pa.table(sharing), pa.table(alone.sharing(0, 1e6)), f"{trace}: sharing")
            for table in TABLES:
                left, right = (pa.table(getattr(analysis, table)()) for analysis in (together, alone))
                rows += same(left, right, f"{trace}: {table}")
            for table in CLOCK_TABLES:
                left, right = (pa.table(analysis.clock_table(table)) for analysis in (together, alone))
                rows += same(left, right, f"{trace}: {table}")
            assert together.warnings() == alone.warnings(), trace
            assert together.facts() == alone.facts(), trace
    if mpi.first():
        print(f"compared {rows} rows")


def fail(trace: str) -> None:
    """Let rank 1 fail in the middle, while the others do their work; then rank 2 at the begin; then nobody."""
    ranks = mpi.ranks()
    deliver, exchanges = ranks.deliver, iter(range(10))

    def deliver_some(parcels: list[Buffer]) -> list[Buffer]:
        if ranks.rank == 1 and next(exchanges, None) is None:
            ranks.deliver = deliver
            raise ZeroDivisionError("rank 1 had enough")
        return deliver(parcels)

    ranks.deliver = deliver_some
    analyze, calls = mpi._analyze, iter(range(1))

    def analyze_some(*arguments: object) -> object:
        if ranks.rank == 2 and next(calls, None) is None:
            mpi._analyze = analyze
            raise whywait.UsageError("rank 2 refused")
        return analyze(*arguments)

    if ranks.rank == 2:
        analyze_some.__module__, analyze_some.__qualname__ = analyze.__module__, analyze.__qualname__
        mpi._analyze = analyze_some
    for _ in range(2):
        try:
            whywait.analyze(trace)
        except (ZeroDivisionError, whywait.UsageError) as error:
            print(error, *error.__notes__)
    result = whywait.analyze(trace)
    # Also later functions need all processes.
    print(len(result.window(0.1, 0.2).cells("time").key) > 0, result.explain()["rank"])


def command(what: str, *arguments: str) -> int:
    """Do what the command line does; in the middle something happens to rank 1, or to the disk of rank 0."""
    deliver, before = mpi.Ranks.deliver, iter(range(5))

    def deliver_some(self: mpi.Ranks, parcels: list[Buffer]) -> list[Buffer]:
        if next(before, None) is None and self.rank == (0 if what == "fill" else 1):
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif what == "fill":
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            else:
                mpi.Ranks.deliver = deliver
                Path(os.environ["READY"]).touch()
                # Ctrl-C ends it.
                time.sleep(200)
        return deliver(self, parcels)

    mpi.Ranks.deliver = deliver_some
    return cli.main(list(arguments))


def remove(trace: str) -> None:
    """Let an event file go away when all have opened the run."""
    run = whywait.open(trace)
    if mpi.first():
        last = max((run.path.parent / "traces").glob("*.evt"), key=lambda file: int(file.stem))
        last.unlink()
    found = whywait.analyze(run)
    print(*(warning["kind"] for warning in found.warnings if warning["kind"] == "unreadable"))
    print(found.facts["locations"])


def exchanges(traces: list[str]) -> None:
    """Say how often the ranks exchange something in the analysis of each trace."""
    ranks = mpi.ranks()
    deliver, count = ranks.deliver, 0

    def count_deliver(parcels: list[Buffer]) -> list[Buffer]:
        nonlocal count
        count += 1
        return deliver(parcels)

    ranks.deliver = count_deliver
    counts = []
    for trace in traces:
        count = 0
        _native.analyze(_native.Run(trace), ranks=ranks, shard_events=1)
        counts.append(count)
    if mpi.first():
        print(*counts)


def result(trace: str) -> None:
    """Say what the first rank gets, which alone goes on after an analysis."""
    found = whywait.analyze(trace)
    print(mpi.ranks().rank, found, found.metrics["time"].total, found.transfers().num_rows)


def everywhere(directory: str, traces: list[str]) -> None:
    """Run every command that takes a trace, in small shards, and keep what it prints and writes."""
    mpi.serve()
    mpi.analyze = partial(mpi.analyze, shard_events=1)
    for trace in traces:
        place = Path(directory, Path(trace).name)
        for name, *arguments in COMMANDS:
            place.joinpath(name).mkdir(parents=True)
            words = [word.format(trace=trace, to=place / name, file=place / name / "file") for word in arguments]
            with (place / name / "out").open("w") as out, redirect_stdout(out), redirect_stderr(out):
                try:
                    code = cli.main(words)
                except SystemExit as end:
                    code = end.code
                print("exit code", code)


def simulate(directory: str, traces: list[str]) -> None:
    """Simulate changes of each trace, in small shards, and print what follows from them."""
    mpi.serve()
    mpi.analyze = partial(mpi.analyze, shard_events=1)
    for number, trace in enumerate(traces):
        result = whywait.analyze(trace)
        table = result.metrics["comp"].by_callpath()
        path = table["callpath_id"][pc.index(table["value"], pc.max(table["value"])).as_py()].as_py()
        candidates = [[parse(kind, text.format(path=path)) for kind, text in changes] for changes in CHANGES]
        for which, changes in enumerate(candidates):
            try:
                simulation = whywait.whatif(result, changes, strict=True)
            except whywait.UsageError as error:
                print(trace, changes, error)
                continue
            print(trace, changes, float(simulation.after), float(simulation.focus_after), simulation.notes)
            print(simulation.assumptions.to_pylist())
            times = simulation.moments(1 << 40)
            print([zlib.crc32(times[column].to_numpy().tobytes()) for column in times.column_names])
            print([(name, metric.total) for name, metric in simulation.result.metrics.items() if metric.total])
            target = Path(directory, f"{number}-{which}")
            simulation.write(target)
            for file in sorted(file for file in target.rglob("*") if file.is_file()):
                print(file.name, zlib.crc32(file.read_bytes()))
        print(trace, Lengths(result).of(candidates))


def correct(directory: str, traces: list[str]) -> None:
    """Correct the clocks of each trace in all ways, in small shards, and print what is written."""
    mpi.serve()
    mpi.analyze = partial(mpi.analyze, shard_events=1)
    for number, trace in enumerate(traces):
        for how in ("measured", "nodes", "lines", "clc", "auto"):
            target = Path(directory, f"{number}-{how}")
            found = whywait.correct(trace, target, clocks=how)
            print(trace, how, found["violated"], found["left"], found["done"], found["moved"])
            for file in sorted(file for file in target.rglob("*") if file.is_file()):
                print(file.name, zlib.crc32(file.read_bytes()))


def main(what: str, *arguments: str) -> None:
    """Do what is asked for."""
    if what == "circle":
        compare(list(arguments), ({"clocks": "measured"},))
    elif what == "reasons":
        compare(list(arguments), ({},))
    elif what == "command":
        sys.exit(command(*arguments))
    elif what == "clocks":
        compare(list(arguments), tuple({"clocks": how} for how in ("nodes", "lines", "clc", "auto")))
    elif what in ("everywhere", "simulate", "correct"):
        {"everywhere": everywhere, "simulate": simulate, "correct": correct}[what](arguments[0], list(arguments[1:]))
    elif what in ("compare", "exchanges"):
        {"compare": compare, "exchanges": exchanges}[what](list(arguments))
    else:
        {"raise": fail, "remove": remove, "result": result}[what](arguments[0])


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception:  # noqa: BLE001
        # The others would wait for this process.
        traceback.print_exc()
        ranks = mpi.ranks()
        if ranks is None:
            sys.exit(1)
        ranks._comm.Abort(1)
