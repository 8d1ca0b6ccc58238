"""The software performance counters of Open MPI: those recorded in a trace, and those derived from its records.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), table 3.1 and appendix A, table 1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from whywait.analysis.counters.counters import Counters

if TYPE_CHECKING:
    from whywait.model.result import ResultData


Kind = Literal["regular", "timer", "watermark", "bin", "collective bin"]

# Counts of MPI calls.
_CALLS = """
SEND BSEND RSEND SSEND RECV MRECV ISEND IBSEND IRSEND ISSEND IRECV SENDRECV SENDRECV_REPLACE PUT RPUT GET RGET PROBE
IPROBE BCAST IBCAST BCAST_INIT REDUCE REDUCE_SCATTER REDUCE_SCATTER_BLOCK IREDUCE IREDUCE_SCATTER
IREDUCE_SCATTER_BLOCK REDUCE_INIT REDUCE_SCATTER_INIT REDUCE_SCATTER_BLOCK_INIT ALLREDUCE IALLREDUCE ALLREDUCE_INIT
SCAN EXSCAN ISCAN IEXSCAN SCAN_INIT EXSCAN_INIT SCATTER SCATTERV ISCATTER ISCATTERV SCATTER_INIT SCATTERV_INIT
GATHER GATHERV IGATHER IGATHERV GATHER_INIT GATHERV_INIT ALLTOALL ALLTOALLV ALLTOALLW IALLTOALL IALLTOALLV
IALLTOALLW ALLTOALL_INIT ALLTOALLV_INIT ALLTOALLW_INIT NEIGHBOR_ALLTOALL NEIGHBOR_ALLTOALLV NEIGHBOR_ALLTOALLW
INEIGHBOR_ALLTOALL INEIGHBOR_ALLTOALLV INEIGHBOR_ALLTOALLW NEIGHBOR_ALLTOALL_INIT NEIGHBOR_ALLTOALLV_INIT
NEIGHBOR_ALLTOALLW_INIT ALLGATHER ALLGATHERV IALLGATHER IALLGATHERV ALLGATHER_INIT ALLGATHERV_INIT
NEIGHBOR_ALLGATHER NEIGHBOR_ALLGATHERV INEIGHBOR_ALLGATHER INEIGHBOR_ALLGATHERV NEIGHBOR_ALLGATHER_INIT
NEIGHBOR_ALLGATHERV_INIT TEST TESTALL TESTANY TESTSOME WAIT WAITALL WAITANY WAITSOME BARRIER IBARRIER BARRIER_INIT
WTIME CANCEL
""".split()

# Algorithms of collective operations.
_ALGORITHMS = {
    "BCAST": "LINEAR CHAIN PIPELINE SPLIT_BINTREE BINTREE BINOMIAL",
    "REDUCE": "CHAIN PIPELINE BINARY BINOMIAL IN_ORDER_BINTREE LINEAR",
    "REDUCE_SCATTER": "NONOVERLAPPING RECURSIVE_HALVING RING",
    "ALLREDUCE": "NONOVERLAPPING RECURSIVE_DOUBLING RING RING_SEGMENTED LINEAR",
    "SCATTER": "BINOMIAL LINEAR",
    "GATHER": "BINOMIAL LINEAR_SYNC LINEAR",
    "ALLTOALL": "INPLACE PAIRWISE BRUCK LINEAR_SYNC TWO_PROCS LINEAR",
    "ALLGATHER": "BRUCK RECURSIVE_DOUBLING RING NEIGHBOR_EXCHANGE TWO_PROCS LINEAR",
    "BARRIER": "DOUBLE_RING RECURSIVE_DOUBLING BRUCK TWO_PROCS LINEAR TREE",
}

# Messages and queues: kind, unit, meaning, and the equivalent here: metrics (summed), or the maximum of a level.
_MESSAGES: dict[str, tuple[Kind, str, str, str]] = {
    "BYTES_SENT_USER": ("regular", "bytes", "sent by calls of the program", "bytes_sent"),
    "BYTES_RECEIVED_USER": ("regular", "bytes", "received by calls of the program", "bytes_rcvd"),
    "BYTES_SENT_MPI": ("regular", "bytes", "sent by MPI itself, mostly in collective operations", ""),
    "BYTES_RECEIVED_MPI": ("regular", "bytes", "received by MPI itself, mostly in collective operations", ""),
    "BYTES_PUT": ("regular", "bytes", "put one-sidedly, by the program or inside MPI for large messages", ""),
    "BYTES_GET": ("regular", "bytes", "got one-sidedly, by the program or inside MPI for large messages", ""),
    "UNEXPECTED": ("regular", "messages", "that arrived before their receive was posted", "mpi_unexpected"),
    "OUT_OF_SEQUENCE": ("regular", "messages", "that arrived before an earlier one of the same sender", ""),
    "MATCH_TIME": ("timer", "us", "spent matching messages that arrive", ""),
    "MATCH_QUEUE_TIME": ("timer", "us", "spent inserting unexpected messages into their queue", ""),
    "UNEXPECTED_IN_QUEUE": ("regular", "messages", "in the queue of unexpected messages, now", ""),
    "OOS_IN_QUEUE": ("regular", "messages", "in the queue of messages out of sequence, now", ""),
    "MAX_UNEXPECTED_IN_QUEUE": (
        "watermark", "messages", "at most in the queue of unexpected messages", "level mpi_unexpected_queue"
    ),
    "MAX_OOS_IN_QUEUE": ("watermark", "messages", "at most in the queue of messages out of sequence", ""),
    "P2P_MESSAGE_SIZE": ("bin", "messages", "point-to-point, by size", "comms_send"),
    "EAGER_MESSAGES": ("regular", "messages", "up to the eager limit", "eager"),
    "NOT_EAGER_MESSAGES": ("regular", "messages", "above the eager limit", "not eager"),
    "QUEUE_ALLOCATION": ("regular", "bytes", "allocated for queues, now", ""),
    "UNEXPECTED_QUEUE_DATA": ("regular", "bytes", "of payload of unexpected messages, now", ""),
    "OOS_QUEUE_DATA": ("regular", "bytes", "of payload of messages out of sequence, now", ""),
    "MAX_QUEUE_ALLOCATION": ("watermark", "bytes", "at most allocated for queues", ""),
    "MAX_UNEXPECTED_QUEUE_DATA": (
        "watermark", "bytes", "at most of payload of unexpected messages", "level mpi_unexpected_data"
    ),
    "MAX_OOS_QUEUE_DATA": ("watermark", "bytes", "at most of payload of messages out of sequence", ""),
}  # fmt: skip

#: Counts messages above the eager limit of their locality.
_ABOVE = "mpi_message_size_above_limit"


class Definition(NamedTuple):
    """A counter of Open MPI: its kind, unit and meaning, and the equivalent metrics here; empty if there are none."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    same: str


#: Counters in tables 3.1, 3.4 and 3.5, or in Open MPI itself, that are missing from appendix A.
FURTHER = (
    Definition("OOS_MATCH_TIME", "timer", "us", "spent matching messages out of sequence", ""),
    Definition("OOS_MATCH_QUEUE_TIME", "timer", "us", "spent inserting messages out of sequence into their queue", ""),
    Definition("OOS_QUEUE_HOPS", "regular", "hops", "to find places in the queue of messages out of sequence", ""),
)


def definitions() -> list[Definition]:
    """Return the 161 counters of appendix A, in its groups: calls, algorithms, messages and queues."""
    calls = [Definition(name, "regular", "calls", f"of MPI_{_call(name)}", f"visits of MPI_{name}") for name in _CALLS]
    sizes = "by sizes of messages and communicators"
    algorithms = [
        Definition(
            f"BASE_{operation}_{algorithm}",
            "collective bin",
            "operations",
            f"of MPI_{_call(operation)} with the algorithm {algorithm.lower().replace('_', ' ')}, {sizes}",
            "",
        )
        for operation, names in _ALGORITHMS.items()
        for algorithm in names.split()
    ]
    return calls + algorithms + [Definition(name, *rest) for name, rest in _MESSAGES.items()]


def _call(name: str) -> str:
    """Return the name of an MPI call without the prefix, as MPI spells it."""
    return "Wtime" if name == "WTIME" else name.capitalize()


def available(result: ResultData) -> list[dict[str, Any]]:
    """Return for each counter of Open MPI whether it is recorded in the trace or can be derived.

    Parameters
    ----------
    result
        The result; with the queues replayed, more can be derived.

    Returns
    -------
    list of dict
        ``name`` (without ``OMPI_SPC_``), ``kind``, ``unit``, ``meaning`` (as a continuation of the unit),
        ``state`` (``recorded``, ``derived`` or ``not available``), ``value`` (of the whole run, or None) and
        ``source`` (the counter, metric or level it is from). For a recorded counter also the value that follows
        from the records, if any: ``derived``, ``derived_from``, and ``quotient``, how many times the recorded value
        it is; otherwise None and an empty text.
    """
    recorded = {bare(name): counter for name, counter in Counters(result).items()}
    visits = _visits(result)
    known = [*definitions(), *(one for one in FURTHER if one.name in recorded)]
    rows = []
    for one in known:
        if one.name in recorded:
            counter = recorded[one.name]
            value: float | None = counter.total if counter.kind == "total" else counter.maximum
            if value is not None and (one.unit, counter.unit) == ("us", "s"):
                value *= 1e6
            state, source = "recorded", counter.name
            derived = _derived(result, one, visits)
        else:
            value, source = _derived(result, one, visits)
            state, derived = "not available" if value is None else "derived", (None, "")
        rows.append(
            {**one._asdict(), "state": state, "value": value, "source": source}
            | {"derived": derived[0], "derived_from": derived[1], "quotient": _quotient(derived[0], value)}
        )
    for row in rows:
        del row["same"]
    return rows


def _quotient(derived: float | None, recorded: float | None) -> float | None:
    return derived / recorded if derived is not None and recorded else None


def bare(name: str) -> str:
    """Return the name of a counter without optional prefixes, such as those in MPI_T: ``runtime_spc_OMPI_SPC_SEND``."""
    return name.upper().rpartition("OMPI_")[2].removeprefix("SPC_")


def _visits(result: ResultData) -> Counter[str]:
    """Count MPI calls by name, in capitals and without the suffixes of Fortran and of large counts."""
    visits = result.profile.by_position("visits")
    tree = result.tree
    names = [tree.kinds[row].name for row in tree.region_rows]
    found: Counter[str] = Counter()
    for position, number in enumerate(tree.preorder.tolist()):
        name = names[number].upper().rstrip("_").removesuffix("()")
        if name.startswith("MPI_"):
            found[name.removesuffix("_C") if name.endswith("_C") else name] += round(visits[position])
    return found


def _derived(result: ResultData, one: Definition, visits: Counter[str]) -> tuple[float | None, str]:
    """Return the value equivalent to a counter, and its source; None and an empty text if there is none."""
    if one.kind == "regular" and one.unit == "calls":
        return float(visits[f"MPI_{one.name}"]), one.same
    if one.same.startswith("level "):
        level = one.same.removeprefix("level ")
        analysis = result.tables.analysis
        if analysis is None or "mpi_unexpected" not in result.profile.metrics:
            return None, ""
        import pyarrow as pa

        rows = [row for row in pa.table(analysis.queue_levels()).to_pylist() if row["metric"] == level]
        return float(max((row["maximum"] for row in rows), default=0)), level
    if one.same in ("eager", "not eager"):
        limits = [result.facts.get(name) for name in ("eager_limit_in_node", "eager_limit_between_nodes")]
        if _ABOVE not in result.profile.metrics or limits == [None, None]:
            return None, ""
        above, protocols = result.profile.total(_ABOVE), ("mpi_eager", "mpi_rendezvous", "mpi_protocol_unknown")
        messages = sum(result.profile.total(name) for name in protocols)
        return (above, _ABOVE) if one.same == "not eager" else (messages - above, f"messages - {_ABOVE}")
    if one.same and one.same in result.profile.metrics:
        return result.profile.total(one.same), one.same
    return None, ""
