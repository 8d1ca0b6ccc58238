//! ARMCI: bytes, and wait states.
//!
//! [`super`] says what stands in a row.

macro_rules! armci {
    ([$($rest:ident)*] $($before:tt)*) => { one_sided_library! { [$($rest)*] { $($before)* }
        library: "ARMCI", process: "process", prefix: "armci",
        document: "one-sided-armci",
        late_broadcast: "Time in a broadcast before the last process arrived, if all were in it at the same time.",
        metrics: [
            ArmciBytesPut ArmciBytesGet ArmciAtomicSent ArmciAtomicReceived ArmciBarrierWait
            ArmciLateBroadcast ArmciWaitNxN ArmciWaitAtCreate ArmciWaitAtFree ArmciLockContentionSync
            ArmciLockContentionComm ArmciProgressSync ArmciProgressComm ArmciProgressSyncLastCall
            ArmciProgressCommLastCall ArmciProgressSyncServed ArmciProgressCommServed ArmciProgressSyncAway
            ArmciProgressCommAway
        ],
        /// Time in a call that waits for a notification before the other process sent it.
        ArmciWaitUntil = "armci_rma_wait_until" {
            display_name: "Wait until",
            below: "armci_rma_synchronization",
            waits_for: "for another process to notify it",
            look_at: "What the other process does before it notifies.",
            class: Some(Class::EarlyWait),
            document: "one-sided-notifications",
            source: "thesis, section 3.1",
            ..WAIT
        },
    } };
}
