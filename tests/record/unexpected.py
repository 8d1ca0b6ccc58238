"""Unexpected messages as Open MPI counts them itself, beside the replay of the same run.

The library must be built to count (``--enable-spc``, docs/counters.md); ``WHYWAIT_SPC_OPENMPI`` says where it is.
"""

import os
import re
from collections import Counter
from dataclasses import dataclass

import whywait

from .mpis import PROGRAMS, Mpi, compiled, record

# What happens, the program, its ranks and arguments, and the rank that receives.
RUNS = {
    "late": ("a late receiver, 3 senders", "queues", 4, (), 0),
    "one": ("multirate, 1 thread", "multirate", 2, (1, 64, 8, 50, 0), 1),
    "two": ("multirate, 2 threads, one communicator", "multirate", 2, (2, 64, 8, 50, 0), 1),
    "four": ("multirate, 4 threads, one communicator", "multirate", 2, (4, 64, 8, 50, 0), 1),
    "two own": ("multirate, 2 threads, a communicator each", "multirate", 2, (2, 64, 8, 50, 1), 1),
    "four own": ("multirate, 4 threads, a communicator each", "multirate", 2, (4, 64, 8, 50, 1), 1),
    "small": ("multirate, 1 thread, windows of 16", "multirate", 2, (1, 16, 1024, 200, 0), 1),
}
_PREFIX = "runtime_spc_OMPI_SPC_"
_OPTIONS = ("--oversubscribe", "--mca", "mpi_spc_attach", "all", "--mca", "mpi_spc_dump_enabled", "1")


@dataclass(frozen=True)
class Unexpected:
    """What the receiver has of it.

    Attributes
    ----------
    messages
        Messages of the program.
    counted, longest
        How many Open MPI found unexpected, and the longest queue of them.
    at_least, at_most
        Between which numbers they are by the replay.
    replayed
        The longest queue in the replay.
    out_of_sequence, possible
        Messages that came out of order, and those that could by the replay.
    """

    messages: int
    counted: int
    longest: int
    at_least: int
    at_most: int
    replayed: int
    out_of_sequence: int
    possible: int


def library():
    """Return the Open MPI that counts; None if there is none."""
    place = os.environ.get("WHYWAIT_SPC_OPENMPI")
    return place and Mpi("openmpi-spc", f"{place}/bin/mpicc", f"{place}/bin/mpiexec", options=_OPTIONS)


def measure(name, directory):
    """Record a run.

    Returns
    -------
    tuple
        What its receiver has; what Open MPI printed at the end, by rank and counter; and the same as it was recorded
        (the largest value of levels).
    """
    _, source, ranks, arguments, receiver = RUNS[name]
    mpi = library()
    program = compiled(mpi, PROGRAMS / f"{source}.c", directory, "-pthread")
    done = record([*mpi.start(ranks), program, *arguments], directory, "--force", "--counters", "mpi:runtime_spc*")
    assert done.returncode == 0, done.stderr
    result = whywait.analyze(directory / "out", queues="progress")
    counters = recorded(result)
    return found(result, counters[receiver], receiver), printed(done.stderr), counters


def printed(text):
    """Return the counters that Open MPI printed, by rank and name."""
    values = {}
    for line in text.splitlines():
        if match := re.search(r"MPI_COMM_WORLD Rank (\d+):", line):
            of_rank = values.setdefault(int(match[1]), {})
        elif match := re.search(r"OMPI_SPC_(\w+) -> (-?\d+)", line):
            of_rank[match[1]] = int(match[2])
    return values


def recorded(result):
    """Return the counters of a recording, by rank and name."""
    values = {}
    for name in result.counters:
        is_level = name.endswith("_IN_QUEUE")
        for cell in result.counters[name].cells().to_pylist():
            of_rank = values.setdefault(cell["rank"], Counter())
            short = name.removeprefix(_PREFIX)
            new = cell["maximum" if is_level else "value"] or 0
            of_rank[short] = max(of_rank[short], new) if is_level else of_rank[short] + new
    return values


def found(result, counters, receiver):
    """Return what a receiver has in a result."""
    at = [number for number, rank in enumerate(result.places.rank.tolist()) if rank == receiver]

    def total(metric):
        return int(result.profile.by_location(metric)[at].sum())

    maxima = {(row["metric"], row["rank"]): row["maximum"] for row in result.queues().maxima.to_pylist()}
    return Unexpected(
        messages=int(result.profile.total("comms_send")),
        counted=int(counters["UNEXPECTED"]),
        longest=int(counters["MAX_UNEXPECTED_IN_QUEUE"]),
        at_least=total("mpi_unexpected_at_least"),
        at_most=total("mpi_unexpected"),
        replayed=maxima.get(("mpi_max_unexpected_queue", receiver), 0),
        out_of_sequence=int(counters["OUT_OF_SEQUENCE"]),
        possible=int(result.profile.total("mpi_oos_possible")),
    )
