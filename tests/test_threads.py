"""Results do not depend on the number of threads, also where they share the chunks of one location."""

import otf2
import pyarrow as pa
import pytest
import whywait._native as native
from otf2.enums import (
    GroupType,
    LocationGroupType,
    LocationType,
    MetricMode,
    MetricOccurrence,
    MetricType,
    Paradigm,
    Type,
)

CHUNK = 256 * 1024
EVENTS = 250_000


@pytest.fixture(scope="module")
def one_location(tmp_path_factory):
    """One process that calls functions with counters, and sends messages to itself, in a dozen chunks."""
    path = tmp_path_factory.mktemp("threads") / "long"
    with otf2.writer.open(str(path), timer_resolution=1_000_000_000, chunk_size_events=CHUNK) as archive:
        define = archive.definitions
        node = define.system_tree_node("node")
        group = define.location_group("rank 0", location_group_type=LocationGroupType.PROCESS, system_tree_parent=node)
        location = define.location("thread", type=LocationType.CPU_THREAD, group=group)
        main = define.region("main")
        work = [define.region(f"work{n}") for n in range(7)]
        send, receive = (define.region(name, paradigm=Paradigm.MPI) for name in ("MPI_Send", "MPI_Recv"))
        define.group("all", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=[location])
        world = define.comm(
            "MPI_COMM_WORLD",
            define.group("world", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[0]),
        )
        counters = [
            define.metric_member(
                name,
                metric_type=MetricType.PAPI,
                metric_mode=MetricMode.ACCUMULATED_START,
                value_type=Type.UINT64,
                unit="#",
            )
            for name in ("INS", "CYC")
        ]
        counters = define.metric_class(counters, occurrence=MetricOccurrence.SYNCHRONOUS_STRICT)
        writer = archive.event_writer_from_location(location)
        time = 1
        writer.program_begin(time, "long", [])
        writer.enter(time, main)
        for n in range(EVENTS // 10):
            for region in (work[n % 7], work[n % 3]):
                writer.metric(time := time + 10, counters, (3 * time, n))
                writer.enter(time, region)
            for _ in range(2):
                writer.metric(time := time + 5, counters, (3 * time, n))
                writer.leave(time, work[n % 3 if _ == 0 else n % 7])
            for region, record in ((send, writer.mpi_send), (receive, writer.mpi_recv)):
                writer.enter(time := time + 1, region)
                record(time := time + 1, 0, world, n % 5, 8)
                writer.leave(time := time + 1, region)
        writer.leave(time := time + 1, main)
        writer.program_end(time, 0)
    return path / "traces.otf2"


def test_threads_share_the_chunks_of_a_location(one_location):
    run = native.Run(str(one_location))
    alone, together = (native.analyze(run, threads=threads) for threads in (1, 2))
    for table in ("severities", "callpaths", "wait_states", "inconsistencies", "counter_cells"):
        assert pa.table(getattr(alone, table)()).equals(pa.table(getattr(together, table)())), table
    assert alone.facts() == together.facts()
    cells = pa.table(alone.severities()).to_pylist()
    assert sum(cell["value"] for cell in cells if cell["metric"] == "comms_recv") == EVENTS // 10
    grown = sum(cell["amount"] for cell in pa.table(together.counter_cells()).to_pylist() if cell["counter"] == 1)
    assert grown == EVENTS // 10 - 1
