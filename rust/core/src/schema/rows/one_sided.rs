//! MPI: wait states in one-sided communication, and pairs that synchronize for it in all libraries.
//!
//! [`super`] says what stands in a row.

macro_rules! one_sided {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Time in a call that creates a window before the last process of the communicator arrived.
        WaitAtCreate = "mpi_rma_wait_at_create" {
            display_name: "Wait at Create",
            below: "mpi_mgmt_win",
            waits_for: "for the last process to create the window",
            look_at: LAST_ONE,
            class: Some(Class::Create),
            document: "one-sided-collectives",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in `MPI_Win_free` before the last process of the window arrived.
        WaitAtFree = "mpi_rma_wait_at_free" {
            display_name: "Wait at Free",
            below: "mpi_mgmt_win",
            waits_for: "for the last process to free the window",
            look_at: LAST_ONE,
            class: Some(Class::Free),
            document: "one-sided-collectives",
            source: "thesis, section 3.2",
            ..WAIT
        },
        /// Time in a synchronization call of the origin before the target opened its exposure epoch.
        LatePostSync = "mpi_rma_sync_late_post" {
            display_name: "Late Post",
            below: "mpi_rma_sync_active",
            waits_for: "for targets that expose their windows late",
            look_at: LATE_TARGET,
            class: Some(Class::LatePost),
            document: "one-sided-late-post",
            source: "thesis, section 3.2, pattern 3",
            ..WAIT
        },
        /// Time in a one-sided operation before the target opened its exposure epoch.
        LatePostComm = "mpi_rma_comm_late_post" {
            display_name: "Late Post",
            below: "mpi_rma_communication",
            waits_for: "for targets that expose their windows late",
            look_at: LATE_TARGET,
            class: Some(Class::LatePost),
            document: "one-sided-late-post",
            source: "thesis, section 3.2, pattern 3",
            ..WAIT
        },
        /// Time in `MPI_Win_wait` before the last origin closed its access epoch.
        EarlyWait = "mpi_rma_early_wait" {
            display_name: "Early Wait",
            below: "mpi_rma_sync_active",
            waits_for: "for origins to complete their access",
            look_at: "What origins do before MPI_Win_complete; or test for completion and work in the meantime.",
            class: Some(Class::EarlyWait),
            document: "one-sided-early-wait",
            source: "thesis, section 3.2, pattern 4",
            ..WAIT
        },
        /// The part of Early Wait after the last operation on the window ended: the origin could have closed
        /// its epoch sooner.
        LateComplete = "mpi_rma_late_complete" {
            display_name: "Late Complete",
            below: "mpi_rma_early_wait",
            position: Position::EndOfWhole,
            part_of: Some(Metric::EarlyWait),
            document: "one-sided-early-wait",
            source: "thesis, section 3.2, pattern 5",
            ..PART
        },
        /// Time in a fence before the last process of the window arrived.
        WaitAtFence = "mpi_rma_wait_at_fence" {
            display_name: "Wait at Fence",
            below: "mpi_rma_sync_active",
            waits_for: "for the last process to reach the fence",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether all processes must synchronize here: they can also do so in pairs.",
            class: Some(Class::Fence),
            document: "one-sided-collectives",
            source: "thesis, section 3.2, pattern 1",
            ..WAIT
        },
        /// The part of Wait at Fence in which operations on the process's own window were still in progress.
        EarlyFence = "mpi_rma_early_fence" {
            display_name: "Early Fence",
            below: "mpi_rma_wait_at_fence",
            part_of: Some(Metric::WaitAtFence),
            document: "one-sided-collectives",
            source: "thesis, section 3.2, pattern 2",
            ..PART
        },
        /// Time in a synchronization call while another process held the lock of the same window.
        LockContentionSync = "mpi_rma_sync_lock_competition" {
            display_name: "Lock Contention",
            below: "mpi_rma_sync_passive",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            class: Some(Class::Lock),
            document: "one-sided-lock-contention",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a one-sided operation while another process held the lock of the same window.
        LockContentionComm = "mpi_rma_comm_lock_competition" {
            display_name: "Lock Contention",
            below: "mpi_rma_communication",
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            class: Some(Class::Lock),
            document: "one-sided-lock-contention",
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a synchronization call until the targets entered calls in which their library makes progress,
        /// excluding overlap with such a call of another target.
        ProgressSync = "mpi_rma_sync_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "mpi_rma_sync_passive",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-progress",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// Time in a call that completes an access epoch until a target entered a call that evidently served it.
        ProgressActive = "mpi_rma_active_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "mpi_rma_sync_active",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            class: Some(Class::Progress),
            document: "one-sided-served",
            source: "specification",
            ..WAIT
        },
        /// Time in a one-sided operation until the target entered a call in which its library makes progress.
        ProgressComm = "mpi_rma_comm_wait_for_progress" {
            display_name: "Wait for Progress",
            below: "mpi_rma_communication",
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: "one-sided-progress",
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// The upper bound of Wait for Progress in synchronization calls.
        ProgressSyncLastCall = "mpi_rma_sync_wait_for_progress_last_call" {
            display_name: "Synchronization",
            below: "mpi_rma_wait_for_progress_last_call",
            position: Position::AfterContention,
            part_of: Some(Metric::ProgressSync),
            document: "one-sided-progress",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The upper bound of Wait for Progress in one-sided operations.
        ProgressCommLastCall = "mpi_rma_comm_wait_for_progress_last_call" {
            display_name: "Communication",
            below: "mpi_rma_wait_for_progress_last_call",
            position: Position::AfterContention,
            part_of: Some(Metric::ProgressComm),
            document: "one-sided-progress",
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The part of Wait for Progress in synchronization calls that no first call of the targets explains: a later one evidently
        /// served.
        ProgressSyncServed = "mpi_rma_sync_wait_for_progress_served" {
            display_name: "Served Late",
            below: "mpi_rma_sync_wait_for_progress",
            position: Position::EndOfWhole,
            part_of: Some(Metric::ProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// The part of Wait for Progress in one-sided operations that no first call of the targets explains: a later one evidently
        /// served.
        ProgressCommServed = "mpi_rma_comm_wait_for_progress_served" {
            display_name: "Served Late",
            below: "mpi_rma_comm_wait_for_progress",
            position: Position::EndOfWhole,
            part_of: Some(Metric::ProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// How long a target was outside its libraries in synchronization calls, until the last of its calls that began in them.
        ProgressSyncAway = "mpi_rma_sync_wait_for_progress_away" {
            display_name: "Synchronization",
            below: "mpi_rma_wait_for_progress_away",
            position: Position::AfterContention,
            part_of: Some(Metric::ProgressSync),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// How long a target was outside its libraries in one-sided operations, until the last of its calls that began in them.
        ProgressCommAway = "mpi_rma_comm_wait_for_progress_away" {
            display_name: "Communication",
            below: "mpi_rma_wait_for_progress_away",
            position: Position::AfterContention,
            part_of: Some(Metric::ProgressComm),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// Pairs of processes that a call synchronizes.
        PairSyncs = "mpi_rma_pairsync_count" in Count,
        /// Pairs without data.
        PairSyncsUnneeded = "mpi_rma_pairsync_unneeded_count" in Count,
        /// Pairs of PEs that a call synchronizes.
        ShmemPairSyncs = "shmem_rma_pairsync_count" in Count,
        /// Pairs of PEs without data.
        ShmemPairSyncsUnneeded = "shmem_rma_pairsync_unneeded_count" in Count,
        /// Pairs of ARMCI processes that a call synchronizes.
        ArmciPairSyncs = "armci_rma_pairsync_count" in Count,
        /// Pairs of ARMCI processes without data.
        ArmciPairSyncsUnneeded = "armci_rma_pairsync_unneeded_count" in Count,
        /// Pairs of processes that a call of GASPI or UPC synchronizes.
        PgasPairSyncs = "pgas_rma_pairsync_count" in Count,
        /// Pairs of processes of GASPI or UPC without data.
        PgasPairSyncsUnneeded = "pgas_rma_pairsync_unneeded_count" in Count,
    } };
}
