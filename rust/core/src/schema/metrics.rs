//! Metrics that the analysis computes; all others derive from these.
//!
//! Values are exclusive along the call tree and inclusive along the metric tree. Events and wait states add an integer
//! number of ticks, occurrences or bytes ([`Metric`]); a share of a wait is a real number of ticks ([`CostMetric`]).
//! These are two types, so that they cannot be confused.

/// Metrics with cells of one type.
pub trait MetricSet: Copy + Ord + 'static {
    /// Type of a cell.
    type Value: Copy + Default + PartialEq;

    /// All of them in the order of their numbers.
    const ALL: &'static [Self];

    /// Number of the metric, counted from 0.
    fn number(self) -> usize;

    /// The sum of two values.
    fn sum(a: Self::Value, b: Self::Value) -> Self::Value;

    /// For each metric number, whether the metric is one of `some`.
    fn marked(some: impl IntoIterator<Item = Self>) -> Vec<bool> {
        let mut marks = vec![false; Self::ALL.len()];
        for metric in some {
            marks[metric.number()] = true;
        }
        marks
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Ticks in the core, seconds in results.
    Time,
    /// Occurrences.
    Count,
    /// Bytes.
    Bytes,
}

macro_rules! metrics {
    (
        $(#[$doc_of_set:meta])*
        $set:ident of $value:ty, summed by $sum:expr; $($(#[$doc:meta])* $variant:ident = $name:expr),+ $(,)?
    ) => {
        $(#[$doc_of_set])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bitcode::Encode, bitcode::Decode,
        )]
        #[repr(u8)]
        pub enum $set {
            $($(#[$doc])* $variant),+
        }

        impl $set {
            /// All of them in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Unique name, as in Scalasca and Cube.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl $crate::schema::MetricSet for $set {
            type Value = $value;

            const ALL: &'static [Self] = Self::ALL;

            #[inline]
            fn number(self) -> usize {
                self as usize
            }

            #[inline]
            fn sum(a: $value, b: $value) -> $value {
                $sum(a, b)
            }
        }
    };
}

pub(super) use metrics;

/// Declares the metrics of all rows.
macro_rules! metrics_of_rows {
    ([] $($(#[doc = $doc:expr])+ $variant:ident = $name:tt $(in $unit:ident)? $({ $($field:tt)* })?,)+) => {
        metrics! {
            /// Metrics with integer values, whose sums do not depend on the order.
            ///
            /// Times are bounded ([`crate::trace::Bounds`]), but message sizes in a damaged trace are not, so sums
            /// saturate.
            Metric of i64, summed by i64::saturating_add;
            $($(#[doc = $doc])+ $variant = $name),+
        }

        impl Metric {
            /// What its values count.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$variant => unit!($($unit)?)),+ }
            }

            /// What it is, in a sentence.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii_start()),+ }
            }
        }
    };
}

macro_rules! unit {
    () => {
        Unit::Time
    };
    ($unit:ident) => {
        Unit::$unit
    };
}

with_rows!(metrics_of_rows);

metrics! {
    /// Shares of waiting, of delays and of the critical path: real numbers of ticks.
    CostMetric of f64, summed by std::ops::Add::add;
    /// Costs that delays cause directly: Late Sender.
    DelayLateSender = "delay_latesender",
    /// Costs that delays cause through other waits: Late Sender.
    DelayLateSenderLongTerm = "delay_latesender_longterm",
    /// Costs that delays cause directly: Late Receiver.
    DelayLateReceiver = "delay_latereceiver",
    /// Costs that delays cause through other waits: Late Receiver.
    DelayLateReceiverLongTerm = "delay_latereceiver_longterm",
    /// Costs that delays cause directly: Wait at Barrier.
    DelayBarrier = "delay_barrier",
    /// Costs that delays cause through other waits: Wait at Barrier.
    DelayBarrierLongTerm = "delay_barrier_longterm",
    /// Costs that delays cause directly: Wait at N x N.
    DelayNxN = "delay_n2n",
    /// Costs that delays cause through other waits: Wait at N x N.
    DelayNxNLongTerm = "delay_n2n_longterm",
    /// Costs that delays cause directly: Wait at Collective I/O.
    DelayIo = "delay_io",
    /// Costs that delays cause through other waits: Wait at Collective I/O.
    DelayIoLongTerm = "delay_io_longterm",
    /// Costs that delays cause directly: Late Broadcast.
    DelayLateBroadcast = "delay_12n",
    /// Costs that delays cause through other waits: Late Broadcast.
    DelayLateBroadcastLongTerm = "delay_12n_longterm",
    /// Costs that delays cause directly: Early Reduce.
    DelayEarlyReduce = "delay_n21",
    /// Costs that delays cause through other waits: Early Reduce.
    DelayEarlyReduceLongTerm = "delay_n21_longterm",
    /// Costs that delays cause directly: Wait in Tree.
    DelayTree = "delay_tree",
    /// Costs that delays cause through other waits: Wait in Tree.
    DelayTreeLongTerm = "delay_tree_longterm",
    /// Costs that delays cause directly: waiting at barriers of threads.
    DelayOmpBarrier = "delay_ompbarrier",
    /// Costs that delays cause through other waits: waiting at barriers of threads.
    DelayOmpBarrierLongTerm = "delay_ompbarrier_longterm",
    /// Costs that delays cause directly: idle threads.
    DelayOmpIdle = "delay_ompidle",
    /// Costs that delays cause through other waits: idle threads.
    DelayOmpIdleLongTerm = "delay_ompidle_longterm",
    /// Costs that delays cause directly: Wait at Create.
    DelayCreate = "delay_rma_create",
    /// Costs that delays cause through other waits: Wait at Create.
    DelayCreateLongTerm = "delay_rma_create_longterm",
    /// Costs that delays cause directly: Wait at Free.
    DelayFree = "delay_rma_free",
    /// Costs that delays cause through other waits: Wait at Free.
    DelayFreeLongTerm = "delay_rma_free_longterm",
    /// Costs that delays cause directly: Wait at Fence.
    DelayFence = "delay_rma_fence",
    /// Costs that delays cause through other waits: Wait at Fence.
    DelayFenceLongTerm = "delay_rma_fence_longterm",
    /// Costs that delays cause directly: Late Post.
    DelayLatePost = "delay_rma_late_post",
    /// Costs that delays cause through other waits: Late Post.
    DelayLatePostLongTerm = "delay_rma_late_post_longterm",
    /// Costs that delays cause directly: Early Wait.
    DelayEarlyWait = "delay_rma_early_wait",
    /// Costs that delays cause through other waits: Early Wait.
    DelayEarlyWaitLongTerm = "delay_rma_early_wait_longterm",
    /// Costs that delays cause directly: Wait for Progress.
    DelayProgress = "delay_rma_progress",
    /// Costs that delays cause through other waits: Wait for Progress.
    DelayProgressLongTerm = "delay_rma_progress_longterm",
    /// Costs that delays cause through other waits: lock contention.
    DelayLockLongTerm = "delay_lock_longterm",
    /// Costs that delays cause through other waits: lock contention of threads.
    DelayThreadLockLongTerm = "delay_threadlock_longterm",
    /// Costs that delays cause through other waits: waiting for tasks.
    DelayTaskLongTerm = "delay_task_longterm",
    /// Costs that delays cause directly: waiting for the end of a thread.
    DelayJoin = "delay_join",
    /// Costs that delays cause through other waits: waiting for the end of a thread.
    DelayJoinLongTerm = "delay_join_longterm",
    /// Costs that delays cause directly: waiting for a signal.
    DelaySignal = "delay_signal",
    /// Costs that delays cause through other waits: waiting for a signal.
    DelaySignalLongTerm = "delay_signal_longterm",
    /// Costs that delays cause directly: waiting at barriers of POSIX threads.
    DelayPthreadBarrier = "delay_pthreadbarrier",
    /// Costs that delays cause through other waits: waiting at barriers of POSIX threads.
    DelayPthreadBarrierLongTerm = "delay_pthreadbarrier_longterm",
    /// Costs that delays cause directly: hosts that wait for devices.
    DelayGpuHost = "delay_gpu_host",
    /// Costs that delays cause through other waits: hosts that wait for devices.
    DelayGpuHostLongTerm = "delay_gpu_host_longterm",
    /// Costs that delays cause directly: devices that wait for hosts.
    DelayGpuDevice = "delay_gpu_device",
    /// Costs that delays cause through other waits: devices that wait for hosts.
    DelayGpuDeviceLongTerm = "delay_gpu_device_longterm",
    /// Costs that delays cause directly: devices that wait for each other.
    DelayCcl = "delay_ccl",
    /// Costs that delays cause through other waits: devices that wait for each other.
    DelayCclLongTerm = "delay_ccl_longterm",
    /// Costs of the time in which others waited for a lock.
    IntervalDelayLock = "interval_delay_lock",
    /// Costs of that time through waits for a lock.
    IntervalDelayLockLongTerm = "interval_delay_lock_longterm",
    /// Costs of the time in which others waited for a task.
    IntervalDelayTask = "interval_delay_task",
    /// Costs of that time through waits for a task.
    IntervalDelayTaskLongTerm = "interval_delay_task_longterm",
    /// Costs that neither work nor a wait explains.
    DelayUnattributed = "delay_unattributed",
    /// Waiting that earlier waits of the causing process explain: Late Sender.
    IndirectLateSender = "mpi_wait_indirect_latesender",
    /// Waiting that earlier waits of the causing process explain: Late Receiver.
    IndirectLateReceiver = "mpi_wait_indirect_latereceiver",
    /// Waiting that earlier waits of the causing process explain: Wait at Barrier.
    IndirectBarrier = "mpi_wait_indirect_barrier",
    /// Waiting that earlier waits of the causing process explain: Wait at N x N.
    IndirectNxN = "mpi_wait_indirect_n2n",
    /// Waiting that earlier waits of the causing process explain: Wait at Collective I/O.
    IndirectIo = "mpi_wait_indirect_io",
    /// Waiting that earlier waits of the causing process explain: Late Broadcast.
    IndirectLateBroadcast = "mpi_wait_indirect_12n",
    /// Waiting that earlier waits of the causing process explain: Early Reduce.
    IndirectEarlyReduce = "mpi_wait_indirect_n21",
    /// Waiting that earlier waits of the causing process explain: Wait in Tree.
    IndirectTree = "mpi_wait_indirect_tree",
    /// Waiting that earlier waits of the causing process explain: Wait at Create.
    IndirectCreate = "mpi_wait_indirect_rma_create",
    /// Waiting that earlier waits of the causing process explain: Wait at Free.
    IndirectFree = "mpi_wait_indirect_rma_free",
    /// Waiting that earlier waits of the causing process explain: Wait at Fence.
    IndirectFence = "mpi_wait_indirect_rma_fence",
    /// Waiting that earlier waits of the causing process explain: Late Post.
    IndirectLatePost = "mpi_wait_indirect_rma_late_post",
    /// Waiting that earlier waits of the causing process explain: Early Wait.
    IndirectEarlyWait = "mpi_wait_indirect_rma_early_wait",
    /// Waiting that earlier waits of the causing process explain: Wait for Progress.
    IndirectProgress = "mpi_wait_indirect_rma_progress",
    /// Waiting that earlier waits of the causing process explain: lock contention.
    IndirectLock = "mpi_wait_indirect_lock",
    /// Waiting that earlier waits of the causing thread explain: waiting at barriers of threads.
    IndirectOmpBarrier = "mpi_wait_indirect_ompbarrier",
    /// Waiting that waits of the lock's owners explain: lock contention of threads.
    IndirectThreadLock = "mpi_wait_indirect_threadlock",
    /// Waiting that waits of the thread which runs the task explain: waiting for tasks.
    IndirectTask = "mpi_wait_indirect_task",
    /// Waiting that earlier waits of the causing thread explain: waiting for the end of a thread.
    IndirectJoin = "mpi_wait_indirect_join",
    /// Waiting that earlier waits of the causing thread explain: waiting for a signal.
    IndirectSignal = "mpi_wait_indirect_signal",
    /// Waiting that earlier waits of the causing thread explain: waiting at barriers of POSIX threads.
    IndirectPthreadBarrier = "mpi_wait_indirect_pthreadbarrier",
    /// Waiting that earlier waits of the causing side explain: hosts that wait for devices.
    IndirectGpuHost = "mpi_wait_indirect_gpu_host",
    /// Waiting that earlier waits of the causing side explain: devices that wait for hosts.
    IndirectGpuDevice = "mpi_wait_indirect_gpu_device",
    /// Waiting that earlier waits of the causing side explain: devices that wait for each other.
    IndirectCcl = "mpi_wait_indirect_ccl",
    /// Waiting that made others wait later: Late Sender.
    PropagatingLateSender = "mpi_wait_propagating_ls",
    /// Waiting that made others wait later: Late Receiver.
    PropagatingLateReceiver = "mpi_wait_propagating_lr",
    /// Waiting that made others wait later: Wait at Barrier.
    PropagatingBarrier = "mpi_wait_propagating_barrier",
    /// Waiting that made others wait later: Wait at N x N.
    PropagatingNxN = "mpi_wait_propagating_n2n",
    /// Waiting that made others wait later: Wait at Collective I/O.
    PropagatingIo = "mpi_wait_propagating_io",
    /// Waiting that made others wait later: Late Broadcast.
    PropagatingLateBroadcast = "mpi_wait_propagating_12n",
    /// Waiting that made others wait later: Early Reduce.
    PropagatingEarlyReduce = "mpi_wait_propagating_n21",
    /// Waiting that made others wait later: Wait in Tree.
    PropagatingTree = "mpi_wait_propagating_tree",
    /// Waiting that made others wait later: waiting at barriers of threads.
    PropagatingOmpBarrier = "mpi_wait_propagating_ompbarrier",
    /// Waiting that made others wait later: Wait at Create.
    PropagatingCreate = "mpi_wait_propagating_rma_create",
    /// Waiting that made others wait later: Wait at Free.
    PropagatingFree = "mpi_wait_propagating_rma_free",
    /// Waiting that made others wait later: Wait at Fence.
    PropagatingFence = "mpi_wait_propagating_rma_fence",
    /// Waiting that made others wait later: Late Post.
    PropagatingLatePost = "mpi_wait_propagating_rma_late_post",
    /// Waiting that made others wait later: Early Wait.
    PropagatingEarlyWait = "mpi_wait_propagating_rma_early_wait",
    /// Waiting that made others wait later: Wait for Progress.
    PropagatingProgress = "mpi_wait_propagating_rma_progress",
    /// Waiting that made others wait later: lock contention.
    PropagatingLock = "mpi_wait_propagating_lock",
    /// Waiting that made others wait later: lock contention of threads.
    PropagatingThreadLock = "mpi_wait_propagating_threadlock",
    /// Waiting that made others wait later: waiting for tasks.
    PropagatingTask = "mpi_wait_propagating_task",
    /// Waiting that made others wait later: waiting for the end of a thread.
    PropagatingJoin = "mpi_wait_propagating_join",
    /// Waiting that made others wait later: waiting for a signal.
    PropagatingSignal = "mpi_wait_propagating_signal",
    /// Waiting that made others wait later: waiting at barriers of POSIX threads.
    PropagatingPthreadBarrier = "mpi_wait_propagating_pthreadbarrier",
    /// Waiting that made others wait later: hosts that wait for devices.
    PropagatingGpuHost = "mpi_wait_propagating_gpu_host",
    /// Waiting that made others wait later: devices that wait for hosts.
    PropagatingGpuDevice = "mpi_wait_propagating_gpu_device",
    /// Waiting that made others wait later: devices that wait for each other.
    PropagatingCcl = "mpi_wait_propagating_ccl",
    /// The gain from distributing the activities of the critical path evenly.
    CriticalImbalanceImpact = "critical_imbalance_impact",
    /// The part of it between processes that do different work.
    InterPartitionImbalance = "inter_partition_imbalance",
    /// The part of waits that exceeds everything they can be attributed to.
    WaitUnexplained = "wait_unexplained",
}

/// Number of integer metrics.
pub(super) const COUNT: usize = Metric::ALL.len();

impl CostMetric {
    /// Whether it is a delay cost: of a class, or unattributed.
    #[must_use]
    pub fn is_delay_cost(self) -> bool {
        (Self::DelayLateSender..=Self::DelayUnattributed).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let names = Metric::ALL.iter().map(|metric| metric.name());
        let names: std::collections::BTreeSet<_> =
            names.chain(CostMetric::ALL.iter().map(|metric| metric.name())).collect();
        assert_eq!(names.len(), Metric::ALL.len() + CostMetric::ALL.len());
    }
}
