"""Programs of Global Arrays, GASPI and UPC: waiting is what was computed of them without this program."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import whywait

MODELS = Path(__file__).parent / "data" / "models"
MILLISECOND = 1e-3
# Waits of less are those of processes that are on the same two cores.
NOTABLE = 20 * MILLISECOND


def analyzed(name):
    result = whywait.analyze(MODELS / name / "traces.otf2")
    assert not result.warnings
    return result


def waits(result, kind, call, *, longer_than=0.0):
    """Return the waits of a kind in calls of a function: rank, rank of the cause and waiting, in milliseconds."""
    table = pa.table(result.wait_states())
    table = table.filter(
        pc.and_(pc.equal(table["kind"].cast("string"), kind), pc.greater(table["waiting"], longer_than))
    )
    return [
        (row["rank"], row["cause_rank"], round(row["waiting"] / MILLISECOND, 3))
        for row in table.to_pylist()
        if row["callpath"][-1] == call
    ]


def test_global_arrays_on_mpi_wait_for_progress_in_flushes_of_origins():
    """Targets sleep for 150 ms; MPICH waits for them in every flush, of puts and accumulates, even a local one."""
    result = analyzed("ga_delays_mpi")
    progress = "mpi_rma_sync_wait_for_progress"
    for call, rank, cause, length in (
        ("MPI_Win_flush_local_all", 0, 3, [148.6]),
        ("MPI_Win_flush_local", 1, 3, [100.8, 104.7]),
        ("MPI_Win_flush", 1, 0, [95.9]),
    ):
        found = sorted(waits(result, progress, call, longer_than=NOTABLE))
        assert found == [(rank, cause, pytest.approx(time, rel=0.01)) for time in length], call


def test_global_arrays_on_comex_wait_in_calls_of_armci():
    """ComEx waits in the call that is named non-blocking."""
    result = analyzed("ga_delays_comex")
    progress = "armci_rma_{}_wait_for_progress"
    for kind, call, cause, length in (
        (progress.format("comm"), "ARMCI_NbGetS", 3, 100.0),
        (progress.format("sync"), "ARMCI_AllFence", 3, 99.4),
        (progress.format("sync"), "ARMCI_Fence", 3, 99.9),
        (progress.format("comm"), "ARMCI_Rmw", 0, 100.0),
        ("armci_rma_sync_lock_competition", "ARMCI_Lock", 2, 50.0),
    ):
        ((rank, source, time),) = waits(result, kind, call, longer_than=NOTABLE)
        assert (rank, source, time) == (0 if call == "ARMCI_NbGetS" else 1, cause, pytest.approx(length, rel=0.01)), (
            call
        )


def test_global_arrays_on_comex_wait_at_barriers():
    result = analyzed("ga_delays_comex")
    assert result.metrics["armci_barrier_wait"].total == pytest.approx(1.7582, rel=0.01)
    found = waits(result, "armci_barrier_wait", "ARMCI_Barrier", longer_than=NOTABLE)
    by_cause = {
        0: [150.3, 150.4],
        1: [100.2, 100.3, 150.2, 150.2, 150.6, 150.6, 151.6, 151.7],
        2: [100.2, 102.3, 102.3],
    }
    for cause, lengths in by_cause.items():
        assert sorted(time for _, source, time in found if source == cause) == pytest.approx(lengths, rel=0.01), cause


def test_srumma_has_targets_that_are_away():
    """Targets multiply matrices outside the library; what is known of waiting for them is a small part of that."""
    result = analyzed("ga_srumma_armci")
    progress = "armci_rma_sync_wait_for_progress"
    assert waits(result, progress, "ARMCI_Wait") == [(1, 3, pytest.approx(51.7, rel=0.01))]
    away = waits(result, f"{progress}_away", "ARMCI_Wait", longer_than=NOTABLE)
    assert sorted(away) == [
        (0, 2, pytest.approx(3094.3, rel=0.01)),
        (1, 0, pytest.approx(1717.7, rel=0.01)),
        (1, 3, pytest.approx(51.7, rel=0.01)),
        (2, 0, pytest.approx(1717.7, rel=0.01)),
    ]
    assert result.metrics[f"{progress}_away"].total == pytest.approx(6.581, rel=0.01)


def test_srumma_could_gain_from_progress_threads():
    result = analyzed("ga_srumma_armci")
    bounds = result.summary()["focus"]["progress"]
    assert bounds["lower"] == pytest.approx(0.0015, rel=0.05)
    assert bounds["upper"] == pytest.approx(0.196, rel=0.01)
    (finding,) = (one for one in result.findings() if one.rule == "targets_away")
    assert "up to 6.58 s (20%) while others are in ARMCI_Wait; 51.7 ms of waiting" in finding.sentence


def test_gaspi_waits_for_notifications_barriers_and_passive_messages():
    """Ids tell notifications apart, whoever sends them; what came first, and a queue, wait for nobody."""
    result = analyzed("gaspi_basic")
    assert waits(result, "pgas_barrier_wait", "gaspi_barrier") == [(0, 2, 20), (1, 2, 20), (3, 2, 20)]
    assert waits(result, "pgas_wait_nxn", "gaspi_allreduce") == [(0, 3, 20), (1, 3, 20), (2, 3, 20)]
    assert waits(result, "pgas_rma_wait_until", "gaspi_notify_waitsome") == [(0, 2, 10), (0, 3, 14), (1, 0, 20)]
    assert waits(result, "pgas_rma_wait_until", "gaspi_passive_receive") == [(1, 2, 20)]
    assert result.metrics["waiting"].total == pytest.approx(0.184, abs=1e-7)
    assert (result.facts["focus_begin"], result.facts["focus_end"]) == pytest.approx((0.01, 0.21))


def test_upc_waits_in_two_phases_for_locks_progress_and_roots():
    result = analyzed("upc_basic")
    assert waits(result, "pgas_barrier_wait", "upc_barrier") == [(0, 1, 15), (2, 1, 15), (3, 1, 15)]
    assert waits(result, "pgas_barrier_wait", "upc_wait") == [(0, 3, 10), (1, 3, 10), (2, 3, 10)]
    assert waits(result, "pgas_rma_sync_lock_competition", "upc_lock") == [(1, 2, 15.1), (3, 1, 20.1)]
    assert waits(result, "pgas_rma_comm_wait_for_progress", "upc_memget") == [(0, 3, 30)]
    assert waits(result, "pgas_latebroadcast", "upc_all_broadcast") == [(0, 2, 10), (1, 2, 10), (3, 2, 10)]
    assert result.metrics["waiting"].total == pytest.approx(0.1702, abs=1e-7)
    assert whywait.analyze(MODELS / "upc_basic" / "traces.otf2", census=True).clocks["violated"] == 0
