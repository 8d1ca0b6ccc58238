//! Severities: a value for each metric, call path and location.

use crate::trace::CallTree;

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal in $unit:ident),+ $(,)?) => {
        /// Metrics whose values the analysis computes; all others derive from these.
        ///
        /// Values are exclusive along the call tree and inclusive along the metric tree.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Severity {
    /// Metric.
    pub metric: Metric,
    /// Call path.
    pub callpath: u32,
    /// Index of the location.
    pub location: u32,
    /// Ticks, occurrences or bytes.
    pub value: i64,
}

/// Sums contributions to the cells of one location after the other.
#[derive(Debug)]
pub struct Accumulator {
    cells: Vec<[i64; Metric::ALL.len()]>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    rows: Vec<Severity>,
}

impl Accumulator {
    /// An accumulator for all call paths of a tree.
    #[must_use]
    pub fn new(tree: &CallTree) -> Self {
        Self {
            cells: vec![[0; Metric::ALL.len()]; tree.len()],
            touched: Vec::new(),
            is_touched: vec![false; tree.len()],
            rows: Vec::new(),
        }
    }

    /// Adds to a cell of the current location.
    #[inline]
    pub fn add(&mut self, metric: Metric, callpath: u32, value: i64) {
        if !self.is_touched[callpath as usize] {
            self.is_touched[callpath as usize] = true;
            self.touched.push(callpath);
        }
        self.cells[callpath as usize][metric as usize] += value;
    }

    /// Ends the contributions to a location.
    pub fn end_location(&mut self, location: u32) {
        for callpath in self.touched.drain(..) {
            self.is_touched[callpath as usize] = false;
            for (&metric, value) in Metric::ALL.iter().zip(&mut self.cells[callpath as usize]) {
                if *value != 0 {
                    self.rows.push(Severity { metric, callpath, location, value: *value });
                    *value = 0;
                }
            }
        }
    }

    /// All cells that are not zero.
    #[must_use]
    pub fn finish(self) -> Vec<Severity> {
        self.rows
    }
}

/// Sorts by metric, call path and location, and adds up what several stages contributed to one cell.
#[must_use]
pub fn combine(mut rows: Vec<Severity>) -> Vec<Severity> {
    let key = |row: &Severity| (row.metric, row.callpath, row.location);
    rows.sort_unstable_by_key(key);
    rows.dedup_by(|later, earlier| {
        let same = key(later) == key(earlier);
        if same {
            earlier.value += later.value;
        }
        same
    });
    rows.retain(|row| row.value != 0);
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
