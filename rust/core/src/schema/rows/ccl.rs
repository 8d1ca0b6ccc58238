//! Communication of devices (NCCL, RCCL): kernels that wait for those of other devices.
//!
//! [`super`] says what stands in a row.

macro_rules! ccl {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Exposed time in a kernel of a barrier before the last device began it.
        CclBarrierWait = "ccl_wait_barrier" {
            display_name: "Wait at Barrier (devices)",
            waits_for: "for the last device to reach the barrier",
            look_at: LAST_DEVICE,
            ..CCL
        },
        /// Exposed time in a kernel of an N-to-N operation before the last device began it.
        CclWaitNxN = "ccl_wait_nxn" {
            display_name: "Wait at N x N (devices)",
            waits_for: "for the last device to begin the operation",
            look_at: LAST_DEVICE,
            ..CCL
        },
        /// Exposed time in a kernel of a 1-to-N operation before the root began it.
        CclLateBroadcast = "ccl_late_broadcast" {
            display_name: "Late Broadcast (devices)",
            waits_for: "for the root to begin the operation",
            look_at: "What the device and the host of the root do before the operation.",
            ..CCL
        },
        /// Exposed time in the root's kernel of an N-to-1 operation before the last device began it.
        CclEarlyReduce = "ccl_early_reduce" {
            display_name: "Early Reduce (devices)",
            waits_for: "for the last device to contribute",
            look_at: LAST_DEVICE,
            ..CCL
        },
        /// Exposed time in a kernel that receives before the device of the sender began to send.
        CclLateSender = "ccl_latesender" {
            display_name: "Late Sender (devices)",
            waits_for: "for the sending device to begin",
            look_at: "What the device and the host of the sender do before they send: in a pipeline, the stage before.",
            ..CCL
        },
        /// Exposed time in a kernel that sends before the device of the receiver began to receive.
        CclLateReceiver = "ccl_latereceiver" {
            display_name: "Late Receiver (devices)",
            waits_for: "for the receiving device to begin",
            look_at: "What the device and the host of the receiver do before they receive: in a pipeline, the stage behind.",
            ..CCL
        },
        /// Time in such kernels before others began, while other kernels ran on the device: it costs nothing.
        CclHidden = "ccl_hidden",
    } };
}
