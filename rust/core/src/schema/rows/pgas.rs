//! GASPI and UPC: bytes, and wait states. Both are partitioned global address spaces, hence the prefix.
//!
//! [`super`] says what stands in a row.

macro_rules! pgas {
    ([$($rest:ident)*] $($before:tt)*) => { one_sided_library! { [$($rest)*] { $($before)* }
        library: "GASPI and UPC", process: "process", prefix: "pgas",
        document: "one-sided-pgas",
        late_broadcast: "Time in a broadcast or scatter before the root arrived.",
        metrics: [
            PgasBytesPut PgasBytesGet PgasAtomicSent PgasAtomicReceived PgasBarrierWait PgasLateBroadcast
            PgasWaitNxN PgasWaitAtCreate PgasWaitAtFree PgasLockContentionSync PgasLockContentionComm
            PgasProgressSync PgasProgressComm PgasProgressSyncLastCall PgasProgressCommLastCall
            PgasProgressSyncServed PgasProgressCommServed PgasProgressSyncAway PgasProgressCommAway
        ],
        /// Time in a call that waits for a notification before the other process sent it.
        PgasWaitUntil = "pgas_rma_wait_until" {
            display_name: "Wait until",
            below: "pgas_rma_synchronization",
            waits_for: "for another process to notify it",
            look_at: "What the other process does before it notifies.",
            class: Some(Class::EarlyWait),
            document: "one-sided-notifications",
            source: "thesis, section 3.1",
            ..WAIT
        },
    } };
}
