//! ARMCI: bytes, and wait states.
//!
//! [`super`] says what stands in a row.

macro_rules! armci {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Bytes of ARMCI puts.
        ArmciBytesPut = "armci_bytes_put" in Bytes,
        /// Bytes of ARMCI gets.
        ArmciBytesGet = "armci_bytes_get" in Bytes,
        /// What ARMCI atomics send, as recorded.
        ArmciAtomicSent = "armci_rma_atomic_sent" in Bytes,
        /// What ARMCI atomics bring back, as recorded.
        ArmciAtomicReceived = "armci_rma_atomic_received" in Bytes,
        /// Time in a barrier before the last process arrived.
        ArmciBarrierWait = "armci_barrier_wait" {
            display_name: "Wait at Barrier",
            below: "armci_sync_collective",
            waits_for: "for the last process to reach the barrier",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether the barrier is needed at all.",
            paradigm: Paradigm::Armci,
            class: Some(Class::Fence),
            document: "one-sided-armci",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a broadcast before the last process arrived, if all were in it at the same time.
        ArmciLateBroadcast = "armci_latebroadcast" {
            display_name: "Late Broadcast",
            below: "armci_collective",
            waits_for: "for the root, which is late",
            look_at: "What the root does before it broadcasts.",
            paradigm: Paradigm::Armci,
            class: Some(Class::Fence),
            document: "one-sided-armci",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a reduction or collection before the last process arrived.
        ArmciWaitNxN = "armci_wait_nxn" {
            display_name: "Wait at N x N",
            below: "armci_collective",
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            paradigm: Paradigm::Armci,
            class: Some(Class::Fence),
            document: "one-sided-armci",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective allocation before the last process arrived.
        ArmciWaitAtCreate = "armci_rma_wait_at_create" {
            display_name: "Wait at Create",
            below: "armci_management",
            waits_for: "for the last process to create the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Armci,
            class: Some(Class::Create),
            document: "one-sided-armci",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a collective release of memory, or in finalization, before the last process arrived.
        ArmciWaitAtFree = "armci_rma_wait_at_free" {
            display_name: "Wait at Free",
            below: "armci_management",
            waits_for: "for the last process to free the window",
            look_at: LAST_ONE,
            paradigm: Paradigm::Armci,
            class: Some(Class::Free),
            document: "one-sided-armci",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a synchronization call while another process held the same lock.
        ArmciLockContentionSync = "armci_rma_sync_lock_competition" {
            display_name: "Lock Contention",
            below: "armci_rma_synchronization",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Armci,
            class: Some(Class::Lock),
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a one-sided operation while another process held the same lock.
        ArmciLockContentionComm = "armci_rma_comm_lock_competition" {
            display_name: "Lock Contention",
            below: "armci_rma_communication",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            paradigm: Paradigm::Armci,
            class: Some(Class::Lock),
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a synchronization call until the targets entered calls in which their library makes progress,
        /// excluding overlap with such a call of another target.
        ArmciProgressSync = "armci_rma_sync_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "armci_rma_synchronization",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Armci,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// Time in a one-sided operation until the target entered a call in which its library makes progress.
        ArmciProgressComm = "armci_rma_comm_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "armci_rma_communication",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            paradigm: Paradigm::Armci,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// The upper bound of Wait for Progress in synchronization calls.
        ArmciProgressSyncLastCall = "armci_rma_sync_wait_for_progress_last_call" {
            display_name: "Synchronization",
            below: "armci_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Armci,
            position: Position::AfterContention,
            part_of: Some(Metric::ArmciProgressSync),
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The upper bound of Wait for Progress in one-sided operations.
        ArmciProgressCommLastCall = "armci_rma_comm_wait_for_progress_last_call" {
            display_name: "Communication",
            below: "armci_rma_wait_for_progress_last_call",
            paradigm: Paradigm::Armci,
            position: Position::AfterContention,
            part_of: Some(Metric::ArmciProgressComm),
            document: "one-sided-armci",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The part of Wait for Progress in synchronization calls that no first call of the targets explains: a later one evidently
        /// served.
        ArmciProgressSyncServed = "armci_rma_sync_wait_for_progress_served" {
            display_name: "Served Late",
            below: "armci_rma_sync_wait_for_progress",
            paradigm: Paradigm::Armci,
            position: Position::EndOfWhole,
            part_of: Some(Metric::ArmciProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// The part of Wait for Progress in one-sided operations that no first call of the targets explains: a later one evidently
        /// served.
        ArmciProgressCommServed = "armci_rma_comm_wait_for_progress_served" {
            display_name: "Served Late",
            below: "armci_rma_comm_wait_for_progress",
            paradigm: Paradigm::Armci,
            position: Position::EndOfWhole,
            part_of: Some(Metric::ArmciProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// How long a target was outside its libraries in synchronization calls, until the last of its calls that began in them.
        ArmciProgressSyncAway = "armci_rma_sync_wait_for_progress_away" {
            display_name: "Synchronization",
            below: "armci_rma_wait_for_progress_away",
            paradigm: Paradigm::Armci,
            position: Position::AfterContention,
            part_of: Some(Metric::ArmciProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// How long a target was outside its libraries in one-sided operations, until the last of its calls that began in them.
        ArmciProgressCommAway = "armci_rma_comm_wait_for_progress_away" {
            display_name: "Communication",
            below: "armci_rma_wait_for_progress_away",
            paradigm: Paradigm::Armci,
            position: Position::AfterContention,
            part_of: Some(Metric::ArmciProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// Time in a call that waits for a notification before the other process sent it.
        ArmciWaitUntil = "armci_rma_wait_until" {
            display_name: "Wait until",
            below: "armci_rma_synchronization",
            waits_for: "for another process to notify it",
            look_at: "What the other process does before it notifies.",
            paradigm: Paradigm::Armci,
            class: Some(Class::EarlyWait),
            document: "one-sided-notifications",
            source: "thesis, section 3.1",
            ..WAIT
        },
    } };
}
