//! Severities: a value for each metric, call path and location.

use bitcode::{Decode, Encode};

use crate::trace::CallTree;

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal in $unit:ident),+ $(,)?) => {
        /// Metrics whose values the analysis computes; all others derive from these.
        ///
        /// Values are exclusive along the call tree and inclusive along the metric tree.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[repr(u8)]
        pub enum Metric {
            $($(#[$doc])* $variant),+
        }

        impl Metric {
            /// All metrics in the order of their numbers.
            pub const ALL: &'static [Metric] = &[$(Metric::$variant),+];

            /// Unique name, as in Scalasca and Cube.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What its values count.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit),+ }
            }
        }
    };
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

metrics! {
    /// Exclusive time.
    Time = "time" in Time,
    /// Number of Enters.
    Visits = "visits" in Count,
    /// Time to finish `MPI_Init` after the first rank did.
    InitCompletion = "mpi_init_completion" in Time,
    /// Waiting for the last rank to enter `MPI_Finalize`.
    FinalizeWait = "mpi_finalize_wait" in Time,
    /// Waiting for the last rank to enter a barrier.
    BarrierWait = "mpi_barrier_wait" in Time,
    /// Time in a barrier after the first rank left it.
    BarrierCompletion = "mpi_barrier_completion" in Time,
    /// Waiting for the sender of a message.
    LateSender = "mpi_latesender" in Time,
    /// Late Sender while an earlier message was available.
    WrongOrder = "mpi_latesender_wo" in Time,
    /// Wrong order, messages from different sources.
    WrongOrderDifferent = "mpi_lswo_different" in Time,
    /// Wrong order, messages from the same source.
    WrongOrderSame = "mpi_lswo_same" in Time,
    /// Waiting for the receiver of a message.
    LateReceiver = "mpi_latereceiver" in Time,
    /// Root waiting for the last contribution to an N-to-1 operation.
    EarlyReduce = "mpi_earlyreduce" in Time,
    /// Waiting for a lower rank in a prefix operation.
    EarlyScan = "mpi_earlyscan" in Time,
    /// Waiting for the root of a 1-to-N operation.
    LateBroadcast = "mpi_latebroadcast" in Time,
    /// Waiting for the last rank in an N-to-N operation.
    WaitNxN = "mpi_wait_nxn" in Time,
    /// Time in an N-to-N operation after the first rank left it.
    NxNCompletion = "mpi_nxn_completion" in Time,
    /// Management of thread teams.
    OmpManagement = "omp_management" in Time,
    /// Start of thread teams.
    OmpFork = "omp_fork" in Time,
    /// Waiting at an explicit barrier between threads.
    OmpExplicitBarrierWait = "omp_ebarrier_wait" in Time,
    /// Waiting at an implicit barrier between threads.
    OmpImplicitBarrierWait = "omp_ibarrier_wait" in Time,
    /// Waiting for a critical construct.
    OmpCriticalContention = "omp_lock_contention_critical" in Time,
    /// Waiting for an OpenMP lock.
    OmpLockContention = "omp_lock_contention_api" in Time,
    /// Waiting for a mutex.
    MutexContention = "pthread_lock_contention_mutex_lock" in Time,
    /// Waiting for the mutex of a condition variable.
    ConditionContention = "pthread_lock_contention_conditional" in Time,
    /// Messages sent without payload.
    SyncsSend = "syncs_send" in Count,
    /// Late receivers of messages without payload.
    LateReceiverSyncs = "mpi_slr_count" in Count,
    /// Messages received without payload.
    SyncsReceive = "syncs_recv" in Count,
    /// Late senders of messages without payload.
    LateSenderSyncs = "mpi_sls_count" in Count,
    /// Messages without payload received in wrong order.
    WrongOrderSyncs = "mpi_slswo_count" in Count,
    /// Collective operations without payload.
    SyncsCollective = "syncs_coll" in Count,
    /// Messages sent with payload.
    CommsSend = "comms_send" in Count,
    /// Late receivers of messages with payload.
    LateReceiverComms = "mpi_clr_count" in Count,
    /// Messages received with payload.
    CommsReceive = "comms_recv" in Count,
    /// Late senders of messages with payload.
    LateSenderComms = "mpi_cls_count" in Count,
    /// Messages with payload received in wrong order.
    WrongOrderComms = "mpi_clswo_count" in Count,
    /// Collective operations that sent and received.
    CommsExchange = "comms_cxch" in Count,
    /// Collective operations that only sent.
    CommsSource = "comms_csrc" in Count,
    /// Collective operations that only received.
    CommsDestination = "comms_cdst" in Count,
    /// Bytes sent in messages.
    BytesSent = "bytes_sent" in Bytes,
    /// Bytes received in messages, as their senders sent them.
    BytesReceived = "bytes_rcvd" in Bytes,
    /// Bytes sent in collective operations.
    BytesOut = "bytes_cout" in Bytes,
    /// Bytes received in collective operations.
    BytesIn = "bytes_cin" in Bytes,
    /// Bytes of MPI puts.
    BytesPut = "bytes_put" in Bytes,
    /// Bytes of MPI gets.
    BytesGet = "bytes_get" in Bytes,
    /// What MPI atomics send, as recorded (with Score-P elements, not bytes).
    AtomicSent = "rma_atomic_sent" in Bytes,
    /// What MPI atomics bring back, as recorded (with Score-P elements, not bytes).
    AtomicReceived = "rma_atomic_received" in Bytes,
    /// Waiting for the last process to create a window.
    WaitAtCreate = "mpi_rma_wait_at_create" in Time,
    /// Waiting for the last process to free a window.
    WaitAtFree = "mpi_rma_wait_at_free" in Time,
    /// Waiting for the last process to enter a fence.
    WaitAtFence = "mpi_rma_wait_at_fence" in Time,
    /// Waiting in a fence for an operation that still runs.
    EarlyFence = "mpi_rma_early_fence" in Time,
    /// Waiting for a post, in start or complete.
    LatePostSync = "mpi_rma_sync_late_post" in Time,
    /// Waiting for a post, in an operation.
    LatePostComm = "mpi_rma_comm_late_post" in Time,
    /// Waiting in `MPI_Win_wait` for the last complete.
    EarlyWait = "mpi_rma_early_wait" in Time,
    /// Early Wait after the last operation.
    LateComplete = "mpi_rma_late_complete" in Time,
    /// Waiting for a lock, in a synchronization call.
    LockContentionSync = "mpi_rma_sync_lock_competition" in Time,
    /// Waiting for a lock, in an operation.
    LockContentionComm = "mpi_rma_comm_lock_competition" in Time,
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ProgressSync = "mpi_rma_sync_wait_for_progress" in Time,
    /// Waiting for the target's library, in an operation (lower bound).
    ProgressComm = "mpi_rma_comm_wait_for_progress" in Time,
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ProgressSyncLastCall = "mpi_rma_sync_wait_for_progress_last_call" in Time,
    /// Waiting for the target's library, in an operation (upper bound).
    ProgressCommLastCall = "mpi_rma_comm_wait_for_progress_last_call" in Time,
    /// Pairs of processes that a call synchronizes.
    PairSyncs = "mpi_rma_pairsync_count" in Count,
    /// Pairs without data.
    PairSyncsUnneeded = "mpi_rma_pairsync_unneeded_count" in Count,
    /// Bytes of OpenSHMEM puts.
    ShmemBytesPut = "shmem_bytes_put" in Bytes,
    /// Bytes of OpenSHMEM gets.
    ShmemBytesGet = "shmem_bytes_get" in Bytes,
    /// What OpenSHMEM atomics send, as recorded.
    ShmemAtomicSent = "shmem_rma_atomic_sent" in Bytes,
    /// What OpenSHMEM atomics bring back, as recorded.
    ShmemAtomicReceived = "shmem_rma_atomic_received" in Bytes,
    /// Waiting for the last PE in a barrier.
    ShmemBarrierWait = "shmem_barrier_wait" in Time,
    /// Waiting for the last PE in a broadcast.
    ShmemLateBroadcast = "shmem_latebroadcast" in Time,
    /// Waiting for the last PE in a reduction or collection.
    ShmemWaitNxN = "shmem_wait_nxn" in Time,
    /// Waiting for the last PE to allocate.
    ShmemWaitAtCreate = "shmem_rma_wait_at_create" in Time,
    /// Waiting for the last PE to free.
    ShmemWaitAtFree = "shmem_rma_wait_at_free" in Time,
    /// Waiting for a lock.
    ShmemLockContentionSync = "shmem_rma_sync_lock_competition" in Time,
    /// Waiting for a lock in an operation.
    ShmemLockContentionComm = "shmem_rma_comm_lock_competition" in Time,
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ShmemProgressSync = "shmem_rma_sync_wait_for_progress" in Time,
    /// Waiting for the target's library, in an operation (lower bound).
    ShmemProgressComm = "shmem_rma_comm_wait_for_progress" in Time,
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ShmemProgressSyncLastCall = "shmem_rma_sync_wait_for_progress_last_call" in Time,
    /// Waiting for the target's library, in an operation (upper bound).
    ShmemProgressCommLastCall = "shmem_rma_comm_wait_for_progress_last_call" in Time,
    /// Waiting for a write by another PE.
    ShmemWaitUntil = "shmem_rma_wait_until" in Time,
    /// Bytes of ARMCI puts.
    ArmciBytesPut = "armci_bytes_put" in Bytes,
    /// Bytes of ARMCI gets.
    ArmciBytesGet = "armci_bytes_get" in Bytes,
    /// What ARMCI atomics send, as recorded.
    ArmciAtomicSent = "armci_rma_atomic_sent" in Bytes,
    /// What ARMCI atomics bring back, as recorded.
    ArmciAtomicReceived = "armci_rma_atomic_received" in Bytes,
    /// Waiting for the last process in a barrier.
    ArmciBarrierWait = "armci_barrier_wait" in Time,
    /// Waiting for the last process in a broadcast.
    ArmciLateBroadcast = "armci_latebroadcast" in Time,
    /// Waiting for the last process in a reduction or collection.
    ArmciWaitNxN = "armci_wait_nxn" in Time,
    /// Waiting for the last process to allocate.
    ArmciWaitAtCreate = "armci_rma_wait_at_create" in Time,
    /// Waiting for the last process to free.
    ArmciWaitAtFree = "armci_rma_wait_at_free" in Time,
    /// Waiting for a lock.
    ArmciLockContentionSync = "armci_rma_sync_lock_competition" in Time,
    /// Waiting for a lock in an operation.
    ArmciLockContentionComm = "armci_rma_comm_lock_competition" in Time,
    /// Waiting for the target's library, in a synchronization call (lower bound).
    ArmciProgressSync = "armci_rma_sync_wait_for_progress" in Time,
    /// Waiting for the target's library, in an operation (lower bound).
    ArmciProgressComm = "armci_rma_comm_wait_for_progress" in Time,
    /// Waiting for the target's library, in a synchronization call (upper bound).
    ArmciProgressSyncLastCall = "armci_rma_sync_wait_for_progress_last_call" in Time,
    /// Waiting for the target's library, in an operation (upper bound).
    ArmciProgressCommLastCall = "armci_rma_comm_wait_for_progress_last_call" in Time,
    /// Time on the critical path.
    CriticalPath = "critical_path" in Time,
    /// Time in call paths that are on the critical path somewhere.
    CriticalPathActivities = "critical_path_activities" in Time,
    /// Time in call paths beyond what the critical path has of them.
    NonCriticalPathActivities = "non_critical_path_activities" in Time,
    /// Costs that delays cause directly: Late Sender.
    DelayLateSender = "delay_latesender" in Time,
    /// Costs that delays cause through other waits: Late Sender.
    DelayLateSenderLongTerm = "delay_latesender_longterm" in Time,
    /// Costs that delays cause directly: Late Receiver.
    DelayLateReceiver = "delay_latereceiver" in Time,
    /// Costs that delays cause through other waits: Late Receiver.
    DelayLateReceiverLongTerm = "delay_latereceiver_longterm" in Time,
    /// Costs that delays cause directly: Wait at Barrier.
    DelayBarrier = "delay_barrier" in Time,
    /// Costs that delays cause through other waits: Wait at Barrier.
    DelayBarrierLongTerm = "delay_barrier_longterm" in Time,
    /// Costs that delays cause directly: Wait at N x N.
    DelayNxN = "delay_n2n" in Time,
    /// Costs that delays cause through other waits: Wait at N x N.
    DelayNxNLongTerm = "delay_n2n_longterm" in Time,
    /// Costs that delays cause directly: Late Broadcast.
    DelayLateBroadcast = "delay_12n" in Time,
    /// Costs that delays cause through other waits: Late Broadcast.
    DelayLateBroadcastLongTerm = "delay_12n_longterm" in Time,
    /// Costs that delays cause directly: Early Reduce.
    DelayEarlyReduce = "delay_n21" in Time,
    /// Costs that delays cause through other waits: Early Reduce.
    DelayEarlyReduceLongTerm = "delay_n21_longterm" in Time,
    /// Costs that delays cause directly: waiting at barriers of threads.
    DelayOmpBarrier = "delay_ompbarrier" in Time,
    /// Costs that delays cause through other waits: waiting at barriers of threads.
    DelayOmpBarrierLongTerm = "delay_ompbarrier_longterm" in Time,
    /// Costs that delays cause directly: idle threads.
    DelayOmpIdle = "delay_ompidle" in Time,
    /// Costs that delays cause through other waits: idle threads.
    DelayOmpIdleLongTerm = "delay_ompidle_longterm" in Time,
    /// Costs that delays cause directly: Wait at Create.
    DelayCreate = "delay_rma_create" in Time,
    /// Costs that delays cause through other waits: Wait at Create.
    DelayCreateLongTerm = "delay_rma_create_longterm" in Time,
    /// Costs that delays cause directly: Wait at Free.
    DelayFree = "delay_rma_free" in Time,
    /// Costs that delays cause through other waits: Wait at Free.
    DelayFreeLongTerm = "delay_rma_free_longterm" in Time,
    /// Costs that delays cause directly: Wait at Fence.
    DelayFence = "delay_rma_fence" in Time,
    /// Costs that delays cause through other waits: Wait at Fence.
    DelayFenceLongTerm = "delay_rma_fence_longterm" in Time,
    /// Costs that delays cause directly: Late Post.
    DelayLatePost = "delay_rma_late_post" in Time,
    /// Costs that delays cause through other waits: Late Post.
    DelayLatePostLongTerm = "delay_rma_late_post_longterm" in Time,
    /// Costs that delays cause directly: Early Wait.
    DelayEarlyWait = "delay_rma_early_wait" in Time,
    /// Costs that delays cause through other waits: Early Wait.
    DelayEarlyWaitLongTerm = "delay_rma_early_wait_longterm" in Time,
    /// Costs that delays cause directly: Wait for Progress.
    DelayProgress = "delay_rma_progress" in Time,
    /// Costs that delays cause through other waits: Wait for Progress.
    DelayProgressLongTerm = "delay_rma_progress_longterm" in Time,
    /// Costs that delays cause through other waits: lock contention.
    DelayLockLongTerm = "delay_lock_longterm" in Time,
    /// Costs of time in which others waited for a lock.
    IntervalDelayLock = "interval_delay_lock" in Time,
    /// Costs of such time through waits for a lock.
    IntervalDelayLockLongTerm = "interval_delay_lock_longterm" in Time,
    /// Costs for which neither work nor a wait can be blamed.
    DelayUnattributed = "delay_unattributed" in Time,
    /// Waiting that earlier waits of the causing process explain: Late Sender.
    IndirectLateSender = "mpi_wait_indirect_latesender" in Time,
    /// Waiting that earlier waits of the causing process explain: Late Receiver.
    IndirectLateReceiver = "mpi_wait_indirect_latereceiver" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait at Barrier.
    IndirectBarrier = "mpi_wait_indirect_barrier" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait at N x N.
    IndirectNxN = "mpi_wait_indirect_n2n" in Time,
    /// Waiting that earlier waits of the causing process explain: Late Broadcast.
    IndirectLateBroadcast = "mpi_wait_indirect_12n" in Time,
    /// Waiting that earlier waits of the causing process explain: Early Reduce.
    IndirectEarlyReduce = "mpi_wait_indirect_n21" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait at Create.
    IndirectCreate = "mpi_wait_indirect_rma_create" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait at Free.
    IndirectFree = "mpi_wait_indirect_rma_free" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait at Fence.
    IndirectFence = "mpi_wait_indirect_rma_fence" in Time,
    /// Waiting that earlier waits of the causing process explain: Late Post.
    IndirectLatePost = "mpi_wait_indirect_rma_late_post" in Time,
    /// Waiting that earlier waits of the causing process explain: Early Wait.
    IndirectEarlyWait = "mpi_wait_indirect_rma_early_wait" in Time,
    /// Waiting that earlier waits of the causing process explain: Wait for Progress.
    IndirectProgress = "mpi_wait_indirect_rma_progress" in Time,
    /// Waiting that earlier waits of the causing process explain: lock contention.
    IndirectLock = "mpi_wait_indirect_lock" in Time,
    /// Waiting that made others wait later: Late Sender.
    PropagatingLateSender = "mpi_wait_propagating_ls" in Time,
    /// Waiting that made others wait later: Late Receiver.
    PropagatingLateReceiver = "mpi_wait_propagating_lr" in Time,
    /// Waiting that made others wait later: Wait at Barrier.
    PropagatingBarrier = "mpi_wait_propagating_barrier" in Time,
    /// Waiting that made others wait later: Wait at N x N.
    PropagatingNxN = "mpi_wait_propagating_n2n" in Time,
    /// Waiting that made others wait later: Late Broadcast.
    PropagatingLateBroadcast = "mpi_wait_propagating_12n" in Time,
    /// Waiting that made others wait later: Early Reduce.
    PropagatingEarlyReduce = "mpi_wait_propagating_n21" in Time,
    /// Waiting that made others wait later: waiting at barriers of threads.
    PropagatingOmpBarrier = "mpi_wait_propagating_ompbarrier" in Time,
    /// Waiting that made others wait later: Wait at Create.
    PropagatingCreate = "mpi_wait_propagating_rma_create" in Time,
    /// Waiting that made others wait later: Wait at Free.
    PropagatingFree = "mpi_wait_propagating_rma_free" in Time,
    /// Waiting that made others wait later: Wait at Fence.
    PropagatingFence = "mpi_wait_propagating_rma_fence" in Time,
    /// Waiting that made others wait later: Late Post.
    PropagatingLatePost = "mpi_wait_propagating_rma_late_post" in Time,
    /// Waiting that made others wait later: Early Wait.
    PropagatingEarlyWait = "mpi_wait_propagating_rma_early_wait" in Time,
    /// Waiting that made others wait later: Wait for Progress.
    PropagatingProgress = "mpi_wait_propagating_rma_progress" in Time,
    /// Waiting that made others wait later: lock contention.
    PropagatingLock = "mpi_wait_propagating_lock" in Time,
    /// What an even distribution of the critical path's activities would gain.
    CriticalImbalanceImpact = "critical_imbalance_impact" in Time,
    /// The part of it between processes that do different work.
    InterPartitionImbalance = "inter_partition_imbalance" in Time,
}

impl Metric {
    /// Whether it says who pays for waiting.
    #[must_use]
    pub fn is_delay_cost(self) -> bool {
        (Self::DelayLateSender..=Self::DelayUnattributed).contains(&self)
    }
}

/// The first metric whose cells are shares; all behind it are as well.
const FIRST_SHARE: Metric = Metric::DelayLateSender;

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Cell<V> {
    /// Metric.
    pub metric: Metric,
    /// Call path.
    pub callpath: u32,
    /// Index of the location.
    pub location: u32,
    /// Ticks, occurrences or bytes.
    pub value: V,
}

/// A cell that is counted or measured: its sum does not depend on the order.
pub type Severity = Cell<i64>;

/// A cell that is a share of something: a real number of ticks.
pub type Cost = Cell<f64>;

/// What stands in a cell, and the metrics whose cells hold it.
pub trait Value: Copy + Default + PartialEq {
    /// Positions of these metrics in [`Metric::ALL`].
    const METRICS: std::ops::Range<usize>;

    /// The sum of two.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Value for i64 {
    const METRICS: std::ops::Range<usize> = 0..FIRST_SHARE as usize;

    /// Times are bounded ([`crate::trace::Bounds`]), but the sizes that a damaged message claims are not.
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Value for f64 {
    const METRICS: std::ops::Range<usize> = FIRST_SHARE as usize..Metric::ALL.len();

    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// Bytes or elements that a record claims, as the value of a cell.
#[must_use]
pub fn volume(claimed: u64) -> i64 {
    i64::try_from(claimed).unwrap_or(i64::MAX)
}

/// Sums contributions to the cells of one location after the other.
#[derive(Debug)]
pub struct Accumulator<V = i64> {
    /// A row of metrics for each call path.
    cells: Vec<V>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    rows: Vec<Cell<V>>,
}

impl<V: Value> Accumulator<V> {
    /// An accumulator for all call paths of a tree.
    #[must_use]
    pub fn new(tree: &CallTree) -> Self {
        Self {
            cells: vec![V::default(); V::METRICS.len() * tree.len()],
            touched: Vec::new(),
            is_touched: vec![false; tree.len()],
            rows: Vec::new(),
        }
    }

    /// Adds to a cell of the current location.
    #[inline]
    pub fn add(&mut self, metric: Metric, callpath: u32, value: V) {
        if !self.is_touched[callpath as usize] {
            self.is_touched[callpath as usize] = true;
            self.touched.push(callpath);
        }
        let cell = &mut self.cells[callpath as usize * V::METRICS.len() + metric as usize - V::METRICS.start];
        *cell = cell.plus(value);
    }

    /// Ends the contributions to a location.
    pub fn end_location(&mut self, location: u32) {
        for callpath in self.touched.drain(..) {
            self.is_touched[callpath as usize] = false;
            let begin = callpath as usize * V::METRICS.len();
            let cells = &mut self.cells[begin..begin + V::METRICS.len()];
            for (&metric, value) in Metric::ALL[V::METRICS].iter().zip(cells) {
                if *value != V::default() {
                    self.rows.push(Cell { metric, callpath, location, value: *value });
                    *value = V::default();
                }
            }
        }
    }

    /// All cells that are not zero.
    #[must_use]
    pub fn finish(self) -> Vec<Cell<V>> {
        self.rows
    }
}

/// Sorts by metric, call path and location, and adds up what several stages contributed to one cell, in their order.
#[must_use]
pub fn combine<V: Value>(mut rows: Vec<Cell<V>>) -> Vec<Cell<V>> {
    let key = |row: &Cell<V>| (row.metric, row.callpath, row.location);
    rows.sort_by_key(key);
    rows.dedup_by(|later, earlier| {
        let same = key(later) == key(earlier);
        if same {
            earlier.value = earlier.value.plus(later.value);
        }
        same
    });
    rows.retain(|row| row.value != V::default());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_and_zeros_vanish() {
        let row = |callpath, location, value| Severity { metric: Metric::Time, callpath, location, value };
        let rows = combine(vec![row(1, 0, 5), row(0, 1, 2), row(1, 0, -5), row(0, 1, 3), row(0, 0, 1)]);
        assert_eq!(rows, [row(0, 0, 1), row(0, 1, 5)]);
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
