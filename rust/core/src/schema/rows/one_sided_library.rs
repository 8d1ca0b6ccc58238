//! What libraries of one-sided communication besides MPI have in common: bytes, and wait states.
//!
//! [`super`] says what stands in a row. A library states its words and the names of its metrics, then its own rows.

macro_rules! one_sided_library {
    (
        [$next:ident $($rest:ident)*] { $($before:tt)* }
        library: $library:tt, process: $process:tt, prefix: $prefix:tt,
        document: $document:tt, late_broadcast: $late_broadcast:tt,
        metrics: [
            $bytes_put:ident $bytes_get:ident $atomic_sent:ident $atomic_received:ident $barrier_wait:ident
            $late_broadcast_wait:ident $wait_nxn:ident $wait_at_create:ident $wait_at_free:ident
            $lock_contention_sync:ident $lock_contention_comm:ident $progress_sync:ident $progress_comm:ident
            $progress_sync_last_call:ident $progress_comm_last_call:ident $progress_sync_served:ident
            $progress_comm_served:ident $progress_sync_away:ident $progress_comm_away:ident
        ],
        $($own:tt)*
    ) => { $next! { [$($rest)*] $($before)*
        #[doc = concat!("Bytes of ", $library, " puts.")]
        $bytes_put = (concat!($prefix, "_bytes_put")) in Bytes,
        #[doc = concat!("Bytes of ", $library, " gets.")]
        $bytes_get = (concat!($prefix, "_bytes_get")) in Bytes,
        #[doc = concat!("What ", $library, " atomics send, as recorded.")]
        $atomic_sent = (concat!($prefix, "_rma_atomic_sent")) in Bytes,
        #[doc = concat!("What ", $library, " atomics bring back, as recorded.")]
        $atomic_received = (concat!($prefix, "_rma_atomic_received")) in Bytes,
        #[doc = concat!("Time in a barrier before the last ", $process, " arrived.")]
        $barrier_wait = (concat!($prefix, "_barrier_wait")) {
            display_name: "Wait at Barrier",
            below: concat!($prefix, "_sync_collective"),
            waits_for: "for the last process to reach the barrier",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether the barrier is needed at all.",
            class: Some(Class::Fence),
            document: $document,
            source: "thesis, section 3.2",
            ..WAIT
        },
        #[doc = $late_broadcast]
        $late_broadcast_wait = (concat!($prefix, "_latebroadcast")) {
            display_name: "Late Broadcast",
            below: concat!($prefix, "_collective"),
            waits_for: "for the root, which is late",
            look_at: "What the root does before it broadcasts.",
            class: Some(Class::Fence),
            document: $document,
            source: "thesis, section 3.2",
            ..WAIT
        },
        #[doc = concat!("Time in a reduction or collection before the last ", $process, " arrived.")]
        $wait_nxn = (concat!($prefix, "_wait_nxn")) {
            display_name: "Wait at N x N",
            below: concat!($prefix, "_collective"),
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            class: Some(Class::Fence),
            document: $document,
            source: "thesis, section 3.2",
            ..WAIT
        },
        #[doc = concat!("Time in a collective allocation before the last ", $process, " arrived.")]
        $wait_at_create = (concat!($prefix, "_rma_wait_at_create")) {
            display_name: "Wait at Create",
            below: concat!($prefix, "_management"),
            waits_for: "for the last process to create the window",
            look_at: LAST_ONE,
            class: Some(Class::Create),
            document: $document,
            source: "thesis, section 3.2",
            ..WAIT
        },
        #[doc = concat!("Time in a collective release of memory, or in finalization, before the last ", $process, " arrived.")]
        $wait_at_free = (concat!($prefix, "_rma_wait_at_free")) {
            display_name: "Wait at Free",
            below: concat!($prefix, "_management"),
            waits_for: "for the last process to free the window",
            look_at: LAST_ONE,
            class: Some(Class::Free),
            document: $document,
            source: "thesis, section 3.2",
            ..WAIT
        },
        #[doc = concat!("Time in a synchronization call while another ", $process, " held the same lock.")]
        $lock_contention_sync = (concat!($prefix, "_rma_sync_lock_competition")) {
            display_name: "Lock Contention",
            below: concat!($prefix, "_rma_synchronization"),
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            class: Some(Class::Lock),
            document: $document,
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        #[doc = concat!("Time in a one-sided operation while another ", $process, " held the same lock.")]
        $lock_contention_comm = (concat!($prefix, "_rma_comm_lock_competition")) {
            display_name: "Lock Contention",
            below: concat!($prefix, "_rma_communication"),
            waits_for: "for others to release a lock",
            look_at: HELD_LOCK,
            class: Some(Class::Lock),
            document: $document,
            source: "thesis, section 3.2, pattern 7, algorithm 2",
            ..WAIT
        },
        /// Time in a synchronization call until the targets entered calls in which their library makes progress,
        /// excluding overlap with such a call of another target.
        $progress_sync = (concat!($prefix, "_rma_sync_wait_for_progress")) {
            display_name: "Wait for Progress",
            below: concat!($prefix, "_rma_synchronization"),
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: $document,
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// Time in a one-sided operation until the target entered a call in which its library makes progress.
        $progress_comm = (concat!($prefix, "_rma_comm_wait_for_progress")) {
            display_name: "Wait for Progress",
            below: concat!($prefix, "_rma_communication"),
            waits_for: "for targets to make progress",
            look_at: BUSY_TARGET,
            class: Some(Class::Progress),
            position: Position::AfterContention,
            document: $document,
            source: "thesis, section 3.2, pattern 6, algorithm 1",
            ..WAIT
        },
        /// The upper bound of Wait for Progress in synchronization calls.
        $progress_sync_last_call = (concat!($prefix, "_rma_sync_wait_for_progress_last_call")) {
            display_name: "Synchronization",
            below: concat!($prefix, "_rma_wait_for_progress_last_call"),
            position: Position::AfterContention,
            part_of: Some(Metric::$progress_sync),
            document: $document,
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The upper bound of Wait for Progress in one-sided operations.
        $progress_comm_last_call = (concat!($prefix, "_rma_comm_wait_for_progress_last_call")) {
            display_name: "Communication",
            below: concat!($prefix, "_rma_wait_for_progress_last_call"),
            position: Position::AfterContention,
            part_of: Some(Metric::$progress_comm),
            document: $document,
            source: "thesis, section 3.2, pattern 6",
            ..BOUND
        },
        /// The part of Wait for Progress in synchronization calls that no first call of the targets explains: a later one evidently
        /// served.
        $progress_sync_served = (concat!($prefix, "_rma_sync_wait_for_progress_served")) {
            display_name: "Served Late",
            below: concat!($prefix, "_rma_sync_wait_for_progress"),
            position: Position::EndOfWhole,
            part_of: Some(Metric::$progress_sync),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// The part of Wait for Progress in one-sided operations that no first call of the targets explains: a later one evidently
        /// served.
        $progress_comm_served = (concat!($prefix, "_rma_comm_wait_for_progress_served")) {
            display_name: "Served Late",
            below: concat!($prefix, "_rma_comm_wait_for_progress"),
            position: Position::EndOfWhole,
            part_of: Some(Metric::$progress_comm),
            document: "one-sided-served",
            source: "specification",
            ..PART
        },
        /// How long a target was outside its libraries in synchronization calls, until the last of its calls that began in them.
        $progress_sync_away = (concat!($prefix, "_rma_sync_wait_for_progress_away")) {
            display_name: "Synchronization",
            below: concat!($prefix, "_rma_wait_for_progress_away"),
            position: Position::AfterContention,
            part_of: Some(Metric::$progress_sync),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        /// How long a target was outside its libraries in one-sided operations, until the last of its calls that began in them.
        $progress_comm_away = (concat!($prefix, "_rma_comm_wait_for_progress_away")) {
            display_name: "Communication",
            below: concat!($prefix, "_rma_wait_for_progress_away"),
            position: Position::AfterContention,
            part_of: Some(Metric::$progress_comm),
            document: "one-sided-served",
            source: "specification",
            ..BOUND
        },
        $($own)*
    } };
}
