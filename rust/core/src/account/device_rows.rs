//! The rows of the account of devices.

use super::rows::labelled;
use crate::severity::Metric;

labelled! {
    /// What a moment of a device is.
    DeviceRow;
    /// A kernel runs that does not communicate.
    Kernel = "busy.kernel", "Kernels";
    /// Only kernels run that communicate, and one of an N-to-N operation waits for other devices.
    WaitNxN = "comm.wait.nxn", "Waits at N x N";
    /// Only kernels run that communicate, and one of a barrier waits for other devices.
    WaitBarrier = "comm.wait.barrier", "Waits at barriers";
    /// Only kernels run that communicate, and one of a 1-to-N operation waits for the root.
    WaitBroadcast = "comm.wait.broadcast", "Waits for broadcasts";
    /// Only kernels run that communicate, and the root of an N-to-1 operation waits for others.
    WaitReduce = "comm.wait.reduce", "Waits for reductions";
    /// Only kernels run that communicate, and one that receives waits for the sender.
    WaitReceive = "comm.wait.recv", "Waits for senders";
    /// Only kernels run that communicate, and one that sends waits for the receiver.
    WaitSend = "comm.wait.send", "Waits for receivers";
    /// Only kernels run that communicate, none of them waits, and one takes no longer than such a transfer needs.
    Transfer = "comm.transfer", "Transfers between devices";
    /// Only kernels run that communicate, longer than such transfers need.
    Excess = "comm.excess", "Transfers, excess";
    /// Only kernels run that communicate, and with whom is not known.
    Unmatched = "comm.unmatched", "Communication, unmatched";
    /// Only kernels run that communicate, also with ranks that are not in the trace: they transfer, or wait for these.
    Unseen = "comm.unseen", "Communication with ranks without a trace";
    /// A copy runs, and no kernel.
    Copy = "busy.copy", "Copies";
    /// A kernel was launched but does not run yet, and nothing else does.
    Latency = "latency", "Launch latency";
    /// Idle while a host that launches its kernels loads data.
    Loading = "starved.loading", "Idle, host loads data";
    /// Idle while such a host collects garbage.
    Garbage = "starved.gc", "Idle, host collects garbage";
    /// Idle while such a host compiles kernels, or loads their code.
    Compile = "starved.compile", "Idle, host compiles";
    /// Idle while such a host computes otherwise.
    Host = "starved.host", "Idle, host computes";
    /// Idle while such a host is in a wait state of communication or threads.
    Waits = "starved.comm", "Idle, host waits";
    /// Idle while such a host is in a library without waiting.
    Library = "starved.library", "Idle, host in a library";
    /// Idle while such a host allocates or frees memory of devices.
    Allocation = "starved.alloc", "Idle, host allocates";
    /// Idle while such a host is in a call that waits for devices.
    Synchronization = "starved.sync", "Idle, host ends a synchronization";
    /// Idle while such a host is in another call that concerns devices: a launch, a memset, a copy.
    DeviceCall = "starved.call", "Idle, host in a device call";
    /// Idle while such a host waits for another device.
    OtherDevice = "starved.other_device", "Idle, other device runs";
    /// Idle while the measurement system runs.
    Profiler = "profiler", "Idle, measurement";
    /// Idle before the first launch, outside of all regions of such hosts.
    BeforeFirst = "before_first", "Idle, before the first launch";
    /// Idle after the last launch, outside of all regions of such hosts.
    AfterLast = "after_last", "Idle, after the last launch";
    /// Idle, and the trace does not say what such hosts do.
    Unknown = "unknown", "Idle, unknown";
}

impl DeviceRow {
    /// The row of kernels that wait.
    pub(super) fn of_wait(kind: Metric) -> Self {
        match kind {
            Metric::CclBarrierWait => Self::WaitBarrier,
            Metric::CclLateBroadcast => Self::WaitBroadcast,
            Metric::CclEarlyReduce => Self::WaitReduce,
            Metric::CclLateSender => Self::WaitReceive,
            Metric::CclLateReceiver => Self::WaitSend,
            _ => Self::WaitNxN,
        }
    }
}
