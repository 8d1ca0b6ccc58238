//! OpenSHMEM: bytes, and wait states.
//!
//! [`super`] says what stands in a row.

macro_rules! shmem {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Bytes of OpenSHMEM puts.
        ShmemBytesPut = "shmem_bytes_put" in Bytes,
        /// Bytes of OpenSHMEM gets.
        ShmemBytesGet = "shmem_bytes_get" in Bytes,
        /// What OpenSHMEM atomics send, as recorded.
        ShmemAtomicSent = "shmem_rma_atomic_sent" in Bytes,
        /// What OpenSHMEM atomics bring back, as recorded.
        ShmemAtomicReceived = "shmem_rma_atomic_received" in Bytes,
        /// Time in a barrier before the last PE arrived.
        ShmemBarrierWait = "shmem_barrier_wait" {
            display_name: "Wait at Barrier",
            below: "shmem_sync_collective",
            waits_for: "for the last process to reach the barrier",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether the barrier is needed at all.",
            paradigm: Paradigm::Shmem,
            class: Some(Class::Fence),
            document: "one-sided-shmem",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a broadcast before the last PE arrived, if all were in it at the same time.
        ShmemLateBroadcast = "shmem_latebroadcast" {
            display_name: "Late Broadcast",
            below: "shmem_collective",
            waits_for: "for the root, which is late",
            look_at: "What the root does before it broadcasts.",
            paradigm: Paradigm::Shmem,
            class: Some(Class::Fence),
            document: "one-sided-shmem",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a reduction or collection before the last PE arrived.
        ShmemWaitNxN = "shmem_wait_nxn" {
            display_name: "Wait at N x N",
            below: "shmem_collective",
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Fence),
            document: "one-sided-shmem",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective allocation before the last PE arrived.
        ShmemWaitAtCreate = "shmem_rma_wait_at_create" {
            display_name: "Wait at Create",
            below: "shmem_management",
            waits_for: "for the last process to create the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Create),
            document: "one-sided-shmem",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective release of memory, or in finalization, before the last PE arrived.
        ShmemWaitAtFree = "shmem_rma_wait_at_free" {
            display_name: "Wait at Free",
            below: "shmem_management",
            waits_for: "for the last process to free the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Free),
            document: "one-sided-shmem",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a synchronization call while another PE held the same lock.
        ShmemLockContentionSync = "shmem_rma_sync_lock_competition" {
            display_name: "Lock Contention",
            below: "shmem_rma_synchronization",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Lock),
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a one-sided operation while another PE held the same lock.
        ShmemLockContentionComm = "shmem_rma_comm_lock_competition" {
            display_name: "Lock Contention",
            below: "shmem_rma_communication",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Lock),
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a synchronization call until the targets entered calls in which their library makes progress,
        /// excluding overlap with such a call of another target.
        ShmemProgressSync = "shmem_rma_sync_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "shmem_rma_synchronization",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// Time in a one-sided operation until the target entered a call in which its library makes progress.
        ShmemProgressComm = "shmem_rma_comm_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "shmem_rma_communication",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Shmem,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// The upper bound of Wait for Progress in synchronization calls.
        ShmemProgressSyncLastCall = "shmem_rma_sync_wait_for_progress_last_call" {
            display_name: "Synchronization",
            below: "shmem_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Shmem,
            position: Position::AfterContention,
            part_of: Some(Metric::ShmemProgressSync),
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The upper bound of Wait for Progress in one-sided operations.
        ShmemProgressCommLastCall = "shmem_rma_comm_wait_for_progress_last_call" {
            display_name: "Communication",
            below: "shmem_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Shmem,
            position: Position::AfterContention,
            part_of: Some(Metric::ShmemProgressComm),
            document: "one-sided-shmem",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The part of Wait for Progress in synchronization calls that no first call of the targets explains: a later one evidently
        /// served.
        ShmemProgressSyncServed = "shmem_rma_sync_wait_for_progress_served" {
            display_name: "Served Late",
            below: "shmem_rma_sync_wait_for_progress",
            paradigm: Paradigm::Shmem,
            position: Position::EndOfWhole,
            part_of: Some(Metric::ShmemProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// The part of Wait for Progress in one-sided operations that no first call of the targets explains: a later one evidently
        /// served.
        ShmemProgressCommServed = "shmem_rma_comm_wait_for_progress_served" {
            display_name: "Served Late",
            below: "shmem_rma_comm_wait_for_progress",
            paradigm: Paradigm::Shmem,
            position: Position::EndOfWhole,
            part_of: Some(Metric::ShmemProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// How long a target was outside its libraries in synchronization calls, until the last of its calls that began in them.
        ShmemProgressSyncAway = "shmem_rma_sync_wait_for_progress_away" {
            display_name: "Synchronization",
            below: "shmem_rma_wait_for_progress_away",
            paradigm: Paradigm::Shmem,
            position: Position::AfterContention,
            part_of: Some(Metric::ShmemProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// How long a target was outside its libraries in one-sided operations, until the last of its calls that began in them.
        ShmemProgressCommAway = "shmem_rma_comm_wait_for_progress_away" {
            display_name: "Communication",
            below: "shmem_rma_wait_for_progress_away",
            paradigm: Paradigm::Shmem,
            position: Position::AfterContention,
            part_of: Some(Metric::ShmemProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// Time in a call that waits for a change of memory until the operation of another PE that changed it.
        ShmemWaitUntil = "shmem_rma_wait_until" {
            display_name: "Wait until",
            below: "shmem_rma_synchronization",
            waits_for: "for a variable that another process sets late",
            look_at: "What the other process does before it sets the variable.",
            paradigm: Paradigm::Shmem,
            class: Some(Class::EarlyWait),
            document: "one-sided-shmem",
            source: "thesis, section 3.1.3",
            ..WAIT
        },
    } };
}
