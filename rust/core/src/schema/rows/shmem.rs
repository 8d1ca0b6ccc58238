//! OpenSHMEM: bytes, and wait states.
//!
//! [`super`] says what stands in a row.

macro_rules! shmem {
    ([$($rest:ident)*] $($before:tt)*) => { one_sided_library! { [$($rest)*] { $($before)* }
        library: "OpenSHMEM", process: "PE", prefix: "shmem",
        document: "one-sided-shmem",
        late_broadcast: "Time in a broadcast before the last PE arrived, if all were in it at the same time.",
        metrics: [
            ShmemBytesPut ShmemBytesGet ShmemAtomicSent ShmemAtomicReceived ShmemBarrierWait
            ShmemLateBroadcast ShmemWaitNxN ShmemWaitAtCreate ShmemWaitAtFree ShmemLockContentionSync
            ShmemLockContentionComm ShmemProgressSync ShmemProgressComm ShmemProgressSyncLastCall
            ShmemProgressCommLastCall ShmemProgressSyncServed ShmemProgressCommServed ShmemProgressSyncAway
            ShmemProgressCommAway
        ],
        /// Time in a call that waits for a change of memory until the operation of another PE that changed it.
        ShmemWaitUntil = "shmem_rma_wait_until" {
            display_name: "Wait until",
            below: "shmem_rma_synchronization",
            waits_for: "for a variable that another process sets late",
            look_at: "What the other process does before it sets the variable.",
            class: Some(Class::EarlyWait),
            document: "one-sided-shmem",
            source: "thesis, section 3.1.3",
            ..WAIT
        },
    } };
}
