//! Metrics whose values the analysis computes; all others derive from these.
//!
//! Values are exclusive along the call tree and inclusive along the metric tree. What an event or a wait state adds is an
//! integer number of ticks, occurrences or bytes ([`Metric`]); a share of a wait is a real number of ticks
//! ([`CostMetric`]). They are two types, so that neither can be booked as the other.

/// Metrics with cells of one type.
pub trait MetricSet: Copy + Ord + 'static {
    /// What stands in a cell.
    type Value: Copy + Default + PartialEq;

    /// All of them in the order of their numbers.
    const ALL: &'static [Self];

    /// Number of the metric, counted from 0.
    fn number(self) -> usize;

    /// The sum of two values.
    fn sum(a: Self::Value, b: Self::Value) -> Self::Value;
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Ticks inside, seconds outside.
    Time,
    /// Occurrences.
    Count,
    /// Bytes.
    Bytes,
}

macro_rules! metrics {
    (
        $(#[$doc_of_set:meta])*
        $set:ident of $value:ty, summed by $sum:expr; $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?
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

metrics! {
    /// What is counted or measured: the sum of its cells does not depend on the order.
    ///
    /// Times are bounded ([`crate::trace::Bounds`]), but the sizes that a damaged message claims are not: so sums saturate.
    Metric of i64, summed by i64::saturating_add;
    /// Exclusive time.
    Time = "time",
    /// Number of Enters.
    Visits = "visits",
    /// Time to finish `MPI_Init` after the first rank did.
    InitCompletion = "mpi_init_completion",
    /// Waiting for the last rank to enter `MPI_Finalize`.
    FinalizeWait = "mpi_finalize_wait",
    /// Waiting for the last rank to enter a barrier.
    BarrierWait = "mpi_barrier_wait",
    /// Time in a barrier after the first rank left it.
    BarrierCompletion = "mpi_barrier_completion",
    /// Waiting for the sender of a message.
    LateSender = "mpi_latesender",
    /// Late Sender while an earlier message was available.
    WrongOrder = "mpi_latesender_wo",
    /// Wrong order, messages from different sources.
    WrongOrderDifferent = "mpi_lswo_different",
    /// Wrong order, messages from the same source.
    WrongOrderSame = "mpi_lswo_same",
    /// Waiting for the receiver of a message.
    LateReceiver = "mpi_latereceiver",
    /// Root waiting for the last contribution to an N-to-1 operation.
    EarlyReduce = "mpi_earlyreduce",
    /// Waiting for a lower rank in a prefix operation.
    EarlyScan = "mpi_earlyscan",
    /// Waiting for the root of a 1-to-N operation.
    LateBroadcast = "mpi_latebroadcast",
    /// Waiting for the last rank in an N-to-N operation.
    WaitNxN = "mpi_wait_nxn",
    /// Time in an N-to-N operation after the first rank left it.
    NxNCompletion = "mpi_nxn_completion",
    /// Management of thread teams.
    OmpManagement = "omp_management",
    /// Start of thread teams.
    OmpFork = "omp_fork",
    /// Waiting at an explicit barrier between threads.
    OmpExplicitBarrierWait = "omp_ebarrier_wait",
    /// Waiting at an implicit barrier between threads.
    OmpImplicitBarrierWait = "omp_ibarrier_wait",
    /// Waiting for a critical construct.
    OmpCriticalContention = "omp_lock_contention_critical",
    /// Waiting for an OpenMP lock.
    OmpLockContention = "omp_lock_contention_api",
    /// Waiting for a mutex.
    MutexContention = "pthread_lock_contention_mutex_lock",
    /// Waiting for the mutex of a condition variable.
    ConditionContention = "pthread_lock_contention_conditional",
    /// Messages sent without payload.
    SyncsSend = "syncs_send",
    /// Late receivers of messages without payload.
    LateReceiverSyncs = "mpi_slr_count",
    /// Messages received without payload.
    SyncsReceive = "syncs_recv",
    /// Late senders of messages without payload.
    LateSenderSyncs = "mpi_sls_count",
    /// Messages without payload received in wrong order.
    WrongOrderSyncs = "mpi_slswo_count",
    /// Collective operations without payload.
    SyncsCollective = "syncs_coll",
    /// Messages sent with payload.
    CommsSend = "comms_send",
    /// Late receivers of messages with payload.
    LateReceiverComms = "mpi_clr_count",
    /// Messages received with payload.
    CommsReceive = "comms_recv",
    /// Late senders of messages with payload.
    LateSenderComms = "mpi_cls_count",
    /// Messages with payload received in wrong order.
    WrongOrderComms = "mpi_clswo_count",
    /// Collective operations that sent and received.
    CommsExchange = "comms_cxch",
    /// Collective operations that only sent.
    CommsSource = "comms_csrc",
    /// Collective operations that only received.
    CommsDestination = "comms_cdst",
    /// Bytes sent in messages.
    BytesSent = "bytes_sent",
    /// Bytes received in messages, as their senders sent them.
    BytesReceived = "bytes_rcvd",
    /// Bytes sent in collective operations.
    BytesOut = "bytes_cout",
    /// Bytes received in collective operations.
    BytesIn = "bytes_cin",
    /// Bytes of MPI puts.
    BytesPut = "bytes_put",
    /// Bytes of MPI gets.
    BytesGet = "bytes_get",
    /// What MPI atomics send, as recorded (with Score-P elements, not bytes).
    AtomicSent = "rma_atomic_sent",
    /// What MPI atomics bring back, as recorded (with Score-P elements, not bytes).
    AtomicReceived = "rma_atomic_received",
    /// Waiting for the last process to create a window.
    WaitAtCreate = "mpi_rma_wait_at_create",
    /// Waiting for the last process to free a window.
    WaitAtFree = "mpi_rma_wait_at_free",
    /// Waiting for the last process to enter a fence.
    WaitAtFence = "mpi_rma_wait_at_fence",
    /// Waiting in a fence for an operation that still runs.
    EarlyFence = "mpi_rma_early_fence",
    /// Waiting for a post, in start or complete.
    LatePostSync = "mpi_rma_sync_late_post",
    /// Waiting for a post, in an operation.
    LatePostComm = "mpi_rma_comm_late_post",
    /// Waiting in `MPI_Win_wait` for the last complete.
    EarlyWait = "mpi_rma_early_wait",
    /// Early Wait after the last operation.
    LateComplete = "mpi_rma_late_complete",
    /// Waiting for a lock, in a synchronization call.
    LockContentionSync = "mpi_rma_sync_lock_competition",
    /// Waiting for a lock, in an operation.
    LockContentionComm = "mpi_rma_comm_lock_competition",
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ProgressSync = "mpi_rma_sync_wait_for_progress",
    /// Waiting for the target's library, in an operation (lower bound).
    ProgressComm = "mpi_rma_comm_wait_for_progress",
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ProgressSyncLastCall = "mpi_rma_sync_wait_for_progress_last_call",
    /// Waiting for the target's library, in an operation (upper bound).
    ProgressCommLastCall = "mpi_rma_comm_wait_for_progress_last_call",
    /// Pairs of processes that a call synchronizes.
    PairSyncs = "mpi_rma_pairsync_count",
    /// Pairs without data.
    PairSyncsUnneeded = "mpi_rma_pairsync_unneeded_count",
    /// Pairs of PEs that a call synchronizes.
    ShmemPairSyncs = "shmem_rma_pairsync_count",
    /// Pairs of PEs without data.
    ShmemPairSyncsUnneeded = "shmem_rma_pairsync_unneeded_count",
    /// Pairs of ARMCI processes that a call synchronizes.
    ArmciPairSyncs = "armci_rma_pairsync_count",
    /// Pairs of ARMCI processes without data.
    ArmciPairSyncsUnneeded = "armci_rma_pairsync_unneeded_count",
    /// Bytes of OpenSHMEM puts.
    ShmemBytesPut = "shmem_bytes_put",
    /// Bytes of OpenSHMEM gets.
    ShmemBytesGet = "shmem_bytes_get",
    /// What OpenSHMEM atomics send, as recorded.
    ShmemAtomicSent = "shmem_rma_atomic_sent",
    /// What OpenSHMEM atomics bring back, as recorded.
    ShmemAtomicReceived = "shmem_rma_atomic_received",
    /// Waiting for the last PE in a barrier.
    ShmemBarrierWait = "shmem_barrier_wait",
    /// Waiting for the last PE in a broadcast.
    ShmemLateBroadcast = "shmem_latebroadcast",
    /// Waiting for the last PE in a reduction or collection.
    ShmemWaitNxN = "shmem_wait_nxn",
    /// Waiting for the last PE to allocate.
    ShmemWaitAtCreate = "shmem_rma_wait_at_create",
    /// Waiting for the last PE to free.
    ShmemWaitAtFree = "shmem_rma_wait_at_free",
    /// Waiting for a lock.
    ShmemLockContentionSync = "shmem_rma_sync_lock_competition",
    /// Waiting for a lock in an operation.
    ShmemLockContentionComm = "shmem_rma_comm_lock_competition",
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ShmemProgressSync = "shmem_rma_sync_wait_for_progress",
    /// Waiting for the target's library, in an operation (lower bound).
    ShmemProgressComm = "shmem_rma_comm_wait_for_progress",
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ShmemProgressSyncLastCall = "shmem_rma_sync_wait_for_progress_last_call",
    /// Waiting for the target's library, in an operation (upper bound).
    ShmemProgressCommLastCall = "shmem_rma_comm_wait_for_progress_last_call",
    /// Waiting for a write by another PE.
    ShmemWaitUntil = "shmem_rma_wait_until",
    /// Bytes of ARMCI puts.
    ArmciBytesPut = "armci_bytes_put",
    /// Bytes of ARMCI gets.
    ArmciBytesGet = "armci_bytes_get",
    /// What ARMCI atomics send, as recorded.
    ArmciAtomicSent = "armci_rma_atomic_sent",
    /// What ARMCI atomics bring back, as recorded.
    ArmciAtomicReceived = "armci_rma_atomic_received",
    /// Waiting for the last process in a barrier.
    ArmciBarrierWait = "armci_barrier_wait",
    /// Waiting for the last process in a broadcast.
    ArmciLateBroadcast = "armci_latebroadcast",
    /// Waiting for the last process in a reduction or collection.
    ArmciWaitNxN = "armci_wait_nxn",
    /// Waiting for the last process to allocate.
    ArmciWaitAtCreate = "armci_rma_wait_at_create",
    /// Waiting for the last process to free.
    ArmciWaitAtFree = "armci_rma_wait_at_free",
    /// Waiting for a lock.
    ArmciLockContentionSync = "armci_rma_sync_lock_competition",
    /// Waiting for a lock in an operation.
    ArmciLockContentionComm = "armci_rma_comm_lock_competition",
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ArmciProgressSync = "armci_rma_sync_wait_for_progress",
    /// Waiting for the target's library, in an operation (lower bound).
    ArmciProgressComm = "armci_rma_comm_wait_for_progress",
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ArmciProgressSyncLastCall = "armci_rma_sync_wait_for_progress_last_call",
    /// Waiting for the target's library, in an operation (upper bound).
    ArmciProgressCommLastCall = "armci_rma_comm_wait_for_progress_last_call",
    /// Waiting for the notification of another process.
    ArmciWaitUntil = "armci_rma_wait_until",
    /// Time on the critical path.
    CriticalPath = "critical_path",
    /// Time in call paths that are on the critical path somewhere.
    CriticalPathActivities = "critical_path_activities",
    /// Time in call paths beyond what the critical path has of them.
    NonCriticalPathActivities = "non_critical_path_activities",
}

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
    /// Costs that delays cause directly: Late Broadcast.
    DelayLateBroadcast = "delay_12n",
    /// Costs that delays cause through other waits: Late Broadcast.
    DelayLateBroadcastLongTerm = "delay_12n_longterm",
    /// Costs that delays cause directly: Early Reduce.
    DelayEarlyReduce = "delay_n21",
    /// Costs that delays cause through other waits: Early Reduce.
    DelayEarlyReduceLongTerm = "delay_n21_longterm",
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
    /// Costs of time in which others waited for a lock.
    IntervalDelayLock = "interval_delay_lock",
    /// Costs of such time through waits for a lock.
    IntervalDelayLockLongTerm = "interval_delay_lock_longterm",
    /// Costs for which neither work nor a wait can be blamed.
    DelayUnattributed = "delay_unattributed",
    /// Waiting that earlier waits of the causing process explain: Late Sender.
    IndirectLateSender = "mpi_wait_indirect_latesender",
    /// Waiting that earlier waits of the causing process explain: Late Receiver.
    IndirectLateReceiver = "mpi_wait_indirect_latereceiver",
    /// Waiting that earlier waits of the causing process explain: Wait at Barrier.
    IndirectBarrier = "mpi_wait_indirect_barrier",
    /// Waiting that earlier waits of the causing process explain: Wait at N x N.
    IndirectNxN = "mpi_wait_indirect_n2n",
    /// Waiting that earlier waits of the causing process explain: Late Broadcast.
    IndirectLateBroadcast = "mpi_wait_indirect_12n",
    /// Waiting that earlier waits of the causing process explain: Early Reduce.
    IndirectEarlyReduce = "mpi_wait_indirect_n21",
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
    /// Waiting that made others wait later: Late Sender.
    PropagatingLateSender = "mpi_wait_propagating_ls",
    /// Waiting that made others wait later: Late Receiver.
    PropagatingLateReceiver = "mpi_wait_propagating_lr",
    /// Waiting that made others wait later: Wait at Barrier.
    PropagatingBarrier = "mpi_wait_propagating_barrier",
    /// Waiting that made others wait later: Wait at N x N.
    PropagatingNxN = "mpi_wait_propagating_n2n",
    /// Waiting that made others wait later: Late Broadcast.
    PropagatingLateBroadcast = "mpi_wait_propagating_12n",
    /// Waiting that made others wait later: Early Reduce.
    PropagatingEarlyReduce = "mpi_wait_propagating_n21",
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
    /// What an even distribution of the critical path's activities would gain.
    CriticalImbalanceImpact = "critical_imbalance_impact",
    /// The part of it between processes that do different work.
    InterPartitionImbalance = "inter_partition_imbalance",
    /// What waits exceed all by that they are shared out among.
    WaitUnexplained = "wait_unexplained",
}

/// Number of metrics that are counted or measured.
pub(super) const COUNT: usize = Metric::ALL.len();

impl Metric {
    /// What its values count.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Visits
            | Self::SyncsSend
            | Self::LateReceiverSyncs
            | Self::SyncsReceive
            | Self::LateSenderSyncs
            | Self::WrongOrderSyncs
            | Self::SyncsCollective
            | Self::CommsSend
            | Self::LateReceiverComms
            | Self::CommsReceive
            | Self::LateSenderComms
            | Self::WrongOrderComms
            | Self::CommsExchange
            | Self::CommsSource
            | Self::CommsDestination
            | Self::PairSyncs
            | Self::PairSyncsUnneeded
            | Self::ShmemPairSyncs
            | Self::ShmemPairSyncsUnneeded
            | Self::ArmciPairSyncs
            | Self::ArmciPairSyncsUnneeded => Unit::Count,
            Self::BytesSent
            | Self::BytesReceived
            | Self::BytesOut
            | Self::BytesIn
            | Self::BytesPut
            | Self::BytesGet
            | Self::AtomicSent
            | Self::AtomicReceived
            | Self::ShmemBytesPut
            | Self::ShmemBytesGet
            | Self::ShmemAtomicSent
            | Self::ShmemAtomicReceived
            | Self::ArmciBytesPut
            | Self::ArmciBytesGet
            | Self::ArmciAtomicSent
            | Self::ArmciAtomicReceived => Unit::Bytes,
            _ => Unit::Time,
        }
    }
}

impl CostMetric {
    /// Whether it says who pays for waiting: the delay costs of a class, or what nobody pays for.
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
