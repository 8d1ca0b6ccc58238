"""What the ranks of the tests of MPI do: analyze runs together, and compare with what one of them finds alone.

mpiexec -n K python tests/mpi_job.py compare TRACE...
mpiexec -n K python tests/mpi_job.py clocks|circle TRACE...
mpiexec -n K python tests/mpi_job.py raise TRACE
mpiexec -n K python tests/mpi_job.py result TRACE
mpiexec -n K python tests/mpi_job.py exchanges TRACE...
mpiexec -n K python tests/mpi_job.py remove TRACE
mpiexec -n K python tests/mpi_job.py command kill|fill|wait ARGUMENT...
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import whywait
from whywait import _native, cli, mpi
from whywait.model.clocks import CLOCK_TABLES

if TYPE_CHECKING:
    from typing_extensions import Buffer

TABLES = ("regions", "callpaths", "locations", "severities", "delay_costs", "critical_path", "wait_states", "transfers",
          "inconsistencies", "counters", "counter_cells", "account", "device_account", "network", "io")  # fmt: skip
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
            together = _native.analyze(run, **choices, threads=threads, shard_events=1, transfers=True, ranks=ranks)
            assert (together is None) == (ranks is not None and ranks.rank > 0)
            if together is None:
                continue
            alone = _native.analyze(run, **choices, threads=threads)
            for table in TABLES:
                left, right = (pa.table(getattr(analysis, table)()) for analysis in (together, alone))
                rows += same(left, right, f"{trace}: {table}")
            for table in CLOCK_TABLES:
                left, right = (pa.table(analysis.clock_table(table)) for analysis in (together, alone))
                rows += same(left, right, f"{trace}: {table}")
            assert together.warnings() == alone.warnings(), trace
            facts, expected = together.facts(), alone.facts()
            if ranks is not None:
                # Several processes do not look for what the findings need to know about calls.
                del facts["reasons"], expected["reasons"]
            assert facts == expected, trace
    if mpi.first():
        print(f"compared {rows} rows")


def fail(trace: str) -> None:
    """Let rank 1 fail in the middle, while the others do their work; then begin anew."""
    ranks = mpi.ranks()
    deliver, exchanges = ranks.deliver, iter(range(10))

    def deliver_some(parcels: list[Buffer]) -> list[Buffer]:
        if ranks.rank == 1 and next(exchanges, None) is None:
            raise ZeroDivisionError("rank 1 had enough")
        return deliver(parcels)

    ranks.deliver = deliver_some
    lines = []
    try:
        whywait.analyze(trace)
    except ZeroDivisionError as error:
        lines.append(f"rank {ranks.rank}: {error} {' '.join(error.__notes__)}")
    ranks.deliver = deliver
    try:
        whywait.analyze(trace, cost_model="none" if ranks.rank == 2 else "thesis")
    except whywait.UsageError as error:
        lines.append(f"rank {ranks.rank}: {error} {' '.join(error.__notes__)}")
    if whywait.analyze(trace).is_root:
        lines.append("done")
    say(lines)


def say(lines: list[str]) -> None:
    """Print what all ranks have to say: what each prints itself may mix."""
    ranks = mpi.ranks()
    for line in ranks._comm.gather("\n".join(lines)) or ():
        print(line)


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
                Path(os.environ["READY"]).touch()
                # Ctrl-C ends it.
                time.sleep(200)
        return deliver(self, parcels)

    mpi.Ranks.deliver = deliver_some
    return cli.main(list(arguments))


def remove(trace: str) -> None:
    """Let an event file go away when all have opened the run."""
    comm = mpi.ranks()._comm
    run = whywait.open(trace)
    comm.Barrier()
    if mpi.first():
        last = max((run.path.parent / "traces").glob("*.evt"), key=lambda file: int(file.stem))
        last.unlink()
    comm.Barrier()
    found = whywait.analyze(run)
    if found.is_root:
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
    """Say what each rank gets."""
    found = whywait.analyze(trace, transfers=True)
    lines = [f"{found!r} {found.is_root}"]
    for look in (
        lambda: found.metrics["time"].total,
        lambda: found.transfers().num_rows,
        lambda: found.window(0, 1),
        lambda: found.write_timeline(os.devnull),
    ):
        try:
            lines.append(str(look()))
        except whywait.UsageError as error:
            lines.append(str(error))
    say([f"{mpi.ranks().rank}: {line}" for line in lines])


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "circle":
        compare(arguments, ({"clocks": "measured"},))
    elif what == "command":
        sys.exit(command(*arguments))
    elif what == "clocks":
        compare(arguments, tuple({"clocks": how} for how in ("nodes", "lines", "clc", "auto")))
    elif what in ("compare", "exchanges"):
        {"compare": compare, "exchanges": exchanges}[what](arguments)
    else:
        {"raise": fail, "remove": remove, "result": result}[what](arguments[0])
