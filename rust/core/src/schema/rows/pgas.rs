//! GASPI and UPC: bytes, and wait states. Both are partitioned global address spaces, hence the prefix.
//!
//! [`super`] says what stands in a row.

macro_rules! pgas {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Bytes of GASPI and UPC puts.
        PgasBytesPut = "pgas_bytes_put" in Bytes,
        /// Bytes of GASPI and UPC gets.
        PgasBytesGet = "pgas_bytes_get" in Bytes,
        /// What GASPI and UPC atomics send, as recorded.
        PgasAtomicSent = "pgas_rma_atomic_sent" in Bytes,
        /// What GASPI and UPC atomics bring back, as recorded.
        PgasAtomicReceived = "pgas_rma_atomic_received" in Bytes,
        /// Time in a barrier before the last process arrived.
        PgasBarrierWait = "pgas_barrier_wait" {
            display_name: "Wait at Barrier",
            below: "pgas_sync_collective",
            waits_for: "for the last process to reach the barrier",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether the barrier is needed at all.",
            paradigm: Paradigm::Pgas,
            class: Some(Class::Fence),
            document: "one-sided-pgas",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a broadcast or scatter before the root arrived.
        PgasLateBroadcast = "pgas_latebroadcast" {
            display_name: "Late Broadcast",
            below: "pgas_collective",
            waits_for: "for the root, which is late",
            look_at: "What the root does before it broadcasts.",
            paradigm: Paradigm::Pgas,
            class: Some(Class::Fence),
            document: "one-sided-pgas",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a reduction or collection before the last process arrived.
        PgasWaitNxN = "pgas_wait_nxn" {
            display_name: "Wait at N x N",
            below: "pgas_collective",
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Fence),
            document: "one-sided-pgas",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective allocation before the last process arrived.
        PgasWaitAtCreate = "pgas_rma_wait_at_create" {
            display_name: "Wait at Create",
            below: "pgas_management",
            waits_for: "for the last process to create the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Create),
            document: "one-sided-pgas",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective release of memory, or in finalization, before the last process arrived.
        PgasWaitAtFree = "pgas_rma_wait_at_free" {
            display_name: "Wait at Free",
            below: "pgas_management",
            waits_for: "for the last process to free the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Free),
            document: "one-sided-pgas",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a synchronization call while another process held the same lock.
        PgasLockContentionSync = "pgas_rma_sync_lock_competition" {
            display_name: "Lock Contention",
            below: "pgas_rma_synchronization",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Lock),
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a one-sided operation while another process held the same lock.
        PgasLockContentionComm = "pgas_rma_comm_lock_competition" {
            display_name: "Lock Contention",
            below: "pgas_rma_communication",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Lock),
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a synchronization call until the targets entered calls in which their library makes progress,
        /// excluding overlap with such a call of another target.
        PgasProgressSync = "pgas_rma_sync_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "pgas_rma_synchronization",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// Time in a one-sided operation until the target entered a call in which its library makes progress.
        PgasProgressComm = "pgas_rma_comm_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "pgas_rma_communication",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Pgas,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// The upper bound of Wait for Progress in synchronization calls.
        PgasProgressSyncLastCall = "pgas_rma_sync_wait_for_progress_last_call" {
            display_name: "Synchronization",
            below: "pgas_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Pgas,
            position: Position::AfterContention,
            part_of: Some(Metric::PgasProgressSync),
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The upper bound of Wait for Progress in one-sided operations.
        PgasProgressCommLastCall = "pgas_rma_comm_wait_for_progress_last_call" {
            display_name: "Communication",
            below: "pgas_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Pgas,
            position: Position::AfterContention,
            part_of: Some(Metric::PgasProgressComm),
            document: "one-sided-pgas",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The part of Wait for Progress in synchronization calls that no first call of the targets explains: a later one evidently
        /// served.
        PgasProgressSyncServed = "pgas_rma_sync_wait_for_progress_served" {
            display_name: "Served Late",
            below: "pgas_rma_sync_wait_for_progress",
            paradigm: Paradigm::Pgas,
            position: Position::EndOfWhole,
            part_of: Some(Metric::PgasProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// The part of Wait for Progress in one-sided operations that no first call of the targets explains: a later one evidently
        /// served.
        PgasProgressCommServed = "pgas_rma_comm_wait_for_progress_served" {
            display_name: "Served Late",
            below: "pgas_rma_comm_wait_for_progress",
            paradigm: Paradigm::Pgas,
            position: Position::EndOfWhole,
            part_of: Some(Metric::PgasProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// How long a target was outside its libraries in synchronization calls, until the last of its calls that began in them.
        PgasProgressSyncAway = "pgas_rma_sync_wait_for_progress_away" {
            display_name: "Synchronization",
            below: "pgas_rma_wait_for_progress_away",
            paradigm: Paradigm::Pgas,
            position: Position::AfterContention,
            part_of: Some(Metric::PgasProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// How long a target was outside its libraries in one-sided operations, until the last of its calls that began in them.
        PgasProgressCommAway = "pgas_rma_comm_wait_for_progress_away" {
            display_name: "Communication",
            below: "pgas_rma_wait_for_progress_away",
            paradigm: Paradigm::Pgas,
            position: Position::AfterContention,
            part_of: Some(Metric::PgasProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// Time in a call that waits for a notification before the other process sent it.
        PgasWaitUntil = "pgas_rma_wait_until" {
            display_name: "Wait until",
            below: "pgas_rma_synchronization",
            waits_for: "for another process to notify it",
            look_at: "What the other process does before it notifies.",
            paradigm: Paradigm::Pgas,
            class: Some(Class::EarlyWait),
            document: "one-sided-notifications",
            source: "thesis, section 3.1",
            ..WAIT
        },
    } };
}
